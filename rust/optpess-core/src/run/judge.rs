//! True values of deployed policies: with the simulator, the only user of the truth.

use crate::error::Result;
use crate::evaluate::PairEvaluator;
use crate::model::ConstrainedMdp;
use crate::policy::MarkovPolicy;
use crate::record::TrueValues;

/// Evaluates each deployed policy exactly, once for as long as it stays the same.
#[derive(Debug)]
pub struct Judge<'m> {
    model: &'m ConstrainedMdp,
    evaluator: PairEvaluator,
    last: Option<(u64, TrueValues)>,
}

impl<'m> Judge<'m> {
    /// A judge who knows this model.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            evaluator: PairEvaluator::new(model.shape())?,
            last: None,
        })
    }

    /// The true values of a policy whose version says whether it is the last one again.
    #[inline]
    pub fn assess(&mut self, policy: &MarkovPolicy, version: u64) -> TrueValues {
        match self.last {
            Some((seen, values)) if seen == version => values,
            _ => {
                let (kernel, initial) = (self.model.kernel(), self.model.initial());
                let signals = (self.model.reward(), &self.model.costs()[0]);
                let (reward, cost) = self.evaluator.evaluate(policy, signals, kernel, initial);
                let values = TrueValues { reward, cost };
                self.last = Some((version, values));
                values
            }
        }
    }
}
