//! The Python functions of planning, on one kernel and over plausible kernels.

use std::num::NonZero;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use numpy::PyArrayDyn;
use optpess_core::confidence::KernelBox;
use optpess_core::control::Control;
use optpess_core::error::{Error, Result};
use optpess_core::evaluate::MixedActions;
use optpess_core::parallel::Workers;
use optpess_core::plan::{self as planner, Point};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::CompactActions;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call;
use crate::convert::{Input, array_out, count_in, shape_of, to_py};
use crate::error::to_python;
use crate::evaluate::{initial_in, signal_in};
use crate::model::Model;
use crate::transitions::{kernel_in, kernel_of_shape};

/// Shows how far a plan is, once it has taken long enough to be looked at.
#[derive(Debug)]
struct Shown {
    horizon: usize,
    /// Steps begun by earlier calls of the same plan.
    before: u64,
    bar: Option<Py<PyAny>>,
}

impl Shown {
    fn new(shape: Shape) -> Self {
        Self {
            horizon: shape.horizon(),
            before: 0,
            bar: None,
        }
    }

    /// Shows that so many steps of this call have begun.
    fn show(&mut self, py: Python<'_>, steps: u64) -> PyResult<()> {
        let bar = match &self.bar {
            Some(bar) => bar,
            None => {
                let made = py.import("optpess.progress")?.getattr("SweepBar")?;
                self.bar.insert(made.call1((self.horizon,))?.unbind())
            }
        };
        bar.call1(py, (self.before + steps,)).map(drop)
    }

    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        match self.bar.take() {
            Some(bar) => bar.call_method0(py, "close").map(drop),
            None => Ok(()),
        }
    }
}

/// Runs a planning call that Ctrl-C can end, and so can a time limit in seconds.
fn plan<T: Send>(
    py: Python<'_>,
    shape: Shape,
    threads: usize,
    time_limit: Option<f64>,
    work: impl Send + FnOnce(Workers<'_>) -> Result<T>,
) -> PyResult<T> {
    let mut shown = Shown::new(shape);
    let found = plan_shown(py, (shape, &mut shown), threads, time_limit, work);
    shown.close(py)?;
    found
}

/// [`plan`], whose progress is shown by a display that the caller keeps.
fn plan_shown<T: Send>(
    py: Python<'_>,
    (shape, shown): (Shape, &mut Shown),
    threads: usize,
    time_limit: Option<f64>,
    work: impl Send + FnOnce(Workers<'_>) -> Result<T>,
) -> PyResult<T> {
    if shape.triples() < call::STOPPABLE_FROM {
        let control = Control::default();
        return call::run(py, || work(Workers::alone(&control)));
    }
    let start = Instant::now();
    let look = |py: Python<'_>, control: &Control| {
        shown.show(py, control.steps_begun.load(Ordering::Relaxed))?;
        match time_limit {
            Some(seconds) if start.elapsed().as_secs_f64() > seconds => {
                Err(to_python(&Error::NumericalTrouble {
                    solver: "parametric",
                    status: format!("no optimum within the time limit of {seconds} s"),
                }))
            }
            _ => Ok(()),
        }
    };
    match call::watched(py, look, |control| work(Workers { threads, control }))? {
        (_, Some(interruption)) => Err(interruption),
        (answer, None) => to_py(answer),
    }
}

/// Actions `[H, S]`, in the smallest unsigned type that holds them.
fn actions_out<'py>(
    py: Python<'py>,
    actions: CompactActions,
    shape: Shape,
) -> PyResult<Bound<'py, PyAny>> {
    let sizes = [shape.horizon(), shape.num_states()];
    Ok(match actions {
        CompactActions::U8(actions) => array_out(py, actions, &sizes)?.into_any(),
        CompactActions::U16(actions) => array_out(py, actions, &sizes)?.into_any(),
        CompactActions::U32(actions) => array_out(py, actions, &sizes)?.into_any(),
    })
}

