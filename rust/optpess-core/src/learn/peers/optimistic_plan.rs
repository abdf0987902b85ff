//! The best policy within an optimistic limit, as OptCMDP and OptCMDP-bonus deploy it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::learn::PolicySource;
use crate::learn::peers::{PeerExperience, Proposal};
use crate::learn::stored::{check, check_search};
use crate::plan::{ActionPoint, ChordSearch, MixingOracle};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The chord method and the workspace that turns its answer into one policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Clone + Deserialize<'de>"))]
pub(crate) struct OptimisticPlan<P> {
    search: ChordSearch<P>,
    completion: MarkovPolicy,
}

impl<P: ActionPoint> OptimisticPlan<P> {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            search: ChordSearch::new(shape)?,
            completion: MarkovPolicy::uniform(shape)?,
        })
    }

    /// Refuses a stored plan of another shape.
    pub(crate) fn check_stored(&self, shape: Shape) -> Result<()> {
        check_search(&self.search, shape)?;
        check(
            "the last plan of a learner",
            self.completion.shape() == shape,
        )
    }

    /// Writes the policy of the best point within the limit into `policy`; `source` names it.
    ///
    /// On the good event every policy within the limit is within it for optimistic costs too, so the problem is
    /// feasible. Outside that event, or with radii scaled down, even the least optimistic cost may exceed the limit:
    /// then the policy of least cost is played, and recorded as [`PolicySource::LeastCost`].
    pub(crate) fn plan<O: MixingOracle<Point = P>>(
        &mut self,
        oracle: &mut O,
        known: &PeerExperience,
        source: PolicySource,
        policy: &mut MarkovPolicy,
    ) -> Result<Proposal> {
        let found = match self.search.solve(oracle, known.cost_limit()) {
            Ok(found) => found,
            Err(Error::Infeasible { .. }) => {
                // The search has left the policy of least cost at the lower end of its chord.
                let least = self.search.chord().below();
                policy.set_actions(least.actions());
                return Ok(Proposal {
                    source: PolicySource::LeastCost,
                    reward: Some(least.reward()),
                    cost: Some(least.cost()),
                });
            }
            Err(other) => return Err(other),
        };
        // The plan has no mass at some states, but the true kernel may lead there. The policy within the
        // limit is defined at every state, so it is used there.
        let (below, above) = (self.search.chord().below(), self.search.chord().above());
        self.completion.set_actions(below.actions());
        let weight = found.weight_above;
        oracle.mix([below, above], weight, &self.completion, policy);
        Ok(Proposal {
            source,
            reward: Some(found.value),
            cost: Some(found.cost),
        })
    }
}
