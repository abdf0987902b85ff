//! Plans of OptPess-Mix that are stopped within: what they had changed is put back.

use crate::error::{Error, Result};
use crate::learn::OptPessMix;

impl OptPessMix {
    /// Whether the next episode needs a plan that takes long and may be stopped: it starts from scratch, so it can be
    /// made again with the same result.
    pub(crate) fn plans_from_scratch(&self) -> bool {
        self.plan_is_due && self.proposers.start_from_scratch()
    }

    /// Plans; a plan from scratch that is stopped leaves everything as it was.
    pub(super) fn plan_or_go_back(&mut self) -> Result<()> {
        let Some(beginning) = self.proposers.beginning() else {
            return self.plan();
        };
        let portfolio = self.portfolio.clone();
        let planned = self.plan();
        if matches!(planned, Err(Error::Interrupted)) {
            self.proposers.go_back(beginning);
            self.portfolio = portfolio;
        }
        planned
    }
}
