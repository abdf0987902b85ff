//! Runs that are stopped at any moment and go on from the states of their replicates: the outcomes have the bits of a
//! run that was never stopped, and what was recorded until then has the bits of a shorter run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use optpess_core::confidence::{CostRadius, Observations};
use optpess_core::error::Error;
use optpess_core::knowledge::Knowledge;
use optpess_core::learn::{
    AnyLearner, Exploration, Learner, LimitedBaseline, MixSettings, OptPessMix,
};
use optpess_core::model::ObservationNoise;
use optpess_core::run::{
    Control, EngineChoice, Outcome, Simulation, Snapshots, StoredReplicate, simulate, simulate_on,
};

use crate::bits::outcome_bits;
use crate::cases::{Problem, Visitor, terms};

fn simulation(episodes: u64, replicates: Vec<u64>, engine: EngineChoice) -> Simulation {
    Simulation {
        replicates,
        seed: 5,
        threads: 1,
        episodes,
        trace: false,
        audit: false,
        learners: true,
        engine,
    }
}

fn mix(problem: &Problem) -> AnyLearner {
    let baseline = LimitedBaseline::new(problem.safe.clone(), &[problem.margin]).unwrap();
    let settings = MixSettings {
        radius_factor: 0.02,
        failure_probability: 0.05,
        knowledge: Knowledge::default(),
        observations: Observations::Bounded,
        exploration: Exploration::default(),
        replan_growth: 0.05,
        seed: 3,
    };
    let initial = problem.model.initial().clone();
    OptPessMix::new(initial, baseline, settings).unwrap().into()
}

/// All bits of what a run comes to, the learners included.
fn bits(outcomes: &[Outcome]) -> Vec<(u64, String)> {
    let all = outcomes.iter().map(|outcome| {
        let mut learner = outcome.learner.clone();
        let stored = learner.as_mut().map(|learner| {
            learner.signals(); // brings up to date what follows from the counts
            postcard::to_stdvec(learner).unwrap()
        });
        let audit = outcome.audit.as_ref().map(|audit| audit.findings);
        let all = format!("{:?} {stored:?} {audit:?}", outcome_bits(outcome));
        (outcome.replicate, all)
    });
    all.collect()
}

/// A run that is stopped again and again, and the number of times it went on from an episode within.
struct Stopped<'a> {
    problem: &'a Problem,
    learner: &'a AnyLearner,
    stored: Vec<Option<StoredReplicate>>,
    times_resumed: usize,
}

impl<'a> Stopped<'a> {
    fn new(problem: &'a Problem, learner: &'a AnyLearner, replicates: usize) -> Self {
        Self {
            problem,
            learner,
            stored: vec![None; replicates],
            times_resumed: 0,
        }
    }

    /// Goes on for at most `time`, with a request for the states in the middle; returns what was recorded so far.
    fn run_for(&mut self, time: Duration, simulation: &Simulation) -> Vec<Outcome> {
        let begun = |stored: &Option<StoredReplicate>| stored.as_ref().map_or(0, |s| s.episodes);
        let within = |episodes: u64| episodes > 0 && episodes < simulation.episodes;
        let resumes = self.stored.iter().map(begun).any(within);
        self.times_resumed += usize::from(resumes);
        let (control, ended) = (Control::default(), AtomicBool::new(false));
        let snapshots = Snapshots::new(std::mem::take(&mut self.stored));
        let outcomes = std::thread::scope(|scope| {
            scope.spawn(|| {
                let wait = |until: Instant| {
                    while Instant::now() < until && !ended.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                };
                let start = Instant::now();
                wait(start + time / 2);
                control.ask_for_states();
                wait(start + time);
                control.stop.store(true, Ordering::Relaxed);
            });
            let (model, learner) = (&self.problem.model, self.learner);
            let found = simulate_on(model, learner, 1.0, simulation, &snapshots, &control);
            ended.store(true, Ordering::Relaxed);
            found.unwrap()
        });
        self.stored = snapshots.stored();
        outcomes
    }
}

/// Stops a run at many moments, goes on with other engines and numbers of threads, and compares the end with a run
/// that was never stopped. Returns how often it went on from an episode within.
fn check(
    problem: &Problem,
    learner: &AnyLearner,
    asked: &Simulation,
    engines: &[EngineChoice],
) -> usize {
    let start = Instant::now();
    let expected = simulate(&problem.model, learner, 1.0, asked, &Control::default()).unwrap();
    let time = start.elapsed();
    let mut stopped = Stopped::new(problem, learner, asked.replicates.len());
    for attempt in 0.. {
        let again = Simulation {
            threads: 1 + attempt % 3,
            engine: engines[attempt % engines.len()],
            ..asked.clone()
        };
        let some = time / 5 * (1 + attempt as u32 / 8);
        let outcomes = stopped.run_for(some, &again);
        for outcome in outcomes.iter().filter(|_| attempt < 2) {
            let shorter = Simulation {
                replicates: vec![outcome.replicate],
                episodes: outcome.episodes,
                ..asked.clone()
            };
            let control = Control::default();
            let mut shorter = simulate(&problem.model, learner, 1.0, &shorter, &control).unwrap();
            if outcome.learner.is_none() {
                shorter[0].learner = None; // it was stopped within a plan
            }
            assert_eq!(bits(std::slice::from_ref(outcome)), bits(&shorter));
        }
        let ended = |outcome: &Outcome| outcome.episodes == asked.episodes;
        if outcomes.len() == asked.replicates.len() && outcomes.iter().all(ended) {
            assert_eq!(bits(&outcomes), bits(&expected));
            return stopped.times_resumed;
        }
    }
    unreachable!()
}

