//! The lemmas of docs/mixing.md on random problems, and what OptPess-Mix does with them. Lemmas about private parts are
//! tested in `learn/portfolio.rs`.

use std::sync::Arc;

use optpess_core::certify::WorstCase;
use optpess_core::confidence::{
    BetaMixture, BoundedMean, ConfidenceSets, EpisodeCost, Observations, OptimisticSets,
    PlausibleRow, SafetyMargin,
};
use optpess_core::error::Error;
use optpess_core::estimate::{FrequencyKernel, Tally};
use optpess_core::evaluate::{Evaluator, evaluate};
use optpess_core::knowledge::{Knowledge, Support};
use optpess_core::learn::{
    Exploration, Learner, LimitedBaseline, Member, MemberPolicy, MixSettings, Mixture, OptPessMix,
    PolicySource,
};
use optpess_core::model::{
    ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, StepKernel,
    TransitionKernel, UnitSignal,
};
use optpess_core::number::from_count;
use optpess_core::plan::{
    ChordSearch, Extended, ExtendedOracle, ExtendedVertex, PlainOracle, Vertex,
};
use optpess_core::policy::{MarkovPolicy, Played};
use optpess_core::shape::Shape;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::Signal;
use optpess_core::trajectory::Trajectory;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::planning::{all_points, best_by_force, small_problems, tradeoff};

/// A problem with any number of costs, and episodes of it played by random policies.
struct World {
    model: ConstrainedMdp,
    episodes: Vec<Trajectory>,
    generator: ChaCha8Rng,
}

fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    generator.random()
}

