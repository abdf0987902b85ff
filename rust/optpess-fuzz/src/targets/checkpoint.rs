//! States of replicates from bytes: a run that goes on from them refuses them or ends with records of numbers.

use std::sync::OnceLock;

use optpess_core::confidence::{ConfidenceRule, LearningTerms};
use optpess_core::learn::{AnyLearner, Learner};
use optpess_core::run::{
    Control, EngineChoice, Simulation, Snapshots, StoredReplicate, simulate_on,
};

use crate::cases::Problem;
use crate::learners::{every_learner, problem};
use crate::targets::{HEADER, Target, sealed};

/// The first bytes are the kind of learner, what is kept, and the number of episodes; the rest is a state.
pub const TARGET: Target = Target {
    name: "checkpoint",
    run,
    seeds,
};

const EPISODES: u64 = 12;

struct Case {
    problem: Problem,
    learners: Vec<AnyLearner>,
}

/// Made once: learners are not changed by runs.
fn case() -> &'static Case {
    static CASE: OnceLock<Case> = OnceLock::new();
    CASE.get_or_init(|| {
        let rule = ConfidenceRule::scaled(0.01).expect("a positive factor");
        let terms = LearningTerms::new(EPISODES, 0.1, rule).expect("ordinary terms");
        let problem = problem();
        let mut learners = every_learner(&problem, terms);
        learners.retain(|learner| learner.cost_limits().len() == problem.model.limits().len());
        Case { problem, learners }
    })
}

fn simulation(kept: u8, episodes: u64) -> Simulation {
    Simulation {
        replicates: vec![0],
        seed: 5,
        threads: 1,
        episodes,
        trace: kept & 1 > 0,
        audit: kept & 2 > 0,
        learners: kept & 4 > 0,
        engine: EngineChoice::Auto,
    }
}

fn run(bytes: &[u8]) {
    let &[kind, kept, episodes, ref state @ ..] = bytes else {
        return;
    };
    let case = case();
    let learner = &case.learners[usize::from(kind) % case.learners.len()];
    let stored = StoredReplicate {
        episodes: u64::from(episodes),
        bytes: sealed(state).into(),
    };
    let snapshots = Snapshots::new(vec![Some(stored)]);
    let simulation = simulation(kept, EPISODES);
    let control = Control::default();
    let outcomes = simulate_on(
        &case.problem.model,
        learner,
        1.0,
        &simulation,
        &snapshots,
        &control,
    );
    for outcome in outcomes.into_iter().flatten() {
        assert_eq!(
            outcome.episodes, EPISODES,
            "a run that was not stopped ends"
        );
        let record = &outcome.record;
        for &value in record.reward_regret.iter().chain(&record.strong_violation) {
            assert!(value.is_finite(), "a record of {value}");
        }
    }
}

/// Half a run of every learner.
fn seeds() -> Vec<Vec<u8>> {
    let case = case();
    let mut seeds = Vec::new();
    for (kind, learner) in case.learners.iter().enumerate() {
        for kept in [4, 5, 6] {
            let (snapshots, control) = (Snapshots::new(vec![None]), Control::default());
            let simulation = simulation(kept, EPISODES / 2);
            let model = &case.problem.model;
            let outcomes = simulate_on(model, learner, 1.0, &simulation, &snapshots, &control);
            outcomes.expect("an ordinary run");
            for stored in snapshots.stored().into_iter().flatten() {
                let first = [kind as u8, kept, stored.episodes as u8];
                seeds.push([&first[..], &stored.bytes[HEADER..]].concat());
            }
        }
    }
    seeds
}
