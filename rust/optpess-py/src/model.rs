//! The Python class of known models.

use std::sync::Arc;

use numpy::PyArrayDyn;
use optpess_core::error::{Error, Result};
use optpess_core::model::{ConstrainedMdp, ObservationNoise, TransitionKernel, UnitSignal};
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call;
use crate::convert::{Input, array_out, count_in, to_py};
use crate::error::with_hint;
use crate::evaluate::initial_in;
use crate::transitions::{Sizes, Transitions, kernel_of_shape, plain_transitions, sizes_of};

/// A validated constrained MDP. `optpess.CMDP` is derived from it.
#[pyclass(frozen, subclass, module = "optpess._core")]
#[derive(Debug)]
pub struct Model {
    pub model: Arc<ConstrainedMdp>,
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (transitions, rewards, costs, cost_limit, initial, noise, horizon))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the tuple that defines the model"
    )]
    fn new(
        py: Python<'_>,
        transitions: &Bound<'_, PyAny>,
        rewards: &Bound<'_, PyAny>,
        costs: &Bound<'_, PyAny>,
        cost_limit: &Bound<'_, PyAny>,
        initial: &Bound<'_, PyAny>,
        noise: (String, f64),
        horizon: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let horizon = horizon
            .map(|given| count_in("horizon", given))
            .transpose()?;
        let layout = horizon.map_or(Layout::PerStep, |_| Layout::Stationary);
        let transitions = &plain_transitions(transitions)?;
        let rewards = layout.rewards(Input::new("rewards", rewards)?)?;
        let costs = Input::new("costs", costs)?;
        let sizes = sizes_of(transitions, rewards.shape().last().copied().unwrap_or(0))?;
        let shape = to_py(layout.shape(horizon, &sizes, &rewards, &costs))?;
        let rewards = rewards.with_shape(&layout.sizes(shape), layout.axes())?;
        let costs = layout.constraints(costs, shape)?;
        let limits = limits_in(Input::new("cost_limit", cost_limit)?, costs.len())?;
        let initial = initial_in(initial, shape.num_states())?;
        let kernel = kernel_of_shape(transitions, shape)?;
        let rewards = rewards.floats()?;
        let noise = to_py(noise_in(&noise.0, noise.1))?
            .ok_or_else(|| PyValueError::new_err(format!("{:?} is no noise model", noise.0)))?;
        let model = call::run(py, || {
            let reward = layout.signal("rewards", &[], shape, rewards)?;
            let costs: Result<Vec<UnitSignal>> = costs
                .into_iter()
                .map(|(prefix, cost)| layout.signal("costs", &prefix, shape, cost))
                .collect();
            let kernel = TransitionKernel::new(kernel)?;
            ConstrainedMdp::new(kernel, reward, costs?, limits, initial, noise)
        })?;
        Ok(Self {
            model: Arc::new(model),
        })
    }

    /// (horizon, states, actions).
    #[getter]
    fn sizes(&self) -> (usize, usize, usize) {
        let [horizon, states, actions] = self.model.shape().sizes();
        (horizon, states, actions)
    }

    /// M, the number of cost constraints.
    #[getter]
    fn num_constraints(&self) -> usize {
        self.model.costs().len()
    }

    /// P, sharing the model's own storage.
    #[getter]
    fn transitions(&self) -> Transitions {
        Transitions {
            kernel: Arc::clone(self.model.kernel().kernel()),
        }
    }

    /// r as stored: ``[H, S, A]``, or ``[S, A]`` if stationary.
    fn stored_rewards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        signals_out(py, std::slice::from_ref(self.model.reward()), false)
    }

    /// c as stored: ``[M, H, S, A]``, or ``[M, S, A]`` if stationary.
    fn stored_costs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        signals_out(py, self.model.costs(), true)
    }

    /// tau, one limit a constraint, ``[M]``.
    #[getter]
    fn cost_limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let limits = self.model.limits().to_vec();
        let shape = [limits.len()];
        array_out(py, limits, &shape)
    }

    /// mu, ``[S]``.
    #[getter]
    fn initial<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let initial = self.model.initial().data().to_vec();
        let shape = [initial.len()];
        array_out(py, initial, &shape)
    }
}

/// Whether rewards and costs have a step axis.
#[derive(Debug, Clone, Copy)]
enum Layout {
    PerStep,
    Stationary,
}

impl Layout {
    fn signal(
        self,
        name: &'static str,
        prefix: &[usize],
        shape: Shape,
        data: Vec<f64>,
    ) -> Result<UnitSignal> {
        let stride = match self {
            Self::PerStep => shape.pairs(),
            Self::Stationary => 0,
        };
        UnitSignal::new(
            name,
            prefix,
            Signal::labelled(name, prefix, shape, stride, data)?,
        )
    }

