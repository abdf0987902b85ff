//! The search of Algorithm 1 for the best policy of its pessimistic set.

use crate::error::Result;
use crate::learn::optpess_lp::{Knowledge, OptPessLp};
use crate::plan::{PackedOracle, PackedOracleWork, PlanningProblem, pack};

impl OptPessLp {
    /// The best policy of Pi^k (Alg. 1, line 5), read off as a Markov policy.
    pub(super) fn plan(&mut self) -> Result<()> {
        let Knowledge::Margin(margin, reward) = &self.knowledge else {
            return Ok(()); // no plan is made while c0 is being estimated
        };
        let parts = PlanningProblem {
            shape: self.shape,
            reward,
            cost: &self.pessimistic_cost,
            kernel: self.estimates.kernel(),
            initial: &self.initial,
        };
        let board = match &mut self.board {
            Some(board) => board,
            none_yet => none_yet.insert(pack(&parts)?),
        };
        let work = match &mut self.packed_work {
            Some(work) => work,
            none_yet => none_yet.insert(PackedOracleWork::new(self.shape)?),
        };
        let mut oracle = PackedOracle {
            parts: &parts,
            board,
            work,
        };
        // Past the gate pi0 itself is within the limit, so "infeasible" can only be rounding.
        let (limit, completion) = (margin.cost_limit(), self.baseline.policy());
        self.search
            .best_within(&mut oracle, limit, completion, &mut self.candidate)?;
        Ok(())
    }
}
