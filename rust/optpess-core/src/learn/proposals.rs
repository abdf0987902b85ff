//! Who proposes candidates to OptPess-Mix: an explorer, a cautious planner and a bold one. Safety does not depend on them.
//!
//! All three are the chord method on tables that differ. With several constraints the method runs on a weighted sum of the
//! costs; the weights follow the use of each limit. For any weights a policy within all limits is within the weighted one,
//! so the explorer stays optimistic.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::certify::WorstCase;
use crate::confidence::{ConfidenceSets, OptimisticSets};
use crate::error::{Error, Result};
use crate::estimate::{FrequencyKernel, Tally};
use crate::evaluate::Evaluator;
use crate::knowledge::Knowledge;
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::{
    ActionPoint, ChordSearch, Extended, ExtendedOracle, ExtendedVertex, ExtendedWork, PlainOracle,
    PlanningProblem, PlanningWork, Point,
};
use crate::policy::{MarkovPolicy, Played};
use crate::shape::Shape;
use crate::table::{Signal, StepSignal};

/// How often the cautious plan is linearised again around the last one.
const LINEARISATIONS: usize = 4;

/// How often the weights of several constraints are moved at a plan.
const WEIGHT_ROUNDS: usize = 5;

/// The least weight of a constraint, relative to the largest.
const LEAST_WEIGHT: f64 = 1e-3;

/// What the proposers keep from plan to plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Proposers {
    explorer: ChordSearch<ExtendedVertex>,
    planner: ChordSearch,
    explorer_weights: Vec<f64>, // [M]
    cautious_weights: Vec<f64>, // [M]
    bold_weights: Vec<f64>,     // [M]
    last_cautious: MarkovPolicy,
}

/// The proposers before a plan that starts from scratch, but for their chords, which such a plan does not read.
#[derive(Debug)]
pub(crate) struct Beginning {
    inductions: [u64; 2],
    weights: [Vec<f64>; 3],
    last_cautious: MarkovPolicy,
}

/// Tables that follow from the counts, and workspace. Not stored.
#[derive(Debug, Clone)]
pub(crate) struct PlanTables {
    pub(crate) optimism: OptimisticSets,
    kernel: FrequencyKernel,
    reward: Signal,
    costs: Vec<Signal>,
    worst_case: WorstCase,
    evaluator: Evaluator,
    extended: ExtendedWork,
    planning: PlanningWork,
}

impl PlanTables {
    pub(crate) fn new(tally: &Tally, threshold: f64) -> Result<Self> {
        let shape = tally.shape();
        let nothing = || tally.signal("an average", |_| 0.0);
        let costs: Result<Vec<_>> = (0..tally.num_costs()).map(|_| nothing()).collect();
        Ok(Self {
            optimism: OptimisticSets::new(tally, threshold)?,
            kernel: FrequencyKernel::default(),
            reward: nothing()?,
            costs: costs?,
            worst_case: WorstCase::new(shape)?,
            evaluator: Evaluator::new(shape)?,
            extended: ExtendedWork::new(shape)?,
            planning: PlanningWork::new(shape)?,
        })
    }

    /// P-hat, r-hat and c-hat from the counts, or what is known of them.
    pub(crate) fn refresh(&mut self, tally: &Tally, knowledge: &Knowledge) -> Result<()> {
        self.kernel.refresh(tally);
        self.reward = match &knowledge.rewards {
            Some(known) => known.clone(),
            None => tally.signal("r-hat", |row| tally.mean_reward(row))?,
        };
        for (m, cost) in self.costs.iter_mut().enumerate() {
            *cost = match &knowledge.costs {
                Some(known) => known[m].clone(),
                None => tally.signal("c-hat", |row| tally.mean_cost(row, m))?,
            };
        }
        Ok(())
    }

