//! The rule Sharp: its bonuses cover every truth that its confidence sets leave plausible, on counts of random episodes.

use optpess_core::confidence::{
    BetaMixture, ConfidenceRule, DirichletSet, LearningTerms, Levels, OptimisticReward,
    PessimisticCost, RowBonuses, SafetyMargin, SharpBonus,
};
use optpess_core::error::Error;
use optpess_core::estimate::Estimates;
use optpess_core::evaluate::evaluate;
use optpess_core::learn::peers::OptCmdp;
use optpess_core::learn::{Learner, OptPessPrimalDual};
use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::number::from_count;
use optpess_core::plan::{ChordSearch, PlainOracle, PlanningProblem, solve_exactly};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use optpess_core::trajectory::Trajectory;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::cases::Problem;

const DELTA: f64 = 0.05;

/// Counts, and a truth at the edge of what they leave plausible.
struct World {
    shape: Shape,
    initial: InitialDistribution,
    estimates: Estimates,
    bonus: SharpBonus,
    bonuses: Vec<RowBonuses>, // [H, S, A]
    truth: Truth,
}

/// A kernel and two signals.
struct Truth {
    kernel: Kernel,
    reward: Signal,
    cost: Signal,
}

/// A random distribution; some entries are 0.
fn distribution(generator: &mut ChaCha8Rng, len: usize) -> Vec<f64> {
    let mut row: Vec<f64> = (0..len)
        .map(|_| f64::max(0.0, generator.random::<f64>() - 0.3))
        .collect();
    row[generator.random_range(0..len)] += 0.05;
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|entry| *entry /= total);
    row
}

/// One of the outcomes.
fn draw(generator: &mut ChaCha8Rng, row: &[f64]) -> u32 {
    let mut rest: f64 = generator.random();
    let found = row.iter().position(|p| {
        rest -= p;
        rest < 0.0
    });
    found.unwrap_or_else(|| row.iter().position(|&p| p > 0.0).unwrap()) as u32
}

/// Counts of episodes of a random problem under random actions.
fn counted(shape: Shape, episodes: usize, generator: &mut ChaCha8Rng) -> Estimates {
    let [horizon, states, actions] = shape.sizes();
    let rows: Vec<Vec<f64>> = (0..shape.triples())
        .map(|_| distribution(generator, states))
        .collect();
    let means: Vec<[f64; 2]> = (0..shape.triples())
        .map(|_| {
            generator
                .random::<[f64; 2]>()
                .map(|mean| (1.4 * mean - 0.2).clamp(0.0, 1.0))
        })
        .collect();
    let mut estimates = Estimates::new(shape).unwrap();
    for _ in 0..episodes {
        let mut seen = (vec![], vec![], vec![], vec![]);
        let mut state = generator.random_range(0..states as u32);
        for step in 0..horizon {
            // The first action is rarer than the others.
            let action = generator
                .random_range(0..actions as u32)
                .max(generator.random_range(0..actions as u32));
            let row = step * shape.pairs() + shape.pair(state as usize, action as usize);
            let mut coin = |mean: f64| f64::from(u8::from(generator.random::<f64>() < mean));
            seen.2.push(coin(means[row][0]));
            seen.3.push(coin(means[row][1]));
            seen.0.push(state);
            seen.1.push(action);
            state = draw(generator, &rows[row]);
        }
        let seen = Trajectory::checked(shape, seen.0, seen.1, seen.2, seen.3).unwrap();
        estimates.count(&seen).unwrap();
    }
    estimates
}

/// Whether a row lies in the sets of its counts, from the formulas of the sets.
fn plausible(row: &[f64], counts: &[f64], levels: Levels) -> bool {
    let visits: f64 = counts.iter().sum();
    let entry = BetaMixture::with_endpoint_mass(levels.entry, 0.5).unwrap();
    let inside = |(p, count): (&f64, &f64)| {
        let (lower, upper) = entry.interval(visits, *count);
        lower <= *p && *p <= upper
    };
    if row.len() == 2 {
        return inside((&row[0], &counts[0]));
    }
    let ball = DirichletSet::new(
        -levels.ball.ln(),
        row.len(),
        counts.iter().map(|&count| count as u64),
    );
    let terms = row.iter().zip(counts).filter(|(_, count)| **count > 0.0);
    let divergence: f64 = terms.map(|(p, n)| n / visits * (n / visits / p).ln()).sum();
    divergence <= ball.radius() && row.iter().zip(counts).all(inside)
}

