//! The lemmas behind the promises, on estimates built inside the good event: any truth, any policy, any
//! estimates within their radius, and zero rows where nothing was seen.

use optpess_core::confidence::constants::{confidence_radius, cost_bonus_scale, log_factor};
use optpess_core::confidence::{
    ConfidenceRule, LearningTerms, OptimisticCost, OptimisticReward, PessimisticCost, SafetyMargin,
};
use optpess_core::evaluate::evaluate;
use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::number::{MAX_COUNT, from_count};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::problems::{distribution, kernel_rows, shapes};

/// 512 worlds a lemma; a failure is reported in full, so nothing is written beside the sources.
fn settings() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// What rounding may do to values that are sums of numbers of this size.
fn rounding(largest: f64) -> f64 {
    1e-12 * largest.max(1.0)
}

/// A truth, estimates of it, and a policy.
#[derive(Debug, Clone)]
struct World {
    shape: Shape,
    initial: InitialDistribution,
    policy: MarkovPolicy,
    truth: Rows,
    estimate: Rows,
    visits: Vec<u64>, // [H, S, A]
    num_episodes: u64,
    delta: f64,
}

/// A kernel and two signals.
#[derive(Debug, Clone)]
struct Rows {
    kernel: Vec<f64>,  // [H, S, A, S]
    rewards: Vec<f64>, // [H, S, A]
    costs: Vec<f64>,   // [H, S, A]
}

impl World {
    fn terms(&self) -> LearningTerms {
        LearningTerms::new(self.num_episodes, self.delta, ConfidenceRule::Theorem).unwrap()
    }

    /// V(signal, kernel) from the start.
    fn value(&self, signal: &[f64], kernel: &[f64]) -> f64 {
        let [horizon, states, actions] = self.shape.sizes();
        let slices = Slices::PerStep(horizon);
        let kernel = Kernel::dense(states, actions, slices, kernel.to_vec()).unwrap();
        let signal = Signal::new("signal", self.shape, signal.to_vec()).unwrap();
        evaluate(&self.policy, &signal, &kernel, &self.initial).unwrap()
    }

    /// The biased signal the library makes of estimates: `update` sets the row of a pair.
    fn biased(&self, estimates: &[f64], mut update: impl FnMut(usize, usize, f64, f64)) {
        let bonus = self.terms().bonus(self.shape);
        let pairs = self.shape.pairs();
        for (row, (&estimate, &visits)) in estimates.iter().zip(&self.visits).enumerate() {
            if visits > 0 {
                update(row / pairs, row % pairs, estimate, bonus.at(visits));
            }
        }
    }

    /// c underbar.
    fn pessimistic_cost(&self) -> PessimisticCost {
        let first = self.terms().bonus(self.shape).at(0);
        let mut signal = PessimisticCost::new(self.shape, first).unwrap();
        self.biased(&self.estimate.costs, |h, pair, mean, bonus| {
            signal.set(h, pair, mean, bonus);
        });
        signal
    }

    /// c tilde.
    fn optimistic_cost(&self) -> OptimisticCost {
        let first = self.terms().bonus(self.shape).at(0);
        let mut signal = OptimisticCost::new(self.shape, first).unwrap();
        self.biased(&self.estimate.costs, |h, pair, mean, bonus| {
            signal.set(h, pair, mean, bonus);
        });
        signal
    }

    /// r tilde, or r bar with a margin.
    fn optimistic_reward(&self, margin: Option<&SafetyMargin>) -> OptimisticReward {
        let first = self.terms().bonus(self.shape).at(0);
        let mut signal = match margin {
            None => OptimisticReward::for_bounded_violation(self.shape, first),
            Some(margin) => OptimisticReward::for_zero_violation(self.shape, margin, first),
        }
        .unwrap();
        self.biased(&self.estimate.rewards, |h, pair, mean, bonus| {
            signal.set(h, pair, mean, bonus);
        });
        signal
    }

    /// beta of every pair.
    fn radii(&self) -> Vec<f64> {
        let log = log_factor(self.shape, self.num_episodes, self.delta);
        let radii = self
            .visits
            .iter()
            .map(|&n| confidence_radius(from_count(n), log));
        radii.collect()
    }
}

/// -1, 1 or something between: the corners are where lemmas break.
fn direction() -> impl Strategy<Value = f64> {
    prop_oneof![2 => Just(-1.0), 2 => Just(1.0), 1 => -1.0..1.0_f64]
}

