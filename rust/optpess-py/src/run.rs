//! The Python functions of simulation.

use std::time::{Duration, Instant};

use numpy::PyArrayDyn;
use optpess_core::confidence::{SafetyMargin, constants};
use optpess_core::learn::PolicySource;
use optpess_core::policy::MarkovPolicy;
use optpess_core::record::record_points;
use optpess_core::run;
use optpess_core::run::{
    Audit, Check, Control, EngineChoice, Outcome, Sample, Simulation, Snapshots, StoredReplicate,
    check_replicate, episodes_left, simulate_on,
};
use optpess_core::shape::Shape;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use strum::VariantArray;

use crate::call;
use crate::convert::{Input, array_out, count_in, count_up_to, to_py};
use crate::error::in_use;
use crate::learner::Learner;
use crate::model::Model;

/// The state of a replicate that has played so many episodes; None for one that has no state yet.
type State<'py> = Option<(u64, Bound<'py, PyBytes>)>;

/// The outcomes, the exception that stopped the run, and the states of all replicates.
type Stopped<'py> = (Vec<Bound<'py, PyDict>>, Option<PyErr>, Vec<State<'py>>);

/// Runs replicates of a learner against a model; a dictionary a replicate. `progress` is called with the number of
/// episodes done. Replicates go on from their `states`; `save` is called with new ones every `seconds`. If a signal or
/// one of these calls stops the run, its exception is returned and the dictionaries tell what was recorded so far.
#[pyfunction]
#[pyo3(signature = (model, learner, optimal_value, replicates, seed, threads, episodes, trace, audit, learners,
                    progress, states=None, save=None, seconds=f64::INFINITY))]
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
    learners: bool,
    progress: Option<Bound<'py, PyAny>>,
    states: Option<Vec<State<'py>>>,
    save: Option<Bound<'py, PyAny>>,
    seconds: f64,
) -> PyResult<Stopped<'py>> {
    let model = &*model.get().model;
    let (ranges, learner) = {
        let live = &learner.try_borrow().map_err(|_| in_use())?.live;
        (live.ranges().clone(), to_py(live.for_simulation())?)
    };
    let left = episodes_left(&learner);
    let episodes = count_up_to("episodes", episodes, left as f64)? as u64;
    let threads = count_up_to("threads", threads, f64::MAX)?;
    let simulation = Simulation {
        replicates,
        seed,
        threads,
        episodes,
        trace,
        audit,
        learners,
        engine: EngineChoice::Auto,
    };
    let snapshots = match states {
        Some(states) => Snapshots::new(states.into_iter().map(state_in).collect()),
        None => Snapshots::none(),
    };
    let progress = progress.map(Bound::unbind);
    let mut saver = Saver::new(save.map(Bound::unbind), seconds);
    let (outcomes, interruption) = call::watched(
        py,
        |py, control| {
            call::report(py, progress.as_ref(), control)?;
            saver.look(py, control, &snapshots)
        },
        |control| {
            simulate_on(
                model,
                &learner,
                optimal_value,
                &simulation,
                &snapshots,
                control,
            )
        },
    )?;
    let sizes = (model.shape().horizon(), model.costs().len());
    let outcomes = to_py(outcomes)?.into_iter().map(|mut outcome| {
        let (learner, replicate) = (outcome.learner.take(), outcome.replicate);
        let answer = to_dict(py, outcome, sizes)?;
        if let Some(learner) = learner {
            // The same ranges, and the actions of that replicate.
            let mut given_back = Learner::from(learner);
            to_py(given_back.live.settle(ranges.clone(), (seed, replicate)))?;
            answer.set_item("learner", given_back)?;
        }
        Ok(answer)
    });
    let outcomes = outcomes.collect::<PyResult<_>>()?;
    Ok((outcomes, interruption, states_out(py, &snapshots)))
}

fn state_in(state: State<'_>) -> Option<StoredReplicate> {
    state.map(|(episodes, bytes)| StoredReplicate {
        episodes,
        bytes: bytes.as_bytes().into(),
    })
}

fn states_out<'py>(py: Python<'py>, snapshots: &Snapshots) -> Vec<State<'py>> {
    let stored = snapshots.stored().into_iter();
    let states = stored.map(|state| {
        let state = state?;
        Some((state.episodes, PyBytes::new(py, &state.bytes)))
    });
    states.collect()
}

/// Asks for the states of all replicates from time to time, and passes them on when all have answered.
struct Saver {
    save: Option<Py<PyAny>>,
    pause: Duration,
    next: Option<Instant>, // None if that is further away than a clock can tell
    request: Option<u64>,
}

impl Saver {
    fn new(save: Option<Py<PyAny>>, seconds: f64) -> Self {
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Self {
            save,
            pause,
            next: Instant::now().checked_add(pause),
            request: None,
        }
    }

