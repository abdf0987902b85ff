//! Rows of a kernel in blocks of eight, one row a lane.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::error::Result;
use crate::fast::lane::column_sums;
use crate::fast::lanes::{LANES, Lanes};
use crate::number::Number;
use crate::table::zeros;

/// Rows in blocks of eight, in full or as lists of successors. Expectations have the order of additions of
/// a dense or of a sparse kernel accordingly.
///
/// Every entry of a list is a state: [`PackedRows::set`], which alone writes lists, checks it, so that expectations
/// need no check.
#[derive(Debug, Clone)]
pub(crate) struct PackedRows {
    num_states: usize,
    stored: PackedStorage,
}

/// The states at one position of eight lists, each below |S|. They are as wide as addresses and have a cache line of
/// their own: widening narrow ones takes longer than the sum.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
struct StateBlock([u64; LANES]);

#[derive(Debug, Clone)]
enum PackedStorage {
    Full(Vec<Lanes>), // [blocks, S']
    Listed {
        width: usize,
        lengths: Vec<u32>,         // [blocks], of the longest of the eight lists
        states: Vec<StateBlock>,   // [blocks, width]
        probabilities: Vec<Lanes>, // [blocks, width], 0 where a list has ended
    },
}

impl PackedRows {
    /// Rows without mass: lists of up to `width` successors, or in full.
    pub(crate) fn new(num_blocks: usize, num_states: usize, width: Option<usize>) -> Result<Self> {
        let stored = match width {
            None => PackedStorage::Full(zeros("a kernel [H, A, S, S]", num_blocks * num_states)?),
            Some(width) => PackedStorage::Listed {
                width,
                lengths: zeros("lengths of successor lists", num_blocks)?,
                states: zeros("successor lists", num_blocks * width)?,
                probabilities: zeros("successor lists", num_blocks * width)?,
            },
        };
        Ok(Self { num_states, stored })
    }

    /// How many successors a list can hold; None if rows are kept in full.
    pub(crate) fn list_width(&self) -> Option<usize> {
        match &self.stored {
            PackedStorage::Full(_) => None,
            PackedStorage::Listed { width, .. } => Some(*width),
        }
    }

    /// Sets one row. A successor that is left out keeps its probability if rows are kept in full, and has none in a
    /// list. A list must be wide enough for all successors.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        block: usize,
        lane: usize,
        successors: impl Iterator<Item = (usize, f64)>,
    ) {
        match &mut self.stored {
            PackedStorage::Full(columns) => {
                let columns = &mut columns[block * self.num_states..][..self.num_states];
                for (state, probability) in successors {
                    columns[state].0[lane] = probability;
                }
            }
            PackedStorage::Listed {
                width,
                lengths,
                states,
                probabilities,
            } => {
                let states = &mut states[block * *width..][..*width];
                let probabilities = &mut probabilities[block * *width..][..*width];
                let mut length = 0;
                for (state, probability) in successors {
                    assert!(state < self.num_states);
                    states[length].0[lane] = state as u64;
                    probabilities[length].0[lane] = probability;
                    length += 1;
                }
                let longest = lengths[block] as usize;
                for ended in &mut probabilities[length..longest.max(length)] {
                    ended.0[lane] = 0.0;
                }
                lengths[block] = longest.max(length) as u32;
            }
        }
    }

    /// [`PackedRows::set`] for a row with a probability for every state.
    #[inline(always)]
    pub(crate) fn set_full(&mut self, block: usize, lane: usize, row: &[f64]) {
        if let PackedStorage::Full(columns) = &mut self.stored {
            let columns = &mut columns[block * self.num_states..][..self.num_states];
            for (column, probability) in columns.iter_mut().zip(row) {
                column.0[lane] = *probability;
            }
        } else {
            self.set(block, lane, row.iter().copied().enumerate());
        }
    }

    /// One row as pairs (successor, probability).
    #[inline(always)]
    pub(crate) fn row(&self, block: usize, lane: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (full, states, listed): (&[Lanes], &[StateBlock], &[Lanes]) = match &self.stored {
            PackedStorage::Full(columns) => (
                &columns[block * self.num_states..][..self.num_states],
                &[],
                &[],
            ),
            PackedStorage::Listed {
                width,
                lengths,
                states,
                probabilities,
            } => {
                let (start, length) = (block * width, lengths[block] as usize);
                (
                    &[],
                    &states[start..][..length],
                    &probabilities[start..][..length],
                )
            }
        };
        let full = full.iter().map(move |column| column.0[lane]).enumerate();
        let listed = states.iter().zip(listed);
        let listed = listed.map(move |(state, p)| (state.0[lane] as usize, p.0[lane]));
        full.chain(listed)
    }

    /// Writes into each of the blocks from `first` on its `own` number plus the expectation of `following`, one value a
    /// state. `S` is the number of states, or 0 if it is not known at compile time.
    #[inline(always)]
    pub(crate) fn add_expectations<const S: usize>(
        &self,
        first: usize,
        following: &[f64],
        own: impl Fn(usize) -> Lanes,
        blocks: &mut [Lanes],
    ) {
        // `own` is called by index: an iterator over such wide items passes each through memory.
        let targets = blocks.iter_mut().enumerate();
        match &self.stored {
            PackedStorage::Full(columns) => {
                if S > 0
                    && let Some(following) = following.first_chunk::<S>()
                {
                    let following = *following; // a local copy of few numbers stays in registers
                    let rows = columns[first * S..].chunks_exact(S);
                    for ((block, target), columns) in targets.zip(rows) {
                        *target = own(block).plus(column_sums::<S>(columns, &following));
                        // A block already fills the vectors. The fence, which is no instruction, keeps the compiler from
                        // vectorising over blocks, which would take twice the instructions.
                        compiler_fence(Ordering::SeqCst);
                    }
                    return;
                }
                let rows = columns[first * self.num_states..].chunks_exact(self.num_states);
                for ((block, target), columns) in targets.zip(rows) {
                    *target = own(block).plus(column_sums::<0>(columns, following));
                }
            }
            PackedStorage::Listed {
                width,
                lengths,
                states,
                probabilities,
            } => {
                assert!(following.len() >= self.num_states);
                for (number, target) in targets {
                    let block = first + number;
                    let list = block * width..block * width + lengths[block] as usize;
                    let entries = states[list.clone()].iter().zip(&probabilities[list]);
                    let mut sums = [0.0; LANES];
                    for (state, probability) in entries {
                        for lane in 0..LANES {
                            let state = state.0[lane] as usize;
                            // SAFETY: every entry of `states` is below `num_states`: it is 0 from `new`, or `set` has
                            // asserted it, and nothing else writes `states`. And there are at
                            // least `num_states` values, by the assertion above.
                            let value = unsafe { following.get_unchecked(state) };
                            sums[lane] += probability.0[lane] * value;
                        }
                    }
                    *target = own(number).plus(Lanes(sums));
                }
            }
        }
    }
}
