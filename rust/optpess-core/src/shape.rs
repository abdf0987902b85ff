//! The three sizes of a problem, H, |S| and |A|, and the index arithmetic on them. Sizes of zero, and sizes whose
//! tables could not be stored, are errors.

use std::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The largest number of (step, state, action) triples a problem may have: a table of 64-bit floats
/// over them then takes 16 GiB. Larger sizes are refused before anything is allocated.
pub const MAX_TRIPLES: usize = 1 << 31;

/// The largest number of (step, state, action) triples of a problem whose tables are stored once for all steps.
pub const MAX_STATIONARY_TRIPLES: usize = 1 << 40;

/// Horizon H, number of states |S| and number of actions |A| of an episodic problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "[usize; 3]", try_from = "[usize; 3]")]
pub struct Shape {
    horizon: usize,
    num_states: usize,
    num_actions: usize,
}

impl From<Shape> for [usize; 3] {
    fn from(shape: Shape) -> Self {
        shape.sizes()
    }
}

/// A stored shape is checked as a given one is.
impl TryFrom<[usize; 3]> for Shape {
    type Error = Error;

    fn try_from([horizon, num_states, num_actions]: [usize; 3]) -> Result<Self> {
        Self::up_to(LARGEST_STORED.get(), horizon, num_states, num_actions)
    }
}

thread_local! {
    /// The largest number of triples of a shape that is read from bytes.
    static LARGEST_STORED: Cell<usize> = const { Cell::new(MAX_TRIPLES) };
}

/// Reads a value from so many bytes, of which a table `[H, S, A]` takes at least one an entry: larger sizes are refused
/// before anything of that size is allocated.
pub(crate) fn with_stored_bytes<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    let before = LARGEST_STORED.replace(bytes.min(MAX_TRIPLES));
    let found = read();
    LARGEST_STORED.set(before);
    found
}

impl Shape {
    /// Checks that each size is at least one and that an `[H, S, A]` table can be stored.
    pub fn new(horizon: usize, num_states: usize, num_actions: usize) -> Result<Self> {
        Self::up_to(MAX_TRIPLES, horizon, num_states, num_actions)
    }

    /// The sizes of a problem that is the same at every step: an `[H, S, A]` table need not be storable. Tables that
    /// are not are refused when they are to be made ([`crate::table::zeros`]).
    pub fn stationary(horizon: usize, num_states: usize, num_actions: usize) -> Result<Self> {
        Self::new(1, num_states, num_actions)?;
        Self::up_to(MAX_STATIONARY_TRIPLES, horizon, num_states, num_actions)
    }

    fn up_to(most: usize, horizon: usize, num_states: usize, num_actions: usize) -> Result<Self> {
        let sizes = [horizon, num_states, num_actions];
        if let Some(axis) = sizes.iter().position(|&size| size == 0) {
            return Err(Error::EmptyAxis {
                array: "shape",
                axis,
                found: sizes.to_vec(),
            });
        }
        let triples = horizon
            .checked_mul(num_states)
            .and_then(|product| product.checked_mul(num_actions));
        match triples {
            Some(count) if count <= most => Ok(Self {
                horizon,
                num_states,
                num_actions,
            }),
            _ => Err(Error::TooLarge {
                what: "a table [H, S, A]",
                sizes: sizes.to_vec(),
                allowed: most,
            }),
        }
    }

    /// H, the number of steps of an episode.
    #[must_use]
    pub fn horizon(&self) -> usize {
        self.horizon
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

    /// |S| |A|, the number of state-action pairs.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.num_states * self.num_actions
    }

    /// H |S| |A|, the number of entries of an `[H, S, A]` table.
    #[must_use]
    pub fn triples(&self) -> usize {
        self.horizon * self.pairs()
    }

    /// The index of (state, action) within one step of a table.
    #[must_use]
    #[inline(always)]
    pub fn pair(&self, state: usize, action: usize) -> usize {
        state * self.num_actions + action
    }

    /// The sizes as `[H, S, A]`.
    #[must_use]
    pub fn sizes(&self) -> [usize; 3] {
        [self.horizon, self.num_states, self.num_actions]
    }

    /// The (step, state, action) of a flat index of an `[H, S, A]` table.
    #[must_use]
    pub fn triple_index(&self, flat: usize) -> [usize; 3] {
        let pairs = self.pairs();
        [
            flat / pairs,
            flat % pairs / self.num_actions,
            flat % self.num_actions,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_zero_is_refused_by_axis() {
        assert!(matches!(
            Shape::new(2, 0, 3),
            Err(Error::EmptyAxis { axis: 1, .. })
        ));
    }

    #[test]
    fn sizes_whose_product_overflows_are_refused() {
        for sizes in [
            [usize::MAX, 2, 2],
            [1 << 40, 1 << 20, 1 << 10],
            [1 << 31, 1, 2],
        ] {
            assert!(matches!(
                Shape::new(sizes[0], sizes[1], sizes[2]),
                Err(Error::TooLarge { .. })
            ));
        }
    }

    #[test]
    fn flat_indices_and_triples_are_inverse() {
        let shape = Shape::new(3, 4, 2).unwrap();
        let flat = 2 * shape.pairs() + shape.pair(3, 1);
        assert_eq!(shape.triple_index(flat), [2, 3, 1]);
    }
}
