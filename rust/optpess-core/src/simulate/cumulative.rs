//! Draws from fixed distributions, with cumulative probabilities that are computed once, and guide tables.

use crate::error::Result;
use crate::model::{ConstrainedMdp, Slices};
use crate::table::zeros;

/// Rows over up to this many states are kept in full, with a guide; longer rows keep their possible outcomes only and
/// are searched.
const MAX_GUIDED_OUTCOMES: usize = 64;
/// The number of parts of [0, 1) in a guide: a power of two, so that the part of a number is computed exactly.
const GUIDE_CELLS: usize = 64;

/// The cumulative probabilities of every row, added up in the order in which [`crate::random::draw`] would add them up at
/// every draw, so that the same numbers give the same outcomes.
#[derive(Debug, Clone)]
pub(super) struct CumulativeRows {
    /// Distance between the rows of two steps: |S| |A|, or 0 for a stationary kernel.
    stride: usize,
    rows: CumulativeStorage,
}

#[derive(Debug, Clone)]
enum CumulativeStorage {
    /// From the last possible outcome on the sums are infinite, so no number exceeds them. The guide holds, for each
    /// part of [0, 1), the outcome of its least number, where the search begins.
    Guided {
        num_outcomes: usize,
        cumulative: Vec<f64>, // [rows, outcomes]
        guide: Vec<u8>,       // [rows, GUIDE_CELLS]
    },
    /// The possible outcomes only.
    Sparse {
        offsets: Vec<usize>, // [rows + 1]
        cumulative: Vec<f64>,
        outcomes: Vec<u32>,
    },
}

impl CumulativeRows {
    /// One row: a distribution over |S| outcomes.
    pub(super) fn of_distribution(distribution: &[f64]) -> Result<Self> {
        let outcomes = || distribution.iter().copied().enumerate();
        Self::new(0, 1, distribution.len(), |_| outcomes())
    }

    /// The rows of a model's kernel that are ever drawn from.
    pub(super) fn of_kernel(model: &ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let (stride, slices) = match kernel.slices() {
            Slices::Stationary => (0, usize::from(shape.horizon() > 1)),
            Slices::PerStep(horizon) => (shape.pairs(), horizon - 1), // the last is never drawn from
        };
        let pairs = shape.pairs();
        Self::new(stride, slices * pairs, shape.num_states(), |row| {
            kernel.successors(row / pairs, row % pairs)
        })
    }

    fn new<I: Iterator<Item = (usize, f64)>>(
        stride: usize,
        num_rows: usize,
        num_outcomes: usize,
        row: impl Fn(usize) -> I,
    ) -> Result<Self> {
        let possible = |index| row(index).filter(|&(_, probability)| probability > 0.0);
        let rows = if num_outcomes <= MAX_GUIDED_OUTCOMES {
            let mut cumulative = zeros("cumulative probabilities", num_rows * num_outcomes)?;
            let mut guide = zeros("guides to cumulative probabilities", num_rows * GUIDE_CELLS)?;
            let rows = cumulative.chunks_exact_mut(num_outcomes);
            for (index, (sums, guide)) in rows.zip(guide.chunks_exact_mut(GUIDE_CELLS)).enumerate()
            {
                cumulate(possible(index), sums);
                for (part, outcome) in guide.iter_mut().enumerate() {
                    let least = part as f64 / GUIDE_CELLS as f64;
                    *outcome = sums.partition_point(|&sum| sum <= least) as u8;
                }
            }
            CumulativeStorage::Guided {
                num_outcomes,
                cumulative,
                guide,
            }
        } else {
            let mut offsets = zeros("row offsets", num_rows + 1)?;
            for index in 0..num_rows {
                offsets[index + 1] = offsets[index] + possible(index).count();
            }
            let mut cumulative = zeros("cumulative probabilities", offsets[num_rows])?;
            let mut outcomes = zeros("outcomes", offsets[num_rows])?;
            let mut entry = 0;
            for index in 0..num_rows {
                let mut sum = 0.0;
                for (outcome, probability) in possible(index) {
                    sum += probability;
                    (cumulative[entry], outcomes[entry]) = (sum, outcome as u32);
                    entry += 1;
                }
            }
            CumulativeStorage::Sparse {
                offsets,
                cumulative,
                outcomes,
            }
        };
        Ok(Self { stride, rows })
    }

    /// Draws as [`crate::random::draw`] does. Cumulative probabilities do not decrease, so the index of the first that exceeds the
    /// number is the count of those that do not. From the guide's outcome it is usually no step and rarely more than
    /// one, so the processor can predict the outcome.
    #[inline(always)]
    pub(super) fn draw(&self, step: usize, pair: usize, uniform: f64) -> usize {
        let row = step * self.stride + pair;
        match &self.rows {
            CumulativeStorage::Guided {
                num_outcomes,
                cumulative,
                guide,
            } => {
                let part = (uniform * GUIDE_CELLS as f64) as i32 as usize; // converting to 64 bits takes three times as long
                let mut outcome = usize::from(guide[row * GUIDE_CELLS + part]);
                let sums = &cumulative[row * num_outcomes..][..*num_outcomes];
                while sums[outcome] <= uniform {
                    outcome += 1;
                }
                outcome
            }
            CumulativeStorage::Sparse {
                offsets,
                cumulative,
                outcomes,
            } => {
                let (start, end) = (offsets[row], offsets[row + 1]);
                let sums = &cumulative[start..end];
                // Long rows are searched by bisection; counting a short one takes less time than a mispredicted branch.
                let inverse_cdf = if sums.len() > MAX_GUIDED_OUTCOMES {
                    sums.partition_point(|&sum| sum <= uniform)
                } else {
                    sums.iter().map(|&sum| usize::from(sum <= uniform)).sum()
                };
                outcomes[start + inverse_cdf.min(sums.len() - 1)] as usize
            }
        }
    }
}

/// Writes the cumulative probabilities of a row in full, given its possible outcomes in increasing order.
/// From the last of them on the sums are infinite, so no number exceeds them.
pub(crate) fn cumulate(possible: impl Iterator<Item = (usize, f64)>, target: &mut [f64]) {
    let (mut sum, mut next) = (0.0, 0);
    for (outcome, probability) in possible {
        target[next..outcome].fill(sum);
        sum += probability;
        next = outcome; // its own sum is written when another one follows
    }
    target[next..].fill(f64::INFINITY);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::draw;

    #[test]
    fn sums_added_up_beforehand_draw_what_scanning_draws() {
        for len in [1, 2, 3, 5, 8, 13, 64, 65, 200] {
            for zeros_every in [2, 3, 7] {
                let weight = |i: usize| {
                    f64::from(u8::from(i % zeros_every != 1)) * (1.0 + (i as f64).sin().abs())
                };
                let total: f64 = (0..len).map(weight).sum();
                let row: Vec<f64> = (0..len).map(|i| weight(i) / total).collect();
                let rows = CumulativeRows::of_distribution(&row).unwrap();
                let scanned = |uniform| draw(row.iter().copied().enumerate(), uniform);
                let below_one = 1.0 - f64::EPSILON / 2.0;
                let grid = (0..500).map(|i| f64::from(i) / 500.0).chain([below_one]);
                for uniform in grid {
                    assert_eq!(
                        rows.draw(0, 0, uniform),
                        scanned(uniform),
                        "{len} {uniform}"
                    );
                }
            }
        }
    }
}
