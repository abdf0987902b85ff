//! Conversion of arrays: element type, number of axes, contiguity. The core checks what the numbers mean.
//!
//! Arrays are copied in while the interpreter is held, so no other Python thread can change them during the
//! computation, and the caller's arrays are never written.

use numpy::{
    Element, PyArray, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use optpess_core::error::{ArrayIndex, Error, Interval, Result};
use optpess_core::shape::{MAX_TRIPLES, Shape};
use pyo3::exceptions::{PyException, PyMemoryError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::error::{to_python, with_hint};

const FLOATS: &str = "float64, float32, float16, integers and booleans";
const INTEGERS: &str = "integers";

/// An input array whose shape is known and whose elements have not been copied yet, so that a wrong
/// shape is refused before anything of that shape is allocated.
pub struct Input<'py> {
    name: &'static str,
    array: Bound<'py, PyUntypedArray>,
    shape: Vec<usize>,
}

impl<'py> Input<'py> {
    /// Takes an array, or an object that NumPy converts to one.
    pub fn new(name: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = match object.cast::<PyUntypedArray>() {
            Ok(array) => array.clone(),
            Err(_) => as_array(name, object)?,
        };
        let kind = array.dtype().kind();
        if is_masked(object)? || !b"fiub".contains(&kind) {
            return Err(unsupported(name, object, &array));
        }
        let shape = array.shape().to_vec();
        Ok(Self { name, array, shape })
    }

    /// The array itself.
    pub fn into_array(self) -> Bound<'py, PyUntypedArray> {
        self.array
    }

    /// The array's shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Refuses any other number of axes.
    pub fn with_rank(self, rank: usize, axes: &'static str) -> PyResult<Self> {
        if self.shape.len() == rank {
            Ok(self)
        } else {
            Err(self.wrong_rank(axes))
        }
    }

    /// The error for this number of axes.
    pub fn wrong_rank(&self, axes: &'static str) -> PyErr {
        to_python(&Error::WrongRank {
            array: self.name,
            expected: axes,
            found: self.shape.clone(),
        })
    }

    /// [`Self::wrong_rank`] with a hint at what the caller may have meant.
    pub fn wrong_rank_hint(&self, axes: &'static str, hint: &str) -> PyErr {
        let error = Error::WrongRank {
            array: self.name,
            expected: axes,
            found: self.shape.clone(),
        };
        with_hint(&error, hint)
    }

    /// Refuses an array without the axes `[H, S, A]`. Whole numbers `[H, S]` or `[S]` are likely to be actions.
    pub fn with_policy_axes(self) -> PyResult<Self> {
        match self.shape.len() {
            3 => Ok(self),
            1 | 2 if self.is_whole() => Err(self.wrong_rank_hint(
                "[H, S, A]",
                "if it holds the numbers of actions, op.policy_from_actions makes it a policy",
            )),
            _ => Err(self.wrong_rank("[H, S, A]")),
        }
    }

    /// Whether the elements are integers.
    fn is_whole(&self) -> bool {
        b"iu".contains(&self.array.dtype().kind())
    }

    /// The one whole number that the array holds, if it has no axes.
    pub fn whole_number(&self) -> PyResult<Option<i64>> {
        if !self.shape.is_empty() || !self.is_whole() {
            return Ok(None);
        }
        Ok(self.integers()?.first().copied())
    }

    /// Refuses any other shape.
    pub fn with_shape(self, expected: &[usize], axes: &'static str) -> PyResult<Self> {
        let input = self.with_rank(expected.len(), axes)?;
        if input.shape == expected {
            return Ok(input);
        }
        input.check_no_empty_axis()?;
        Err(to_python(&Error::ShapeMismatch {
            array: input.name,
            axes,
            expected: expected.to_vec(),
            found: input.shape,
        }))
    }

    /// Refuses an axis without entries.
    pub fn check_no_empty_axis(&self) -> PyResult<()> {
        match self.shape.iter().position(|&size| size == 0) {
            None => Ok(()),
            Some(axis) => Err(to_python(&Error::EmptyAxis {
                array: self.name,
                axis,
                found: self.shape.clone(),
            })),
        }
    }

    /// The first entry along the first axis, if the array is a view that repeats it, such as the result of NumPy's
    /// `broadcast_to` or the rewards of a stationary model.
    pub fn repeated_entry(&self) -> PyResult<Option<Self>> {
        if self.array.strides().first() != Some(&0) || self.shape.first() == Some(&0) {
            return Ok(None);
        }
        Self::new(self.name, &self.array.get_item(0)?).map(Some)
    }

    /// A copy of the elements as 64-bit floats in C order.
    pub fn floats(&self) -> PyResult<Vec<f64>> {
        if let Some(array) = self.as_is::<f64>() {
            return self.copied(array);
        }
        let dtype = self.array.dtype();
        if dtype.kind() == b'f' && dtype.itemsize() > 8 {
            return Err(unsupported(self.name, self.array.as_any(), &self.array));
        }
        let converted = self.copied::<f64>(&self.as_type("float64")?)?;
        if b"iu".contains(&dtype.kind()) {
            self.check_exact(&converted)?;
        }
        Ok(converted)
    }

    /// A copy of the elements as 64-bit integers; floats are refused.
    pub fn integers(&self) -> PyResult<Vec<i64>> {
        if let Some(array) = self.as_is::<i64>() {
            return self.copied(array);
        }
        if self.shape.contains(&0) {
            return Ok(Vec::new()); // NumPy makes floats of an empty list
        }
        let dtype = self.array.dtype();
        let fits = dtype.kind() == b'i' || (dtype.kind() == b'u' && dtype.itemsize() < 8);
        if !fits {
            return Err(to_python(&Error::UnsupportedType {
                array: self.name,
                found: dtype.to_string(),
                allowed: INTEGERS,
            }));
        }
        self.copied::<i64>(&self.as_type("int64")?)
    }

    /// The array itself, if its elements can be read without a conversion.
    fn as_is<T: Element>(&self) -> Option<&Bound<'py, PyArrayDyn<T>>> {
        let array = self.array.cast::<PyArrayDyn<T>>().ok();
        array.filter(|array| array.is_aligned())
    }

    /// The elements in C order. A view that repeats its elements can be larger than the memory: that is refused. A
    /// plain
    /// `collect` would end the process.
    fn copied<T: Element + Copy>(&self, array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<Vec<T>> {
        let mut data = Vec::new();
        if data.try_reserve_exact(array.len()).is_err() {
            return Err(self.too_large());
        }
        let view = array.readonly();
        match view.as_slice() {
            // There is also a slice for Fortran order, in which the elements are transposed.
            Ok(elements) if array.is_c_contiguous() => data.extend_from_slice(elements),
            _ => data.extend(view.as_array().iter().copied()),
        }
        Ok(data)
    }

    fn too_large(&self) -> PyErr {
        to_python(&Error::TooLarge {
            what: self.name,
            sizes: self.shape.clone(),
            allowed: MAX_TRIPLES,
        })
    }

    fn as_type<T: Element>(&self, name: &str) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        let py = self.array.py();
        let converted = self.array.call_method1(intern!(py, "astype"), (name,));
        let converted = converted.map_err(|error| {
            if error.is_instance_of::<PyMemoryError>(py) {
                self.too_large()
            } else {
                error
            }
        })?;
        Ok(converted.cast_into::<PyArrayDyn<T>>()?)
    }

    /// From 2^53 on, an integer may have been rounded on its way to a 64-bit float.
    fn check_exact(&self, converted: &[f64]) -> PyResult<()> {
        let allowed = Interval::closed(-9_007_199_254_740_991.0, 9_007_199_254_740_991.0);
        match converted.iter().position(|&value| !allowed.contains(value)) {
            None => Ok(()),
            Some(flat) => Err(to_python(&Error::OutOfRange {
                place: ArrayIndex::new(self.name, &unravelled(&self.shape, flat)),
                found: converted[flat],
                allowed,
            })),
        }
    }
}

