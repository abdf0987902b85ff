//! The Python class of transitions, and the conversion of dense arrays and compressed sparse rows to kernels.

use std::sync::Arc;

use numpy::{PyArrayDyn, PyUntypedArray};
use optpess_core::error::{ArrayIndex, Error};
use optpess_core::model::{Kernel, RowStorage, Slices};
use optpess_core::shape::Shape;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call;
use crate::convert::{Input, array_out, count_in, to_py, type_name};
use crate::error::to_python;

/// Transition probabilities P_h(s'|s,a), checked and stored once, for any number of later calls.
///
/// Every function that takes ``transitions`` also takes a plain array; it is then copied and checked
/// at each call. Rows may sum to less than one (mass that leaks), never to more. The slice of the
/// last step is never used by any value: it is ignored and may hold anything.
///
/// Args:
///     transitions: array ``[H, S, A, S]``, or ``[S, A, S]`` if the same at every step.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> kernel = op.Transitions(np.full((2, 1, 2), 0.5))
///     >>> kernel
///     Transitions(states=2, actions=1, stationary, dense)
#[pyclass(frozen, module = "optpess")]
#[derive(Debug)]
pub struct Transitions {
    pub kernel: Arc<Kernel>,
}

#[pymethods]
impl Transitions {
    #[new]
    fn new(py: Python<'_>, transitions: &Bound<'_, PyAny>) -> PyResult<Self> {
        let input = Input::new("transitions", transitions)?;
        let kernel = dense(py, &input)?;
        Ok(Self { kernel })
    }

    /// Transitions from compressed sparse rows over (h, s, a), or over (s, a) if ``horizon`` is None.
    ///
    /// Row i has the successor states ``successors[offsets[i]:offsets[i + 1]]``, strictly increasing,
    /// with the ``probabilities`` of the same positions: the layout of SciPy's CSR matrices
    /// (``indptr``, ``indices``, ``data``) of shape ``(rows, S)``.
    ///
    /// Example:
    ///     >>> import optpess as op
    ///     >>> op.Transitions.sparse([0, 1, 3], [1, 0, 1], [1.0, 0.25, 0.75], num_states=2, num_actions=1)
    ///     Transitions(states=2, actions=1, stationary, sparse with 3 entries)
    #[staticmethod]
    #[pyo3(signature = (offsets, successors, probabilities, *, num_states, num_actions, horizon=None))]
    fn sparse(
        py: Python<'_>,
        offsets: &Bound<'_, PyAny>,
        successors: &Bound<'_, PyAny>,
        probabilities: &Bound<'_, PyAny>,
        num_states: &Bound<'_, PyAny>,
        num_actions: &Bound<'_, PyAny>,
        horizon: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let num_states = count_in("num_states", num_states)?;
        let num_actions = count_in("num_actions", num_actions)?;
        let horizon = horizon
            .map(|given| count_in("horizon", given))
            .transpose()?;
        let slices = horizon.map_or(Slices::Stationary, Slices::PerStep);
        let lists = [offsets, successors, probabilities];
        let kernel = sparse(py, lists, num_states, num_actions, slices)?;
        Ok(Self { kernel })
    }

    /// |S|.
    #[getter]
    fn num_states(&self) -> usize {
        self.kernel.num_states()
    }

    /// |A|.
    #[getter]
    fn num_actions(&self) -> usize {
        self.kernel.num_actions()
    }

    /// The number of steps, or None if the transitions are the same at every step of any horizon.
    #[getter]
    fn horizon(&self) -> Option<usize> {
        match self.kernel.slices() {
            Slices::Stationary => None,
            Slices::PerStep(horizon) => Some(horizon),
        }
    }

    /// Whether the rows name their successors.
    #[getter]
    fn is_sparse(&self) -> bool {
        matches!(self.kernel.rows(), RowStorage::Sparse(_))
    }

