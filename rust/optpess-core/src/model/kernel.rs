//! Owns transition kernels P_h(s'|s,a): dense or sparse, stored for each step or once, with rows
//! that sum to one ([`TransitionKernel`]) or to at most one ([`Kernel`]). Refuses to normalise.
//!
//! The slice of the last step, h = H-1, is never used by any value: an episode ends there. It is
//! stored as given and never looked at, so it may hold anything.

use std::sync::Arc;

use crate::error::{Error, Place, Result};
use crate::policy::{SUM_TOLERANCE, checked_sum};
use crate::shape::Shape;
use crate::table::zeros;
use crate::vectorised::dot;

/// The two operations that everything exact is made of: an expectation over the next state, and
/// its transpose.
pub trait StepKernel {
    /// sum over s' of P_h(s'|s,a) v(s').
    fn expect(&self, step: usize, pair: usize, values: &[f64]) -> f64;
    /// next(s') += mass P_h(s'|s,a), for every s'.
    fn spread(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]);
}

/// Whether a kernel is stored for each step or once for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slices {
    /// One slice, used at every step of any horizon.
    Stationary,
    /// One slice a step; the last is ignored.
    PerStep(usize),
}

/// Probabilities of all rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    /// `[rows, S]`, row after row.
    Dense(Vec<f64>),
    /// Compressed rows.
    Sparse(SparseRows),
}

/// Rows that name their successors: row i has the entries `offsets[i]..offsets[i + 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    offsets: Vec<usize>,     // [rows + 1]
    successors: Vec<u32>,    // [entries], strictly increasing within a row, below |S|
    probabilities: Vec<f64>, // [entries]
}

impl SparseRows {
    /// Where each row starts, `[rows + 1]`.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The successor states of all rows.
    #[must_use]
    pub fn successors(&self) -> &[u32] {
        &self.successors
    }

    /// The probabilities of all rows.
    #[must_use]
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    #[inline(always)]
    fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let entries = self.offsets[row]..self.offsets[row + 1];
        (
            &self.successors[entries.clone()],
            &self.probabilities[entries],
        )
    }
}

/// A kernel each of whose rows sums to at most one: mass may leak, as it does from an empirical
/// kernel at pairs never visited.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    num_states: usize,
    num_actions: usize,
    slices: Slices,
    rows: Rows,
}

impl Kernel {
    /// A dense kernel from `[H, S, A, S]` (per step) or `[S, A, S]` (stationary) probabilities.
    pub fn dense(
        num_states: usize,
        num_actions: usize,
        slices: Slices,
        data: Vec<f64>,
    ) -> Result<Self> {
        let kernel = Self::unchecked(num_states, num_actions, slices, Rows::Dense(data))?;
        kernel.check_rows()?;
        Ok(kernel)
    }

    /// A sparse kernel from compressed rows over (h,s,a) or, if stationary, (s,a).
    pub fn sparse(
        num_states: usize,
        num_actions: usize,
        slices: Slices,
        offsets: &[i64],
        successors: &[i64],
        probabilities: Vec<f64>,
    ) -> Result<Self> {
        let num_rows = count_rows(num_states, num_actions, slices)?;
        let rows = compressed_rows(num_states, num_rows, offsets, successors, probabilities)?;
        let kernel = Self::unchecked(num_states, num_actions, slices, Rows::Sparse(rows))?;
        kernel.check_rows()?;
        Ok(kernel)
    }

    fn unchecked(
        num_states: usize,
        num_actions: usize,
        slices: Slices,
        rows: Rows,
    ) -> Result<Self> {
        let num_rows = count_rows(num_states, num_actions, slices)?;
        if let Rows::Dense(data) = &rows {
            let expected = num_rows.checked_mul(num_states);
            if expected != Some(data.len()) {
                return Err(Error::ShapeMismatch {
                    array: "transitions",
                    axes: "[H, S, A, S]",
                    expected: vec![num_rows, num_states],
                    found: vec![data.len()],
                });
            }
        }
        Ok(Self {
            num_states,
            num_actions,
            slices,
            rows,
        })
    }

