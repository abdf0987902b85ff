//! Sampling, from Python.

use numpy::PyArrayDyn;
use optpess_core::shape::Shape;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::zeros;
use optpess_core::trajectory::Trajectory;
use pyo3::prelude::*;

use crate::convert::{Input, array_out, core, count_in};
use crate::doorway;
use crate::model::Model;
use optpess_core::policy::MarkovPolicy;

type Episodes<'py> = (
    Bound<'py, PyArrayDyn<i64>>,
    Bound<'py, PyArrayDyn<i64>>,
    Bound<'py, PyArrayDyn<f64>>,
    Bound<'py, PyArrayDyn<f64>>,
);

/// Plays episodes of a known model with one policy.
///
/// Returns ``(states [N, H], actions [N, H], rewards [N, H], costs [N, M, H])`` as observed, noise
/// included. The same seed and replicate give the same episodes on every machine.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> model = op.CMDP.stationary(np.ones((1, 1, 1)), [[0.5]], [[1.0]], 2.0, [1.0], horizon=3)
///     >>> states, actions, rewards, costs = op.sample(model, np.ones((3, 1, 1)), 100, seed=1)
///     >>> costs.shape, float(costs.mean())
///     ((100, 1, 3), 1.0)
#[pyfunction]
#[pyo3(signature = (model, policy, num_episodes, *, seed=0, replicate=0))]
pub fn sample<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    policy: &Bound<'py, PyAny>,
    num_episodes: &Bound<'py, PyAny>,
    seed: u64,
    replicate: u64,
) -> PyResult<Episodes<'py>> {
    let model = &model.get().model;
    let (shape, constraints) = (model.shape(), model.costs().len());
    let input = Input::new("policy", policy)?.with_shape(&shape.sizes(), "[H, S, A]")?;
    let policy = core(MarkovPolicy::new("policy", shape, input.floats()?))?;
    let num_episodes = count_in("num_episodes", num_episodes)?;
    let horizon = shape.horizon();
    // The product of sizes is checked as a shape's is: refused before anything is allocated.
    core(Shape::new(num_episodes, constraints, horizon))?;
    let (states, actions, rewards, costs) = doorway::run(py, || {
        let environment = TabularEnvironment::new(model)?;
        let mut streams = Streams::new(seed, replicate);
        let mut seen = Trajectory::new(shape, constraints)?;
        let mut states = zeros::<i64>("states [N, H]", num_episodes * horizon)?;
        let mut actions = zeros::<i64>("actions [N, H]", num_episodes * horizon)?;
        let mut rewards = zeros("rewards [N, H]", num_episodes * horizon)?;
        let mut costs = zeros("costs [N, M, H]", num_episodes * constraints * horizon)?;
        for episode in 0..num_episodes {
            environment.rollout(&policy, &mut streams, &mut seen);
            let row = episode * horizon..(episode + 1) * horizon;
            for (target, &state) in states[row.clone()].iter_mut().zip(&seen.states) {
                *target = i64::from(state);
            }
            for (target, &action) in actions[row.clone()].iter_mut().zip(&seen.actions) {
                *target = i64::from(action);
            }
            rewards[row].copy_from_slice(&seen.rewards);
            costs[episode * constraints * horizon..][..constraints * horizon]
                .copy_from_slice(&seen.costs);
        }
        Ok((states, actions, rewards, costs))
    })?;
    Ok((
        array_out(py, states, &[num_episodes, horizon])?,
        array_out(py, actions, &[num_episodes, horizon])?,
        array_out(py, rewards, &[num_episodes, horizon])?,
        array_out(py, costs, &[num_episodes, constraints, horizon])?,
    ))
}
