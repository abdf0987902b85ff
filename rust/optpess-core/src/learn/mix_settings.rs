//! The settings of OptPess-Mix, and the split of delta between its two certificates.

use crate::confidence::{Observations, check_failure_probability};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::knowledge::Knowledge;
use crate::learn::Exploration;

/// The part of delta that the confidence sets may spend; the bounds from own episodes spend the rest.
pub(super) const SETS_SHARE: f64 = 0.5;

/// What a user chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct MixSettings {
    /// delta.
    pub failure_probability: f64,
    /// A factor on every radius of the certificates; below 1 there is no guarantee.
    pub radius_factor: f64,
    /// What is known of the problem.
    pub knowledge: Knowledge,
    /// What is known of observed costs.
    pub observations: Observations,
    /// The explorer's share and sets.
    pub exploration: Exploration,
    /// A new plan is due when some count has grown by this part.
    pub replan_growth: f64,
    /// The seed of the coin.
    pub seed: u64,
}

impl MixSettings {
    /// Refuses numbers out of range, by name.
    pub(super) fn check(&self) -> Result<()> {
        check_failure_probability(self.failure_probability)?;
        let (unit, least) = (Interval::closed(0.0, 1.0), Interval::closed(0.0, f64::MAX));
        let Exploration {
            share,
            least_share,
            threshold,
        } = self.exploration;
        let numbers = [
            ("exploration share", share, unit),
            ("exploration least_share", least_share, unit),
            ("exploration threshold", threshold, least),
            ("replan_growth", self.replan_growth, least),
            (
                "radius factor",
                self.radius_factor,
                Interval::open_closed(0.0, f64::MAX),
            ),
        ];
        let proxy = match self.observations {
            Observations::Bounded => None,
            Observations::SubGaussian { variance_proxy } => Some((
                "variance_proxy",
                variance_proxy,
                Interval::open_closed(0.0, f64::MAX),
            )),
        };
        for (name, found, allowed) in numbers.into_iter().chain(proxy) {
            if !allowed.contains(found) {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::scalar(name),
                    found,
                    allowed,
                });
            }
        }
        Ok(())
    }
}
