//! What a caller states of observed rewards and costs: their ranges, and whether noise may leave them.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::noise_reach;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::learn::{AnyLearner, Learner};
use crate::number::from_count;
use crate::trajectory::Trajectory;

/// The least and the largest reward, or cost, of a step in the caller's units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ValueRange {
    low: f64,
    high: f64,
}

impl ValueRange {
    /// [0, 1], in which the learners compute.
    pub const UNIT: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// The range [low, high]; both finite, the first below the second.
    pub fn new(name: &'static str, low: f64, high: f64) -> Result<Self> {
        let place = || ArrayIndex::scalar(name);
        for found in [low, high, high - low] {
            if !found.is_finite() {
                return Err(Error::NotFinite {
                    place: place(),
                    found,
                });
            }
        }
        if low >= high {
            return Err(Error::OutOfRange {
                place: ArrayIndex::new(name, &[0]),
                found: low,
                allowed: Interval::open(f64::MIN, high),
            });
        }
        Ok(Self { low, high })
    }

    /// The value as a part of the range. [0, 1] is not touched.
    #[inline(always)]
    fn to_unit(self, value: f64) -> f64 {
        if self == Self::UNIT {
            return value;
        }
        (value - self.low) / (self.high - self.low)
    }
}

/// The ranges of a learner's observations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservationRanges {
    reward: ValueRange,
    costs: Vec<ValueRange>, // [M]
    /// The variance proxy of noise that may leave the ranges, in parts of them; None if there is none.
    variance_proxy: Option<f64>,
}

impl ObservationRanges {
    /// The ranges of the reward and of each cost. With a variance proxy (in parts of a range) noise may leave them.
    #[must_use]
    pub fn new(reward: ValueRange, costs: Vec<ValueRange>, variance_proxy: Option<f64>) -> Self {
        Self {
            reward,
            costs,
            variance_proxy,
        }
    }

    /// [0, 1] for the reward and for each cost.
    #[must_use]
    pub fn unit(num_costs: usize) -> Self {
        Self::new(ValueRange::UNIT, vec![ValueRange::UNIT; num_costs], None)
    }

    /// The same with another range of the reward.
    #[must_use]
    pub(super) fn with_reward(self, reward: ValueRange) -> Self {
        Self { reward, ..self }
    }

    /// Whether stored ranges are those of so many costs, and finite.
    pub(super) fn fits(&self, num_costs: usize) -> bool {
        let mut ranges = self.costs.iter().chain([&self.reward]);
        let proxy = self
            .variance_proxy
            .is_none_or(|proxy| proxy > 0.0 && proxy.is_finite());
        let are_ranges =
            ranges.all(|range| ValueRange::new("range", range.low, range.high).is_ok());
        proxy && are_ranges && self.costs.len() == num_costs
    }

    /// The number of costs.
    #[must_use]
    pub fn num_costs(&self) -> usize {
        self.costs.len()
    }

    /// An observed reward as a part of its range; refused if it is outside.
    #[inline]
    pub(super) fn reward_in(&self, step: usize, reward: f64) -> Result<f64> {
        self.value_in(reward, self.reward, || {
            let reasons = [
                "the learner's reward_range",
                "the learner's reward_range and what noise can add to it",
            ];
            (ArrayIndex::new("rewards", &[step]), reasons)
        })
    }

    /// An observed cost as a part of its range; refused if it is outside.
    #[inline]
    pub(super) fn cost_in(&self, constraint: usize, step: usize, cost: f64) -> Result<f64> {
        self.value_in(cost, self.costs[constraint], || {
            let place = match self.costs.len() {
                1 => ArrayIndex::new("costs", &[step]),
                _ => ArrayIndex::new("costs", &[constraint, step]),
            };
            let reasons = [
                "the learner's cost_range",
                "the learner's cost_range and what noise can add to it",
            ];
            (place, reasons)
        })
    }

    /// The reward and the costs of a step that earns and costs nothing, as after an early end; refused if a range does
    /// not contain 0.
    pub(super) fn nothing(&self, step: usize) -> Result<(f64, Vec<f64>)> {
        let costs = (0..self.costs.len()).map(|m| self.cost_in(m, step, 0.0));
        Ok((self.reward_in(step, 0.0)?, costs.collect::<Result<_>>()?))
    }