/// The farthest plausible row on the way from the frequencies to `target`.
fn pulled(counts: &[f64], target: &[f64], levels: Levels) -> Vec<f64> {
    let visits: f64 = counts.iter().sum();
    let at = |share: f64| -> Vec<f64> {
        let both = counts.iter().zip(target);
        both.map(|(n, q)| (1.0 - share) * n / visits + share * q)
            .collect()
    };
    let (mut low, mut high) = (0.0, 1.0);
    if plausible(target, counts, levels) {
        return target.to_vec();
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        *(if plausible(&at(middle), counts, levels) {
            &mut low
        } else {
            &mut high
        }) = middle;
    }
    at(low)
}

impl World {
    fn new(sizes: [usize; 3], episodes: usize, seed: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let shape = Shape::new(sizes[0], sizes[1], sizes[2]).unwrap();
        let states = shape.num_states();
        let mut estimates = counted(shape, episodes, &mut generator);
        estimates.mark_all();
        let bonus = SharpBonus::new(shape, DELTA).unwrap();
        let empty = RowBonuses {
            cost: 0.0,
            reward: 0.0,
            error: 0.0,
        };
        let mut bonuses = vec![empty; shape.triples()];
        let share = DELTA / shape.triples() as f64;
        let mut tables = (vec![], vec![], vec![]);
        let pairs = shape.pairs();
        estimates.refresh_with(|row| bonuses[row.step * pairs + row.pair] = bonus.of(row));
        for row in 0..shape.triples() {
            let (step, pair) = (row / pairs, row % pairs);
            let last = step + 1 == shape.horizon();
            let levels = Levels::of_row(share, if last { 0 } else { states }, 2);
            let visits = from_count(estimates.visits()[row]);
            let mut target = distribution(&mut generator, states);
            if generator.random::<f64>() < 0.5 {
                target.fill(0.0); // one successor for certain: a corner
                target[generator.random_range(0..states)] = 1.0;
            }
            let counts: Vec<f64> = (0..states)
                .map(|state| (estimates.frequency(step, pair, state) * visits).round())
                .collect();
            tables.0.extend(if last || visits == 0.0 || states == 1 {
                target
            } else {
                pulled(&counts, &target, levels)
            });
            let mean = BetaMixture::with_endpoint_mass(levels.cost, 0.5).unwrap();
            let mut end = |average: f64| {
                let (lower, upper) = mean.interval(visits, (visits * average).round());
                [lower, upper, average][generator.random_range(0..3)]
            };
            tables.1.push(end(estimates.mean_reward(row)));
            tables.2.push(end(estimates.mean_cost(row)));
        }
        let start = distribution(&mut generator, states);
        let slices = Slices::PerStep(shape.horizon());
        Self {
            initial: InitialDistribution::new(states, start).unwrap(),
            truth: Truth {
                kernel: Kernel::dense(states, shape.num_actions(), slices, tables.0).unwrap(),
                reward: Signal::new("reward", shape, tables.1).unwrap(),
                cost: Signal::new("cost", shape, tables.2).unwrap(),
            },
            shape,
            estimates,
            bonus,
            bonuses,
        }
    }

    /// c underbar and r bar.
    fn signals(&mut self, margin: &SafetyMargin) -> (PessimisticCost, OptimisticReward) {
        let mut cost = PessimisticCost::new(self.shape, 0.0).unwrap();
        let mut reward = OptimisticReward::for_zero_violation(self.shape, margin, 0.0).unwrap();
        self.estimates.mark_all();
        let bonus = self.bonus;
        self.estimates.refresh_with(|row| {
            let bonuses = bonus.of(row);
            cost.update(row, bonuses.cost);
            reward.update_sharply(row, &bonuses);
        });
        (cost, reward)
    }

    fn policy(&self, seed: u64) -> MarkovPolicy {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let [horizon, states, actions] = self.shape.sizes();
        let rows = (0..horizon * states).flat_map(|_| distribution(&mut generator, actions));
        MarkovPolicy::new("policy", self.shape, rows.collect()).unwrap()
    }

    fn true_value(&self, policy: &MarkovPolicy, signal: &Signal) -> f64 {
        evaluate(policy, signal, &self.truth.kernel, &self.initial).unwrap()
    }
}

