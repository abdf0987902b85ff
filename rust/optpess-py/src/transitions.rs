//! The Python class of transitions, and the conversion of dense arrays and compressed sparse rows to kernels.

use std::sync::Arc;

use numpy::{PyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use optpess_core::error::{ArrayIndex, Error};
use optpess_core::model::{Kernel, RowStorage, Slices};
use optpess_core::shape::Shape;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::call;
use crate::convert::{Input, array_out, count_in, to_py, type_name};
use crate::error::{to_python, with_hint};

/// Transition probabilities P_h(s'|s,a), checked and stored once, for any number of later calls.
///
/// Every function that takes ``transitions`` also takes a plain array; it is then copied and checked
/// at each call. Rows may sum to less than one (mass that leaks), never to more. The slice of the
/// last step is never used by any value: it is ignored and may hold anything.
///
/// Args:
///     transitions: array ``[H, S, A, S]``, or ``[S, A, S]`` if the same at every step; or a list of A
///         matrices ``[S, S]``, dense or sparse. One sparse matrix of rows goes to :meth:`sparse`.
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
    fn new(transitions: &Bound<'_, PyAny>) -> PyResult<Self> {
        let num_actions = transitions.len().unwrap_or(0); // of a list of matrices; read for no other form
        if is_sparse(transitions)? {
            let error = unsupported_format(transitions);
            return Err(with_hint(&error, "op.Transitions.sparse takes its rows"));
        }
        let kernel = kernel_in(transitions, num_actions)?;
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

    /// Any argument called ``transitions`` of a problem with these sizes, checked and stored.
    #[staticmethod]
    fn _of(transitions: &Bound<'_, PyAny>, sizes: (usize, usize, usize)) -> PyResult<Self> {
        let shape = to_py(Shape::stationary(sizes.0, sizes.1, sizes.2))?;
        let kernel = kernel_of_shape(transitions, shape)?;
        Ok(Self { kernel })
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

const AXES: &str = "[H, S, A, S] or, if stationary, [S, A, S]";

/// An argument called `transitions` in one of three forms: a `Transitions`, compressed sparse rows, or a dense array.
/// Lists of one matrix `[S, S]` an action and the other sparse formats are converted; nothing is checked yet.
#[pyfunction]
pub fn plain_transitions<'py>(transitions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (object, py) = (transitions, transitions.py());
    if object.is_exact_instance_of::<PyUntypedArray>() || object.is_instance_of::<Transitions>() {
        return Ok(object.clone());
    }
    if let Some(matrices) = matrices_of_actions(object)? {
        return matrices.by_state(py);
    }
    if is_sparse(object)? {
        return compressed_rows(object);
    }
    Ok(Input::new("transitions", object)?.into_array().into_any())
}

/// Whether an object is a sparse matrix. Arrays are not, and looking up attributes there is slow.
fn is_sparse(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let array = object.is_exact_instance_of::<PyUntypedArray>();
    Ok(!array
        && (object.hasattr(intern!(py, "indptr"))? || object.hasattr(intern!(py, "tocsr"))?))
}

/// A sparse matrix as compressed sparse rows. What is not in that format is converted, with duplicates added up.
fn compressed_rows<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let format = object.getattr(intern!(py, "format")).ok();
    let is_csr = match &format {
        Some(format) => format.eq("csr")?,
        None => object.hasattr(intern!(py, "indptr"))?,
    };
    if is_csr {
        return Ok(object.clone());
    }
    let converted = object.call_method0(intern!(py, "tocsr"));
    let rows = converted.map_err(|_| to_python(&unsupported_format(object)))?;
    rows.call_method0(intern!(py, "sum_duplicates"))?;
    Ok(rows)
}

fn unsupported_format(object: &Bound<'_, PyAny>) -> Error {
    let format = object.getattr("format").map(|format| format.to_string());
    Error::UnsupportedType {
        array: "transitions",
        found: match format {
            Ok(format) => format!("{format} ({})", type_name(object)),
            Err(_) => type_name(object),
        },
        allowed: "dense arrays and compressed sparse rows (CSR)",
    }
}

/// One matrix `[S, S]` an action, as toolboxes for Markov decision processes have them.
struct Matrices<'py> {
    each: Vec<Bound<'py, PyAny>>,
    num_states: usize,
    any_sparse: bool,
}

