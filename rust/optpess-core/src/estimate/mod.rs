//! Owns counts and plain averages of what was observed. Refuses bonuses, clipping and confidence.

mod empirical;
mod kernel;

pub(crate) use empirical::RowReader;
pub use empirical::{ChangedRow, Estimates};
pub use kernel::{EmpiricalKernel, MOST_STATES_IN_FULL, Successors};