    /// V(r-hat, P-hat) and V(c-hat, P-hat) of a policy.
    pub(crate) fn estimate(
        &mut self,
        played: Played<'_>,
        initial: &InitialDistribution,
    ) -> (f64, Vec<f64>) {
        let (kernel, evaluator) = (&self.kernel, &mut self.evaluator);
        let mut value = |signal: &Signal| match played {
            Played::Policy(policy) => evaluator.evaluate(policy, signal, kernel, initial),
            Played::Actions(actions) => {
                let actions = actions.to_vec(signal.shape());
                evaluator.evaluate_actions(&actions, signal, kernel, initial)
            }
        };
        let reward = value(&self.reward);
        (reward, self.costs.iter().map(value).collect())
    }

    /// The worst case of a policy's costs over the confidence sets.
    pub(crate) fn worst_case(&mut self, played: Played<'_>, problem: &Known<'_>) -> Vec<f64> {
        let (sets, initial) = ((problem.sets, problem.tally), problem.initial);
        let constraints = 0..self.costs.len();
        constraints
            .map(|m| self.worst_case.upper(played, sets, m, initial))
            .collect()
    }
}

/// What a plan starts from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) tally: &'a Tally,
    pub(crate) sets: &'a ConfidenceSets,
    pub(crate) initial: &'a InitialDistribution,
    /// Which actions exist; None if all do.
    pub(crate) actions: Option<&'a StandIns>,
    pub(crate) limits: &'a [f64],
    /// Bounds on the baseline's costs, and its estimated reward.
    pub(crate) safe_costs: &'a [f64],
    pub(crate) safe_reward: f64,
}

impl Known<'_> {
    fn weighted(weights: &[f64], numbers: &[f64]) -> f64 {
        weights
            .iter()
            .zip(numbers)
            .map(|(weight, number)| weight * number)
            .sum()
    }

    /// Moves weights towards the limits that a mixture with these costs uses most.
    fn move_weights(&self, weights: &mut [f64], costs: &[f64]) {
        for (m, weight) in weights.iter_mut().enumerate() {
            let room = (self.limits[m] - self.safe_costs[m]).max(f64::MIN_POSITIVE);
            *weight *= ((costs[m] - self.safe_costs[m]) / room).clamp(0.25, 4.0);
        }
        let largest = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for weight in weights {
            *weight = (*weight / largest).max(LEAST_WEIGHT);
        }
    }
}

/// Deterministic policies as actions, `[H, S]`, with weights.
pub(crate) type WeightedActions = Vec<(Vec<u32>, f64)>;

/// What was proposed at one plan.
#[derive(Debug)]
pub(crate) struct Proposals {
    pub(crate) explorer: WeightedActions,
    pub(crate) optimistic_value: f64,
    pub(crate) cautious: Vec<Vec<u32>>,
    pub(crate) bold: Vec<Vec<u32>>,
}

impl Proposals {
    /// Replaces actions that do not exist by those they stand in for.
    pub(crate) fn fold(&mut self, actions: &StandIns) {
        let explorer = self.explorer.iter_mut().map(|(policy, _)| policy);
        let others = self.cautious.iter_mut().chain(&mut self.bold);
        for policy in explorer.chain(others) {
            actions.fold_actions(policy);
        }
    }
}

impl Proposers {
    pub(crate) fn new(baseline: &MarkovPolicy, num_constraints: usize) -> Result<Self> {
        let shape = baseline.shape();
        let weights = || vec![1.0; num_constraints];
        Ok(Self {
            explorer: ChordSearch::new(shape)?,
            planner: ChordSearch::new(shape)?,
            explorer_weights: weights(),
            cautious_weights: weights(),
            bold_weights: weights(),
            last_cautious: baseline.clone(),
        })
    }

    /// The proposals of all three.
    pub(crate) fn propose(
        &mut self,
        tables: &mut PlanTables,
        known: &Known<'_>,
    ) -> Result<Proposals> {
        let (explorer, optimistic_value) = self.explore(tables, known)?;
        Ok(Proposals {
            explorer,
            optimistic_value,
            cautious: self.be_cautious(tables, known)?,
            bold: self.be_bold(tables, known)?,
        })
    }

