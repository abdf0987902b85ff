//! Multiplicative steps on a policy (mirror ascent), with the policy stored as logarithms.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::zeros;

/// The logarithms of a policy, up to a constant a row.
///
/// If probabilities themselves were multiplied by exp(step gain) 10^6 times, their sums would drift and the smallest
/// would underflow to 0. In logarithms a step is a sum, the largest weight of a row is kept at 0, and the probabilities
/// are computed from the weights each time, so every row always sums to 1 to rounding.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MirrorAscent {
    shape: Shape,
    weights: Vec<f64>, // [H, S, A]
}

impl MirrorAscent {
    /// Starts from the uniform policy.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            weights: zeros("logarithms of a policy [H, S, A]", shape.triples())?,
        })
    }

    /// Whether stored logarithms are those of a policy of this shape.
    pub(crate) fn fits(&self, shape: Shape) -> bool {
        let is_policy = |row: &[f64]| {
            let largest = row
                .iter()
                .fold(f64::NEG_INFINITY, |most, &weight| most.max(weight));
            row.iter().all(|weight| weight.is_finite()) && (-100.0..100.0).contains(&largest)
        };
        self.shape == shape
            && self.weights.len() == shape.triples()
            && self
                .weights
                .chunks_exact(shape.num_actions())
                .all(is_policy)
    }

    /// One step: pi(a|s) becomes proportional to pi(a|s) exp(step gain(s,a)), where `gain` is a function
    /// of the flat index of (h, s, a).
    pub fn ascend(&mut self, step: f64, gain: impl Fn(usize) -> f64) {
        for (row, weight) in self.weights.iter_mut().enumerate() {
            *weight += step * gain(row);
        }
        for row in self.weights.chunks_exact_mut(self.shape.num_actions()) {
            let largest = row
                .iter()
                .fold(f64::NEG_INFINITY, |most, &weight| most.max(weight));
            for weight in row {
                *weight -= largest;
            }
        }
    }

    /// pi becomes (1 - share) pi + share uniform.
    pub fn mix_with_uniform(&mut self, share: f64) {
        let even = share / self.shape.num_actions() as f64;
        for row in self.weights.chunks_exact_mut(self.shape.num_actions()) {
            let total: f64 = row.iter().map(|weight| weight.exp()).sum();
            for weight in row {
                *weight = ((1.0 - share) * weight.exp() / total + even).ln();
            }
        }
    }

    /// Writes the policy's probabilities.
    pub fn write(&self, policy: &mut MarkovPolicy) {
        let (states, actions) = (self.shape.num_states(), self.shape.num_actions());
        for (place, weights) in self.weights.chunks_exact(actions).enumerate() {
            let row = policy.row_mut(place / states, place % states);
            let mut total = 0.0;
            for (probability, &weight) in row.iter_mut().zip(weights) {
                *probability = weight.exp();
                total += *probability;
            }
            for probability in row {
                *probability /= total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_steps_leave_distributions_that_can_still_turn_around() {
        let shape = Shape::new(1, 1, 3).unwrap();
        let mut ascent = MirrorAscent::new(shape).unwrap();
        let mut policy = MarkovPolicy::uniform(shape).unwrap();
        for _ in 0..1_000_000 {
            ascent.ascend(0.01, |action| [1.0, 0.3, 0.0][action]);
        }
        ascent.write(&mut policy);
        MarkovPolicy::new("policy", shape, policy.data().to_vec()).unwrap();
        assert!((policy.data()[0] - 1.0).abs() < 1e-12);
        // A policy whose small probabilities had become 0 could never raise them again.
        for _ in 0..1_100_000 {
            ascent.ascend(0.01, |action| [0.0, 0.0, 1.0][action]);
        }
        ascent.write(&mut policy);
        assert!((policy.data()[2] - 1.0).abs() < 1e-12, "{policy:?}");
    }

    #[test]
    fn every_policy_on_the_way_through_a_million_steps_is_a_distribution() {
        let shape = Shape::new(1, 2, 3).unwrap();
        for share in [0.0, 1e-6] {
            let mut ascent = MirrorAscent::new(shape).unwrap();
            let mut policy = MarkovPolicy::uniform(shape).unwrap();
            for step in 0_u32..1_000_000 {
                if share > 0.0 {
                    ascent.mix_with_uniform(share);
                }
                // Gains that have one sign for long and then the other, some of them large.
                let swing = (f64::from(step) * 1e-4).sin() * if step % 7 == 0 { 40.0 } else { 1.0 };
                ascent.ascend(0.05, |row| swing * (row as f64 - 2.5));
                if step % 500 == 0 {
                    ascent.write(&mut policy);
                    let rows = policy.data().chunks_exact(3);
                    for row in rows {
                        assert!(
                            (row.iter().sum::<f64>() - 1.0).abs() < 1e-15 * 4.0,
                            "{row:?}"
                        );
                        assert!(row.iter().all(|&p| p >= 0.0), "{row:?} at {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn mixing_bounds_every_probability_from_below() {
        let shape = Shape::new(1, 1, 2).unwrap();
        let mut ascent = MirrorAscent::new(shape).unwrap();
        let mut policy = MarkovPolicy::uniform(shape).unwrap();
        ascent.ascend(1.0, |action| [0.0, 1e6][action]);
        ascent.mix_with_uniform(0.1);
        ascent.write(&mut policy);
        assert!((policy.data()[0] - 0.05).abs() < 1e-15, "{policy:?}");
    }
}
