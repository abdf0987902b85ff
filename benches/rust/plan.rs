//! Timings of the chord method, from scratch and from the last answer, beside one backward induction
//! of the same problem. The warm figure is for problems that differ by about one part in a thousand
//! from the one before, as a learner's do from episode to episode.

#[allow(dead_code, reason = "the other benches use more of it")]
mod instances;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use instances::{Instance, media};
use optpess_core::error::Error;
use optpess_core::model::{InitialDistribution, Kernel};
use optpess_core::plan::{ChordSearch, GreedyPlan, PlainOracle, PlanningProblem, PlanningWork};
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// How many perturbed copies of a problem are solved in turn.
const COPIES: usize = 64;

/// A problem with the reward and cost signals of its perturbed copies.
struct Case {
    id: String,
    shape: Shape,
    kernel: Kernel,
    initial: InitialDistribution,
    rewards: Vec<Signal>,
    costs: Vec<Signal>,
    limit: f64,
}

impl Case {
    /// A random cost beside the instance's signal; the limit is halfway between the least cost and
    /// that of the most reward.
    fn around(instance: Instance) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let reward = instance.signal.data().to_vec();
        let cost: Vec<f64> = reward.iter().map(|_| generator.random()).collect();
        let (id, shape) = (instance.id, instance.shape);
        let (kernel, initial, signals) = (instance.kernel, instance.initial, [reward, cost]);
        let mut case = Self::new(id, shape, kernel, initial, signals, 0.0);
        let problem = case.problem(0);
        let mut oracle = PlainOracle::new(&problem).expect("it fits");
        let mut search = ChordSearch::new(shape).expect("it fits");
        let dearest = search.solve(&mut oracle, f64::MAX);
        let Err(Error::Infeasible { least_cost, .. }) = search.solve(&mut oracle, 0.0) else {
            unreachable!("every policy costs something");
        };
        case.limit = least_cost.midpoint(dearest.expect("anything is allowed").cost);
        case
    }

    fn new(
        id: String,
        shape: Shape,
        kernel: Kernel,
        initial: InitialDistribution,
        [reward, cost]: [Vec<f64>; 2],
        limit: f64,
    ) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(2);
        let mut copies = |name, data: &[f64]| -> Vec<Signal> {
            let mut perturbed = || {
                let shift = |entry: &f64| entry + 1e-3 * (generator.random::<f64>() - 0.5);
                let data = data.iter().map(shift).collect();
                Signal::new(name, shape, data).expect("finite numbers")
            };
            (0..COPIES).map(|_| perturbed()).collect()
        };
        Self {
            rewards: copies("reward", &reward),
            costs: copies("cost", &cost),
            id,
            shape,
            kernel,
            initial,
            limit,
        }
    }

    /// The playback buffer of `optpess.zoo.media`.
    fn media() -> Self {
        let (instance, cost) = media();
        let reward = instance.signal.data().to_vec();
        let (shape, kernel, initial) = (instance.shape, instance.kernel, instance.initial);
        Self::new(instance.id, shape, kernel, initial, [reward, cost], 5.0)
    }

    fn problem(&self, copy: usize) -> PlanningProblem<'_, Signal, Signal, Kernel> {
        PlanningProblem {
            shape: self.shape,
            reward: &self.rewards[copy % COPIES],
            cost: &self.costs[copy % COPIES],
            kernel: &self.kernel,
            initial: &self.initial,
        }
    }

    /// Inductions a solve, cold and warm, on average over the copies.
    fn inductions(&self) -> [f64; 2] {
        let mut search = ChordSearch::new(self.shape).expect("it fits");
        let mut work = PlanningWork::new(self.shape).expect("it fits");
        [true, false].map(|cold| {
            let solve = |copy| {
                if cold {
                    search.forget();
                }
                let problem = self.problem(copy);
                let answer = search.solve(&mut PlainOracle::on(&problem, &mut work), self.limit);
                answer.expect("a policy within the limit").inductions
            };
            (0..COPIES).map(solve).sum::<usize>() as f64 / COPIES as f64
        })
    }
}

fn plans(criterion: &mut Criterion) {
    let cases = [
        Case::around(Instance::dense(3, 2, 3)),
        Case::media(),
        Case::around(Instance::dense(20, 4, 10)),
        Case::around(Instance::sparse(100, 5, 20, 4)),
    ];
    for case in &cases {
        let [cold, warm] = case.inductions();
        println!("{}: {cold:.2} inductions cold, {warm:.2} warm", case.id);
        let mut search = ChordSearch::new(case.shape).expect("it fits");
        let mut work = PlanningWork::new(case.shape).expect("it fits");
        let mut copy = 0;
        criterion.bench_function(&format!("parametric_cold/{}", case.id), |bencher| {
            bencher.iter(|| {
                copy += 1;
                search.forget();
                let problem = case.problem(copy);
                black_box(search.solve(&mut PlainOracle::on(&problem, &mut work), case.limit))
            });
        });
        criterion.bench_function(&format!("parametric_warm/{}", case.id), |bencher| {
            bencher.iter(|| {
                copy += 1;
                let problem = case.problem(copy);
                black_box(search.solve(&mut PlainOracle::on(&problem, &mut work), case.limit))
            });
        });
        let mut greedy = GreedyPlan::new(case.shape).expect("it fits");
        criterion.bench_function(&format!("one_induction/{}", case.id), |bencher| {
            bencher.iter(|| {
                copy += 1;
                greedy.maximise(&case.rewards[copy % COPIES], &case.kernel);
                black_box(greedy.values().step(0)[0])
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = plans
}
criterion_main!(benches);
