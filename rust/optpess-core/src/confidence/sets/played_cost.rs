//! Bounds on the expected cost of a policy from the total costs of the episodes it has played.

use serde::{Deserialize, Serialize};

use crate::confidence::sets::BoundedMean;
use crate::error::{ArrayIndex, Error, Interval, Result};

/// The total costs of the episodes of one policy and one constraint, and what they say about their mean V.
///
/// Formula: U = C times the least upper bound on the mean of X/C so far, C the largest possible cost of an episode.
/// Proof: given the past, an episode's cost lies in \[0, C\] and has mean V, so the bounds of [`BoundedMean`] hold at
/// all times at once with probability at least 1 - level, and so does the least of them. Deviation: none. It uses
/// neither states nor actions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlayedCost {
    mean: BoundedMean,
    largest: f64,
    level: f64,
    upper: f64,
    lower: f64,
}

impl PlayedCost {
    /// Before the first episode, with the largest possible cost C > 0 and a level in (0, 1) for each side.
    #[must_use]
    pub fn new(largest: f64, level: f64) -> Self {
        Self {
            mean: BoundedMean::new(),
            largest,
            level,
            upper: largest,
            lower: 0.0,
        }
    }

    /// Whether it can have come from `fresh`, which has seen nothing, by adding episodes.
    pub(crate) fn continues(&self, fresh: &Self) -> bool {
        let Self { largest, level, .. } = *fresh;
        let same = |found: f64, given: f64| found.to_bits() == given.to_bits();
        let is_range = 0.0 <= self.lower && self.upper <= largest && self.upper >= 0.0;
        let has_bounds =
            self.episodes() > 0 || (same(self.lower, 0.0) && same(self.upper, largest));
        let is_same = same(self.largest, largest) && same(self.level, level);
        is_same && is_range && has_bounds && self.mean.is_possible()
    }

    /// Refuses a cost outside \[0, C\]; `constraint` names it.
    pub fn check(&self, constraint: usize, cost: f64) -> Result<()> {
        let allowed = Interval::closed(0.0, self.largest);
        if allowed.contains(cost) {
            return Ok(());
        }
        Err(Error::OutOfRange {
            place: ArrayIndex::new("cost", &[constraint]),
            found: cost,
            allowed,
        })
    }

    /// Adds an episode; the bounds stay those of the last [`renew`](Self::renew). Refuses a cost outside \[0, C\].
    pub fn observe(&mut self, cost: f64) -> Result<()> {
        self.check(0, cost)?;
        self.mean.observe((cost / self.largest).min(1.0))
    }

    /// Computes both bounds; the upper one never increases and the lower one never decreases.
    pub fn renew(&mut self) {
        self.renew_upper();
        self.renew_lower();
    }

    /// Computes the lower bound alone.
    pub fn renew_lower(&mut self) {
        let lower = self.largest * self.mean.lower(self.level) * (1.0 - 4.0 * f64::EPSILON);
        self.lower = self.lower.max(lower);
    }

    /// Computes the upper bound alone.
    pub fn renew_upper(&mut self) {
        let upper = self.largest * self.mean.upper(self.level) * (1.0 + 4.0 * f64::EPSILON);
        self.upper = self.upper.min(upper);
    }

    /// U: with probability at least 1 - level, never below the expected cost. C before the first episode.
    #[must_use]
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// With probability at least 1 - level, never above the expected cost.
    #[must_use]
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// How many episodes were added.
    #[must_use]
    pub fn episodes(&self) -> u64 {
        self.mean.observations()
    }

    /// The average cost; None before the first episode.
    #[must_use]
    pub fn average(&self) -> Option<f64> {
        (self.episodes() > 0).then(|| self.largest * self.mean.mean())
    }

    /// The level of each side.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level
    }

    /// C.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_enclose_the_average_and_move_towards_each_other() {
        let mut played = PlayedCost::new(8.0, 1e-3);
        assert_eq!((played.lower(), played.upper()), (0.0, 8.0));
        assert_eq!(played.average(), None);
        let (mut low, mut high) = (0.0, 8.0);
        for episode in 0..3000_u32 {
            played.observe(f64::from(episode % 3) + 0.5).unwrap();
            played.renew();
            assert!(played.lower() >= low && played.upper() <= high);
            (low, high) = (played.lower(), played.upper());
        }
        let average = played.average().unwrap();
        assert!((average - 1.5).abs() < 1e-12);
        assert!(
            low < average && average < high && high - low < 0.3,
            "{low} {high}"
        );
        assert_eq!(played.episodes(), 3000);
    }

    #[test]
    fn a_cost_outside_the_range_is_refused_and_changes_nothing() {
        let mut played = PlayedCost::new(2.0, 0.1);
        played.observe(2.0).unwrap();
        let before = played;
        for cost in [-0.1, 2.1, f64::NAN, f64::INFINITY] {
            let refusal = played.observe(cost).unwrap_err().to_string();
            assert!(refusal.starts_with("cost[0] is "), "{refusal}");
        }
        assert_eq!(played, before);
    }
}
