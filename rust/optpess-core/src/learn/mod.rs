//! The learning algorithms. A learner never sees the true model; a test checks that no file here names its types.
//!
//! A learner has two methods that alternate: [`Learner::next_policy`] plans from all observations so
//! far, [`Learner::observe`] counts one episode.

/// The methods of [`Learner`] that Algorithms 1 and 2 leave to their [`BiasedModel`], the field `model`.
macro_rules! methods_of_a_biased_model {
    () => {
        fn experience(&self) -> &$crate::learn::Experience {
            self.model.experience()
        }

        fn protocol_mut(&mut self) -> &mut $crate::learn::Protocol {
            &mut self.model.experience.protocol
        }

        fn signals(&mut self) -> $crate::learn::BiasedSignals<'_> {
            self.model.signals()
        }
    };
}

mod any;
mod baseline;
mod biased_model;
mod experience;
mod live;
mod mix_settings;
mod mixture;
mod observations;
mod optpess_lp;
mod optpess_mix;
mod optpess_primal_dual;
pub mod peers;
mod pessimistic_set;
mod plausible_model;
mod portfolio;
mod progress;
mod proposals;
mod protocol;
mod staged_rollout;
mod stopped_plan;
pub(crate) mod stored;

pub use any::AnyLearner;
pub use baseline::{BaselineClaim, BaselineCost, LimitedBaseline, SafeBaseline};
pub(crate) use biased_model::SignalListener;
pub use biased_model::{BiasedCost, BiasedModel};
pub use experience::Experience;
pub use live::{EpisodeSummary, LiveLearner};
pub use mix_settings::MixSettings;
pub use mixture::{Member, MemberPolicy, Mixture, largest_weight};
pub use observations::{ObservationRanges, ValueRange};
pub use optpess_lp::OptPessLp;
pub use optpess_mix::OptPessMix;
pub use optpess_primal_dual::OptPessPrimalDual;
pub(crate) use optpess_primal_dual::dual_update;
pub use pessimistic_set::PessimisticSet;
pub use plausible_model::PlausibleModel;
pub use portfolio::Exploration;
pub(crate) use progress::GateOpening;
pub use progress::{Gate, Progress};
pub use protocol::Protocol;
pub use staged_rollout::{Constraint, StagedRollout};

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::certify::Certificate;
use crate::confidence::constants::log_factor;
use crate::confidence::{Guarantee, LearningTerms, SafetyMargin};
use crate::error::Result;
use crate::estimate::Estimates;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::Signal;
use crate::trajectory::Trajectory;

/// Where a deployed policy comes from.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumCount,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
pub enum PolicySource {
    /// pi0, because the pessimistic set holds nothing else yet.
    Baseline,
    /// pi0, while its cost is being estimated (Appendix E).
    BaselineEstimation,
    /// The best policy of the pessimistic set (Algorithm 1).
    PessimisticSet,
    /// The best policy for the Lagrangian (Algorithm 2).
    Lagrangian,
    /// The best policy for optimistic signals.
    Optimistic,
    /// The policy of the best pair of a policy and a plausible kernel, for optimistic signals.
    Plausible,
    /// The policy of the best such pair for the Lagrangian.
    PlausibleLagrangian,
    /// The policy of least cost, because even that is above the limit: outside the good event.
    LeastCost,
    /// A step of mirror ascent from the last policy.
    MirrorAscent,
    /// The best policy whose pessimistic cost is within the limit on transitions that were given.
    KnownTransitions,
    /// A member of a mixture: the best policy for optimistic rewards and costs over plausible kernels.
    Explorer,
    /// A member of a mixture: the best policy when costs are those of its certificate.
    Cautious,
    /// A member of a mixture: the best policy for the estimates as they are.
    Bold,
}

impl PolicySource {
    /// Whether pi0 is played, for either reason.
    #[must_use]
    #[inline(always)]
    pub fn is_baseline(self) -> bool {
        matches!(self, Self::Baseline | Self::BaselineEstimation)
    }
}

/// The decision for one episode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The episode, from 0.
    pub episode: u64,
    /// Where the policy comes from.
    pub source: PolicySource,
    /// The re-evaluation against the limit, for policies of the pessimistic set.
    pub certificate: Option<Certificate>,
}

impl Deployment {
    fn new(episode: u64, source: PolicySource) -> Self {
        Self {
            episode,
            source,
            certificate: None,
        }
    }

    fn certified(self, certificate: Certificate) -> Self {
        Self {
            certificate: Some(certificate),
            ..self
        }
    }
}

/// Values of the deployed policy on the learner's own estimates, and the claims that follow from them. None if the
/// algorithm has no such value or makes no such claim.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// V of the policy for the optimistic reward.
    pub optimistic_reward: Option<f64>,
    /// V of the policy for the biased cost: pessimistic in Algorithm 1, optimistic in Algorithm 2.
    pub biased_cost: Option<f64>,
    /// V(c, P) of the policy is claimed to be at least this.
    pub cost_at_least: Option<f64>,
    /// V(c, P) of the policy is claimed to be at most this.
    pub cost_at_most: Option<f64>,
    /// V* is claimed to be at most this.
    pub optimum_at_most: Option<f64>,
}

