//! Transition kernels P_h(s'|s,a): dense or sparse, stored for each step or once, with rows that sum to one
//! ([`super::TransitionKernel`]) or to at most one ([`Kernel`]). Nothing is normalised.
//!
//! The slice of the last step, h = H-1, is used by no value: an episode ends there. It is stored as given and never
//! read, so it may hold anything.

mod incoming;
mod strips;

use std::sync::OnceLock;

use incoming::TransposedRows;
pub(crate) use strips::{InterleavedRows, ROWS_PER_BLOCK};

use crate::error::{ArrayIndex, Error, Result};
use crate::fast::isa::{Job, ask_for, dot_rows, vectorised};
use crate::model::StepKernel;
use crate::model::sparse_rows::{SparseRows, compressed_rows};
use crate::policy::{SUM_TOLERANCE, checked_sum};
use crate::shape::Shape;
use crate::sums::{dot, dot_two, propagate_rows, sum_and_signs};
use crate::table::zeros;

/// Full rows of fewer states than this stay full: vectors are faster.
const LISTS_FROM: usize = 64;

/// Rows with more entries than this have no interleaved copy: 12 bytes an entry would be missed more than the time.
const MOST_INTERLEAVED: usize = 1 << 22;

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
pub enum RowStorage {
    /// `[rows, S]`, row after row.
    Dense(Vec<f64>),
    /// Compressed rows.
    Sparse(SparseRows),
}

/// Rows to be walked one after the other.
#[derive(Debug, Clone, Copy)]
pub enum WalkedRows<'a> {
    /// `[rows, S]`.
    Full(&'a [f64]),
    /// Compressed rows.
    Lists(&'a SparseRows),
}

/// A kernel each of whose rows sums to at most one: mass may leak, as it does from an empirical
/// kernel at pairs never visited.
#[derive(Debug, Clone)]
pub struct Kernel {
    num_states: usize,
    num_actions: usize,
    slices: Slices,
    rows: RowStorage,
    /// A copy of sparse rows, in the layout that is fastest for all rows of a step; made when it is first used, and
    /// done without if there is no memory for it.
    strips: OnceLock<Option<InterleavedRows>>,
    /// A copy of full rows that are mostly zeros, as lists; made when it is first used, and done without if there is no
    /// memory for it.
    lists: OnceLock<Option<SparseRows>>,
    /// A copy by next state; made when it is first used, and done without if there is no memory for it.
    incoming: OnceLock<Option<TransposedRows>>,
    /// What [`Kernel::leak`] returns, once it was asked for.
    leak: OnceLock<f64>,
}

/// Copies of the rows do not count.
impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        let sizes = |kernel: &Self| (kernel.num_states, kernel.num_actions, kernel.slices);
        sizes(self) == sizes(other) && self.rows == other.rows
    }
}

impl Kernel {
    /// A dense kernel from `[H, S, A, S]` (per step) or `[S, A, S]` (stationary) probabilities.
    pub fn dense(
        num_states: usize,
        num_actions: usize,
        slices: Slices,
        data: Vec<f64>,
    ) -> Result<Self> {
        let kernel = Self::unchecked(num_states, num_actions, slices, RowStorage::Dense(data))?;
        kernel.check_rows(0.0, "at most 1 within 1e-9")?;
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
        let kernel = Self::unchecked(num_states, num_actions, slices, RowStorage::Sparse(rows))?;
        kernel.check_rows(0.0, "at most 1 within 1e-9")?;
        Ok(kernel)
    }

