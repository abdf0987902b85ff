//! The forward recursion: occupancies of policies, and mixtures of policies as one policy.
//!
//! d_0 = mu; d_{h+1}(s') = sum over (s,a) of d_h(s) pi_h(a|s) P_h(s'|s,a).

use serde::{Deserialize, Serialize};

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::fast::isa::{Job, vectorised, with_small_constant};
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::{MarkovPolicy, check_distribution};
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};

/// N walks: distributions of the state that start from mu, each with its own transitions.
trait Walks<const N: usize> {
    /// Called once a step with d_h of each walk.
    fn arrive(&mut self, step: usize, arrivals: [&[f64]; N]);
    /// d_{h+1} of one walk, from d_h.
    fn advance(&self, walk: usize, step: usize, arrivals: &[f64], next: &mut [f64]);
}

/// d_h at this step and the next, of each walk: `[walk][this step, next step][S]`.
type Arrivals<const N: usize> = [[Vec<f64>; 2]; N];

/// One run of the recursion.
struct Flow<'a, const N: usize, W> {
    horizon: usize,
    initial: &'a InitialDistribution,
    arrivals: &'a mut Arrivals<N>,
    walks: W,
}

impl<const N: usize, W: Walks<N>> Job for Flow<'_, N, W> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        for [here, _] in self.arrivals.iter_mut() {
            here.copy_from_slice(self.initial.data());
        }
        for step in 0..self.horizon {
            let here = self.arrivals.each_ref().map(|[here, _]| &here[..]);
            self.walks.arrive(step, here);
            if step + 1 < self.horizon {
                for (walk, arrivals) in self.arrivals.iter_mut().enumerate() {
                    let [here, next] = arrivals;
                    self.walks.advance(walk, step, here, next);
                    arrivals.swap(0, 1);
                }
            }
        }
    }
}

/// q_h(s,a): the probability of (s,a) at step h, from mu under a policy.
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

    /// pi_h(a|s) = q_h(s,a) / sum_a' q_h(s,a'), and `completion` where q has no mass: there the occupancy determines no
    /// policy.
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
    let states = || zeros("arrivals [S]", shape.num_states());
    let mut data = zeros("an occupancy [H, S, A]", shape.triples())?;
    vectorised(Flow {
        horizon: shape.horizon(),
        initial,
        arrivals: &mut [[states()?, states()?]],
        walks: Occupied {
            policy,
            kernel,
            occupancy: &mut data,
        },
    });
    Ok(OccupancyMeasure { shape, data })
}

/// A policy and the occupancy that is computed for it.
struct Occupied<'a, K> {
    policy: &'a MarkovPolicy,
    kernel: &'a K,
    occupancy: &'a mut [f64], // [H, S, A]
}

impl<K: StepKernel> Walks<1> for Occupied<'_, K> {
    #[inline(always)]
    fn arrive(&mut self, step: usize, [arrivals]: [&[f64]; 1]) {
        let shape = self.policy.shape();
        let masses = &mut self.occupancy[step * shape.pairs()..][..shape.pairs()];
        let rows = masses.chunks_exact_mut(shape.num_actions());
        let choices = self.policy.step(step).chunks_exact(shape.num_actions());
        for ((row, choice), &mass) in rows.zip(choices).zip(arrivals) {
            for (target, &probability) in row.iter_mut().zip(choice) {
                *target = mass * probability;
            }
        }
    }

    #[inline(always)]
    fn advance(&self, _: usize, step: usize, _: &[f64], next: &mut [f64]) {
        let pairs = self.policy.shape().pairs();
        let masses = &self.occupancy[step * pairs..][..pairs];
        self.kernel.spread_all(step, masses, next);
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

/// The workspace for mixing two deterministic policies. Mixing allocates nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PolicyMixer {
    arrivals: Arrivals<2>,
    shares: [Vec<f64>; 2], // [policy][S], of the mass that arrives
}

