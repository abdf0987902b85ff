//! A confidence sequence for the mean of observations in [0, 1] that adapts to their variance: a mixture of bets.

use serde::{Deserialize, Serialize};

use crate::confidence::margin::check;
use crate::error::{Interval, Result};

/// The bets. The first serves small variances and few observations; the others are spaced by a factor of about 1.6.
/// A finer grid (24 values, factor 1.4) was no narrower on the whole.
const BETS: [f64; 16] = [
    0.999, 0.75, 0.47, 0.29, 0.18, 0.115, 0.072, 0.045, 0.028, 0.0175, 0.011, 0.0068, 0.0043,
    0.0027, 0.0017, 0.001,
];
/// Their weights in the mixture; they add up to 1.
const WEIGHTS: [f64; 16] = [
    0.2, 0.07, 0.07, 0.06, 0.06, 0.06, 0.06, 0.06, 0.05, 0.05, 0.05, 0.05, 0.05, 0.04, 0.04, 0.03,
];
/// A product below this is multiplied by its inverse, a power of 2, so that no bit is lost.
const SMALL: f64 = 8.636_168_555_094_445e-78; // 2^-256
const LN_SMALL: f64 = -256.0 * std::f64::consts::LN_2;
const MAX_STEPS: usize = 60;

/// Upper and lower bounds on the mean of observations in \[0, 1\] whose mean given the past is the same number m,
/// valid for all n at once. The state has a fixed size; an observation costs 32 multiplications.
///
/// Formula: m is too large to be plausible when sum over l of w_l prod_i (1 - l X_i)/(1 - l m) >= 1/alpha. Proof: for
/// l in (0, 1) the factor (1 - l X)/(1 - l m) is nonnegative and has expectation 1 given the past, so the product is a
/// martingale that starts at 1, and so is the average; by Ville's inequality it ever reaches 1/alpha with probability
/// at most alpha. The logarithm of each term is A_l - n ln(1 - l m) with A_l = sum of ln(1 - l X_i), which does not
/// contain m: one number for each l is all that has to be kept. The average increases with m, so the plausible means
/// are those below its root. The lower bound is the upper bound of 1 - X. Citation: this is the capital of a bettor
/// who stakes l/(1 - l m) on m - X (Waudby-Smith and Ramdas 2023, Section 4); this choice of stakes, with which
/// nothing has to be summed again for another m, was derived here. Deviation: none.
///
/// It needs no bound of empirical-Bernstein type: that one (Howard et al. 2021, Theorem 4; Fan, Grama and Liu 2015)
/// replaces ln(1 + y) by y + (ln(1 - l) + l) y^2/l^2 and is wider. Upper bound minus average at alpha = 1e-4, one
/// sequence each; KT is [`BetaMixture`](super::BetaMixture), EB the empirical Bernstein mixture over 20 values, normal
/// the sqrt(2 ln(1/alpha) variance/n) that a bound for one n would reach asymptotically:
///
/// | observations | n | KT | EB | this | normal |
/// |---|---|---|---|---|---|
/// | Beta, mean .3, sd .03 | 100 | .240 | .138 | .072 | .0129 |
/// | | 1,000 | .0767 | .0150 | .0082 | .0041 |
/// | | 10,000 | .0247 | .0025 | .0014 | .0013 |
/// | Beta, mean .3, sd .1 | 1,000 | .0764 | .0249 | .0146 | .0136 |
/// | | 10,000 | .0247 | .0057 | .0049 | .0043 |
/// | Beta, mean .3, sd .3 | 1,000 | .0765 | .0551 | .0485 | .0407 |
/// | | 1,000,000 | .0026 | .0015 | .0015 | .0013 |
/// | 0/1, mean .3 | 30 | .418 | .690 | .454 | .359 |
/// | | 1,000 | .0758 | .0782 | .0727 | .0622 |
/// | | 1,000,000 | .0026 | .0022 | .0023 | .0020 |
///
/// The bets were chosen from eleven grids by their widths on these sequences; the grid of EB was not tuned, so its column
/// flatters this one a little. Validity does not depend on the choice.
///
/// For 0/1 observations KT is narrower up to about a hundred of them and wider after; the minimum of both at half the
/// level would cost ln 2 everywhere and is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct BoundedMean {
    observations: u64,
    sum: f64,
    against_large: Capital,
    against_small: Capital,
}

