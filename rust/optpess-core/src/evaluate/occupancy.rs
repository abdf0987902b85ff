//! q of a given policy, by forward recursion, and the way back from occupancies to policies.

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::{MarkovPolicy, check_distribution};
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::vectorised::{Job, vectorised};

/// q_h(s,a): how often (s,a) is met at step h, from mu under a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct OccupancyMeasure {
    shape: Shape,
    data: Vec<f64>, // [H, S, A]
}

impl OccupancyMeasure {
    /// An occupancy from numbers `[H, S, A]` that are finite and not negative. Flow conservation is
    /// not checked: reading a policy off does not need it.
    pub fn new(name: &'static str, shape: Shape, data: Vec<f64>) -> Result<Self> {
        if data.len() != shape.triples() {
            return Err(Error::ShapeMismatch {
                array: name,
                axes: "[H, S, A]",
                expected: shape.sizes().to_vec(),
                found: vec![data.len()],
            });
        }
        let allowed = Interval::closed(0.0, f64::MAX);
        match data.iter().position(|&mass| !allowed.contains(mass)) {
            None => Ok(Self { shape, data }),
            Some(flat) => {
                let place = ArrayIndex::new(name, &shape.triple_index(flat));
                let found = data[flat];
                Err(if found.is_finite() {
                    Error::OutOfRange {
                        place,
                        found,
                        allowed,
                    }
                } else {
                    Error::NotFinite { place, found }
                })
            }
        }
    }

    /// The problem's sizes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// All masses, `[H, S, A]`.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// All masses, `[H, S, A]`, owned.
    #[must_use]
    pub fn into_data(self) -> Vec<f64> {
        self.data
    }

    /// <q, g> = sum over (h,s,a) of q_h(s,a) g_h(s,a), which is V_1(mu; g, P) of the policy behind q.
    #[must_use]
    pub fn expectation<G: StepSignal>(&self, signal: &G) -> f64 {
        let pairs = self.shape.pairs();
        let steps = self.data.chunks_exact(pairs).enumerate();
        steps
            .map(|(step, masses)| {
                let terms = masses.iter().enumerate();
                terms
                    .map(|(pair, &mass)| mass * signal.at(step, pair))
                    .sum::<f64>()
            })
            .sum()
    }

    /// pi_h(a|s) = q_h(s,a) / sum_a' q_h(s,a'), and `completion` wherever q has no mass: there the
    /// occupancy says nothing, so the caller must.
    pub fn induced_policy(&self, completion: &MarkovPolicy) -> Result<MarkovPolicy> {
        let num_actions = self.shape.num_actions();
        let mut data = zeros("a policy [H, S, A]", self.shape.triples())?;
        let sources = self
            .data
            .chunks_exact(num_actions)
            .zip(completion.data().chunks_exact(num_actions));
        for (row, (masses, otherwise)) in data.chunks_exact_mut(num_actions).zip(sources) {
            // Dividing by the largest mass first keeps the sum from overflowing.
            let largest = masses
                .iter()
                .fold(0.0_f64, |largest, &mass| largest.max(mass));
            if largest > 0.0 {
                let total: f64 = masses.iter().map(|mass| mass / largest).sum();
                for (probability, mass) in row.iter_mut().zip(masses) {
                    *probability = mass / largest / total;
                }
            } else {
                row.copy_from_slice(otherwise);
            }
        }
        Ok(MarkovPolicy::from_distributions(self.shape, data))
    }
}

/// q^pi for a policy on a kernel from mu.
///
/// Formula: q_h(s,a) = d_h(s) pi_h(a|s) with d_0 = mu and d_{h+1}(s') = sum q_h(s,a) P_h(s'|s,a).
/// Citation: \[Liu21\], Appendix A. Deviation: none; P may lose mass.
///
/// The caller has checked that kernel and mu have the policy's shape.
pub fn occupancy<K: StepKernel>(
    policy: &MarkovPolicy,
    kernel: &K,
    initial: &InitialDistribution,
) -> Result<OccupancyMeasure> {
    let shape = policy.shape();
    let mut data = zeros("an occupancy [H, S, A]", shape.triples())?;
    let arrivals = zeros("arrivals [S]", shape.num_states())?;
    vectorised(Flow {
        policy,
        kernel,
        initial,
        arrivals,
        occupancy: &mut data,
    });
    Ok(OccupancyMeasure { shape, data })
}

