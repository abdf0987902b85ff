//! Random generators addressed by seed, replicate and purpose, and the coin of learners that mix policies.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// How many stream numbers each replicate owns.
const PURPOSES: u64 = 4;

/// The largest number of a replicate: each owns four streams of random numbers, of which there are 2^64.
pub const MAX_REPLICATE: u64 = u64::MAX / PURPOSES;

/// The purpose of a stream; its number is part of the address.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    States = 0,
    Actions = 1,
    Noise = 2,
    Coin = 3,
}

/// A generator at the beginning of one of a replicate's streams. Streams are addressed directly: they depend
/// on (seed, replicate) only, not on other replicates. ChaCha8 is portable and value-stable, and
/// streams of one seed never overlap.
pub(crate) fn generator(seed: u64, replicate: u64, purpose: Purpose) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(
        replicate
            .wrapping_mul(PURPOSES)
            .wrapping_add(purpose as u64),
    );
    generator
}

/// Fills in the numbers that draw the actions of an episode: those that a simulation of the replicate draws in its
/// episode of that number, if it began with the first one.
pub(crate) fn action_uniforms((seed, replicate): (u64, u64), episode: u64, out: &mut [f64]) {
    let mut generator = generator(seed, replicate, Purpose::Actions);
    let first = u128::from(episode) * out.len() as u128;
    generator.set_word_pos(WORDS_A_TOSS * first);
    out.fill_with(|| generator.random());
}

/// The outcome for a uniform number: the first whose cumulative probability exceeds it. If rounding leaves the total
/// below the number, it is the last possible outcome.
#[inline(always)]
#[must_use]
pub fn draw(outcomes: impl Iterator<Item = (usize, f64)>, uniform: f64) -> usize {
    let (mut cumulative, mut last) = (0.0, 0);
    for (outcome, probability) in outcomes {
        if probability > 0.0 {
            cumulative += probability;
            last = outcome;
            if uniform < cumulative {
                break;
            }
        }
    }
    last
}

/// The seed of one episode of an environment outside of this crate, below 2^63: any episode can be played again by
/// itself. Formula: the finalizer of SplitMix64 at seed + (episode + 1) times the golden ratio. Citation: Steele, Lea,
/// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. Deviation: the last bit is dropped, because
/// some generators take no seed above 2^63.
#[must_use]
pub fn episode_seed(seed: u64, episode: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = seed.wrapping_add(episode.wrapping_add(1).wrapping_mul(GOLDEN));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) >> 1
}

/// The coin that chooses a member of a mixture before an episode starts. It is stored with its learner, so that a
/// restored learner tosses what the original would have tossed. The stored form is its address and the number of
/// tosses.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "Tosses", into = "Tosses")]
pub struct Coin {
    tosses: Tosses,
    generator: ChaCha8Rng,
}

/// Where a coin's stream is, and how many numbers were drawn from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Tosses {
    seed: u64,
    replicate: u64,
    count: u64,
}

/// A toss draws 64 bits, two words of the stream.
const WORDS_A_TOSS: u128 = 2;

impl From<Tosses> for Coin {
    fn from(tosses: Tosses) -> Self {
        let mut generator = generator(tosses.seed, tosses.replicate, Purpose::Coin);
        generator.set_word_pos(WORDS_A_TOSS * u128::from(tosses.count));
        Self { tosses, generator }
    }
}

impl From<Coin> for Tosses {
    fn from(coin: Coin) -> Self {
        coin.tosses
    }
}

impl Clone for Coin {
    fn clone(&self) -> Self {
        self.tosses.into()
    }
}

impl Coin {
    /// The coin of a replicate; a live learner is replicate 0 of its seed.
    #[must_use]
    pub fn new(seed: u64, replicate: u64) -> Self {
        let count = 0;
        Tosses {
            seed,
            replicate,
            count,
        }
        .into()
    }

    /// A number uniform on [0, 1).
    #[inline(always)]
    pub fn toss(&mut self) -> f64 {
        self.tosses.count += 1;
        self.generator.random()
    }

    /// True with the probability `weight` rounded down to a multiple of 2^-53.
    pub fn toss_for(&mut self, weight: f64) -> bool {
        self.toss() + f64::EPSILON / 2.0 <= weight
    }

    /// How often it was tossed.
    #[must_use]
    pub fn tosses(&self) -> u64 {
        self.tosses.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_coin_goes_on_as_the_original_would() {
        let mut coin = Coin::new(3, 1);
        for _ in 0..5 {
            coin.toss();
        }
        let mut copy = coin.clone();
        for _ in 0..40 {
            assert_eq!(coin.toss().to_bits(), copy.toss().to_bits());
        }
        assert_eq!(copy.tosses(), 45);
        let share = (0..4000).filter(|_| copy.toss_for(0.25)).count();
        assert!((900..1100).contains(&share), "{share}");
        assert!(!copy.toss_for(0.0) && copy.toss_for(1.0));
        let mut other = Coin::new(3, 2);
        assert_ne!(coin.toss().to_bits(), other.toss().to_bits());
    }
}