/// prod_i (1 - l Y_i) for every l, as product * 2^(-256 * scalings).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Capital {
    products: [f64; BETS.len()],
    scalings: [u64; BETS.len()],
}

impl Default for Capital {
    fn default() -> Self {
        Self {
            products: [1.0; BETS.len()],
            scalings: [0; BETS.len()],
        }
    }
}

impl Capital {
    /// Whether so many observations in [0, 1] can have led to it.
    fn is_possible(&self, observations: u64) -> bool {
        let products = self
            .products
            .iter()
            .all(|&product| product > 0.0 && product <= 1.0);
        products
            && self
                .scalings
                .iter()
                .all(|&scalings| scalings <= observations)
    }

    #[inline]
    fn observe(&mut self, y: f64) {
        for (product, bet) in self.products.iter_mut().zip(&BETS) {
            *product *= 1.0 - bet * y;
        }
        if self.products[0] < SMALL {
            // The largest bet has the smallest product.
            for (product, scalings) in self.products.iter_mut().zip(&mut self.scalings) {
                if *product < SMALL {
                    *product /= SMALL;
                    *scalings += 1;
                }
            }
        }
    }

    /// At least the largest plausible mean of Y; at most 1.
    ///
    /// Proof that every step of Newton's method is an upper bound: the logarithm of the mixture is a log-sum-exp of
    /// functions -n ln(1 - l m) that are convex in m, so it is convex, and a step from a point at or above the root
    /// ends at or above it. The start is the least bound of one term alone, at which the sum is above the threshold.
    /// Rounding: a factor 1 - l y has a relative error of at most eps/(1 - l), and n ln(1 - l m) one of 2 eps; both
    /// are taken off the capital.
    fn upper(&self, observations: u64, threshold: f64) -> f64 {
        if observations == 0 {
            return 1.0;
        }
        let n = observations as f64;
        let mut logs = [0.0; BETS.len()]; // ln(w_l) + A_l - threshold
        let mut mean = 1.0_f64;
        for g in 0..BETS.len() {
            let rounding = n * f64::EPSILON * (16.0 + 2.0 / (1.0 - BETS[g]));
            let log = (WEIGHTS[g] * self.products[g]).ln() + LN_SMALL * self.scalings[g] as f64;
            logs[g] = log - threshold - rounding;
            mean = mean.min(-(logs[g] / n).exp_m1() / BETS[g]);
        }
        for _ in 0..MAX_STEPS {
            // Formula: F(m) = ln sum_l exp(logs_l - n ln(1 - l m)); F'(m) = n times the average of l/(1 - l m).
            let mut exponents = [0.0; BETS.len()];
            let mut largest = f64::NEG_INFINITY;
            for g in 0..BETS.len() {
                exponents[g] = logs[g] - n * (-BETS[g] * mean).ln_1p();
                largest = largest.max(exponents[g]);
            }
            let (mut total, mut slope) = (0.0, 0.0);
            for g in 0..BETS.len() {
                let term = (exponents[g] - largest).exp();
                total += term;
                slope += term * BETS[g] / (1.0 - BETS[g] * mean);
            }
            let excess = largest + f64::ln(total);
            let step = excess * total / (n * slope);
            if step > 0.0 {
                mean -= step;
            }
            if step <= 1e-10 * mean {
                break;
            }
        }
        (mean * (1.0 + 8.0 * f64::EPSILON)).min(1.0)
    }
}

impl BoundedMean {
    /// Without observations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an observation. Refuses one outside \[0, 1\] and is then unchanged.
    #[inline]
    pub fn observe(&mut self, x: f64) -> Result<()> {
        check("observation", x, Interval::closed(0.0, 1.0))?;
        self.observations += 1;
        self.sum += x;
        self.against_large.observe(x);
        self.against_small.observe(1.0 - x);
        Ok(())
    }

    /// Whether observations in \[0, 1\] can have led to it, for one that was stored.
    pub(crate) fn is_possible(&self) -> bool {
        let sides = [&self.against_large, &self.against_small];
        let is_mean = (0.0..=self.observations as f64).contains(&self.sum);
        is_mean && sides.iter().all(|side| side.is_possible(self.observations))
    }