/// Actions `[H, S]` that [`actions_out`] gave out, or others of the same type.
fn actions_in(object: &Bound<'_, PyAny>, shape: Shape) -> PyResult<CompactActions> {
    let sizes = [shape.horizon(), shape.num_states()];
    let given = Input::new("actions", object)?.with_shape(&sizes, "[H, S]")?;
    let mut actions = to_py(CompactActions::zeros(shape))?;
    let place = actions.fill_from(&given.integers()?, shape.num_actions());
    to_py(place)?;
    Ok(actions)
}

type Greedy<'py> = (Bound<'py, PyAny>, Bound<'py, PyArrayDyn<f64>>);

/// The best policy for one signal, without any constraint: ``(policy [H, S, A], values [H + 1, S])``.
///
/// Ties go to the lowest action.
///
/// Args:
///     signal: ``[H, S, A]``; or ``[S, A]``, and then the horizon comes from the transitions or from
///         ``horizon``.
///     transitions: as for :func:`evaluate`.
///     horizon: needed only if both signal and transitions are the same at every step.
///     as_actions: True gives the numbers of the actions, ``[H, S]``, in the smallest unsigned type that holds
///         them, in place of the policy ``[H, S, A]``.
///     threads: how many threads; None for one per core. The numbers do not depend on it.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> policy, values = op.backward_induction([[0.25, 1.0]], np.ones((1, 2, 1)), horizon=2)
///     >>> policy[:, 0].tolist(), values[:, 0].tolist()
///     ([[0.0, 1.0], [0.0, 1.0]], [2.0, 1.0, 0.0])
#[pyfunction]
#[pyo3(signature = (signal, transitions, *, horizon=None, as_actions=false, threads=None))]
pub fn backward_induction<'py>(
    py: Python<'py>,
    signal: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    horizon: Option<&Bound<'py, PyAny>>,
    as_actions: bool,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Greedy<'py>> {
    let threads = threads_in(threads)?;
    let horizon = horizon
        .map(|given| count_in("horizon", given))
        .transpose()?;
    let input = Input::new("signal", signal)?;
    let (shape, kernel) = match (input.shape(), horizon) {
        (&[states, actions], Some(horizon)) => {
            input.check_no_empty_axis()?;
            let shape = to_py(Shape::stationary(horizon, states, actions))?;
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
    let (actions, values) = plan(py, shape, threads, None, |workers| {
        planner::best_actions(shape, &signal, &kernel, workers)
    })?;
    let values = array_out(
        py,
        values.into_data(),
        &[shape.horizon() + 1, shape.num_states()],
    )?;
    let policy = if as_actions {
        actions_out(py, actions, shape)?
    } else {
        let policy = call::run(py, || MarkovPolicy::taking(shape, &actions))?;
        array_out(py, policy.into_data(), &shape.sizes())?.into_any()
    };
    Ok((policy, values))
}

/// The number of threads to use: as many as this process has cores, if none is given.
fn threads_in(threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    match threads {
        Some(given) => count_in("threads", given),
        None => Ok(std::thread::available_parallelism().map_or(1, NonZero::get)),
    }
}

/// The optimum for one reward and one cost signal of any sign and size, by the chord method, to a tolerance.
#[pyfunction]
#[pyo3(signature = (sizes, reward, cost, transitions, initial, limit, tolerance, threads, time_limit))]
#[expect(clippy::too_many_arguments, reason = "a problem and how to solve it")]
pub fn solve_parametric<'py>(
    py: Python<'py>,
    sizes: (usize, usize, usize),
    reward: &Bound<'py, PyAny>,
    cost: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    initial: &Bound<'py, PyAny>,
    limit: f64,
    tolerance: f64,
    threads: Option<&Bound<'py, PyAny>>,
    time_limit: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let shape = to_py(Shape::stationary(sizes.0, sizes.1, sizes.2))?;
    let reward = signal_in("reward", reward, shape)?;
    let cost = signal_in("cost", cost, shape)?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let found = plan(py, shape, threads_in(threads)?, time_limit, |workers| {
        let problem = planner::KnownProblem {
            shape,
            reward: &reward,
            cost: &cost,
            kernel: &*kernel,
            initial: &initial,
        };
        planner::solve_to(&problem, limit, tolerance, workers)
    })?;
    let answer = PyDict::new(py);
    answer.set_item("value", found.value)?;
    answer.set_item("cost", found.certificate.cost)?;
    answer.set_item("repair", found.certificate.repair)?;
    answer.set_item("multiplier", found.multiplier)?;
    answer.set_item("bound", found.bound)?;
    answer.set_item("inductions", found.inductions)?;
    let (ends, weights, shares) = found.policy.into_parts();
    mixture_out(py, &answer, shape, ends, weights, shares)?;
    Ok(answer)
}

