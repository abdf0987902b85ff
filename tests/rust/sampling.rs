//! Does the simulator sample the model it was given? Seeds are fixed, so these tests are repeatable;
//! the stated chances concern the day on which someone changes the stream of random numbers.

use std::sync::Arc;

use optpess_core::evaluate::evaluate;
use optpess_core::model::{
    ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, TransitionKernel,
    UnitSignal,
};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::{Signal, StepSignal};
use optpess_core::trajectory::Trajectory;

const HORIZON: usize = 3;
const STATES: usize = 3;
const ACTIONS: usize = 2;
const COSTS: usize = 2;
const EPISODES: usize = 400_000;
/// The chance that a test of this file fails although the simulator is right.
const FALSE_ALARM: f64 = 1e-6;

/// Per step, with a sure row, impossible successors and two costs, so that every kind of row is met.
fn model(noise: ObservationNoise) -> ConstrainedMdp {
    let shape = Shape::new(HORIZON, STATES, ACTIONS).unwrap();
    let transitions = [
        [[0.2, 0.3, 0.5], [0.0, 0.9, 0.1], [1.0, 0.0, 0.0]],
        [[0.6, 0.0, 0.4], [0.25, 0.5, 0.25], [0.05, 0.05, 0.9]],
    ];
    let data: Vec<f64> = (0..HORIZON * STATES * ACTIONS)
        .flat_map(|row| transitions[row / 3 % 2][row % 3])
        .collect();
    let kernel = Kernel::dense(STATES, ACTIONS, Slices::PerStep(HORIZON), data).unwrap();
    let signal = |name, first: usize, factor: usize| {
        let entry = |index: usize| ((first + factor * index) % 11) as f64 / 10.0;
        let data = (0..shape.triples()).map(entry).collect();
        UnitSignal::new(name, &[], Signal::new(name, shape, data).unwrap()).unwrap()
    };
    ConstrainedMdp::new(
        TransitionKernel::new(Arc::new(kernel)).unwrap(),
        signal("rewards", 0, 7),
        vec![signal("costs", 3, 5), signal("costs", 8, 3)],
        vec![1.0, 1.5],
        InitialDistribution::new(STATES, vec![0.5, 0.2, 0.3]).unwrap(),
        noise,
    )
    .unwrap()
}

fn policy() -> MarkovPolicy {
    let rows = [[0.5, 0.5], [0.9, 0.1], [0.25, 0.75], [0.3, 0.7]];
    let shape = Shape::new(HORIZON, STATES, ACTIONS).unwrap();
    let data = (0..HORIZON * STATES)
        .flat_map(|row| rows[row % 4])
        .collect();
    MarkovPolicy::new("policy", shape, data).unwrap()
}

/// Every noise with the largest parameter the assumption allows or so, and its variance proxy.
fn noises() -> [(ObservationNoise, f64); 4] {
    let (sigma, half_width) = (0.7_f64, 1.2_f64);
    [
        (ObservationNoise::Bernoulli, 0.25),
        (ObservationNoise::Deterministic, 0.0),
        (ObservationNoise::gaussian(sigma).unwrap(), sigma.powi(2)),
        (
            ObservationNoise::uniform(half_width).unwrap(),
            half_width.powi(2) / 3.0,
        ),
    ]
}

fn each_episode(
    model: &ConstrainedMdp,
    seed: u64,
    episodes: usize,
    mut see: impl FnMut(&Trajectory),
) {
    let environment = TabularEnvironment::new(model).unwrap();
    let mut streams = Streams::new(seed, 0);
    let mut seen = Trajectory::zeros(model.shape(), COSTS).unwrap();
    let policy = policy();
    for _ in 0..episodes {
        environment.rollout(&policy, &mut streams, &mut seen);
        see(&seen);
    }
}

/// The signals of a model in the order reward, costs.
fn signals(model: &ConstrainedMdp) -> Vec<&Signal> {
    std::iter::once(model.reward())
        .chain(model.costs())
        .collect()
}

/// The observations that belong to [`signals`].
fn observations(seen: &Trajectory) -> Vec<&[f64]> {
    std::iter::once(seen.rewards())
        .chain(seen.costs().chunks_exact(HORIZON))
        .collect()
}

