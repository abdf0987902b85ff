//! Both algorithms and their simulation in the plainest way: the yardstick of `traces`.
//!
//! Own counts, every signal made anew at every episode, P-hat copied into a checked kernel, draws that
//! scan a row.

use optpess_core::certify::certify;
use optpess_core::confidence::LearningTerms;
use optpess_core::confidence::constants::{Schedule, reward_bonus_factor};
use optpess_core::evaluate::{Evaluator, evaluate};
use optpess_core::model::{ConstrainedMdp, Kernel, ObservationNoise, Slices};
use optpess_core::plan::{ChordSearch, PlainOracle, PlanningProblem, backward_induction};
use optpess_core::policy::MarkovPolicy;
use optpess_core::run::Trace;
use optpess_core::shape::Shape;
use optpess_core::table::{Signal, StepSignal};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use crate::cases::Problem;

/// Counts and sums, and nothing else.
struct Counts {
    shape: Shape,
    visits: Vec<u32>,
    followed: Vec<u32>, // [H, S, A, S]
    sums: [Vec<f64>; 2],
}

impl Counts {
    fn new(shape: Shape) -> Self {
        let cells = shape.triples();
        Self {
            shape,
            visits: vec![0; cells],
            followed: vec![0; cells * shape.num_states()],
            sums: [vec![0.0; cells], vec![0.0; cells]],
        }
    }

    /// Averages of rewards (0) or costs (1) plus a multiple of the bonus.
    fn signal(&self, which: usize, terms: &LearningTerms, factor: f64) -> Signal {
        let bonus = terms.bonus(self.shape);
        let sums = self.sums[which].iter().zip(&self.visits);
        let biased = |(sum, &n): (&f64, &u32)| sum / f64::from(n.max(1)) + factor * bonus.at(n);
        Signal::new("signal", self.shape, sums.map(biased).collect()).unwrap()
    }

    fn kernel(&self) -> Kernel {
        let [horizon, states, _] = self.shape.sizes();
        let share = |(entry, &count): (usize, &u32)| {
            f64::from(count) / f64::from(self.visits[entry / states].max(1))
        };
        let rows: Vec<f64> = self.followed.iter().enumerate().map(share).collect();
        let seen = rows.chunks_exact(states).map(successors_of);
        let most = seen.map(|list| list.len()).max().unwrap();
        let mut width = 4;
        while width < most {
            width *= 2;
        }
        let listed = states > 64 && 2 * width <= states;
        kernel_of(self.shape, Slices::PerStep(horizon), rows, listed)
    }
}

fn successors_of(row: &[f64]) -> Vec<(i64, f64)> {
    let entries = row.iter().enumerate().filter(|(_, p)| **p > 0.0);
    entries.map(|(state, &p)| (state as i64, p)).collect()
}

/// Storage decides the order of additions.
fn kernel_of(shape: Shape, slices: Slices, rows: Vec<f64>, listed: bool) -> Kernel {
    let (states, actions) = (shape.num_states(), shape.num_actions());
    if !listed {
        return Kernel::dense(states, actions, slices, rows).unwrap();
    }
    let lists: Vec<_> = rows.chunks_exact(states).map(successors_of).collect();
    let mut offsets = vec![0];
    for list in &lists {
        offsets.push(offsets[offsets.len() - 1] + list.len() as i64);
    }
    let (successors, probabilities): (Vec<_>, _) = lists.into_iter().flatten().unzip();
    Kernel::sparse(
        states,
        actions,
        slices,
        &offsets,
        &successors,
        probabilities,
    )
    .unwrap()
}

/// What a plain learner keeps between episodes.
pub enum Plain {
    Lp(Box<ChordSearch>),
    PrimalDual(f64),
}

/// The random numbers of replicate 0, drawn one by one.
struct Streams {
    states: ChaCha8Rng,
    actions: ChaCha8Rng,
    noise: ChaCha8Rng,
}

