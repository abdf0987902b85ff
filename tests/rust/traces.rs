//! The simulation loop against the plain one of `plain`, to the last bit: whatever the core leaves out,
//! keeps or reorders for speed must not show in what is played, seen or recorded.

use optpess_core::confidence::LearningTerms;
use optpess_core::learn::{AnyLearner, Learner, OptPessPrimalDual};
use optpess_core::model::ObservationNoise;
use optpess_core::run::{Control, EngineChoice, Outcome, Simulation, Trace, simulate};
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::{Signal, StepSignal};
use optpess_core::trajectory::Trajectory;

use crate::bits::trace_bits;
use crate::cases::{Problem, terms};
use crate::instances::load_all;
use crate::net::under_each_set;
use crate::plain::{Algorithm, Inputs, Noise, Played, plain_run};
use crate::sources::without_comments;

/// A golden instance, once for every way in which its kernel can be stored.
pub fn golden(name: &str, noise: ObservationNoise) -> Vec<Problem> {
    let instances = load_all();
    let instance = instances.iter().find(|other| other.name == name).unwrap();
    let parts = |kernel| {
        let mut signals = [instance.reward_signals(), instance.cost_signals()];
        let [reward, cost] = signals.each_mut().map(|stored| stored.pop().unwrap());
        (kernel, reward, cost)
    };
    let kernels = instance.kernels().into_iter();
    let initial = || instance.initial.clone();
    kernels
        .map(|(_, kernel)| Problem::new(parts(kernel), Some(instance.limit), initial(), noise))
        .collect()
}

fn one_replicate<L: Learner + Clone + Into<AnyLearner>>(learner: &L, seed: u64) -> Simulation {
    Simulation {
        replicates: vec![0],
        seed,
        threads: 1,
        episodes: learner.terms().num_episodes(),
        trace: true,
        audit: false,
        learners: false,
        engine: EngineChoice::Auto,
    }
}

fn core_run<L: Learner + Clone + Into<AnyLearner>>(
    problem: &Problem,
    learner: &L,
    seed: u64,
    replicate: u64,
) -> Outcome {
    let simulation = Simulation {
        replicates: vec![replicate],
        ..one_replicate(learner, seed)
    };
    let control = Control::default();
    let outcomes = simulate(
        &problem.model,
        &learner.clone().into(),
        1.0,
        &simulation,
        &control,
    );
    outcomes.unwrap().remove(0)
}

/// What the plain loop is given: the tables of the problem and the numbers of the Input line.
fn inputs(problem: &Problem, terms: &LearningTerms) -> Inputs {
    let (model, shape) = (&problem.model, problem.model.shape());
    let [horizon, states, actions] = shape.sizes();
    let rows = || (0..shape.triples()).map(|row| (row / shape.pairs(), row % shape.pairs()));
    let table = |signal: &Signal| rows().map(|(step, pair)| signal.at(step, pair)).collect();
    let mut kernel = vec![0.0; shape.triples() * states];
    for ((step, pair), row) in rows().zip(kernel.chunks_exact_mut(states)) {
        for (state, probability) in model.kernel().kernel().successors(step, pair) {
            row[state] = probability;
        }
    }
    Inputs {
        horizon,
        states,
        actions,
        kernel,
        reward: table(model.reward()),
        cost: table(&model.costs()[0]),
        initial: model.initial().data().to_vec(),
        noise: match model.noise() {
            ObservationNoise::Deterministic => Noise::Deterministic,
            ObservationNoise::Bernoulli => Noise::Bernoulli,
            ObservationNoise::Gaussian(normal) => Noise::Gaussian(normal.sigma()),
            ObservationNoise::Uniform(uniform) => Noise::Uniform(uniform.half_width()),
        },
        limit: problem.margin.cost_limit(),
        safe_cost: problem.margin.safe_cost(),
        baseline: problem.safe.data().to_vec(),
        num_episodes: terms.num_episodes(),
        delta: terms.failure_probability(),
        factor: terms.rule().factor(),
    }
}

/// Runs both algorithms both ways; how many episodes OptPess-LP spent on pi0.
fn compare(problem: &Problem, episodes: u64, factor: f64, seed: u64) -> u64 {
    let terms = terms(episodes, factor);
    let (inputs, replicate) = (inputs(problem, &terms), seed % 3);
    let run = |algorithm| trace_of(plain_run(&inputs, algorithm, seed, replicate));
    let found = core_run(problem, &problem.primal_dual(terms), seed, replicate);
    assert_same(
        &found.trace.unwrap(),
        &run(Algorithm::PrimalDual { multiplier: 0.0 }),
    );
    let found = core_run(problem, &problem.lp(terms), seed, replicate);
    assert_same(&found.trace.unwrap(), &run(Algorithm::Lp { last: None }));
    found.record.baseline_episodes
}