/// Writes a mixture into a dictionary: weights, actions `[H, S]` of each end, and the share of each end but the first
/// at every step and state, `[H, S, ends - 1]`.
fn mixture_out<'py>(
    py: Python<'py>,
    answer: &Bound<'py, PyDict>,
    shape: Shape,
    ends: Vec<CompactActions>,
    weights: Vec<f64>,
    shares: Vec<f64>,
) -> PyResult<()> {
    let sizes = [shape.horizon(), shape.num_states(), ends.len() - 1];
    let ends: PyResult<Vec<_>> = ends
        .into_iter()
        .map(|end| actions_out(py, end, shape))
        .collect();
    answer.set_item("weights", weights)?;
    answer.set_item("actions", ends?)?;
    answer.set_item("shares", array_out(py, shares, &sizes)?)
}

/// The mixture of deterministic policies, given by their actions ``[H, S]``, with some weights, and its reward and
/// costs.
#[pyfunction]
pub fn mix_actions<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    actions: Vec<Bound<'py, PyAny>>,
    weights: Vec<f64>,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let model = &model.get().model;
    let shape = model.shape();
    let ends: PyResult<Vec<_>> = actions.iter().map(|end| actions_in(end, shape)).collect();
    let ends = ends?;
    let (mixed, value, costs) = plan(py, shape, threads_in(threads)?, None, |workers| {
        let (kernel, initial) = (model.kernel().kernel(), model.initial());
        let mixed = MixedActions::new(shape, ends, weights, kernel, initial, workers)?;
        let (value, costs) = planner::evaluate_all(model, &mixed, workers)?;
        Ok((mixed, value, costs))
    })?;
    let answer = PyDict::new(py);
    answer.set_item("value", value)?;
    let count = costs.len();
    answer.set_item("costs", array_out(py, costs, &[count])?)?;
    let (ends, weights, shares) = mixed.into_parts();
    mixture_out(py, &answer, shape, ends, weights, shares)?;
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
    let shape = to_py(Shape::stationary(sizes.0, sizes.1, sizes.2))?;
    let cost = signal_in("cost", cost, shape)?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    plan(py, shape, threads_in(None)?, None, |workers| {
        let problem = planner::KnownProblem {
            shape,
            reward: &cost,
            cost: &cost,
            kernel: &*kernel,
            initial: &initial,
        };
        let mut oracle = planner::KnownOracle::new(&problem, workers)?;
        planner::least_cost_and_rounding(&mut oracle, limit)
    })
}