    /// |S|.
    #[must_use]
    pub fn num_states(&self) -> usize {
        self.num_states
    }

    /// |A|.
    #[must_use]
    pub fn num_actions(&self) -> usize {
        self.num_actions
    }

    /// Whether the kernel is stored for each step or once.
    #[must_use]
    pub fn slices(&self) -> Slices {
        self.slices
    }

    /// The stored rows.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Whether the kernel can be used in a problem of this shape; a stationary one has any horizon.
    pub fn check_shape(&self, shape: Shape) -> Result<()> {
        let horizon = match self.slices {
            Slices::Stationary => shape.horizon(),
            Slices::PerStep(horizon) => horizon,
        };
        let found = [horizon, self.num_states, self.num_actions];
        if found == shape.sizes() {
            return Ok(());
        }
        Err(Error::ShapeMismatch {
            array: "transitions",
            axes: "[H, S, A, S]",
            expected: [&shape.sizes()[..], &[shape.num_states()]].concat(),
            found: [&found[..], &[self.num_states]].concat(),
        })
    }

    /// P_h(.|s,a) as pairs (successor, probability); entries that are zero may be left out.
    #[inline]
    pub fn successors(&self, step: usize, pair: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let row = self.row_index(step, pair);
        let (dense, (states, probabilities)) = match &self.rows {
            Rows::Dense(data) => (
                &data[row * self.num_states..][..self.num_states],
                (&[][..], &[][..]),
            ),
            Rows::Sparse(rows) => (&[][..], rows.row(row)),
        };
        let sparse = states.iter().map(|&state| state as usize);
        dense
            .iter()
            .copied()
            .enumerate()
            .chain(sparse.zip(probabilities.iter().copied()))
    }

    /// The probabilities as dense rows, `[H, S, A, S]` or `[S, A, S]`.
    pub fn to_dense(&self) -> Result<Vec<f64>> {
        match &self.rows {
            Rows::Dense(data) => Ok(data.clone()),
            Rows::Sparse(rows) => {
                let num_rows = rows.offsets.len() - 1;
                let entries = num_rows.saturating_mul(self.num_states);
                let mut data = zeros("dense transitions", entries)?;
                for (row, target) in data.chunks_exact_mut(self.num_states).enumerate() {
                    let (states, probabilities) = rows.row(row);
                    for (&state, &probability) in states.iter().zip(probabilities) {
                        target[state as usize] = probability;
                    }
                }
                Ok(data)
            }
        }
    }

    #[inline(always)]
    fn row_index(&self, step: usize, pair: usize) -> usize {
        match self.slices {
            Slices::Stationary => pair,
            Slices::PerStep(_) => step * self.num_states * self.num_actions + pair,
        }
    }

    /// The caller's index of a row: (h, s, a), or (s, a) if stationary.
    fn row_place(&self, row: usize) -> Vec<usize> {
        let pairs = self.num_states * self.num_actions;
        let pair = [row % pairs / self.num_actions, row % self.num_actions];
        match self.slices {
            Slices::Stationary => pair.to_vec(),
            Slices::PerStep(_) => vec![row / pairs, pair[0], pair[1]],
        }
    }

    /// How many rows are ever used: all but those of the last step.
    fn used_rows(&self) -> usize {
        let pairs = self.num_states * self.num_actions;
        match self.slices {
            Slices::Stationary => pairs,
            Slices::PerStep(horizon) => (horizon - 1) * pairs,
        }
    }

    fn row_sum(&self, row: usize) -> Result<f64> {
        match &self.rows {
            Rows::Dense(data) => {
                checked_sum(&data[row * self.num_states..][..self.num_states], |entry| {
                    Place::new("transitions", &[self.row_place(row), vec![entry]].concat())
                })
            }
            Rows::Sparse(rows) => {
                let (states, probabilities) = rows.row(row);
                checked_sum(probabilities, |entry| {
                    let state = states[entry] as usize;
                    Place::new("transitions", &[self.row_place(row), vec![state]].concat())
                })
            }
        }
    }

