//! Times of exact work on a known model: evaluation and occupancy of a policy, one backward induction, a whole
//! plan within a cost limit, and the checks of the arrays that come before.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use optpess_benches::grid::{Case, GRID};
use optpess_benches::instances::Instance;
use optpess_core::evaluate::{evaluate, occupancy};
use optpess_core::model::{Kernel, RowStorage};
use optpess_core::plan::{ChordSearch, GreedyPlan, PlainOracle, PlanningProblem};
use optpess_core::policy::MarkovPolicy;

fn instances() -> Vec<Instance> {
    let sparse = Instance::sparse(100, 5, 20, 4);
    vec![
        Instance::dense(3, 2, 3),
        Instance::dense(10, 2, 10),
        Instance::dense(20, 4, 10),
        Instance::dense(50, 5, 20),
        sparse.in_full(),
        sparse,
        Instance::sparse(1000, 10, 100, 5),
    ]
}

fn kernels(criterion: &mut Criterion) {
    for instance in instances() {
        let Instance {
            id,
            shape,
            policy,
            signal,
            kernel,
            initial,
        } = &instance;
        criterion.bench_function(&format!("evaluate/{id}"), |bencher| {
            bencher.iter(|| evaluate(black_box(policy), signal, kernel, initial));
        });
        criterion.bench_function(&format!("occupancy/{id}"), |bencher| {
            bencher.iter(|| occupancy(black_box(policy), kernel, initial));
        });
        let mut plan = GreedyPlan::new(*shape).expect("it fits");
        criterion.bench_function(&format!("backward_induction/{id}"), |bencher| {
            bencher.iter(|| plan.maximise(black_box(signal), kernel));
        });
    }
}

/// A whole plan from scratch: the best policy within the limit, on the true model.
fn plans(criterion: &mut Criterion) {
    let cases = GRID.map(Case::new).into_iter().chain([Case::media()]);
    for case in cases {
        let model = &case.model;
        let problem = PlanningProblem {
            shape: model.shape(),
            reward: model.reward(),
            cost: &model.costs()[0],
            kernel: model.kernel(),
            initial: model.initial(),
        };
        let mut search = ChordSearch::new(model.shape()).expect("it fits");
        let mut oracle = PlainOracle::new(&problem).expect("it fits");
        criterion.bench_function(&format!("plan/{}", case.id), |bencher| {
            bencher.iter(|| {
                search.forget();
                black_box(search.solve(&mut oracle, case.margin.cost_limit()))
                    .expect("within the limit")
            });
        });
    }
}

/// What a plain array costs at each call before anything is computed: a copy and a check.
fn validation(criterion: &mut Criterion) {
    for instance in [Instance::dense(20, 4, 10), Instance::dense(50, 5, 20)] {
        let id = &instance.id;
        criterion.bench_function(&format!("check_policy/{id}"), |bencher| {
            let data = instance.policy.data();
            bencher.iter(|| MarkovPolicy::new("policy", instance.shape, black_box(data).to_vec()));
        });
        let RowStorage::Dense(data) = instance.kernel.rows() else {
            unreachable!("a dense instance has dense rows");
        };
        criterion.bench_function(&format!("check_kernel/{id}"), |bencher| {
            let (states, actions) = (instance.kernel.num_states(), instance.kernel.num_actions());
            let slices = instance.kernel.slices();
            bencher.iter(|| Kernel::dense(states, actions, slices, black_box(data).clone()));
        });
    }
}

criterion_group! {
    name = benches;
    // Short measurements: the sizes span five orders of magnitude and a run should take minutes.
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = kernels, plans, validation
}
criterion_main!(benches);