/// An observed total is a sum of H means in [0, 1] (variance proxy at most H^2/4) and of H noises that
/// are independent given the path (proxy v each). Hoeffding: the mean of n totals is off by more than
/// sqrt(2 (H^2/4 + H v) ln(2/p) / n) with a chance of at most p. There are 4 noises and 3 signals, so
/// p = 1e-6 / 12. A value off by twice the bound, at most 0.037 here, would be noticed.
#[test]
fn mean_totals_of_sampled_episodes_are_the_exact_values() {
    let comparisons = (noises().len() * (1 + COSTS)) as f64;
    for (seed, (noise, proxy)) in (1..).zip(noises()) {
        let model = model(noise);
        let mut totals = [0.0; 1 + COSTS];
        each_episode(&model, seed, EPISODES, |seen| {
            for (total, observed) in totals.iter_mut().zip(observations(seen)) {
                *total += observed.iter().sum::<f64>();
            }
        });
        let horizon = HORIZON as f64;
        let log = (2.0 * comparisons / FALSE_ALARM).ln();
        let variance = horizon.powi(2) / 4.0 + horizon * proxy;
        let bound = (2.0 * variance * log / EPISODES as f64).sqrt();
        assert!(bound < 0.0185, "the test has become too lenient: {bound}");
        for (total, signal) in totals.iter().zip(signals(&model)) {
            let exact = evaluate(&policy(), signal, model.kernel(), model.initial()).unwrap();
            let mean = total / EPISODES as f64;
            assert!(
                (mean - exact).abs() <= bound,
                "{noise:?}: {mean} for {exact}, allowed {bound}"
            );
        }
    }
}

/// Observation minus mean, over all n = H times episodes observations of a signal, is a martingale of
/// variance proxy v (Azuma: off by more than sqrt(2 v ln(2/p) / n) with a chance of at most p). This
/// looks past the randomness of the path: a bias of the noise of 0.008 would be noticed.
#[test]
fn observations_have_their_means_for_every_noise() {
    let count = (EPISODES * HORIZON) as f64;
    let comparisons = (noises().len() * (1 + COSTS)) as f64;
    let log = (2.0 * comparisons / FALSE_ALARM).ln();
    for (seed, (noise, proxy)) in (11..).zip(noises()) {
        let residuals = residuals(noise, seed, |residual| residual);
        // Rounding of a sum of deterministic residuals: nothing.
        let bound = (2.0 * proxy * log / count).sqrt();
        assert!(bound < 0.004, "the test has become too lenient: {bound}");
        for mean in residuals {
            assert!(
                mean.abs() <= bound,
                "{noise:?}: bias {mean}, allowed {bound}"
            );
        }
    }
}

/// The variance of the noise is what its name says. Uniform: xi^2 lies in [0, w^2], so Hoeffding's bound
/// is w^2 sqrt(ln(2/p) / 2n). Normal: Laurent and Massart's chi-square bound,
/// sigma^2 (2 sqrt(ln(2/p) / n) + 2 ln(2/p) / n). A standard deviation off by 1 % would be noticed.
#[test]
fn noise_has_the_variance_its_parameter_says() {
    let count = (EPISODES * HORIZON) as f64;
    let log = (2.0 * 6.0 / FALSE_ALARM).ln();
    for (seed, (noise, variance)) in (21..).zip(noises()).skip(2) {
        let bound = match noise {
            ObservationNoise::Uniform(_) => 3.0 * variance * (log / (2.0 * count)).sqrt(),
            _ => variance * (2.0 * (log / count).sqrt() + 2.0 * log / count),
        };
        assert!(bound < 0.02 * variance, "the test has become too lenient");
        for mean in residuals(noise, seed, |residual| residual * residual) {
            assert!(
                (mean - variance).abs() <= bound,
                "{noise:?}: variance {mean} for {variance}, allowed {bound}"
            );
        }
    }
}

/// The mean of a function of (observation - mean), for the reward and each cost.
fn residuals(noise: ObservationNoise, seed: u64, of: impl Fn(f64) -> f64) -> [f64; 1 + COSTS] {
    let model = model(noise);
    let shape = model.shape();
    let means = signals(&model);
    let mut sums = [0.0; 1 + COSTS];
    each_episode(&model, seed, EPISODES, |seen| {
        for (which, observed) in observations(seen).into_iter().enumerate() {
            for (step, &value) in observed.iter().enumerate() {
                let pair = shape.pair(seen.states()[step] as usize, seen.actions()[step] as usize);
                sums[which] += of(value - means[which].at(step, pair));
            }
        }
    });
    sums.map(|sum| sum / (EPISODES * HORIZON) as f64)
}

