//! The pessimistic set Pi^k of Algorithm 1: which policies may be deployed.

use serde::{Deserialize, Serialize};

use crate::confidence::SafetyMargin;

/// Pi^k.
///
/// Formula: {pi0} if V^{pi0}(c underbar, P-hat) >= (tau + c0)/2, else every policy with
/// V(c underbar, P-hat) <= tau. Citation: \[Liu21\], Eq. (9). Deviation: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PessimisticSet {
    /// Only pi0.
    BaselineOnly,
    /// Every policy whose pessimistic cost is within the limit; pi0 is one of them, with slack.
    CostBounded,
}

impl PessimisticSet {
    /// The set, given the pessimistic cost of pi0. NaN, which only sums of observations that overflow can give,
    /// leaves pi0 alone in the set.
    #[must_use]
    #[inline(always)]
    pub fn assess(pessimistic_baseline_cost: f64, margin: &SafetyMargin) -> Self {
        if pessimistic_baseline_cost < margin.midpoint() {
            Self::CostBounded
        } else {
            Self::BaselineOnly
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_stays_shut_at_equality() {
        let margin = SafetyMargin::new(1.0, 0.5).unwrap();
        assert_eq!(
            PessimisticSet::assess(0.75, &margin),
            PessimisticSet::BaselineOnly
        );
        assert_eq!(
            PessimisticSet::assess(0.75_f64.next_down(), &margin),
            PessimisticSet::CostBounded
        );
    }

    #[test]
    fn a_cost_that_is_not_a_number_opens_nothing() {
        let margin = SafetyMargin::new(1.0, 0.5).unwrap();
        assert_eq!(
            PessimisticSet::assess(f64::NAN, &margin),
            PessimisticSet::BaselineOnly
        );
    }
}
