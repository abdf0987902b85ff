//! The inner loops of the learners, each alone, on the estimates a learner has after some episodes of
//! uniformly random play: counts and averages, bonus, evaluation, backward induction, parametric solve;
//! and the judge's evaluation on the true model.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use optpess_benches::grid::{Case, GRID, Size, terms};
use optpess_core::confidence::ConfidenceRule;
use optpess_core::estimate::Estimates;
use optpess_core::evaluate::{Evaluator, PairEvaluator, evaluate};
use optpess_core::plan::{ChordSearch, GreedyPlan, PlainOracle, PlanningProblem};
use optpess_core::policy::MarkovPolicy;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::Signal;
use optpess_core::trajectory::Trajectory;

/// Episodes of random play before anything is timed, and which the updates repeat.
const EPISODES: usize = 512;

/// Some episodes of random play.
fn episodes(case: &Case) -> Vec<Trajectory> {
    let shape = case.model.shape();
    let environment = TabularEnvironment::new(&case.model).expect("it fits");
    let policy = MarkovPolicy::uniform(shape).expect("it fits");
    let mut streams = Streams::new(0, 0);
    let mut seen = Trajectory::zeros(shape, 1).expect("it fits");
    let mut played = || {
        environment.rollout(&policy, &mut streams, &mut seen);
        seen.clone()
    };
    (0..EPISODES).map(|_| played()).collect()
}

/// Counts, averages and bonuses of the rows of one episode.
fn updates(criterion: &mut Criterion, case: &Case, played: &[Trajectory], learnt: &mut Estimates) {
    let mut next = 0;
    criterion.bench_function(&format!("update/{}", case.id), |bencher| {
        bencher.iter(|| {
            next = (next + 1) % EPISODES;
            learnt.count(&played[next]).expect("it fits");
            learnt.refresh_with(|row| {
                black_box(row);
            });
        });
    });
    let bonus = terms(ConfidenceRule::Theorem).bonus(case.model.shape());
    let visits = &learnt.visits()[..case.model.shape().horizon()];
    criterion.bench_function(&format!("bonus/{}", case.id), |bencher| {
        bencher.iter(|| {
            let visits = black_box(visits);
            visits.iter().map(|&visits| bonus.at(visits)).sum::<f64>()
        });
    });
}

/// Values and plans on the estimates.
fn plans(criterion: &mut Criterion, case: &Case, learnt: &Estimates) {
    let (shape, kernel, initial) = (case.model.shape(), learnt.kernel(), case.model.initial());
    let signal = |mean: &dyn Fn(usize) -> f64| {
        let data = (0..shape.triples()).map(mean).collect();
        Signal::new("signal", shape, data).expect("finite")
    };
    let reward = signal(&|row| learnt.mean_reward(row));
    let cost = signal(&|row| learnt.mean_cost(row));
    let mut evaluator = Evaluator::new(shape).expect("it fits");
    criterion.bench_function(&format!("evaluation/{}", case.id), |bencher| {
        bencher.iter(|| evaluator.evaluate(black_box(&case.safe), &cost, kernel, initial));
    });
    let mut greedy = GreedyPlan::new(shape).expect("it fits");
    criterion.bench_function(&format!("induction/{}", case.id), |bencher| {
        bencher.iter(|| greedy.maximise(black_box(&reward), kernel));
    });
    let gains = cost.data().iter().map(|cost| -cost).collect();
    greedy.maximise(&Signal::new("gains", shape, gains).expect("finite"), kernel);
    let cheap = greedy.policy().expect("it fits");
    greedy.maximise(&reward, kernel);
    let dear = greedy.policy().expect("it fits");
    let costs = [cheap, dear].map(|policy| evaluate(&policy, &cost, kernel, initial));
    let [least, most] = costs.map(|cost| cost.expect("it fits"));
    let problem = PlanningProblem {
        shape,
        reward: &reward,
        cost: &cost,
        kernel,
        initial,
    };
    let limit = least.midpoint(most);
    let mut search = ChordSearch::new(shape).expect("it fits");
    let mut oracle = PlainOracle::new(&problem).expect("it fits");
    criterion.bench_function(&format!("parametric-cold/{}", case.id), |bencher| {
        bencher.iter(|| {
            search.forget();
            black_box(search.solve(&mut oracle, limit)).expect("within the limit")
        });
    });
    criterion.bench_function(&format!("parametric-warm/{}", case.id), |bencher| {
        bencher.iter(|| black_box(search.solve(&mut oracle, limit)).expect("within the limit"));
    });
}

/// The judge's evaluation of both signals on the true model.
fn judging(criterion: &mut Criterion, case: &Case) {
    let model = &case.model;
    let mut evaluator = PairEvaluator::new(model.shape()).expect("it fits");
    let signals = (model.reward(), &model.costs()[0]);
    criterion.bench_function(&format!("judging/{}", case.id), |bencher| {
        bencher.iter(|| {
            let policy = black_box(&case.safe);
            evaluator.evaluate(policy, signals, model.kernel(), model.initial())
        });
    });
}

fn loops(criterion: &mut Criterion) {
    for size in GRID {
        let case = Case::new(size);
        judging(criterion, &case);
        if Size::learner_fits(&size) {
            let played = episodes(&case);
            let mut learnt = Estimates::new(case.model.shape()).expect("it fits");
            for seen in &played {
                learnt.count(seen).expect("it fits");
            }
            learnt.refresh_with(|_| {});
            plans(criterion, &case, &learnt);
            updates(criterion, &case, &played, &mut learnt);
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = loops
}
criterion_main!(benches);
