//! A confidence sequence for the mean of observations in [0, 1]: the Beta(1/2, 1/2) mixture.

use serde::{Deserialize, Serialize};

use super::gamma::{gamma_excess_half, gamma_excess_one};
use crate::confidence::margin::check;
use crate::error::{Interval, Result};

/// Bounds the rounding error of the threshold: the sum of three [`gamma_excess`](super::gamma::gamma_excess) values
/// and a few logarithms.
const THRESHOLD_ERROR: f64 = 1e-13;
/// Newton's method stops at a step that is this small a part of the deviation; the next step would be its square.
const LAST_STEP: f64 = 1e-8;
const MAX_STEPS: usize = 40;

/// The set {p : ln M_n(p) <= ln(1/alpha)} of the means that n observations in \[0, 1\] with sum x leave plausible. It
/// is an interval, and with probability at least 1 - alpha it contains the mean for all n at once, on both sides.
///
/// Formula: M_n(p) = (1 - e) B(x + 1/2, n - x + 1/2) / (pi p^x (1 - p)^(n - x)) + (e/2) 1{x = 0} (1 - p)^-n + (e/2)
/// 1{x = n} p^-n, with e the mass at the endpoints. Proof: for a fixed q the factor (q/p)^X ((1-q)/(1-p))^(1-X) is
/// convex in X, so it is at most X q/p + (1 - X)(1-q)/(1-p), which has expectation 1 under the mean p; the product
/// over i is a nonnegative supermartingale, and the average over q from Beta(1/2, 1/2) is the first term. The second
/// and third are the same for q = 0 and q = 1: P(X = 0) <= 1 - p and P(X = 1) <= p. So M is a nonnegative
/// supermartingale with M_0 = 1, and by Ville's inequality it ever exceeds 1/alpha with probability at most alpha.
/// Citation: Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021, Proposition 7. Deviation: the mass at the
/// endpoints, which makes the bound of an event that was never seen ln(2/(e alpha))/n.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BetaMixture {
    threshold: f64,
    interior_threshold: f64, // threshold - ln(1 - e)
    endpoint_mass: f64,
}

impl BetaMixture {
    /// At level alpha, without mass at the endpoints. Refuses a level outside (0, 1).
    pub fn new(level: f64) -> Result<Self> {
        Self::with_endpoint_mass(level, 0.0)
    }

    /// At level alpha, with mass e in \[0, 1) at the endpoints, half of it at each.
    pub fn with_endpoint_mass(level: f64, mass: f64) -> Result<Self> {
        check("level", level, Interval::open(0.0, 1.0))?;
        Self::from_threshold(-level.ln(), mass)
    }

    /// With the threshold ln(1/alpha) >= 0 and mass e at the endpoints.
    pub fn from_threshold(threshold: f64, mass: f64) -> Result<Self> {
        check("threshold", threshold, Interval::closed(0.0, f64::MAX))?;
        check("mass", mass, Interval::closed(0.0, 1.0_f64.next_down()))?;
        Ok(Self {
            threshold,
            interior_threshold: threshold - (-mass).ln_1p(),
            endpoint_mass: mass,
        })
    }

    /// ln(1/alpha).
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Both ends; (0, 1) without observations. The sum lies in \[0, visits\].
    #[must_use]
    pub fn interval(&self, visits: f64, sum: f64) -> (f64, f64) {
        if visits <= 0.0 {
            return (0.0, 1.0);
        }
        let information = self.information(visits, sum);
        let rest = visits - sum;
        (
            lower_end(visits, sum, rest, information),
            upper_end(visits, sum, rest, information),
        )
    }

    /// The upper end; 1 without observations.
    #[must_use]
    pub fn upper(&self, visits: f64, sum: f64) -> f64 {
        if visits <= 0.0 {
            return 1.0;
        }
        upper_end(visits, sum, visits - sum, self.information(visits, sum))
    }

    /// The lower end; 0 without observations.
    #[must_use]
    pub fn lower(&self, visits: f64, sum: f64) -> f64 {
        if visits <= 0.0 {
            return 0.0;
        }
        lower_end(visits, sum, visits - sum, self.information(visits, sum))
    }

    /// The t with: ln M_n(p) <= ln(1/alpha) if and only if n kl(x/n, p) <= t. Rounded upwards.
    ///
    /// Formula: ln(1/alpha) - ln(1 - e) - [g(x, 1/2) + g(n - x, 1/2) - g(n, 1) - ln pi], g the excess of ln Gamma;
    /// about ln(1/alpha) - ln(1 - e) + ln(pi n/2)/2 inside. Derivation: x ln(x/n) + (n-x) ln((n-x)/n) is added on both
    /// sides, and the terms of size n ln n cancel on paper. At x = 0 and x = n all terms of M are multiples of exp(n
    /// kl). Deviation: none.
    fn information(&self, visits: f64, sum: f64) -> f64 {
        let rest = visits - sum;
        let regret = gamma_excess_one(visits) + std::f64::consts::PI.ln()
            - gamma_excess_half(sum)
            - gamma_excess_half(rest);
        let information = if self.endpoint_mass > 0.0 && (sum <= 0.0 || rest <= 0.0) {
            let mass = self.endpoint_mass;
            self.threshold - ((1.0 - mass) * (-regret).exp() + mass / 2.0).ln()
        } else {
            self.interior_threshold + regret
        };
        outwards(information + THRESHOLD_ERROR)
    }
}

