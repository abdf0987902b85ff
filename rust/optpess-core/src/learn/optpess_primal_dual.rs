//! Algorithm 2 of \[Liu21\], OptPess-PrimalDual: violation bounded in K with probability 1 - delta
//! (Theorem 4.1), given only that some policy costs at most c0 < tau (Assumption 2.2), for noise within
//! Assumption 2.1.
//!
//! The box in words: play the best policy for optimistic reward minus priced optimistic cost; raise the
//! price by how much the optimistic cost, made pessimistic by eps_k, exceeds the limit. One episode
//! costs one backward induction.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::{constraint_tightening, primal_scaling, tightening_delta};
use crate::confidence::{
    Bonus, Guarantee, LearningTerms, OptimisticCost, OptimisticReward, SafetyMargin,
};
use crate::error::Result;
use crate::estimate::{Estimates, RowEstimate, RowListener};
use crate::lanes::Lane;
use crate::learn::turn::Protocol;
use crate::learn::{BatchLearners, Deployment, Learner, PolicySource};
use crate::model::InitialDistribution;
use crate::plan::{
    LagrangianPlanner, Oracle, PlainOracle, PlanningProblem, PlanningWork, RowUpdate, Vertex,
};
use crate::policy::{ActionTable, MarkovPolicy};
use crate::shape::Shape;
use crate::table::StepSignal;
use crate::trajectory::Trajectory;

/// The learner of Algorithm 2.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OptPessPrimalDual {
    // Input: K, delta, c0, tau.
    shape: Shape,
    initial: InitialDistribution,
    margin: SafetyMargin,
    terms: LearningTerms,
    bonus: Bonus,
    tightening_delta: f64,
    // What has been learnt.
    estimates: Estimates,
    optimistic_reward: OptimisticReward,
    optimistic_cost: OptimisticCost,
    multiplier: f64,
    next_multiplier: f64,
    // The plan, and workspaces for its figures.
    planner: LagrangianPlanner,
    work: PlanningWork,
    played: Vertex,
    policy: MarkovPolicy,
    // Where the run stands.
    turn: Protocol,
    version: u64,
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
        let bonus = terms.bonus(shape);
        let optimistic_reward = OptimisticReward::for_bounded_violation(shape, bonus.at(0))?;
        let optimistic_cost = OptimisticCost::new(shape, bonus.at(0))?;
        let first = (optimistic_reward.at(0, 0), optimistic_cost.at(0, 0));
        let estimates = Estimates::new(shape)?;
        let planner = LagrangianPlanner::new(shape, first.0, first.1, estimates.kernel())?;
        let played = Vertex::new(shape)?;
        Ok(Self {
            shape,
            initial,
            margin,
            terms,
            bonus,
            tightening_delta: tightening_delta(shape, terms.failure_probability()),
            estimates,
            optimistic_reward,
            optimistic_cost,
            multiplier: 0.0,
            next_multiplier: 0.0,
            planner,
            work: PlanningWork::new(shape)?,
            policy: played.policy(shape)?,
            played,
            turn: Protocol::new(terms.num_episodes()),
            version: 0,
        })
    }

    /// r tilde, the optimistic reward the next plan will use.
    #[must_use]
    pub fn optimistic_reward(&self) -> &OptimisticReward {
        &self.optimistic_reward
    }

    /// c tilde, the optimistic cost the next plan will use.
    #[must_use]
    pub fn optimistic_cost(&self) -> &OptimisticCost {
        &self.optimistic_cost
    }

    /// mu.
    pub(crate) fn initial(&self) -> &InitialDistribution {
        &self.initial
    }

    /// (tau, c0).
    pub(crate) fn safety_margin(&self) -> &SafetyMargin {
        &self.margin
    }

    /// delta', the share of delta in eps_k.
    pub(crate) fn tightening_delta(&self) -> f64 {
        self.tightening_delta
    }

    /// The bonus b.
    #[must_use]
    pub fn bonus(&self) -> &Bonus {
        &self.bonus
    }
}

/// What follows from the estimates of a row.
struct Signals<'a> {
    bonus: Bonus,
    reward: &'a mut OptimisticReward,
    cost: &'a mut OptimisticCost,
    planner: &'a mut LagrangianPlanner,
}