    /// The stored arrays: ``{"probabilities"}`` if dense, else ``{"offsets", "successors",
    /// "probabilities"}``.
    fn stored<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
        let (states, actions) = (self.kernel.num_states(), self.kernel.num_actions());
        Ok(match self.kernel.rows() {
            RowStorage::Dense(data) => {
                let mut shape = vec![states, actions, states];
                if let Slices::PerStep(horizon) = self.kernel.slices() {
                    shape.insert(0, horizon);
                }
                vec![(
                    "probabilities",
                    array_out(py, data.clone(), &shape)?.into_any(),
                )]
            }
            RowStorage::Sparse(rows) => {
                let offsets: Vec<i64> =
                    rows.offsets().iter().map(|&offset| offset as i64).collect();
                let successors: Vec<i64> =
                    rows.successors().iter().map(|&s| i64::from(s)).collect();
                let probabilities = rows.probabilities().to_vec();
                let (rows, entries) = (offsets.len(), successors.len());
                vec![
                    ("offsets", array_out(py, offsets, &[rows])?.into_any()),
                    (
                        "successors",
                        array_out(py, successors, &[entries])?.into_any(),
                    ),
                    (
                        "probabilities",
                        array_out(py, probabilities, &[entries])?.into_any(),
                    ),
                ]
            }
        })
    }

    /// The probabilities as a new dense array, ``[H, S, A, S]`` or ``[S, A, S]``.
    fn to_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let data = call::run(py, || self.kernel.to_dense())?;
        let (states, actions) = (self.kernel.num_states(), self.kernel.num_actions());
        let mut shape = vec![states, actions, states];
        if let Slices::PerStep(horizon) = self.kernel.slices() {
            shape.insert(0, horizon);
        }
        array_out(py, data, &shape)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.get_type::<Self>().getattr(intern!(py, "_restore"))?;
        let arrays: Vec<_> = self
            .stored(py)?
            .into_iter()
            .map(|(_, array)| array)
            .collect();
        let sizes = (self.num_states(), self.num_actions(), self.horizon());
        Ok((restore, (arrays, sizes).into_pyobject(py)?))
    }

    /// Transitions from the arrays of `stored` and their sizes, for pickle.
    #[staticmethod]
    fn _restore(
        py: Python<'_>,
        arrays: Vec<Bound<'_, PyAny>>,
        sizes: (usize, usize, Option<usize>),
    ) -> PyResult<Self> {
        let slices = sizes.2.map_or(Slices::Stationary, Slices::PerStep);
        let kernel = match &arrays[..] {
            [offsets, successors, probabilities] => sparse(
                py,
                [offsets, successors, probabilities],
                sizes.0,
                sizes.1,
                slices,
            )?,
            [probabilities] => dense(py, &Input::new("transitions", probabilities)?)?,
            _ => {
                return Err(to_python(&Error::NothingGiven {
                    what: "the stored transitions",
                }));
            }
        };
        Ok(Self { kernel })
    }

    fn __repr__(&self) -> String {
        let slices = match self.kernel.slices() {
            Slices::Stationary => "stationary".to_owned(),
            Slices::PerStep(horizon) => format!("horizon={horizon}"),
        };
        let rows = match self.kernel.rows() {
            RowStorage::Dense(_) => "dense".to_owned(),
            RowStorage::Sparse(rows) => format!("sparse with {} entries", rows.successors().len()),
        };
        let (states, actions) = (self.kernel.num_states(), self.kernel.num_actions());
        format!("Transitions(states={states}, actions={actions}, {slices}, {rows})")
    }
}

/// The kernel behind any argument called `transitions` of a problem with `num_actions` actions.
pub fn kernel_in(object: &Bound<'_, PyAny>, num_actions: usize) -> PyResult<Arc<Kernel>> {
    let py = object.py();
    if let Ok(made) = object.cast::<Transitions>() {
        return Ok(Arc::clone(&made.get().kernel));
    }
    if is_compressed(object)? {
        return compressed(object, num_actions);
    }
    dense(py, &Input::new("transitions", object)?)
}

/// Whether an object has the attributes of a CSR matrix. Arrays have not, and looking them up there is slow.
fn is_compressed(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let array = object.is_exact_instance_of::<PyUntypedArray>();
    Ok(!array && object.hasattr(intern!(object.py(), "indptr"))?)
}

