//! One seed becomes many named, independent streams of random numbers.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// How many numbers are made at a time: as many as the generator makes at once.
const BATCH: usize = 32;

/// A stream of numbers uniform on [0, 1): those that `random::<f64>()` would draw one by one, made in
/// batches, which takes half the time.
#[derive(Debug)]
pub struct UniformStream {
    generator: ChaCha8Rng,
    batch: [f64; BATCH],
    used: usize,
    /// How many numbers behind the batch are to be left out.
    skipped: u64,
}

impl UniformStream {
    fn new(generator: ChaCha8Rng) -> Self {
        Self {
            generator,
            batch: [0.0; BATCH],
            used: BATCH,
            skipped: 0,
        }
    }

    /// Leaves out the next numbers, as if they had been drawn, without making them.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        let wanted = self.used + count;
        self.used = wanted.min(BATCH);
        self.skipped += (wanted - self.used) as u64;
    }

    /// The next number.
    #[inline(always)]
    pub fn next_uniform(&mut self) -> f64 {
        if let Some(&number) = self.batch.get(self.used) {
            self.used += 1;
            return number;
        }
        self.refill()
    }

    #[inline(never)]
    fn refill(&mut self) -> f64 {
        const WORD: usize = size_of::<u64>();
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        if self.skipped > 0 {
            // The generator counts in words of 32 bits.
            let place = self.generator.get_word_pos() + 2 * u128::from(self.skipped);
            self.generator.set_word_pos(place);
            self.skipped = 0;
        }
        let mut bytes = [0; BATCH * WORD];
        self.generator.fill_bytes(&mut bytes);
        let (words, _) = bytes.as_chunks::<WORD>();
        for (number, word) in self.batch.iter_mut().zip(words) {
            // 53 bits fit a signed number, which processors convert in one instruction.
            *number = (u64::from_le_bytes(*word) >> 11) as i64 as f64 * UNIT;
        }
        self.used = 1;
        self.batch[0]
    }

    /// The generator, for distributions that take another number of draws each time. A stream is used
    /// either this way or by [`UniformStream::next_uniform`].
    pub fn generator(&mut self) -> &mut ChaCha8Rng {
        &mut self.generator
    }
}

/// The generators of one replicate. Each purpose has its own stream, so that another noise model
/// does not reshuffle the states.
#[derive(Debug)]
pub struct Streams {
    /// First and next states.
    pub states: UniformStream,
    /// Actions of randomised policies.
    pub actions: UniformStream,
    /// Noise of rewards and costs.
    pub noise: UniformStream,
}

/// How many stream numbers each replicate owns.
const PURPOSES: u64 = 4;

impl Streams {
    /// The streams of a replicate, addressed directly: they depend on (seed, replicate) only, not on
    /// what else is run. ChaCha8 is portable and value-stable, and streams of one seed never meet.
    #[must_use]
    pub fn new(seed: u64, replicate: u64) -> Self {
        let stream = |purpose: u64| {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(replicate.wrapping_mul(PURPOSES).wrapping_add(purpose));
            UniformStream::new(generator)
        };
        Self {
            states: stream(0),
            actions: stream(1),
            noise: stream(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn streams_are_repeatable_and_differ_by_seed_replicate_and_purpose() {
        let first = |mut stream: UniformStream| stream.next_uniform().to_bits();
        let expected = first(Streams::new(7, 3).states);
        assert_eq!(expected, first(Streams::new(7, 3).states));
        let others = [
            Streams::new(7, 3).actions,
            Streams::new(7, 3).noise,
            Streams::new(7, 2).states,
            Streams::new(8, 3).states,
        ];
        for other in others {
            assert_ne!(expected, first(other));
        }
    }

    #[test]
    fn numbers_that_are_left_out_are_those_that_would_be_drawn() {
        let (mut skipping, mut drawing) = (Streams::new(5, 1).states, Streams::new(5, 1).states);
        for (left_out, drawn) in [
            (3, 2),
            (0, 1),
            (40, 5),
            (26, 1),
            (32, 40),
            (1000, 3),
            (7, 90),
        ] {
            skipping.skip(left_out);
            (0..left_out).for_each(|_| {
                drawing.next_uniform();
            });
            for _ in 0..drawn {
                let (found, expected) = (skipping.next_uniform(), drawing.next_uniform());
                assert_eq!(found.to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn a_batch_holds_what_would_be_drawn_one_by_one() {
        let (mut batched, mut single) = (Streams::new(5, 1).states, Streams::new(5, 1).states);
        for _ in 0..5 * BATCH {
            let expected: f64 = single.generator().random();
            assert_eq!(batched.next_uniform().to_bits(), expected.to_bits());
        }
    }
}
