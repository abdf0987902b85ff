//! P-hat, and the counts of successors it is made of.

use crate::error::{Error, Result};
use crate::estimate::counts::SuccessorCount;
use crate::estimate::storage::{FIRST_LIST_WIDTH, MAX_LISTED_SHARE, is_dense};
use crate::fast::isa::dot_rows;
use crate::model::StepKernel;
use crate::number::from_count;
use crate::shape::Shape;
use crate::sums::{dot, dot_two};
use crate::table::zeros;

/// P-hat: every row holds the frequencies of the observed successors, or zeros where nothing was observed, so
/// that mass leaks there. Nothing is normalised. The last step has no rows.
///
/// Few states are kept in full, and expectations have the order of additions of a dense
/// [`crate::model::Kernel`]; many states as lists of the successors seen, in increasing order, with that of a
/// sparse one.
#[derive(Debug, Clone, PartialEq)]
pub struct EmpiricalKernel {
    num_states: usize,
    pairs: usize,
    num_rows: usize, // (H - 1) S A
    rows: SuccessorCounts,
}

#[derive(Debug, Clone, PartialEq)]
enum SuccessorCounts {
    Full {
        counts: Vec<u64>,        // [H - 1, S, A, S]
        probabilities: Vec<f64>, // [H - 1, S, A, S]
    },
    Listed {
        width: usize,
        lengths: Vec<u32>,       // [H - 1, S, A]
        states: Vec<u32>,        // [H - 1, S, A, width], increasing, then 0
        counts: Vec<u64>,        // [H - 1, S, A, width], then 0
        probabilities: Vec<f64>, // [H - 1, S, A, width], then 0
    },
}

/// P-hat_h(.|s,a) as it is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Successors<'a> {
    /// One probability for every state.
    Full(&'a [f64]),
    /// The states seen, in increasing order, and their probabilities.
    Listed(&'a [u32], &'a [f64]),
}

impl<'a> Successors<'a> {
    /// No successors: the last step.
    pub const NONE: Self = Self::Listed(&[], &[]);

    /// One probability for every state, if the row is kept in full; else None.
    #[must_use]
    #[inline(always)]
    pub fn in_full(self) -> &'a [f64] {
        match self {
            Self::Full(probabilities) => probabilities,
            Self::Listed(..) => &[],
        }
    }

    /// The probability of one state.
    #[must_use]
    pub fn probability(self, state: usize) -> f64 {
        match self {
            Self::Full(probabilities) => probabilities[state],
            Self::Listed(states, probabilities) => {
                let place = states.binary_search(&(state as u32));
                place.map_or(0.0, |place| probabilities[place])
            }
        }
    }

    /// Pairs (state, probability); states that are left out were never seen.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = (usize, f64)> + Clone + 'a {
        let (full, states, listed): (&[f64], &[u32], &[f64]) = match self {
            Self::Full(probabilities) => (probabilities, &[], &[]),
            Self::Listed(states, probabilities) => (&[], states, probabilities),
        };
        let listed = states.iter().zip(listed);
        let listed = listed.map(|(&state, &probability)| (state as usize, probability));
        full.iter().copied().enumerate().chain(listed)
    }
}

impl EmpiricalKernel {
    /// Nothing observed. Rows are kept in full if `in_full` is true or if there are few states.
    pub(super) fn new(shape: Shape, in_full: bool) -> Result<Self> {
        let (num_states, pairs) = (shape.num_states(), shape.pairs());
        let num_rows = (shape.horizon() - 1) * pairs;
        let rows = if !in_full && !is_dense(num_states) {
            SuccessorCounts::listed(num_rows, FIRST_LIST_WIDTH)?
        } else {
            SuccessorCounts::full(num_rows, num_states)?
        };
        Ok(Self {
            num_states,
            pairs,
            num_rows,
            rows,
        })
    }

    /// How many successors a list can hold; None if rows are kept in full.
    #[must_use]
    pub fn list_width(&self) -> Option<usize> {
        match &self.rows {
            SuccessorCounts::Full { .. } => None,
            SuccessorCounts::Listed { width, .. } => Some(*width),
        }
    }

