//! Planning with signals of any size, held against exact rational arithmetic.

use std::sync::Arc;

use num_rational::BigRational;
use optpess_core::error::Error;
use optpess_core::model::{
    ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, TransitionKernel,
    UnitSignal,
};
use optpess_core::plan::{backward_induction, frontier, problem_of, solve_exactly};
use optpess_core::shape::Shape;
use optpess_core::table::Signal;

use crate::exact::{Exact, float, fraction, optimum};
use crate::input::Input;
use crate::targets::{Target, plain_seeds};

/// The bytes are rows of probabilities, any finite rewards and costs, and a limit.
pub const TARGET: Target = Target {
    name: "plan",
    run,
    seeds: plain_seeds,
};

/// How far a value may be from the exact one, in parts of the largest that the sizes of a signal allow.
const TOLERANCE: f64 = 1e-9;
/// Sums beyond this overflow or may do so on the way.
const LARGEST: f64 = 1e307;
/// H and |S|; two actions. At most 2^6 deterministic policies.
const SIZES: [[usize; 2]; 6] = [[1, 1], [1, 3], [2, 2], [2, 3], [3, 1], [3, 2]];

fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let [horizon, states] = SIZES[input.below(SIZES.len())];
    let shape = Shape::new(horizon, states, 2).expect("small sizes");
    let model = blank_model(&mut input, shape);
    let mut signal = || {
        let data = input.list(shape.triples(), Input::finite);
        Signal::new("signal", shape, data).expect("finite numbers")
    };
    let (reward, cost) = (signal(), signal());
    let limit = input.finite();
    let exact = Exact {
        shape,
        kernel: model.kernel().kernel(),
        initial: model.initial(),
    };
    check_induction(&exact, &reward);
    check_solution(&model, &exact, [&reward, &cost], limit);
}

/// Transitions and first states; rewards and costs are replaced by others.
fn blank_model(input: &mut Input<'_>, shape: Shape) -> ConstrainedMdp {
    let [horizon, states, actions] = shape.sizes();
    let mut row = || {
        let row: Vec<f64> = (0..states).map(|_| f64::from(input.byte() % 8)).collect();
        let total: f64 = row.iter().sum::<f64>().max(1.0);
        let mut row: Vec<f64> = row.iter().map(|entry| entry / total).collect();
        if row.iter().all(|&entry| entry <= 0.0) {
            row[0] = 1.0;
        }
        row
    };
    let data = (0..shape.triples()).flat_map(|_| row()).collect();
    let initial = InitialDistribution::new(states, row()).expect("a distribution");
    let slices = Slices::PerStep(horizon);
    let kernel = Kernel::dense(states, actions, slices, data).expect("rows of probabilities");
    let zero = || {
        let zeros = Signal::new("zero", shape, vec![0.0; shape.triples()]);
        UnitSignal::new("zero", &[], zeros.expect("zeros")).expect("zeros")
    };
    let kernel = TransitionKernel::new(Arc::new(kernel)).expect("rows that add up to 1");
    let noise = ObservationNoise::Deterministic;
    ConstrainedMdp::new(kernel, zero(), vec![zero()], vec![1.0], initial, noise)
        .expect("a small model")
}

fn check_induction(exact: &Exact<'_>, reward: &Signal) {
    let plan = backward_induction(exact.shape, reward, exact.kernel).expect("a small plan");
    let size = float(&exact.size(reward));
    if size > LARGEST {
        return;
    }
    let (found, expected) = (
        exact.initial.expectation(plan.values().step(0)),
        float(&exact.largest(reward)),
    );
    let allowed = TOLERANCE * size + f64::MIN_POSITIVE;
    assert!(
        (found - expected).abs() <= allowed,
        "V is {found}, not {expected}"
    );
}

fn check_solution(
    model: &ConstrainedMdp,
    exact: &Exact<'_>,
    [reward, cost]: [&Signal; 2],
    limit: f64,
) {
    let mut problem = problem_of(model, 0);
    (problem.reward, problem.cost) = (reward, cost);
    if let Ok(points) = frontier(&problem, 1000) {
        let finite = points.iter().all(|(c, r)| c.is_finite() && r.is_finite());
        assert!(finite, "the frontier is {points:?}");
    }
    let found = solve_exactly(&problem, limit);
    let sizes = [reward, cost].map(|signal| float(&exact.size(signal)));
    if let Ok(plan) = &found {
        let numbers = [plan.value, plan.bound, plan.certificate.cost];
        assert!(
            numbers.iter().all(|value| value.is_finite()),
            "{numbers:?} {sizes:?}"
        );
        assert!(!plan.multiplier.is_nan(), "the multiplier is NaN");
    }
    if sizes.iter().any(|&size| size > LARGEST) || limit.abs() > LARGEST {
        return;
    }
    let points = exact.points(reward, cost);
    let slack = fraction(TOLERANCE * (sizes[1] + limit.abs()) + f64::MIN_POSITIVE);
    let within = |slack: BigRational| optimum(&points, &(fraction(limit) + slack));
    let (tight, loose) = (within(-slack.clone()), within(slack));
    match found {
        Ok(plan) => {
            let allowed = TOLERANCE * sizes[0] + f64::MIN_POSITIVE;
            let most = loose.map(|value| float(&value));
            let most = most.expect("a plan for limits that can be met");
            assert!(
                plan.value <= most + allowed,
                "V is {}, at most {most}",
                plan.value
            );
            if let Some(least) = tight.map(|value| float(&value)) {
                assert!(
                    plan.value >= least - allowed,
                    "V is {}, at least {least}",
                    plan.value
                );
            }
        }
        Err(Error::Infeasible { .. }) => {
            assert!(
                tight.is_none(),
                "a limit that can be met is said to be infeasible"
            );
        }
        Err(_) => {}
    }
}