impl PolicyMixer {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let states = || zeros("arrivals [S]", shape.num_states());
        Ok(Self {
            arrivals: [[states()?, states()?], [states()?, states()?]],
            shares: [states()?, states()?],
        })
    }

    /// Writes into `mixed` the policy with the occupancy (1 - w) q^first + w q^second, of two policies given by
    /// their actions `[H, S]`, each on its own kernel; `completion` is used where neither has mass.
    pub fn mix<K: StepKernel>(
        &mut self,
        ends: [(&[u32], &K); 2],
        weight_second: f64,
        initial: &InitialDistribution,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let shape = mixed.shape();
        let Self { arrivals, shares } = self;
        with_small_constant!(if K::ASKED_OFTEN, shape.num_states(), S => vectorised(Flow {
            horizon: shape.horizon(),
            initial,
            arrivals,
            walks: Mixture::<K, S> {
                shape,
                ends,
                weights: [1.0 - weight_second, weight_second],
                shares,
                completion,
                mixed,
            },
        }));
    }
}

/// Two deterministic policies, and the policy of their mixture. `S` is the number of states, or 0 if it is not known at
/// compile time.
struct Mixture<'a, K, const S: usize> {
    shape: Shape,
    ends: [(&'a [u32], &'a K); 2],
    weights: [f64; 2],
    shares: &'a mut [Vec<f64>; 2],
    completion: &'a MarkovPolicy,
    mixed: &'a mut MarkovPolicy,
}

impl<K, const S: usize> Mixture<'_, K, S> {
    #[inline(always)]
    fn num_states(&self) -> usize {
        if S > 0 { S } else { self.shape.num_states() }
    }

    /// The actions of one policy at a step.
    #[inline(always)]
    fn actions(&self, end: usize, step: usize) -> &[u32] {
        let states = self.num_states();
        &self.ends[end].0[step * states..][..states]
    }
}

impl<K: StepKernel, const S: usize> Walks<2> for Mixture<'_, K, S> {
    #[inline(always)]
    fn arrive(&mut self, step: usize, arrivals: [&[f64]; 2]) {
        let states = self.num_states();
        let ends = self.ends.map(|(end, _)| &end[step * states..][..states]);
        let [first, second] = &mut *self.shares;
        let (first, second) = (&mut first[..states], &mut second[..states]);
        let arrivals = arrivals.map(|arrivals| &arrivals[..states]);
        mixing_shares(self.weights, arrivals, [&mut *first, &mut *second]);
        for state in 0..states {
            let row = self.mixed.row_mut(step, state);
            if first[state].is_nan() {
                row.copy_from_slice(self.completion.row(step, state));
            } else {
                // In one pass: a separate call that clears a short row takes longer.
                for (action, probability) in (0..).zip(row) {
                    let [one, other] = ends.map(|end| end[state] == action);
                    *probability = if one { first[state] } else { 0.0 };
                    *probability += if other { second[state] } else { 0.0 };
                }
            }
        }
    }

    #[inline(always)]
    fn advance(&self, walk: usize, step: usize, arrivals: &[f64], next: &mut [f64]) {
        let (states, kernel) = (self.num_states(), self.ends[walk].1);
        // A policy of weight 0 can have mass anywhere; a state without mass adds nothing.
        let weight = self.weights[walk];
        let masses = arrivals[..states].iter().zip(self.actions(walk, step));
        // A few sums stay in registers; more of them are added up in memory.
        let mut few = [0.0; S];
        let sums = if S > 0 {
            &mut few[..]
        } else {
            &mut next[..states]
        };
        sums.fill(0.0);
        for (state, (&mass, &action)) in masses.enumerate() {
            if mass > 0.0 && weight > 0.0 {
                let pair = self.shape.pair(state, action as usize);
                kernel.propagate(step, pair, mass, sums);
            }
        }
        if S > 0 {
            next[..states].copy_from_slice(&few);
        }
    }
}

/// The part of the mass at each state that comes from each of two policies; NaN where there is no mass.
#[inline(always)]
fn mixing_shares(weights: [f64; 2], arrivals: [&[f64]; 2], shares: [&mut [f64]; 2]) {
    let [first, second] = shares;
    let arrived = arrivals[0].iter().zip(arrivals[1]);
    for ((first, second), (one, other)) in first.iter_mut().zip(second).zip(arrived) {
        let masses = [weights[0] * one, weights[1] * other];
        let total = masses[0] + masses[1];
        (*first, *second) = (masses[0] / total, masses[1] / total);
    }
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
