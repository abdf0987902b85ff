//! ChaCha8, sixteen blocks at a time: the numbers of [`rand::rngs::ChaCha8Rng`], computed as floats in the lanes
//! of vectors. This takes a third of the time of drawing bytes and converting them.

use std::marker::PhantomData;

use rand::rngs::ChaCha8Rng;

use crate::fast::isa::{Job, vectorised};
use crate::fast::lane::Lane;
use crate::fast::lanes::LANES;
use crate::random::{Purpose, generator};
use crate::simulate::Uniforms;

/// Words of 32 bits of a block, and of the key.
const WORDS: usize = 16;
const KEY_WORDS: usize = 8;
/// A number takes two words.
const BLOCK_NUMBERS: usize = WORDS / 2;
/// How many blocks are made at a time: as many as the widest vector has words.
const BLOCKS: usize = 2 * LANES;
const BATCH: usize = BLOCK_NUMBERS * BLOCKS;
/// "expand 32-byte k"
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Sixteen blocks of one key from `first_block` on: of one stream if `SINGLE`, else two of each of eight.
struct KeystreamBlocks<'a, const SINGLE: bool> {
    key: &'a [u32; KEY_WORDS],
    first_block: u64,
    streams: &'a [u64; LANES],
    /// Where their numbers are written: one after the other if `SINGLE`, else the first numbers of all streams, then
    /// the second ones, and so on.
    batch: &'a mut [f64; BATCH],
}

impl<const SINGLE: bool> Job for KeystreamBlocks<'_, SINGLE> {
    type Output = ();

    /// The rounds are unrolled and the first loop has no 64-bit operation, so that the compiler uses vectors of 32-bit
    /// words.
    #[inline(always)]
    fn run(self) {
        let mut places = [[0; BLOCKS]; 4];
        for lane in 0..BLOCKS {
            let ahead = if SINGLE { lane } else { lane / LANES };
            let block = self.first_block.wrapping_add(ahead as u64);
            let stream = self.streams[lane % LANES];
            (places[0][lane], places[1][lane]) = (block as u32, (block >> 32) as u32);
            (places[2][lane], places[3][lane]) = (stream as u32, (stream >> 32) as u32);
        }
        let mut low_words = [[0; BLOCKS]; BLOCK_NUMBERS];
        let mut high_words = [[0; BLOCKS]; BLOCK_NUMBERS];
        for lane in 0..BLOCKS {
            let mut first = [0; WORDS];
            first[..4].copy_from_slice(&CONSTANTS);
            first[4..12].copy_from_slice(self.key);
            for (word, place) in first[12..].iter_mut().zip(&places) {
                *word = place[lane];
            }
            let mut words = first;
            double_round(&mut words);
            double_round(&mut words);
            double_round(&mut words);
            double_round(&mut words);
            for place in 0..BLOCK_NUMBERS {
                let [low, high] = [2 * place, 2 * place + 1];
                low_words[place][lane] = words[low].wrapping_add(first[low]);
                high_words[place][lane] = words[high].wrapping_add(first[high]);
            }
        }
        let mut numbers = [0.0; BATCH];
        let words = low_words.as_flattened().iter();
        let words = words.zip(high_words.as_flattened());
        for (number, (&low, &high)) in numbers.iter_mut().zip(words) {
            // The upper 53 of 64 bits; both products and their sum are exact.
            *number = f64::from(high) * (1.0 / (1_u64 << 32) as f64)
                + f64::from(low >> 11) * (1.0 / (1_u64 << 53) as f64);
        }
        let side_by_side = if SINGLE { 1 } else { LANES };
        for (target, number) in self.batch.iter_mut().enumerate() {
            let (time, stream) = (target / side_by_side, target % side_by_side);
            let (block, place) = (time / BLOCK_NUMBERS, time % BLOCK_NUMBERS);
            *number = numbers[place * BLOCKS + block * side_by_side + stream];
        }
    }
}

#[inline(always)]
fn double_round(words: &mut [u32; WORDS]) {
    quarter_round(words, [0, 4, 8, 12]);
    quarter_round(words, [1, 5, 9, 13]);
    quarter_round(words, [2, 6, 10, 14]);
    quarter_round(words, [3, 7, 11, 15]);
    quarter_round(words, [0, 5, 10, 15]);
    quarter_round(words, [1, 6, 11, 12]);
    quarter_round(words, [2, 7, 8, 13]);
    quarter_round(words, [3, 4, 9, 14]);
}

#[inline(always)]
fn quarter_round(words: &mut [u32; WORDS], [a, b, c, d]: [usize; 4]) {
    words[a] = words[a].wrapping_add(words[b]);
    words[d] = (words[d] ^ words[a]).rotate_left(16);
    words[c] = words[c].wrapping_add(words[d]);
    words[b] = (words[b] ^ words[c]).rotate_left(12);
    words[a] = words[a].wrapping_add(words[b]);
    words[d] = (words[d] ^ words[a]).rotate_left(8);
    words[c] = words[c].wrapping_add(words[d]);
    words[b] = (words[b] ^ words[c]).rotate_left(7);
}

/// Numbers uniform on [0, 1) of one stream (`V` is f64), or of eight streams in step.
#[derive(Debug, Clone)]
pub(crate) struct UniformBatch<V> {
    key: [u32; KEY_WORDS],
    streams: [u64; LANES],
    next_block: u64,
    batch: [f64; BATCH],
    used: usize, // numbers of the batch, those of all streams together
    /// How many numbers after the batch are to be skipped.
    skipped: u64,
    width: PhantomData<V>,
}