    fn look(&mut self, py: Python<'_>, control: &Control, snapshots: &Snapshots) -> PyResult<()> {
        let Some(save) = &self.save else {
            return Ok(());
        };
        match self.request {
            Some(request) if snapshots.have_answered(request) => {
                self.request = None;
                save.call1(py, (states_out(py, snapshots),))?;
                self.next = Instant::now().checked_add(self.pause);
            }
            None if self.next.is_some_and(|next| next <= Instant::now()) => {
                self.request = Some(control.ask_for_states());
            }
            _ => {}
        }
        Ok(())
    }
}

fn to_dict<'py>(
    py: Python<'py>,
    outcome: Outcome,
    (horizon, constraints): (usize, usize),
) -> PyResult<Bound<'py, PyDict>> {
    let record = outcome.record;
    let answer = PyDict::new(py);
    answer.set_item("replicate", outcome.replicate)?;
    answer.set_item("episodes", outcome.episodes)?;
    let curves = [
        ("reward_regret", record.reward_regret),
        ("signed_violation", record.signed_violation),
        ("strong_violation", record.strong_violation),
        ("multiplier", record.multiplier),
        ("deployed_value", record.deployed_value.mean),
        ("deployed_value_least", record.deployed_value.least),
        ("deployed_value_greatest", record.deployed_value.greatest),
        ("baseline_share", record.baseline_share),
    ];
    let points = curves[0].1.len();
    for (name, curve) in curves {
        answer.set_item(name, array_out(py, curve, &[points])?)?;
    }
    let costs = [
        ("deployed_cost", record.deployed_cost.mean),
        ("deployed_cost_least", record.deployed_cost.least),
        ("deployed_cost_greatest", record.deployed_cost.greatest),
    ];
    for (name, curve) in costs {
        answer.set_item(name, array_out(py, curve, &[points, constraints])?)?;
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
    let plays = PyDict::new(py);
    for (&source, count) in PolicySource::VARIANTS.iter().zip(record.plays) {
        let name: &'static str = source.into();
        plays.set_item(name, count)?;
    }
    answer.set_item("plays", plays)?;
    answer.set_item("mixtures", record.mixtures)?;
    if record.mixtures > 0 {
        answer.set_item("weight", array_out(py, record.weight, &[points])?)?;
        answer.set_item(
            "certified_cost",
            array_out(py, record.certified_cost, &[points, constraints])?,
        )?;
    }
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
        // With one constraint its axis is left out.
        let (cost_shape, total_shape) = match constraints {
            1 => (shape.to_vec(), vec![episodes]),
            _ => (
                vec![episodes, constraints, horizon],
                vec![episodes, constraints],
            ),
        };
        let wide = |values: Vec<u32>| values.into_iter().map(i64::from).collect::<Vec<i64>>();
        seen.set_item("states", array_out(py, wide(trace.states), &shape)?)?;
        seen.set_item("actions", array_out(py, wide(trace.actions), &shape)?)?;
        seen.set_item("rewards", array_out(py, trace.rewards, &shape)?)?;
        seen.set_item("costs", array_out(py, trace.costs, &cost_shape)?)?;
        seen.set_item(
            "deployed_value",
            array_out(py, trace.deployed_value, &[episodes])?,
        )?;
        seen.set_item(
            "deployed_cost",
            array_out(py, trace.deployed_cost, &total_shape)?,
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

/// V(r) and V(c_m) of a learner's baseline in a model; None if it has no baseline.
#[pyfunction]
pub fn baseline_values(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    learner: &Bound<'_, Learner>,
) -> PyResult<Option<(f64, Vec<f64>)>> {
    let learner = learner.try_borrow().map_err(|_| in_use())?;
    let (model, learner) = (&*model.get().model, &learner.live);
    call::run(py, || run::baseline_values(model, learner.learner()))
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
    let shape = to_py(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let margin = to_py(SafetyMargin::new(cost_limit, safe_cost))?;
    Ok(constants::tightening_horizon(
        shape,
        &margin,
        failure_probability,
    ))
}

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
    let model = &*model.get().model;
    let (shape, constraints) = (model.shape(), model.costs().len());
    let input = Input::new("policy", policy)?
        .with_policy_axes()?
        .with_shape(&shape.sizes(), "[H, S, A]")?;
    let policy = to_py(MarkovPolicy::new("policy", shape, input.floats()?))?;
    let num_episodes = count_in("num_episodes", num_episodes)?;
    to_py(check_replicate(replicate))?;
    let horizon = shape.horizon();
    // The product of sizes is checked like a shape, before anything is allocated.
    to_py(Shape::new(num_episodes, constraints, horizon))?;
    let address = (seed, replicate);
    let sample: Sample = call::interruptible(py, None, |control| {
        run::sample(model, &policy, num_episodes, address, control)
    })?;
    Ok((
        array_out(py, sample.states, &[num_episodes, horizon])?,
        array_out(py, sample.actions, &[num_episodes, horizon])?,
        array_out(py, sample.rewards, &[num_episodes, horizon])?,
        array_out(py, sample.costs, &[num_episodes, constraints, horizon])?,
    ))
}
