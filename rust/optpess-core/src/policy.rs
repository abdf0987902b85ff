//! Policies pi_h(a|s), whose rows are distributions over actions; action tables; and what an episode plays.

use serde::{Deserialize, Serialize};

use crate::error::{ArrayIndex, Error, Result};
use crate::fast::isa::{Job, each_row, vectorised};
use crate::shape::Shape;
use crate::sums::sum_and_signs;
use crate::table::{CompactActions, zeros};

/// How far the sum of a row of probabilities may be from 1.
pub const SUM_TOLERANCE: f64 = 1e-9;

/// Checks that `row` holds finite, non-negative numbers and returns their sum; `place` names an
/// entry of the row for the message.
#[inline]
pub fn checked_sum(row: &[f64], place: impl Fn(usize) -> ArrayIndex) -> Result<f64> {
    // One pass in the usual case: a NaN or an infinity shows in the sum, a negative entry in the
    // signs. (A negative zero goes to the second pass, which accepts it.)
    let (sum, no_sign) = sum_and_signs(row);
    if sum.is_finite() && no_sign {
        return Ok(sum);
    }
    for (entry, &found) in row.iter().enumerate() {
        if !found.is_finite() {
            return Err(Error::NotFinite {
                place: place(entry),
                found,
            });
        }
        if found < 0.0 {
            return Err(Error::OutOfRange {
                place: place(entry),
                found,
                allowed: crate::error::Interval::closed(0.0, 1.0),
            });
        }
    }
    Ok(sum) // finite entries whose sum overflows: the caller refuses the sum
}

/// Checks that `row` is a distribution.
#[inline]
pub fn check_distribution(row: &[f64], place: impl Fn(Option<usize>) -> ArrayIndex) -> Result<()> {
    let sum = checked_sum(row, |entry| place(Some(entry)))?;
    if (sum - 1.0).abs() <= SUM_TOLERANCE {
        Ok(())
    } else {
        Err(Error::NotADistribution {
            place: place(None),
            sum,
            required: "1 within 1e-9",
        })
    }
}

/// Whether every row is a distribution.
struct AllDistributions<'a> {
    rows: &'a [f64],
    num_actions: usize,
}

impl Job for AllDistributions<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let (mut healthy, mut signs) = (true, 0);
        each_row(self.rows, self.num_actions, |row| {
            let mut sum = 0.0;
            for p in row {
                sum += p;
                signs |= p.to_bits();
            }
            healthy &= (sum - 1.0).abs() <= SUM_TOLERANCE;
        });
        healthy && signs >> 63 == 0
    }
}

/// A randomised Markov policy pi_h(a|s).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "(Shape, Vec<f64>)", try_from = "(Shape, Vec<f64>)")]
pub struct MarkovPolicy {
    shape: Shape,
    data: Vec<f64>, // [H, S, A]
}

impl From<MarkovPolicy> for (Shape, Vec<f64>) {
    fn from(policy: MarkovPolicy) -> Self {
        (policy.shape, policy.data)
    }
}

/// A stored policy is checked as a given one is.
impl TryFrom<(Shape, Vec<f64>)> for MarkovPolicy {
    type Error = Error;

    fn try_from((shape, data): (Shape, Vec<f64>)) -> Result<Self> {
        Self::new("a stored policy", shape, data)
    }
}

impl MarkovPolicy {
    /// A policy from its probabilities `[H, S, A]`.
    pub fn new(name: &'static str, shape: Shape, data: Vec<f64>) -> Result<Self> {
        Self::labelled(name, &[], shape, data)
    }

    /// As [`MarkovPolicy::new`] for an element of a list of policies: messages put `prefix` before
    /// the index.
    pub fn labelled(
        name: &'static str,
        prefix: &[usize],
        shape: Shape,
        data: Vec<f64>,
    ) -> Result<Self> {
        if data.len() != shape.triples() {
            return Err(Error::ShapeMismatch {
                array: name,
                axes: "[H, S, A]",
                expected: shape.sizes().to_vec(),
                found: vec![data.len()],
            });
        }
        let num_actions = shape.num_actions();
        // The usual case in one short pass; the loop below finds the error and its index.
        let rows = &data;
        if vectorised(AllDistributions { rows, num_actions }) {
            return Ok(Self { shape, data });
        }
        for (row, probabilities) in data.chunks_exact(num_actions).enumerate() {
            check_distribution(probabilities, |entry| {
                let triple = shape.triple_index(row * num_actions + entry.unwrap_or(0));
                let kept = if entry.is_some() { 3 } else { 2 };
                ArrayIndex::new(name, &[prefix, &triple[..kept]].concat())
            })?;
        }
        Ok(Self { shape, data })
    }

    /// The deterministic policy that takes `actions[h, s]`. The caller's actions must be below |A|.
    pub fn deterministic(shape: Shape, actions: &[u32]) -> Result<Self> {
        let mut data = zeros("a policy [H, S, A]", shape.triples())?;
        for (row, &action) in data.chunks_exact_mut(shape.num_actions()).zip(actions) {
            row[action as usize] = 1.0;
        }
        Ok(Self { shape, data })
    }

    /// [`MarkovPolicy::deterministic`] for actions in the smallest type that holds them.
    pub fn taking(shape: Shape, actions: &CompactActions) -> Result<Self> {
        let mut data = zeros("a policy [H, S, A]", shape.triples())?;
        let rows = data.chunks_exact_mut(shape.num_actions());
        for (row, action) in rows.zip(actions.iter()) {
            row[action] = 1.0;
        }
        Ok(Self { shape, data })
    }

