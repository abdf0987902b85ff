//! Simulations, from Python.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use optpess_core::confidence::{SafetyMargin, constants};
use optpess_core::error::Result;
use optpess_core::record::record_points;
use optpess_core::run::{
    Audit, Check, Control, EngineChoice, Outcome, Simulation, episodes_left, simulate,
};
use optpess_core::shape::Shape;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use strum::VariantArray;

use crate::any_learner::{AnyLearner, either};
use crate::convert::{array_out, core, count_up_to};
use crate::error::to_python;
use crate::learner::Learner;
use crate::model::Model;

/// How often a running simulation looks for signals and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// Runs replicates of a learner against a model; a dictionary a replicate. `progress` is called with
/// the number of episodes done.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what is to be run, and how")]
pub fn simulate_learner<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    learner: &Bound<'py, Learner>,
    optimal_value: f64,
    replicates: Vec<u64>,
    seed: u64,
    threads: &Bound<'py, PyAny>,
    episodes: &Bound<'py, PyAny>,
    trace: bool,
    audit: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let model = &*model.get().model;
    let learner = learner.borrow().learner.clone();
    let left = either!(&learner, inner => episodes_left(&**inner));
    let episodes = count_up_to("episodes", episodes, left as f64)? as u64;
    let threads = count_up_to("threads", threads, f64::MAX)?;
    let simulation = Simulation {
        replicates,
        seed,
        threads,
        episodes,
        trace,
        audit,
        engine: EngineChoice::Auto,
    };
    let progress = progress.map(Bound::unbind);
    let outcomes = watched(
        py,
        progress.as_ref(),
        |control| either!(&learner, inner => simulate(model, &**inner, optimal_value, &simulation, control)),
    )?;
    let horizon = model.shape().horizon();
    outcomes
        .into_iter()
        .map(|outcome| describe(py, outcome, horizon))
        .collect()
}

/// Runs `work` on a thread of its own, while this one looks for signals (Ctrl-C) and reports progress.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl Send + FnOnce(&Control) -> Result<T>,
) -> PyResult<T> {
    let control = Control::default();
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let control = &control;
            scope.spawn(move || {
                // The receiver lives until the answer has come, so sending cannot fail.
                let _ = sender.send(work(control));
            });
            loop {
                match receiver.recv_timeout(POLL) {
                    Ok(answer) => return answer.map_err(|error| to_python(&error)),
                    Err(mpsc::RecvTimeoutError::Disconnected) => {
                        return Err(pyo3::exceptions::PyRuntimeError::new_err(
                            "the simulation ended without an answer; please report a bug",
                        ));
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    if let Some(progress) = progress {
                        progress.call1(py, (control.episodes_done.load(Ordering::Relaxed),))?;
                    }
                    Ok(())
                });
                if let Err(interruption) = looked {
                    control.stop.store(true, Ordering::Relaxed);
                    let _ = receiver.recv(); // the workers stop after their episode
                    return Err(interruption);
                }
            }
        })
    })
}

fn describe<'py>(
    py: Python<'py>,
    outcome: Outcome,
    horizon: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let record = outcome.record;
    let answer = PyDict::new(py);
    let curves = [
        ("reward_regret", record.reward_regret),
        ("signed_violation", record.signed_violation),
        ("strong_violation", record.strong_violation),
        ("multiplier", record.multiplier),
    ];
    for (name, curve) in curves {
        let length = curve.len();
        answer.set_item(name, array_out(py, curve, &[length])?)?;
    }
    answer.set_item("worst_violation", record.worst_violation)?;
    answer.set_item("violating_episodes", record.violating_episodes)?;
    answer.set_item("first_violation", record.first_violation)?;
    answer.set_item("baseline_episodes", record.baseline_episodes)?;
    answer.set_item("estimation_episodes", record.estimation_episodes)?;
    answer.set_item("first_planned", record.first_planned)?;
    answer.set_item("least_slack", record.least_slack)?;
    answer.set_item("repairs", record.repairs.0)?;
    answer.set_item("largest_repair", record.repairs.1)?;
    answer.set_item("safe_cost", record.safe_cost)?;
    answer.set_item(
        "audit",
        outcome
            .audit
            .map(|audit| findings(py, &audit))
            .transpose()?,
    )?;
    if let Some(trace) = outcome.trace {
        let episodes = trace.deployed_value.len();
        let seen = PyDict::new(py);
        let shape = [episodes, horizon];
        let wide = |values: Vec<u32>| values.into_iter().map(i64::from).collect::<Vec<i64>>();
        seen.set_item("states", array_out(py, wide(trace.states), &shape)?)?;
        seen.set_item("actions", array_out(py, wide(trace.actions), &shape)?)?;
        seen.set_item("rewards", array_out(py, trace.rewards, &shape)?)?;
        seen.set_item("costs", array_out(py, trace.costs, &shape)?)?;
        seen.set_item(
            "deployed_value",
            array_out(py, trace.deployed_value, &[episodes])?,
        )?;
        seen.set_item(
            "deployed_cost",
            array_out(py, trace.deployed_cost, &[episodes])?,
        )?;
        seen.set_item(
            "on_baseline",
            array_out(py, trace.on_baseline, &[episodes])?,
        )?;
        seen.set_item("multiplier", array_out(py, trace.multiplier, &[episodes])?)?;
        answer.set_item("trace", seen)?;
    }
    Ok(answer)
}

fn findings<'py>(py: Python<'py>, audit: &Audit) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    for &check in Check::VARIANTS {
        let name: &'static str = check.into();
        let finding = audit.of(check);
        let row = (
            finding.made,
            finding.failed,
            finding.first_failure,
            finding.worst_excess,
        );
        answer.set_item(name, row)?;
    }
    Ok(answer)
}

/// The numbers of episodes at which a run of this length is recorded.
#[pyfunction]
pub fn recorded_episodes(episodes: u64) -> Vec<u64> {
    record_points(episodes, 40)
}

/// C'': the first episode number from which the tightening of OptPess-PrimalDual is small enough.
#[pyfunction]
pub fn tightening_horizon(
    sizes: (usize, usize, usize),
    cost_limit: f64,
    safe_cost: f64,
    failure_probability: f64,
) -> PyResult<Option<u64>> {
    let shape = core(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let margin = core(SafetyMargin::new(cost_limit, safe_cost))?;
    Ok(constants::tightening_horizon(
        shape,
        &margin,
        failure_probability,
    ))
}
