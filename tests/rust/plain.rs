//! Both algorithms of the paper, their simulation and its true values, written again in the plainest way: the
//! yardstick of `traces`.
//!
//! This file and `plain_planning` share no code with the core, and a test of `traces` sees to it. Everything is
//! computed anew at every episode, from counts and sums. What it must share to come to the same bits is the
//! arithmetic that the core documents, in these places:
//!
//! - a row of a kernel in full is summed in four running sums (`dot`), a list of successors from left to right;
//! - P-hat is kept as lists while there are more than 64 states and the longest list fills at most half of a row;
//! - uniform numbers come from rand's ChaCha8, whose stream 4 i + p serves replicate i for the purpose p: 0 states,
//!   1 actions, 2 noise; normal numbers come from rand_distr;
//! - the chord method starts from its last answer, and its tolerances are those of the core.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use crate::plain_planning::{Kernel, Problem, Vertex};

/// What a run is given. Tables are `[H, S, A]`, the kernel `[H, S, A, S]`.
pub struct Inputs {
    pub horizon: usize,
    pub states: usize,
    pub actions: usize,
    pub kernel: Vec<f64>,
    pub reward: Vec<f64>,
    pub cost: Vec<f64>,
    pub initial: Vec<f64>,
    pub noise: Noise,
    pub limit: f64,
    pub safe_cost: f64,
    pub baseline: Vec<f64>,
    pub num_episodes: u64,
    pub delta: f64,
    /// What the theorem's bonus is multiplied with.
    pub factor: f64,
}

#[derive(Clone, Copy)]
pub enum Noise {
    Deterministic,
    Bernoulli,
    /// Standard deviation.
    Gaussian(f64),
    /// Half width.
    Uniform(f64),
}

/// What was played, seen and is true of it.
#[derive(Default)]
pub struct Played {
    pub states: Vec<u32>,
    pub actions: Vec<u32>,
    pub rewards: Vec<f64>,
    pub costs: Vec<f64>,
    pub true_values: Vec<f64>,
    pub true_costs: Vec<f64>,
    pub on_baseline: Vec<bool>,
    pub multipliers: Vec<f64>,
}

/// What each algorithm keeps between episodes, beside the counts.
pub enum Algorithm {
    /// The ends of the last chord, if there was one.
    Lp { last: Option<[Vertex; 2]> },
    /// lambda.
    PrimalDual { multiplier: f64 },
}

/// Counts and sums of everything seen.
struct Counts {
    visits: Vec<u32>,
    reward_sums: Vec<f64>,
    cost_sums: Vec<f64>,
    followed: Vec<u32>, // [H, S, A, S]
}

impl Counts {
    fn new(inputs: &Inputs) -> Self {
        let cells = inputs.reward.len();
        Self {
            visits: vec![0; cells],
            reward_sums: vec![0.0; cells],
            cost_sums: vec![0.0; cells],
            followed: vec![0; cells * inputs.states],
        }
    }

    /// Averages plus a multiple of the bonus b = factor (1 + H S) sqrt(Z / max(N, 1)), where
    /// Z = log(16 S^2 A H K / delta).
    fn biased(&self, sums: &[f64], inputs: &Inputs, multiple: f64) -> Vec<f64> {
        let [h, s, a] = [inputs.horizon, inputs.states, inputs.actions].map(|size| size as f64);
        let log = (16.0 * s * s * a * h * inputs.num_episodes as f64 / inputs.delta).ln();
        let biased = |(sum, visits): (&f64, &u32)| {
            let visits = f64::from(*visits.max(&1));
            let bonus = inputs.factor * (1.0 + h * s) * (log / visits).sqrt();
            sum / visits + multiple * bonus
        };
        sums.iter().zip(&self.visits).map(biased).collect()
    }

    /// P-hat. Lists have room for 4, 8, 16, ... successors.
    fn kernel(&self, inputs: &Inputs) -> Kernel {
        let states = inputs.states;
        let visits = |entry: usize| f64::from(self.visits[entry / states].max(1));
        let share = |(entry, &count): (usize, &u32)| f64::from(count) / visits(entry);
        let rows: Vec<f64> = self.followed.iter().enumerate().map(share).collect();
        let lengths = rows
            .chunks(states)
            .map(|row| row.iter().filter(|p| **p > 0.0).count());
        let width = lengths.max().unwrap_or(0).max(4).next_power_of_two();
        let listed = states > 64 && 2 * width <= states;
        Kernel { rows, listed }
    }
}

/// Plans aim this much, relatively, inside the limit.
const PLANNING_MARGIN: f64 = 1e-12;

/// One episode of Algorithm 1: its policy, and whether that is pi0.
fn lp_episode(
    inputs: &Inputs,
    counts: &Counts,
    last: &mut Option<[Vertex; 2]>,
) -> (Vec<f64>, bool) {
    let kernel = &counts.kernel(inputs);
    let cost = &counts.biased(&counts.cost_sums, inputs, 1.0)[..];
    let midpoint = f64::midpoint(inputs.limit, inputs.safe_cost);
    if inputs.evaluate(&inputs.baseline, cost, kernel) >= midpoint {
        return (inputs.baseline.clone(), true);
    }
    let multiple = 1.0 + 4.0 * inputs.horizon as f64 / (inputs.limit - inputs.safe_cost);
    let reward = &counts.biased(&counts.reward_sums, inputs, multiple)[..];
    let problem = Problem {
        inputs,
        kernel,
        reward,
        cost,
    };
    let limit = inputs.limit * (1.0 - PLANNING_MARGIN);
    let (ends, weight, again) = problem.best_within(limit, last.take());
    let policy = problem.certified(problem.mix(&ends, weight), inputs.limit);
    *last = again.then_some(ends);
    (policy, false)
}

