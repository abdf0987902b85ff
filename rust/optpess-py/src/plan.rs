//! The Python functions of planning, on one kernel and over plausible kernels.

use numpy::PyArrayDyn;
use optpess_core::confidence::KernelBox;
use optpess_core::plan::{self as planner, Point};
use optpess_core::shape::Shape;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call;
use crate::convert::{Input, array_out, count_in, shape_of, to_py};
use crate::evaluate::{initial_in, signal_in};
use crate::model::Model;
use crate::transitions::{kernel_in, kernel_of_shape};

type Greedy<'py> = (Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArrayDyn<f64>>);

/// The best policy for one signal, without any constraint: ``(policy [H, S, A], values [H + 1, S])``.
///
/// Ties go to the lowest action.
///
/// Args:
///     signal: ``[H, S, A]``; or ``[S, A]``, and then the horizon comes from the transitions or from
///         ``horizon``.
///     transitions: as for :func:`evaluate`.
///     horizon: needed only if both signal and transitions are the same at every step.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> policy, values = op.backward_induction([[0.25, 1.0]], np.ones((1, 2, 1)), horizon=2)
///     >>> policy[:, 0].tolist(), values[:, 0].tolist()
///     ([[0.0, 1.0], [0.0, 1.0]], [2.0, 1.0, 0.0])
#[pyfunction]
#[pyo3(signature = (signal, transitions, *, horizon=None))]
pub fn backward_induction<'py>(
    py: Python<'py>,
    signal: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    horizon: Option<&Bound<'py, PyAny>>,
) -> PyResult<Greedy<'py>> {
    let horizon = horizon
        .map(|given| count_in("horizon", given))
        .transpose()?;
    let input = Input::new("signal", signal)?;
    let (shape, kernel) = match (input.shape(), horizon) {
        (&[states, actions], Some(horizon)) => {
            input.check_no_empty_axis()?;
            let shape = to_py(Shape::new(horizon, states, actions))?;
            (shape, kernel_of_shape(transitions, shape)?)
        }
        (&[states, actions], None) => {
            input.check_no_empty_axis()?;
            let kernel = kernel_in(transitions, actions)?;
            let optpess_core::model::Slices::PerStep(horizon) = kernel.slices() else {
                return Err(input.wrong_rank("[H, S, A], or [S, A] with the horizon given"));
            };
            let shape = to_py(Shape::new(horizon, states, actions))?;
            to_py(kernel.check_shape(shape))?;
            (shape, kernel)
        }
        _ => {
            let shape = shape_of(&input)?;
            (shape, kernel_of_shape(transitions, shape)?)
        }
    };
    let signal = signal_in("signal", signal, shape)?;
    let (policy, values) = call::run(py, || {
        let plan = planner::backward_induction(shape, &signal, &*kernel)?;
        Ok((plan.policy()?, plan.values().clone()))
    })?;
    let values = array_out(
        py,
        values.into_data(),
        &[shape.horizon() + 1, shape.num_states()],
    )?;
    Ok((array_out(py, policy.into_data(), &shape.sizes())?, values))
}

/// The optimum for one reward and one cost signal of any sign and size, by the chord method.
#[pyfunction]
pub fn solve_parametric<'py>(
    py: Python<'py>,
    sizes: (usize, usize, usize),
    reward: &Bound<'py, PyAny>,
    cost: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    initial: &Bound<'py, PyAny>,
    limit: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let shape = to_py(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let reward = signal_in("reward", reward, shape)?;
    let cost = signal_in("cost", cost, shape)?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let plan = call::run(py, || {
        let problem = planner::PlanningProblem {
            shape,
            reward: &reward,
            cost: &cost,
            kernel: &*kernel,
            initial: &initial,
        };
        planner::solve_exactly(&problem, limit)
    })?;
    let shape = shape.sizes();
    let ends: PyResult<Vec<_>> = plan
        .ends
        .into_iter()
        .map(|(weight, end)| Ok((weight, array_out(py, end.into_data(), &shape)?)))
        .collect();
    let answer = PyDict::new(py);
    answer.set_item("policy", array_out(py, plan.policy.into_data(), &shape)?)?;
    answer.set_item("value", plan.value)?;
    answer.set_item("cost", plan.certificate.cost)?;
    answer.set_item("repair", plan.certificate.repair)?;
    answer.set_item("multiplier", plan.multiplier)?;
    answer.set_item("bound", plan.bound)?;
    answer.set_item("ends", ends?)?;
    answer.set_item("inductions", plan.inductions)?;
    Ok(answer)
}