fn unravelled(shape: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let here = flat % size;
            flat /= size;
            here
        })
        .collect();
    index.reverse();
    index
}

/// Whether an object is a masked array, which would lose its mask in the conversion.
fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_exact_instance_of::<PyUntypedArray>() {
        return Ok(false); // the usual case; looking up a missing attribute costs as much as a small call
    }
    let py = object.py();
    // Few objects have the attribute, so the class is rarely looked up.
    if !object.hasattr(intern!(py, "mask"))? {
        return Ok(false);
    }
    let module = py.import(intern!(py, "numpy.ma"))?;
    object.is_instance(&module.getattr(intern!(py, "MaskedArray"))?)
}

/// A size or a count: a whole number of at least 1.
pub fn count_in(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<usize> {
    count_up_to(name, object, MAX_TRIPLES as f64)
}

/// The same with another largest value.
pub fn count_up_to(name: &'static str, object: &Bound<'_, PyAny>, largest: f64) -> PyResult<usize> {
    match object.extract() {
        Ok(count) if count > 0 => return Ok(count),
        _ => {}
    }
    let error = match object.call_method0(intern!(object.py(), "__index__")) {
        Ok(integer) => Error::OutOfRange {
            place: ArrayIndex::scalar(name),
            found: integer.extract().unwrap_or(f64::INFINITY),
            allowed: Interval::closed(1.0, largest),
        },
        Err(_) => Error::UnsupportedType {
            array: name,
            found: type_name(object),
            allowed: INTEGERS,
        },
    };
    Err(to_python(&error))
}

fn as_array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = object.py().import(intern!(object.py(), "numpy"))?;
    let made = numpy.call_method1(intern!(object.py(), "asarray"), (object,));
    let made = match made {
        Err(error) if comes_through(object.py(), &error) => return Err(error),
        made => made,
    };
    let ragged = matches!(&made, Err(error) if error.is_instance_of::<PyValueError>(object.py()));
    let array = made
        .ok()
        .and_then(|made| made.cast_into::<PyUntypedArray>().ok());
    array.ok_or_else(|| {
        let error = Error::UnsupportedType {
            array: name,
            found: type_name(object),
            allowed: FLOATS,
        };
        if ragged {
            with_hint(&error, "its parts have different shapes")
        } else {
            to_python(&error)
        }
    })
}