impl RowListener for Signals<'_> {
    #[inline(always)]
    fn changed(&mut self, row: RowEstimate<'_>) {
        let (step, pair, bonus) = (row.step, row.pair, self.bonus.at(row.visits));
        let data = RowUpdate {
            reward: self.reward.update(step, pair, row.reward, bonus),
            cost: self.cost.update(step, pair, row.cost, bonus),
            row: row.successors,
        };
        self.planner.set(step, row.state, row.action, data);
    }
}

impl Learner for OptPessPrimalDual {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn terms(&self) -> &LearningTerms {
        &self.terms
    }

    fn margin(&self) -> Option<SafetyMargin> {
        Some(self.margin)
    }

    fn cost_limit(&self) -> f64 {
        self.margin.cost_limit()
    }

    fn episodes_observed(&self) -> u64 {
        self.turn.observed()
    }

    fn next_policy(&mut self) -> Result<Deployment> {
        let deployment = self.next_plan()?;
        let problem = PlanningProblem {
            shape: self.shape,
            reward: &self.optimistic_reward,
            cost: &self.optimistic_cost,
            kernel: self.estimates.kernel(),
            initial: &self.initial,
        };
        let (states, actions) = (self.shape.num_states(), self.planner.actions());
        for (place, action) in self.played.actions.iter_mut().enumerate() {
            *action = actions.at(place / states, place % states) as u32;
        }
        self.policy.set_actions(&self.played.actions);
        PlainOracle::on(&problem, &mut self.work).locate(&mut self.played);
        Ok(Deployment {
            optimistic_reward: self.played.reward,
            biased_cost: self.played.cost,
            ..deployment
        })
    }

    #[inline]
    fn next_plan(&mut self) -> Result<Deployment> {
        self.turn.check_plan()?;
        // Alg. 2, line 3
        let epsilon = constraint_tightening(self.turn.k(), self.shape, self.tightening_delta);
        let eta = primal_scaling(self.turn.k(), self.shape, &self.margin);
        // Alg. 2, line 6: tau is a constant of the objective and does not enter the recursion.
        self.version += u64::from(self.planner.best_for(self.multiplier / eta));
        // Alg. 2, line 7; the truncation of Eq. (12) is of the start value only.
        let truncated_cost = self.planner.truncated_cost(&self.initial);
        self.next_multiplier =
            (self.multiplier + truncated_cost + epsilon - self.margin.cost_limit()).max(0.0);
        self.turn.planned();
        Ok(Deployment {
            episode: self.turn.observed(),
            source: PolicySource::Lagrangian,
            certificate: None,
            optimistic_reward: f64::NAN,
            biased_cost: f64::NAN,
            version: self.version,
        })
    }

    #[inline(always)]
    fn actions(&self) -> Option<ActionTable<'_>> {
        Some(self.planner.actions())
    }

    fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    #[inline]
    fn absorb(&mut self, seen: &Trajectory) -> Result<()> {
        self.turn.check_observe()?;
        // Alg. 2, lines 4, 5 and 9: counters, estimates and signals of the rows that changed.
        self.estimates.count(seen)?;
        self.planner.fit(self.estimates.kernel())?;
        self.estimates.renew_for(Signals {
            bonus: self.bonus,
            reward: &mut self.optimistic_reward,
            cost: &mut self.optimistic_cost,
            planner: &mut self.planner,
        });
        self.multiplier = self.next_multiplier;
        self.turn.seen();
        Ok(())
    }

    fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    /// None for H = 1 or S = 1 too: the proof of Lemma 5.5 assumes both to be at least 2.
    fn guarantee(&self) -> Option<Guarantee> {
        let covered = self.shape.horizon() >= 2 && self.shape.num_states() >= 2;
        (covered && self.terms.rule().keeps_guarantee()).then_some(Guarantee::BoundedViolation {
            probability: 1.0 - self.terms.failure_probability(),
        })
    }

    fn multiplier(&self) -> f64 {
        self.multiplier
    }

    #[expect(private_interfaces, private_bounds, reason = "for the run room alone")]
    fn flock<V: Lane>(&self) -> Result<Option<BatchLearners<V>>> {
        self.turn.check_plan()?;
        BatchLearners::new(self)
    }
}
