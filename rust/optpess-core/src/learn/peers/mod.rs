//! The algorithms that \[Liu21\] is compared with (its Table 1), and the two ends of the scale: a learner
//! that ignores the cost, and one that never leaves pi0.
//!
//! What they share is here: the Input line, the turn, counts and averages. What differs is a [`Rule`]:
//! one file each, which reads like the box of its paper. Their radii and step sizes are in
//! [`crate::confidence::peers`].

mod always_baseline;
mod cucrl;
mod mirror_step;
mod opdop;
mod opt_dual;
mod opt_primal_dual;
mod optcmdp;
mod optcmdp_bonus;
mod optimistic_plan;
mod optimistic_signals;
mod unconstrained;

pub use always_baseline::{AlwaysBaseline, BaselineRule};
pub use cucrl::{Cucrl, CucrlRule, KnownTransitions};
pub use opdop::{Opdop, OpdopRule};
pub use opt_dual::{DualRule, OptDualCmdp};
pub use opt_primal_dual::{MirrorRule, OptPrimalDualCmdp};
pub use optcmdp::{OptCmdp, PlausibleRule};
pub use optcmdp_bonus::{BonusRule, OptCmdpBonus};
pub use unconstrained::{UnconstrainedOptimistic, UnconstrainedRule};

use serde::{Deserialize, Serialize};

use crate::confidence::{Guarantee, LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::Estimates;
use crate::learn::turn::Protocol;
use crate::learn::{Deployment, Learner, PolicySource, SafeBaseline, SafeCost};
use crate::model::InitialDistribution;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::Signal;
use crate::trajectory::Trajectory;

/// What every one of these learners is told and has seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Known {
    shape: Shape,
    initial: InitialDistribution,
    cost_limit: f64,
    margin: Option<SafetyMargin>,
    terms: LearningTerms,
    radii: PeerRadii,
    estimates: Estimates,
}

/// One pair's averages, when they have changed.
#[derive(Debug)]
pub struct Row<'a> {
    step: usize,
    pair: usize,
    visits: u32,
    reward: f64,
    cost: f64,
    /// P-hat(.|s,a); empty at the last step, which no state follows.
    frequencies: &'a [f64],
}

/// What a rule plans.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    source: PolicySource,
    /// V of the policy for the biased reward, as the algorithm computes it; NaN if it does not.
    reward: f64,
    /// V of the policy for the biased cost, as the algorithm computes it; NaN if it does not.
    cost: f64,
}

/// The biased signals of the next plan, and what makes them so.
#[derive(Debug, Clone, Copy)]
pub struct Biased<'a> {
    /// The biased reward.
    pub reward: &'a Signal,
    /// The biased cost.
    pub cost: &'a Signal,
    /// What is added to the average reward, `[H, S, A]`.
    pub bonuses: &'a [f64],
}

/// tau, and the margin where the baseline's cost is known.
fn limits_of(baseline: &SafeBaseline) -> (f64, Option<SafetyMargin>) {
    let margin = match baseline.safe_cost() {
        SafeCost::Known(margin) => Some(margin),
        SafeCost::Estimated { .. } => None,
    };
    (baseline.cost_limit(), margin)
}

/// What tells one algorithm from another.
pub trait Rule: Clone + Send + Sync {
    /// What its paper proves of it, in words.
    const PROMISE: &'static str;

    /// Takes in the new averages of a pair.
    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii);

    /// Writes the policy of the next episode into `policy`.
    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned>;

    /// The episode is over: dual updates and the like.
    fn advance(&mut self) {}

    /// What the next plan will use.
    fn biased(&self) -> Biased<'_>;

    /// lambda; 0 for algorithms without one.
    fn multiplier(&self) -> f64 {
        0.0
    }

    /// What the learner may promise of its violations; most may promise nothing for single episodes.
    fn guarantee(&self, _terms: &LearningTerms) -> Option<Guarantee> {
        None
    }
}

/// A rule that is told of no safe policy, only of a cost that some policy attains.
pub trait MarginRule: Rule {
    /// The rule before anything is seen.
    fn begin(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self>;
}

/// A learner made of what all share and one [`Rule`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Peer<R> {
    known: Known,
    rule: R,
    policy: MarkovPolicy,
    planned: MarkovPolicy,
    turn: Protocol,
    version: u64,
}

