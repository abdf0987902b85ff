//! The net under every change: each engine on each instruction set must come to the same bits.

use std::slice::from_ref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use optpess_core::confidence::{ConfidenceRule, CostRadius, LearningTerms};
use optpess_core::error::Error;
use optpess_core::fast::isa::{InstructionSet, available, force};
use optpess_core::learn::{AnyLearner, Learner};
use optpess_core::model::ObservationNoise;
use optpess_core::run::{Control, EngineChoice, Outcome, Simulation, Trace, simulate};
use optpess_core::trajectory::Trajectory;

use crate::bits::{Bits, outcome_bits, record_bits};
use crate::cases::{Problem, Visitor, terms};
use crate::known_models::planning_bits;
use crate::traces::golden;

/// One instruction set for the whole process; the next test that forces one waits until it is over.
struct Forced(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

static FORCING: Mutex<()> = Mutex::new(());

impl Drop for Forced {
    fn drop(&mut self) {
        // Only sets that the processor lacks are refused.
        let _ = force(None);
    }
}

/// Calls `body` once for each instruction set of this processor, with that set in use.
pub fn under_each_set(mut body: impl FnMut(InstructionSet)) {
    let forced = Forced(FORCING.lock().unwrap_or_else(PoisonError::into_inner));
    for &set in available() {
        force(Some(set)).unwrap();
        body(set);
    }
    drop(forced);
}

/// Fails if one bit differs; says what, and in which replicate and entry.
fn assert_same_bits(what: &str, found: &[Bits], expected: &[Bits]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (replicate, (ours, theirs)) in found.iter().zip(expected).enumerate() {
        assert_eq!(ours.len(), theirs.len(), "{what}");
        for ((name, ours), (_, theirs)) in ours.iter().zip(theirs) {
            assert_eq!(ours.len(), theirs.len(), "{what}: {name}");
            let differing = ours.iter().zip(theirs).position(|(a, b)| a != b);
            assert_eq!(differing, None, "{what}: replicate {replicate}, {name}");
        }
    }
}

fn run<L: Learner + Clone + Into<AnyLearner>>(
    problem: &Problem,
    learner: &L,
    simulation: &Simulation,
) -> Vec<Outcome> {
    simulate(
        &problem.model,
        &learner.clone().into(),
        1.0,
        simulation,
        &Control::default(),
    )
    .unwrap()
}

/// Every learner on one problem, by every engine it has, on every instruction set.
struct AllEngines<'a> {
    problem: &'a Problem,
    batch: bool,
    cases: usize,
    /// How many learners began on pi0 and left it.
    through_gate: usize,
}

impl Visitor for AllEngines<'_> {
    fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, name: &str, learner: &L) {
        let simulation = |engine, replicates: std::ops::Range<u64>, trace| Simulation {
            replicates: replicates.collect(),
            seed: 5,
            threads: 1,
            episodes: learner.terms().num_episodes(),
            trace,
            audit: false,
            learners: false,
            engine,
        };
        let expected = run(
            self.problem,
            learner,
            &simulation(EngineChoice::Plain, 0..11, true),
        );
        let waited = expected[0].record.baseline_episodes;
        let left = (1..learner.terms().num_episodes()).contains(&waited);
        self.through_gate += usize::from(left && name != "sops"); // a coin is no gate
        let outcomes: Vec<Bits> = expected.iter().map(outcome_bits).collect();
        let records: Vec<Bits> = expected
            .iter()
            .map(|one| record_bits(&one.record))
            .collect();
        let single = [
            EngineChoice::Auto,
            EngineChoice::Plain,
            EngineChoice::Packed,
        ];
        let batches = [1, 8].map(|lanes| EngineChoice::Batch { lanes });
        under_each_set(|set| {
            for (count, threads) in [(1, 1), (11, 1), (11, 2)] {
                let check = |engine, trace, audit, expected: &[Bits]| {
                    let asked = Simulation {
                        threads,
                        audit,
                        ..simulation(engine, 0..count, trace)
                    };
                    let found = run(self.problem, learner, &asked);
                    let found: Vec<Bits> = found.iter().map(outcome_bits).collect();
                    let what = format!("{name}, {set:?}, {engine:?}, {threads} threads");
                    assert_same_bits(&what, &found, &expected[..count as usize]);
                };
                for engine in single {
                    check(engine, true, false, &outcomes);
                    check(engine, false, false, &records);
                    self.cases += 2;
                }
                check(EngineChoice::Auto, true, true, &outcomes);
                for engine in batches {
                    if self.batch && name == "primal-dual" {
                        check(engine, false, false, &records);
                        self.cases += 1;
                    }
                }
            }
        });
    }
}

