//! C-UCRL in episodic form: the transitions are known, rewards and costs are not.
//!
//! After Zheng and Ratliff, *Constrained Upper Confidence Reinforcement Learning*, L4DC 2020, cited as
//! \[Zheng20\]. Its own setting is average reward in one unending episode; this is its idea for episodes. The
//! box in words: play the policy that maximises V(r-hat + b_o, P) subject to
//! V(c-hat + b_o, P) <= tau on the *given* P, and pi0 for as long as no policy is within the limit. One
//! episode costs one to a few backward inductions.
//!
//! Promise: zero violation with probability 1 - delta, given that the given transitions are the true ones
//! and that pi0 is safe: with P known, c-hat + b_o >= c alone makes V(c-hat + b_o, P) >= V(c, P).

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::certify::within;
use crate::confidence::{Guarantee, LearningTerms, OptimisticReward, PeerRadii, PessimisticCost};
use crate::error::{ArrayIndex, Error, Result};
use crate::estimate::RowEstimate;
use crate::evaluate::Evaluator;
use crate::learn::BiasedSignals;
use crate::learn::peers::{Algorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::{check, check_search};
use crate::learn::{PolicySource, SafeBaseline};
use crate::model::{InitialDistribution, Kernel, StepKernel};
use crate::plan::{ChordSearch, PlainOracle, PlanningProblem, PlanningWork};
use crate::policy::{MarkovPolicy, SUM_TOLERANCE};
use crate::shape::Shape;
use crate::sums::dot;
use crate::table::zeros;

/// Transitions that a learner is given: a part of the true model, unlike everything else a learner receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownTransitions {
    shape: Shape,
    data: Vec<f64>, // [H - 1, S, A, S]
}

impl KnownTransitions {
    /// Copies a kernel; refuses one of another shape and one that loses mass.
    pub fn new(shape: Shape, kernel: &Kernel) -> Result<Self> {
        kernel.check_shape(shape)?;
        let (states, pairs) = (shape.num_states(), shape.pairs());
        let rows = (shape.horizon() - 1) * pairs;
        let mut data: Vec<f64> = zeros("known transitions [H, S, A, S]", rows * states)?;
        for (row, target) in data.chunks_exact_mut(states).enumerate() {
            for (state, probability) in kernel.successors(row / pairs, row % pairs) {
                target[state] += probability;
            }
            let sum: f64 = target.iter().sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                let place = shape.triple_index(row);
                return Err(Error::NotADistribution {
                    place: ArrayIndex::new("transitions", &place),
                    sum,
                    required: "1 within 1e-9",
                });
            }
        }
        Ok(Self { shape, data })
    }

    /// Whether stored rows are distributions of a problem of this shape.
    fn fits(&self, shape: Shape) -> bool {
        let rows = (shape.horizon() - 1) * shape.pairs();
        let is_distribution = |row: &[f64]| {
            let sum: f64 = row.iter().sum();
            row.iter().all(|&p| p >= 0.0) && (sum - 1.0).abs() <= SUM_TOLERANCE
        };
        self.shape == shape
            && self.data.len() == rows * shape.num_states()
            && self
                .data
                .chunks_exact(shape.num_states())
                .all(is_distribution)
    }

    fn row(&self, step: usize, pair: usize) -> &[f64] {
        let states = self.shape.num_states();
        &self.data[(step * self.shape.pairs() + pair) * states..][..states]
    }
}

impl StepKernel for KnownTransitions {
    #[inline(always)]
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        dot(self.row(step, pair), values)
    }

    #[inline(always)]
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        for (target, &probability) in next.iter_mut().zip(self.row(step, pair)) {
            *target += mass * probability;
        }
    }
}

/// The learner of C-UCRL.
pub type Cucrl = Peer<CucrlAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CucrlAlgorithm {
    transitions: KnownTransitions,
    baseline: SafeBaseline,
    reward: OptimisticReward,
    cost: PessimisticCost,
    bonuses: Vec<f64>, // [H, S, A]
    search: ChordSearch,
    work: PlanningWork,
    evaluator: Evaluator,
}