impl<R: MarginRule> Peer<R> {
    /// A learner that has seen nothing.
    pub fn new(
        shape: Shape,
        initial: InitialDistribution,
        margin: SafetyMargin,
        terms: LearningTerms,
    ) -> Result<Self> {
        let rule = R::begin(shape, &margin, &terms)?;
        let limits = (margin.cost_limit(), Some(margin));
        Self::from_parts(shape, initial, limits, terms, rule)
    }
}

impl<R: Rule> Peer<R> {
    fn from_parts(
        shape: Shape,
        initial: InitialDistribution,
        limits: (f64, Option<SafetyMargin>),
        terms: LearningTerms,
        mut rule: R,
    ) -> Result<Self> {
        let (cost_limit, margin) = limits;
        if let Some(margin) = margin {
            margin.check_horizon(shape.horizon())?;
        }
        let radii = PeerRadii::new(shape, &terms);
        let estimates = Estimates::in_full(shape)?;
        for step in 0..shape.horizon() {
            for pair in 0..shape.pairs() {
                rule.revise(&row_of(&estimates, step, pair), &radii);
            }
        }
        let policy = MarkovPolicy::uniform(shape)?;
        Ok(Self {
            known: Known {
                shape,
                initial,
                cost_limit,
                margin,
                terms,
                radii,
                estimates,
            },
            rule,
            planned: policy.clone(),
            policy,
            turn: Protocol::new(terms.num_episodes()),
            version: 0,
        })
    }

    /// The biased signals the next plan will use.
    #[must_use]
    pub fn biased(&self) -> Biased<'_> {
        self.rule.biased()
    }

    /// L.
    #[must_use]
    pub fn log_factor(&self) -> f64 {
        self.known.radii.log_factor()
    }

    /// What the algorithm's paper proves of it, in words.
    #[must_use]
    pub fn promise(&self) -> &'static str {
        R::PROMISE
    }
}

fn row_of(estimates: &Estimates, step: usize, pair: usize) -> Row<'_> {
    let shape = estimates.shape();
    let row = step * shape.pairs() + pair;
    let followed = step + 1 < shape.horizon();
    Row {
        step,
        pair,
        visits: estimates.visits()[row],
        reward: estimates.rewards()[row],
        cost: estimates.costs()[row],
        frequencies: if followed {
            estimates.kernel().row(step, pair).in_full()
        } else {
            &[]
        },
    }
}

impl<R: Rule> Learner for Peer<R> {
    fn shape(&self) -> Shape {
        self.known.shape
    }

    fn terms(&self) -> &LearningTerms {
        &self.known.terms
    }

    fn margin(&self) -> Option<SafetyMargin> {
        self.known.margin
    }

    fn cost_limit(&self) -> f64 {
        self.known.cost_limit
    }

    fn episodes_observed(&self) -> u64 {
        self.turn.observed()
    }

    fn next_policy(&mut self) -> Result<Deployment> {
        self.turn.check_plan()?;
        let found = self.rule.plan(&self.known, &mut self.planned)?;
        if self.planned != self.policy {
            std::mem::swap(&mut self.planned, &mut self.policy);
            self.version += 1;
        }
        self.turn.planned();
        Ok(Deployment {
            episode: self.turn.observed(),
            source: found.source,
            certificate: None,
            optimistic_reward: found.reward,
            biased_cost: found.cost,
            version: self.version,
        })
    }

    fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    fn absorb(&mut self, seen: &Trajectory) -> Result<()> {
        self.turn.check_observe()?;
        let known = &mut self.known;
        known.estimates.update(seen, |_| {})?;
        for (step, (&state, &action)) in seen.states.iter().zip(&seen.actions).enumerate() {
            let pair = known.shape.pair(state as usize, action as usize);
            let row = row_of(&known.estimates, step, pair);
            self.rule.revise(&row, &known.radii);
        }
        self.rule.advance();
        self.turn.seen();
        Ok(())
    }

    fn estimates(&self) -> &Estimates {
        &self.known.estimates
    }

    fn guarantee(&self) -> Option<Guarantee> {
        self.rule.guarantee(&self.known.terms)
    }

    fn multiplier(&self) -> f64 {
        self.rule.multiplier()
    }
}
