//! Prints one line a case: its name and a hash of every bit it comes to. Two commits that print the same give
//! the same numbers. `scripts/fingerprint` builds and runs it.

#[path = "../../tests/rust/bits.rs"]
mod bits;
#[path = "../../tests/rust/cases.rs"]
mod cases;
#[path = "../../tests/rust/known_models.rs"]
mod known_models;

use bits::{Bits, outcome_bits};
use cases::{Problem, Visitor, terms};
use known_models::planning_bits;
use optpess_core::confidence::CostRadius;
use optpess_core::learn::{AnyLearner, Learner};
use optpess_core::model::ObservationNoise;
use optpess_core::run::{Control, EngineChoice, Simulation, simulate};

/// |S|, |A|, H, the number of successors, and a factor of the theorem's bonus with which OptPess-LP leaves pi0.
const SIZES: [([usize; 3], usize, f64); 6] = [
    ([2, 2, 2], 2, 0.01),
    ([3, 2, 3], 3, 0.003),
    ([5, 3, 4], 5, 0.001),
    ([10, 4, 10], 10, 0.0001),
    ([66, 2, 3], 3, 1e-6),
    ([66, 2, 3], 66, 1e-6),
];

/// The parts that records did not have from the beginning.
const LATER: [&str; 4] = [
    "plays",
    "deployed_values",
    "deployed_costs",
    "baseline_share",
];

fn print(name: &str, parts: &[Bits]) {
    // Without them hashes can be compared with those of commits whose records did not have them.
    let parts = parts.iter().flatten();
    let parts = parts.filter(|(part, _)| !LATER.contains(part));
    let words = parts.flat_map(|(_, words)| words);
    let fold = |hash: u64, word: &u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    };
    let hash = words.fold(0xcbf2_9ce4_8422_2325, fold);
    println!("{name:36} {hash:016x}");
}

/// Prints one case a learner: with a trace and without, one replicate and eleven.
struct Runs<'a> {
    problem: &'a Problem,
    suffix: String,
}

impl Visitor for Runs<'_> {
    fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, name: &str, learner: &L) {
        let mut parts = Vec::new();
        for (count, trace) in [(1, true), (1, false), (11, true), (11, false)] {
            let simulation = Simulation {
                replicates: (0..count).collect(),
                seed: 3,
                threads: 1,
                episodes: learner.terms().num_episodes(),
                trace,
                audit: false,
                learners: false,
                engine: EngineChoice::Auto,
            };
            let control = Control::default();
            let outcomes = simulate(
                &self.problem.model,
                &learner.clone().into(),
                1.0,
                &simulation,
                &control,
            );
            parts.extend(outcomes.expect("a run that ends").iter().map(outcome_bits));
        }
        print(&format!("{name} {}", self.suffix), &parts);
    }
}

fn learning() {
    for (sizes, successors, factor) in SIZES {
        let problem = &Problem::random_with(sizes, successors, 1);
        let suffix = format!("{sizes:?} of {successors}");
        let mut runs = Runs { problem, suffix };
        runs.visit("lp past gate", &problem.lp(terms(400, factor)));
        runs.visit("lp on pi0", &problem.lp(terms(400, 1.0)));
        if problem.model.shape().triples() < 100 {
            runs.visit("lp through gate", &problem.lp(terms(2000, 0.02)));
        }
        runs.visit("primal-dual", &problem.primal_dual(terms(400, factor)));
    }
    let problem = &Problem::random([3, 2, 3], 2);
    let mut runs = Runs {
        problem,
        suffix: "[3, 2, 3]".to_owned(),
    };
    for radius in [CostRadius::Paper, CostRadius::SubGaussian] {
        let learner = problem.lp_with_estimated_cost(terms(2000, 0.02), radius);
        runs.visit(&format!("lp estimating, {radius:?}"), &learner);
    }
    for (sizes, successors, factor) in &SIZES[1..3] {
        let problem = &Problem::random_with(*sizes, *successors, 2);
        let suffix = format!("{sizes:?}");
        problem.visit_peers(terms(100, *factor), &mut Runs { problem, suffix });
    }
    for noise in [
        ObservationNoise::Deterministic,
        ObservationNoise::gaussian(0.6).expect("within the assumption"),
        ObservationNoise::uniform(0.5).expect("within the assumption"),
    ] {
        let problem = &Problem::random([3, 2, 3], 4).with_noise(noise);
        let name = format!("{noise:?}");
        let suffix = name.split('(').next().unwrap_or_default().to_lowercase();
        let mut runs = Runs { problem, suffix };
        runs.visit("lp", &problem.lp(terms(400, 0.003)));
        runs.visit("primal-dual", &problem.primal_dual(terms(400, 0.003)));
    }
}

fn planning(sizes: [usize; 3], successors: usize) {
    let problem = Problem::random_with(sizes, successors, 6);
    for (name, parts) in planning_bits(&problem) {
        print(&format!("{name} {sizes:?} of {successors}"), &[parts]);
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--print") {
        println!("fingerprint: run by scripts/fingerprint, or with --print");
        return;
    }
    learning();
    planning([3, 2, 3], 3);
    planning([10, 4, 10], 4);
    planning([66, 2, 3], 3);
}