    #[inline]
    fn value_in(
        &self,
        value: f64,
        range: ValueRange,
        describe: impl Fn() -> (ArrayIndex, [&'static str; 2]),
    ) -> Result<f64> {
        let noise = match self.variance_proxy {
            None => 0.0,
            Some(proxy) => noise_reach(proxy) * (range.high - range.low),
        };
        let allowed = Interval::closed(range.low - noise, range.high + noise);
        if allowed.contains(value) {
            return Ok(range.to_unit(value));
        }
        let (place, reasons) = describe();
        Err(if value.is_finite() {
            Error::ObservationOutOfRange {
                place,
                found: value,
                allowed,
                reason: reasons[usize::from(self.variance_proxy.is_some())],
            }
        } else {
            Error::NotFinite {
                place,
                found: value,
            }
        })
    }

    /// Refuses an episode after which an average of N observations whose noise may leave the ranges is farther from
    /// [0, 1] than noise carries such an average: the mean does not lie in its range then. Of several costs the first is
    /// averaged. Stand-ins have the counts of the action they stand in for.
    ///
    /// Formula: the average of N observations has the variance proxy v / N, so it is [`noise_reach`] of that away at most,
    /// except with probability exp(-49) each time; a single observation is refused where it is without this rule.
    pub(super) fn check_averages(&self, learner: &AnyLearner, seen: &Trajectory) -> Result<()> {
        let Some(proxy) = self.variance_proxy else {
            return Ok(());
        };
        let shape = learner.shape();
        if seen.shape() != shape {
            return Ok(()); // which the learner refuses
        }
        let (rewards, costs) = learner.estimates().sums();
        for step in 0..shape.horizon() {
            let (state, action) = (seen.states()[step] as usize, seen.actions()[step] as usize);
            let row = step * shape.pairs() + shape.pair(state, action);
            let visits = from_count(learner.estimates().visits()[row] + 1);
            let radius = noise_reach(proxy / visits);
            let sums = [
                ("rewards", rewards[row] + seen.rewards()[step]),
                ("costs", costs[row] + seen.costs()[step]),
            ];
            for (name, sum) in sums {
                let average = sum / visits;
                if !(-radius..=1.0 + radius).contains(&average) {
                    return Err(Error::KnowledgeContradicted {
                        place: ArrayIndex::new(name, &[step, state, action]),
                        declared: "to have a mean within its range".to_owned(),
                        found: format!(
                            "{visits} observations average {average} in parts of the range"
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Maps the rewards and costs of an episode into [0, 1]; refuses the first that is outside of its range.
    pub(super) fn map_into_unit(&self, seen: &mut Trajectory) -> Result<()> {
        let horizon = seen.shape().horizon();
        let seen = seen.parts_mut();
        for (step, reward) in seen.rewards.iter_mut().enumerate() {
            *reward = self.reward_in(step, *reward)?;
        }
        for (place, cost) in seen.costs.iter_mut().enumerate() {
            *cost = self.cost_in(place / horizon, place % horizon, *cost)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_range_touches_no_number() {
        let ranges = ObservationRanges::unit(1);
        for value in [0.0, 1e-300, 0.1 + 0.2, 1.0] {
            let mapped = ranges.reward_in(0, value).unwrap();
            assert_eq!(mapped.to_bits(), value.to_bits());
        }
    }

    #[test]
    fn values_outside_of_their_range_are_refused_unless_noise_explains_them() {
        let range = ValueRange::new("cost_range", -1.0, 3.0).unwrap();
        let bounded = ObservationRanges::new(ValueRange::UNIT, vec![range], None);
        assert!((bounded.cost_in(0, 2, 1.0).unwrap() - 0.5).abs() < 1e-15);
        let refusal = bounded.cost_in(0, 2, 3.5).unwrap_err().to_string();
        assert!(
            refusal.starts_with("costs[2] is 3.5; it must lie in [-1, 3]"),
            "{refusal}"
        );
        let noisy = ObservationRanges::new(ValueRange::UNIT, vec![range], Some(0.5));
        assert!((noisy.cost_in(0, 2, 5.0).unwrap() - 1.5).abs() < 1e-15);
        assert!(noisy.cost_in(0, 2, 40.0).is_err());
        assert!(noisy.cost_in(0, 2, f64::NAN).is_err());
    }

    #[test]
    fn a_range_is_two_finite_numbers_in_order() {
        assert!(ValueRange::new("reward_range", 1.0, 1.0).is_err());
        assert!(ValueRange::new("reward_range", 0.0, f64::INFINITY).is_err());
        assert!(ValueRange::new("reward_range", -f64::MAX, f64::MAX).is_err());
    }
}