/// A distribution; some outcomes are impossible.
fn distribution(generator: &mut ChaCha8Rng, len: usize) -> Vec<f64> {
    let sure = (uniform(generator) * len as f64) as usize;
    let mut weights: Vec<f64> = (0..len)
        .map(|place| {
            let zero = place != sure && uniform(generator) < 0.4;
            if zero { 0.0 } else { 0.02 + uniform(generator) }
        })
        .collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

fn random_policy(generator: &mut ChaCha8Rng, shape: Shape) -> MarkovPolicy {
    let rows = shape.horizon() * shape.num_states();
    let data = (0..rows).flat_map(|_| distribution(generator, shape.num_actions()));
    MarkovPolicy::new("policy", shape, data.collect()).unwrap()
}

impl World {
    fn new(seed: u64, [states, actions, horizon]: [usize; 3], num_costs: usize) -> Self {
        let shape = Shape::new(horizon, states, actions).unwrap();
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let rows = (0..shape.pairs()).flat_map(|_| distribution(&mut generator, states));
        let rows: Vec<f64> = rows.collect();
        let kernel = Kernel::dense(states, actions, Slices::Stationary, rows).unwrap();
        let mut signal = |name| {
            let data = (0..shape.pairs())
                .map(|_| uniform(&mut generator))
                .collect();
            UnitSignal::new(name, &[], Signal::stationary(name, shape, data).unwrap()).unwrap()
        };
        let reward = signal("rewards");
        let costs: Vec<_> = (0..num_costs).map(|_| signal("costs")).collect();
        let start = distribution(&mut generator, states);
        let model = ConstrainedMdp::new(
            TransitionKernel::new(Arc::new(kernel)).unwrap(),
            reward,
            costs,
            vec![horizon as f64; num_costs],
            InitialDistribution::new(states, start).unwrap(),
            ObservationNoise::Bernoulli,
        );
        Self {
            model: model.unwrap(),
            episodes: vec![],
            generator,
        }
    }

    /// Plays one episode of each of this many random policies.
    fn play(mut self, episodes: usize) -> Self {
        let shape = self.model.shape();
        let environment = TabularEnvironment::new(&self.model).unwrap();
        let mut streams = Streams::new(self.generator.random(), 0);
        for _ in 0..episodes {
            let policy = random_policy(&mut self.generator, shape);
            let mut seen = Trajectory::zeros(shape, self.model.costs().len()).unwrap();
            environment.rollout(&policy, &mut streams, &mut seen);
            self.episodes.push(seen);
        }
        self
    }

    /// The sets after all episodes, narrowed after every episode for which `refresh` says so.
    fn sets(
        &self,
        knowledge: &Knowledge,
        delta: f64,
        refresh: impl Fn(usize) -> bool,
    ) -> (ConfidenceSets, Tally) {
        let (shape, num_costs) = (self.model.shape(), self.model.costs().len());
        let mut tally = Tally::new(shape, knowledge.stationary, num_costs).unwrap();
        let mut sets =
            ConfidenceSets::new(&tally, knowledge, Observations::Bounded, (delta, 1.0)).unwrap();
        for (episode, seen) in self.episodes.iter().enumerate() {
            let visit = |row, step, _: u64| {
                let costs = (0..num_costs).map(|m| seen.costs()[m * shape.horizon() + step]);
                sets.observe(row, costs).unwrap();
            };
            tally.count(seen, visit).unwrap();
            if refresh(episode) {
                for row in 0..tally.num_rows() {
                    sets.refresh(row, &tally).unwrap();
                }
            }
        }
        (sets, tally)
    }

    /// The sets narrowed once, after all episodes.
    fn fresh_sets(&self, knowledge: &Knowledge, delta: f64) -> (ConfidenceSets, Tally) {
        self.sets(knowledge, delta, |episode| {
            episode + 1 == self.episodes.len()
        })
    }

    fn initial(&self) -> &InitialDistribution {
        self.model.initial()
    }

    /// The true row of a pair as a list.
    fn true_row(&self, pair: usize) -> Vec<(u32, f64)> {
        let states = self.model.shape().num_states();
        let probability = |state| {
            let mut indicator = vec![0.0; states];
            indicator[state] = 1.0;
            self.model.kernel().expectation(0, pair, &indicator)
        };
        (0_u32..).zip((0..states).map(probability)).collect()
    }

    /// Whether the sets contain the true rows and mean costs.
    fn truth_is_in(&self, sets: &ConfidenceSets, tally: &Tally) -> bool {
        (0..tally.num_rows()).all(|row| {
            let (step, pair) = tally.place(row);
            let costs = self.model.costs().iter().enumerate().all(|(m, cost)| {
                let (low, high) = sets.cost(row, m);
                (low..=high).contains(&cost.step(step)[pair])
            });
            costs && (tally.is_last(row) || sets.row(row).contains(&self.true_row(pair)))
        })
    }

    fn value(&self, policy: &MarkovPolicy, signal: &Signal) -> f64 {
        evaluate(policy, signal, self.model.kernel(), self.initial()).unwrap()
    }
}

/// What is declared: steps alike or not, every successor listed or not.
fn knowledge_of(seed: u64) -> Knowledge {
    Knowledge {
        stationary: seed.is_multiple_of(2),
        ..Knowledge::default()
    }
}

/// The ends of a successor's probability.
fn ends(row: &PlausibleRow, state: u32) -> (f64, f64) {
    let listed = row.entries.iter().find(|entry| entry.state == state);
    listed.map_or((0.0, row.unseen), |entry| (entry.lower, entry.upper))
}

/// A row of the set: from the frequencies, or from the first state if there are none, as far as may be towards a random
/// distribution.
fn row_inside(generator: &mut ChaCha8Rng, row: &PlausibleRow, states: usize) -> Vec<f64> {
    let target = distribution(generator, states);
    let mut centre = vec![0.0; states];
    for entry in &row.entries {
        centre[entry.state as usize] = entry.frequency;
    }
    if centre.iter().sum::<f64>() < 0.5 {
        centre.clone_from(&target);
    }
    for halvings in 0..40 {
        let part = 0.5_f64.powi(halvings);
        let pairs = centre.iter().zip(&target);
        let mixed: Vec<f64> = pairs.map(|(c, t)| c + part * (t - c)).collect();
        let listed: Vec<(u32, f64)> = (0..).zip(mixed.iter().copied()).collect();
        if row.contains(&listed) {
            return mixed;
        }
    }
    assert!(row.contains(&(0..).zip(centre.iter().copied()).collect::<Vec<_>>()));
    centre
}

fn dense(shape: Shape, rows: Vec<f64>) -> Kernel {
    let [horizon, states, actions] = shape.sizes();
    Kernel::dense(states, actions, Slices::PerStep(horizon), rows).unwrap()
}

/// c_up or c_low as a signal.
fn cost_ends(sets: &ConfidenceSets, tally: &Tally, constraint: usize, upper: bool) -> Signal {
    let end = |row| {
        let (low, high) = sets.cost(row, constraint);
        if upper { high } else { low }
    };
    tally.signal("ends", end).unwrap()
}

/// Lemma 3: the recursion bounds the value of every policy in every plausible problem, from above and below.
#[test]
fn the_worst_case_bounds_every_plausible_problem() {
    let mut near = 0;
    for seed in 0..120 {
        let sizes = [
            2 + seed as usize % 5,
            1 + seed as usize % 3,
            1 + seed as usize % 4,
        ];
        let mut world = World::new(seed, sizes, 1).play(1 << (seed % 13));
        let (shape, delta) = (world.model.shape(), [0.9, 0.05][seed as usize % 2]);
        let (sets, tally) = world.fresh_sets(&knowledge_of(seed / 2), delta);
        let mut evaluator = WorstCase::new(shape).unwrap();
        for _ in 0..6 {
            let policy = random_policy(&mut world.generator, shape);
            let (mut rows, mut costs) = (vec![], vec![]);
            for place in 0..shape.triples() {
                let row = tally.row(place / shape.pairs(), place % shape.pairs());
                let (states, generator) = (shape.num_states(), &mut world.generator);
                rows.extend(if tally.is_last(row) {
                    distribution(generator, states)
                } else {
                    row_inside(generator, sets.row(row), states)
                });
                let (low, high) = sets.cost(row, 0);
                costs.push(low + uniform(generator) * (high - low));
            }
            let costs = Signal::new("costs", shape, costs).unwrap();
            let value = evaluate(&policy, &costs, &dense(shape, rows), world.initial()).unwrap();
            let played = Played::Policy(&policy);
            let upper = evaluator.upper(played, (&sets, &tally), 0, world.initial());
            let lower = evaluator.lower(played, (&sets, &tally), 0, world.initial());
            assert!(
                lower <= value && value <= upper,
                "{seed}: {lower} {value} {upper}"
            );
            near += usize::from(upper - lower < 0.5 * shape.horizon() as f64);
        }
    }
    assert!(near > 100, "the bounds say nothing: {near}");
}

/// Lemma 3: with two states the bounds are the extremes over all kernels whose rows are ends of their boxes.
#[test]
fn with_two_states_the_bounds_are_the_extremes_over_all_vertices() {
    for seed in 0..60 {
        let sizes = [2, 1 + seed as usize % 2, 2 + seed as usize % 2];
        let mut world = World::new(seed, sizes, 1).play(5 + 3 * seed as usize);
        let shape = world.model.shape();
        let (sets, tally) = world.fresh_sets(&Knowledge::default(), 0.5);
        let policy = random_policy(&mut world.generator, shape);
        let free = (shape.horizon() - 1) * shape.pairs();
        let (mut most, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
        for choice in 0..1_u32 << free {
            let rows = (0..shape.triples()).flat_map(|place| {
                if place >= free {
                    return [1.0, 0.0];
                }
                let row = sets.row(tally.row(place / shape.pairs(), place % shape.pairs()));
                assert!(
                    !row.ball.radius().is_finite(),
                    "a row with two successors has no ball"
                );
                let ((low, high), (other_low, other_high)) = (ends(row, 0), ends(row, 1));
                let p = if choice >> place & 1 == 0 {
                    low.max(1.0 - other_high)
                } else {
                    high.min(1.0 - other_low)
                };
                [p, 1.0 - p]
            });
            let kernel = dense(shape, rows.collect());
            let value = |upper| {
                let signal = cost_ends(&sets, &tally, 0, upper);
                evaluate(&policy, &signal, &kernel, world.initial()).unwrap()
            };
            (most, least) = (most.max(value(true)), least.min(value(false)));
        }
        let mut evaluator = WorstCase::new(shape).unwrap();
        let played = Played::Policy(&policy);
        let upper = evaluator.upper(played, (&sets, &tally), 0, world.initial());
        let lower = evaluator.lower(played, (&sets, &tally), 0, world.initial());
        assert!((upper - most).abs() < 1e-11, "{seed}: {upper} {most}");
        assert!((lower - least).abs() < 1e-11, "{seed}: {lower} {least}");
    }
}

/// All orders of a few states.
fn orders(states: usize) -> Vec<Vec<usize>> {
    if states == 0 {
        return vec![vec![]];
    }
    let shorter = orders(states - 1).into_iter();
    shorter
        .flat_map(|order| {
            (0..states).map(move |place| {
                let mut longer = order.clone();
                longer.insert(place, states - 1);
                longer
            })
        })
        .collect()
}

/// The vertices of the box of a row within the simplex: in some order, every state gets as much as may be.
fn vertices(row: &PlausibleRow, states: usize) -> Vec<Vec<f64>> {
    let all: Vec<(f64, f64)> = (0..states as u32).map(|state| ends(row, state)).collect();
    let unassigned = 1.0 - all.iter().map(|(low, _)| low).sum::<f64>();
    let fill = |order: Vec<usize>| {
        let (mut rest, mut filled) = (unassigned, vec![0.0; states]);
        for state in order {
            let given = rest.min(all[state].1 - all[state].0).max(0.0);
            filled[state] = all[state].0 + given;
            rest -= given;
        }
        filled
    };
    orders(states).into_iter().map(fill).collect()
}

/// Lemma 3: the kernel that is returned lies in the boxes and attains the largest value over all their vertices.
#[test]
fn the_worst_kernel_lies_in_the_boxes_and_attains_their_largest_value() {
    let mut smaller = 0;
    for seed in 0..80 {
        let sizes = [
            1 + seed as usize % 5,
            1 + seed as usize % 2,
            2 + seed as usize % 3,
        ];
        let mut world = World::new(seed, sizes, 1).play(4 * seed as usize);
        let (shape, states) = (world.model.shape(), sizes[0]);
        let (sets, tally) = world.fresh_sets(&knowledge_of(seed), 0.5);
        let policy = random_policy(&mut world.generator, shape);
        let mut evaluator = WorstCase::new(shape).unwrap();
        let (value, mut rows) = evaluator
            .worst_kernel(&policy, (&sets, &tally), 0, world.initial())
            .unwrap();
        let costs = cost_ends(&sets, &tally, 0, true);
        let mut next = vec![0.0; states];
        for step in (0..shape.horizon()).rev() {
            let mut here = vec![0.0; states];
            for pair in 0..shape.pairs() {
                let mut q = costs.step(step)[pair];
                if step + 1 < shape.horizon() {
                    let row = sets.row(tally.row(step, pair));
                    let found = &rows[(step * shape.pairs() + pair) * states..][..states];
                    assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-11);
                    for (state, p) in (0..).zip(found) {
                        let (low, high) = ends(row, state);
                        assert!(low - 1e-12 <= *p && *p <= high + 1e-12, "{seed}");
                    }
                    let expectation = |vertex: Vec<f64>| -> f64 {
                        vertex.iter().zip(&next).map(|(p, v)| p * v).sum()
                    };
                    let all = vertices(row, states).into_iter().map(expectation);
                    q += all.fold(f64::NEG_INFINITY, f64::max);
                }
                here[pair / shape.num_actions()] += policy.step(step)[pair] * q;
            }
            next = here;
        }
        let by_force = world.initial().expectation(&next);
        assert!(
            (value - by_force).abs() < 1e-11,
            "{seed}: {value} {by_force}"
        );
        rows.resize(shape.triples() * states, 1.0 / states as f64);
        let attained = evaluate(&policy, &costs, &dense(shape, rows), world.initial()).unwrap();
        assert!(
            (value - attained).abs() < 1e-11,
            "{seed}: {value} {attained}"
        );
        let played = Played::Policy(&policy);
        let upper = evaluator.upper(played, (&sets, &tally), 0, world.initial());
        assert!(upper <= value + 1e-11, "{seed}: {upper} {value}");
        smaller += usize::from(upper < value - 1e-6);
    }
    assert!(smaller > 5, "the balls never helped: {smaller}");
}

/// Lemma 3: unseen successors that share one end are the same as successors that are all listed.
#[test]
fn lists_of_seen_successors_give_the_bounds_of_full_rows() {
    for seed in 0..80 {
        let sizes = [1 + seed as usize % 7, 2, 1 + seed as usize % 4];
        let mut world = World::new(seed, sizes, 1).play(2 * seed as usize);
        let shape = world.model.shape();
        let knowledge = knowledge_of(seed);
        let mask = vec![true; shape.pairs() * sizes[0]];
        let listed = Knowledge {
            support: Some(Support::new(shape, &mask).unwrap()),
            ..knowledge.clone()
        };
        let (sets, tally) = world.sets(&knowledge, 0.3, |_| true);
        let (full, _) = world.sets(&listed, 0.3, |_| true);
        let mut evaluator = WorstCase::new(shape).unwrap();
        for _ in 0..3 {
            let policy = random_policy(&mut world.generator, shape);
            let played = Played::Policy(&policy);
            let initial = world.initial();
            let upper =
                [&sets, &full].map(|sets| evaluator.upper(played, (sets, &tally), 0, initial));
            let lower =
                [&sets, &full].map(|sets| evaluator.lower(played, (sets, &tally), 0, initial));
            assert!((upper[0] - upper[1]).abs() < 1e-11, "{seed}: {upper:?}");
            assert!((lower[0] - lower[1]).abs() < 1e-11, "{seed}: {lower:?}");
        }
    }
}

/// Lemma 5: linearised at a policy, the certificate is a value on P-hat, rows without a visit included.
#[test]
fn the_linearised_cost_of_a_policy_is_its_worst_case() {
    let mut unvisited = 0;
    for seed in 0..150 {
        let sizes = [
            1 + seed as usize % 6,
            1 + seed as usize % 3,
            1 + seed as usize % 5,
        ];
        let mut world = World::new(seed, sizes, 2).play(3 * (seed as usize % 20));
        let shape = world.model.shape();
        let (sets, tally) = world.fresh_sets(&knowledge_of(seed), 0.2);
        unvisited += (0..tally.num_rows())
            .filter(|&row| tally.visits(row) == 0)
            .count();
        let mut kernel = FrequencyKernel::default();
        kernel.refresh(&tally);
        let mut evaluator = WorstCase::new(shape).unwrap();
        let mut plain = Evaluator::new(shape).unwrap();
        for m in 0..2 {
            let policy = random_policy(&mut world.generator, shape);
            let mut signal = vec![0.0; shape.triples()];
            let expectation = |step, pair, next: &[f64]| kernel.expectation(step, pair, next);
            evaluator.linearise(&policy, (&sets, &tally), m, expectation, &mut signal);
            let signal = Signal::new("c_up + b", shape, signal).unwrap();
            let value = plain.evaluate(&policy, &signal, &kernel, world.initial());
            let played = Played::Policy(&policy);
            let upper = evaluator.upper(played, (&sets, &tally), m, world.initial());
            let error = (value - upper).abs();
            assert!(
                error <= 1e-12 * shape.horizon() as f64,
                "{seed}: {value} {upper}"
            );
        }
    }
    assert!(unvisited > 100);
}

fn members(weights: &[f64], bounds: &[Vec<f64>]) -> Vec<Member> {
    let shape = Shape::new(1, 1, 1).unwrap();
    let policy = Arc::new(MemberPolicy::deterministic(shape, &[0]).unwrap());
    let each = (0..).zip(weights).zip(bounds);
    let member = |((number, &weight), bounds): ((u64, &f64), &Vec<f64>)| Member {
        number,
        source: PolicySource::Bold,
        weight,
        cost_bounds: bounds.clone(),
        policy: policy.clone(),
    };
    each.map(member).collect()
}

/// Lemma 2: a mixture exists if and only if its weighted bounds are within every limit.
#[test]
fn a_mixture_above_a_limit_is_refused() {
    let mut generator = ChaCha8Rng::seed_from_u64(7);
    let (mut made, mut refused) = (0, 0);
    for case in 0..2000 {
        let (count, num_costs) = (1 + case % 5, 1 + case % 3);
        let weights = distribution(&mut generator, count);
        let mut numbers =
            |len: usize| -> Vec<f64> { (0..len).map(|_| 3.0 * uniform(&mut generator)).collect() };
        let bounds: Vec<Vec<f64>> = (0..count).map(|_| numbers(num_costs)).collect();
        let limits = numbers(num_costs);
        let cost = |m: usize| -> f64 { weights.iter().zip(&bounds).map(|(w, b)| w * b[m]).sum() };
        let within = (0..num_costs).all(|m| cost(m) <= limits[m]);
        match Mixture::new(1, members(&weights, &bounds), limits.clone()) {
            Ok(mixture) => {
                assert!(within, "{case}");
                assert!(
                    mixture
                        .cost_bounds()
                        .iter()
                        .zip(&limits)
                        .all(|(b, l)| b <= l)
                );
                made += 1;
            }
            Err(error) => {
                assert!(
                    !within && matches!(error, Error::CertificateFailed { .. }),
                    "{case}"
                );
                refused += 1;
            }
        }
    }
    assert!(made > 300 && refused > 300, "{made} {refused}");
    let cheap = [vec![0.1], vec![0.1]];
    for weights in [[0.5, 0.4], [0.7, 0.7], [1.5, -0.5], [f64::NAN, 0.5]] {
        assert!(
            Mixture::new(1, members(&weights, &cheap), vec![1.0]).is_err(),
            "{weights:?}"
        );
    }
    let unknown = [vec![0.1], vec![f64::NAN]];
    assert!(Mixture::new(1, members(&[0.5, 0.5], &unknown), vec![1.0]).is_err());
}

fn settings(seed: u64, knowledge: Knowledge) -> MixSettings {
    MixSettings {
        radius_factor: 1.0,
        failure_probability: 0.01,
        knowledge,
        observations: Observations::Bounded,
        exploration: Exploration::default(),
        replan_growth: 0.3,
        seed,
    }
}

impl World {
    /// A safe policy and limits half way between its costs and the horizon's third.
    fn baseline(&mut self, is_known: bool) -> LimitedBaseline {
        let shape = self.model.shape();
        let policy = random_policy(&mut self.generator, shape);
        let margins: Vec<SafetyMargin> = self
            .model
            .costs()
            .iter()
            .map(|cost| {
                let safe = self.value(&policy, cost);
                SafetyMargin::new(safe + 0.1 * (shape.horizon() as f64 - safe), safe).unwrap()
            })
            .collect();
        if is_known {
            return LimitedBaseline::new(policy, &margins).unwrap();
        }
        let limits: Vec<f64> = margins.iter().map(SafetyMargin::cost_limit).collect();
        LimitedBaseline::estimated(policy, &limits).unwrap()
    }

    fn learner(&mut self, seed: u64, is_known: bool) -> OptPessMix {
        let baseline = self.baseline(is_known);
        let settings = settings(seed, knowledge_of(seed));
        OptPessMix::new(self.initial().clone(), baseline, settings).unwrap()
    }

    /// Lets learners play the same episodes side by side; `check` sees them after each deployment.
    fn run<const N: usize>(
        &self,
        learners: &mut [OptPessMix; N],
        streams: &mut Streams,
        episodes: usize,
        mut check: impl FnMut(&mut [OptPessMix; N]),
    ) {
        let environment = TabularEnvironment::new(&self.model).unwrap();
        let num_costs = self.model.costs().len();
        let mut seen = Trajectory::zeros(self.model.shape(), num_costs).unwrap();
        for _ in 0..episodes {
            for learner in learners.iter_mut() {
                learner.next_policy().unwrap();
            }
            check(learners);
            environment.rollout(learners[0].policy(), streams, &mut seen);
            for learner in learners.iter_mut() {
                learner.observe(&seen).unwrap();
            }
        }
    }
}

/// Theorem 1: every mixture that is deployed is within every limit, by its certificates and by the truth.
#[test]
fn deployed_mixtures_are_within_every_limit() {
    let mut planned = 0;
    for seed in 0..12 {
        let num_costs = 1 + seed as usize % 3;
        let mut world = World::new(100 + seed, [3, 2, 3], num_costs);
        let mut learners = [world.learner(seed, seed % 4 != 3)];
        let mut last = None;
        world.run(
            &mut learners,
            &mut Streams::new(seed, 0),
            1500,
            |[learner]| {
                let mixture = learner.mixture().unwrap();
                if last == Some(mixture.number()) {
                    return;
                }
                last = Some(mixture.number());
                let total: f64 = mixture.members().iter().map(|member| member.weight).sum();
                assert!((total - 1.0).abs() <= 1e-12);
                for (m, cost) in world.model.costs().iter().enumerate() {
                    let weigh = |of: &dyn Fn(&Member) -> f64| -> f64 {
                        mixture
                            .members()
                            .iter()
                            .map(|member| member.weight * of(member))
                            .sum()
                    };
                    let certified = weigh(&|member| member.cost_bounds[m]);
                    let truth = weigh(&|member| world.value(member.policy.policy(), cost));
                    let limit = mixture.limits()[m];
                    assert!(truth <= certified + 1e-12 && certified <= limit, "{seed}");
                }
                planned += usize::from(mixture.planned_weight() > 0.2);
            },
        );
    }
    assert!(
        planned > 200,
        "nothing but the baseline is played: {planned}"
    );
}

/// Lemma 4: bounds from episodes that were seen before a candidate was chosen fail; from later ones they do not.
#[test]
fn episodes_before_a_trial_must_not_count() {
    let (mut all, mut later) = (0, 0);
    for seed in 0..300 {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut play = |cost: &mut EpisodeCost| {
            cost.observe(f64::from(u8::from(uniform(&mut generator) < 0.5)))
                .unwrap();
        };
        let bound = || EpisodeCost::new(1.0, 1, Observations::Bounded, 0.1).unwrap();
        let mut candidates: Vec<EpisodeCost> = (0..40).map(|_| bound()).collect();
        for candidate in &mut candidates {
            for _ in 0..64 {
                play(candidate);
            }
        }
        let by_bound = |a: &EpisodeCost, b: &EpisodeCost| a.upper().total_cmp(&b.upper());
        let mut luckiest = candidates.into_iter().min_by(by_bound).unwrap();
        let mut fresh = bound();
        for _ in 0..64 {
            play(&mut luckiest);
            play(&mut fresh);
        }
        all += usize::from(luckiest.upper() < 0.5);
        later += usize::from(fresh.upper() < 0.5);
    }
    assert!(all > 60 && later < 30, "{all} {later} of 300");
}

/// Lemma 1: the levels of all sequences add up to what the sets may fail with.
#[test]
fn the_levels_of_all_sequences_add_up_to_delta() {
    for seed in 0..60 {
        let sizes = [
            1 + seed as usize % 5,
            1 + seed as usize % 3,
            1 + seed as usize % 4,
        ];
        let num_costs = 1 + seed as usize % 3;
        let world = World::new(seed, sizes, num_costs);
        let shape = world.model.shape();
        let costs = world.model.costs().to_vec();
        let mask = (0..shape.pairs()).flat_map(|pair| world.true_row(pair));
        let mask: Vec<bool> = mask.map(|(_, p)| p > 0.0).collect();
        let knowledge = Knowledge {
            stationary: seed.is_multiple_of(2),
            rewards: None,
            costs: (seed % 3 == 0).then_some(costs),
            support: (seed % 5 < 2).then(|| Support::new(shape, &mask).unwrap()),
        };
        let (sets, tally) = world.sets(&knowledge, 0.02, |_| false);
        let unknown = if knowledge.costs.is_some() {
            0
        } else {
            num_costs
        };
        let mut total = 0.0;
        for row in 0..tally.num_rows() {
            let (step, pair) = tally.place(row);
            let possible = match &knowledge.support {
                Some(support) => support.successors(step, pair).len(),
                None => sizes[0],
            };
            let successors = if tally.is_last(row) { 0 } else { possible };
            let levels = sets.levels(row);
            // Counted here once more: one level a cost; one an entry, or one for two entries; one a ball.
            let (entries, balls) = match successors {
                0 | 1 => (0.0, 0.0),
                2 => (1.0, 0.0),
                more => (more as f64, 1.0),
            };
            let own = levels.cost * unknown as f64 + levels.entry * entries + levels.ball * balls;
            assert!(
                own <= 0.02 / tally.num_rows() as f64 * (1.0 + 1e-12),
                "{seed} {row}"
            );
            total += own;
        }
        assert!(total <= 0.02 * (1.0 + 1e-12), "{seed}: {total}");
        let nothing_is_known = unknown > 0;
        assert!(!nothing_is_known || total > 0.0199, "{seed}: {total}");
    }
}

/// Lemma 1: if the sets of all times contain the truth, so does their intersection, and it is no wider than the last.
#[test]
fn the_intersection_over_time_keeps_the_truth() {
    let (mut kept, mut narrower) = (0, 0);
    for seed in 0..60 {
        let sizes = [
            2 + seed as usize % 4,
            1 + seed as usize % 2,
            1 + seed as usize % 3,
        ];
        let world = World::new(seed, sizes, 1).play(40);
        let knowledge = knowledge_of(seed);
        let delta = 0.9; // narrow sets, of which some lose the truth
        let each_contains = (0..40).all(|last| {
            let (sets, tally) = world.sets_until(&knowledge, delta, last);
            world.truth_is_in(&sets, &tally)
        });
        let (sets, tally) = world.sets(&knowledge, delta, |_| true);
        let (latest, _) = world.fresh_sets(&knowledge, delta);
        if !each_contains {
            continue;
        }
        kept += 1;
        assert!(world.truth_is_in(&sets, &tally), "{seed}");
        for row in 0..tally.num_rows() {
            let (low, high) = sets.cost(row, 0);
            let (latest_low, latest_high) = latest.cost(row, 0);
            assert!(low >= latest_low && high <= latest_high);
            for state in 0..sizes[0] as u32 {
                let (low, high) = ends(sets.row(row), state);
                let (latest_low, latest_high) = ends(latest.row(row), state);
                assert!(low >= latest_low && high <= latest_high);
                narrower += usize::from(high < latest_high);
            }
        }
    }
    assert!(kept > 20 && narrower > 20, "{kept} {narrower}");
}

impl World {
    /// The sets after the episodes up to `last`, narrowed once.
    fn sets_until(
        &self,
        knowledge: &Knowledge,
        delta: f64,
        last: usize,
    ) -> (ConfidenceSets, Tally) {
        let part = World {
            model: self.model.clone(),
            episodes: self.episodes[..=last].to_vec(),
            generator: ChaCha8Rng::seed_from_u64(0),
        };
        part.fresh_sets(knowledge, delta)
    }

    /// The least threshold of a few at which optimistic sets contain the truth.
    fn containing_threshold(&self, tally: &Tally) -> f64 {
        let contains = |threshold: f64| {
            let sequence = BetaMixture::from_threshold(threshold, 0.0).unwrap();
            let covers = |visits: u64, sum: f64, mean: f64| {
                let (low, high) = sequence.interval(from_count(visits), sum);
                low <= mean && mean <= high
            };
            (0..tally.num_rows()).all(|row| {
                let (step, pair) = tally.place(row);
                let visits = tally.visits(row);
                let reward = self.model.reward().step(step)[pair];
                let costs = self.model.costs().iter().enumerate();
                covers(visits, tally.reward_sum(row), reward)
                    && costs.into_iter().all(|(m, cost)| {
                        covers(visits, tally.cost_sum(row, m), cost.step(step)[pair])
                    })
                    && self.true_row(pair).into_iter().all(|(state, p)| {
                        let mut seen = tally.successors(row).iter();
                        let count = seen.find(|(other, _)| *other == state);
                        let count = count.map_or(0, |(_, count)| *count);
                        covers(tally.draws(row), from_count(count), p)
                    })
            })
        };
        let mut threshold = 0.25;
        while !contains(threshold) {
            threshold *= 1.5;
        }
        threshold
    }
}

/// Lemma 9: if the optimistic sets contain the truth, the explorer's value is at least that of every policy within all
/// limits, whatever the weights of the constraints.
#[test]
fn the_explorer_is_optimistic_for_any_weights_of_the_constraints() {
    let mut informative = 0;
    for seed in 0..100 {
        let num_costs = 1 + seed as usize % 3;
        let sizes = [2 + seed as usize % 3, 2, 1 + seed as usize % 4];
        let mut world = World::new(seed, sizes, num_costs).play(1 << (seed % 11));
        let shape = world.model.shape();
        let knowledge = knowledge_of(seed);
        let (_, tally) = world.sets(&knowledge, 0.5, |_| false);
        let threshold = world.containing_threshold(&tally);
        let mut optimism = OptimisticSets::new(&tally, threshold).unwrap();
        for row in 0..tally.num_rows() {
            optimism.refresh(row, &tally, &knowledge);
        }
        let reward = optimism.reward(&tally).unwrap();
        let mut search = ChordSearch::<ExtendedVertex>::new(shape).unwrap();
        for _ in 0..4 {
            // A policy that meets all limits exactly; the best one is at least as good.
            let policy = random_policy(&mut world.generator, shape);
            let value = world.value(&policy, world.model.reward());
            let costs = world.model.costs().iter();
            let limits: Vec<f64> = costs.map(|cost| world.value(&policy, cost)).collect();
            let mut weights: Vec<f64> = (0..num_costs)
                .map(|_| 10_f64.powf(-3.0 * uniform(&mut world.generator)))
                .collect();
            if num_costs > 1 && seed % 7 == 0 {
                weights[0] = 0.0;
            }
            let cost = optimism.weighted_cost(&tally, &weights).unwrap();
            let problem = Extended {
                reward: &reward,
                cost: &cost,
                kernels: optimism.kernels(),
                initial: world.initial(),
            };
            let mut oracle = ExtendedOracle::new(&problem).unwrap();
            let limit: f64 = weights
                .iter()
                .zip(&limits)
                .map(|(y, limit)| y * limit)
                .sum();
            let found = search.solve(&mut oracle, limit).unwrap();
            assert!(
                found.value >= value - 1e-9,
                "{seed}: {} {value}",
                found.value
            );
            informative += usize::from(found.value < 0.95 * shape.horizon() as f64);
        }
    }
    assert!(informative > 50, "the sets say nothing: {informative}");
}

/// Lemma 10: how wide the sets are, as the regret needs it.
#[test]
fn the_sets_are_as_narrow_as_the_regret_needs() {
    let mut generator = ChaCha8Rng::seed_from_u64(3);
    for case in 0..150 {
        let count = 1 + 10_f64.powf(4.5 * uniform(&mut generator)) as usize;
        let level = 10_f64.powf(-7.0 * uniform(&mut generator) - 0.1);
        let mean = uniform(&mut generator);
        let (mut bounded, n) = (BoundedMean::new(), count as f64);
        let mut sum = 0.0;
        for _ in 0..count {
            let drawn = uniform(&mut generator);
            let x = if case % 2 == 0 {
                f64::from(u8::from(drawn < mean))
            } else {
                drawn
            };
            bounded.observe(x).unwrap();
            sum += x;
        }
        let t = (1.0 / level).ln() + (1.0_f64 / 0.03).ln();
        let width = 2.2 * (t / n).sqrt();
        assert!(bounded.upper(level) - sum / n <= width, "{case}");
        assert!(sum / n - bounded.lower(level) <= width, "{case}");
        // n kl(x/n, p) <= l, so an end is within sqrt(2 max(p, x/n) l/n) of the frequency.
        let l = (1.0 / level).ln() + 2.0 * 2.0_f64.ln() + 0.5 * n.ln();
        let sequence = BetaMixture::with_endpoint_mass(level, 0.5).unwrap();
        for sum in [sum, 0.0, n, (0.1 * n).floor(), 0.5] {
            let (low, high) = sequence.interval(n, sum);
            let frequency = sum / n;
            let room = |end: f64| (2.0 * end.max(frequency) * l / n).sqrt() * (1.0 + 1e-9);
            assert!(high - frequency <= room(high), "{case} {sum} {n}");
            assert!(frequency - low <= room(low), "{case} {sum} {n}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lemma 6: the chord with a partner finds the best mixture of all deterministic policies and the partner.
    #[test]
    fn the_tangent_from_the_partner_is_the_best_mixture_with_it(
        problem in small_problems(), place in -0.3..1.2_f64, below in 0.0..1.0_f64, height in 0.0..=1.0_f64,
    ) {
        let kernel = problem.dense(0);
        let mut points = all_points(&problem, &kernel);
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let numbers = points.iter().map(of);
            numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
        };
        let ((least, most), (poorest, best)) = (ends(|point| point.0), ends(|point| point.1));
        let range = (most - least).max(0.1);
        let limit = least + 1e-9 + place * range;
        // Cheap or just within the limit; poor or as good as the best policy.
        let partner = [limit - 1e-3 - below * range, poorest + height * (best - poorest)];
        let posed = tradeoff(&problem, &kernel);
        let mut oracle = PlainOracle::new(&posed).unwrap();
        let mut search = ChordSearch::<Vertex>::new(problem.shape).unwrap();
        let found = search.solve_with_partner(&mut oracle, limit, partner).unwrap();
        points.push((partner[0], partner[1]));
        let expected = best_by_force(&points, limit);
        let slope = (best - poorest) / 1e-3;
        let width = 1e-10 + 1e-13 * slope.max(1.0) * range;
        prop_assert!((found.value - expected).abs() <= width, "{} against {expected}", found.value);
        // The ends that belong to the answer and the partner give this value.
        let mut used = vec![];
        let chord = search.chord();
        if found.below { used.push((chord.below().cost(), chord.below().reward())); }
        else { used.push((partner[0], partner[1])); }
        if found.above { used.push((chord.above().cost(), chord.above().reward())); }
        prop_assert!((best_by_force(&used, limit) - found.value).abs() <= width);
        // An end that belongs to the answer is the point of its own actions, not that of the partner.
        for (belongs, end) in [(found.below, chord.below()), (found.above, chord.above())] {
            if belongs {
                let policy = end.policy(problem.shape).unwrap();
                let value = |which: usize| {
                    evaluate(&policy, &problem.signals[which], &kernel, &problem.initial).unwrap()
                };
                prop_assert!((value(1) - end.cost()).abs() + (value(0) - end.reward()).abs() < 1e-11);
            }
        }
    }
}

/// A learner that was stored goes on as the original does.
#[test]
fn a_stored_learner_goes_on_as_the_original() {
    for seed in 0..8 {
        let num_costs = 1 + seed as usize % 2;
        let mut world = World::new(200 + seed, [4, 2, 3], num_costs);
        let learner = world.learner(seed, seed % 4 != 3);
        let (mut streams, mut learners) = (Streams::new(seed, 0), [learner]);
        // In the middle of an interval between two plans, and after an observation.
        world.run(
            &mut learners,
            &mut streams,
            137 + 50 * seed as usize,
            |_| {},
        );
        let [original] = learners;
        let stored = postcard::to_stdvec(&original).unwrap();
        let restored: OptPessMix = postcard::from_bytes(&stored).unwrap();
        let copy = original.clone();
        let mut learners = [original, restored, copy];
        let mut mixtures = 0;
        world.run(&mut learners, &mut streams, 400, |learners| {
            let [original, others @ ..] = learners;
            for other in others {
                assert_eq!(original.mixture(), other.mixture());
            }
            mixtures = original.mixture().unwrap().number();
        });
        let [original, restored, copy] = learners;
        let bytes = |learner: &OptPessMix| postcard::to_stdvec(learner).unwrap();
        assert_eq!(bytes(&original), bytes(&restored));
        assert_eq!(bytes(&original), bytes(&copy));
        assert!(mixtures > 5);
    }
}

/// An episode of two steps with one action and these states and costs.
fn episode(states: [u32; 2], costs: [f64; 2]) -> Trajectory {
    let shape = Shape::new(2, 2, 1).unwrap();
    Trajectory::checked(
        shape,
        states.to_vec(),
        vec![0; 2],
        vec![0.5; 2],
        costs.to_vec(),
    )
    .unwrap()
}

fn small_learner(knowledge: Knowledge) -> OptPessMix {
    let shape = Shape::new(2, 2, 1).unwrap();
    let policy = MarkovPolicy::deterministic(shape, &[0; 4]).unwrap();
    let margin = SafetyMargin::new(1.5, 1.0).unwrap();
    let baseline = LimitedBaseline::new(policy, &[margin]).unwrap();
    let initial = InitialDistribution::new(2, vec![0.5, 0.5]).unwrap();
    OptPessMix::new(initial, baseline, settings(0, knowledge)).unwrap()
}

/// Bad episodes are refused by name and change nothing.
#[test]
fn bad_episodes_are_refused_and_change_nothing() {
    let shape = Shape::new(2, 2, 1).unwrap();
    let mask = [true, false, true, true];
    let knowledge = Knowledge {
        support: Some(Support::new(shape, &mask).unwrap()),
        ..Knowledge::default()
    };
    let mut learner = small_learner(knowledge);
    let good = episode([0, 0], [0.0, 1.0]);
    let refused = |learner: &mut OptPessMix, seen: &Trajectory, expected: &str| {
        let before = format!("{learner:?}");
        let stored = postcard::to_stdvec(&*learner).unwrap();
        let message = learner.observe(seen).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert_eq!(before, format!("{learner:?}"));
        assert_eq!(stored, postcard::to_stdvec(&*learner).unwrap());
    };
    refused(&mut learner, &good, "next_policy"); // out of turn
    for _ in 0..5 {
        learner.next_policy().unwrap();
        let before = postcard::to_stdvec(&learner).unwrap();
        assert!(matches!(
            learner.next_policy(),
            Err(Error::OutOfTurn { .. })
        ));
        assert_eq!(before, postcard::to_stdvec(&learner).unwrap());
        for seen in [
            Trajectory::zeros(Shape::new(2, 3, 1).unwrap(), 1).unwrap(),
            Trajectory::zeros(Shape::new(3, 2, 1).unwrap(), 1).unwrap(),
            Trajectory::zeros(Shape::new(1, 2, 1).unwrap(), 1).unwrap(),
        ] {
            refused(&mut learner, &seen, "the episode has shape");
        }
        refused(
            &mut learner,
            &Trajectory::zeros(shape, 2).unwrap(),
            "costs has shape [2, 2]",
        );
        refused(
            &mut learner,
            &episode([0, 0], [0.0, 1.25]),
            "costs[0, 1] is 1.25",
        );
        refused(
            &mut learner,
            &episode([0, 0], [-0.5, 1.0]),
            "costs[0, 0] is -0.5",
        );
        refused(
            &mut learner,
            &episode([0, 1], [0.0, 1.0]),
            "support[0, 0, 0, 1]",
        );
        learner.observe(&good).unwrap();
        refused(&mut learner, &good, "next_policy");
    }
}

/// Declared means that the observations contradict are refused by name, and stay refused.
#[test]
fn contradicted_means_are_refused_by_name() {
    let shape = Shape::new(2, 2, 1).unwrap();
    let signal = |value: f64| Signal::new("declared", shape, vec![value; 4]).unwrap();
    let cases = [
        (Some(signal(0.01)), None, "rewards[0, 0, 0]"),
        (None, Some(vec![signal(0.99)]), "costs[0, 0, 0]"),
        (Some(signal(0.5)), Some(vec![signal(0.0)]), ""),
    ];
    for (rewards, costs, expected) in cases {
        let knowledge = Knowledge {
            rewards,
            costs,
            ..Knowledge::default()
        };
        let mut learner = small_learner(knowledge);
        let mut refusal = None;
        for _ in 0..2000 {
            if let Err(error) = learner.next_policy() {
                assert!(
                    matches!(error, Error::KnowledgeContradicted { .. }),
                    "{error}"
                );
                refusal = Some(error.to_string());
                break;
            }
            learner.observe(&episode([0, 0], [0.0, 0.0])).unwrap();
        }
        let message = refusal.unwrap_or_default();
        assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
        assert!(message.contains(expected), "{message}");
        if !expected.is_empty() {
            assert_eq!(learner.next_policy().unwrap_err().to_string(), message);
        }
    }
}