/// Vertices (cost, value) of the best-reward-for-a-limit curve, ``[V, 2]``, by increasing cost; how far the curve may
/// lie above them; and whether Ctrl-C ended the search.
#[pyfunction]
#[pyo3(signature = (model, max_vertices, tolerance, between, threads))]
pub fn frontier_vertices<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    max_vertices: usize,
    tolerance: f64,
    between: (f64, f64),
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArrayDyn<f64>>, f64, bool)> {
    let model = &model.get().model;
    let request = planner::FrontierRequest {
        tolerance,
        between,
        max_vertices,
    };
    let threads = threads_in(threads)?;
    let mut shown = Shown::new(model.shape());
    let outcome = call::watched(
        py,
        |py, control| shown.show(py, control.steps_begun.load(Ordering::Relaxed)),
        |control| {
            let workers = Workers { threads, control };
            planner::frontier_to(&planner::problem_of(model, 0), request, workers)
        },
    );
    shown.close(py)?;
    let (found, interruption) = outcome?;
    let found = match (found, interruption) {
        // What was found so far is the answer, if Ctrl-C was what stopped the search.
        (Ok(found), Some(cause)) if !cause.is_instance_of::<PyKeyboardInterrupt>(py) => {
            drop(found);
            return Err(cause);
        }
        (Ok(found), _) => found,
        (Err(_), Some(cause)) => return Err(cause),
        (Err(error), None) => return Err(to_python(&error)),
    };
    let count = found.vertices.len();
    let data = found
        .vertices
        .into_iter()
        .flat_map(|(cost, value)| [cost, value])
        .collect();
    Ok((
        array_out(py, data, &[count, 2])?,
        found.bound,
        found.stopped,
    ))
}

type LagrangianPlan<'py> = (f64, f64, Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyAny>);

/// Best policies for Lagrangians of one model: a call knows what the one before found.
#[derive(Debug)]
#[pyclass(frozen, module = "optpess._core")]
pub struct LagrangianSearch {
    model: Py<Model>,
    search: Mutex<planner::LagrangianSearch>,
    /// None while a call uses it.
    shown: Mutex<Option<Shown>>,
}

#[pymethods]
impl LagrangianSearch {
    #[new]
    fn new(py: Python<'_>, model: Py<Model>) -> PyResult<Self> {
        let search = call::run(py, || {
            Ok(planner::LagrangianSearch::new(&model.get().model))
        })?;
        Ok(Self {
            shown: Mutex::new(Some(Shown::new(model.get().model.shape()))),
            model,
            search: Mutex::new(search),
        })
    }

    /// The best policy for ``reward_weight r - sum_m multipliers[m] c_m``: that Lagrangian's value, the
    /// reward, the costs ``[M]`` and the actions ``[H, S]``.
    fn best<'py>(
        &self,
        py: Python<'py>,
        reward_weight: f64,
        multipliers: &Bound<'py, PyAny>,
        threads: Option<&Bound<'py, PyAny>>,
        time_limit: Option<f64>,
    ) -> PyResult<LagrangianPlan<'py>> {
        let model = &self.model.get().model;
        let (shape, count) = (model.shape(), model.costs().len());
        let input = Input::new("multipliers", multipliers)?.with_shape(&[count], "[M]")?;
        let multipliers = input.floats()?;
        let threads = threads_in(threads)?;
        let mut shown = self.take_shown().unwrap_or_else(|| Shown::new(shape));
        let found = plan_shown(py, (shape, &mut shown), threads, time_limit, |workers| {
            // What a call that panicked left behind is a search that knows nothing.
            let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
            search.best(model, reward_weight, &multipliers, workers)
        });
        shown.before += shape.horizon() as u64;
        let told = shown.show(py, 0);
        self.put_back(shown);
        told?;
        let found = found?;
        let actions = actions_out(py, found.actions, shape)?;
        let costs = array_out(py, found.costs, &[count])?;
        Ok((found.value, found.reward, costs, actions))
    }

    /// Clears the progress that was shown.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.take_shown()
            .map_or(Ok(()), |mut shown| shown.close(py))
    }
}

impl LagrangianSearch {
    fn take_shown(&self) -> Option<Shown> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.take()
    }

    fn put_back(&self, shown: Shown) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }
}

/// The actions ``[H, S]`` of the policy at one end of the trade-off between the reward and one cost.
#[pyfunction]
pub fn extreme_actions<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    constraint: usize,
    least_cost: bool,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let model = &model.get().model;
    let objective = if least_cost {
        planner::Objective::LeastCost
    } else {
        planner::Objective::MostReward
    };
    let found = plan(py, model.shape(), threads_in(threads)?, None, |workers| {
        planner::extreme(model, constraint, objective, workers)
    })?;
    actions_out(py, found.into_actions(), model.shape())
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
    let plan = call::stoppable(py, shape, || {
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