/// How many episodes are left for the learners that a run gives back.
const LEFT: u64 = 30;

/// Every learner by every engine: the learner that a shorter run gives back goes on, on its own, and comes to the bits of
/// the learner of the whole run.
struct GivenBack<'a> {
    problem: &'a Problem,
    batch: bool,
    cases: usize,
}

impl Visitor for GivenBack<'_> {
    fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, name: &str, learner: &L) {
        let last = learner.terms().num_episodes().min(400);
        let simulation = |engine, episodes, trace| Simulation {
            replicates: (0..9).collect(),
            seed: 5,
            threads: 1,
            episodes,
            trace,
            audit: false,
            learners: true,
            engine,
        };
        let asked = simulation(EngineChoice::Plain, last, true);
        let whole = run(self.problem, learner, &asked);
        let mut engines = vec![EngineChoice::Auto, EngineChoice::Plain];
        if self.batch && name == "primal-dual" {
            engines.extend([1, 8].map(|lanes| EngineChoice::Batch { lanes }));
        }
        for engine in engines {
            let asked = simulation(engine, last - LEFT, false);
            let shorter = run(self.problem, learner, &asked);
            assert_eq!(shorter.len(), whole.len());
            for (outcome, expected) in shorter.into_iter().zip(&whole) {
                let mut found = outcome.learner.unwrap();
                assert_eq!(found.episodes_observed(), last - LEFT);
                let trace = expected.trace.as_ref().unwrap();
                for episode in last - LEFT..last {
                    found.next_policy().unwrap();
                    let seen = trajectory(self.problem, trace, episode as usize);
                    found.observe(&seen).unwrap();
                }
                let bytes = |learner: &AnyLearner| postcard::to_stdvec(learner).unwrap();
                let same = bytes(&found) == bytes(expected.learner.as_ref().unwrap());
                assert!(same, "{name}, {engine:?}");
                self.cases += 1;
            }
        }
    }
}

/// One episode of a trace.
fn trajectory(problem: &Problem, trace: &Trace, episode: usize) -> Trajectory {
    let (shape, costs) = (problem.model.shape(), problem.model.costs().len());
    let horizon = shape.horizon();
    let steps = episode * horizon..(episode + 1) * horizon;
    Trajectory::with_costs(
        shape,
        costs,
        trace.states[steps.clone()].to_vec(),
        trace.actions[steps.clone()].to_vec(),
        trace.rewards[steps].to_vec(),
        trace.costs[episode * costs * horizon..(episode + 1) * costs * horizon].to_vec(),
    )
    .unwrap()
}

#[test]
fn a_learner_that_a_run_gives_back_goes_on_as_the_whole_run_does() {
    for (sizes, batch) in [([3, 2, 3], true), ([5, 3, 4], true), ([10, 2, 6], false)] {
        let problem = Problem::random(sizes, 3);
        let mut visitor = GivenBack {
            problem: &problem,
            batch,
            cases: 0,
        };
        visit_ours(&problem, terms(400, 0.02), &mut visitor);
        problem.visit_peers(terms(60, 0.02), &mut visitor);
        assert!(visitor.cases > 200);
    }
}

/// Both of the paper's algorithms, and the first with an estimated c0.
fn visit_ours(problem: &Problem, terms: LearningTerms, visitor: &mut impl Visitor) {
    visitor.visit("lp", &problem.lp(terms));
    let estimating = problem.lp_with_estimated_cost(terms, CostRadius::Paper);
    visitor.visit("lp, estimated cost", &estimating);
    visitor.visit("primal-dual", &problem.primal_dual(terms));
}

