//! One step of mirror ascent on the policy and of gradient ascent on the multiplier.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::evaluate::ClippedValues;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{PeerExperience, Proposal};
use crate::model::StepKernel;
use crate::plan::MirrorAscent;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The iterate of OptPrimalDual-CMDP and OPDOP, which differ in steps, estimates and mixing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MirrorStep {
    policy_step: f64,
    dual_step: f64,
    multiplier_cap: f64,
    cost_limit: f64,
    ascent: MirrorAscent,
    pub(crate) multiplier: f64,
    rewards: ClippedValues,
    costs: ClippedValues,
    /// V_c of the policy of the current episode.
    cost: f64,
}

/// The step sizes of the policy and of the multiplier, and the cap of the multiplier.
pub(crate) struct Steps {
    pub(crate) policy: f64,
    pub(crate) dual: f64,
    pub(crate) multiplier_cap: f64,
}

impl MirrorStep {
    /// Starts from the uniform policy with multiplier 0.
    pub(crate) fn new(shape: Shape, cost_limit: f64, steps: &Steps) -> Result<Self> {
        Ok(Self {
            policy_step: steps.policy,
            dual_step: steps.dual,
            multiplier_cap: steps.multiplier_cap,
            cost_limit,
            ascent: MirrorAscent::new(shape)?,
            multiplier: 0.0,
            rewards: ClippedValues::new(shape)?,
            costs: ClippedValues::new(shape)?,
            cost: 0.0,
        })
    }

    /// Whether this is a later state of a fresh one for problems of this shape.
    pub(crate) fn fits(&self, shape: Shape, fresh: &Self) -> bool {
        let constants = |step: &Self| {
            let numbers = [
                step.policy_step,
                step.dual_step,
                step.multiplier_cap,
                step.cost_limit,
            ];
            numbers.map(f64::to_bits)
        };
        constants(self) == constants(fresh)
            && self.ascent.fits(shape)
            && self.rewards.fits(shape)
            && self.costs.fits(shape)
            && (0.0..=self.multiplier_cap).contains(&self.multiplier)
            && self.cost.is_finite()
    }

    /// Writes the iterate and evaluates it, with clipped action values.
    pub(crate) fn play<K: StepKernel>(
        &mut self,
        signals: &OptimisticSignals,
        kernel: &K,
        known: &PeerExperience,
        policy: &mut MarkovPolicy,
    ) -> Proposal {
        self.ascent.write(policy);
        let (rewards, costs) = (&mut self.rewards, &mut self.costs);
        let reward = rewards.evaluate(policy, &signals.reward, kernel, known.initial());
        self.cost = costs.evaluate(policy, &signals.cost, kernel, known.initial());
        Proposal {
            source: PolicySource::MirrorAscent,
            reward: Some(reward),
            cost: Some(self.cost),
        }
    }

    /// pi <- pi exp(step (Q_r - lambda Q_c)), from pi mixed with a share of the uniform policy; lambda <-
    /// clip(lambda + step (V_c - tau), 0, cap).
    pub(crate) fn ascend(&mut self, uniform_share: f64) {
        if uniform_share > 0.0 {
            self.ascent.mix_with_uniform(uniform_share);
        }
        let (rewards, costs) = (self.rewards.action_values(), self.costs.action_values());
        let price = self.multiplier;
        self.ascent
            .ascend(self.policy_step, |row| rewards[row] - price * costs[row]);
        let moved = self.multiplier + self.dual_step * (self.cost - self.cost_limit);
        self.multiplier = moved.clamp(0.0, self.multiplier_cap);
    }
}