struct Flow<'a, K> {
    policy: &'a MarkovPolicy,
    kernel: &'a K,
    initial: &'a InitialDistribution,
    arrivals: Vec<f64>, // [S], d_h
    occupancy: &'a mut [f64],
}

impl<K: StepKernel> Job for Flow<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let shape = self.policy.shape();
        self.arrivals.copy_from_slice(self.initial.data());
        for (step, masses) in self.occupancy.chunks_exact_mut(shape.pairs()).enumerate() {
            let rows = masses.chunks_exact_mut(shape.num_actions());
            let choices = self.policy.step(step).chunks_exact(shape.num_actions());
            for ((row, choice), &mass) in rows.zip(choices).zip(&self.arrivals) {
                for (target, &probability) in row.iter_mut().zip(choice) {
                    *target = mass * probability;
                }
            }
            if step + 1 < shape.horizon() {
                self.kernel.spread_all(step, masses, &mut self.arrivals);
            }
        }
    }
}

/// The Markov policy that has the same occupancy, hence the same start value for every signal, as
/// drawing policy i with probability `weights[i]` once for the whole episode.
///
/// Formula: the policy induced by sum_i w_i q^{pi_i}; where no mixed mass arrives, the weighted
/// average of the policies. Citation: \[Liu21\], Lemma D.3 (after Altman 1999, Theorem 6.1).
/// Deviation: the lemma states equality from every state and step; only the start value holds
/// (docs/paper-notes.md).
pub fn mix_policies<K: StepKernel>(
    policies: &[MarkovPolicy],
    weights: &[f64],
    kernel: &K,
    initial: &InitialDistribution,
) -> Result<MarkovPolicy> {
    let Some(first) = policies.first() else {
        return Err(Error::NothingGiven { what: "policies" });
    };
    if weights.len() != policies.len() {
        return Err(Error::ShapeMismatch {
            array: "weights",
            axes: "[policies]",
            expected: vec![policies.len()],
            found: vec![weights.len()],
        });
    }
    check_distribution(weights, |entry| match entry {
        Some(index) => ArrayIndex::new("weights", &[index]),
        None => ArrayIndex::scalar("weights"),
    })?;
    let shape = first.shape();
    if let Some(other) = policies.iter().find(|policy| policy.shape() != shape) {
        return Err(Error::ShapeMismatch {
            array: "policies",
            axes: "[H, S, A]",
            expected: shape.sizes().to_vec(),
            found: other.shape().sizes().to_vec(),
        });
    }
    let mut mixed = zeros("an occupancy [H, S, A]", shape.triples())?;
    let mut average = zeros("a policy [H, S, A]", shape.triples())?;
    for (policy, &weight) in policies.iter().zip(weights) {
        let own = occupancy(policy, kernel, initial)?;
        for (target, mass) in mixed.iter_mut().zip(own.data()) {
            *target += weight * mass;
        }
        for (target, probability) in average.iter_mut().zip(policy.data()) {
            *target += weight * probability;
        }
    }
    let completion = MarkovPolicy::from_distributions(shape, average);
    OccupancyMeasure { shape, data: mixed }.induced_policy(&completion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_mass_arrives_the_completion_decides() {
        let shape = Shape::new(1, 2, 2).unwrap();
        let q = OccupancyMeasure::new("occupancy", shape, vec![0.25, 0.75, 0.0, 0.0]).unwrap();
        let completion = MarkovPolicy::deterministic(shape, &[0, 1]).unwrap();
        let policy = q.induced_policy(&completion).unwrap();
        assert_eq!(policy.data(), &[0.25, 0.75, 0.0, 1.0]);
    }

    #[test]
    fn masses_near_the_ends_of_the_number_range_still_give_a_distribution() {
        let shape = Shape::new(1, 1, 2).unwrap();
        let completion = MarkovPolicy::deterministic(shape, &[0]).unwrap();
        for masses in [vec![5e-324, 1e-323], vec![f64::MAX, f64::MAX]] {
            let q = OccupancyMeasure::new("occupancy", shape, masses).unwrap();
            let policy = q.induced_policy(&completion).unwrap();
            assert!((policy.data().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