/// `batch`: whether the problem is small enough for replicates in lanes. Returns how many learners began on pi0 and
/// left it.
fn check_all(problem: &Problem, factor: f64, [ours, peers]: [u64; 2], batch: bool) -> usize {
    let mut engines = AllEngines {
        problem,
        batch,
        cases: 0,
        through_gate: 0,
    };
    visit_ours(problem, terms(ours, factor), &mut engines);
    if peers > 0 {
        problem.visit_peers(terms(peers, factor), &mut engines);
    }
    let (learners, tried) = (if peers > 0 { 12 } else { 3 }, 3 * available().len());
    let expected = tried * (6 * learners + if batch { 2 } else { 0 });
    assert_eq!(
        engines.cases, expected,
        "a learner or an engine was left out"
    );
    engines.through_gate
}

#[test]
fn every_engine_on_every_instruction_set_comes_to_the_same_bits() {
    let gates = check_all(&Problem::random([3, 2, 3], 5), 0.02, [1000, 40], true)
        + check_all(&Problem::random([5, 3, 4], 6), 0.02, [1500, 20], true);
    assert!(gates >= 4, "OptPess-LP never planned, or never waited");
    check_all(&Problem::random([3, 2, 3], 5), 0.003, [300, 0], true);
    check_all(&Problem::random([13, 2, 1], 7), 0.003, [200, 20], true);
}

#[test]
fn so_they_do_with_other_noise_and_other_storage() {
    let noises = [
        ObservationNoise::Deterministic,
        ObservationNoise::gaussian(0.6).unwrap(),
        ObservationNoise::uniform(0.5).unwrap(),
    ];
    for noise in noises {
        for problem in golden("pair", noise) {
            check_all(&problem, 0.01, [200, 0], true);
        }
        let problem = Problem::random([3, 2, 3], 8).with_noise(noise);
        check_all(&problem, 0.003, [100, 20], true);
    }
}

#[test]
fn so_they_do_on_problems_too_large_for_lanes() {
    check_all(&Problem::random([10, 4, 10], 5), 0.0001, [60, 0], false);
    let listed = Problem::random_with([66, 2, 3], 3, 3);
    check_all(&listed, 1e-6, [100, 0], false);
    let in_full = Problem::random_with([66, 2, 3], 66, 3);
    check_all(&in_full, 1e-6, [100, 0], false);
    check_all(&Problem::random([9, 3, 3], 5), 0.001, [60, 20], false);
}

/// Learners mostly evaluate policies without chance; here others are evaluated too.
#[test]
fn plans_and_values_of_known_models_have_the_same_bits_on_every_instruction_set() {
    for states in (1..22).chain([40, 66]) {
        let problem = Problem::random_with([states, 2, 3], states.min(9), 6);
        let mut first = None;
        under_each_set(|set| {
            let found = planning_bits(&problem);
            let expected = first.get_or_insert_with(|| found.clone());
            for ((name, found), (_, expected)) in found.iter().zip(expected) {
                let what = format!("{set:?}, {states} states, {name}");
                assert_same_bits(&what, from_ref(found), from_ref(expected));
            }
        });
    }
}

/// The theorem's constants, without a factor: a long time on pi0, which the fast engine does not evaluate.
#[test]
fn two_hundred_thousand_episodes_at_the_theorems_constants_are_those_of_the_audited_run() {
    let problem = golden("pair", ObservationNoise::Bernoulli).remove(0);
    let terms = LearningTerms::new(200_000, 0.05, ConfidenceRule::Theorem).unwrap();
    let waited = compare_audited(&problem, &problem.lp(terms));
    assert!((50_000..150_000).contains(&waited), "waited {waited}");
    compare_audited(&problem, &problem.primal_dual(terms));
}