const ENGINES: [EngineChoice; 3] = [
    EngineChoice::Auto,
    EngineChoice::Plain,
    EngineChoice::Packed,
];

#[test]
fn every_learner_goes_on_with_the_same_bits() {
    struct Check<'a>(&'a Problem, usize);
    impl Visitor for Check<'_> {
        fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, _: &str, learner: &L) {
            let asked = simulation(1500, vec![0, 4], EngineChoice::Auto);
            self.1 += check(self.0, &learner.clone().into(), &asked, &ENGINES);
        }
    }
    let problem = Problem::random([4, 2, 5], 3);
    let mut checked = Check(&problem, 0);
    problem.visit_peers(terms(1500, 1e-3), &mut checked);
    let found = checked.1;
    assert!(found > 0, "nothing was stopped within");
    let asked = simulation(600, vec![3], EngineChoice::Auto);
    let learner = problem.lp(terms(600, 1e-4)).into();
    check(&problem, &learner, &asked, &ENGINES);
    let radius = CostRadius::SubGaussian;
    let learner = problem.lp_with_estimated_cost(terms(600, 1e-4), radius);
    check(&problem, &learner.into(), &asked, &ENGINES);
    check(&problem, &mix(&problem), &asked, &ENGINES);
}

#[test]
fn lists_of_successors_and_other_noise_go_on_with_the_same_bits() {
    let problem = Problem::random_with([70, 2, 4], 9, 1);
    let asked = simulation(400, vec![0, 1], EngineChoice::Auto);
    check(
        &problem,
        &problem.primal_dual(terms(400, 1e-3)).into(),
        &asked,
        &ENGINES,
    );
    check(
        &problem,
        &problem.lp(terms(400, 1e-4)).into(),
        &asked,
        &ENGINES,
    );
    let noise = ObservationNoise::gaussian(0.3).unwrap();
    let problem = Problem::random([3, 2, 3], 2).with_noise(noise);
    let asked = simulation(4000, (0..11).collect(), EngineChoice::Auto);
    let learner = problem.primal_dual(terms(4000, 1e-2)).into();
    check(&problem, &learner, &asked, &ENGINES);
}

#[test]
fn replicates_in_lanes_go_on_one_by_one_and_in_other_groups() {
    let problem = Problem::random([2, 2, 3], 8);
    let learner = problem.primal_dual(terms(8000, 1e-2)).into();
    let asked = simulation(8000, (0..19).collect(), EngineChoice::Auto);
    let engines = [
        EngineChoice::Auto,
        EngineChoice::Batch { lanes: 1 },
        EngineChoice::Packed,
        EngineChoice::Batch { lanes: 8 },
        EngineChoice::Plain,
    ];
    assert!(check(&problem, &learner, &asked, &engines) > 0);
}

#[test]
fn traces_and_audits_go_on_too() {
    let problem = Problem::random([3, 2, 4], 5);
    let asked = Simulation {
        trace: true,
        audit: true,
        ..simulation(500, vec![2, 3], EngineChoice::Auto)
    };
    let plain = [EngineChoice::Auto, EngineChoice::Plain];
    check(&problem, &mix(&problem), &asked, &plain);
    check(
        &problem,
        &problem.primal_dual(terms(500, 1e-2)).into(),
        &asked,
        &plain,
    );
    let radius = CostRadius::SubGaussian;
    let learner = problem.lp_with_estimated_cost(terms(500, 1e-4), radius);
    check(&problem, &learner.into(), &asked, &plain);
}

/// The states of a run that was stopped.
fn some_states(
    problem: &Problem,
    learner: &AnyLearner,
    asked: &Simulation,
) -> Vec<Option<StoredReplicate>> {
    let mut stopped = Stopped::new(problem, learner, asked.replicates.len());
    for attempt in 1.. {
        stopped.run_for(Duration::from_micros(200 * attempt), asked);
        let stored = stopped.stored[0].as_ref();
        if stored.is_some_and(|stored| stored.episodes > 0) {
            return stopped.stored;
        }
    }
    unreachable!()
}

#[test]
fn states_of_another_run_are_refused() {
    let problem = Problem::random([2, 2, 3], 8);
    let learner: AnyLearner = problem.lp(terms(100_000, 1e-4)).into();
    let asked = simulation(100_000, vec![0], EngineChoice::Auto);
    let stored = some_states(&problem, &learner, &asked);
    let refused = |learner: &AnyLearner, asked: &Simulation, stored: &StoredReplicate| {
        let snapshots = Snapshots::new(vec![Some(stored.clone())]);
        let control = Control::default();
        let found = simulate_on(&problem.model, learner, 1.0, asked, &snapshots, &control);
        matches!(found.unwrap_err(), Error::StoredState { .. })
    };
    let state = stored[0].as_ref().unwrap();
    let other = problem.primal_dual(terms(100_000, 1e-4)).into();
    assert!(refused(&other, &asked, state));
    let traced = Simulation {
        trace: true,
        ..asked.clone()
    };
    assert!(refused(&learner, &traced, state));
    let longer = StoredReplicate {
        episodes: state.episodes + 1,
        ..state.clone()
    };
    assert!(refused(&learner, &asked, &longer));
    for length in [0, 1, state.bytes.len() / 2, state.bytes.len() - 1] {
        let cut = StoredReplicate {
            bytes: state.bytes[..length].into(),
            ..state.clone()
        };
        assert!(refused(&learner, &asked, &cut));
    }
}
