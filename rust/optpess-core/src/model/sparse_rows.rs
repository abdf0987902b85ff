//! Compressed rows: the storage of a sparse kernel. A row lists successors that exist, each once and in increasing
//! order.

use crate::error::{ArrayIndex, Error, Result};
use crate::table::zeros;

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

    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let entries = self.offsets[row]..self.offsets[row + 1];
        // SAFETY: `compressed_rows` and `transposed` are the only constructors and nothing changes
        // afterwards. The first has checked that offsets never decrease and end at the common length
        // of the two lists; the second counts the entries of each row and adds the counts up.
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