/// The least attainable cost of a signal, and by how much rounding may have put it above the limit:
/// ``(least_cost, rounding)``. The limit counts as attainable if
/// ``least_cost <= limit + rounding``; the chord method decides by the same numbers.
#[pyfunction]
pub fn least_cost_and_rounding(
    py: Python<'_>,
    sizes: (usize, usize, usize),
    cost: &Bound<'_, PyAny>,
    transitions: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    limit: f64,
) -> PyResult<(f64, f64)> {
    let shape = to_py(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let cost = signal_in("cost", cost, shape)?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    call::run(py, || {
        let problem = planner::PlanningProblem {
            shape,
            reward: &cost,
            cost: &cost,
            kernel: &*kernel,
            initial: &initial,
        };
        planner::least_cost_and_rounding(&mut planner::PlainOracle::new(&problem)?, limit)
    })
}

/// All vertices (cost, value) of the best-reward-for-a-limit curve, ``[V, 2]``, by increasing cost.
#[pyfunction]
pub fn frontier_vertices<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    max_vertices: usize,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let model = &model.get().model;
    let problem = || planner::frontier(&planner::problem_of(model, 0), max_vertices);
    let vertices = call::run(py, problem)?;
    let count = vertices.len();
    let data = vertices
        .into_iter()
        .flat_map(|(cost, value)| [cost, value])
        .collect();
    array_out(py, data, &[count, 2])
}

type LagrangianPlan<'py> = (
    f64,
    f64,
    Bound<'py, PyArrayDyn<f64>>,
    Bound<'py, PyArrayDyn<u32>>,
);

/// The best policy for ``reward_weight r - sum_m multipliers[m] c_m``: that Lagrangian's value, the
/// reward, the costs ``[M]`` and the actions ``[H, S]``.
#[pyfunction]
pub fn lagrangian_plan<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    reward_weight: f64,
    multipliers: &Bound<'py, PyAny>,
) -> PyResult<LagrangianPlan<'py>> {
    let model = &model.get().model;
    let count = model.costs().len();
    let input = Input::new("multipliers", multipliers)?.with_shape(&[count], "[M]")?;
    let multipliers = input.floats()?;
    let (value, reward, costs, plan) = call::run(py, || {
        let (plan, value) = planner::lagrangian_plan(model, reward_weight, &multipliers)?;
        let (reward, costs) = planner::locate(model, &plan)?;
        Ok((value, reward, costs, plan))
    })?;
    let [horizon, states, _] = model.shape().sizes();
    let actions = array_out(py, plan.actions().to_vec(), &[horizon, states])?;
    Ok((value, reward, array_out(py, costs, &[count])?, actions))
}

/// The actions ``[H, S]`` of the policy at one end of the trade-off between the reward and one cost.
#[pyfunction]
pub fn extreme_actions<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    constraint: usize,
    least_cost: bool,
) -> PyResult<Bound<'py, PyArrayDyn<u32>>> {
    let model = &model.get().model;
    let objective = if least_cost {
        planner::Objective::LeastCost
    } else {
        planner::Objective::MostReward
    };
    let found = call::run(py, || planner::extreme(model, constraint, objective))?;
    let [horizon, states, _] = model.shape().sizes();
    array_out(py, found.actions().to_vec(), &[horizon, states])
}

type ExtendedGreedy<'py> = (
    Bound<'py, PyArrayDyn<f64>>,
    Bound<'py, PyArrayDyn<f64>>,
    Bound<'py, PyArrayDyn<f64>>,
);