    /// How much memory the tables take.
    pub(super) fn bytes(&self) -> usize {
        match &self.rows {
            SuccessorCounts::Full { counts, .. } => counts.len() * (8 + 8),
            SuccessorCounts::Listed {
                lengths, counts, ..
            } => 4 * lengths.len() + counts.len() * (4 + 8 + 8),
        }
    }

    /// P-hat_h(.|s,a); the last step has none.
    #[must_use]
    #[inline(always)]
    pub fn row(&self, step: usize, pair: usize) -> Successors<'_> {
        let row = step * self.pairs + pair;
        match &self.rows {
            SuccessorCounts::Full { probabilities, .. } => {
                Successors::Full(&probabilities[row * self.num_states..][..self.num_states])
            }
            SuccessorCounts::Listed {
                width,
                lengths,
                states,
                probabilities,
                ..
            } => {
                let (start, length) = (row * width, lengths[row] as usize);
                Successors::Listed(
                    &states[start..][..length],
                    &probabilities[start..][..length],
                )
            }
        }
    }

    /// Counts a successor of a row `times` times. The row's probabilities are out of date until [`Self::refresh`].
    /// Fails only if memory for longer lists cannot be allocated.
    #[inline(always)]
    pub(super) fn count(&mut self, row: usize, successor: usize, times: u64) -> Result<()> {
        match &mut self.rows {
            SuccessorCounts::Full { counts, .. } => {
                counts[row * self.num_states + successor] += times;
                Ok(())
            }
            SuccessorCounts::Listed { .. } => self.count_listed(row, successor, times),
        }
    }

    fn count_listed(&mut self, row: usize, successor: usize, times: u64) -> Result<()> {
        loop {
            let SuccessorCounts::Listed {
                width,
                lengths,
                states,
                counts,
                probabilities,
            } = &mut self.rows
            else {
                return self.count(row, successor, times);
            };
            let (start, length) = (row * *width, lengths[row] as usize);
            let list = start..start + length;
            let wanted = successor as u32;
            match states[list.clone()].binary_search(&wanted) {
                Ok(place) => {
                    counts[start + place] += times;
                    return Ok(());
                }
                Err(place) if length < *width => {
                    let place = start + place;
                    states.copy_within(place..list.end, place + 1);
                    counts.copy_within(place..list.end, place + 1);
                    probabilities.copy_within(place..list.end, place + 1);
                    (states[place], counts[place], probabilities[place]) = (wanted, times, 0.0);
                    lengths[row] += 1;
                    return Ok(());
                }
                Err(_) => self.widen()?,
            }
        }
    }

    /// Doubles the width of every list, or keeps rows in full once lists would be too long.
    #[cold]
    fn widen(&mut self) -> Result<()> {
        let Some(old_width) = self.list_width() else {
            return Ok(());
        };
        let wider = 2 * old_width;
        let mut rows = if wider * MAX_LISTED_SHARE > self.num_states {
            SuccessorCounts::full(self.num_rows, self.num_states)?
        } else {
            SuccessorCounts::listed(self.num_rows, wider)?
        };
        for row in 0..self.num_rows {
            let (step, pair) = (row / self.pairs, row % self.pairs);
            let counts = self.counts(row);
            for (place, (state, probability)) in self.row(step, pair).iter().enumerate() {
                let count = counts[place];
                rows.put(self.num_states, row, place, state, count, probability);
            }
        }
        self.rows = rows;
        Ok(())
    }

    fn counts(&self, row: usize) -> &[u64] {
        match &self.rows {
            SuccessorCounts::Full { counts, .. } => {
                &counts[row * self.num_states..][..self.num_states]
            }
            SuccessorCounts::Listed {
                width,
                lengths,
                counts,
                ..
            } => &counts[row * width..][..lengths[row] as usize],
        }
    }

    /// P-hat = N(s,a,s')/N(s,a) for one row.
    #[inline(always)]
    pub(super) fn refresh(&mut self, row: usize, visits: f64) {
        let (counts, probabilities, range) = match &mut self.rows {
            SuccessorCounts::Full {
                counts,
                probabilities,
            } => {
                let start = row * self.num_states;
                (counts, probabilities, start..start + self.num_states)
            }
            SuccessorCounts::Listed {
                width,
                lengths,
                counts,
                probabilities,
                ..
            } => {
                let start = row * *width;
                (counts, probabilities, start..start + lengths[row] as usize)
            }
        };
        // Four at a time: rows are short, and a loop of unknown length would divide one by one.
        let (counts, last_counts) = counts[range.clone()].as_chunks::<4>();
        let (shares, last_shares) = probabilities[range].as_chunks_mut::<4>();
        for (shares, counts) in shares.iter_mut().zip(counts) {
            *shares = counts.map(|count| from_count(count) / visits);
        }
        for (share, &count) in last_shares.iter_mut().zip(last_counts) {
            *share = from_count(count) / visits;
        }
    }

    /// Every (row, state, count) with a count, rows and states in increasing order.
    pub(super) fn successor_counts(&self) -> impl Iterator<Item = SuccessorCount> + '_ {
        (0..self.num_rows).flat_map(|row| {
            let successors = self.row(row / self.pairs, row % self.pairs).iter();
            let counted = successors
                .zip(self.counts(row))
                .map(move |((state, _), &count)| {
                    let (row, state) = (row as u32, state as u32);
                    SuccessorCount { row, state, count }
                });
            counted.filter(|successor| successor.count > 0)
        })
    }

    /// N_h(s,a,s') of one successor.
    pub(super) fn count_of(&self, row: usize, state: usize) -> u64 {
        let place = match self.row(row / self.pairs, row % self.pairs) {
            Successors::Full(_) => Some(state),
            Successors::Listed(states, _) => states.binary_search(&(state as u32)).ok(),
        };
        place.map_or(0, |place| self.counts(row)[place])
    }

    /// N_h(s,a,s') and P-hat in full, `[H - 1, S, A, S]`.
    pub fn in_full(&self) -> Result<(Vec<u64>, Vec<f64>)> {
        let entries = self.num_rows.saturating_mul(self.num_states);
        let mut counts = zeros("transition counts [H, S, A, S]", entries)?;
        let mut probabilities = zeros("an empirical kernel [H, S, A, S]", entries)?;
        for row in 0..self.num_rows {
            let start = row * self.num_states;
            let stored = self.counts(row);
            let successors = self.row(row / self.pairs, row % self.pairs);
            for (place, (state, probability)) in successors.iter().enumerate() {
                counts[start + state] = stored[place];
                probabilities[start + state] = probability;
            }
        }
        Ok((counts, probabilities))
    }
}