/// [`kernel_in`] for a problem whose shape is known: sizes are compared before anything is copied.
pub fn kernel_of_shape(object: &Bound<'_, PyAny>, shape: Shape) -> PyResult<Arc<Kernel>> {
    if !object.is_instance_of::<Transitions>() && !is_compressed(object)? {
        let [horizon, states, actions] = shape.sizes();
        let input = Input::new("transitions", object)?;
        let expected: &[usize] = match input.shape().len() {
            3 => &[states, actions, states],
            _ => &[horizon, states, actions, states],
        };
        let input = input.with_shape(expected, "[H, S, A, S] or, if stationary, [S, A, S]")?;
        return dense(object.py(), &input);
    }
    let kernel = kernel_in(object, shape.num_actions())?;
    to_py(kernel.check_shape(shape))?;
    Ok(kernel)
}

fn dense(py: Python<'_>, input: &Input<'_>) -> PyResult<Arc<Kernel>> {
    let (slices, states, actions, next) = match *input.shape() {
        [states, actions, next] => (Slices::Stationary, states, actions, next),
        [horizon, states, actions, next] => (Slices::PerStep(horizon), states, actions, next),
        _ => return Err(input.wrong_rank("[H, S, A, S] or, if stationary, [S, A, S]")),
    };
    input.check_no_empty_axis()?;
    if states != next {
        let mut expected = input.shape().to_vec();
        expected.pop();
        expected.push(states);
        return Err(to_python(&Error::ShapeMismatch {
            array: "transitions",
            axes: "[H, S, A, S] or, if stationary, [S, A, S]",
            expected,
            found: input.shape().to_vec(),
        }));
    }
    let data = input.floats()?;
    call::run(py, || Kernel::dense(states, actions, slices, data)).map(Arc::new)
}

fn sparse(
    py: Python<'_>,
    [offsets, successors, probabilities]: [&Bound<'_, PyAny>; 3],
    num_states: usize,
    num_actions: usize,
    slices: Slices,
) -> PyResult<Arc<Kernel>> {
    let list = |name, object| Input::new(name, object)?.with_rank(1, "[entries]");
    let offsets = list("transition offsets", offsets)?.integers()?;
    let successors = list("transition successors", successors)?.integers()?;
    let probabilities = list("transition probabilities", probabilities)?.floats()?;
    let made = call::run(py, || {
        Kernel::sparse(
            num_states,
            num_actions,
            slices,
            &offsets,
            &successors,
            probabilities,
        )
    });
    made.map(Arc::new)
}

/// Anything with the attributes of a CSR matrix, such as SciPy's, of shape (rows, S).
fn compressed(object: &Bound<'_, PyAny>, num_actions: usize) -> PyResult<Arc<Kernel>> {
    let py = object.py();
    // Compressed columns have the same attributes and would be read as the transpose.
    if let Ok(format) = object.getattr(intern!(py, "format"))
        && !format.eq("csr")?
    {
        return Err(to_python(&Error::UnsupportedType {
            array: "transitions",
            found: format!("{format} ({})", type_name(object)),
            allowed: "dense arrays and compressed sparse rows (CSR)",
        }));
    }
    let shape: Vec<usize> = object.getattr(intern!(py, "shape"))?.extract()?;
    let [rows, num_states] = shape[..] else {
        return Err(to_python(&Error::WrongRank {
            array: "transitions",
            expected: "[rows, S]",
            found: shape,
        }));
    };
    let pairs = num_states.saturating_mul(num_actions).max(1);
    let slices = match rows / pairs {
        1 => Slices::Stationary,
        horizon => Slices::PerStep(horizon),
    };
    if rows % pairs != 0 {
        return Err(to_python(&Error::OutOfRange {
            place: ArrayIndex::scalar("the number of rows of the sparse transitions"),
            found: rows as f64,
            allowed: optpess_core::error::Interval::closed(pairs as f64, pairs as f64),
        }));
    }
    let [offsets, successors, probabilities] =
        ["indptr", "indices", "data"].map(|name| object.getattr(name));
    let lists = [&offsets?, &successors?, &probabilities?];
    sparse(py, lists, num_states, num_actions, slices)
}