/// No visit, few, or many.
fn visit_count() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0_u64), 2 => 1..50_u64, 2 => 50..100_000_u64, 1 => 1_000_000..=MAX_COUNT]
}

fn worlds() -> impl Strategy<Value = World> {
    let terms = (1..1_000_000_u64, prop_oneof![Just(0.05), 1e-6..0.999_f64]);
    (shapes(), terms).prop_flat_map(|(shape, (num_episodes, delta))| {
        let (triples, states) = (shape.triples(), shape.num_states());
        let choices = vec(
            distribution(shape.num_actions()),
            shape.horizon() * shape.num_states(),
        );
        (
            (distribution(states), choices),
            (
                kernel_rows(triples, states, true),
                kernel_rows(triples, states, true),
            ),
            (
                vec(0.0..=1.0_f64, triples),
                vec(0.0..=1.0_f64, triples),
                vec((direction(), direction(), direction()), triples),
            ),
            vec(visit_count(), triples),
        )
            .prop_map(
                move |(
                    (initial, choices),
                    (kernel, pull),
                    (rewards, costs, directions),
                    visits,
                )| {
                    let truth = Rows {
                        kernel,
                        rewards,
                        costs,
                    };
                    let log = log_factor(shape, num_episodes, delta);
                    let estimate = inside(&truth, &pull, &directions, &visits, states, log);
                    World {
                        shape,
                        initial: InitialDistribution::new(states, initial).unwrap(),
                        policy: MarkovPolicy::new("policy", shape, choices.concat()).unwrap(),
                        truth,
                        estimate,
                        visits,
                        num_episodes,
                        delta,
                    }
                },
            )
    })
}

/// Estimates within beta of the truth in every entry; zero where there was no visit. Rows of the
/// kernel are pulled towards others as far as the radius allows.
fn inside(
    truth: &Rows,
    pull: &[f64],
    directions: &[(f64, f64, f64)],
    visits: &[u64],
    states: usize,
    log: f64,
) -> Rows {
    let mut estimate = Rows {
        kernel: vec![0.0; truth.kernel.len()],
        rewards: vec![0.0; visits.len()],
        costs: vec![0.0; visits.len()],
    };
    for (row, (&count, directions)) in visits.iter().zip(directions).enumerate() {
        if count == 0 {
            continue;
        }
        let radius = confidence_radius(from_count(count), log);
        estimate.rewards[row] = truth.rewards[row] + directions.0 * radius;
        estimate.costs[row] = truth.costs[row] + directions.1 * radius;
        let places = row * states..(row + 1) * states;
        let (own, other) = (&truth.kernel[places.clone()], &pull[places.clone()]);
        let far = own.iter().zip(other).map(|(p, q)| (p - q).abs());
        let farthest = far.fold(f64::MIN_POSITIVE, f64::max);
        let share = directions.2.abs() * (radius / farthest).min(1.0);
        for (place, (p, q)) in places.zip(own.iter().zip(other)) {
            estimate.kernel[place] = p + share * (q - p);
        }
    }
    estimate
}

fn largest(signal: &Signal) -> f64 {
    let shape = signal.shape();
    let size = signal
        .data()
        .iter()
        .fold(0.0_f64, |most, entry| most.max(entry.abs()));
    size * shape.horizon() as f64
}

