//! Compensated sums of very many small numbers.

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// A running sum with a second sum of the errors of its additions: its error does not grow with the number of terms, so
/// 10^9 regrets of 10^-3 still add up to the last digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CompensatedSum<V: Number = f64> {
    sum: V,
    correction: V,
}

impl<V: Number> CompensatedSum<V> {
    /// Adds a term.
    #[inline(always)]
    pub fn add(&mut self, term: V) {
        let minus = |a: V, b: V| a.zip(b, |a, b| a - b);
        let total = self.sum.plus(term);
        // The error of the addition, exactly (Knuth's two-sum); no branch on which of the two is larger.
        let added = minus(total, self.sum);
        let lost = minus(self.sum, minus(total, added)).plus(minus(term, added));
        self.correction = self.correction.plus(lost);
        self.sum = total;
    }

    /// Adds the terms that are positive; the other sums stay as they are.
    #[inline(always)]
    pub fn add_positive(&mut self, term: V) {
        let mut added = *self;
        added.add(term);
        let positive = (term, V::default());
        self.sum = V::select_greater(positive, added.sum, self.sum);
        self.correction = V::select_greater(positive, added.correction, self.correction);
    }

    /// The sum and the correction of one lane, from which [`CompensatedSum::from_parts`] goes on.
    #[must_use]
    pub fn parts(&self, lane: usize) -> [f64; 2] {
        [self.sum.lane(lane), self.correction.lane(lane)]
    }

    /// Sums that go on from the parts of each lane.
    #[must_use]
    pub fn from_parts(parts: impl Fn(usize) -> [f64; 2]) -> Self {
        Self {
            sum: V::from_lanes(|lane| parts(lane)[0]),
            correction: V::from_lanes(|lane| parts(lane)[1]),
        }
    }

    /// The sum so far.
    #[must_use]
    pub fn value(&self) -> V {
        self.sum.plus(self.correction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the correction makes this sum exact")]
    fn small_terms_are_not_lost_beside_a_large_one() {
        let mut sum: CompensatedSum = CompensatedSum::default();
        sum.add(1e16);
        for _ in 0..1000 {
            sum.add(1.0);
        }
        sum.add(-1e16);
        assert_eq!(sum.value(), 1000.0);
    }
}