impl Streams {
    fn new(seed: u64) -> Self {
        let stream = |number| {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(number);
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
    row.iter()
        .rposition(|&probability| probability > 0.0)
        .unwrap()
}

fn observe(noise: ObservationNoise, mean: f64, generator: &mut ChaCha8Rng) -> f64 {
    match noise {
        ObservationNoise::Deterministic => mean,
        ObservationNoise::Bernoulli => f64::from(u8::from(generator.random::<f64>() < mean)),
        ObservationNoise::Gaussian(normal) => {
            let standard: f64 = StandardNormal.sample(generator);
            mean + normal.sigma() * standard
        }
        ObservationNoise::Uniform(uniform) => {
            mean + uniform.half_width() * (2.0 * generator.random::<f64>() - 1.0)
        }
    }
}

/// Plays the policy, adds what is seen to the counts and to the trace.
fn play(
    model: &ConstrainedMdp,
    dense: &[f64],
    policy: &MarkovPolicy,
    streams: &mut Streams,
    counts: &mut Counts,
    trace: &mut Trace,
) {
    let shape = model.shape();
    let (states, noise) = (shape.num_states(), model.noise());
    let slice = match model.kernel().kernel().slices() {
        Slices::Stationary => 0,
        Slices::PerStep(_) => shape.pairs(),
    };
    let mut state = draw(model.initial().data(), &mut streams.states);
    for step in 0..shape.horizon() {
        let action = draw(policy.row(step, state), &mut streams.actions);
        let pair = shape.pair(state, action);
        let reward = observe(noise, model.reward().at(step, pair), &mut streams.noise);
        let cost = observe(noise, model.costs()[0].at(step, pair), &mut streams.noise);
        let row = step * shape.pairs() + pair;
        counts.visits[row] += 1;
        counts.sums[0][row] += reward;
        counts.sums[1][row] += cost;
        trace.states.push(state as u32);
        trace.actions.push(action as u32);
        trace.rewards.push(reward);
        trace.costs.push(cost);
        if step + 1 < shape.horizon() {
            let next = &dense[(step * slice + pair) * states..][..states];
            state = draw(next, &mut streams.states);
            counts.followed[row * states + state] += 1;
        }
    }
}

/// The policy of one episode of Algorithm 1, and whether it is pi0.
fn lp_policy(
    problem: &Problem,
    counts: &Counts,
    terms: &LearningTerms,
    search: &mut ChordSearch,
) -> (MarkovPolicy, bool) {
    let (shape, initial, margin) = (counts.shape, problem.model.initial(), &problem.margin);
    let (cost, kernel) = (counts.signal(1, terms, 1.0), counts.kernel());
    if evaluate(&problem.safe, &cost, &kernel, initial).unwrap() >= margin.midpoint() {
        return (problem.safe.clone(), true);
    }
    let reward = counts.signal(0, terms, reward_bonus_factor(shape, margin));
    let tradeoff = PlanningProblem {
        shape,
        reward: &reward,
        cost: &cost,
        kernel: &kernel,
        initial,
    };
    let limit = margin.cost_limit();
    let mut mixed = problem.safe.clone();
    let mut oracle = PlainOracle::new(&tradeoff).unwrap();
    let found = search.best_within(&mut oracle, limit, &problem.safe, &mut mixed);
    found.unwrap();
    let (mut evaluator, safe) = (Evaluator::new(shape).unwrap(), &problem.safe);
    certify(
        &mut evaluator,
        &mut mixed,
        safe,
        &cost,
        &kernel,
        initial,
        limit,
    )
    .unwrap();
    (mixed, false)
}

/// The policy of episode k of Algorithm 2, and the next multiplier.
fn primal_dual_policy(
    problem: &Problem,
    counts: &Counts,
    terms: &LearningTerms,
    k: u64,
    multiplier: f64,
) -> (MarkovPolicy, f64) {
    let (shape, initial, margin) = (counts.shape, problem.model.initial(), &problem.margin);
    let (reward, cost) = (counts.signal(0, terms, 1.0), counts.signal(1, terms, -1.0));
    let kernel = counts.kernel();
    let schedule = Schedule::new(shape, margin, terms.failure_probability());
    let price = multiplier / schedule.scaling(k);
    let priced = reward.data().iter().zip(cost.data());
    let priced = priced.map(|(gain, loss)| gain - price * loss).collect();
    let priced = Signal::new("priced", shape, priced).unwrap();
    let plan = backward_induction(shape, &priced, &kernel).unwrap();
    let policy = plan.policy().unwrap();
    let truncated = evaluate(&policy, &cost, &kernel, initial).unwrap().max(0.0);
    let epsilon = schedule.tightening(k);
    let next = (multiplier + truncated + epsilon - margin.cost_limit()).max(0.0);
    (policy, next)
}

/// The whole run, plainly.
pub fn plain_run(problem: &Problem, terms: &LearningTerms, mut plain: Plain, seed: u64) -> Trace {
    let model = &problem.model;
    let dense = model.kernel().kernel().to_dense().unwrap();
    let slices = model.kernel().kernel().slices();
    let stored = |listed| kernel_of(model.shape(), slices, dense.clone(), listed);
    let (in_full, listed) = (stored(false), stored(true));
    let mut counts = Counts::new(model.shape());
    let mut streams = Streams::new(seed);
    let mut trace = Trace::default();
    for k in 1..=terms.num_episodes() {
        let (policy, on_baseline) = match &mut plain {
            Plain::Lp(workspace) => {
                trace.multiplier.push(0.0);
                lp_policy(problem, &counts, terms, workspace)
            }
            Plain::PrimalDual(multiplier) => {
                trace.multiplier.push(*multiplier);
                let (policy, next) = primal_dual_policy(problem, &counts, terms, k, *multiplier);
                *multiplier = next;
                (policy, false)
            }
        };
        play(
            model,
            &dense,
            &policy,
            &mut streams,
            &mut counts,
            &mut trace,
        );
        // Policies without chance are judged on lists if there are many states.
        let deterministic = matches!(plain, Plain::PrimalDual(_)) || on_baseline;
        let judged = if deterministic && model.shape().num_states() > 64 {
            &listed
        } else {
            &in_full
        };
        let value = |signal| evaluate(&policy, signal, judged, model.initial()).unwrap();
        trace.deployed_value.push(value(model.reward()));
        trace.deployed_cost.push(value(&model.costs()[0]));
        trace.on_baseline.push(on_baseline);
    }
    trace
}
