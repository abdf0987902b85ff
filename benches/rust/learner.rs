//! One episode of each algorithm: plan, play, judge, learn. OptPess-PrimalDual has the theorem's
//! constants; OptPess-LP is measured before its gate with a larger bonus, so that the gate stays shut, and
//! past it with one so small that the gate is open from the first episode.

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use optpess_benches::grid::{Case, GRID, Size};
use optpess_core::learn::{AnyLearner, Learner};
use optpess_core::record::Recorder;
use optpess_core::run::{Control, EngineChoice, Replicate};

/// Episodes before the first one that is timed: at most these, and at most so many multiply-adds.
const WARM_UP: usize = 1000;
const WARM_UP_WORK: usize = 500_000_000;

/// The loop that `simulate` runs, as many episodes in a row as criterion asks for.
fn measure(
    criterion: &mut Criterion,
    name: &str,
    case: &Case,
    warm_up: usize,
    learner: impl Into<AnyLearner>,
) {
    let (learner, control): (AnyLearner, _) = (learner.into(), Control::default());
    let recorder = Recorder::new(&[], 0.0, &[learner.cost_limit()], 1);
    let choice = EngineChoice::Packed;
    let mut replicate =
        Replicate::new(&case.model, learner, choice, (0, 0), recorder, &control).expect("it fits");
    let mut play = |episodes| {
        let start = Instant::now();
        replicate.play(episodes).expect("a run that ends");
        start.elapsed()
    };
    let mut warm = false;
    criterion.bench_function(&format!("{name}/{}", case.id), |bencher| {
        if !warm {
            play(warm_up as u64); // not if a filter leaves this one out
            warm = true;
        }
        bencher.iter_custom(&mut play);
    });
}

fn episodes(criterion: &mut Criterion) {
    for size in GRID.into_iter().filter(Size::learner_fits) {
        let case = Case::new(size);
        let warm_up = WARM_UP.min(WARM_UP_WORK / size.multiply_adds());
        measure(criterion, "primal-dual", &case, warm_up, case.primal_dual());
        measure(criterion, "lp-before-gate", &case, warm_up, case.shut_lp());
        let open = case.open_at_once_lp();
        measure(criterion, "lp-past-gate", &case, warm_up, open);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = episodes
}
criterion_main!(benches);
