//! Owns exact evaluation: values V and occupancies q of a given policy, for any signal and any
//! kernel, stochastic or not. Refuses optimisation.

mod both;
mod clipped;
mod difference;
mod occupancy;
mod value;

pub use both::PairEvaluator;
pub use clipped::ClippedValues;
pub use difference::{Expectation, value_difference};
pub use occupancy::{OccupancyMeasure, mix_policies, occupancy};
pub use value::{Evaluator, evaluate, state_values};
