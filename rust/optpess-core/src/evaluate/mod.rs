//! Exact values V and occupancies q of given policies, for any signal and any kernel, stochastic or not.
//!
//! There is one backward recursion ([`Sweep`]) and one forward recursion (in `flow.rs`). `plan` maximises with the
//! same [`Sweep`]. On known models, which may be large, both have a second form that treats all signals of a pass
//! together and uses several threads ([`JointSweep`], [`MixedActions`]).

mod difference;
mod flow;
mod joint;
mod mixed_actions;
mod row_set;
mod sweep;
mod value;

pub use difference::{Expectation, value_difference};
pub use flow::{OccupancyMeasure, PolicyMixer, mix_policies, occupancy};
pub(crate) use joint::select;
pub use joint::{Heaviest, JointChoice, JointSweep, JointValues, RewardAndCosts, TakeCompact};
pub use mixed_actions::MixedActions;
pub use row_set::{Best, Extreme, Memory, RowSet, Worst};
pub use sweep::{Backup, Choice, Expected, RollingValues, Signals, Sweep, ValueStore, Wanted};
pub use value::{ClippedValues, Evaluator, Follow, PairEvaluator, Take, evaluate, state_values};
