//! The errors of the core, one variant a cause. A variant has typed fields and no free text, so that a caller can match
//! on it and a message can name the array, the index, what was found and what is allowed.
//!
//! Deliberately not `#[non_exhaustive]`: the binding maps variants to Python exceptions in one
//! exhaustive `match`, and a new variant must not compile until its exception has been chosen.

use std::fmt;

/// An element (or a row) of a named input array, in the caller's own indexing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayIndex {
    /// The array's name as the caller knows it.
    pub array: &'static str,
    /// Indices along the leading axes; empty for a scalar.
    pub index: Vec<usize>,
}

impl ArrayIndex {
    /// The element of `array` at `index`.
    #[must_use]
    pub fn new(array: &'static str, index: &[usize]) -> Self {
        Self {
            array,
            index: index.to_vec(),
        }
    }

    /// A scalar parameter.
    #[must_use]
    pub fn scalar(name: &'static str) -> Self {
        Self::new(name, &[])
    }
}

impl fmt::Display for ArrayIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.array)?;
        if !self.index.is_empty() {
            write!(f, "{:?}", self.index)?;
        }
        Ok(())
    }
}

/// A range of allowed values, with open or closed ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    low: f64,
    high: f64,
    low_closed: bool,
    high_closed: bool,
}

impl Interval {
    /// The closed interval `[low, high]`.
    #[must_use]
    pub const fn closed(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            low_closed: true,
            high_closed: true,
        }
    }

    /// The half-open interval `(low, high]`.
    #[must_use]
    pub const fn open_closed(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            low_closed: false,
            high_closed: true,
        }
    }

    /// The half-open interval `[low, high)`.
    #[must_use]
    pub const fn closed_open(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            low_closed: true,
            high_closed: false,
        }
    }

    /// The open interval `(low, high)`.
    #[must_use]
    pub const fn open(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            low_closed: false,
            high_closed: false,
        }
    }

    /// Whether `value` lies inside; never true of NaN.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        let above = value > self.low || (self.low_closed && value >= self.low);
        let below = value < self.high || (self.high_closed && value <= self.high);
        above && below
    }
}

/// What is asked of a number: "be 1" if one number is allowed, else "lie in [0, 1]".
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low >= self.high {
            return write!(f, "be {}", self.low);
        }
        let left = if self.low_closed { '[' } else { '(' };
        let right = if self.high_closed { ']' } else { ')' };
        let high: &dyn fmt::Display = if self.high >= f64::MAX {
            &"the largest number" // instead of its 309 digits
        } else {
            &Figure(self.high)
        };
        write!(f, "lie in {left}{}, {high}{right}", Figure(self.low))
    }
}

/// A number in a message. A number of hundreds of digits is shown with an exponent.
struct Figure(f64);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = *self;
        let digits = if number == 0.0 {
            0.0
        } else {
            number.abs().log10().abs()
        };
        if number.is_finite() && digits >= 21.0 {
            return write!(f, "{number:e}");
        }
        write!(f, "{number}")
    }
}

