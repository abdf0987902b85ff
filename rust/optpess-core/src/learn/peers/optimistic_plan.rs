//! The best policy within an optimistic limit, as OptCMDP and OptCMDP-bonus deploy it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::learn::PolicySource;
use crate::learn::peers::{Known, Planned};
use crate::plan::{ChordSolver, Oracle, Point, PolicyMixer, Storage};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The chord method and what turns its answer into one policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OptimisticPlan<P, W> {
    planner: ChordSolver<P, W>,
    mixer: PolicyMixer,
    completion: MarkovPolicy,
}

impl<P: Point, W: Storage> OptimisticPlan<P, W> {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            planner: ChordSolver::new(shape)?,
            mixer: PolicyMixer::new(shape)?,
            completion: MarkovPolicy::uniform(shape)?,
        })
    }

    /// Writes the policy of the best point within the limit into `policy`; `source` names it.
    ///
    /// On the good event the true problem's policies are within the limit for optimistic costs, so the
    /// problem is feasible. Outside it, or with radii scaled down, even the least optimistic cost may
    /// exceed the limit: then the policy of least cost is played, and recorded as
    /// [`PolicySource::LeastCost`].
    pub(crate) fn plan<O: Oracle<Point = P, Work = W>>(
        &mut self,
        problem: &O,
        known: &Known,
        source: PolicySource,
        policy: &mut MarkovPolicy,
    ) -> Result<Planned> {
        let found = match self.planner.solve(problem, known.cost_limit) {
            Ok(found) => found,
            Err(Error::Infeasible { .. }) => {
                // The planner has left the policy of least cost within its chord.
                let least = self.planner.below();
                policy.set_actions(least.actions());
                return Ok(Planned {
                    source: PolicySource::LeastCost,
                    reward: least.reward(),
                    cost: least.cost(),
                });
            }
            Err(other) => return Err(other),
        };
        // Where the plan never arrives it is silent; the truth may still lead there. The policy within the
        // limit has an optimistic answer for every state, so it is asked.
        let (below, above) = (self.planner.below(), self.planner.above());
        self.completion.set_actions(below.actions());
        let (completion, mixer) = (&self.completion, &mut self.mixer);
        problem.mix(
            [below, above],
            found.weight_above,
            completion,
            mixer,
            policy,
        );
        Ok(Planned {
            source,
            reward: found.value,
            cost: found.cost,
        })
    }
}