fn trace_of(played: Played) -> Trace {
    Trace {
        states: played.states,
        actions: played.actions,
        rewards: played.rewards,
        costs: played.costs,
        deployed_value: played.true_values,
        deployed_cost: played.true_costs,
        on_baseline: played.on_baseline,
        multiplier: played.multipliers,
    }
}

/// Bit for bit; the part that differs is named.
fn assert_same(found: &Trace, expected: &Trace) {
    for ((name, ours), (_, theirs)) in trace_bits(found).iter().zip(trace_bits(expected)) {
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let differing = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(differing, None, "{name}");
    }
}

/// A yardstick that uses what it measures measures nothing.
#[test]
fn the_plain_loop_shares_no_code_with_the_core() {
    for text in [include_str!("plain.rs"), include_str!("plain_planning.rs")] {
        let code = without_comments(text);
        assert!(!code.contains("optpess_core") && !code.contains("super::"));
        let own = code.split("crate::").skip(1);
        assert!(own.into_iter().all(|path| path.starts_with("plain")));
    }
}

#[test]
fn runs_on_golden_instances_are_those_of_the_plain_loop() {
    let noises = [
        ObservationNoise::Bernoulli,
        ObservationNoise::Deterministic,
        ObservationNoise::gaussian(0.3).unwrap(),
        ObservationNoise::uniform(0.5).unwrap(),
    ];
    let mut gates = 0;
    for (index, noise) in noises.into_iter().enumerate() {
        for (name, factor) in [("pair", 0.02), ("ring", 0.002)] {
            for problem in golden(name, noise) {
                let waited = compare(&problem, 150, factor, index as u64);
                gates += u32::from((1..150).contains(&waited));
            }
        }
    }
    assert!(gates > 0, "no run of OptPess-LP passed its gate");
}

#[test]
fn runs_on_random_problems_are_those_of_the_plain_loop() {
    for (sizes, factor) in [
        ([3, 2, 3], 0.003),
        ([5, 3, 4], 0.001),
        ([10, 4, 10], 0.0001),
        ([9, 9, 2], 0.001),
        ([1, 3, 5], 0.003),
    ] {
        let waited = compare(&Problem::random(sizes, 5), 300, factor, 11);
        assert!(waited < 300, "OptPess-LP never planned: {sizes:?}");
    }
}

/// With many states successors are kept as lists, which grow and give way to full rows.
#[test]
fn runs_with_lists_of_successors_are_those_of_the_plain_loop() {
    for (num_successors, factor) in [(3, 1.0), (3, 1e-6), (12, 1e-6), (66, 1.0), (66, 1e-6)] {
        let problem = Problem::random_with([66, 2, 3], num_successors, 3);
        let waited = compare(&problem, 400, factor, 7);
        assert!(factor > 0.5 || waited < 400, "OptPess-LP never planned");
    }
}

/// Tiny problems have loops of their own, for one replicate and for several side by side; each must be
/// what the learner makes of it.
#[test]
fn replicates_of_tiny_problems_are_those_of_the_learner_alone_and_side_by_side() {
    let mut problems = vec![
        (Problem::random([3, 2, 3], 1), 1.0),
        (Problem::random([3, 2, 3], 2), 0.003),
        (Problem::random([5, 4, 4], 3), 0.01),
        (Problem::random([9, 2, 2], 4), 0.01),
        (Problem::random([1, 3, 5], 5), 0.003),
        (Problem::random([2, 2, 1], 6), 0.003),
        (Problem::random([13, 2, 1], 7), 0.003), // a size without a loop of its own
    ];
    for noise in [
        ObservationNoise::Deterministic,
        ObservationNoise::gaussian(0.6).unwrap(),
        ObservationNoise::uniform(0.5).unwrap(),
    ] {
        let golden = golden("pair", noise).into_iter();
        problems.extend(golden.map(|problem| (problem, 0.01)));
    }
    for (problem, factor) in problems {
        let mut learner = problem.primal_dual(terms(3000, factor));
        let run = |learner: &OptPessPrimalDual, replicates: Vec<u64>, threads, trace| {
            let simulation = Simulation {
                replicates,
                threads,
                trace,
                episodes: 2000,
                ..one_replicate(learner, 9)
            };
            let control = Control::default();
            let outcomes = simulate(
                &problem.model,
                &learner.clone().into(),
                1.0,
                &simulation,
                &control,
            )
            .unwrap();
            let records = outcomes.into_iter().map(|outcome| outcome.record);
            records.collect::<Vec<_>>()
        };
        for seen_before in [false, true] {
            if seen_before {
                play_a_little(&problem, &mut learner);
            }
            // With a trace it is the learner itself that runs.
            let expected = run(&learner, (0..11).collect(), 1, true);
            let alone = |replicate| run(&learner, vec![replicate], 1, false).remove(0);
            assert_eq!((0..11).map(alone).collect::<Vec<_>>(), expected);
            // Whole and part-filled groups, and out of order. Equal up to NaN, which none of these hold.
            assert_eq!(run(&learner, (0..11).collect(), 1, false), expected);
            assert_eq!(run(&learner, (0..11).collect(), 3, false), expected);
            let chosen = run(&learner, vec![7, 2, 10], 1, false);
            assert_eq!(
                chosen,
                [7, 2, 10].map(|place: usize| expected[place].clone())
            );
        }
    }
}

