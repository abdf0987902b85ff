//! The rule that decides how the rows of a kernel are stored: in full, or as lists of successors.
//!
//! The rule is semantics, not speed. Full rows are summed in the order of `dot`, lists one by one, so the two
//! round differently. Estimates, judges and tests use these constants and no others.

/// Problems with more states than this keep lists of the successors seen, as long as they are short.
pub const MAX_DENSE_STATES: usize = 64;
/// How many successors a list can hold at first; the width doubles.
pub const FIRST_LIST_WIDTH: usize = 4;
/// A list may hold one state in this many; beyond that rows are kept in full.
pub const MAX_LISTED_SHARE: usize = 2;

/// Whether rows over this many states are kept in full from the start.
#[must_use]
pub fn is_dense(num_states: usize) -> bool {
    num_states <= MAX_DENSE_STATES
}
