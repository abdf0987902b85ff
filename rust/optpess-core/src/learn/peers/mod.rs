//! The algorithms that \[Liu21\] is compared with (its Table 1, and S-OPS of 2025), and two reference learners: one
//! that ignores the cost, and one that never leaves pi0.
//!
//! This file has what they share: the Input line, the protocol, counts and averages. What differs is an [`Algorithm`]:
//! one file each, in the order of the box of its paper. Their radii and step sizes are in
//! [`crate::confidence::published`].

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
mod sops;
mod unconstrained;

pub use always_baseline::{AlwaysBaseline, BaselineAlgorithm};
pub use cucrl::{Cucrl, CucrlAlgorithm, KnownTransitions};
pub use opdop::{Opdop, OpdopAlgorithm};
pub use opt_dual::{DualAlgorithm, OptDualCmdp};
pub use opt_primal_dual::{MirrorAlgorithm, OptPrimalDualCmdp};
pub use optcmdp::{OptCmdp, PlausibleAlgorithm};
pub use optcmdp_bonus::{BonusAlgorithm, OptCmdpBonus};
pub use sops::{Sops, SopsAlgorithm};
pub use unconstrained::{UnconstrainedAlgorithm, UnconstrainedOptimistic};

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::confidence::{Guarantee, LearningTerms, PeerRadii, SafetyMargin};
use crate::error::{Error, Result};
use crate::estimate::{EmpiricalKernel, Estimates, RowEstimate, RowListener};
use crate::learn::stored::check;
use crate::learn::{
    BiasedSignals, Deployment, Experience, Figures, Learner, Mixture, PolicySource, Protocol,
    SafeBaseline,
};
use crate::model::InitialDistribution;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// The part that all of these learners share: inputs and observations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PeerExperience {
    experience: Experience,
    cost_limit: f64,
    margin: Option<SafetyMargin>,
    radii: PeerRadii,
}

impl PeerExperience {
    fn shape(&self) -> Shape {
        self.experience.shape()
    }

    fn initial(&self) -> &InitialDistribution {
        self.experience.initial()
    }

    fn estimates(&self) -> &Estimates {
        self.experience.estimates()
    }

    fn kernel(&self) -> &EmpiricalKernel {
        self.experience.kernel()
    }

    fn cost_limit(&self) -> f64 {
        self.cost_limit
    }

    /// A fresh algorithm with the margin and the terms that are known.
    fn fresh<A: MarginAlgorithm>(&self) -> Result<A> {
        match &self.margin {
            Some(margin) => A::new(self.shape(), margin, self.experience.terms()),
            None => Err(Error::StoredState {
                what: "the margin of a learner",
            }),
        }
    }

    /// Refuses a stored safe policy of another shape, or with another limit or margin.
    fn check_baseline(&self, baseline: &SafeBaseline) -> Result<()> {
        let fits = baseline.policy().shape() == self.shape()
            && baseline.cost_limit().to_bits() == self.cost_limit.to_bits()
            && baseline.margin() == self.margin;
        check("the baseline of a learner", fits)
    }

    /// Moves the probability of actions that do not exist to those they stand in for.
    fn fold(&self, policy: &mut MarkovPolicy) {
        self.experience.fold(policy);
    }

    fn margin(&self) -> Option<SafetyMargin> {
        self.margin
    }
}

/// The result of a plan: the source of the policy, and its values for the biased signals, as far as the algorithm
/// computes them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Proposal {
    source: PolicySource,
    reward: Option<f64>,
    cost: Option<f64>,
}

/// The part in which these algorithms differ.
pub trait Algorithm: Send + Sync {
    /// What its paper proves, in words.
    const PROMISE: &'static str;

    /// Refuses stored parts that do not fit what is known.
    fn check_stored(&self, known: &PeerExperience) -> Result<()>;

