//! Owns exact evaluation: values V and occupancies q of a given policy, for any signal and any
//! kernel, stochastic or not. Refuses optimisation.

mod board;
mod both;
mod clipped;
mod difference;
mod followed;
mod occupancy;
mod value;

pub(crate) use board::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
pub use both::PairEvaluator;
pub use clipped::ClippedValues;
pub use difference::{Expectation, value_difference};
pub(crate) use followed::PolicyChain;
pub use occupancy::{OccupancyMeasure, mix_policies, occupancy};
pub use value::{Evaluator, evaluate, state_values};
