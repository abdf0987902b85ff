//! Timings of what everything exact is made of: values and occupancy of a policy, backward
//! induction, and the validation that precedes them.

#[allow(dead_code, reason = "the other benches use more of it")]
mod instances;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use instances::Instance;
use optpess_core::evaluate::{evaluate, occupancy};
use optpess_core::model::{Kernel, RowStorage};
use optpess_core::plan::GreedyPlan;
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
    targets = kernels, validation
}
criterion_main!(benches);