    /// How many observations were added.
    #[must_use]
    pub fn observations(&self) -> u64 {
        self.observations
    }

    /// The average of the observations; 1/2 without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.observations == 0 {
            return 0.5;
        }
        self.sum / self.observations as f64
    }

    /// With probability at least 1 - level the mean is at most this, for all n at once. 1 without observations. A
    /// caller who asks often keeps the least answer.
    #[must_use]
    pub fn upper(&self, level: f64) -> f64 {
        self.against_large.upper(self.observations, -level.ln())
    }

    /// With probability at least 1 - level the mean is at least this, for all n at once. 0 without observations.
    #[must_use]
    pub fn lower(&self, level: f64) -> f64 {
        let upper = self.against_small.upper(self.observations, -level.ln());
        (1.0 - upper - f64::EPSILON).max(0.0)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "ends of ranges are returned as they are")]
mod tests {
    use super::*;
    use crate::confidence::sets::BetaMixture;
    use crate::confidence::sets::testing::{numbers, observation};

    fn of(observations: &[f64]) -> BoundedMean {
        let mut statistic = BoundedMean::new();
        for &x in observations {
            statistic.observe(x).unwrap();
        }
        statistic
    }

    /// The mixture as written, one logarithm for each observation.
    fn slow_log_mixture(observations: &[f64], mean: f64) -> f64 {
        let logs: Vec<f64> = (0..BETS.len())
            .map(|g| {
                let bet = |x: &f64| ((1.0 - BETS[g] * x) / (1.0 - BETS[g] * mean)).ln();
                WEIGHTS[g].ln() + observations.iter().map(bet).sum::<f64>()
            })
            .collect();
        let largest = logs.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        largest
            + logs
                .iter()
                .map(|log| (log - largest).exp())
                .sum::<f64>()
                .ln()
    }

