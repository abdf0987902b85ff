//! Optimism without a constraint: the reference for reward.
//!
//! After Azar, Osband and Munos, *Minimax Regret Bounds for Reinforcement Learning*, ICML 2017 (UCBVI),
//! with the bonus of OptCMDP-bonus in place of theirs, so that a comparison with it shows what the
//! constraint alone does. The box in words: play the best policy for r-hat + b on P-hat. One episode
//! costs one backward induction. Promise: sqrt(K) regret against the best policy *without* a limit, so
//! that its regret against the constrained optimum is negative and its violation grows like K.

use serde::{Deserialize, Serialize};

use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Algorithm, MarginAlgorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::plan::{ActionPoint, Oracle, PlainOracle, PlanningWork, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner that ignores the cost.
pub type UnconstrainedOptimistic = Peer<UnconstrainedAlgorithm>;

/// The algorithm. The margin is kept for the record; no plan reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnconstrainedAlgorithm {
    signals: OptimisticSignals,
    work: PlanningWork,
    found: Vertex,
}

impl MarginAlgorithm for UnconstrainedAlgorithm {
    fn new(shape: Shape, _: &SafetyMargin, _: &LearningTerms) -> Result<Self> {
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            work: PlanningWork::new(shape)?,
            found: Vertex::new(shape)?,
        })
    }
}

impl Algorithm for UnconstrainedAlgorithm {
    const PROMISE: &'static str =
        "regret of order sqrt(K) against the best policy without a limit; no bound on violations";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        check("the signals of a learner", self.signals.fits(shape)?)?;
        let plan = self.work.shape() == shape && self.found.fits(shape);
        check("the last plan of a learner", plan)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        self.signals
            .update_row(row, radii.bonus(row.visits, row.successors.in_full()));
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let problem = self.signals.on_estimates(known);
        let mut oracle = PlainOracle::on(&problem, &mut self.work);
        oracle.maximise(0.0, &mut self.found);
        oracle.locate(&mut self.found);
        policy.set_actions(self.found.actions());
        Ok(Proposal {
            source: PolicySource::Optimistic,
            reward: Some(self.found.reward()),
            cost: Some(self.found.cost()),
        })
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.signals.signals()
    }
}
