//! Independent streams of random numbers, addressed by seed, replicate and purpose.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::random::{Purpose, generator};

/// A stream of numbers uniform on [0, 1): those that `random::<f64>()` of its generator returns.
pub trait Uniforms: From<ChaCha8Rng> {
    /// The next number.
    fn next_uniform(&mut self) -> f64;
    /// Skips the next numbers, as if they had been drawn.
    fn skip(&mut self, count: usize);
    /// The generator, for distributions that use a varying number of draws. A stream is used either through this
    /// method or through the other two.
    fn generator(&mut self) -> &mut ChaCha8Rng;
}

/// Draws one number at a time.
#[derive(Debug)]
pub struct PlainUniforms(ChaCha8Rng);

impl From<ChaCha8Rng> for PlainUniforms {
    fn from(generator: ChaCha8Rng) -> Self {
        Self(generator)
    }
}

impl Uniforms for PlainUniforms {
    #[inline(always)]
    fn next_uniform(&mut self) -> f64 {
        self.0.random()
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next_uniform();
        }
    }

    fn generator(&mut self) -> &mut ChaCha8Rng {
        &mut self.0
    }
}

/// The streams of one replicate. Each purpose has its own, so that another noise model does not change the states.
#[derive(Debug)]
pub struct StreamSet<U> {
    /// First and next states.
    pub states: U,
    /// Actions of randomised policies.
    pub actions: U,
    /// Noise of rewards and costs.
    pub noise: U,
}

/// Plain streams.
pub type Streams = StreamSet<PlainUniforms>;

impl<U: Uniforms> StreamSet<U> {
    /// The streams of a replicate.
    #[must_use]
    pub fn new(seed: u64, replicate: u64) -> Self {
        let stream = |purpose| U::from(generator(seed, replicate, purpose));
        Self {
            states: stream(Purpose::States),
            actions: stream(Purpose::Actions),
            noise: stream(Purpose::Noise),
        }
    }

    /// Moves fresh streams to where they are after some episodes of a model with this horizon and number of costs.
    /// Noise that takes one number each is drawn from the stream; `noise_words` is where the generator of other noise
    /// is.
    pub(crate) fn advance(
        &mut self,
        episodes: u64,
        [horizon, num_costs]: [usize; 2],
        noise_words: u128,
    ) {
        let steps = episodes as usize * horizon;
        self.states.skip(steps);
        self.actions.skip(steps);
        self.noise.skip((1 + num_costs) * steps);
        self.noise.generator().set_word_pos(noise_words);
    }

    /// Where the generator of noise is that takes a varying number of draws.
    pub(crate) fn noise_words(&mut self) -> u128 {
        self.noise.generator().get_word_pos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_differ_by_seed_replicate_and_purpose() {
        let first = |mut stream: PlainUniforms| stream.next_uniform().to_bits();
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
}