/// Pearson's statistic over all rows of start, policy and kernel together. Given how often a row is used
/// its counts are multinomial, so the sum is chi-square with D degrees of freedom (in the limit; each
/// cell expects more than 300). Laurent and Massart: it exceeds D + 2 sqrt(D x) + 2 x with a chance of at
/// most exp(-x), x = ln(1e6). Moving 0.01 of probability within the start row would add about 400
/// to the statistic, and 0.02 within a row used 40,000 times about 100: both would be noticed.
#[test]
fn states_and_actions_are_drawn_with_their_probabilities() {
    let model = model(ObservationNoise::Deterministic);
    let policy = policy();
    let shape = model.shape();
    let mut starts = [0_u32; STATES];
    let mut choices = vec![0_u32; shape.triples()];
    let mut moves = vec![0_u32; shape.triples() * STATES];
    each_episode(&model, 31, EPISODES, |seen| {
        starts[seen.states()[0] as usize] += 1;
        for step in 0..HORIZON {
            let pair = shape.pair(seen.states()[step] as usize, seen.actions()[step] as usize);
            let triple = step * shape.pairs() + pair;
            choices[triple] += 1;
            if step + 1 < HORIZON {
                moves[triple * STATES + seen.states()[step + 1] as usize] += 1;
            }
        }
    });
    let kernel = model.kernel().kernel().to_dense().unwrap();
    let used = (HORIZON - 1) * shape.pairs() * STATES;
    let mut rows = vec![(&starts[..], model.initial().data())];
    rows.extend(choices.chunks(ACTIONS).zip(policy.data().chunks(ACTIONS)));
    rows.extend(
        moves[..used]
            .chunks(STATES)
            .zip(kernel[..used].chunks(STATES)),
    );
    let (mut statistic, mut freedom) = (0.0, 0.0);
    for (counts, probabilities) in rows {
        let total = f64::from(counts.iter().sum::<u32>());
        freedom -= 1.0;
        for (&count, &probability) in counts.iter().zip(probabilities) {
            let expected = total * probability;
            if probability > 0.0 {
                assert!(expected > 300.0, "too few for a chi-square: {expected}");
                statistic += (f64::from(count) - expected).powi(2) / expected;
                freedom += 1.0;
            } else {
                assert_eq!(count, 0, "an impossible outcome was drawn");
            }
        }
    }
    let x = (1.0 / FALSE_ALARM).ln();
    let threshold = freedom + 2.0 * (freedom * x).sqrt() + 2.0 * x;
    assert!(statistic <= threshold, "{statistic} above {threshold}");
    // Far too small a statistic would mean that counts were not random at all; a chi-square falls
    // below D - 2 sqrt(D x) with a chance of at most exp(-x).
    assert!(statistic >= freedom - 2.0 * (freedom * x).sqrt());
}

#[test]
fn another_noise_does_not_reshuffle_states_and_actions() {
    let paths = |noise| {
        let mut paths = Vec::new();
        each_episode(&model(noise), 41, 200, |seen| {
            paths.push((seen.states().to_vec(), seen.actions().to_vec()));
        });
        paths
    };
    let expected = paths(ObservationNoise::Deterministic);
    for (noise, _) in noises() {
        assert_eq!(paths(noise), expected, "{noise:?}");
    }
}

/// Published results name a seed, so the numbers behind a seed must not move. If this fails after a
/// deliberate change, the change belongs in the changelog under "Semantics".
#[test]
fn the_episodes_of_a_seed_never_change() {
    let mut paths = Vec::new();
    let mut coins = Vec::new();
    each_episode(&model(ObservationNoise::Bernoulli), 2021, 4, |seen| {
        paths.push((seen.states().to_vec(), seen.actions().to_vec()));
        coins.push((seen.rewards().to_vec(), seen.costs().to_vec()));
    });
    assert_eq!(format!("{paths:?}"), PINNED_PATHS);
    assert_eq!(format!("{coins:?}"), PINNED_COINS);
    // Uniform noise is plain arithmetic on the generator's bits, so it is the same to the last bit.
    let uniform = ObservationNoise::uniform(0.5).unwrap();
    let mut rewards: Vec<f64> = Vec::new();
    each_episode(&model(uniform), 2021, 2, |seen| {
        rewards.extend(seen.rewards());
    });
    assert_eq!(format!("{rewards:?}"), PINNED_UNIFORM);
    // Normal noise goes through the platform's logarithm now and then: the last bit may differ.
    let normal = ObservationNoise::gaussian(0.5).unwrap();
    let mut rewards: Vec<f64> = Vec::new();
    each_episode(&model(normal), 2021, 2, |seen| {
        rewards.extend(seen.rewards());
    });
    assert_eq!(rewards.len(), PINNED_NORMAL.len());
    for (found, pinned) in rewards.iter().zip(PINNED_NORMAL) {
        assert!((found - pinned).abs() < 1e-12, "{rewards:?}");
    }
}

/// (states, actions) of each episode.
const PINNED_PATHS: &str = "[([1, 0, 1], [0, 1, 1]), ([2, 2, 1], [1, 0, 0]), \
                            ([0, 0, 1], [0, 1, 1]), ([1, 0, 1], [0, 1, 1])]";
/// (rewards, costs) of each episode.
const PINNED_COINS: &str = "[([1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]), \
                            ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), \
                            ([0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]), \
                            ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0, 1.0, 1.0])]";
/// Rewards; the shortest decimals that stand for exactly these doubles.
const PINNED_UNIFORM: &str = "[-0.1898474889540463, 0.9938435645300792, 0.31800002982634623, \
                              -0.2969265404699341, 0.26205547807119034, 1.074610243735724]";
const PINNED_NORMAL: [f64; 6] = [
    -0.1874751573837704,
    1.3372780104073372,
    0.16128306306429196,
    -0.6318268683786623,
    0.06525403110452732,
    1.0471590636145245,
];
