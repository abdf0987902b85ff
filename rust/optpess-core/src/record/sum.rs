//! Sums of very many small numbers.

/// A running sum with Neumaier's correction: its error does not grow with the number of terms, so
/// 10^9 regrets of 10^-3 still add up to the last digits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompensatedSum {
    pub(super) sum: f64,
    pub(super) correction: f64,
}

impl CompensatedSum {
    /// Adds a term.
    #[inline(always)]
    pub fn add(&mut self, term: f64) {
        let total = self.sum + term;
        self.correction += if self.sum.abs() >= term.abs() {
            (self.sum - total) + term
        } else {
            (term - total) + self.sum
        };
        self.sum = total;
    }

    /// The sum so far.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.sum + self.correction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the correction makes this sum exact")]
    fn small_terms_are_not_lost_beside_a_large_one() {
        let mut sum = CompensatedSum::default();
        sum.add(1e16);
        for _ in 0..1000 {
            sum.add(1.0);
        }
        sum.add(-1e16);
        assert_eq!(sum.value(), 1000.0);
    }
}
