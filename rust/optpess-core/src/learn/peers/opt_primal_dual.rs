//! OptPrimalDual-CMDP of \[Efroni20\]: mirror ascent on the policy, gradient ascent on the price of cost.
//!
//! The box in words: start from the uniform policy; play pi_k; evaluate it for the optimistic signals of
//! OptCMDP-bonus on P-hat, with action values clipped; multiply pi_k by exp(t_K (Q_r - lambda Q_c)); move
//! lambda by the excess of V_c over the limit, within \[0, rho\]. One episode costs two evaluations and no
//! optimisation. Promise: regret and *weak* violation of order sqrt(K), with probability 1 - delta.

use serde::{Deserialize, Serialize};

use crate::confidence::peers::{dual_step, mirror_step, multiplier_cap};
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::evaluate::ClippedValues;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Known, Peer, Planned, Row, Rule};
use crate::model::InitialDistribution;
use crate::plan::MirrorAscent;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::Signal;

/// The learner of OptPrimalDual-CMDP.
pub type OptPrimalDualCmdp = Peer<MirrorRule>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MirrorRule {
    // t_K, 1/t, rho.
    policy_step: f64,
    dual_step: f64,
    multiplier_cap: f64,
    cost_limit: f64,
    signals: OptimisticSignals,
    ascent: MirrorAscent,
    multiplier: f64,
    rewards: ClippedValues,
    costs: ClippedValues,
    /// V_c of the policy in play.
    cost: f64,
}

impl OptPrimalDualCmdp {
    /// A learner that has seen nothing.
    pub fn new(
        shape: Shape,
        initial: InitialDistribution,
        margin: SafetyMargin,
        terms: LearningTerms,
    ) -> Result<Self> {
        let rule = MirrorRule {
            policy_step: mirror_step(shape, &margin, terms.num_episodes()),
            dual_step: dual_step(shape, &margin, terms.num_episodes()),
            multiplier_cap: multiplier_cap(shape, &margin),
            cost_limit: margin.cost_limit(),
            signals: OptimisticSignals::new(shape)?,
            ascent: MirrorAscent::new(shape)?,
            multiplier: 0.0,
            rewards: ClippedValues::new(shape)?,
            costs: ClippedValues::new(shape)?,
            cost: 0.0,
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

impl Rule for MirrorRule {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.signals
            .revise(row, radii.bonus(row.visits, row.frequencies));
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        self.ascent.write(policy);
        let (kernel, initial) = (known.estimates.kernel(), &known.initial);
        let reward = self
            .rewards
            .evaluate(policy, &self.signals.reward, kernel, initial);
        self.cost = self
            .costs
            .evaluate(policy, &self.signals.cost, kernel, initial);
        Ok(Planned {
            source: PolicySource::MirrorAscent,
            reward,
            cost: self.cost,
        })
    }

    fn advance(&mut self) {
        let (rewards, costs) = (self.rewards.action_values(), self.costs.action_values());
        let price = self.multiplier;
        self.ascent
            .ascend(self.policy_step, |row| rewards[row] - price * costs[row]);
        let moved = self.multiplier + self.dual_step * (self.cost - self.cost_limit);
        self.multiplier = moved.clamp(0.0, self.multiplier_cap);
    }

    fn signals(&self) -> (&Signal, &Signal) {
        (self.signals.reward.signal(), self.signals.cost.signal())
    }

    fn bonuses(&self) -> &[f64] {
        &self.signals.bonuses
    }

    fn multiplier(&self) -> f64 {
        self.multiplier
    }
}