impl<V: Lane> UniformBatch<V> {
    /// The numbers these generators would draw from the beginning of their streams. All have one key;
    /// lanes without a generator repeat the first.
    pub(super) fn new(generators: &[ChaCha8Rng]) -> Self {
        let mut key = [0; KEY_WORDS];
        let mut streams = [0; LANES];
        if let Some(first) = generators.first() {
            let seed = first.get_seed();
            for (target, word) in key.iter_mut().zip(seed.as_chunks().0) {
                *target = u32::from_le_bytes(*word);
            }
            for (lane, stream) in streams.iter_mut().enumerate() {
                *stream = generators.get(lane).unwrap_or(first).get_stream();
            }
        }
        Self {
            key,
            streams,
            next_block: 0,
            batch: [0.0; BATCH],
            used: BATCH,
            skipped: 0,
            width: PhantomData,
        }
    }

    /// The next number of each stream.
    #[inline(always)]
    pub(super) fn next(&mut self) -> V {
        let start = self.used;
        if start > BATCH - V::COUNT {
            return self.first_of_next_batch();
        }
        self.used = start + V::COUNT;
        let mut next = V::default();
        for (lane, number) in self.batch[start..][..V::COUNT].iter().enumerate() {
            *next.lane_mut(lane) = *number;
        }
        next
    }

    #[inline(never)]
    fn first_of_next_batch(&mut self) -> V {
        self.refill();
        self.next()
    }

    #[inline(always)]
    fn refill(&mut self) {
        self.next_block += self.skipped / BLOCK_NUMBERS as u64;
        self.used = V::COUNT * (self.skipped % BLOCK_NUMBERS as u64) as usize;
        self.skipped = 0;
        let (key, streams) = (&self.key, &self.streams);
        let (first_block, batch) = (self.next_block, &mut self.batch);
        if V::COUNT == 1 {
            vectorised(KeystreamBlocks::<true> {
                key,
                first_block,
                streams,
                batch,
            });
            self.next_block += BLOCKS as u64;
        } else {
            vectorised(KeystreamBlocks::<false> {
                key,
                first_block,
                streams,
                batch,
            });
            self.next_block += (BLOCKS / LANES) as u64;
        }
    }
}

impl UniformBatch<f64> {
    /// Skips the next numbers, as if they had been drawn, without computing them.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: usize) {
        let wanted = self.used + count;
        self.used = wanted.min(BATCH);
        self.skipped += (wanted - self.used) as u64;
    }
}

/// A stream whose numbers are computed in batches.
#[derive(Debug)]
pub(crate) struct BatchedUniforms {
    generator: ChaCha8Rng,
    numbers: UniformBatch<f64>,
}

impl From<ChaCha8Rng> for BatchedUniforms {
    fn from(generator: ChaCha8Rng) -> Self {
        let numbers = UniformBatch::new(std::slice::from_ref(&generator));
        Self { generator, numbers }
    }
}

impl Uniforms for BatchedUniforms {
    #[inline(always)]
    fn next_uniform(&mut self) -> f64 {
        self.numbers.next()
    }

    /// The skipped numbers are not computed.
    #[inline(always)]
    fn skip(&mut self, count: usize) {
        self.numbers.skip(count);
    }

    fn generator(&mut self) -> &mut ChaCha8Rng {
        &mut self.generator
    }
}

/// The streams of the replicates of a batch. Action tables draw no actions, so there is no stream for them.
#[derive(Debug)]
pub(crate) struct BatchStreams<V> {
    /// First and next states.
    pub(crate) states: UniformBatch<V>,
    /// Noise of rewards and costs, for kinds of noise that take one number each.
    pub(crate) noise: UniformBatch<V>,
    /// Generators of the noise of each replicate, for other kinds of noise.
    pub(crate) noise_generators: Vec<ChaCha8Rng>,
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
            states: UniformBatch::new(&generators(Purpose::States)),
            noise: UniformBatch::new(&generators(Purpose::Noise)),
            noise_generators: generators(Purpose::Noise),
        }
    }

    /// Moves fresh streams to where they are after some episodes of a model with this horizon and one cost;
    /// `noise_words` is where the noise generator of each replicate is.
    pub(crate) fn advance(&mut self, episodes: u64, horizon: usize, noise_words: &[u128]) {
        let steps = episodes * horizon as u64;
        self.states.skipped += steps;
        self.noise.skipped += 2 * steps; // a reward and a cost
        for (lane, generator) in self.noise_generators.iter_mut().enumerate() {
            let words = noise_words.get(lane).or(noise_words.first());
            generator.set_word_pos(words.copied().unwrap_or(0));
        }
    }

    /// Where the noise generator of a replicate is.
    pub(crate) fn noise_words(&self, lane: usize) -> u128 {
        self.noise_generators[lane].get_word_pos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::PlainUniforms;

    #[test]
    fn numbers_that_are_left_out_are_those_that_would_be_drawn() {
        let stream = || BatchedUniforms::from(generator(5, 1, Purpose::States));
        let (mut skipping, mut drawing) = (stream(), stream());
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
        let mut batched = BatchedUniforms::from(generator(5, 1, Purpose::States));
        let mut single = PlainUniforms::from(generator(5, 1, Purpose::States));
        for _ in 0..500 {
            let (found, expected) = (batched.next_uniform(), single.next_uniform());
            assert_eq!(found.to_bits(), expected.to_bits());
        }
    }
}
