//! OPDOP of \[Ding21\], in its tabular form: mirror ascent with mixing, and a price of cost.
//!
//! The box in words: as OptPrimalDual-CMDP, but the policy is mixed with a share 1/K of the uniform one
//! before each step, averages divide by N + 1, and the bonus is (1 + H sqrt(S)) sqrt(L / (N + 1)). One
//! episode costs two evaluations. Promise: regret and *weak* violation of order sqrt(K), with probability
//! 1 - delta. Its own setting is linear function approximation; a table is the special case of indicator
//! features, in which its regularised least squares are these averages.

use serde::{Deserialize, Serialize};

use crate::confidence::peers::{opdop_dual_step, opdop_mirror_step, opdop_multiplier_cap};
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::{EmpiricalKernel, Estimates};
use crate::evaluate::ClippedValues;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Known, Peer, Planned, Row, Rule};
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::MirrorAscent;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::Signal;

/// The learner of OPDOP.
pub type Opdop = Peer<OpdopRule>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpdopRule {
    policy_step: f64,
    dual_step: f64,
    multiplier_cap: f64,
    uniform_share: f64,
    cost_limit: f64,
    signals: OptimisticSignals,
    ascent: MirrorAscent,
    multiplier: f64,
    rewards: ClippedValues,
    costs: ClippedValues,
    /// V_c of the policy in play.
    cost: f64,
}

impl Opdop {
    /// A learner that has seen nothing.
    pub fn new(
        shape: Shape,
        initial: InitialDistribution,
        margin: SafetyMargin,
        terms: LearningTerms,
    ) -> Result<Self> {
        let rule = OpdopRule {
            policy_step: opdop_mirror_step(shape, terms.num_episodes()),
            dual_step: opdop_dual_step(terms.num_episodes()),
            multiplier_cap: opdop_multiplier_cap(shape, &margin),
            uniform_share: 1.0 / terms.num_episodes() as f64,
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

/// N / (N + 1), which turns an average over N into one over N + 1.
fn shrinkage(visits: u32) -> f64 {
    f64::from(visits) / (f64::from(visits) + 1.0)
}

/// Frequencies over N + 1 instead of N: every row loses some mass.
struct Regularised<'a> {
    estimates: &'a Estimates,
    kernel: &'a EmpiricalKernel,
}

impl Regularised<'_> {
    fn shrinkage(&self, step: usize, pair: usize) -> f64 {
        shrinkage(self.estimates.visits()[step * self.estimates.shape().pairs() + pair])
    }
}

impl StepKernel for Regularised<'_> {
    fn expect(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        self.shrinkage(step, pair) * self.kernel.expect(step, pair, values)
    }

    fn spread(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        let mass = self.shrinkage(step, pair) * mass;
        self.kernel.spread(step, pair, mass, next);
    }
}

impl Rule for OpdopRule {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        let shrunk = Row {
            reward: shrinkage(row.visits) * row.reward,
            cost: shrinkage(row.visits) * row.cost,
            ..*row
        };
        self.signals.revise(&shrunk, radii.regularised(row.visits));
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        self.ascent.write(policy);
        let kernel = Regularised {
            estimates: &known.estimates,
            kernel: known.estimates.kernel(),
        };
        let (signals, initial) = (&self.signals, &known.initial);
        let reward = self
            .rewards
            .evaluate(policy, &signals.reward, &kernel, initial);
        self.cost = self.costs.evaluate(policy, &signals.cost, &kernel, initial);
        Ok(Planned {
            source: PolicySource::MirrorAscent,
            reward,
            cost: self.cost,
        })
    }

    fn advance(&mut self) {
        let (rewards, costs) = (self.rewards.action_values(), self.costs.action_values());
        let price = self.multiplier;
        self.ascent.mix_with_uniform(self.uniform_share);
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