    fn unchecked(
        num_states: usize,
        num_actions: usize,
        slices: Slices,
        rows: RowStorage,
    ) -> Result<Self> {
        let num_rows = count_rows(num_states, num_actions, slices)?;
        if let RowStorage::Dense(data) = &rows {
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
            strips: OnceLock::new(),
            lists: OnceLock::new(),
            incoming: OnceLock::new(),
            leak: OnceLock::new(),
        })
    }

    /// The interleaved copy of sparse rows, if it is worth its memory.
    #[inline(always)]
    fn strips(&self, rows: &SparseRows) -> Option<&InterleavedRows> {
        let pairs = self.num_states * self.num_actions;
        let made = || {
            let small = rows.successors().len() <= MOST_INTERLEAVED;
            small.then(|| InterleavedRows::new(rows, pairs).ok()?)?
        };
        self.strips.get_or_init(made).as_ref()
    }

    /// The interleaved copy of the rows, if they are sparse and it is worth its memory.
    pub(crate) fn interleaved(&self) -> Option<&InterleavedRows> {
        match &self.rows {
            RowStorage::Dense(_) => None,
            RowStorage::Sparse(rows) => self.strips(rows),
        }
    }

    /// The rows in the form that is fastest for one row after the other: full rows that are mostly zeros as lists.
    #[must_use]
    pub fn rows_to_walk(&self) -> WalkedRows<'_> {
        let data = match &self.rows {
            RowStorage::Sparse(rows) => return WalkedRows::Lists(rows),
            RowStorage::Dense(data) => data,
        };
        let made = || {
            let worth_it = self.num_states >= LISTS_FROM;
            let total = data.len() / self.num_states;
            let rows = || SparseRows::of_full_rows(data, self.num_states, self.used_rows(), total);
            worth_it.then(|| rows().ok()?)?
        };
        match self.lists.get_or_init(made) {
            Some(lists) => WalkedRows::Lists(lists),
            None => WalkedRows::Full(data),
        }
    }

    /// The copy of sparse rows by next state.
    fn incoming(&self, rows: &SparseRows) -> Option<&TransposedRows> {
        let pairs = self.num_states * self.num_actions;
        let made = || TransposedRows::new(rows, self.num_states, pairs).ok();
        self.incoming.get_or_init(made).as_ref()
    }

    /// By how much the sum of a row that is used differs from one, at most.
    #[must_use]
    pub fn leak(&self) -> f64 {
        *self
            .leak
            .get_or_init(|| vectorised(GreatestLeak { kernel: self }))
    }

    /// Asks for the elements of a table over states that belong to the successors of a pair; see
    /// [`crate::fast::isa::ask_for`].
    #[inline(always)]
    pub(crate) fn ask_for_successors(&self, step: usize, pair: usize, table: &[f64]) {
        if let RowStorage::Sparse(rows) = &self.rows {
            for &state in rows.row(self.row_index(step, pair)).0 {
                ask_for(table, state as usize);
            }
        }
    }

    /// How many entries the rows of a state have on average, at least 1.
    #[must_use]
    pub fn entries_per_state(&self) -> usize {
        match self.rows_to_walk() {
            WalkedRows::Full(_) => self.num_states * self.num_actions,
            WalkedRows::Lists(rows) => {
                let num_rows = rows.offsets().len() - 1;
                (rows.successors().len() * self.num_actions).div_ceil(num_rows)
            }
        }
        .max(1)
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
    pub fn rows(&self) -> &RowStorage {
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
            RowStorage::Dense(data) => (
                &data[row * self.num_states..][..self.num_states],
                (&[][..], &[][..]),
            ),
            RowStorage::Sparse(rows) => (&[][..], rows.row(row)),
        };
        let sparse = states.iter().map(|&state| state as usize);
        dense
            .iter()
            .copied()
            .enumerate()
            .chain(sparse.zip(probabilities.iter().copied()))
    }

    /// The pairs (state, probability) of a row with a positive probability.
    pub fn possible_successors(
        &self,
        step: usize,
        pair: usize,
    ) -> impl Iterator<Item = (usize, f64)> + '_ {
        let successors = self.successors(step, pair);
        successors.filter(|&(_, probability)| probability > 0.0)
    }

    /// The probabilities as dense rows, `[H, S, A, S]` or `[S, A, S]`.
    pub fn to_dense(&self) -> Result<Vec<f64>> {
        match &self.rows {
            RowStorage::Dense(data) => Ok(data.clone()),
            RowStorage::Sparse(rows) => {
                let num_rows = rows.offsets().len() - 1;
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
        checked_sum(self.stored_row(row), |entry| {
            let state = match &self.rows {
                RowStorage::Dense(_) => entry,
                RowStorage::Sparse(rows) => rows.row(row).0[entry] as usize,
            };
            ArrayIndex::new("transitions", &[self.row_place(row), vec![state]].concat())
        })
    }

    /// The probabilities of a row, as stored.
    #[inline(always)]
    fn stored_row(&self, row: usize) -> &[f64] {
        match &self.rows {
            RowStorage::Dense(data) => &data[row * self.num_states..][..self.num_states],
            RowStorage::Sparse(rows) => rows.row(row).1,
        }
    }

    /// Checks that the sum of each used row is at least `least`, and at most one.
    pub(super) fn check_rows(&self, least: f64, required: &'static str) -> Result<()> {
        let doubtful = vectorised(FirstDoubtfulRow {
            kernel: self,
            least,
        });
        // The first pass only accepts; this one decides whether a row it did not accept is wrong, and why.
        for row in doubtful..self.used_rows() {
            let sum = self.row_sum(row)?;
            if sum < least - SUM_TOLERANCE || sum > 1.0 + SUM_TOLERANCE {
                return Err(Error::NotADistribution {
                    place: ArrayIndex::new("transitions", &self.row_place(row)),
                    sum,
                    required,
                });
            }
        }
        Ok(())
    }
}

struct FirstDoubtfulRow<'a> {
    kernel: &'a Kernel,
    least: f64,
}

