//! Never leaving pi0: the end of the scale that only wants safety.
//!
//! Promise: no violation at all, because pi0 is strictly safe by assumption (Assumption 2.2 of
//! \[Liu21\]); regret K (V* - V(pi0)), the line that every safe learner should end up below.

use serde::{Deserialize, Serialize};

use crate::confidence::{
    ConfidenceRule, Guarantee, LearningTerms, OptimisticCost, OptimisticReward, PeerRadii,
};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::peers::{Algorithm, Peer, PeerExperience, Proposal};
use crate::learn::{PolicySource, SafeBaseline};
use crate::model::InitialDistribution;
use crate::policy::MarkovPolicy;
use crate::table::zeros;

/// The learner that always plays pi0. It still counts, so that its estimates can be looked at.
pub type AlwaysBaseline = Peer<BaselineAlgorithm>;

/// How it plans: it does not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BaselineAlgorithm {
    baseline: SafeBaseline,
    /// Plain averages: nothing is biased, for nothing is planned.
    reward: OptimisticReward,
    cost: OptimisticCost,
    bonuses: Vec<f64>, // [H, S, A], zeros
}

/// Enters only L, which nothing here uses; the terms of a learner have to hold some delta.
const UNUSED_FAILURE_PROBABILITY: f64 = 0.5;

impl AlwaysBaseline {
    /// A learner for K episodes that has seen nothing.
    pub fn new(
        initial: InitialDistribution,
        baseline: SafeBaseline,
        num_episodes: u64,
    ) -> Result<Self> {
        let shape = baseline.policy().shape();
        let (limit, margin) = (baseline.cost_limit(), baseline.margin());
        let terms = LearningTerms::new(
            num_episodes,
            UNUSED_FAILURE_PROBABILITY,
            ConfidenceRule::Theorem,
        )?;
        let rule = BaselineAlgorithm {
            baseline,
            reward: OptimisticReward::for_bounded_violation(shape, 0.0)?,
            cost: OptimisticCost::new(shape, 0.0)?,
            bonuses: zeros("bonuses [H, S, A]", shape.triples())?,
        };
        Self::from_parts(shape, initial, (limit, margin), terms, rule)
    }
}

impl Algorithm for BaselineAlgorithm {
    const PROMISE: &'static str = "no violation; regret linear in K unless the baseline is optimal";

    fn update_row(&mut self, row: &RowEstimate<'_>, _: &PeerRadii) {
        self.reward.update(row, 0.0);
        self.cost.update(row, 0.0);
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        policy.clone_from(self.baseline.policy());
        Ok(Proposal {
            source: PolicySource::Baseline,
            reward: None,
            // The bound that was given is the only one there is.
            cost: known.margin().map(|margin| margin.safe_cost()),
        })
    }

    fn signals(&self) -> BiasedSignals<'_> {
        BiasedSignals::new(
            Some(self.reward.signal()),
            self.cost.signal(),
            self.bonuses.clone(),
        )
    }

    /// Certain, as far as the assumption on pi0 is.
    fn guarantee(&self, _: &LearningTerms) -> Option<Guarantee> {
        Some(Guarantee::ZeroViolation { probability: 1.0 })
    }
}