    /// Updates the signals of a row from its new averages.
    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii);

    /// Writes the policy of the next episode into `policy`; [`Peer`] folds away actions that do not exist.
    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal>;

    /// Called before the first plan if some actions do not exist: refuses them if pi0 plays one, and gives the rows of
    /// tables that were given the entries of those they stand in for.
    fn restrict(&mut self, _actions: &StandIns) -> Result<()> {
        Ok(())
    }

    /// Called when an episode is over: dual updates.
    fn end_episode(&mut self) {}

    /// The signals that the next plan will use.
    fn signals(&self) -> BiasedSignals<'_>;

    /// lambda; 0 for algorithms without one.
    fn multiplier(&self) -> f64 {
        0.0
    }

    /// The mixture of which the last plan wrote a member; None for algorithms that deploy one policy.
    fn mixture(&self) -> Option<&Mixture> {
        None
    }

    /// Makes the coin that of a replicate of a run; algorithms without a coin do nothing.
    fn set_coin(&mut self, _seed: u64, _replicate: u64) {}

    /// The guarantee on violations; most algorithms have none for single episodes.
    fn guarantee(&self, _terms: &LearningTerms) -> Option<Guarantee> {
        None
    }
}

/// An algorithm that is given a cost that some policy attains, and no safe policy.
pub trait MarginAlgorithm: Algorithm + Sized {
    /// The algorithm before the first observation.
    fn new(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self>;
}

/// A learner: the shared part and one [`Algorithm`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Peer<A> {
    known: PeerExperience,
    algorithm: A,
    policy: MarkovPolicy,
    /// The next plan is written here, so that a plan that fails leaves the policy as it was.
    candidate: MarkovPolicy,
    proposal: Option<Proposal>,
}

impl<A: MarginAlgorithm> Peer<A> {
    /// A learner that has seen nothing.
    pub fn new(
        shape: Shape,
        initial: InitialDistribution,
        margin: SafetyMargin,
        terms: LearningTerms,
    ) -> Result<Self> {
        margin.check_horizon(shape.horizon())?;
        let algorithm = A::new(shape, &margin, &terms)?;
        let limits = (margin.cost_limit(), Some(margin));
        Self::from_parts(shape, initial, limits, terms, algorithm)
    }
}

impl<A: Algorithm> Peer<A> {
    fn from_parts(
        shape: Shape,
        initial: InitialDistribution,
        (cost_limit, margin): (f64, Option<SafetyMargin>),
        terms: LearningTerms,
        algorithm: A,
    ) -> Result<Self> {
        terms.check_rule("an algorithm to compare with")?;
        let policy = MarkovPolicy::uniform(shape)?;
        let mut estimates = Estimates::in_full(shape)?;
        estimates.mark_all(); // rows never visited have radii too
        Ok(Self {
            known: PeerExperience {
                experience: Experience::new(estimates, initial, terms),
                cost_limit,
                margin,
                radii: PeerRadii::new(shape, &terms),
            },
            algorithm,
            candidate: policy.clone(),
            policy,
            proposal: None,
        })
    }

    /// Refuses stored parts that do not fit each other.
    pub(in crate::learn) fn check_stored(&self) -> Result<()> {
        let (shape, experience) = (self.known.shape(), &self.known.experience);
        let terms = experience.terms();
        let radii = [
            PeerRadii::new(shape, terms),
            PeerRadii::of_sops(shape, terms),
        ];
        check("the radii of a learner", radii.contains(&self.known.radii))?;
        let policies = [&self.policy, &self.candidate];
        let policies = policies.iter().all(|policy| policy.shape() == shape);
        check("the policies of a learner", policies)?;
        let margin = self.known.margin.is_none_or(|margin| {
            margin.cost_limit().to_bits() == self.known.cost_limit.to_bits()
                && margin.check_horizon(shape.horizon()).is_ok()
        });
        check("the margin of a learner", margin)?;
        let proposed = self
            .proposal
            .iter()
            .flat_map(|found| [found.reward, found.cost]);
        let numbers = proposed.flatten().all(|value| !value.is_nan());
        check("the last plan of a learner", numbers)?;
        self.algorithm.check_stored(&self.known)
    }

    /// Updates averages and signals of every row counted since the last refresh.
    fn refresh(&mut self) {
        let PeerExperience {
            experience, radii, ..
        } = &mut self.known;
        let algorithm = &mut self.algorithm;
        experience
            .estimates
            .refresh(UpdateRows { algorithm, radii });
    }
}

