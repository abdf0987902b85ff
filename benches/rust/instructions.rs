//! Whole runs of fixed length for an instruction counter: `--list` prints the cases with how many episodes
//! are played first and how many are counted, `--case NAME --episodes N` plays N episodes of one.
//! `scripts/callgrind` runs each case twice; the difference is free of everything that is done once.

use std::hint::black_box;

use optpess_benches::grid::{Case, Size};
use optpess_core::learn::{AnyLearner, Learner};
use optpess_core::run::{Control, EngineChoice, Simulation, simulate};

/// Which algorithm, in which state.
#[derive(Clone, Copy)]
enum Algorithm {
    PrimalDual,
    ShutLp,
    OpenLp,
}

/// A run: its name, size (None: the media buffer), algorithm, replicates, and episodes before those that
/// are counted and of those that are.
type Run = (&'static str, Option<Size>, Algorithm, u64, u64, u64);

const RUNS: [Run; 8] = [
    (
        "primal-dual-3,2,3",
        size(3, 2, 3),
        Algorithm::PrimalDual,
        1,
        2000,
        20_000,
    ),
    (
        "primal-dual-3,2,3-x16",
        size(3, 2, 3),
        Algorithm::PrimalDual,
        16,
        200,
        2000,
    ),
    (
        "primal-dual-10,4,10",
        size(10, 4, 10),
        Algorithm::PrimalDual,
        1,
        500,
        2000,
    ),
    (
        "primal-dual-20,4,10",
        size(20, 4, 10),
        Algorithm::PrimalDual,
        1,
        500,
        1000,
    ),
    (
        "primal-dual-100,5,20-sparse4",
        SPARSE,
        Algorithm::PrimalDual,
        1,
        100,
        100,
    ),
    (
        "lp-on-baseline-10,2,10",
        size(10, 2, 10),
        Algorithm::ShutLp,
        1,
        1000,
        5000,
    ),
    (
        "lp-past-gate-3,2,3",
        size(3, 2, 3),
        Algorithm::OpenLp,
        1,
        3000,
        10_000,
    ),
    (
        "lp-past-gate-media-10,2,10",
        None,
        Algorithm::OpenLp,
        1,
        3000,
        2000,
    ),
];

const fn size(states: usize, actions: usize, horizon: usize) -> Option<Size> {
    Some(Size {
        states,
        actions,
        horizon,
        successors: None,
    })
}

const SPARSE: Option<Size> = Some(Size {
    states: 100,
    actions: 5,
    horizon: 20,
    successors: Some(4),
});

fn play<L: Learner + Clone + Into<AnyLearner>>(
    case: &Case,
    learner: &L,
    replicates: u64,
    episodes: u64,
) {
    let simulation = Simulation {
        replicates: (0..replicates).collect(),
        seed: 1,
        threads: 1,
        episodes,
        trace: false,
        audit: false,
        learners: false,
        engine: EngineChoice::Auto,
    };
    let outcome = simulate(
        &case.model,
        &learner.clone().into(),
        0.0,
        &simulation,
        &Control::default(),
    );
    black_box(outcome.expect("a run that ends"));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |flag: &str| {
        let place = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(place + 1)
    };
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _, _, replicates, before, counted) in RUNS {
            println!("{name} {replicates} {before} {counted}");
        }
        return;
    }
    let (Some(name), Some(episodes)) = (after("--case"), after("--episodes")) else {
        println!("instructions: run by scripts/callgrind, or with --case NAME --episodes N");
        return;
    };
    let Some(&(_, size, algorithm, replicates, _, _)) = RUNS.iter().find(|run| run.0 == name)
    else {
        panic!("no case is called {name}; --list prints them");
    };
    let episodes = episodes.parse().expect("a number of episodes");
    let case = size.map_or_else(Case::media, Case::new);
    match algorithm {
        Algorithm::PrimalDual => play(&case, &case.primal_dual(), replicates, episodes),
        Algorithm::ShutLp => play(&case, &case.shut_lp(), replicates, episodes),
        Algorithm::OpenLp => play(&case, &case.open_lp(), replicates, episodes),
    }
}
