//! The value-difference lemma, in both of its forms.

use crate::error::Result;
use crate::evaluate::{occupancy, state_values};
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::table::StepSignal;

/// Under which of the two models the lemma takes its expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Under (g, P), with the values of (g', P').
    First,
    /// Under (g', P'), with the values of (g, P).
    Second,
}

/// V_1(mu; g', P') - V_1(mu; g, P), computed by one form of the value-difference lemma.
///
/// Formula: E_P [ sum_h g' - g + sum_s' (P' - P)(s') V_{h+1}(s'; g', P') ], or
/// E_P' [ sum_h g' - g + sum_s' (P' - P)(s') V_{h+1}(s'; g, P) ].
/// Citation: \[Liu21\], Lemma D.2 (after Dann et al. 2017, Lemma E.15). Deviation: none; both hold
/// for kernels that lose mass too.
///
/// `first` is (g, P) and `second` is (g', P'); the caller has checked their shapes.
pub fn value_difference<G: StepSignal, K: StepKernel>(
    policy: &MarkovPolicy,
    first: (&G, &K),
    second: (&G, &K),
    initial: &InitialDistribution,
    expectation: Expectation,
) -> Result<f64> {
    let (walked, valued) = match expectation {
        Expectation::First => (first, second),
        Expectation::Second => (second, first),
    };
    let shape = policy.shape();
    let visits = occupancy(policy, walked.1, initial)?;
    let values = state_values(policy, valued.0, valued.1)?;
    let mut total = 0.0;
    for (step, masses) in visits.data().chunks_exact(shape.pairs()).enumerate() {
        let next = values.step(step + 1);
        for (pair, &mass) in masses.iter().enumerate() {
            if mass > 0.0 {
                let mut change = second.0.at(step, pair) - first.0.at(step, pair);
                if step + 1 < shape.horizon() {
                    change += second.1.expectation(step, pair, next)
                        - first.1.expectation(step, pair, next);
                }
                total += mass * change;
            }
        }
    }
    Ok(total)
}