fn settings() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn sizes() -> impl Strategy<Value = [usize; 3]> {
    [1..=5_usize, 1..=7, 1..=3]
}

fn episode_counts() -> impl Strategy<Value = usize> {
    prop_oneof![1 => 0..5_usize, 3 => 5..300_usize, 2 => 300..4000_usize]
}

proptest! {
    #![proptest_config(settings())]

    /// Lemma 5.1 and optimism of r bar, for any policy and any truth inside the sets.
    #[test]
    fn biased_values_cover_every_plausible_truth(
        sizes in sizes(), episodes in episode_counts(), seed in any::<u64>(),
    ) {
        let mut world = World::new(sizes, episodes, seed);
        let margin = SafetyMargin::new(sizes[0] as f64, 0.0).unwrap();
        let (cost, reward) = world.signals(&margin);
        for number in 0..3 {
            let policy = world.policy(seed ^ number);
            let kernel = world.estimates.kernel();
            let pessimistic = evaluate(&policy, &cost, kernel, &world.initial).unwrap();
            let optimistic = evaluate(&policy, &reward, kernel, &world.initial).unwrap();
            let truth = [&world.truth.cost, &world.truth.reward];
            let [cost, reward] = truth.map(|signal| world.true_value(&policy, signal));
            prop_assert!(pessimistic >= cost - 1e-11, "{pessimistic} below {cost}");
            prop_assert!(optimistic >= reward - 1e-11, "{optimistic} below {reward}");
        }
    }

    /// What the proofs need of a row: both directions of its error are covered, for the worst values after it.
    #[test]
    fn bonuses_cover_the_error_of_a_row(
        sizes in sizes(), episodes in episode_counts(), seed in any::<u64>(),
    ) {
        let world = World::new(sizes, episodes, seed);
        let (pairs, states) = (world.shape.pairs(), world.shape.num_states());
        for (row, bonuses) in world.bonuses.iter().enumerate() {
            let (step, pair) = (row / pairs, row % pairs);
            let after = (world.shape.horizon() - 1 - step) as f64;
            let mut change = [0.0; 2]; // of the worst expectation, upwards and downwards
            for (state, p) in world.truth.kernel.successors(step, pair) {
                let gap = p - world.estimates.frequency(step, pair, state);
                change[0] += after * gap.max(0.0);
                change[1] += after * (-gap).max(0.0);
            }
            prop_assert!(states == 0 || change[0] <= after * (1.0 + 1e-9));
            let seen = world.estimates.mean_cost(row);
            let cost = world.truth.cost.data()[row] - seen;
            let reward = world.truth.reward.data()[row] - world.estimates.mean_reward(row);
            prop_assert!(bonuses.cost >= cost + change[0] - 1e-12, "{bonuses:?} {cost} {change:?}");
            prop_assert!(bonuses.reward >= reward + change[0] - 1e-12);
            // How far c underbar, on P-hat, is above the truth.
            prop_assert!(2.0 * bonuses.error >= bonuses.cost - cost + change[1] - 1e-12
                || world.estimates.visits()[row] == 0 && 2.0 * bonuses.error >= bonuses.cost);
        }
    }

    /// Lemma 5.3: past the gate the best optimistic value within the limit is at least the true optimum.
    #[test]
    fn past_the_gate_the_plan_is_optimistic(
        sizes in sizes(), episodes in 100..4000_usize, seed in any::<u64>(), extra in 0.0..0.5_f64,
    ) {
        let mut world = World::new(sizes, episodes, seed);
        let safe = world.policy(seed);
        let whole = SafetyMargin::new(sizes[0] as f64, 0.0).unwrap();
        let pessimistic = {
            let (cost, _) = world.signals(&whole);
            evaluate(&safe, &cost, world.estimates.kernel(), &world.initial).unwrap()
        };
        let safe_cost = world.true_value(&safe, &world.truth.cost);
        // (tau + c0)/2 is just above the pessimistic cost of pi0.
        let limit = 2.0 * pessimistic - safe_cost + 1e-6 + extra;
        let margin = SafetyMargin::new(limit, safe_cost).unwrap();
        let (cost, reward) = world.signals(&margin);
        let truth = PlanningProblem {
            shape: world.shape,
            reward: &world.truth.reward,
            cost: &world.truth.cost,
            kernel: &world.truth.kernel,
            initial: &world.initial,
        };
        let planned = PlanningProblem {
            shape: world.shape,
            reward: &reward,
            cost: &cost,
            kernel: world.estimates.kernel(),
            initial: &world.initial,
        };
        let optimum = solve_exactly(&truth, limit).unwrap().value;
        let mut oracle = PlainOracle::new(&planned).unwrap();
        let mut search = ChordSearch::new(world.shape).unwrap();
        let optimistic = search.solve(&mut oracle, limit).unwrap().value;
        prop_assert!(optimistic >= optimum - 1e-9 * (1.0 + optimistic), "{optimistic} {optimum}");
    }
}