/// The kernels within `radius` of `transitions`, both `[H, S, A, S]`.
fn kernels_in(
    transitions: &Bound<'_, PyAny>,
    radius: &Bound<'_, PyAny>,
    shape: Shape,
) -> PyResult<KernelBox> {
    let [horizon, states, actions] = shape.sizes();
    let sizes = [horizon, states, actions, states];
    let floats = |name, object| {
        Input::new(name, object)?
            .with_shape(&sizes, "[H, S, A, S]")?
            .floats()
    };
    let centre = floats("transitions", transitions)?;
    let radius = floats("radius", radius)?;
    to_py(KernelBox::around(shape, &centre, &radius))
}

/// The best policy for one signal on the best plausible kernel: ``(policy [H, S, A], rows [H - 1, S, S],
/// values [H + 1, S])``.
///
/// Plausible are the kernels whose rows are distributions with every probability within its radius. ``rows``
/// are those of the best one under the policy. Ties go to the lowest action.
///
/// Args:
///     signal: ``[H, S, A]``, any finite numbers.
///     transitions: ``[H, S, A, S]``, the middle of each box; rows need not sum to one. The last step of
///         this and of the radii is not read.
///     radius: ``[H, S, A, S]``, not negative. A box without a distribution is refused.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> signal = np.array([[[0.0], [0.0]], [[0.0], [1.0]]])
///     >>> even = np.full((2, 2, 1, 2), 0.5)
///     >>> policy, rows, values = op.extended_induction(signal, even, 0.5 * even)
///     >>> rows[0, 0].tolist(), values[0].tolist()
///     ([0.25, 0.75], [0.75, 0.75])
#[pyfunction]
pub fn extended_induction<'py>(
    py: Python<'py>,
    signal: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    radius: &Bound<'py, PyAny>,
) -> PyResult<ExtendedGreedy<'py>> {
    let shape = shape_of(&Input::new("signal", signal)?)?;
    let signal = signal_in("signal", signal, shape)?;
    let kernels = kernels_in(transitions, radius, shape)?;
    let (policy, rows, values) = call::run(py, || {
        let mut work = planner::ExtendedWork::new(shape)?;
        let mut found = planner::ExtendedVertex::for_shape(shape)?;
        planner::extended_induction(&signal, &kernels, &mut work, &mut found);
        let policy = found.vertex().policy(shape)?;
        Ok((policy, found.rows().to_vec(), work.values().clone()))
    })?;
    let [horizon, states, _] = shape.sizes();
    Ok((
        array_out(py, policy.into_data(), &shape.sizes())?,
        array_out(py, rows, &[horizon - 1, states, states])?,
        array_out(py, values.into_data(), &[horizon + 1, states])?,
    ))
}

/// The optimum over policies and plausible kernels for one reward and one cost, by the chord method.
#[pyfunction]
pub fn solve_extended<'py>(
    py: Python<'py>,
    reward: &Bound<'py, PyAny>,
    cost: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    radius: &Bound<'py, PyAny>,
    initial: &Bound<'py, PyAny>,
    limit: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let shape = shape_of(&Input::new("reward", reward)?)?;
    let reward = signal_in("reward", reward, shape)?;
    let cost = signal_in("cost", cost, shape)?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernels = kernels_in(transitions, radius, shape)?;
    let plan = call::run(py, || {
        let problem = planner::Extended {
            reward: &reward,
            cost: &cost,
            kernels: &kernels,
            initial: &initial,
        };
        planner::solve_extended(&problem, limit)
    })?;
    let [horizon, states, actions] = shape.sizes();
    let answer = PyDict::new(py);
    answer.set_item(
        "policy",
        array_out(py, plan.policy.into_data(), &shape.sizes())?,
    )?;
    let flow = array_out(py, plan.flow, &[horizon - 1, states, actions, states])?;
    answer.set_item("flow", flow)?;
    let occupancy = array_out(py, plan.occupancy.into_data(), &shape.sizes())?;
    answer.set_item("occupancy", occupancy)?;
    answer.set_item("value", plan.value)?;
    answer.set_item("cost", plan.cost)?;
    answer.set_item("multiplier", plan.multiplier)?;
    answer.set_item("bound", plan.bound)?;
    answer.set_item("inductions", plan.inductions)?;
    Ok(answer)
}