struct UpdateRows<'a, A> {
    algorithm: &'a mut A,
    radii: &'a PeerRadii,
}

impl<A: Algorithm> RowListener for UpdateRows<'_, A> {
    fn changed(&mut self, row: &RowEstimate<'_>) {
        self.algorithm.update_row(row, self.radii);
    }
}

impl<A: Algorithm> Learner for Peer<A> {
    fn next_policy(&mut self) -> Result<Deployment> {
        self.known.experience.protocol.await_candidate()?;
        self.refresh();
        let proposal = self.algorithm.plan(&self.known, &mut self.candidate)?;
        self.known.fold(&mut self.candidate); // no value changes
        std::mem::swap(&mut self.candidate, &mut self.policy);
        self.proposal = Some(proposal);
        let episode = self.known.experience.protocol.deploy()?;
        Ok(Deployment::new(episode, proposal.source))
    }

    fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.known.experience.observe(seen)?;
        self.algorithm.end_episode();
        Ok(())
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        self.known.experience.check_restriction(actions)?;
        self.algorithm.restrict(actions)?;
        self.known.experience.restrict(actions);
        actions.fold(&mut self.policy);
        Ok(())
    }

    fn experience(&self) -> &Experience {
        &self.known.experience
    }

    fn protocol_mut(&mut self) -> &mut Protocol {
        &mut self.known.experience.protocol
    }

    fn margin(&self) -> Option<SafetyMargin> {
        self.known.margin
    }

    fn cost_limit(&self) -> f64 {
        self.known.cost_limit
    }

    fn signals(&mut self) -> BiasedSignals<'_> {
        self.refresh();
        self.algorithm.signals()
    }

    fn figures(&mut self) -> Figures {
        let Some(Proposal {
            source,
            reward,
            cost,
        }) = self.proposal
        else {
            return Figures::default();
        };
        let (cost_at_least, cost_at_most, optimum_at_most) = match source {
            PolicySource::Optimistic | PolicySource::Lagrangian => (cost, None, reward),
            // The kernel is the best for reward and cost together, so the cost alone need not be below
            // the true one.
            PolicySource::Plausible => (None, None, reward),
            PolicySource::PlausibleLagrangian => {
                let excess = cost.map(|cost| cost - self.known.cost_limit);
                let multiplier = self.algorithm.multiplier();
                let lagrangian = reward.zip(excess);
                let lagrangian = lagrangian.map(|(reward, excess)| reward - multiplier * excess);
                (None, None, lagrangian)
            }
            // The iterate of mirror ascent need not have a value above the optimum; its optimistic cost is below its
            // true cost.
            PolicySource::MirrorAscent | PolicySource::LeastCost => (cost, None, None),
            PolicySource::Baseline
            | PolicySource::BaselineEstimation
            | PolicySource::PessimisticSet
            | PolicySource::KnownTransitions
            | PolicySource::Explorer
            | PolicySource::Cautious
            | PolicySource::Bold => (None, cost, None),
        };
        let chosen = self.mixture().map(Mixture::chosen_member);
        Figures {
            optimistic_reward: reward,
            biased_cost: cost,
            cost_at_least: cost_at_least.map(|cost| cost.max(0.0)),
            cost_at_most: chosen.map_or(cost_at_most, |member| member.cost_bounds.first().copied()),
            optimum_at_most,
        }
    }

    fn mixture(&self) -> Option<&Mixture> {
        self.algorithm.mixture()
    }

    fn set_coin(&mut self, seed: u64, replicate: u64) {
        self.algorithm.set_coin(seed, replicate);
    }

    fn guarantee(&self) -> Option<Guarantee> {
        self.algorithm.guarantee(self.known.experience.terms())
    }

    fn log_factor(&self) -> f64 {
        self.known.radii.log_factor()
    }

    fn multiplier(&self) -> f64 {
        self.algorithm.multiplier()
    }

    fn promise(&self) -> Option<&'static str> {
        Some(A::PROMISE)
    }
}