/// The worlds can tell: half of the bonus of transitions, or the bonus of the cost alone, is not enough.
#[test]
fn smaller_bonuses_fail_somewhere() {
    let (mut halved, mut alone) = (0, 0);
    for seed in 0..200 {
        let world = World::new([4, 3, 2], 400, seed);
        let pairs = world.shape.pairs();
        for (row, bonuses) in world.bonuses.iter().enumerate() {
            let (step, pair) = (row / pairs, row % pairs);
            if world.estimates.visits()[row] == 0 || step == 3 {
                continue;
            }
            let after = (3 - step) as f64;
            let successors = world.truth.kernel.successors(step, pair);
            let gaps = successors.map(|(s, p)| p - world.estimates.frequency(step, pair, s));
            let needed = after * gaps.map(|gap| gap.max(0.0)).sum::<f64>()
                + (world.truth.cost.data()[row] - world.estimates.mean_cost(row));
            halved += usize::from(0.5 * bonuses.cost < needed);
            alone += usize::from(bonuses.cost / (1.0 + after) < needed);
        }
    }
    assert!(halved > 50 && alone > 50, "{halved} {alone}");
}

fn terms() -> LearningTerms {
    LearningTerms::new(1000, DELTA, ConfidenceRule::Sharp).unwrap()
}

#[test]
fn a_row_never_visited_may_cost_all_that_is_left() {
    let problem = Problem::random([3, 2, 4], 1);
    let mut learner = problem.lp(terms());
    let signals = learner.signals();
    let gap = problem.margin.gap();
    for (row, (cost, reward)) in signals
        .cost
        .data()
        .iter()
        .zip(signals.reward.unwrap().data())
        .enumerate()
    {
        let left = (4 - row / 6) as f64;
        assert!((cost - left).abs() < 1e-300);
        assert!((reward - left * (1.0 + 2.0 * 4.0 / gap)).abs() < 1e-12 * reward);
    }
}

/// The refusal of Algorithm 2.
pub fn without_proof() -> Error {
    let problem = Problem::random([3, 2, 3], 5);
    let (shape, initial) = (problem.model.shape(), problem.model.initial().clone());
    OptPessPrimalDual::new(shape, initial, problem.margin, terms()).unwrap_err()
}

#[test]
fn learners_without_a_proof_refuse_it_by_name() {
    let problem = Problem::random([3, 2, 3], 5);
    let (shape, margin) = (problem.model.shape(), problem.margin);
    let initial = || problem.model.initial().clone();
    let peer = OptCmdp::new(shape, initial(), margin, terms()).unwrap_err();
    let expected = Error::RuleWithoutProof {
        rule: "Sharp",
        learner: "an algorithm to compare with",
    };
    assert_eq!(peer, expected);
    assert_ne!(without_proof(), expected);
}

#[test]
fn observations_outside_the_range_are_refused_and_change_nothing() {
    let problem = Problem::random([2, 2, 2], 3);
    let mut learner = problem.lp(terms());
    learner.next_policy().unwrap();
    let shape = problem.model.shape();
    let episode = |reward, cost| {
        let numbers = |second| vec![0.5, second];
        Trajectory::checked(
            shape,
            vec![0, 1],
            vec![0, 0],
            numbers(reward),
            numbers(cost),
        )
        .unwrap()
    };
    for (reward, cost, name) in [(1.5, 0.0, "rewards[1]"), (0.0, -0.1, "costs[1]")] {
        let refused = learner
            .observe(&episode(reward, cost))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains(name) && refused.contains("[0, 1]"),
            "{refused}"
        );
        assert_eq!(learner.estimates().visits().iter().sum::<u64>(), 0);
    }
    learner.observe(&episode(1.0, 0.0)).unwrap();
    assert_eq!(learner.episodes_observed(), 1);
}
