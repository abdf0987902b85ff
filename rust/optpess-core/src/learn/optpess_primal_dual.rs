//! Algorithm 2 of \[Liu21\], OptPess-PrimalDual.
//!
//! Promise (Theorem 4.1): with probability at least 1 - delta, the sum over episodes of (expected cost - tau) is
//! bounded by a constant that does not depend on K. Rests on Assumptions 2.1 (noise) and 2.2 (some policy costs at
//! most c0 < tau); the proof needs H >= 2 and S >= 2 (docs/paper-notes.md, 14).
//!
//! The box in words: play the policy that is best for optimistic reward minus lambda/eta_k times optimistic cost.
//! Raise lambda by how much the optimistic cost of that policy, made pessimistic by eps_k, exceeds tau.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::{Schedule, tightening_horizon};
use crate::confidence::{Guarantee, LearningTerms, SafetyMargin};
use crate::confidence::{OptimisticCost, OptimisticReward};
use crate::error::Result;
use crate::estimate::Estimates;
use crate::learn::biased_model::{BiasedModel, SignalListener};
use crate::learn::{Deployment, Figures, Learner};
use crate::learn::{PolicySource, StandIns};
use crate::model::InitialDistribution;
use crate::number::Number;
use crate::plan::{GreedyPlan, Lagrangian};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// The learner of Algorithm 2.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OptPessPrimalDual {
    // Input: K, delta, c0, tau.
    pub(super) margin: SafetyMargin,
    pub(super) schedule: Schedule, // eps_k and eta_k
    // What has been seen, and P-hat, r tilde and c tilde that follow from it; K and delta are in its bonus.
    pub(super) model: BiasedModel<OptimisticCost>,
    pub(super) multiplier: f64,      // lambda^k
    pub(super) next_multiplier: f64, // lambda^{k+1}, from the plan on
    // The plan.
    pub(super) induction: GreedyPlan,
    policy: MarkovPolicy,
}

/// Line 7 of Algorithm 2.
///
/// Formula: lambda^{k+1} = (lambda^k + max(0, V(c tilde)) + eps_k - tau)_+. Citation: \[Liu21\], Eq. (12).
/// Deviation: none; the truncation is of the start value only (docs/paper-notes.md, 4).
#[inline(always)]
pub(crate) fn dual_update<V: Number>(multiplier: V, cost: V, epsilon: f64, tau: f64) -> V {
    multiplier.zip(cost, |lambda, cost| {
        (lambda + cost.max(0.0) + epsilon - tau).max(0.0)
    })
}

impl OptPessPrimalDual {
    /// A learner that has seen nothing.
    pub fn new(
        shape: Shape,
        initial: InitialDistribution,
        margin: SafetyMargin,
        terms: LearningTerms,
    ) -> Result<Self> {
        margin.check_horizon(shape.horizon())?;
        terms.check_rule("OptPess-PrimalDual")?;
        let first = terms.bonus(shape).at(0);
        let reward = OptimisticReward::for_bounded_violation(shape, first)?;
        let cost = OptimisticCost::new(shape, first)?;
        let induction = GreedyPlan::new(shape)?;
        Ok(Self {
            schedule: Schedule::new(shape, &margin, terms.failure_probability()),
            model: BiasedModel::new(initial, terms, Some(reward), cost)?,
            multiplier: 0.0,
            next_multiplier: 0.0,
            policy: induction.policy()?,
            induction,
            margin,
        })
    }

    /// Lines 3 to 5: eta_k; P-hat, r-hat, c-hat (Eq. 3-5); r tilde and c tilde (Eq. 11). Returns lambda^k/eta_k, the
    /// price of cost in line 6. `listener` receives each row that changed.
    pub(crate) fn price(&mut self, listener: &mut impl SignalListener) -> Result<f64> {
        self.model.experience.protocol.await_candidate()?;
        self.model.refresh(listener);
        Ok(self.multiplier / self.schedule.scaling(self.model.experience.protocol.k()))
    }

    /// Line 7, given V(c tilde) of the policy of line 6, with eps_k of line 3.
    pub(crate) fn charge(&mut self, cost: f64) -> Result<Deployment> {
        let epsilon = self.schedule.tightening(self.model.experience.protocol.k());
        let (lambda, tau) = (self.multiplier, self.margin.cost_limit());
        self.next_multiplier = dual_update(lambda, cost, epsilon, tau);
        let episode = self.model.experience.protocol.deploy()?;
        Ok(Deployment::new(episode, PolicySource::Lagrangian))
    }

    /// Sets the policy of the last deployment, which an engine found, to `actions`, `[H, S]`.
    pub(crate) fn set_actions(&mut self, actions: &[u32]) {
        self.policy.set_actions(actions);
    }

    /// This learner as it is after more episodes, which an engine played: `observed` of them in all, with these
    /// estimates, this lambda and these actions `[H, S]` of the last plan.
    pub(crate) fn advanced(
        &self,
        estimates: Estimates,
        observed: u64,
        multiplier: f64,
        actions: &[u32],
    ) -> Self {
        let mut learner = self.clone();
        learner.model.experience.estimates = estimates;
        learner.model.experience.protocol.skip_to(observed);
        (learner.multiplier, learner.next_multiplier) = (multiplier, multiplier);
        learner.policy.set_actions(actions);
        learner
    }

    /// eps_k and eta_k.
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

impl Learner for OptPessPrimalDual {
    fn next_policy(&mut self) -> Result<Deployment> {
        let price = self.price(&mut ())?; // lines 3 to 5
        // Line 6. tau is a constant of the objective and does not enter the recursion (docs/paper-notes.md, 3).
        if let Some(problem) = self.model.problem() {
            let signal = Lagrangian::of_one(problem.reward, problem.cost, &price);
            self.induction.maximise(&signal, problem.kernel);
        }
        self.policy.set_actions(self.induction.actions());
        self.model.experience.fold(&mut self.policy); // no value changes
        let cost = self.model.cost_of(&self.policy);
        self.charge(cost) // line 7
    }

    fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.model.experience.observe(seen)?; // lines 8 and 9
        self.multiplier = self.next_multiplier;
        Ok(())
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        self.model.restrict(actions, None)?;
        actions.fold(&mut self.policy);
        Ok(())
    }

    /// Lemma C.1 bounds the cost of the policy from below.
    fn figures(&mut self) -> Figures {
        self.model.refresh(&mut ());
        let optimistic_reward = self.model.reward_of(&self.policy);
        let cost = self.model.cost_of(&self.policy);
        Figures {
            optimistic_reward,
            ..Figures::optimistic(cost)
        }
    }

    fn guarantee(&self) -> Option<Guarantee> {
        let (shape, terms) = (self.shape(), self.terms());
        let delta = terms.failure_probability();
        let covered = shape.horizon() >= 2 && shape.num_states() >= 2;
        (covered && terms.rule().keeps_guarantee()).then(|| Guarantee::BoundedViolation {
            probability: 1.0 - delta,
            tightening_horizon: tightening_horizon(shape, &self.margin, delta),
            num_episodes: terms.num_episodes(),
        })
    }

    methods_of_a_biased_model!();

    fn margin(&self) -> Option<SafetyMargin> {
        Some(self.margin)
    }

    fn cost_limit(&self) -> f64 {
        self.margin.cost_limit()
    }

    fn multiplier(&self) -> f64 {
        self.multiplier
    }
}