impl Figures {
    /// A pessimistic cost bounds the true one from above; an optimistic reward bounds the optimum.
    pub(crate) fn pessimistic(cost: f64, reward: Option<f64>) -> Self {
        Self {
            optimistic_reward: reward,
            biased_cost: Some(cost),
            cost_at_most: Some(cost),
            optimum_at_most: reward,
            ..Self::default()
        }
    }

    /// An optimistic cost, truncated at 0, bounds the true one from below.
    pub(crate) fn optimistic(cost: f64) -> Self {
        Self {
            biased_cost: Some(cost),
            cost_at_least: Some(cost.max(0.0)),
            ..Self::default()
        }
    }
}

/// The biased signals of the next plan, and their bonuses.
#[derive(Debug, Clone)]
pub struct BiasedSignals<'a> {
    /// The biased reward; None while its scale is unknown.
    pub reward: Option<&'a Signal>,
    /// The biased cost.
    pub cost: &'a Signal,
    /// The bonus of each row, `[H, S, A]`.
    pub bonuses: Vec<f64>,
}

impl<'a> BiasedSignals<'a> {
    fn new(reward: Option<&'a Signal>, cost: &'a Signal, bonuses: Vec<f64>) -> Self {
        Self {
            reward,
            cost,
            bonuses,
        }
    }
}

/// A learner: two methods that alternate, and getters.
pub trait Learner: Send + Sync {
    /// Plans the next episode from all observations so far.
    fn next_policy(&mut self) -> Result<Deployment>;
    /// The policy of the last deployment.
    fn policy(&self) -> &MarkovPolicy;
    /// Counts one episode. Refuses one of another shape or out of turn, and changes nothing then.
    fn observe(&mut self, seen: &Trajectory) -> Result<()>;

    /// Tells the learner which actions exist. From then on it plays no other, and the rows of the others are always those
    /// they stand in for ([`StandIns`]). Refused after the first plan, a second time, and if pi0 plays an action that
    /// does not exist; nothing changes then.
    fn restrict(&mut self, actions: &StandIns) -> Result<()>;

    /// Inputs, observations and estimates.
    fn experience(&self) -> &Experience;
    /// Which call comes next, to be changed by whoever drives the learner.
    fn protocol_mut(&mut self) -> &mut Protocol;
    /// (tau, c0) as used now; None while c0 is being estimated.
    fn margin(&self) -> Option<SafetyMargin>;
    /// tau.
    fn cost_limit(&self) -> f64;
    /// The biased signals of the next plan, refreshed from the counts.
    fn signals(&mut self) -> BiasedSignals<'_>;
    /// The learner's claims about the policy it deployed last; evaluated by this call.
    fn figures(&mut self) -> Figures;
    /// The mixture that was deployed last; None for learners that deploy one policy.
    fn mixture(&self) -> Option<&Mixture> {
        None
    }
    /// Makes the coin that of a replicate of a run; learners without a coin do nothing.
    fn set_coin(&mut self, _seed: u64, _replicate: u64) {}
    /// tau of every constraint.
    fn cost_limits(&self) -> Vec<f64> {
        vec![self.cost_limit()]
    }
    /// The guarantee of this learner; None if there is none.
    fn guarantee(&self) -> Option<Guarantee>;
    /// The logarithm in its radii: Z, or L of the algorithms that are compared with.
    fn log_factor(&self) -> f64 {
        let (terms, shape) = (self.terms(), self.shape());
        log_factor(shape, terms.num_episodes(), terms.failure_probability())
    }
    /// lambda, the dual variable the next plan will use; 0 for algorithms without one.
    fn multiplier(&self) -> f64 {
        0.0
    }
    /// What its paper proves, in words, for the algorithms that \[Liu21\] is compared with.
    fn promise(&self) -> Option<&'static str> {
        None
    }
    /// How many backward inductions the plans took; one an episode for learners that do not count them.
    fn inductions(&self) -> u64 {
        self.episodes_observed()
    }

    /// H, |S|, |A|.
    #[inline(always)]
    fn shape(&self) -> Shape {
        self.experience().shape()
    }
    /// K, delta and the confidence rule.
    #[inline(always)]
    fn terms(&self) -> &LearningTerms {
        self.experience().terms()
    }
    /// Counts and averages.
    #[inline(always)]
    fn estimates(&self) -> &Estimates {
        self.experience().estimates()
    }
    /// The number of episodes observed so far.
    #[inline(always)]
    fn episodes_observed(&self) -> u64 {
        self.experience().protocol().observed()
    }
}