    /// The sizes of the problem: those of the transitions, so that rewards of another shape are refused as such. If
    /// the costs have the other shape too, the transitions are what is to be refused.
    fn shape(
        self,
        horizon: Option<usize>,
        sizes: &Sizes,
        rewards: &Input<'_>,
        costs: &Input<'_>,
    ) -> Result<Shape> {
        let found = rewards.shape();
        let steps = horizon.or(sizes.horizon).unwrap_or(found[0]);
        let (states, actions) = (sizes.num_states, sizes.num_actions);
        let made = |steps, states, actions| match self {
            Self::PerStep => Shape::new(steps, states, actions),
            Self::Stationary => Shape::stationary(steps, states, actions),
        };
        let shape = made(steps, states, actions)?;
        if found != self.sizes(shape) && costs.shape().ends_with(found) {
            let [states, actions] = [found[found.len() - 2], found[found.len() - 1]];
            return made(horizon.unwrap_or(found[0]), states, actions);
        }
        Ok(shape)
    }

    /// The sizes of a signal.
    fn sizes(self, shape: Shape) -> Vec<usize> {
        match self {
            Self::PerStep => shape.sizes().to_vec(),
            Self::Stationary => shape.sizes()[1..].to_vec(),
        }
    }

    /// The axes of a signal.
    fn axes(self) -> &'static str {
        match self {
            Self::PerStep => "[H, S, A]",
            Self::Stationary => "[S, A]",
        }
    }

    /// Rewards with the right number of axes, none of them empty.
    fn rewards(self, rewards: Input<'_>) -> PyResult<Input<'_>> {
        let hint = match (self, rewards.shape().len()) {
            (Self::PerStep, 3) | (Self::Stationary, 2) => {
                rewards.check_no_empty_axis()?;
                return Ok(rewards);
            }
            (Self::PerStep, 2) => {
                "a model that is the same at every step is made by CMDP.stationary(..., horizon=H)"
            }
            (Self::Stationary, 3) => "a model that changes with the step is made by CMDP(...)",
            _ => return Err(rewards.wrong_rank(self.axes())),
        };
        Err(rewards.wrong_rank_hint(self.axes(), hint))
    }

    /// The costs of each constraint with its index; without a constraint axis there is one.
    fn constraints(self, costs: Input<'_>, shape: Shape) -> PyResult<Vec<(Vec<usize>, Vec<f64>)>> {
        let signal = self.sizes(shape);
        let axes = match self {
            Self::PerStep => "[M, H, S, A] or [H, S, A]",
            Self::Stationary => "[M, S, A] or [S, A]",
        };
        if costs.shape().len() == signal.len() {
            return Ok(vec![(vec![], costs.with_shape(&signal, axes)?.floats()?)]);
        }
        let num_constraints = costs.shape().first().copied().unwrap_or(0);
        let expected = [&[num_constraints], &signal[..]].concat();
        let costs = costs.with_shape(&expected, axes)?;
        costs.check_no_empty_axis()?;
        let data = costs.floats()?;
        let each = data.chunks_exact(signal.iter().product()).enumerate();
        Ok(each
            .map(|(constraint, cost)| (vec![constraint], cost.to_vec()))
            .collect())
    }
}

/// One limit a constraint; a scalar where there is one constraint.
fn limits_in(input: Input<'_>, num_constraints: usize) -> PyResult<Vec<f64>> {
    if input.shape().is_empty() && num_constraints == 1 {
        return input.floats();
    }
    if input.shape() != [num_constraints] {
        let error = Error::ShapeMismatch {
            array: "cost_limit",
            axes: "[M]",
            expected: vec![num_constraints],
            found: input.shape().to_vec(),
        };
        return Err(with_hint(&error, "each constraint has one limit"));
    }
    input.floats()
}

fn signals_out<'py>(
    py: Python<'py>,
    signals: &[Signal],
    constraint_axis: bool,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let mut shape: Vec<usize> = Vec::new();
    if constraint_axis {
        shape.push(signals.len());
    }
    let sizes = signals[0].shape().sizes();
    let leading = usize::from(signals[0].is_stationary());
    shape.extend_from_slice(&sizes[leading..]);
    let data = signals
        .iter()
        .flat_map(|signal| signal.data().iter().copied())
        .collect();
    array_out(py, data, &shape)
}

fn noise_in(name: &str, parameter: f64) -> Result<Option<ObservationNoise>> {
    Ok(Some(match name {
        "bernoulli" => ObservationNoise::Bernoulli,
        "deterministic" => ObservationNoise::Deterministic,
        "gaussian" => ObservationNoise::gaussian(parameter)?,
        "uniform" => ObservationNoise::uniform(parameter)?,
        _ => return Ok(None),
    }))
}

/// Refuses a noise model that the paper's Assumption 2.1 does not allow.
#[pyfunction]
pub fn check_noise(name: &str, parameter: f64) -> PyResult<()> {
    to_py(noise_in(name, parameter)).map(|_| ())
}
