//! Mean, least and greatest of the numbers between two record points.

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// The sum, the least and the greatest of some numbers: of one replicate, or of several in lanes.
///
/// The sum is a plain one: a mean of 10^8 numbers is right to eight digits at worst, which is enough for a curve, and an
/// episode pays for one addition. Regret and violations are kept by compensated sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread<V: Number = f64> {
    sum: V,
    least: V,
    greatest: V,
}

impl<V: Number> Default for Spread<V> {
    fn default() -> Self {
        Self {
            sum: V::default(),
            least: V::all(f64::INFINITY),
            greatest: V::all(f64::NEG_INFINITY),
        }
    }
}

impl<V: Number> Spread<V> {
    /// Adds a number.
    #[inline(always)]
    pub fn add(&mut self, number: V) {
        self.sum = self.sum.plus(number);
        self.least = V::select_greater((self.least, number), number, self.least);
        self.greatest = V::select_greater((number, self.greatest), number, self.greatest);
    }

    /// The sum, the least and the greatest of one lane, from which [`Spread::from_parts`] goes on.
    #[must_use]
    pub fn parts(&self, lane: usize) -> [f64; 3] {
        [&self.sum, &self.least, &self.greatest].map(|number| number.lane(lane))
    }

    /// Spreads that go on from the parts of each lane.
    #[must_use]
    pub fn from_parts(parts: impl Fn(usize) -> [f64; 3]) -> Self {
        let [sum, least, greatest] = [0, 1, 2].map(|part| V::from_lanes(|lane| parts(lane)[part]));
        Self {
            sum,
            least,
            greatest,
        }
    }

    /// The mean of the `count` numbers of one lane, their least and their greatest.
    #[must_use]
    pub fn of_lane(&self, lane: usize, count: u64) -> [f64; 3] {
        let (least, greatest) = (self.least.lane(lane), self.greatest.lane(lane));
        let mean = self.sum.lane(lane) / count as f64;
        // Rounding can put the mean of equal numbers beside them.
        [mean.max(least).min(greatest), least, greatest]
    }
}

/// A curve of means, of least and of greatest numbers, each of the episodes since the record point before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpreadCurve {
    /// The means.
    pub mean: Vec<f64>,
    /// The least numbers.
    pub least: Vec<f64>,
    /// The greatest numbers.
    pub greatest: Vec<f64>,
}

impl SpreadCurve {
    /// Appends a mean, a least and a greatest number.
    pub fn push(&mut self, [mean, least, greatest]: [f64; 3]) {
        self.mean.push(mean);
        self.least.push(least);
        self.greatest.push(greatest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::float_cmp,
        reason = "least and greatest are numbers that were added"
    )]
    fn the_mean_lies_between_the_least_and_the_greatest_also_if_all_are_equal() {
        for number in [0.1, 0.7, 1.0 / 3.0, -0.3, 1e-300] {
            let mut spread: Spread = Spread::default();
            for count in 1..1000 {
                spread.add(number);
                assert_eq!(spread.of_lane(0, count), [number; 3]);
            }
        }
        let mut spread: Spread = Spread::default();
        for number in [0.25, -1.0, 0.5, 0.25] {
            spread.add(number);
        }
        assert_eq!(spread.of_lane(0, 4), [0.0, -1.0, 0.5]);
    }
}