    /// The policy that takes every action with the same probability.
    pub fn uniform(shape: Shape) -> Result<Self> {
        let mut data = zeros("a policy [H, S, A]", shape.triples())?;
        data.fill(1.0 / shape.num_actions() as f64);
        Ok(Self { shape, data })
    }

    /// Makes this the deterministic policy that takes `actions[h, s]`, without allocating. The caller's actions must be
    /// below |A|.
    pub(crate) fn set_actions(&mut self, actions: &[u32]) {
        self.data.fill(0.0);
        let rows = self.data.chunks_exact_mut(self.shape.num_actions());
        for (row, &action) in rows.zip(actions) {
            row[action as usize] = 1.0;
        }
    }

    /// A policy whose rows are distributions by construction; checked in debug builds only.
    pub(crate) fn from_distributions(shape: Shape, data: Vec<f64>) -> Self {
        debug_assert!(Self::new("policy", shape, data.clone()).is_ok());
        Self { shape, data }
    }

    /// The problem's sizes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// pi_h, `[S, A]`.
    #[must_use]
    #[inline(always)]
    pub fn step(&self, step: usize) -> &[f64] {
        let pairs = self.shape.pairs();
        &self.data[step * pairs..][..pairs]
    }

    /// pi_h(.|s).
    #[must_use]
    #[inline(always)]
    pub fn row(&self, step: usize, state: usize) -> &[f64] {
        let num_actions = self.shape.num_actions();
        &self.data[(step * self.shape.num_states() + state) * num_actions..][..num_actions]
    }

    /// Whether both have the same entries. Compares eight at a time; `==` on slices of floats compares one by one.
    pub(crate) fn has_entries_of(&self, other: &Self) -> bool {
        let (first, first_rest) = self.data.as_chunks::<8>();
        let (second, second_rest) = other.data.as_chunks::<8>();
        let differs = |(a, b): (&[f64; 8], &[f64; 8])| {
            let pairs = a.iter().zip(b);
            pairs.fold(0, |bits, (x, y)| bits | (x.to_bits() ^ y.to_bits())) != 0
        };
        self.shape == other.shape
            && !first.iter().zip(second).any(differs)
            && first_rest == second_rest
    }

    /// pi_h(.|s), to be overwritten by a distribution.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, step: usize, state: usize) -> &mut [f64] {
        let num_actions = self.shape.num_actions();
        &mut self.data[(step * self.shape.num_states() + state) * num_actions..][..num_actions]
    }

    /// The action taken at each step and state, `[H, S]`, if the policy is deterministic.
    #[must_use]
    pub fn actions(&self) -> Option<Vec<u32>> {
        let rows = self.data.chunks_exact(self.shape.num_actions());
        let sure = |row: &[f64]| {
            let taken = row.iter().position(|&probability| probability > 0.0)?;
            let others = &row[taken + 1..];
            others
                .iter()
                .all(|&probability| probability <= 0.0)
                .then_some(taken as u32)
        };
        rows.map(sure).collect()
    }

    /// All probabilities, `[H, S, A]`.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// All probabilities, `[H, S, A]`, owned.
    #[must_use]
    pub fn into_data(self) -> Vec<f64> {
        self.data
    }
}

/// A deterministic policy as one action for each (step, state).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionTable<'a> {
    data: &'a [u32], // [H, stride]
    stride: usize,
}

impl<'a> ActionTable<'a> {
    /// Actions of steps that are `stride` numbers apart.
    #[inline(always)]
    pub(crate) fn new(data: &'a [u32], stride: usize) -> Self {
        Self { data, stride }
    }

    /// The action at (step, state).
    #[must_use]
    #[inline(always)]
    pub fn at(&self, step: usize, state: usize) -> usize {
        self.data[step * self.stride + state] as usize
    }

    /// The actions of a problem of this shape, `[H, S]`, without the gaps between steps.
    #[must_use]
    pub fn to_vec(&self, shape: Shape) -> Vec<u32> {
        let steps = self.data.chunks(self.stride).take(shape.horizon());
        let actions = steps.flat_map(|step| &step[..shape.num_states()]);
        actions.copied().collect()
    }
}

/// What an episode plays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Played<'a> {
    /// A policy that may draw its actions.
    Policy(&'a MarkovPolicy),
    /// One action for each (step, state).
    Actions(ActionTable<'a>),
}

/// How what is played differs from what was played in the episode before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes<'a> {
    /// It is the same.
    Nothing,
    /// It may be anything.
    Everything,
    /// It is an action table that differs at these (step, state) alone.
    These(&'a [[u32; 2]]),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::new(2, 1, 2).unwrap()
    }

    #[test]
    fn a_row_that_does_not_sum_to_one_is_named() {
        let error = MarkovPolicy::new("policy", shape(), vec![0.5, 0.5, 0.7, 0.2]).unwrap_err();
        assert!(
            error.to_string().starts_with("policy[1, 0] sums to 0.89"),
            "{error}"
        );
    }

    #[test]
    fn a_negative_probability_is_named_even_if_the_row_sums_to_one() {
        let error = MarkovPolicy::new("policy", shape(), vec![1.25, -0.25, 1.0, 0.0]).unwrap_err();
        assert!(
            error.to_string().starts_with("policy[0, 0, 1] is -0.25"),
            "{error}"
        );
    }

    #[test]
    fn a_deterministic_policy_puts_all_mass_on_its_action() {
        let policy = MarkovPolicy::deterministic(shape(), &[1, 0]).unwrap();
        assert_eq!(policy.data(), &[0.0, 1.0, 1.0, 0.0]);
    }
}