    fn check_rows(&self) -> Result<()> {
        for row in 0..self.used_rows() {
            let sum = self.row_sum(row)?;
            if sum > 1.0 + SUM_TOLERANCE {
                return Err(Error::NotADistribution {
                    place: Place::new("transitions", &self.row_place(row)),
                    sum,
                    required: "at most 1 within 1e-9",
                });
            }
        }
        Ok(())
    }
}

/// The number of rows of a kernel; refuses empty axes and products that overflow.
fn count_rows(num_states: usize, num_actions: usize, slices: Slices) -> Result<usize> {
    let horizon = match slices {
        Slices::Stationary => 1,
        Slices::PerStep(horizon) => horizon,
    };
    Ok(Shape::new(horizon, num_states, num_actions)?.triples())
}

fn compressed_rows(
    num_states: usize,
    num_rows: usize,
    offsets: &[i64],
    successors: &[i64],
    probabilities: Vec<f64>,
) -> Result<SparseRows> {
    let expected_lengths = [
        ("transition offsets", num_rows + 1, offsets.len()),
        (
            "transition probabilities",
            successors.len(),
            probabilities.len(),
        ),
    ];
    for (array, expected, found) in expected_lengths {
        if expected != found {
            return Err(Error::ShapeMismatch {
                array,
                axes: "[rows + 1] for the offsets, [entries] for the probabilities",
                expected: vec![expected],
                found: vec![found],
            });
        }
    }
    let entries = successors.len();
    let mut previous = 0_i64;
    for (position, &offset) in offsets.iter().enumerate() {
        let allowed = match position {
            0 => offset == 0,
            last if last == num_rows => usize::try_from(offset) == Ok(entries),
            _ => offset >= previous && usize::try_from(offset).is_ok_and(|value| value <= entries),
        };
        if !allowed || offset < previous {
            return Err(Error::MalformedOffsets {
                place: Place::new("transition offsets", &[position]),
                found: offset,
                entries,
            });
        }
        previous = offset;
    }
    let offsets: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
    let states = u32::try_from(num_states).unwrap_or(u32::MAX);
    for row in offsets.windows(2) {
        for position in row[0]..row[1] {
            let found = successors[position];
            let place = || Place::new("transition successors", &[position]);
            if found < 0 || found >= i64::from(states) {
                return Err(Error::SuccessorOutOfRange {
                    place: place(),
                    found,
                    num_states,
                });
            }
            if position > row[0] && successors[position - 1] >= found {
                return Err(Error::SuccessorsNotIncreasing {
                    place: place(),
                    previous: successors[position - 1],
                    found,
                });
            }
        }
    }
    Ok(SparseRows {
        offsets,
        successors: successors.iter().map(|&state| state as u32).collect(),
        probabilities,
    })
}

impl StepKernel for Kernel {
    #[inline(always)]
    fn expect(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        let row = self.row_index(step, pair);
        match &self.rows {
            Rows::Dense(data) => dot(&data[row * self.num_states..][..self.num_states], values),
            Rows::Sparse(rows) => {
                let (states, probabilities) = rows.row(row);
                let mut sum = 0.0;
                for (&state, &probability) in states.iter().zip(probabilities) {
                    sum += probability * values[state as usize];
                }
                sum
            }
        }
    }

    #[inline(always)]
    fn spread(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        let row = self.row_index(step, pair);
        match &self.rows {
            Rows::Dense(data) => {
                let row = &data[row * self.num_states..][..self.num_states];
                for (target, &probability) in next.iter_mut().zip(row) {
                    *target += mass * probability;
                }
            }
            Rows::Sparse(rows) => {
                let (states, probabilities) = rows.row(row);
                for (&state, &probability) in states.iter().zip(probabilities) {
                    next[state as usize] += mass * probability;
                }
            }
        }
    }
}

/// P: a kernel each of whose rows (but those of the ignored last step) sums to one.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionKernel(Arc<Kernel>);

