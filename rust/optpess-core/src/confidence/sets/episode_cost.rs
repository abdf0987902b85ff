//! Bounds on a policy's expected cost from the total costs of the episodes it has played itself.
//!
//! The episodes in which a coin chose one policy have total costs whose mean given the past is V(pi; c), in \[0, H\]. A
//! confidence sequence for their mean needs no table of states: its width does not depend on |S| and |A|.

use serde::{Deserialize, Serialize};

use crate::confidence::margin::check;
use crate::confidence::sets::{Observations, PlayedCost, SubGaussianMixture};
use crate::error::{Interval, Result};

/// The variance, relative to the square of the largest cost, that is guessed before any episode, and the number of
/// episodes that the guess counts for.
const GUESSED_VARIANCE: f64 = 0.02;
const GUESS_COUNTS: f64 = 5.0;

/// What a mixture over bets loses against the best bet in hindsight, roughly, for projections.
const MIXTURE_LOSS: f64 = 2.0;

/// A running upper bound on the mean total cost of a policy's episodes; it never increases. [`PlayedCost`], or the
/// sub-Gaussian mixture for unbounded noise, with a schedule of renewals and a projection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeCost {
    played: PlayedCost,
    /// The variance proxy of a total cost; None if totals lie in \[0, largest\].
    variance_proxy: Option<f64>,
    count: u64,
    sum: f64,
    squares: f64,
    upper: f64,
    next_renewal: u64,
}

impl EpisodeCost {
    /// Nothing played yet. `largest` bounds the expected cost, and every total if observations are bounded; H steps of
    /// noise with variance proxy s^2 and a mean that varies over \[0, largest\] have the proxy largest^2/4 + H s^2.
    pub fn new(
        largest: f64,
        horizon: usize,
        observations: Observations,
        level: f64,
    ) -> Result<Self> {
        check("level", level, Interval::open(0.0, 1.0))?;
        let variance_proxy = match observations {
            Observations::Bounded => None,
            Observations::SubGaussian { variance_proxy } => {
                Some(0.25 * largest * largest + horizon as f64 * variance_proxy)
            }
        };
        Ok(Self {
            played: PlayedCost::new(largest, level),
            variance_proxy,
            count: 0,
            sum: 0.0,
            squares: 0.0,
            upper: largest,
            next_renewal: 1,
        })
    }

    /// Adds the total cost of an episode; returns whether the bound is lower than before. The bound is renewed at powers
    /// of 2, every 64 episodes, and more rarely later: a 32nd more observations change it little.
    #[inline(always)]
    pub fn observe(&mut self, total: f64) -> Result<bool> {
        let largest = self.played.largest();
        if self.variance_proxy.is_none() {
            // H observations in [0, 1] can add up to a rounding error more than H.
            self.played.observe(total.clamp(0.0, largest))?;
        }
        self.count += 1;
        self.sum += total;
        self.squares += (total / largest) * (total / largest);
        if self.count < self.next_renewal {
            return Ok(false);
        }
        self.next_renewal = if self.count < 64 {
            2 * self.count
        } else {
            self.count + (self.count / 32).max(64)
        };
        self.renew()
    }

    fn renew(&mut self) -> Result<bool> {
        let found = match self.variance_proxy {
            None => {
                self.played.renew_upper();
                self.played.upper()
            }
            Some(variance_proxy) => {
                let sequence = SubGaussianMixture::new(variance_proxy, self.level())?;
                let range = (0.0, self.played.largest());
                sequence.interval(self.count as f64, self.sum, range).1
            }
        };
        let fell = found < self.upper;
        self.upper = self.upper.min(found);
        Ok(fell)
    }

    /// The expected cost is at most this, for all numbers of episodes at once with probability 1 - level.
    #[must_use]
    #[inline(always)]
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// How many episodes were added.
    #[must_use]
    #[inline(always)]
    pub fn episodes(&self) -> u64 {
        self.count
    }

    /// The failure probability.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.played.level()
    }

    /// A guess of the bound after this many more episodes of a policy with this expected cost, at `level` if nothing was
    /// played yet. Formula: the cost + largest (sqrt(2 v t/n) + t/n) with t = ln(1/level) plus a constant. Nothing rests
    /// on it but the choice of what to play.
    #[must_use]
    pub fn projected(&self, cost: f64, more: f64) -> f64 {
        let episodes = self.count as f64 + more;
        let mean = self.sum / self.played.largest() / (self.count as f64).max(1.0);
        let variance = (self.squares - self.count as f64 * mean * mean).max(0.0);
        let variance =
            (GUESSED_VARIANCE * GUESS_COUNTS + variance) / (self.count as f64 + GUESS_COUNTS);
        let t = MIXTURE_LOSS - self.level().ln();
        let width = (2.0 * variance * t / episodes).sqrt() + t / episodes;
        (cost + self.played.largest() * width).min(self.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_falls_towards_the_mean_and_never_rises() {
        let mut cost = EpisodeCost::new(10.0, 10, Observations::Bounded, 1e-3).unwrap();
        assert_eq!(cost.upper().to_bits(), 10.0_f64.to_bits());
        let mut last = cost.upper();
        for episode in 0..4096_u32 {
            cost.observe(f64::from(episode % 5)).unwrap();
            assert!(cost.upper() <= last);
            last = cost.upper();
        }
        assert!(last > 2.0 && last < 2.2, "{last}");
        assert!(cost.projected(2.0, 1e9) < last);
    }
}
