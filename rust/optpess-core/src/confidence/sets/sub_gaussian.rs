//! A confidence sequence for the mean of unbounded observations: the Gaussian mixture (method of Laplace).

use serde::{Deserialize, Serialize};

use crate::confidence::margin::check;
use crate::error::{Interval, Result};

/// The interval |x/n - mu| <= sigma sqrt((1 + 1/n) 2 ln(sqrt(n + 1)/alpha)/n) for observations that are sub-Gaussian
/// with variance proxy sigma^2. With probability at least 1 - alpha it contains the mean for all n at once, on both
/// sides.
///
/// Proof that one alpha serves both sides: with S_n = x - n mu, exp(l S_n - l^2 sigma^2 n/2) is a nonnegative
/// supermartingale for every real l. Its average over l from the normal distribution with mean 0 and variance
/// 1/sigma^2 is (n + 1)^(-1/2) exp(S_n^2/(2 sigma^2 (n + 1))), which depends on |S_n| alone; by Ville's inequality it
/// ever exceeds 1/alpha with probability at most alpha, and solving for |S_n|/n gives the formula. Citation: Robbins
/// 1970; Bourel, Maillard and Talebi 2020, Lemma 5. Deviation: none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SubGaussianMixture {
    variance_proxy: f64,
    threshold: f64, // ln(1/alpha)
}

impl SubGaussianMixture {
    /// For a variance proxy sigma^2 >= 0 and a level alpha in (0, 1).
    pub fn new(variance_proxy: f64, level: f64) -> Result<Self> {
        check("level", level, Interval::open(0.0, 1.0))?;
        Self::from_threshold(variance_proxy, -level.ln())
    }

    /// With the threshold ln(1/alpha) >= 0.
    pub fn from_threshold(variance_proxy: f64, threshold: f64) -> Result<Self> {
        let allowed = Interval::closed(0.0, f64::MAX);
        check("variance_proxy", variance_proxy, allowed)?;
        check("threshold", threshold, allowed)?;
        Ok(Self {
            variance_proxy,
            threshold,
        })
    }

    /// The largest deviation of the average from the mean after n >= 1 observations; infinite before. Rounded upwards.
    #[must_use]
    pub fn radius(&self, visits: f64) -> f64 {
        if visits <= 0.0 {
            return f64::INFINITY;
        }
        let log = 0.5 * visits.ln_1p() + self.threshold;
        let square = self.variance_proxy * (1.0 + 1.0 / visits) * 2.0 * log / visits;
        square.sqrt() * (1.0 + 8.0 * f64::EPSILON)
    }

    /// Both ends, clipped to `range`, in which the mean is known to lie.
    #[must_use]
    pub fn interval(&self, visits: f64, sum: f64, range: (f64, f64)) -> (f64, f64) {
        if visits <= 0.0 {
            return range;
        }
        let mean = sum / visits;
        let radius = self.radius(visits) + f64::EPSILON * mean.abs();
        (
            (mean - radius).clamp(range.0, range.1),
            (mean + radius).clamp(range.0, range.1),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence::sets::testing::numbers;

    /// The mixture at a deviation, integrated over l by the midpoint rule.
    fn slow_mixture(variance_proxy: f64, visits: f64, deviation: f64) -> f64 {
        let sum = visits * deviation;
        let width = 1e-3 / variance_proxy.sqrt();
        let density = (variance_proxy / (2.0 * std::f64::consts::PI)).sqrt();
        let terms = (-40_000..40_000).map(|cell: i32| {
            let l = (f64::from(cell) + 0.5) * width;
            density * (l * sum - l * l * variance_proxy * (visits + 1.0) / 2.0).exp() * width
        });
        terms.sum()
    }

    #[test]
    fn the_radius_is_where_the_mixture_reaches_its_threshold() {
        for variance_proxy in [0.25, 2.0] {
            for level in [0.3, 1e-3] {
                let set = SubGaussianMixture::new(variance_proxy, level).unwrap();
                for visits in [1.0, 5.0, 80.0] {
                    let found = slow_mixture(variance_proxy, visits, set.radius(visits));
                    assert!((found * level - 1.0).abs() < 1e-6, "{visits} {found}");
                }
            }
        }
    }

    #[test]
    fn intervals_are_clipped_shrink_and_refuse_bad_levels() {
        let set = SubGaussianMixture::new(1.0, 0.01).unwrap();
        assert_eq!(set.interval(0.0, 0.0, (-1.0, 2.0)), (-1.0, 2.0));
        assert_eq!(set.interval(1.0, 0.5, (-1.0, 2.0)), (-1.0, 2.0));
        let mut before = f64::INFINITY;
        for visits in 1..2000 {
            let radius = set.radius(f64::from(visits));
            assert!(radius < before);
            before = radius;
        }
        let (low, high) = set.interval(1e6, 5e5, (0.0, 1.0));
        assert!(low < 0.5 && 0.5 < high && high - low < 0.02);
        assert!(SubGaussianMixture::new(-1.0, 0.1).is_err());
        assert!(SubGaussianMixture::new(1.0, 1.0).is_err());
    }

    #[test]
    fn the_mean_ever_leaves_with_less_than_the_level_and_a_halved_radius_fails() {
        let share = |factor: f64| {
            let set = SubGaussianMixture::new(1.0, 0.1).unwrap();
            let left = (0..1000).filter(|&seed| {
                let (mut next, mut sum) = (numbers(seed), 0.0);
                (1..=300).any(|visits| {
                    let radius = (-2.0 * (1.0 - next()).ln()).sqrt();
                    sum += radius * (2.0 * std::f64::consts::PI * next()).cos();
                    let visits = f64::from(visits);
                    (sum / visits).abs() > factor * set.radius(visits)
                })
            });
            left.count() as f64 / 1000.0
        };
        let (valid, halved) = (share(1.0), share(0.5));
        assert!(valid < 0.1, "{valid}");
        assert!(halved > 0.1, "{halved}");
    }
}
