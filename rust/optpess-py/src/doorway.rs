//! Owns the way into the core: every call that computes goes through here, with the interpreter
//! released and errors converted.

use optpess_core::error::Result;
use pyo3::prelude::*;

use crate::error::to_python;

/// Runs a computation of the core without holding the interpreter.
pub fn run<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> Result<T>) -> PyResult<T> {
    py.detach(work).map_err(|error| to_python(&error))
}