impl SuccessorCounts {
    fn full(num_rows: usize, num_states: usize) -> Result<Self> {
        let Some(entries) = num_rows.checked_mul(num_states) else {
            return Err(Error::TooLarge {
                what: "an empirical kernel [H, S, A, S]",
                sizes: vec![num_rows, num_states],
                allowed: usize::MAX,
            });
        };
        Ok(Self::Full {
            counts: zeros("transition counts [H, S, A, S]", entries)?,
            probabilities: zeros("an empirical kernel [H, S, A, S]", entries)?,
        })
    }

    fn listed(num_rows: usize, width: usize) -> Result<Self> {
        let entries = num_rows.saturating_mul(width);
        Ok(Self::Listed {
            width,
            lengths: zeros("lengths of successor lists [H, S, A]", num_rows)?,
            states: zeros("successor lists", entries)?,
            counts: zeros("successor lists", entries)?,
            probabilities: zeros("successor lists", entries)?,
        })
    }

    /// Sets the entry of a row that comes at this place of a list.
    fn put(
        &mut self,
        num_states: usize,
        row: usize,
        place: usize,
        state: usize,
        count: u64,
        probability: f64,
    ) {
        match self {
            Self::Full {
                counts,
                probabilities,
            } => {
                let entry = row * num_states + state;
                (counts[entry], probabilities[entry]) = (count, probability);
            }
            Self::Listed {
                width,
                lengths,
                states,
                counts,
                probabilities,
            } => {
                let entry = row * *width + place;
                lengths[row] = place as u32 + 1;
                (states[entry], counts[entry]) = (state as u32, count);
                probabilities[entry] = probability;
            }
        }
    }
}

