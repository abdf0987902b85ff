//! Algorithm 1 of \[Liu21\], OptPess-LP: zero violation with probability 1 - delta (Theorem 3.1), given a
//! strictly safe policy pi0 and a bound c0 < tau on its cost (Assumption 2.2), for noise within
//! Assumption 2.1.
//!
//! The box in words: play pi0 until even its pessimistic cost is below (tau + c0)/2; from then on play
//! the policy with the best optimistic reward among those whose pessimistic cost is within tau. One
//! episode costs one evaluation of pi0 and, past the gate, one to a few backward inductions.
//!
//! With a baseline whose cost is unknown (Appendix E), pi0 is played until its cost is known well
//! enough; half of delta is spent on that. What is seen meanwhile counts for the estimates.

mod deployment;
mod planning;

use serde::{Deserialize, Serialize};

use crate::confidence::{
    Bonus, Guarantee, LearningTerms, OptimisticReward, PessimisticCost, SafetyMargin,
};
use crate::error::Result;
use crate::estimate::Estimates;
use crate::evaluate::{Evaluator, PackedProblem};
use crate::learn::baseline::CostEstimation;
use crate::learn::gate_watch::GateBound;
use crate::learn::turn::Protocol;
use crate::learn::{Deployment, Learner, PessimisticSet, PolicySource, SafeBaseline, SafeCost};
use crate::model::InitialDistribution;
use crate::plan::{ChordSearch, PackedOracleWork, fit, set_row};
use crate::policy::{ActionTable, MarkovPolicy};
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// The learner of Algorithm 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OptPessLp {
    // Input: K, delta, pi0, c0, tau.
    shape: Shape,
    initial: InitialDistribution,
    baseline: SafeBaseline,
    /// pi0 as one action for each (step, state), if it is deterministic.
    baseline_actions: Option<Vec<u32>>, // [H, S]
    terms: LearningTerms,
    bonus: Bonus,
    // What has been learnt.
    knowledge: Knowledge,
    estimates: Estimates,
    pessimistic_cost: PessimisticCost,
    // Workspaces.
    evaluator: Evaluator,
    search: ChordSearch,
    /// Signals and P-hat once more, laid out for the planner; from the first plan on.
    #[serde(skip)]
    board: Option<PackedProblem>,
    #[serde(skip)]
    packed_work: Option<PackedOracleWork>,
    /// What is about to be deployed.
    candidate: MarkovPolicy,
    /// The last planned policy that was deployed.
    planned: MarkovPolicy,
    watch: GateBound,
    // Where the run stands.
    turn: Protocol,
    /// Whether averages and signals wait until someone needs them.
    lazy: bool,
    last: Option<Deployment>,
}

/// What is known of the cost of pi0, and what follows from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Knowledge {
    Estimating(CostEstimation),
    Margin(SafetyMargin, OptimisticReward),
}

impl OptPessLp {
    /// A learner that has seen nothing.
    pub fn new(
        initial: InitialDistribution,
        baseline: SafeBaseline,
        terms: LearningTerms,
    ) -> Result<Self> {
        let shape = baseline.policy().shape();
        let terms = match baseline.safe_cost() {
            SafeCost::Known(_) => terms,
            SafeCost::Estimated { .. } => {
                terms.with_failure_probability(terms.failure_probability() / 2.0)?
            }
        };
        let bonus = terms.bonus(shape);
        let knowledge = match baseline.safe_cost() {
            SafeCost::Known(margin) => Knowledge::Margin(
                margin,
                OptimisticReward::for_zero_violation(shape, &margin, bonus.at(0))?,
            ),
            SafeCost::Estimated { cost_limit, radius } => {
                Knowledge::Estimating(CostEstimation::new(
                    cost_limit,
                    radius,
                    terms.num_episodes(),
                    terms.failure_probability(),
                ))
            }
        };
        Ok(Self {
            shape,
            planned: baseline.policy().clone(),
            candidate: baseline.policy().clone(),
            initial,
            baseline_actions: baseline.policy().actions(),
            baseline,
            terms,
            bonus,
            knowledge,
            estimates: Estimates::new(shape)?,
            pessimistic_cost: PessimisticCost::new(shape, bonus.at(0))?,
            evaluator: Evaluator::new(shape)?,
            search: ChordSearch::new(shape)?,
            board: None,
            packed_work: None,
            watch: GateBound::new(shape)?,
            turn: Protocol::new(terms.num_episodes()),
            lazy: false,
            last: None,
        })
    }

