//! The trait of numbers that formulas are written for: one f64, or several side by side; and counts as numbers.

/// The largest count: every whole number up to it is an f64, to which no other whole number is rounded.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// A count of at most [`MAX_COUNT`], exactly.
#[must_use]
#[inline(always)]
pub fn from_count(count: u64) -> f64 {
    // Processors convert signed integers in one instruction.
    count as i64 as f64
}

/// One number, or several side by side to which the same operations are applied. A formula written for `Number` has the
/// same bits for one replicate and for each of several.
pub trait Number: Copy + Default {
    /// How many numbers there are.
    const COUNT: usize;
    /// The same number everywhere.
    fn all(number: f64) -> Self;
    /// f of each number.
    fn map(self, f: impl Fn(f64) -> f64) -> Self;
    /// f of each number and its partner.
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self;
    /// The number of `yes` where the first of `pair` is greater than the second, else that of `no`.
    fn select_greater(pair: (Self, Self), yes: Self, no: Self) -> Self;

    /// One of the numbers.
    fn lane(&self, lane: usize) -> f64;
    /// The number of each lane.
    fn from_lanes(number: impl Fn(usize) -> f64) -> Self;

    /// The sums.
    #[must_use]
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Number for f64 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn all(number: f64) -> Self {
        number
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        f(self)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        f(self, other)
    }

    #[inline(always)]
    fn select_greater((x, y): (Self, Self), yes: Self, no: Self) -> Self {
        if x > y { yes } else { no }
    }

    #[inline(always)]
    fn lane(&self, _: usize) -> f64 {
        *self
    }

    #[inline(always)]
    fn from_lanes(number: impl Fn(usize) -> f64) -> Self {
        number(0)
    }
}