impl StepKernel for EmpiricalKernel {
    const ASKED_OFTEN: bool = true;

    #[inline(always)]
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        match self.row(step, pair) {
            // Cut to the length of the values: if that is known at compile time, so is the row's.
            Successors::Full(row) => dot(&row[..values.len()], values),
            listed @ Successors::Listed(..) => {
                let entries = listed.iter();
                entries.fold(0.0, |sum, (state, p)| sum + p * values[state])
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
        match self.row(step, pair) {
            Successors::Full(row) => dot_two(&row[..first.len()], first, second),
            listed @ Successors::Listed(..) => {
                let entries = listed.iter();
                entries.fold((0.0, 0.0), |sums, (state, p)| {
                    (sums.0 + p * first[state], sums.1 + p * second[state])
                })
            }
        }
    }

    #[inline(always)]
    fn all_expectations(&self, step: usize, values: &[f64], out: &mut [f64]) {
        if let SuccessorCounts::Full { probabilities, .. } = &self.rows {
            let rows = &probabilities[step * self.pairs * self.num_states..];
            dot_rows(rows, values, &mut out[..self.pairs]);
        } else {
            for (pair, target) in out[..self.pairs].iter_mut().enumerate() {
                *target = self.expectation(step, pair, values);
            }
        }
    }

    #[inline(always)]
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        match self.row(step, pair) {
            Successors::Full(row) => {
                let row = &row[..next.len()];
                for (target, &probability) in next.iter_mut().zip(row) {
                    *target += mass * probability;
                }
            }
            listed @ Successors::Listed(..) => {
                for (state, probability) in listed.iter() {
                    next[state] += mass * probability;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the same successors into lists and into full rows.
    fn both(successors: &[(usize, usize)]) -> [EmpiricalKernel; 2] {
        let shape = Shape::new(2, 70, 2).unwrap();
        [false, true].map(|in_full| {
            let mut kernel = EmpiricalKernel::new(shape, in_full).unwrap();
            for &(row, successor) in successors {
                kernel.count(row, successor, 1).unwrap();
            }
            for row in 0..shape.pairs() {
                let visits = successors.iter().filter(|(counted, _)| *counted == row);
                kernel.refresh(row, visits.count().max(1) as f64);
            }
            kernel
        })
    }

    #[test]
    fn lists_grow_give_way_to_full_rows_and_lose_nothing() {
        for (seen, width) in [
            (1, Some(4)),
            (4, Some(4)),
            (5, Some(8)),
            (16, Some(16)),
            (17, Some(32)),
            (33, None),
            (70, None),
        ] {
            // From the middle outwards, so that entries are inserted before, between and after others.
            let spread = (0..3 * seen).map(|i| (i / seen, (35 + 11 * (i % seen)) % 70));
            let [listed, full] = both(&spread.collect::<Vec<_>>());
            assert_eq!(listed.list_width(), width, "{seen} successors");
            assert_eq!(listed.in_full().unwrap(), full.in_full().unwrap());
            let values: Vec<f64> = (0..70).map(|i| f64::from(i).cos()).collect();
            for pair in 0..140 {
                let (own, reference) = (
                    listed.expectation(0, pair, &values),
                    full.expectation(0, pair, &values),
                );
                assert!((own - reference).abs() < 1e-14);
                let row = listed.row(0, pair);
                let total: f64 = row.iter().map(|(_, p)| p).sum();
                let looked_up: f64 = (0..70).map(|state| row.probability(state)).sum();
                assert!((total - looked_up).abs() < 1e-14);
            }
        }
    }
}
