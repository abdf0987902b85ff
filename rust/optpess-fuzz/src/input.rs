//! Numbers, sizes and choices read from the bytes of an input. Bytes that have run out read as zeros.

use arbitrary::Unstructured;

/// Floats at the edges of what arithmetic can do, and some ordinary ones.
const SPECIAL: [f64; 32] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    0.25,
    1.0 / 3.0,
    2.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    1e-310,
    1e-300,
    1e-200,
    1e-153,
    1e-17,
    1e-9,
    1e9,
    1e17,
    1e154,
    1e200,
    1e300,
    1.7e308,
    0.999_999_999_999_999_9,
    1.000_000_000_000_000_2,
    1.000_000_000_5,
    -200.0,
    9_007_199_254_740_992.0,
];

/// A reader of an input.
pub struct Input<'a>(Unstructured<'a>);

impl<'a> Input<'a> {
    /// From the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// Whether there are bytes left.
    pub fn has_more(&self) -> bool {
        !self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.0.bytes(1).map_or(0, |bytes| bytes[0])
    }

    /// A number in [0, count).
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// Eight bytes as a number.
    pub fn word(&mut self) -> u64 {
        let mut word = [0; 8];
        word.iter_mut().for_each(|byte| *byte = self.byte());
        u64::from_le_bytes(word)
    }

    /// Any float: special ones, parts of 16 and any bits.
    pub fn float(&mut self) -> f64 {
        match self.byte() {
            tag @ 0..0x80 => f64::from(tag % 17) / 16.0,
            tag @ 0x80..0xe0 => SPECIAL[usize::from(tag) % SPECIAL.len()],
            _ => f64::from_bits(self.word()),
        }
    }

    /// A float that is finite; any other becomes a half.
    pub fn finite(&mut self) -> f64 {
        Some(self.float())
            .filter(|found| found.is_finite())
            .unwrap_or(0.5)
    }

    /// Mostly a float in [0, 1], seldom any other.
    pub fn unit(&mut self) -> f64 {
        match self.byte() {
            0xf0.. => self.float(),
            tag => f64::from(tag % 17) / 16.0,
        }
    }

    /// A list of floats.
    pub fn list(&mut self, length: usize, mut entry: impl FnMut(&mut Self) -> f64) -> Vec<f64> {
        (0..length).map(|_| entry(self)).collect()
    }

    /// Mostly this length, seldom one more or less.
    pub fn length(&mut self, expected: usize) -> usize {
        match self.byte() {
            0xfe => expected + 1,
            0xff => expected.saturating_sub(1),
            _ => expected,
        }
    }

    /// A row of probabilities: mostly whole numbers over their sum, seldom any floats.
    pub fn row(&mut self, length: usize) -> Vec<f64> {
        if self.byte() >= 0xf0 {
            return self.list(length, Self::float);
        }
        let mut row: Vec<f64> = (0..length).map(|_| f64::from(self.byte() % 8)).collect();
        let total: f64 = row.iter().sum();
        if total > 0.0 {
            row.iter_mut().for_each(|entry| *entry /= total);
        } else {
            row[0] = 1.0;
        }
        row
    }
}
