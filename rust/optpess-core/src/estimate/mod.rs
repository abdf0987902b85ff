//! Owns counts and plain averages of what was observed. Refuses bonuses, clipping and confidence.

mod empirical;

pub use empirical::{ChangedRow, EmpiricalKernel, Estimates};