    /// Whether the next plan starts from scratch, not from the chords of the last one.
    pub(crate) fn start_from_scratch(&self) -> bool {
        !self.explorer.is_warm() && !self.planner.is_warm()
    }

    /// What a plan changes, if it starts from scratch.
    pub(crate) fn beginning(&self) -> Option<Beginning> {
        self.start_from_scratch().then(|| Beginning {
            inductions: [self.explorer.inductions(), self.planner.inductions()],
            weights: [
                self.explorer_weights.clone(),
                self.cautious_weights.clone(),
                self.bold_weights.clone(),
            ],
            last_cautious: self.last_cautious.clone(),
        })
    }

    /// Puts everything back to where a plan began that was stopped within: it can be made again, with the same result.
    pub(crate) fn go_back(&mut self, beginning: Beginning) {
        self.explorer.restart(beginning.inductions[0]);
        self.planner.restart(beginning.inductions[1]);
        let [explorer, cautious, bold] = beginning.weights;
        (self.explorer_weights, self.cautious_weights) = (explorer, cautious);
        (self.bold_weights, self.last_cautious) = (bold, beginning.last_cautious);
    }

    /// How many inductions all plans took.
    pub(crate) fn inductions(&self) -> u64 {
        self.explorer.inductions() + self.planner.inductions()
    }

    /// The best pair of a policy and a plausible kernel for optimistic reward and cost: actions with weights, and the
    /// optimistic value. Citation: \[Efroni20\], OptCMDP. Deviation: other sets.
    fn explore(
        &mut self,
        tables: &mut PlanTables,
        known: &Known<'_>,
    ) -> Result<(WeightedActions, f64)> {
        let reward = tables.optimism.reward(known.tally)?;
        for round in 1.. {
            let weights = self.explorer_weights.clone();
            let cost = tables.optimism.weighted_cost(known.tally, &weights)?;
            let problem = Extended {
                reward: &reward,
                cost: &cost,
                kernels: tables.optimism.kernels(),
                initial: known.initial,
            };
            let mut oracle = ExtendedOracle::on(&problem, &mut tables.extended);
            let limit = Known::weighted(&weights, known.limits);
            let (weight_above, value) = match self.explorer.solve(&mut oracle, limit) {
                Ok(found) => (found.weight_above, found.value),
                // Outside the event no policy seems to be within the limit; the cheapest is explored.
                Err(Error::Infeasible { .. }) => (0.0, self.explorer.chord().below().reward()),
                Err(error) => return Err(error),
            };
            let chord = self.explorer.chord();
            let mut ends = vec![(chord.below().actions().to_vec(), 1.0 - weight_above)];
            if weight_above > 0.0 {
                ends.push((chord.above().actions().to_vec(), weight_above));
            }
            ends.retain(|(_, weight)| *weight > 0.0);
            if weights.len() == 1 || round == WEIGHT_ROUNDS {
                return Ok((ends, value));
            }
            let mut costs = vec![0.0; weights.len()];
            for (actions, weight) in &ends {
                let (_, own) = tables.estimate(acting(actions, reward.shape()), known.initial);
                costs
                    .iter_mut()
                    .zip(own)
                    .for_each(|(cost, own)| *cost += weight * own);
            }
            known.move_weights(&mut self.explorer_weights, &costs);
        }
        unreachable!("the loop returns in its last round")
    }

