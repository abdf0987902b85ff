//! One seed becomes many named, independent streams of random numbers.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The generators of one replicate. Each purpose has its own stream, so that another noise model
/// does not reshuffle the states.
#[derive(Debug)]
pub struct Streams {
    /// First and next states.
    pub states: ChaCha8Rng,
    /// Actions of randomised policies.
    pub actions: ChaCha8Rng,
    /// Noise of rewards and costs.
    pub noise: ChaCha8Rng,
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
            generator
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
    use rand::Rng;

    #[test]
    fn streams_are_repeatable_and_differ_by_seed_replicate_and_purpose() {
        let first = |mut generator: ChaCha8Rng| generator.next_u64();
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