    /// c underbar, the pessimistic cost the next plan will use.
    #[must_use]
    pub fn pessimistic_cost(&self) -> &PessimisticCost {
        &self.pessimistic_cost
    }

    /// r bar, the optimistic reward the next plan will use; None while c0 is being estimated.
    #[must_use]
    pub fn optimistic_reward(&self) -> Option<&OptimisticReward> {
        match &self.knowledge {
            Knowledge::Estimating(_) => None,
            Knowledge::Margin(_, reward) => Some(reward),
        }
    }

    /// pi0 and what was known of its cost.
    #[must_use]
    pub fn baseline(&self) -> &SafeBaseline {
        &self.baseline
    }

    /// The bonus b.
    #[must_use]
    pub fn bonus(&self) -> &Bonus {
        &self.bonus
    }

    /// How many backward inductions all plans so far took.
    #[must_use]
    pub fn inductions(&self) -> u64 {
        self.search.inductions()
    }

    /// Pi^k (Alg. 1, line 4) with the pessimistic cost of pi0.
    fn pessimistic_set(&mut self) -> Result<(PolicySource, (PessimisticSet, f64))> {
        self.renew_signals()?;
        let cost = self.evaluator.evaluate(
            self.baseline.policy(),
            &self.pessimistic_cost,
            self.estimates.kernel(),
            &self.initial,
        );
        match &self.knowledge {
            Knowledge::Estimating(_) => Ok((
                PolicySource::BaselineEstimation,
                (PessimisticSet::BaselineOnly, cost),
            )),
            Knowledge::Margin(margin, _) => {
                let values = self.evaluator.values();
                let compared = (cost, margin.midpoint());
                self.watch
                    .evaluated(compared, values, &self.estimates, &self.bonus);
                Ok((
                    PolicySource::Baseline,
                    (PessimisticSet::assess(cost, margin), cost),
                ))
            }
        }
    }

    /// Alg. 1, lines 3 and 4: estimates and signals of the rows counted since the last time.
    fn renew_signals(&mut self) -> Result<()> {
        if let Some(board) = &mut self.board {
            fit(board, self.estimates.kernel())?;
        }
        let (board, last) = (&mut self.board, self.shape.horizon() - 1);
        let (bonus, cost_signal) = (self.bonus, &mut self.pessimistic_cost);
        let mut reward_signal = match &mut self.knowledge {
            Knowledge::Estimating(_) => None,
            Knowledge::Margin(_, reward) => Some(reward),
        };
        self.estimates.renew(|row| {
            let bonus = bonus.at(row.visits);
            let cost = cost_signal.update(row.step, row.pair, row.cost, bonus);
            let Some(signal) = &mut reward_signal else {
                return;
            };
            let reward = signal.update(row.step, row.pair, row.reward, bonus);
            if let Some(board) = board {
                let (step, state, action) = (row.step, row.state, row.action);
                board.set_signals(step, state, action, reward, cost);
                if step < last {
                    set_row(board, step, state, action, row.successors);
                }
            }
        });
        Ok(())
    }

    /// From an estimate of c0 to the optimistic reward that depends on it.
    fn learn_margin(&mut self, margin: SafetyMargin) -> Result<()> {
        self.renew_signals()?;
        let mut reward =
            OptimisticReward::for_zero_violation(self.shape, &margin, self.bonus.at(0))?;
        let pairs = self.shape.pairs();
        for (row, &visits) in self.estimates.visits().iter().enumerate() {
            let bonus = self.bonus.at(visits);
            reward.update(
                row / pairs,
                row % pairs,
                self.estimates.rewards()[row],
                bonus,
            );
        }
        self.knowledge = Knowledge::Margin(margin, reward);
        Ok(())
    }
}