/// Fifty episodes by the two verbs.
fn play_a_little(problem: &Problem, learner: &mut OptPessPrimalDual) {
    let model = &problem.model;
    let environment = TabularEnvironment::new(model).unwrap();
    let mut streams = Streams::new(3, 0);
    let mut seen = Trajectory::zeros(model.shape(), 1).unwrap();
    for _ in 0..50 {
        learner.next_policy().unwrap();
        environment.rollout(learner.policy(), &mut streams, &mut seen);
        learner.observe(&seen).unwrap();
    }
}

/// An audit reads every figure of a deployment, so the audited run evaluates pi0 at every episode; the
/// other one only watches how far its value can have fallen.
#[test]
fn a_gate_that_is_watched_opens_when_one_that_is_looked_at_opens() {
    let noises = [
        ObservationNoise::Bernoulli,
        ObservationNoise::gaussian(0.6).unwrap(),
    ];
    for noise in noises {
        for (name, factor) in [("pair", 0.2), ("ring", 0.1)] {
            let problem = golden(name, noise).remove(0);
            for seed in 0..4 {
                let learner = problem.lp(terms(20_000, factor));
                let run = |audit| {
                    let simulation = Simulation {
                        audit,
                        ..one_replicate(&learner, seed)
                    };
                    let control = Control::default();
                    let outcomes = simulate(
                        &problem.model,
                        &learner.clone().into(),
                        1.0,
                        &simulation,
                        &control,
                    );
                    outcomes.unwrap().remove(0)
                };
                let (watched, looked_at) = (run(false), run(true));
                let waited = watched.record.baseline_episodes;
                assert!((1000..20_000).contains(&waited), "{name} waited {waited}");
                assert_eq!(watched.record, looked_at.record);
                assert_same(&watched.trace.unwrap(), &looked_at.trace.unwrap());
            }
        }
    }
}

/// Whole numbers only: the logarithm in the bonus may differ in its last digit between machines.
#[test]
fn a_thousand_episodes_of_each_algorithm_are_pinned() {
    let fold = |hash: u64, value: u32| (hash ^ u64::from(value)).wrapping_mul(0x0100_0000_01b3);
    let hash = |outcome: &Outcome| {
        let trace = outcome.trace.as_ref().unwrap();
        let places = trace.states.iter().chain(&trace.actions).copied();
        let stays = trace.on_baseline.iter().map(|&stayed| u32::from(stayed));
        places.chain(stays).fold(0xcbf2_9ce4_8422_2325, fold)
    };
    under_each_set(|set| {
        let mut found = Vec::new();
        for (sizes, factor) in [([3, 2, 3], 0.003), ([10, 4, 10], 0.0001)] {
            for seed in [1, 2] {
                let problem = Problem::random(sizes, seed);
                let terms = terms(1000, factor);
                found.push(hash(&core_run(&problem, &problem.lp(terms), seed, 0)));
                found.push(hash(&core_run(
                    &problem,
                    &problem.primal_dual(terms),
                    seed,
                    0,
                )));
            }
        }
        assert_eq!(found, PINNED, "{set:?}");
    });
}

const PINNED: [u64; 8] = [
    12_482_394_987_957_576_525,
    7_139_818_392_391_486_186,
    15_871_098_216_613_116_535,
    17_879_339_435_634_405_031,
    598_598_657_443_442_588,
    13_747_333_723_331_028_441,
    18_341_705_342_354_804_410,
    10_939_744_337_427_977_600,
];
