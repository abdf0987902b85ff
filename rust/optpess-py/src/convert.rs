//! Owns the way of arrays across the border: element type, number of axes, contiguity. What the
//! numbers mean is checked by the core.
//!
//! Arrays are copied in while the interpreter is held, so no other Python thread can change them
//! under the core's hands, and the caller's arrays are never written.

use numpy::{
    Element, PyArray, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use optpess_core::error::{Error, Interval, Place, Result};
use optpess_core::shape::Shape;
use pyo3::intern;
use pyo3::prelude::*;

use crate::error::to_python;

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
    /// Takes an array, or anything NumPy makes an array of.
    pub fn new(name: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let array = match object.cast::<PyUntypedArray>() {
            Ok(array) => array.clone(),
            Err(_) => as_array(name, object)?,
        };
        // A masked array would lose its mask on the way and be misread.
        let kind = array.dtype().kind();
        if object.hasattr(intern!(py, "mask"))? || !b"fiub".contains(&kind) {
            return Err(unsupported(name, object, &array));
        }
        let shape = array.shape().to_vec();
        Ok(Self { name, array, shape })
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

    /// The refusal of this number of axes.
    pub fn wrong_rank(&self, axes: &'static str) -> PyErr {
        to_python(&Error::WrongRank {
            array: self.name,
            expected: axes,
            found: self.shape.clone(),
        })
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

    /// A copy of the elements as 64-bit floats in C order.
    pub fn floats(&self) -> PyResult<Vec<f64>> {
        if let Ok(array) = self.array.cast::<PyArrayDyn<f64>>() {
            return Ok(copied(array));
        }
        let dtype = self.array.dtype();
        if dtype.kind() == b'f' && dtype.itemsize() > 8 {
            return Err(unsupported(self.name, self.array.as_any(), &self.array));
        }
        let converted = copied::<f64>(&self.as_type("float64")?);
        if b"iu".contains(&dtype.kind()) {
            self.check_exact(&converted)?;
        }
        Ok(converted)
    }

    /// A copy of the elements as 64-bit integers; floats are refused.
    pub fn integers(&self) -> PyResult<Vec<i64>> {
        if let Ok(array) = self.array.cast::<PyArrayDyn<i64>>() {
            return Ok(copied(array));
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
        Ok(copied::<i64>(&self.as_type("int64")?))
    }

    fn as_type<T: Element>(&self, name: &str) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        let converted = self
            .array
            .call_method1(intern!(self.array.py(), "astype"), (name,))?;
        Ok(converted.cast_into::<PyArrayDyn<T>>()?)
    }

    /// Integers beyond 2^53 have no exact 64-bit float.
    fn check_exact(&self, converted: &[f64]) -> PyResult<()> {
        let allowed = Interval::closed(-9_007_199_254_740_992.0, 9_007_199_254_740_992.0);
        match converted.iter().position(|&value| !allowed.contains(value)) {
            None => Ok(()),
            Some(flat) => Err(to_python(&Error::OutOfRange {
                place: Place::new(self.name, &unravelled(&self.shape, flat)),
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

fn copied<T: Element + Copy>(array: &Bound<'_, PyArrayDyn<T>>) -> Vec<T> {
    let view = array.readonly();
    match view.as_slice() {
        Ok(contiguous) => contiguous.to_vec(),
        Err(_) => view.as_array().iter().copied().collect(),
    }
}

fn as_array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = object.py().import(intern!(object.py(), "numpy"))?;
    let made = numpy.call_method1(intern!(object.py(), "asarray"), (object,));
    let array = made
        .ok()
        .and_then(|made| made.cast_into::<PyUntypedArray>().ok());
    array.ok_or_else(|| {
        to_python(&Error::UnsupportedType {
            array: name,
            found: type_name(object),
            allowed: FLOATS,
        })
    })
}

fn unsupported(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    array: &Bound<'_, PyUntypedArray>,
) -> PyErr {
    to_python(&Error::UnsupportedType {
        array: name,
        found: format!("{} ({})", array.dtype(), type_name(object)),
        allowed: FLOATS,
    })
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
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
    core(Shape::new(horizon, num_states, num_actions))
}

/// A core result as a Python one, for cheap calls made with the interpreter held.
pub fn core<T>(result: Result<T>) -> PyResult<T> {
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
