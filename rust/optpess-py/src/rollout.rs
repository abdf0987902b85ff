//! The Python class of staged rollouts.

use numpy::PyArrayDyn;
use optpess_core::confidence::PlayedCost;
use optpess_core::error::Error;
use optpess_core::learn::{Constraint, StagedRollout};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat};

use crate::convert::{Input, array_out, to_py};
use crate::error::to_python;

type FloatArray<'py> = Bound<'py, PyArrayDyn<f64>>;

/// A staged rollout of the core. `optpess.StagedRollout` wraps it.
#[pyclass(name = "StagedRollout", module = "optpess._core")]
#[derive(Debug)]
pub struct Rollout {
    rollout: StagedRollout,
}

#[pymethods]
impl Rollout {
    #[new]
    fn new(
        cost_limit: &Bound<'_, PyAny>,
        baseline_cost: &Bound<'_, PyAny>,
        max_episode_cost: &Bound<'_, PyAny>,
        failure_probability: f64,
        seed: u64,
    ) -> PyResult<Self> {
        let limits = numbers("cost_limit", cost_limit)?;
        let baseline_costs = numbers("baseline_cost", baseline_cost)?;
        let largest = numbers("max_episode_cost", max_episode_cost)?;
        for (array, values) in [
            ("baseline_cost", &baseline_costs),
            ("max_episode_cost", &largest),
        ] {
            if values.len() != limits.len() {
                return Err(to_python(&Error::ShapeMismatch {
                    array,
                    axes: "[M]",
                    expected: vec![limits.len()],
                    found: vec![values.len()],
                }));
            }
        }
        let constraints = (0..limits.len())
            .map(|m| Constraint {
                limit: limits[m],
                baseline_cost: baseline_costs[m],
                largest: largest[m],
            })
            .collect();
        let rollout = to_py(StagedRollout::new(constraints, failure_probability, seed))?;
        Ok(Self { rollout })
    }

    /// Tosses the coin: True if the candidate plays the next episode.
    fn use_candidate(&mut self) -> PyResult<bool> {
        to_py(self.rollout.use_candidate())
    }

    /// Takes in the total cost of the episode just played, one for each constraint.
    fn record(&mut self, cost: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(cost) = cost.cast::<PyFloat>() {
            return to_py(self.rollout.record(&[cost.value()]));
        }
        to_py(self.rollout.record(&numbers("cost", cost)?))
    }

    /// Starts the next candidate.
    fn replace_candidate(&mut self) -> PyResult<()> {
        to_py(self.rollout.replace_candidate())
    }

    /// The probability with which the candidate plays the next episode.
    #[getter]
    fn weight(&self) -> f64 {
        self.rollout.weight()
    }

    /// 1, 2, ...
    #[getter]
    fn candidate_number(&self) -> u64 {
        self.rollout.candidate_number()
    }

    /// How many episodes were decided.
    #[getter]
    fn episodes(&self) -> u64 {
        self.rollout.episodes()
    }

    /// How many episodes of the candidate were recorded.
    #[getter]
    fn candidate_episodes(&self) -> u64 {
        self.rollout.candidate()[0].episodes()
    }

    /// How many episodes of the baseline were recorded.
    #[getter]
    fn baseline_episodes(&self) -> u64 {
        self.rollout.baseline()[0].episodes()
    }

    /// The failure probability of one bound of the candidate.
    #[getter]
    fn level(&self) -> f64 {
        self.rollout.candidate()[0].level()
    }

    /// The probability with which the promise may fail.
    #[getter]
    fn failure_probability(&self) -> f64 {
        self.rollout.failure_probability()
    }

    /// The first constraint for which the baseline is above its claimed cost, or None.
    #[getter]
    fn contradicted_baseline(&self) -> Option<usize> {
        self.rollout.contradicted_baseline()
    }

    /// The limits, the baseline's claimed costs and the largest costs, `[3, M]`.
    fn constraints<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        let constraints = self.rollout.constraints();
        let rows = [
            |constraint: &Constraint| constraint.limit,
            |constraint: &Constraint| constraint.baseline_cost,
            |constraint: &Constraint| constraint.largest,
        ];
        let data = rows.iter().flat_map(|row| constraints.iter().map(row));
        array_out(py, data.collect(), &[3, constraints.len()])
    }

    /// The candidate's averages and upper bounds, `[2, M]`; an average without episodes is NaN.
    fn candidate_costs<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        averages_and(py, self.rollout.candidate(), PlayedCost::upper)
    }

    /// The baseline's averages and lower bounds, `[2, M]`.
    fn baseline_costs<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        averages_and(py, self.rollout.baseline(), PlayedCost::lower)
    }

    /// An independent copy.
    fn copy(&self) -> Self {
        Self {
            rollout: self.rollout.clone(),
        }
    }

    /// The state, to be restored by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = to_py(self.rollout.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A rollout from `to_bytes`.
    #[staticmethod]
    fn from_bytes(stored: &[u8]) -> PyResult<Self> {
        match StagedRollout::from_bytes(stored) {
            Ok(rollout) => Ok(Self { rollout }),
            Err(error) => Err(PyValueError::new_err(format!(
                "not a stored rollout: {error}"
            ))),
        }
    }
}

/// A number, or a list of numbers.
fn numbers(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let input = Input::new(name, object)?;
    input.check_no_empty_axis()?;
    match input.shape().len() {
        0 | 1 => input.floats(),
        _ => Err(input.wrong_rank("[M], or none for one constraint")),
    }
}

fn averages_and<'py>(
    py: Python<'py>,
    played: &[PlayedCost],
    bound: impl Fn(&PlayedCost) -> f64,
) -> PyResult<FloatArray<'py>> {
    let averages = played
        .iter()
        .map(|played| played.average().unwrap_or(f64::NAN));
    let data = averages.chain(played.iter().map(bound)).collect();
    array_out(py, data, &[2, played.len()])
}
