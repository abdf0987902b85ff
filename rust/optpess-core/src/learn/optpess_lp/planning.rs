//! The search of Algorithm 1 for the best policy of its pessimistic set.

use crate::error::{Error, Result};
use crate::learn::optpess_lp::{Knowledge, OptPessLp};
use crate::plan::{PackedOracle, PlanningProblem, pack};

/// Plans aim this much, relatively, inside the limit, so that re-evaluation, which rounds differently,
/// rarely finds them above it; 10^9 episodes lose 10^-3 of one episode's reward by it.
const PLANNING_MARGIN: f64 = 1e-12;

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
        let problem = PackedOracle { parts, board };
        // Past the gate pi0 itself is within the limit, so "infeasible" can only be rounding.
        let found = self
            .planner
            .solve(&problem, margin.cost_limit() * (1.0 - PLANNING_MARGIN))
            .map_err(|error| match error {
                Error::Infeasible { .. } => Error::NumericalTrouble {
                    solver: "parametric",
                    status: format!("past the gate, but {error}"),
                },
                other => other,
            })?;
        self.inductions += found.inductions as u64;
        self.mixer.mix(
            self.planner.below(),
            self.planner.above(),
            found.weight_above,
            self.estimates.kernel(),
            &self.initial,
            self.baseline.policy(),
            &mut self.candidate,
        );
        Ok(())
    }
}