/// A nonnegative number that four roundings cannot have brought below the exact one.
fn outwards(number: f64) -> f64 {
    number * (1.0 + 4.0 * f64::EPSILON)
}

/// At least the largest p with n kl(x/n, p) <= information.
fn upper_end(visits: f64, sum: f64, rest: f64, information: f64) -> f64 {
    if rest <= 0.0 {
        return 1.0;
    }
    let deviation = deviation(sum / visits, rest / visits, outwards(information / visits));
    outwards(sum / visits + deviation).min(1.0)
}

/// At most the least p with n kl(x/n, p) <= information.
fn lower_end(visits: f64, sum: f64, rest: f64, information: f64) -> f64 {
    if sum <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return (-outwards(information / visits)).exp() * (1.0 - 4.0 * f64::EPSILON); // kl(1, p) = -ln p
    }
    let mean = sum / visits;
    let deviation = deviation(rest / visits, mean, outwards(information / visits));
    (mean - outwards(deviation) - 4.0 * f64::EPSILON * mean).max(0.0)
}

/// At least the d >= 0 with kl(q, q + d) = t, where r = 1 - q > 0; at most r.
///
/// Proof that every step of Newton's method is an upper bound: kl(q, .) is convex, so a step from a point at or above
/// the solution ends at or above it. The start is above it because kl(q, p) is the integral of (z - q)/(z(1-z)) from q
/// to p, which is at least (p - q)^2/2 divided by the largest z(1-z) on the way (at most 1/4, at most p r, and q r if
/// q >= 1/2); and because kl(q, p) >= r ln(r/(1-p)) + q ln q.
pub(in crate::confidence) fn deviation(q: f64, r: f64, t: f64) -> f64 {
    if q <= 0.0 {
        return -f64::exp_m1(-t); // kl(0, p) = -ln(1 - p)
    }
    let mut d = if q >= 0.5 {
        (2.0 * t * q * r).sqrt()
    } else {
        let s = t * r;
        (0.5 * t).sqrt().min(s + (s * (s + 2.0 * q)).sqrt())
    };
    if d > 0.5 * r {
        d = d.min(r * -f64::exp_m1((q * q.ln() - t) / r));
    }
    let t = t + 16.0 * f64::EPSILON * d; // the rounding of kl below
    for _ in 0..MAX_STEPS {
        let (p, left) = (q + d, r - d);
        if left <= 0.0 {
            return r;
        }
        let excess = q * (-d / p).ln_1p() + r * (d / left).ln_1p() - t;
        let step = excess * p * left / d;
        if step > 0.0 {
            d -= step;
        }
        if step <= LAST_STEP * d {
            break;
        }
    }
    d
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "ends of ranges are returned as they are")]
mod tests {
    use super::*;
    use crate::confidence::sets::testing::{numbers, share_that_leaves};

    /// ln M_n(p) as written, the Beta function as a product over the observations: for whole sums.
    fn slow_log_mixture(visits: u32, sum: u32, mass: f64, p: f64) -> f64 {
        let mut log = 0.0;
        for i in 0..sum {
            log += (f64::from(i) + 0.5).ln();
        }
        for i in 0..visits - sum {
            log += (f64::from(i) + 0.5).ln();
        }
        for i in 0..visits {
            log -= (f64::from(i) + 1.0).ln();
        }
        let power = |p: f64, count: u32| {
            if count == 0 {
                0.0
            } else {
                f64::from(count) * p.ln()
            }
        };
        let likelihood = power(p, sum) + power(1.0 - p, visits - sum);
        let mut mixture = (1.0 - mass) * (log - likelihood).exp();
        if sum == 0 {
            mixture += mass / 2.0 * (-likelihood).exp();
        }
        if sum == visits {
            mixture += mass / 2.0 * (-likelihood).exp();
        }
        mixture.ln()
    }