impl TransitionKernel {
    /// Checks the row sums of a kernel, which stays shared.
    pub fn new(kernel: Arc<Kernel>) -> Result<Self> {
        for row in 0..kernel.used_rows() {
            let sum = kernel.row_sum(row)?;
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                return Err(Error::NotADistribution {
                    place: Place::new("transitions", &kernel.row_place(row)),
                    sum,
                    required: "1 within 1e-9",
                });
            }
        }
        Ok(Self(kernel))
    }

    /// The kernel, as one whose rows sum to at most one.
    #[must_use]
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.0
    }
}

impl StepKernel for TransitionKernel {
    #[inline(always)]
    fn expect(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        self.0.expect(step, pair, values)
    }

    #[inline(always)]
    fn spread(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        self.0.spread(step, pair, mass, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(offsets: &[i64], successors: &[i64], probabilities: &[f64]) -> Result<Kernel> {
        Kernel::sparse(
            2,
            1,
            Slices::Stationary,
            offsets,
            successors,
            probabilities.to_vec(),
        )
    }

    #[test]
    fn the_last_step_is_never_looked_at() {
        let mut data = vec![0.5; 8];
        data[4..].fill(f64::NAN);
        let kernel = Kernel::dense(2, 1, Slices::PerStep(2), data).unwrap();
        assert!(TransitionKernel::new(Arc::new(kernel)).is_ok());
    }

    #[test]
    fn a_row_may_leak_mass_but_not_gain_any() {
        assert!(Kernel::dense(2, 1, Slices::Stationary, vec![0.0, 0.0, 0.3, 0.2]).is_ok());
        let error = Kernel::dense(2, 1, Slices::Stationary, vec![0.0, 0.0, 0.9, 0.2]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("transitions[1, 0] sums to 1.1"),
            "{error}"
        );
    }

    #[test]
    fn dense_and_sparse_rows_do_the_same() {
        let dense = Kernel::dense(2, 1, Slices::Stationary, vec![0.25, 0.75, 0.0, 1.0]).unwrap();
        let sparse = sparse(&[0, 2, 3], &[0, 1, 1], &[0.25, 0.75, 1.0]).unwrap();
        for pair in 0..2 {
            assert!(
                (dense.expect(0, pair, &[2.0, 3.0]) - sparse.expect(0, pair, &[2.0, 3.0])).abs()
                    < 1e-15
            );
            let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
            dense.spread(0, pair, 0.5, &mut a);
            sparse.spread(0, pair, 0.5, &mut b);
            assert!((a[0] - b[0]).abs() + (a[1] - b[1]).abs() < 1e-15);
        }
    }

    #[test]
    fn malformed_sparse_rows_are_refused_by_cause() {
        assert!(matches!(
            sparse(&[0, 1], &[0, 1], &[1.0, 1.0]),
            Err(Error::ShapeMismatch { .. })
        ));
        assert!(matches!(
            sparse(&[1, 1, 2], &[0, 1], &[1.0, 1.0]),
            Err(Error::MalformedOffsets { .. })
        ));
        assert!(matches!(
            sparse(&[0, 3, 2], &[0, 1], &[1.0, 1.0]),
            Err(Error::MalformedOffsets { .. })
        ));
        assert!(matches!(
            sparse(&[0, 1, 1], &[0, 1], &[1.0, 1.0]),
            Err(Error::MalformedOffsets { .. })
        ));
        assert!(matches!(
            sparse(&[0, -1, 2], &[0, 1], &[1.0, 1.0]),
            Err(Error::MalformedOffsets { .. })
        ));
        assert!(matches!(
            sparse(&[0, 1, 2], &[0, 2], &[1.0, 1.0]),
            Err(Error::SuccessorOutOfRange { .. })
        ));
        assert!(matches!(
            sparse(&[0, 1, 2], &[0, -1], &[1.0, 1.0]),
            Err(Error::SuccessorOutOfRange { .. })
        ));
        assert!(matches!(
            sparse(&[0, 2, 2], &[1, 1], &[0.5, 0.5]),
            Err(Error::SuccessorsNotIncreasing { .. })
        ));
        assert!(matches!(
            sparse(&[0, 2, 2], &[1, 0], &[0.5, 0.5]),
            Err(Error::SuccessorsNotIncreasing { .. })
        ));
    }
}