/// The matrices, if the object is a list or tuple of square arrays or sparse matrices of one size. Nested lists of
/// numbers are read as arrays are.
fn matrices_of_actions<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Matrices<'py>>> {
    if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let (mut each, mut sizes, mut any_sparse) = (Vec::new(), Vec::new(), false);
    for (action, matrix) in object.try_iter()?.enumerate() {
        let matrix = matrix?;
        let shape: Vec<usize> = if let Ok(array) = matrix.cast::<PyUntypedArray>() {
            array.shape().to_vec()
        } else if is_sparse(&matrix)? {
            any_sparse = true;
            matrix.getattr(intern!(object.py(), "shape"))?.extract()?
        } else if any_sparse {
            let error = Error::UnsupportedType {
                array: "transitions",
                found: type_name(&matrix),
                allowed: "matrices [S, S], one an action",
            };
            return Err(to_python(&error));
        } else {
            return Ok(None);
        };
        sizes.push((action, shape));
        each.push(matrix);
    }
    let Some(num_states) = sizes.first().and_then(|(_, shape)| shape.last().copied()) else {
        return Ok(None);
    };
    let other = sizes
        .into_iter()
        .find(|(_, shape)| shape[..] != [num_states; 2]);
    match other {
        None => Ok(Some(Matrices {
            each,
            num_states,
            any_sparse,
        })),
        Some((action, found)) if any_sparse => {
            let error = Error::ShapeMismatch {
                array: "transitions",
                axes: "[S, S] for each action",
                expected: vec![num_states; 2],
                found,
            };
            Err(with_hint(
                &error,
                &format!("that is the matrix of action {action}"),
            ))
        }
        Some(_) => Ok(None),
    }
}

impl<'py> Matrices<'py> {
    /// The rows in the order (s, a): a dense array `[S, A, S]`, or compressed rows if any matrix is sparse.
    fn by_state(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import(intern!(py, "numpy"))?;
        if !self.any_sparse {
            return numpy.call_method1(intern!(py, "stack"), (self.each, 1));
        }
        let scipy = py.import("scipy.sparse")?; // it is there: a matrix is sparse
        let actions = self.each.len();
        let matrices: PyResult<Vec<_>> = self
            .each
            .iter()
            .map(|matrix| scipy.call_method1("csr_array", (matrix,)))
            .collect();
        let by_action = scipy.call_method1("vstack", (matrices?, "csr"))?;
        let states = self.num_states;
        let order: Vec<i64> = (0..states * actions)
            .map(|row| (row % actions * states + row / actions) as i64)
            .collect();
        let rows = by_action.get_item(array_out(py, order, &[states * actions])?)?;
        rows.call_method0(intern!(py, "sum_duplicates"))?;
        Ok(rows)
    }
}

/// What the transitions say of the sizes of a problem.
pub struct Sizes {
    /// None if the same at every step.
    pub horizon: Option<usize>,
    pub num_states: usize,
    /// For sparse rows, the number that was assumed, or the one that fits if it does not.
    pub num_actions: usize,
}

/// The sizes of transitions in one of the forms of [`plain_transitions`]. The number of actions cannot be read off sparse
/// rows, since (h, s, a) may stand for any number of steps.
pub fn sizes_of(object: &Bound<'_, PyAny>, assumed_actions: usize) -> PyResult<Sizes> {
    if let Ok(made) = object.cast::<Transitions>() {
        let made = made.get();
        return Ok(Sizes {
            horizon: made.horizon(),
            num_states: made.num_states(),
            num_actions: made.num_actions(),
        });
    }
    if is_sparse(object)? {
        let [rows, num_states] = sparse_shape(object)?;
        let (steps, fits) = (rows / num_states.max(1), assumed_actions.max(1));
        let fits = rows % num_states.max(1) != 0 || steps % fits == 0;
        return Ok(Sizes {
            horizon: None,
            num_states,
            num_actions: if fits { assumed_actions } else { steps },
        });
    }
    let input = Input::new("transitions", object)?;
    check_dense(&input)?;
    let sizes = input.shape();
    let last = sizes.len() - 1;
    Ok(Sizes {
        horizon: (last == 3).then(|| sizes[0]),
        num_states: sizes[last],
        num_actions: sizes[last - 1],
    })
}

