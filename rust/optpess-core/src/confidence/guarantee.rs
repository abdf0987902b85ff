//! The guarantees that a learner can carry.

use serde::{Deserialize, Serialize};

use crate::confidence::ConfidenceRule;

/// A statement that holds with the given probability, for environments that satisfy Assumptions 2.1
/// (noise) and 2.2 (a strictly safe policy) of \[Liu21\].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Guarantee {
    /// No policy deployed in any of the K episodes costs more than the limit (Theorem 3.1).
    ZeroViolation {
        /// At least 1 - delta.
        probability: f64,
        /// Whether it also rests on observed rewards and costs in \[0, 1\], which the rule Sharp assumes.
        bounded_observations: bool,
    },
    /// The sum over episodes of (cost - limit) stays below a constant that does not depend on K
    /// (Theorem 4.1). The constant contains C'' (H - tau), the most that C'' episodes can add up to: of a run with
    /// K < C'' the theorem says nothing, and every episode may exceed the limit.
    BoundedViolation {
        /// At least 1 - delta.
        probability: f64,
        /// C'': until this episode the limit may be exceeded; None beyond 2^62.
        tightening_horizon: Option<u64>,
        /// K.
        num_episodes: u64,
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

impl Guarantee {
    /// No violation, under a rule that keeps it.
    pub(crate) fn zero_violation(probability: f64, rule: ConfidenceRule) -> Self {
        Self::ZeroViolation {
            probability,
            bounded_observations: rule == ConfidenceRule::Sharp,
        }
    }

    /// K / C'' of a bounded violation, which says something from 1 on; None for another guarantee, and if C'' is beyond
    /// 2^62.
    #[must_use]
    pub fn episodes_over_horizon(&self) -> Option<f64> {
        let Self::BoundedViolation {
            tightening_horizon: Some(horizon),
            num_episodes,
            ..
        } = self
        else {
            return None;
        };
        Some(*num_episodes as f64 / *horizon as f64)
    }
}
