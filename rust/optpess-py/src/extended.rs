//! Planning over plausible kernels, from Python.

use numpy::PyArrayDyn;
use optpess_core::confidence::KernelBox;
use optpess_core::plan::{self as planner, Point};
use optpess_core::shape::Shape;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call;
use crate::convert::{Input, array_out, shape_of, to_py};
use crate::evaluate::{initial_in, signal_in};

type Greedy<'py> = (
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
///         this and of the radii is not looked at.
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
) -> PyResult<Greedy<'py>> {
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
