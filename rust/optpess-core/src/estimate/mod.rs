//! Owns counts and plain averages of what was observed. Refuses bonuses, clipping and confidence.

mod empirical;
mod kernel;

pub(crate) use empirical::RowListener;
pub use empirical::{Estimates, RowEstimate};
pub use kernel::{EmpiricalKernel, MAX_DENSE_STATES, Successors};