/// Whether an error of an argument's own conversion says nothing about the argument: an interrupt, an exit, or no memory.
fn comes_through(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py)
}

fn unsupported(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    array: &Bound<'_, PyUntypedArray>,
) -> PyErr {
    let error = Error::UnsupportedType {
        array: name,
        found: format!("{} ({})", array.dtype(), type_name(object)),
        allowed: FLOATS,
    };
    if array.dtype().kind() == b'O' && !array.shape().is_empty() {
        with_hint(
            &error,
            "if the objects are numbers, np.asarray(..., dtype=float) converts them",
        )
    } else {
        to_python(&error)
    }
}

/// The name of an object's class, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    match object.get_type().name() {
        Ok(name) => name.to_string(),
        Err(_) => "an unnamed type".to_owned(),
    }
}

/// The sizes of an `[H, S, A]` input.
pub fn shape_of(input: &Input<'_>) -> PyResult<Shape> {
    let [horizon, num_states, num_actions] = input.shape[..] else {
        return Err(input.wrong_rank("[H, S, A]"));
    };
    input.check_no_empty_axis()?;
    to_py(Shape::new(horizon, num_states, num_actions))
}

/// A core result as a Python one, for cheap calls made with the interpreter held.
pub fn to_py<T>(result: Result<T>) -> PyResult<T> {
    result.map_err(|error| to_python(&error))
}

/// A new array of this shape that owns `data`.
pub fn array_out<'py, T: Element>(
    py: Python<'py>,
    data: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    PyArray::from_vec(py, data).reshape(shape.to_vec())
}