/// The kernel behind any argument called `transitions` of a problem with `num_actions` actions.
pub fn kernel_in(object: &Bound<'_, PyAny>, num_actions: usize) -> PyResult<Arc<Kernel>> {
    let object = &plain_transitions(object)?;
    if let Ok(made) = object.cast::<Transitions>() {
        return Ok(Arc::clone(&made.get().kernel));
    }
    if is_sparse(object)? {
        return compressed(object, num_actions);
    }
    dense(object.py(), &Input::new("transitions", object)?)
}

/// [`kernel_in`] for a problem whose shape is known: sizes are compared before anything is copied.
pub fn kernel_of_shape(object: &Bound<'_, PyAny>, shape: Shape) -> PyResult<Arc<Kernel>> {
    let object = &plain_transitions(object)?;
    if !object.is_instance_of::<Transitions>() && !is_sparse(object)? {
        let [horizon, states, actions] = shape.sizes();
        let input = Input::new("transitions", object)?;
        let expected: &[usize] = match input.shape().len() {
            3 => &[states, actions, states],
            _ => &[horizon, states, actions, states],
        };
        if input.shape() != expected {
            check_dense(&input)?;
        }
        let input = input.with_shape(expected, AXES)?;
        return dense(object.py(), &input);
    }
    let kernel = kernel_in(object, shape.num_actions())?;
    to_py(kernel.check_shape(shape))?;
    Ok(kernel)
}

/// Refuses a dense array whose axes cannot be those of transitions.
fn check_dense(input: &Input<'_>) -> PyResult<()> {
    let sizes = input.shape();
    if !(3..=4).contains(&sizes.len()) {
        return Err(input.wrong_rank(AXES));
    }
    input.check_no_empty_axis()?;
    let last = sizes.len() - 1;
    let (states, actions, next) = (sizes[last - 2], sizes[last - 1], sizes[last]);
    if states == next {
        return Ok(());
    }
    let actions_first = actions == next;
    let rows = if actions_first {
        [next, states, next]
    } else {
        [states, actions, states]
    };
    let error = Error::ShapeMismatch {
        array: "transitions",
        axes: AXES,
        expected: [&sizes[..last - 2], &rows].concat(),
        found: sizes.to_vec(),
    };
    Err(match (actions_first, last) {
        (true, 2) => with_hint(
            &error,
            "this looks like [A, S, S]: transpose it with np.moveaxis(P, 0, 1), or pass a list of A matrices",
        ),
        (true, _) => with_hint(
            &error,
            "this looks like [H, A, S, S]: transpose it with np.moveaxis(P, 1, 2)",
        ),
        (false, _) => to_python(&error),
    })
}

fn dense(py: Python<'_>, input: &Input<'_>) -> PyResult<Arc<Kernel>> {
    check_dense(input)?;
    let (slices, states, actions) = match *input.shape() {
        [states, actions, _] => (Slices::Stationary, states, actions),
        [horizon, states, actions, _] => (Slices::PerStep(horizon), states, actions),
        _ => return Err(input.wrong_rank(AXES)),
    };
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

/// The sizes (rows, S) of a sparse matrix.
fn sparse_shape(object: &Bound<'_, PyAny>) -> PyResult<[usize; 2]> {
    let shape: Vec<usize> = object.getattr(intern!(object.py(), "shape"))?.extract()?;
    shape.try_into().map_err(|found| {
        to_python(&Error::WrongRank {
            array: "transitions",
            expected: "[rows, S]",
            found,
        })
    })
}

/// Anything with the attributes of a CSR matrix, such as SciPy's, of shape (rows, S).
fn compressed(object: &Bound<'_, PyAny>, num_actions: usize) -> PyResult<Arc<Kernel>> {
    let py = object.py();
    let [rows, num_states] = sparse_shape(object)?;
    let pairs = num_states.saturating_mul(num_actions).max(1);
    let slices = match rows / pairs {
        1 => Slices::Stationary,
        horizon => Slices::PerStep(horizon),
    };
    if rows % pairs != 0 {
        let error = Error::OutOfRange {
            place: ArrayIndex::scalar("the number of rows of the sparse transitions"),
            found: rows as f64,
            allowed: optpess_core::error::Interval::closed(pairs as f64, pairs as f64),
        };
        let hint = format!(
            "that is {num_states} states x {num_actions} actions, or as many for each step"
        );
        return Err(with_hint(&error, &hint));
    }
    let [offsets, successors, probabilities] =
        ["indptr", "indices", "data"].map(|name| object.getattr(name));
    let lists = [&offsets?, &successors?, &probabilities?];
    sparse(py, lists, num_states, num_actions, slices)
}