impl Cucrl {
    /// A learner that has seen nothing but was given the transitions.
    pub fn new(
        transitions: KnownTransitions,
        initial: InitialDistribution,
        baseline: SafeBaseline,
        terms: LearningTerms,
    ) -> Result<Self> {
        let shape = baseline.policy().shape();
        if transitions.shape != shape {
            return Err(Error::ShapeMismatch {
                array: "transitions",
                axes: "[H, S, A] of the baseline",
                expected: shape.sizes().to_vec(),
                found: transitions.shape.sizes().to_vec(),
            });
        }
        let (limit, margin) = (baseline.cost_limit(), baseline.margin());
        let rule = CucrlAlgorithm {
            transitions,
            baseline,
            reward: OptimisticReward::for_bounded_violation(shape, 0.0)?,
            cost: PessimisticCost::new(shape, 0.0)?,
            bonuses: zeros("bonuses [H, S, A]", shape.triples())?,
            search: ChordSearch::new(shape)?,
            work: PlanningWork::new(shape)?,
            evaluator: Evaluator::new(shape)?,
        };
        Self::from_parts(shape, initial, (limit, margin), terms, rule)
    }

    /// pi0 and what is known of its cost.
    pub(crate) fn baseline(&self) -> &SafeBaseline {
        &self.algorithm.baseline
    }
}

impl CucrlAlgorithm {
    fn play_baseline(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Proposal {
        policy.clone_from(self.baseline.policy());
        let cost = self
            .evaluator
            .evaluate(policy, &self.cost, &self.transitions, known.initial());
        Proposal {
            source: PolicySource::Baseline,
            reward: None,
            cost: Some(cost),
        }
    }
}

impl Algorithm for CucrlAlgorithm {
    const PROMISE: &'static str =
        "no violation with probability 1 - delta, if the given transitions are the true ones";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        let signals = self.reward == OptimisticReward::for_bounded_violation(shape, 0.0)?
            && self.cost == PessimisticCost::new(shape, 0.0)?
            && self.bonuses.len() == shape.triples();
        check("the signals of a learner", signals)?;
        check("the transitions of a learner", self.transitions.fits(shape))?;
        let work = self.work.shape() == shape && self.evaluator.shape() == shape;
        check("the workspace of a learner", work)?;
        known.check_baseline(&self.baseline)?;
        check_search(&self.search, shape)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        let bonus = radii.observation(row.visits);
        self.reward.update(row, bonus);
        self.cost.update(row, bonus);
        self.bonuses[row.step * self.transitions.shape.pairs() + row.pair] = bonus;
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let problem = PlanningProblem {
            shape: known.shape(),
            reward: &self.reward,
            cost: &self.cost,
            kernel: &self.transitions,
            initial: known.initial(),
        };
        let (limit, completion) = (known.cost_limit(), self.baseline.policy());
        let mut oracle = PlainOracle::on(&problem, &mut self.work);
        let found = match self
            .search
            .find_within(&mut oracle, limit, completion, policy)
        {
            Ok(found) => found,
            Err(Error::Infeasible { .. }) => return Ok(self.play_baseline(known, policy)),
            Err(other) => return Err(other),
        };
        known.fold(policy); // no value changes
        let (kernel, initial) = (&self.transitions, known.initial());
        // Re-evaluated by code that did not plan it; a policy that rounding puts above the limit is not played.
        let cost = self.evaluator.evaluate(policy, &self.cost, kernel, initial);
        if !within(cost, limit) {
            return Ok(self.play_baseline(known, policy));
        }
        Ok(Proposal {
            source: PolicySource::KnownTransitions,
            reward: Some(found.value),
            cost: Some(cost),
        })
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        actions.check_policy("baseline", self.baseline.policy())?;
        let states = self.transitions.shape.num_states();
        actions.copy_rows(&mut self.transitions.data, states);
        Ok(())
    }

    fn signals(&self) -> BiasedSignals<'_> {
        BiasedSignals::new(
            Some(self.reward.signal()),
            self.cost.signal(),
            self.bonuses.clone(),
        )
    }

    /// Under the assumption that the given transitions are the true ones.
    fn guarantee(&self, terms: &LearningTerms) -> Option<Guarantee> {
        let probability = 1.0 - terms.failure_probability();
        let kept = terms.rule().keeps_guarantee();
        kept.then(|| Guarantee::zero_violation(probability, terms.rule()))
    }
}