/// Sharp: the bonus is no function of visits, so the bound on the gate must not be used.
#[test]
fn with_sharp_bonuses_every_engine_is_the_audited_run() {
    let terms = |episodes| LearningTerms::new(episodes, 0.05, ConfidenceRule::Sharp).unwrap();
    for name in ["pair", "ring"] {
        let problem = golden(name, ObservationNoise::Bernoulli).remove(0);
        let waited = compare_audited(&problem, &problem.lp(terms(6_000)));
        assert!((100..5_500).contains(&waited), "{name}: waited {waited}");
    }
    let sparse = Problem::random_with([70, 2, 3], 3, 4);
    compare_audited(&sparse, &sparse.lp(terms(2_000)));
    let problem = golden("pair", ObservationNoise::Bernoulli).remove(0);
    let estimating = problem.lp_with_estimated_cost(terms(6_000), CostRadius::SubGaussian);
    compare_audited(&problem, &estimating);
}

/// Every engine against the audited run; how long the learner stayed on pi0.
fn compare_audited<L: Learner + Clone + Into<AnyLearner>>(problem: &Problem, learner: &L) -> u64 {
    let mut waited = 0;
    let mut bits = |engine, audit, trace| {
        let asked = Simulation {
            replicates: vec![0],
            seed: 1,
            threads: 1,
            episodes: learner.terms().num_episodes(),
            trace,
            audit,
            learners: false,
            engine,
        };
        let outcomes = run(problem, learner, &asked);
        waited = outcomes[0].record.baseline_episodes;
        outcomes.iter().map(outcome_bits).collect::<Vec<_>>()
    };
    let audited = bits(EngineChoice::Auto, true, true);
    for engine in [EngineChoice::Packed, EngineChoice::Plain] {
        let plain = bits(engine, false, true);
        assert_same_bits(&format!("{engine:?}"), &plain, &audited);
    }
    let record = [
        bits(EngineChoice::Auto, true, false),
        bits(EngineChoice::Auto, false, false),
    ];
    assert_same_bits("without a trace", &record[1], &record[0]);
    waited
}

/// The refusal of a batch of OptPess-LP.
pub fn refused_batch() -> Error {
    let problem = Problem::random([3, 2, 3], 5);
    let learner = problem.lp(terms(10, 1.0));
    refusal(
        &problem,
        &learner,
        EngineChoice::Batch { lanes: 8 },
        [false; 2],
    )
}

fn refusal<L: Learner + Clone + Into<AnyLearner>>(
    problem: &Problem,
    learner: &L,
    engine: EngineChoice,
    [trace, audit]: [bool; 2],
) -> Error {
    let asked = Simulation {
        replicates: vec![0],
        seed: 1,
        threads: 1,
        episodes: 10,
        trace,
        audit,
        learners: false,
        engine,
    };
    let control = Control::default();
    simulate(
        &problem.model,
        &learner.clone().into(),
        1.0,
        &asked,
        &control,
    )
    .unwrap_err()
}

#[test]
fn an_engine_that_does_not_exist_is_refused_by_name() {
    let small = Problem::random([3, 2, 3], 5);
    let large = Problem::random([10, 4, 10], 5);
    let of = |problem: &Problem| problem.primal_dual(terms(10, 1.0));
    let batch = EngineChoice::Batch { lanes: 8 };
    let odd = EngineChoice::Batch { lanes: 3 };
    let found = [
        refusal(&large, &of(&large), batch, [false; 2]),
        refusal(&small, &of(&small), odd, [false; 2]),
        refusal(&small, &of(&small), batch, [true, false]),
        refusal(&small, &of(&small), batch, [false, true]),
        refusal(&small, &of(&small), EngineChoice::Packed, [false, true]),
    ];
    let expected = [
        ("Batch", "this learner and problem have none"),
        ("Batch", "it has 1 or 8 lanes"),
        ("Batch", "it keeps no trace"),
        ("Batch", "an audit reads figures it leaves out"),
        ("Packed", "an audit reads figures it leaves out"),
    ];
    for (found, (engine, reason)) in found.into_iter().zip(expected) {
        assert_eq!(found, Error::NoSuchEngine { engine, reason });
    }
}
