//! The guarantees that a learner can carry.

use serde::{Deserialize, Serialize};

/// A statement that holds with the given probability, for environments that satisfy Assumptions 2.1
/// (noise) and 2.2 (a strictly safe policy) of \[Liu21\].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Guarantee {
    /// No policy deployed in any of the K episodes costs more than the limit (Theorem 3.1).
    ZeroViolation {
        /// At least 1 - delta.
        probability: f64,
    },
    /// The sum over episodes of (cost - limit) stays below a constant that does not depend on K
    /// (Theorem 4.1).
    BoundedViolation {
        /// At least 1 - delta.
        probability: f64,
    },
    /// In every episode the expected cost given the past, over the coin too, is at most the limit (docs/mixing.md). It
    /// holds if what is listed was declared truthfully.
    SafeMixtures {
        /// At least 1 - delta.
        probability: f64,
        /// The problem is the same at every step.
        stationary: bool,
        /// Mean rewards are known.
        rewards: bool,
        /// Mean costs are known.
        costs: bool,
        /// The possible successors are known.
        support: bool,
    },
}
