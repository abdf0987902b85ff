//! Counts and plain averages of observations. No bonus is added and nothing is clipped here.

mod counts;
mod empirical;
mod kernel;
mod storage;
mod tally;

pub use counts::Counts;
pub(crate) use empirical::RowListener;
pub use empirical::{Estimates, RowEstimate};
pub use kernel::{EmpiricalKernel, Successors};
pub use storage::{FIRST_LIST_WIDTH, MAX_DENSE_STATES, MAX_LISTED_SHARE, is_dense};
pub use tally::{FrequencyKernel, Tally};
