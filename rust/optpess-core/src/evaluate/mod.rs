//! Exact values V and occupancies q of given policies, for any signal and any kernel, stochastic or not.
//!
//! There is one backward recursion ([`Sweep`]) and one forward recursion (in `flow.rs`). `plan` maximises with the
//! same [`Sweep`].

mod difference;
mod flow;
mod row_set;
mod sweep;
mod value;

pub use difference::{Expectation, value_difference};
pub use flow::{OccupancyMeasure, PolicyMixer, mix_policies, occupancy};
pub use row_set::{Best, Extreme, Memory, RowSet, Worst};
pub use sweep::{Backup, Choice, Expected, RollingValues, Signals, Sweep, ValueStore, Wanted};
pub use value::{ClippedValues, Evaluator, Follow, PairEvaluator, Take, evaluate, state_values};
