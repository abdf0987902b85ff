//! OptCMDP-bonus of \[Efroni20\]: optimism in reward and cost, through bonuses, on the estimated kernel.
//!
//! The box in words: play the policy that maximises V(r-hat + b, P-hat) subject to
//! V(c-hat - b, P-hat) <= tau, where b = b_o + H sum b_p makes up for unknown signals and transitions.
//! One episode costs one to a few backward inductions. Promise: regret and strong violation of order
//! sqrt(K), with probability 1 - delta; nothing about single episodes.
//!
//! On the good event the true problem's policies are all within the limit for c-hat - b, so the problem
//! is feasible. Outside it, or with radii scaled down, even the least optimistic cost may exceed the limit:
//! then the policy of least cost is played, and recorded as [`PolicySource::LeastCost`].

use serde::{Deserialize, Serialize};

use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::{Error, Result};
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Known, Peer, Planned, Row, Rule};
use crate::model::InitialDistribution;
use crate::plan::{Mixer, Parametric, Tradeoff};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::Signal;

/// The learner of OptCMDP-bonus.
pub type OptCmdpBonus = Peer<BonusRule>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BonusRule {
    signals: OptimisticSignals,
    planner: Parametric,
    mixer: Mixer,
    completion: MarkovPolicy,
}

impl OptCmdpBonus {
    /// A learner that has seen nothing.
    pub fn new(
        shape: Shape,
        initial: InitialDistribution,
        margin: SafetyMargin,
        terms: LearningTerms,
    ) -> Result<Self> {
        let rule = BonusRule {
            signals: OptimisticSignals::new(shape)?,
            planner: Parametric::new(shape)?,
            mixer: Mixer::new(shape)?,
            completion: MarkovPolicy::uniform(shape)?,
        };
        Self::from_parts(
            shape,
            initial,
            (margin.cost_limit(), Some(margin)),
            terms,
            rule,
        )
    }
}

impl Rule for BonusRule {
    const PROMISE: &'static str =
        "regret and strong violation of order sqrt(K) with probability 1 - delta";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.signals
            .revise(row, radii.bonus(row.visits, row.frequencies));
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        let problem = Tradeoff {
            shape: known.shape,
            reward: &self.signals.reward,
            cost: &self.signals.cost,
            kernel: known.estimates.kernel(),
            initial: &known.initial,
        };
        let found = match self.planner.solve(&problem, known.cost_limit) {
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
        // Where P-hat has no way to arrive the plan is silent; the truth may still lead there. The policy
        // within the limit has an optimistic answer for every state, so it is asked.
        self.completion.set_actions(self.planner.below().actions());
        self.mixer.mix(
            self.planner.below(),
            self.planner.above(),
            found.weight_above,
            problem.kernel,
            &known.initial,
            &self.completion,
            policy,
        );
        Ok(Planned {
            source: PolicySource::Optimistic,
            reward: found.value,
            cost: found.cost,
        })
    }

    fn signals(&self) -> (&Signal, &Signal) {
        (self.signals.reward.signal(), self.signals.cost.signal())
    }

    fn bonuses(&self) -> &[f64] {
        &self.signals.bonuses
    }
}
