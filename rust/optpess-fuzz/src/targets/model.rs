//! Models from any numbers: refused, or a problem whose values lie where they must.

use std::sync::Arc;

use optpess_core::evaluate::evaluate;
use optpess_core::model::{
    ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, TransitionKernel,
    UnitSignal,
};
use optpess_core::plan::{frontier, problem_of, solve_exactly};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::{Signal, StepSignal};

use crate::input::Input;
use crate::targets::{Target, plain_seeds};

/// The bytes are sizes, rows, rewards, costs, limits, first states and noise.
pub const TARGET: Target = Target {
    name: "model",
    run,
    seeds: plain_seeds,
};

fn run(bytes: &[u8]) {
    if let Some(model) = model(&mut Input::new(bytes)) {
        check(&model);
    }
}

fn model(input: &mut Input<'_>) -> Option<ConstrainedMdp> {
    let sizes = match input.byte() {
        0xff => [0; 3].map(|_| input.word() as usize),
        _ => [4, 4, 3].map(|most| 1 + input.below(most)),
    };
    let shape = Shape::new(sizes[0], sizes[1], sizes[2]).ok()?;
    if shape.triples() > 4096 {
        return None;
    }
    let kernel = TransitionKernel::new(Arc::new(kernel(input, shape)?)).ok()?;
    let rewards = UnitSignal::new("rewards", &[], signal(input, shape)?).ok()?;
    let num_costs = input.below(4);
    let costs: Option<Vec<UnitSignal>> = (0..num_costs)
        .map(|m| UnitSignal::new("costs", &[m], signal(input, shape)?).ok())
        .collect();
    let length = input.length(num_costs);
    let limits = input.list(length, |input| match input.byte() {
        0xf0.. => input.float(),
        tag => f64::from(tag) / 64.0,
    });
    let length = input.length(shape.num_states());
    let initial = match input.byte() {
        0x80.. => InitialDistribution::at(length, i64::from(input.byte()) - 2),
        _ => InitialDistribution::new(shape.num_states(), input.row(length.max(1))),
    };
    let noise = match input.below(4) {
        0 => ObservationNoise::Bernoulli,
        1 => ObservationNoise::Deterministic,
        2 => ObservationNoise::gaussian(input.float()).ok()?,
        _ => ObservationNoise::uniform(input.float()).ok()?,
    };
    ConstrainedMdp::new(kernel, rewards, costs?, limits, initial.ok()?, noise).ok()
}

fn kernel(input: &mut Input<'_>, shape: Shape) -> Option<Kernel> {
    let [horizon, states, actions] = shape.sizes();
    let (slices, rows) = match input.byte() {
        0x80.. => (Slices::PerStep(input.length(horizon)), shape.triples()),
        _ => (Slices::Stationary, shape.pairs()),
    };
    if input.byte() < 0x80 {
        let data = (0..rows).flat_map(|_| input.row(states)).collect();
        return Kernel::dense(states, actions, slices, data).ok();
    }
    let (mut offsets, mut successors, mut probabilities) = (vec![0_i64], vec![], vec![]);
    for _ in 0..input.length(rows) {
        for (state, probability) in input.row(states).into_iter().enumerate() {
            match input.byte() {
                0xff => successors.push(input.word() as i64),
                0x80..0xff if probability == 0.0 => continue,
                _ => successors.push(state as i64),
            }
            probabilities.push(probability);
        }
        offsets.push(match input.byte() {
            0xff => input.word() as i64,
            _ => successors.len() as i64,
        });
    }
    Kernel::sparse(
        states,
        actions,
        slices,
        &offsets,
        &successors,
        probabilities,
    )
    .ok()
}

fn signal(input: &mut Input<'_>, shape: Shape) -> Option<Signal> {
    if input.byte() >= 0x80 {
        let length = input.length(shape.triples());
        let data = input.list(length, Input::unit);
        return Signal::new("signal", shape, data).ok();
    }
    let length = input.length(shape.pairs());
    let data = input.list(length, Input::unit);
    Signal::stationary("signal", shape, data).ok()
}

fn check(model: &ConstrainedMdp) {
    let (shape, most) = (model.shape(), model.shape().horizon() as f64 * (1.0 + 1e-6));
    let kernel = model.kernel();
    for step in 0..shape.horizon() - 1 {
        for pair in 0..shape.pairs() {
            let successors = kernel.kernel().successors(step, pair);
            let sum: f64 = successors.map(|(_, probability)| probability).sum();
            assert!((sum - 1.0).abs() < 1e-6, "a row adds up to {sum}");
        }
    }
    let uniform = MarkovPolicy::uniform(shape).expect("a small policy");
    for signal in model.costs().iter().chain([model.reward()]) {
        let value = evaluate(&uniform, signal, kernel, model.initial()).expect("sizes agree");
        assert!((0.0..=most).contains(&value), "a value of {value}");
        assert!((0..shape.pairs()).all(|pair| signal.at(0, pair) >= 0.0));
    }
    for (constraint, &limit) in model.limits().iter().enumerate() {
        let problem = problem_of(model, constraint);
        if let Ok(plan) = solve_exactly(&problem, limit) {
            assert!((-1e-9..=most).contains(&plan.value), "V is {}", plan.value);
            assert!(
                plan.bound >= plan.value - 1e-6,
                "{} below {}",
                plan.bound,
                plan.value
            );
            assert!(
                plan.certificate.cost <= limit + 1e-6,
                "{}",
                plan.certificate.cost
            );
        }
        if let Ok(points) = frontier(&problem, 1000) {
            assert!(
                points
                    .iter()
                    .all(|(cost, reward)| cost.is_finite() && reward.is_finite())
            );
        }
    }
}
