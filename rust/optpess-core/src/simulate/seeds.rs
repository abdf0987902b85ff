//! One seed becomes many named, independent streams of random numbers.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::lanes::Lane;
use crate::simulate::chacha::UniformBatch;

/// A stream of numbers uniform on [0, 1): those that `random::<f64>()` would draw one by one, made in
/// batches, which takes a fraction of the time.
#[derive(Debug)]
pub struct UniformStream {
    generator: ChaCha8Rng,
    numbers: UniformBatch<f64>,
}

impl UniformStream {
    fn new(generator: ChaCha8Rng) -> Self {
        let numbers = UniformBatch::new(std::slice::from_ref(&generator));
        Self { generator, numbers }
    }

    /// Leaves out the next numbers, as if they had been drawn, without making them.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        self.numbers.skip(count);
    }

    /// The next number.
    #[inline(always)]
    pub fn next_uniform(&mut self) -> f64 {
        self.numbers.next()
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
const STATES: u64 = 0;
const ACTIONS: u64 = 1;
const NOISE: u64 = 2;

/// A generator at the beginning of one of a replicate's streams. They are addressed directly: they depend
/// on (seed, replicate) only, not on what else is run. ChaCha8 is portable and value-stable, and
/// streams of one seed never meet.
fn generator(seed: u64, replicate: u64, purpose: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(replicate.wrapping_mul(PURPOSES).wrapping_add(purpose));
    generator
}

impl Streams {
    /// The streams of a replicate.
    #[must_use]
    pub fn new(seed: u64, replicate: u64) -> Self {
        let stream = |purpose| UniformStream::new(generator(seed, replicate, purpose));
        Self {
            states: stream(STATES),
            actions: stream(ACTIONS),
            noise: stream(NOISE),
        }
    }
}

/// The streams of replicates side by side, which draw no actions.
#[derive(Debug)]
pub(crate) struct BatchStreams<V> {
    /// First and next states.
    pub(super) states: UniformBatch<V>,
    /// Noise of rewards and costs, for kinds of noise that take one number each.
    pub(super) noise: UniformBatch<V>,
    /// The same of each replicate, for those that do not.
    pub(super) noise_generators: Vec<ChaCha8Rng>,
}

impl<V: Lane> BatchStreams<V> {
    /// The streams of at least one replicate; lanes without one repeat the first.
    pub(crate) fn new(seed: u64, replicates: &[u64]) -> Self {
        let generators = |purpose| -> Vec<ChaCha8Rng> {
            let replicate = |lane| replicates.get(lane).or(replicates.first());
            let replicates = (0..V::COUNT).filter_map(replicate);
            replicates
                .map(|&replicate| generator(seed, replicate, purpose))
                .collect()
        };
        Self {
            states: UniformBatch::new(&generators(STATES)),
            noise: UniformBatch::new(&generators(NOISE)),
            noise_generators: generators(NOISE),
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
        for _ in 0..500 {
            let expected: f64 = single.generator().random();
            assert_eq!(batched.next_uniform().to_bits(), expected.to_bits());
        }
    }
}