/// A cause of refusal.
#[derive(Debug, Clone, PartialEq, thiserror::Error, strum::VariantNames, strum::IntoStaticStr)]
pub enum Error {
    /// An array has the wrong number of axes.
    #[error("{array} has shape {found:?}, which is {} {}; it must have the axes {expected}", found.len(), if found.len() == 1 { "axis" } else { "axes" })]
    WrongRank {
        /// The array's name.
        array: &'static str,
        /// The axes it must have, such as `[H, S, A]`.
        expected: &'static str,
        /// Its shape.
        found: Vec<usize>,
    },
    /// An array has the right number of axes, one of them of the wrong length.
    #[error("{array} has shape {found:?}; it must have shape {expected:?} (axes {axes})")]
    ShapeMismatch {
        /// The array's name.
        array: &'static str,
        /// What the axes mean.
        axes: &'static str,
        /// The shape it must have.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },
    /// An axis of length zero.
    #[error(
        "{array} has shape {found:?}: axis {axis} is empty; every axis needs at least one entry"
    )]
    EmptyAxis {
        /// The array's name.
        array: &'static str,
        /// The empty axis.
        axis: usize,
        /// The array's shape.
        found: Vec<usize>,
    },
    /// Sizes whose product cannot be stored.
    #[error(
        "{what} of sizes {sizes:?} has more entries than can be stored; at most {allowed} are allowed"
    )]
    TooLarge {
        /// What was to be made.
        what: &'static str,
        /// The sizes asked for.
        sizes: Vec<usize>,
        /// The largest number of entries allowed.
        allowed: usize,
    },
    /// Elements of a kind that has no faithful conversion to 64-bit floats (or integers).
    #[error("{array} holds elements of type {found}; allowed are {allowed}")]
    UnsupportedType {
        /// The array's name.
        array: &'static str,
        /// The element type found.
        found: String,
        /// The element types that can be converted.
        allowed: &'static str,
    },
    /// A single value of another kind than is asked for.
    #[error("{what} is of type {found}; it must be {allowed}")]
    WrongType {
        /// What was given.
        what: &'static str,
        /// Its type.
        found: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// NaN or an infinity.
    #[error("{place} is {found}; every entry must be finite")]
    NotFinite {
        /// Where.
        place: ArrayIndex,
        /// The number found.
        found: f64,
    },
    /// A number outside its allowed range.
    #[error("{place} is {}; it must {allowed}", Figure(*found))]
    OutOfRange {
        /// Where.
        place: ArrayIndex,
        /// The number found.
        found: f64,
        /// The allowed range.
        allowed: Interval,
    },
    /// Probabilities that do not add up.
    #[error("{place} sums to {sum:?}, which is {:e} away from 1; it must sum to {required} (an array in single precision is best renormalised in double precision first)", sum - 1.0)]
    NotADistribution {
        /// The row.
        place: ArrayIndex,
        /// The row's sum.
        sum: f64,
        /// `1 within 1e-9`, or `at most 1 within 1e-9` for a sub-stochastic row.
        required: &'static str,
    },
    /// An observed reward or cost outside of the range that was stated.
    #[error("{place} is {}; it must {allowed}, {reason}", Figure(*found))]
    ObservationOutOfRange {
        /// Where.
        place: ArrayIndex,
        /// The number found.
        found: f64,
        /// The allowed range, with room for noise if there may be any.
        allowed: Interval,
        /// Which argument states the range, and whether noise may leave it.
        reason: &'static str,
    },
    /// A state or an action that cannot have been observed.
    #[error(
        "{place} is {found}, but {reason}; observe the episode that was played with the deployed policy"
    )]
    Impossible {
        /// Where.
        place: ArrayIndex,
        /// The state or action found.
        found: u32,
        /// Why it cannot be.
        reason: String,
    },
    /// An observation contradicts what was declared to be known.
    #[error(
        "{place} was declared {declared}, but {found}; the guarantee rests on it: correct the knowledge and start again"
    )]
    KnowledgeContradicted {
        /// The entry of the declared table.
        place: ArrayIndex,
        /// What was declared.
        declared: String,
        /// What was observed.
        found: String,
    },
    /// A sparse row names a successor state that does not exist.
    #[error("{place} is {found}; a successor state must lie in [0, {num_states})")]
    SuccessorOutOfRange {
        /// The position in the list of successors.
        place: ArrayIndex,
        /// The state named there.
        found: i64,
        /// How many states there are.
        num_states: usize,
    },
    /// A sparse row names a successor twice, or not in increasing order.
    #[error(
        "{place} is {found} after {previous} in the same row; the successors of a row must be strictly increasing (sort them and add up duplicates)"
    )]
    SuccessorsNotIncreasing {
        /// The position in the list of successors.
        place: ArrayIndex,
        /// The successor before it in the row.
        previous: i64,
        /// The successor found.
        found: i64,
    },
    /// The row offsets of a sparse kernel are not 0 = o_0 <= o_1 <= ... <= o_rows = number of entries.
    #[error(
        "{place} is {found}; row offsets must start at 0, never decrease and end at the number of stored entries, here {entries}"
    )]
    MalformedOffsets {
        /// The position in the list of offsets.
        place: ArrayIndex,
        /// The offset found.
        found: i64,
        /// How many entries are stored.
        entries: usize,
    },
    /// No policy of a known model meets the limit.
    #[error("no policy meets the limit {limit}: the least attainable cost is {least_cost}")]
    Infeasible {
        /// The least cost of any policy.
        least_cost: f64,
        /// The limit that was asked for.
        limit: f64,
    },
    /// A solver stopped without a reliable answer.
    #[error("the {solver} solver stopped without an answer: {status}")]
    NumericalTrouble {
        /// The solver.
        solver: &'static str,
        /// The status it reported.
        status: String,
    },
    /// The re-evaluated cost contradicts what the planner claimed.
    #[error(
        "a planned policy was to cost at most {claimed}, but re-evaluation gives {evaluated} against the limit {limit}; it is not handed on"
    )]
    CertificateFailed {
        /// The cost that the planner claimed.
        claimed: f64,
        /// What re-evaluation found.
        evaluated: f64,
        /// The limit.
        limit: f64,
    },
    /// The safe cost is not below the limit.
    #[error(
        "the safe cost {safe_cost} is not below the limit {limit}; without a margin nothing can be explored safely"
    )]
    NoSafetyMargin {
        /// c0.
        safe_cost: f64,
        /// tau.
        limit: f64,
    },
    /// A method of a learner was called out of turn.
    #[error("{called} was called out of turn; {expected} comes next")]
    OutOfTurn {
        /// What was called.
        called: &'static str,
        /// What comes next.
        expected: &'static str,
    },
    /// All episodes have been played.
    #[error(
        "all {num_episodes} episodes have been played; the guarantee covers no further one, since K enters every bonus"
    )]
    EpisodesExhausted {
        /// K.
        num_episodes: u64,
    },
    /// A run was to use an engine that does not exist for it.
    #[error("the engine {engine} cannot be used here: {reason}")]
    NoSuchEngine {
        /// The engine.
        engine: &'static str,
        /// Why it cannot.
        reason: &'static str,
    },
    /// A confidence rule that has no proof for a learner.
    #[error("the confidence rule {rule} has no proof for {learner}; it is for OptPess-LP")]
    RuleWithoutProof {
        /// The rule.
        rule: &'static str,
        /// The learner.
        learner: &'static str,
    },
    /// A stored learner or run whose parts do not fit each other.
    #[error(
        "{what} does not fit the rest of what is stored: the bytes are damaged or were made by another program"
    )]
    StoredState {
        /// The part.
        what: &'static str,
    },
    /// A run was stopped from outside.
    #[error("the run was stopped before its end")]
    Interrupted,
    /// An action that does not exist in its state was played, or has a probability.
    #[error(
        "{place} is {found}; action {action} does not exist in state {state}, where the actions are {existing:?}"
    )]
    NoSuchAction {
        /// Where.
        place: ArrayIndex,
        /// The action, or its probability.
        found: f64,
        /// The action.
        action: usize,
        /// The state.
        state: usize,
        /// The actions that exist there.
        existing: Vec<usize>,
    },
    /// A state in which no action exists.
    #[error("{place} is False for every action; every state needs at least one action")]
    NoActionExists {
        /// The row of the mask.
        place: ArrayIndex,
    },
    /// A list that needs at least one element is empty.
    #[error("{what} is empty; at least one is needed")]
    NothingGiven {
        /// What was to be given.
        what: &'static str,
    },
}

/// The result of everything that can be refused.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_is_one_number_asks_for_that_number() {
        let outside = |allowed| Error::OutOfRange {
            place: ArrayIndex::new("cost_limit", &[0]),
            found: 2.0,
            allowed,
        };
        let message = |allowed| outside(allowed).to_string();
        assert_eq!(
            message(Interval::closed(1.0, 1.0)),
            "cost_limit[0] is 2; it must be 1"
        );
        assert_eq!(
            message(Interval::open_closed(0.0, 1.0)),
            "cost_limit[0] is 2; it must lie in (0, 1]"
        );
    }
}
