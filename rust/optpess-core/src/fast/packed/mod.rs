//! Two signals and a kernel packed for vectors, and the recursions on them.

mod lexicographic;
mod maximise;
mod oracle;
mod problem;
mod rows;

pub(crate) use maximise::maximise;
pub(crate) use oracle::{PackedOracle, PackedOracleWork};
pub(crate) use problem::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
pub(crate) use rows::PackedRows;
