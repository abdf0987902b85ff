//! Optimism without a constraint: the end of the scale that only wants reward.
//!
//! After Azar, Osband and Munos, *Minimax Regret Bounds for Reinforcement Learning*, ICML 2017 (UCBVI),
//! with the bonus of OptCMDP-bonus in place of theirs, so that a comparison with it shows what the
//! constraint alone does. The box in words: play the best policy for r-hat + b on P-hat. One episode
//! costs one backward induction. Promise: sqrt(K) regret against the best policy *without* a limit, so
//! that its regret against the constrained optimum is negative and its violation grows like K.

use serde::{Deserialize, Serialize};

use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Biased, Known, MarginRule, Peer, Planned, Row, Rule};
use crate::plan::{Oracle, PlainOracle, PlanningWork, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner that ignores the cost.
pub type UnconstrainedOptimistic = Peer<UnconstrainedRule>;

/// How it plans. The margin is for the record: no plan looks at it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnconstrainedRule {
    signals: OptimisticSignals,
    work: PlanningWork,
    found: Vertex,
}

impl MarginRule for UnconstrainedRule {
    fn begin(shape: Shape, _: &SafetyMargin, _: &LearningTerms) -> Result<Self> {
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            work: PlanningWork::new(shape)?,
            found: Vertex::new(shape)?,
        })
    }
}

impl Rule for UnconstrainedRule {
    const PROMISE: &'static str =
        "regret of order sqrt(K) against the best policy without a limit; no bound on violations";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.signals
            .revise(row, radii.bonus(row.visits, row.frequencies));
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        let problem = self.signals.on_estimates(known);
        let mut oracle = PlainOracle::on(&problem, &mut self.work);
        oracle.maximise(0.0, &mut self.found);
        oracle.locate(&mut self.found);
        policy.set_actions(self.found.actions());
        Ok(Planned {
            source: PolicySource::Optimistic,
            reward: self.found.reward(),
            cost: self.found.cost(),
        })
    }

    fn biased(&self) -> Biased<'_> {
        self.signals.biased()
    }
}
