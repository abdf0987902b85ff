//! One episode of each algorithm: plan, play, judge, learn. OptPess-PrimalDual has the theorem's
//! constants; OptPess-LP is measured before its gate with them, and past it with a bonus so small that the
//! gate is open from the first episode.

#[allow(dead_code, reason = "the other benches use more of it")]
mod grid;
#[allow(dead_code, reason = "the other benches use more of it")]
mod instances;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use grid::{Case, GRID};
use optpess_core::learn::Learner;
use optpess_core::run::Judge;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::trajectory::Trajectory;

/// Episodes before the first one that is timed: at most these, and at most so many multiply-adds.
const WARM_UP: usize = 1000;
const WARM_UP_WORK: usize = 500_000_000;

fn measure<L: Learner>(
    criterion: &mut Criterion,
    name: &str,
    case: &Case,
    warm_up: usize,
    mut learner: L,
) {
    let model = &case.model;
    let environment = TabularEnvironment::new(model).expect("it fits");
    let mut judge = Judge::new(model).expect("it fits");
    let mut seen = Trajectory::new(model.shape(), 1).expect("it fits");
    let mut streams = Streams::new(0, 0);
    let mut episode = || {
        let deployment = learner.next_policy().expect("its turn");
        environment.rollout(learner.policy(), &mut streams, &mut seen);
        black_box(judge.assess(learner.policy(), deployment.version));
        learner.absorb(&seen).expect("its turn");
    };
    let mut warm = false;
    criterion.bench_function(&format!("{name}/{}", case.id), |bencher| {
        if !warm {
            (0..warm_up).for_each(|_| episode()); // not if a filter leaves this one out
            warm = true;
        }
        bencher.iter(&mut episode);
    });
}

fn episodes(criterion: &mut Criterion) {
    for size in GRID.into_iter().filter(grid::Size::learner_fits) {
        let case = Case::new(size);
        let warm_up = WARM_UP.min(WARM_UP_WORK / size.multiply_adds());
        measure(criterion, "primal-dual", &case, warm_up, case.primal_dual());
        measure(criterion, "lp-before-gate", &case, warm_up, case.shut_lp());
        measure(criterion, "lp-past-gate", &case, warm_up, case.open_lp());
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
