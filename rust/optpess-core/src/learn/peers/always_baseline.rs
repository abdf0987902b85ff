//! The learner that always plays pi0: the reference for safety.
//!
//! Promise: no violation at all, because pi0 is strictly safe by assumption (Assumption 2.2 of
//! \[Liu21\]); regret K (V* - V(pi0)), which every safe learner should improve on.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::confidence::{
    ConfidenceRule, Guarantee, LearningTerms, OptimisticCost, OptimisticReward, PeerRadii,
};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::peers::{Algorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::learn::{PolicySource, SafeBaseline};
use crate::model::InitialDistribution;
use crate::policy::MarkovPolicy;
use crate::table::zeros;

/// The learner that always plays pi0. It still counts, so that its estimates can be read.
pub type AlwaysBaseline = Peer<BaselineAlgorithm>;

/// The algorithm; it plans nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BaselineAlgorithm {
    baseline: SafeBaseline,
    /// Plain averages: nothing is biased, because nothing is planned.
    reward: OptimisticReward,
    cost: OptimisticCost,
    bonuses: Vec<f64>, // [H, S, A], zeros
}

/// The terms of a learner need a delta; it enters only L, which is not used here.
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

    /// pi0 and what is known of its cost.
    pub(crate) fn baseline(&self) -> &SafeBaseline {
        &self.algorithm.baseline
    }
}

impl Algorithm for BaselineAlgorithm {
    const PROMISE: &'static str = "no violation; regret linear in K unless the baseline is optimal";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        let signals = self.reward == OptimisticReward::for_bounded_violation(shape, 0.0)?
            && self.cost == OptimisticCost::new(shape, 0.0)?
            && self.bonuses.len() == shape.triples()
            && self.bonuses.iter().all(|&bonus| bonus.to_bits() == 0);
        check("the signals of a learner", signals)?;
        known.check_baseline(&self.baseline)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, _: &PeerRadii) {
        self.reward.update(row, 0.0);
        self.cost.update(row, 0.0);
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        policy.clone_from(self.baseline.policy());
        Ok(Proposal {
            source: PolicySource::Baseline,
            reward: None,
            // The given bound is the only one known.
            cost: known.margin().map(|margin| margin.safe_cost()),
        })
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        actions.check_policy("baseline", self.baseline.policy())
    }

    fn signals(&self) -> BiasedSignals<'_> {
        BiasedSignals::new(
            Some(self.reward.signal()),
            self.cost.signal(),
            self.bonuses.clone(),
        )
    }

    /// Probability 1, under the assumption on pi0.
    fn guarantee(&self, _: &LearningTerms) -> Option<Guarantee> {
        Some(Guarantee::zero_violation(1.0, ConfidenceRule::Theorem))
    }
}