impl Job for FirstDoubtfulRow<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let allowed = self.least - SUM_TOLERANCE..=1.0 + SUM_TOLERANCE;
        let used_rows = self.kernel.used_rows();
        let healthy = |&row: &usize| {
            let (sum, no_sign) = sum_and_signs(self.kernel.stored_row(row));
            no_sign && allowed.contains(&sum)
        };
        let mut rows = 0..used_rows;
        rows.find(|row| !healthy(row)).unwrap_or(used_rows)
    }
}

struct GreatestLeak<'a> {
    kernel: &'a Kernel,
}

impl Job for GreatestLeak<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        (0..self.kernel.used_rows()).fold(0.0, |leak, row| {
            let (sum, _) = sum_and_signs(self.kernel.stored_row(row));
            leak.max((1.0 - sum).abs())
        })
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

impl StepKernel for Kernel {
    #[inline(always)]
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        let row = self.row_index(step, pair);
        match &self.rows {
            RowStorage::Dense(data) => {
                dot(&data[row * self.num_states..][..self.num_states], values)
            }
            RowStorage::Sparse(rows) => {
                assert!(values.len() >= self.num_states);
                // SAFETY: there is a value for every state.
                unsafe { rows.expectation(row, values) }
            }
        }
    }

    #[inline(always)]
    fn expectation_of_two(
        &self,
        step: usize,
        pair: usize,
        first: &[f64],
        second: &[f64],
    ) -> (f64, f64) {
        match &self.rows {
            RowStorage::Dense(data) => {
                let row = self.row_index(step, pair);
                let row = &data[row * self.num_states..][..self.num_states];
                dot_two(row, first, second)
            }
            RowStorage::Sparse(_) => (
                self.expectation(step, pair, first),
                self.expectation(step, pair, second),
            ),
        }
    }

    #[inline(always)]
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        let row = self.row_index(step, pair);
        match &self.rows {
            RowStorage::Dense(data) => {
                let row = &data[row * self.num_states..][..self.num_states];
                for (target, &probability) in next.iter_mut().zip(row) {
                    *target += mass * probability;
                }
            }
            RowStorage::Sparse(rows) => {
                assert!(next.len() >= self.num_states);
                // SAFETY: there is a target for every state.
                unsafe { rows.propagate(row, mass, next) };
            }
        }
    }

    #[inline(always)]
    fn all_expectations(&self, step: usize, values: &[f64], out: &mut [f64]) {
        let first = self.row_index(step, 0);
        match &self.rows {
            RowStorage::Dense(data) => {
                let rows = &data[first * self.num_states..][..out.len() * self.num_states];
                dot_rows(rows, &values[..self.num_states], out);
            }
            RowStorage::Sparse(rows) => {
                assert!(values.len() >= self.num_states);
                let mut done = 0;
                if let Some(strips) = self.strips(rows) {
                    let slice = first / (self.num_states * self.num_actions);
                    done = strips.rows_per_step();
                    // SAFETY: there is a value for every state.
                    unsafe { strips.expectation(slice, 0, values, &mut out[..done]) };
                }
                for (pair, target) in out.iter_mut().enumerate().skip(done) {
                    // SAFETY: there is a value for every state.
                    *target = unsafe { rows.expectation(first + pair, values) };
                }
            }
        }
    }

    #[inline(always)]
    fn spread_all(&self, step: usize, masses: &[f64], next: &mut [f64]) {
        next.fill(0.0);
        let first = self.row_index(step, 0);
        match &self.rows {
            RowStorage::Dense(data) => {
                let rows = data[first * self.num_states..].chunks_exact(self.num_states);
                propagate_rows(masses.iter().copied().zip(rows), next);
            }
            RowStorage::Sparse(rows) => {
                assert!(next.len() >= self.num_states);
                // Under a deterministic policy most pairs have no mass; then scattering is less work.
                let carrying = masses.iter().filter(|&&mass| mass > 0.0).count();
                if 2 * carrying > masses.len()
                    && let Some(incoming) = self.incoming(rows)
                {
                    let pairs = self.num_states * self.num_actions;
                    assert!(masses.len() >= pairs);
                    // SAFETY: there is a mass for every pair.
                    unsafe { incoming.gather(first / pairs, masses, next) };
                    return;
                }
                for (pair, &mass) in masses.iter().enumerate() {
                    if mass > 0.0 {
                        // SAFETY: there is a target for every state.
                        unsafe { rows.propagate(first + pair, mass, next) };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::TransitionKernel;

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
                (dense.expectation(0, pair, &[2.0, 3.0])
                    - sparse.expectation(0, pair, &[2.0, 3.0]))
                .abs()
                    < 1e-15
            );
            let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
            dense.propagate(0, pair, 0.5, &mut a);
            sparse.propagate(0, pair, 0.5, &mut b);
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
