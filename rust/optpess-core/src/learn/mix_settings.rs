//! The settings of OptPess-Mix, and the split of delta between its two certificates.

use crate::confidence::Observations;
use crate::knowledge::Knowledge;
use crate::learn::Exploration;

/// The part of delta that the confidence sets may spend; the bounds from own episodes spend the rest.
pub(super) const SETS_SHARE: f64 = 0.5;

/// What a user chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct MixSettings {
    /// delta.
    pub failure_probability: f64,
    /// What is known of the problem.
    pub knowledge: Knowledge,
    /// What is known of observed costs.
    pub observations: Observations,
    /// The explorer's share and sets.
    pub exploration: Exploration,
    /// A new plan is due when some count has grown by this part.
    pub replan_growth: f64,
    /// The seed of the coin.
    pub seed: u64,
}