proptest! {
    #![proptest_config(settings())]

    /// The worlds are what they claim to be, so that the lemmas below say something.
    #[test]
    fn worlds_lie_inside_the_good_event(world in worlds()) {
        for (row, radius) in world.radii().into_iter().enumerate() {
            let slack = radius * (1.0 + 1e-12) + 1e-15;
            let states = world.shape.num_states();
            prop_assert!((world.truth.rewards[row] - world.estimate.rewards[row]).abs() <= slack);
            prop_assert!((world.truth.costs[row] - world.estimate.costs[row]).abs() <= slack);
            let places = row * states..(row + 1) * states;
            for place in places.clone() {
                let difference = world.truth.kernel[place] - world.estimate.kernel[place];
                prop_assert!(difference.abs() <= slack);
            }
            let mass: f64 = world.estimate.kernel[places].iter().sum();
            let expected = f64::from(u8::from(world.visits[row] > 0));
            prop_assert!((mass - expected).abs() < 1e-9);
        }
    }

    /// \[Liu21\], Lemma 5.1: what is safe in the learner's eyes is safe.
    #[test]
    fn the_pessimistic_cost_on_the_estimated_kernel_is_at_least_the_true_cost(world in worlds()) {
        let signal = world.pessimistic_cost();
        let pessimistic = world.value(signal.signal().data(), &world.estimate.kernel);
        let cost = world.value(&world.truth.costs, &world.truth.kernel);
        let slack = rounding(largest(signal.signal()));
        prop_assert!(pessimistic >= cost - slack, "{pessimistic} below {cost}");
    }

    /// \[Liu21\], Lemma C.1, for the cost.
    #[test]
    fn the_optimistic_cost_on_the_estimated_kernel_is_at_most_the_true_cost(world in worlds()) {
        let signal = world.optimistic_cost();
        let optimistic = world.value(signal.signal().data(), &world.estimate.kernel);
        let cost = world.value(&world.truth.costs, &world.truth.kernel);
        let slack = rounding(largest(signal.signal()));
        prop_assert!(optimistic <= cost + slack, "{optimistic} above {cost}");
    }

    /// The same for both optimistic rewards.
    #[test]
    fn both_optimistic_rewards_on_the_estimated_kernel_are_at_least_the_true_reward(
        world in worlds(), safe_share in 0.0..0.999_f64,
    ) {
        let limit = world.shape.horizon() as f64;
        let margin = SafetyMargin::new(limit, safe_share * limit).unwrap();
        let reward = world.value(&world.truth.rewards, &world.truth.kernel);
        let modest = world.optimistic_reward(None);
        let bold = world.optimistic_reward(Some(&margin));
        let [modest, bold] = [&modest, &bold].map(|signal| {
            let value = world.value(signal.signal().data(), &world.estimate.kernel);
            (value, rounding(largest(signal.signal())))
        });
        prop_assert!(modest.0 >= reward - modest.1, "{modest:?} below {reward}");
        prop_assert!(bold.0 >= modest.0 - bold.1, "{bold:?} below {modest:?}");
    }

    /// All that the proof needs of a bonus: it covers the error of one step and of what follows.
    #[test]
    fn the_bonus_covers_the_error_of_a_step_and_of_everything_after_it(world in worlds()) {
        let bonus = world.terms().bonus(world.shape);
        let [horizon, states, _] = world.shape.sizes();
        for (row, &visits) in world.visits.iter().enumerate() {
            let step = row / world.shape.pairs();
            let places = row * states..(row + 1) * states;
            // The worst V in [0, H - 1 - h] takes its largest value where P exceeds P-hat.
            let excess = places.map(|at| world.truth.kernel[at] - world.estimate.kernel[at]);
            let worst = (horizon - 1 - step) as f64 * excess.map(|gap| gap.max(0.0)).sum::<f64>();
            let error = (world.truth.costs[row] - world.estimate.costs[row]).abs();
            prop_assert!(bonus.at(visits) * (1.0 + 1e-12) >= error + worst);
        }
    }
}

/// Without the factor 1 + H S the lemma is false, so the worlds above can tell.
#[test]
fn a_radius_alone_is_not_enough_of_a_bonus() {
    // Two steps; the first leads to a state that costs 1, and the estimate says it hardly does.
    let shape = Shape::new(2, 2, 1).unwrap();
    let visits = vec![2000; 4];
    let world = World {
        shape,
        initial: InitialDistribution::new(2, vec![1.0, 0.0]).unwrap(),
        policy: MarkovPolicy::deterministic(shape, &[0; 4]).unwrap(),
        truth: Rows {
            kernel: [0.0, 1.0].repeat(4),
            rewards: vec![0.0; 4],
            costs: vec![0.5, 0.5, 0.5, 1.0],
        },
        estimate: Rows {
            kernel: vec![],
            rewards: vec![],
            costs: vec![],
        },
        visits,
        num_episodes: 10_000,
        delta: 0.05,
    };
    let log = log_factor(shape, world.num_episodes, world.delta);
    let directions = [(-1.0, -1.0, 1.0); 4];
    let pull = [1.0, 0.0].repeat(4);
    let world = World {
        estimate: inside(&world.truth, &pull, &directions, &world.visits, 2, log),
        ..world
    };
    let cost = world.value(&world.truth.costs, &world.truth.kernel);
    let radii = world.radii();
    let with = |scale: f64| {
        let signal: Vec<f64> = world
            .estimate
            .costs
            .iter()
            .zip(&radii)
            .map(|(c, b)| c + scale * b)
            .collect();
        world.value(&signal, &world.estimate.kernel)
    };
    assert!(with(1.0) < cost);
    assert!(with(cost_bonus_scale(shape)) >= cost);
}