impl Learner for OptPessLp {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn terms(&self) -> &LearningTerms {
        &self.terms
    }

    fn margin(&self) -> Option<SafetyMargin> {
        match &self.knowledge {
            Knowledge::Estimating(_) => None,
            Knowledge::Margin(margin, _) => Some(*margin),
        }
    }

    fn cost_limit(&self) -> f64 {
        self.baseline.cost_limit()
    }

    fn episodes_observed(&self) -> u64 {
        self.turn.observed()
    }

    #[inline]
    fn next_policy(&mut self) -> Result<Deployment> {
        self.turn.check_plan()?;
        self.lazy = false;
        let (source, (set, cost)) = self.pessimistic_set()?; // Alg. 1, line 4
        match set {
            PessimisticSet::BaselineOnly => Ok(self.deploy_baseline(source, cost)),
            PessimisticSet::CostBounded => {
                self.plan()?; // Alg. 1, line 5
                self.deploy_planned()
            }
        }
    }

    /// While the gate is surely shut nothing is evaluated and nothing but counts is kept up to date; while it
    /// is surely open pi0 is not evaluated.
    #[inline]
    fn next_plan(&mut self) -> Result<Deployment> {
        self.turn.check_plan()?;
        let surely_shut = match &self.knowledge {
            Knowledge::Estimating(_) => Some(PolicySource::BaselineEstimation),
            Knowledge::Margin(..) => self
                .watch
                .is_shut(self.turn.observed())
                .then_some(PolicySource::Baseline),
        };
        if let Some(source) = surely_shut {
            self.lazy = true;
            return Ok(self.deploy_baseline(source, f64::NAN));
        }
        self.lazy = false;
        if !self.watch.is_open() {
            let (source, (set, cost)) = self.pessimistic_set()?;
            if set == PessimisticSet::BaselineOnly {
                return Ok(self.deploy_baseline(source, cost));
            }
        }
        self.plan()?;
        self.deploy_certified()
    }

    #[inline(always)]
    fn actions(&self) -> Option<ActionTable<'_>> {
        let actions = self.baseline_actions.as_ref()?;
        let on_baseline =
            !matches!(self.last, Some(last) if last.source == PolicySource::PessimisticSet);
        on_baseline.then(|| ActionTable::new(actions, self.shape.num_states(), &[]))
    }

    fn policy(&self) -> &MarkovPolicy {
        match self.last {
            Some(last) if last.source == PolicySource::PessimisticSet => &self.planned,
            _ => self.baseline.policy(),
        }
    }

    #[inline]
    fn absorb(&mut self, seen: &Trajectory) -> Result<()> {
        self.turn.check_observe()?;
        self.estimates.count(seen)?; // Alg. 1, line 7
        let k = self.turn.k();
        self.watch
            .counted(k, seen, &self.estimates, &self.pessimistic_cost);
        if !self.lazy {
            self.renew_signals()?;
        }
        self.turn.seen();
        if let Knowledge::Estimating(estimation) = &mut self.knowledge
            && let Some(margin) = estimation.observe(&seen.costs)?
        {
            self.learn_margin(margin)?;
        }
        Ok(())
    }

    fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    fn guarantee(&self) -> Option<Guarantee> {
        let (valid, failure_probability) = match self.baseline.safe_cost() {
            SafeCost::Known(_) => (true, self.terms.failure_probability()),
            SafeCost::Estimated { radius, .. } => {
                (radius.is_valid(), 2.0 * self.terms.failure_probability())
            }
        };
        (valid && self.terms.rule().keeps_guarantee()).then_some(Guarantee::ZeroViolation {
            probability: 1.0 - failure_probability,
        })
    }

    fn multiplier(&self) -> f64 {
        0.0
    }
}
