//! Compressed rows: the storage of a sparse kernel. A row lists successors that exist, each once and in increasing
//! order.

use crate::error::{ArrayIndex, Error, Result};
use crate::fast::isa::ask_for;
use crate::model::JointRows;
use crate::table::zeros;

/// Full rows with at most one entry in so many that is not zero are faster as lists.
const FULL_ENTRIES: usize = 4;

/// How many entries in advance values are asked for: as many as a memory takes the time of. Measured at 10^6 states
/// with 3 successors: a third of the time.
const AHEAD: usize = 48;

/// Rows as lists of successors: row i has the entries `offsets[i]..offsets[i + 1]`.
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

    /// The same entries by successor: one row for each (step, s'), which lists the pairs of that step that
    /// lead to s', in order.
    pub(super) fn transposed(&self, num_states: usize, pairs: usize) -> Result<Self> {
        let steps = (self.offsets.len() - 1) / pairs;
        let mut offsets: Vec<usize> = zeros("offsets by successor", steps * num_states + 1)?;
        for row in 0..steps * pairs {
            for &state in self.row(row).0 {
                offsets[row / pairs * num_states + state as usize + 1] += 1;
            }
        }
        for place in 1..offsets.len() {
            offsets[place] += offsets[place - 1];
        }
        let mut free = offsets.clone(); // where the next entry of each row goes
        let mut sources = zeros("pairs by successor", self.successors.len())?;
        let mut probabilities = zeros("probabilities by successor", self.successors.len())?;
        for row in 0..steps * pairs {
            let (states, weights) = self.row(row);
            for (&state, &weight) in states.iter().zip(weights) {
                let place = &mut free[row / pairs * num_states + state as usize];
                sources[*place] = (row % pairs) as u32;
                probabilities[*place] = weight;
                *place += 1;
            }
        }
        Ok(Self {
            offsets,
            successors: sources,
            probabilities,
        })
    }

    /// The entries that are not zero of the first `num_rows` full rows, and empty rows up to `total_rows`. None if they
    /// are more than one in [`FULL_ENTRIES`].
    pub(super) fn of_full_rows(
        data: &[f64],
        num_states: usize,
        num_rows: usize,
        total_rows: usize,
    ) -> Result<Option<Self>> {
        let data = &data[..num_rows * num_states];
        let count = data.iter().filter(|&&entry| entry != 0.0).count();
        if count > data.len() / FULL_ENTRIES {
            return Ok(None);
        }
        let mut offsets = zeros("offsets of rows", total_rows + 1)?;
        let mut successors = zeros("successors of rows", count)?;
        let mut probabilities = zeros("probabilities of rows", count)?;
        let mut place = 0;
        for (row, entries) in data.chunks_exact(num_states).enumerate() {
            for (state, &entry) in (0..).zip(entries) {
                if entry != 0.0 {
                    (successors[place], probabilities[place]) = (state, entry);
                    place += 1;
                }
            }
            offsets[row + 1] = place;
        }
        offsets[num_rows + 1..].fill(place);
        Ok(Some(Self {
            offsets,
            successors,
            probabilities,
        }))
    }

    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let entries = self.offsets[row]..self.offsets[row + 1];
        // SAFETY: `compressed_rows`, `transposed` and `of_full_rows` are the only constructors and nothing
        // changes afterwards. The first has checked that offsets never decrease and end at the common length
        // of the two lists; the others count the entries of each row.
        unsafe {
            (
                self.successors.get_unchecked(entries.clone()),
                self.probabilities.get_unchecked(entries),
            )
        }
    }

    /// sum over the entries of a row of probability times value, from left to right.
    ///
    /// # Safety
    ///
    /// `values` must have an entry for every state.
    #[inline(always)]
    pub(super) unsafe fn expectation(&self, row: usize, values: &[f64]) -> f64 {
        let (states, probabilities) = self.row(row);
        let mut sum = 0.0;
        for (&state, &probability) in states.iter().zip(probabilities) {
            // SAFETY: `compressed_rows` has checked that successors are below |S|, which is at most
            // the length of `values` by this function's contract. A check here costs a third of the time.
            sum += probability * unsafe { values.get_unchecked(state as usize) };
        }
        sum
    }

    /// target(s') += mass times the probability of s', over the entries of a row.
    ///
    /// # Safety
    ///
    /// `next` must have an entry for every state.
    #[inline(always)]
    pub(super) unsafe fn propagate(&self, row: usize, mass: f64, next: &mut [f64]) {
        let (states, probabilities) = self.row(row);
        for (&state, &probability) in states.iter().zip(probabilities) {
            // SAFETY: as in `expectation`.
            *unsafe { next.get_unchecked_mut(state as usize) } += mass * probability;
        }
    }
}

impl JointRows for SparseRows {
    /// # Safety
    ///
    /// That of the trait.
    #[inline(always)]
    unsafe fn expectations<const N: usize, const FAR: bool>(
        &self,
        row: usize,
        values: &[[f64; N]],
    ) -> [f64; N] {
        // SAFETY: by this function's contract the row exists, and there is one more offset than rows.
        let [first, end] = unsafe { [row, row + 1].map(|at| *self.offsets.get_unchecked(at)) };
        let entries = first..end;
        // SAFETY: as in `row`.
        let states = unsafe { self.successors.get_unchecked(entries.clone()) };
        // SAFETY: as in `row`.
        let probabilities = unsafe { self.probabilities.get_unchecked(entries.clone()) };
        if FAR {
            let last = self.successors.len() - 1;
            for entry in entries.clone() {
                // SAFETY: it is at most the last entry.
                let later = unsafe { self.successors.get_unchecked((entry + AHEAD).min(last)) };
                ask_for(values, *later as usize);
            }
        }
        let mut sums = [0.0; N];
        for (&state, &probability) in states.iter().zip(probabilities) {
            // SAFETY: as in `expectation`.
            let next = unsafe { values.get_unchecked(state as usize) };
            for n in 0..N {
                sums[n] += probability * next[n];
            }
        }
        sums
    }
}

/// Checks offsets and successors. [`super::Kernel`] checks the probabilities.
pub(super) fn compressed_rows(
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
                place: ArrayIndex::new("transition offsets", &[position]),
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
            let place = || ArrayIndex::new("transition successors", &[position]);
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