    /// The best policies for estimated rewards and the costs of their own certificates.
    ///
    /// The certificate is not linear in the occupancy. Linearised at a policy it is exact there and a guess nearby: plan on
    /// it with the baseline as the partner of the coin, linearise at the new plan, and so on.
    fn be_cautious(&mut self, tables: &mut PlanTables, known: &Known<'_>) -> Result<Vec<Vec<u32>>> {
        let shape = known.tally.shape();
        let mut proposals: Vec<Vec<u32>> = Vec::new();
        for _ in 0..LINEARISATIONS {
            let mut costs = Vec::with_capacity(known.limits.len());
            for m in 0..known.limits.len() {
                let mut signal = vec![0.0; shape.triples()];
                let kernel = &tables.kernel;
                tables.worst_case.linearise(
                    &self.last_cautious,
                    (known.sets, known.tally),
                    m,
                    |step, pair, next| kernel.expectation(step, pair, next),
                    &mut signal,
                );
                costs.push(Signal::new("a certificate's cost", shape, signal)?);
            }
            let mut weights = std::mem::take(&mut self.cautious_weights);
            let found = self.plan_weighted(tables, known, &costs, &mut weights);
            self.cautious_weights = weights;
            let found = found?;
            let Some(last) = found.last().cloned() else {
                break;
            };
            let next = MarkovPolicy::deterministic(shape, &last)?;
            let is_new = !next.has_entries_of(&self.last_cautious);
            let count = proposals.len();
            for actions in found {
                if !proposals.contains(&actions) {
                    proposals.push(actions);
                }
            }
            self.last_cautious = next;
            if !is_new || proposals.len() == count {
                break;
            }
        }
        Ok(proposals)
    }

    /// The best policies for the estimates as they are.
    fn be_bold(&mut self, tables: &mut PlanTables, known: &Known<'_>) -> Result<Vec<Vec<u32>>> {
        let costs = tables.costs.clone();
        let mut weights = std::mem::take(&mut self.bold_weights);
        let found = self.plan_weighted(tables, known, &costs, &mut weights);
        self.bold_weights = weights;
        found
    }

    /// The policies of the best mixtures with the baseline on P-hat, the one of most reward last.
    fn plan_weighted(
        &mut self,
        tables: &mut PlanTables,
        known: &Known<'_>,
        costs: &[Signal],
        weights: &mut [f64],
    ) -> Result<Vec<Vec<u32>>> {
        let rounds = if weights.len() == 1 { 1 } else { WEIGHT_ROUNDS };
        let mut proposals: Vec<Vec<u32>> = Vec::new();
        for _ in 0..rounds {
            let cost = WeightedSum { costs, weights };
            let problem = PlanningProblem {
                shape: known.tally.shape(),
                reward: &tables.reward,
                cost: &cost,
                kernel: &tables.kernel,
                initial: known.initial,
            };
            let mut oracle = PlainOracle::on(&problem, &mut tables.planning);
            let limit = Known::weighted(weights, known.limits);
            let partner = [
                Known::weighted(weights, known.safe_costs),
                known.safe_reward,
            ];
            let found = self
                .planner
                .solve_with_partner(&mut oracle, limit, partner)?;
            let chord = self.planner.chord();
            let ends = [(found.below, chord.below()), (found.above, chord.above())];
            let mut used = known.safe_costs.to_vec();
            for (_, end) in ends.into_iter().filter(|(belongs, _)| *belongs) {
                let actions = end.actions().to_vec();
                if rounds > 1 {
                    used = costs_on(tables, &actions, costs, known.initial);
                }
                proposals.retain(|other| *other != actions);
                proposals.push(actions);
            }
            known.move_weights(weights, &used);
        }
        Ok(proposals)
    }
}

fn costs_on(
    tables: &mut PlanTables,
    actions: &[u32],
    costs: &[Signal],
    initial: &InitialDistribution,
) -> Vec<f64> {
    let (kernel, evaluator) = (&tables.kernel, &mut tables.evaluator);
    let mut value = |cost: &Signal| evaluator.evaluate_actions(actions, cost, kernel, initial);
    costs.iter().map(&mut value).collect()
}

fn acting(actions: &[u32], shape: Shape) -> Played<'_> {
    Played::Actions(crate::policy::ActionTable::new(actions, shape.num_states()))
}

/// sum_m y_m c_m, never stored.
struct WeightedSum<'a> {
    costs: &'a [Signal],
    weights: &'a [f64],
}

impl StepSignal for WeightedSum<'_> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        let costs = self.costs.iter().zip(self.weights);
        costs
            .map(|(cost, weight)| weight * cost.at(step, pair))
            .sum()
    }
}