/// Episode k of Algorithm 2: its policy, and the next lambda.
fn primal_dual_episode(
    inputs: &Inputs,
    counts: &Counts,
    k: f64,
    multiplier: f64,
) -> (Vec<f64>, f64) {
    let [h, s, a] = [inputs.horizon, inputs.states, inputs.actions].map(|size| size as f64);
    let log = (k / (inputs.delta / (16.0 * s * s * a * h))).ln();
    let epsilon = 5.0 * h * h * (s * s * s * a).sqrt() * (log + 1.0) / (k * log).sqrt();
    let eta = (inputs.limit - inputs.safe_cost) * h * k.sqrt();
    let kernel = &counts.kernel(inputs);
    let reward = counts.biased(&counts.reward_sums, inputs, 1.0);
    let cost = counts.biased(&counts.cost_sums, inputs, -1.0);
    let price = multiplier / eta;
    let signals = reward.iter().zip(&cost);
    let lagrangian: Vec<f64> = signals.map(|(r, c)| r - price * c).collect();
    let policy = inputs.policy(&inputs.maximise(&lagrangian, kernel).0);
    let truncated = inputs.evaluate(&policy, &cost, kernel).max(0.0);
    let next = (multiplier + truncated + epsilon - inputs.limit).max(0.0);
    (policy, next)
}

/// The random numbers of one replicate, drawn one by one.
struct Streams {
    states: ChaCha8Rng,
    actions: ChaCha8Rng,
    noise: ChaCha8Rng,
}

impl Streams {
    fn new(seed: u64, replicate: u64) -> Self {
        let stream = |purpose| {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(4 * replicate + purpose);
            generator
        };
        Self {
            states: stream(0),
            actions: stream(1),
            noise: stream(2),
        }
    }
}

/// The first outcome whose cumulative probability exceeds a uniform number, else the last possible.
fn draw(row: &[f64], generator: &mut ChaCha8Rng) -> usize {
    let uniform: f64 = generator.random();
    let mut cumulative = 0.0;
    for (outcome, probability) in row.iter().enumerate() {
        cumulative += probability;
        if uniform < cumulative {
            return outcome;
        }
    }
    row.iter().rposition(|&p| p > 0.0).unwrap()
}

fn observe(noise: Noise, mean: f64, generator: &mut ChaCha8Rng) -> f64 {
    match noise {
        Noise::Deterministic => mean,
        Noise::Bernoulli => f64::from(u8::from(generator.random::<f64>() < mean)),
        Noise::Gaussian(sigma) => {
            let standard: f64 = StandardNormal.sample(generator);
            mean + sigma * standard
        }
        Noise::Uniform(half_width) => mean + half_width * (2.0 * generator.random::<f64>() - 1.0),
    }
}

/// Plays one episode of a policy and counts it.
fn play(
    inputs: &Inputs,
    policy: &[f64],
    streams: &mut Streams,
    counts: &mut Counts,
    seen: &mut Played,
) {
    let (states, actions) = (inputs.states, inputs.actions);
    let mut state = draw(&inputs.initial, &mut streams.states);
    for step in 0..inputs.horizon {
        let place = step * states + state;
        let action = draw(&policy[place * actions..][..actions], &mut streams.actions);
        let row = place * actions + action;
        let reward = observe(inputs.noise, inputs.reward[row], &mut streams.noise);
        let cost = observe(inputs.noise, inputs.cost[row], &mut streams.noise);
        counts.visits[row] += 1;
        counts.reward_sums[row] += reward;
        counts.cost_sums[row] += cost;
        seen.states.push(state as u32);
        seen.actions.push(action as u32);
        seen.rewards.push(reward);
        seen.costs.push(cost);
        if step + 1 < inputs.horizon {
            state = draw(
                &inputs.kernel[row * states..][..states],
                &mut streams.states,
            );
            counts.followed[row * states + state] += 1;
        }
    }
}

/// The whole run of one replicate.
pub fn plain_run(inputs: &Inputs, mut algorithm: Algorithm, seed: u64, replicate: u64) -> Played {
    let mut counts = Counts::new(inputs);
    let mut streams = Streams::new(seed, replicate);
    let mut seen = Played::default();
    for k in 1..=inputs.num_episodes {
        let (policy, on_baseline, multiplier) = match &mut algorithm {
            Algorithm::Lp { last } => {
                let (policy, on_baseline) = lp_episode(inputs, &counts, last);
                (policy, on_baseline, 0.0)
            }
            Algorithm::PrimalDual { multiplier } => {
                let before = *multiplier;
                let (policy, next) = primal_dual_episode(inputs, &counts, k as f64, before);
                *multiplier = next;
                (policy, false, before)
            }
        };
        play(inputs, &policy, &mut streams, &mut counts, &mut seen);
        // Policies that take one action are judged on lists if there are more than 64 states, others on rows as the
        // model stores them: in full, where there are so many.
        let chance = matches!(algorithm, Algorithm::Lp { .. }) && !on_baseline;
        let kernel = Kernel {
            rows: inputs.kernel.clone(),
            listed: inputs.states > 64 && !chance,
        };
        seen.true_values
            .push(inputs.evaluate(&policy, &inputs.reward, &kernel));
        seen.true_costs
            .push(inputs.evaluate(&policy, &inputs.cost, &kernel));
        seen.on_baseline.push(on_baseline);
        seen.multipliers.push(multiplier);
    }
    seen
}
