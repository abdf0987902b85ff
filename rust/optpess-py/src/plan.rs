//! Planning, from Python.

use numpy::PyArrayDyn;
use optpess_core::plan as planner;
use optpess_core::shape::Shape;
use pyo3::prelude::*;

use crate::convert::{Input, array_out, core, shape_of};
use crate::doorway;
use crate::evaluate::signal_in;
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
    horizon: Option<usize>,
) -> PyResult<Greedy<'py>> {
    let input = Input::new("signal", signal)?;
    let (shape, kernel) = match (input.shape(), horizon) {
        (&[states, actions], Some(horizon)) => {
            input.check_no_empty_axis()?;
            let shape = core(Shape::new(horizon, states, actions))?;
            (shape, kernel_of_shape(transitions, shape)?)
        }
        (&[states, actions], None) => {
            input.check_no_empty_axis()?;
            let kernel = kernel_in(transitions, actions)?;
            let optpess_core::model::Slices::PerStep(horizon) = kernel.slices() else {
                return Err(input.wrong_rank("[H, S, A], or [S, A] with the horizon given"));
            };
            let shape = core(Shape::new(horizon, states, actions))?;
            core(kernel.check_shape(shape))?;
            (shape, kernel)
        }
        _ => {
            let shape = shape_of(&input)?;
            (shape, kernel_of_shape(transitions, shape)?)
        }
    };
    let signal = signal_in("signal", signal, shape)?;
    let (policy, values) = doorway::run(py, || {
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