    /// The empirical Bernstein bound with a mixture over 20 values, for comparison.
    fn empirical_bernstein(observations: &[f64], level: f64) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (before, x) in observations.iter().enumerate() {
            let centre = (0.5 + sum) / (before as f64 + 1.0);
            squares += (x - centre) * (x - centre);
            sum += x;
        }
        let n = observations.len() as f64;
        let log_mixture = |mean: f64| {
            let terms = (0..20).map(|g| {
                let l = 0.9 * 1.45_f64.powi(-g);
                (l * (n * mean - sum) - (-(-l).ln_1p() - l) * squares).exp() / 20.0
            });
            terms.sum::<f64>().ln()
        };
        let (mut low, mut high) = (sum / n, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            *(if log_mixture(middle) > -level.ln() {
                &mut high
            } else {
                &mut low
            }) = middle;
        }
        high
    }

    #[test]
    fn the_bounds_are_where_the_mixture_reaches_its_threshold() {
        let mut next = numbers(11);
        for case in 0..300 {
            let (mean, spread) = (next(), if case % 3 == 0 { 1.0 } else { next() });
            let count = 1 + (10_f64.powf(3.5 * next())) as usize;
            let level = 10_f64.powf(-6.0 * next() - 0.05);
            let observations: Vec<f64> = (0..count)
                .map(|_| observation(next(), mean, spread))
                .collect();
            let mirrored: Vec<f64> = observations.iter().map(|x| 1.0 - x).collect();
            let statistic = of(&observations);
            for (upper, data) in [
                (statistic.upper(level), &observations),
                (1.0 - statistic.lower(level), &mirrored),
            ] {
                let average = data.iter().sum::<f64>() / count as f64;
                assert!(upper >= average, "{upper} {average}");
                if upper < 1.0 {
                    let at = slow_log_mixture(data, upper) + level.ln();
                    assert!((-1e-8..1e-3).contains(&at), "{case} {upper} {at}");
                    let below = upper - 1e-6 * (upper - average);
                    assert!(slow_log_mixture(data, below) < -level.ln() + 1e-3);
                } else {
                    assert!(slow_log_mixture(data, 1.0) <= -level.ln() + 1e-8);
                }
            }
        }
    }

    #[test]
    fn weights_add_up_to_one_and_the_scale_is_a_power_of_two() {
        assert!((WEIGHTS.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert!(BETS.windows(2).all(|pair| pair[0] > pair[1]));
        assert_eq!(SMALL, 2.0_f64.powi(-256));
    }

    #[test]
    fn many_observations_do_not_underflow_and_narrow_the_bounds() {
        let mut statistic = BoundedMean::new();
        let mut next = numbers(5);
        for _ in 0..200_000 {
            statistic.observe(0.9 + 0.1 * next()).unwrap();
        }
        let (low, high) = (statistic.lower(1e-4), statistic.upper(1e-4));
        assert!(
            low < 0.95 && 0.95 < high && high - low < 1e-3,
            "{low} {high}"
        );
        assert!((statistic.mean() - 0.95).abs() < 3e-4);
        assert_eq!(statistic.observations(), 200_000);
    }

    #[test]
    fn bounds_are_monotone_and_trivial_without_observations() {
        assert_eq!(BoundedMean::new().upper(0.1), 1.0);
        assert_eq!(BoundedMean::new().lower(0.1), 0.0);
        let mut next = numbers(8);
        for _ in 0..200 {
            let few: Vec<f64> = (0..50).map(|_| next()).collect();
            let larger: Vec<f64> = few.iter().map(|x| x + 0.3 * next() * (1.0 - x)).collect();
            let (few, larger) = (of(&few), of(&larger));
            assert!(larger.upper(0.01) >= few.upper(0.01));
            assert!(larger.lower(0.01) >= few.lower(0.01));
            assert!(few.upper(0.001) > few.upper(0.01));
            assert!(few.lower(0.001) <= few.lower(0.01));
        }
    }

    #[test]
    fn an_observation_outside_the_range_is_refused_and_changes_nothing() {
        let mut statistic = of(&[0.2, 0.4]);
        let before = statistic;
        for x in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(statistic.observe(x).is_err());
        }
        assert_eq!(statistic, before);
    }

    #[test]
    fn small_variances_give_narrower_bounds_than_the_other_forms() {
        // Uniform on [.4, .6] and 0/1, a thousand observations, as in the table of the type.
        let mut next = numbers(21);
        let narrow: Vec<f64> = (0..1000).map(|_| 0.4 + 0.2 * next()).collect();
        let average = narrow.iter().sum::<f64>() / 1000.0;
        let bets = of(&narrow).upper(1e-4) - average;
        let bernstein = empirical_bernstein(&narrow, 1e-4) - average;
        let beta = BetaMixture::new(1e-4)
            .unwrap()
            .upper(1000.0, 1000.0 * average)
            - average;
        assert!(
            bets < 0.7 * bernstein && bernstein < 0.5 * beta,
            "{bets} {bernstein} {beta}"
        );
        let coins: Vec<f64> = (0..1000).map(|_| observation(next(), 0.3, 1.0)).collect();
        let sum = coins.iter().sum::<f64>();
        let bets = of(&coins).upper(1e-4);
        assert!(bets < BetaMixture::new(1e-4).unwrap().upper(1000.0, sum));
        assert!(bets < empirical_bernstein(&coins, 1e-4));
    }

    #[test]
    fn the_mean_ever_leaves_with_less_than_the_level_and_a_smaller_threshold_fails() {
        let share = |mean: f64, spread: f64, level: f64| {
            let left = (0..300).filter(|&seed| {
                let (mut next, mut statistic) = (numbers(seed), BoundedMean::new());
                (0..100).any(|_| {
                    statistic
                        .observe(observation(next(), mean, spread))
                        .unwrap();
                    statistic.upper(level) < mean
                })
            });
            left.count() as f64 / 300.0
        };
        let mut too_often = 0;
        for (mean, spread) in [(0.5, 1.0), (0.02, 1.0), (0.3, 0.2), (0.9, 1.0)] {
            let valid = share(mean, spread, 0.1);
            assert!(valid < 0.1, "{mean} {valid}");
            // The root of the threshold.
            too_often += usize::from(share(mean, spread, 0.1_f64.sqrt()) > 0.1);
        }
        assert!(too_often > 0);
    }
}