    #[test]
    fn the_ends_are_where_the_mixture_reaches_its_threshold() {
        for level in [0.5, 0.05, 1e-6] {
            for mass in [0.0, 0.5] {
                let set = BetaMixture::with_endpoint_mass(level, mass).unwrap();
                for visits in [1, 2, 3, 7, 20, 150] {
                    for sum in 0..=visits {
                        let (low, high) = set.interval(f64::from(visits), f64::from(sum));
                        let log = |p: f64| slow_log_mixture(visits, sum, mass, p) - set.threshold();
                        let small = 1e-9; // of the distance to the average
                        let mean = f64::from(sum) / f64::from(visits);
                        if sum == 0 {
                            assert_eq!(low, 0.0);
                        } else {
                            assert!(log(low) > -1e-9, "{visits} {sum} {low}");
                            let inside = low + small * (mean - low);
                            assert!(log(inside) < 0.0, "{visits} {sum} {low}");
                        }
                        if sum == visits {
                            assert_eq!(high, 1.0);
                        } else {
                            assert!(high == 1.0 || log(high) > -1e-9, "{visits} {sum} {high}");
                            let inside = high - small * (high - mean);
                            assert!(log(inside) < 0.0, "{visits} {sum} {high}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn for_many_observations_the_ends_solve_the_equation_in_both_directions() {
        let set = BetaMixture::new(1e-4).unwrap();
        for visits in [1e3_f64, 1e5, 1e7, 1e10] {
            for mean in [1e-6, 1e-3, 0.2, 0.5, 0.9, 0.9999] {
                let sum = (mean * visits).round();
                if sum == 0.0 || sum == visits {
                    continue;
                }
                let (low, high) = set.interval(visits, sum);
                let (q, r) = (sum / visits, (visits - sum) / visits);
                assert!(low < q && q < high && low > 0.0 && high < 1.0);
                let expected = -(1e-4_f64.ln()) + 0.5 * (std::f64::consts::PI * visits / 2.0).ln();
                for p in [low, high] {
                    let d = p - q;
                    let kl = q * (-d / p).ln_1p() + r * (d / (r - d)).ln_1p();
                    let error = visits * kl / expected - 1.0;
                    assert!(error.abs() < 0.05, "{visits} {mean} {error}"); // the asymptotic form
                    if sum > 1e4 && visits - sum > 1e4 {
                        assert!((-1e-6..1e-4).contains(&error), "{visits} {mean} {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_interval_is_symmetric_and_monotone() {
        let mut next = numbers(3);
        for _ in 0..3000 {
            let visits = (10_f64.powf(6.0 * next())).round();
            let sum = visits * next();
            let level = 10_f64.powf(-8.0 * next() - 0.01);
            let set = BetaMixture::new(level).unwrap();
            let (low, high) = set.interval(visits, sum);
            assert_eq!(low, set.lower(visits, sum));
            assert_eq!(high, set.upper(visits, sum));
            assert!(0.0 <= low && low <= sum / visits && sum / visits <= high && high <= 1.0);
            let (mirror_low, mirror_high) = set.interval(visits, visits - sum);
            assert!((1.0 - mirror_high - low).abs() < 1e-12);
            assert!((1.0 - mirror_low - high).abs() < 1e-12);
            let wider = BetaMixture::new(level / 2.0).unwrap();
            assert!(wider.lower(visits, sum) <= low && wider.upper(visits, sum) >= high);
            let more = (sum + 0.1 * next() * visits).min(visits);
            assert!(set.upper(visits, more) >= high - 1e-12);
            assert!(set.lower(visits, more) >= low - 1e-12);
        }
    }

    #[test]
    fn without_observations_everything_is_plausible_and_bad_levels_are_refused() {
        let set = BetaMixture::with_endpoint_mass(0.1, 0.5).unwrap();
        assert_eq!(set.interval(0.0, 0.0), (0.0, 1.0));
        assert_eq!((set.lower(0.0, 0.0), set.upper(0.0, 0.0)), (0.0, 1.0));
        for level in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(BetaMixture::new(level).is_err());
        }
        assert!(BetaMixture::with_endpoint_mass(0.1, 1.0).is_err());
        assert!(BetaMixture::from_threshold(-1.0, 0.0).is_err());
        assert!(BetaMixture::from_threshold(1.0, 0.0).is_ok());
    }

    #[test]
    fn mass_at_the_endpoints_bounds_what_was_never_seen() {
        let plain = BetaMixture::new(1e-4).unwrap().upper(1000.0, 0.0);
        let spike = BetaMixture::with_endpoint_mass(1e-4, 0.5)
            .unwrap()
            .upper(1000.0, 0.0);
        let expected =
            1.0 - ((0.25 + 0.5 / (std::f64::consts::PI * 1000.0).sqrt()) * 1e-4_f64).powf(1e-3);
        assert!((spike - expected).abs() < 1e-6, "{spike} {expected}");
        assert!(spike < 0.82 * plain, "{spike} {plain}");
    }

    #[test]
    fn the_mean_ever_leaves_with_less_than_the_level_and_a_smaller_threshold_fails() {
        for (mean, spread) in [(0.5, 1.0), (0.02, 1.0), (0.3, 0.5)] {
            let share = |set: BetaMixture| {
                share_that_leaves(500, 300, mean, spread, |visits, sum, mean| {
                    let (low, high) = set.interval(visits, sum);
                    !(low..=high).contains(&mean)
                })
            };
            let valid = share(BetaMixture::with_endpoint_mass(0.1, 0.25).unwrap());
            assert!(valid < 0.1, "{mean} {valid}");
            if spread == 1.0 {
                // Without the factor of the mixture, as if the level held for one n only.
                let too_small = share_that_leaves(500, 300, mean, spread, |visits, sum, mean| {
                    let q = sum / visits;
                    let d = deviation(q.max(1e-9), 1.0 - q.max(1e-9), 10_f64.ln() / visits / 2.0);
                    mean > q + d
                });
                assert!(too_small > 0.1, "{mean} {too_small}");
            }
        }
    }
}
