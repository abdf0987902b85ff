//! A confidence set for a whole row of transition probabilities: a ball in the Kullback-Leibler divergence.

use serde::{Deserialize, Serialize};

use super::gamma::{gamma_excess, gamma_excess_half, gamma_excess_one, ln_gamma};
use crate::number::from_count;

/// Newton's method stops at a step that is this small a part of the variable; the expectation then errs by its square.
const LAST_STEP: f64 = 1e-5;
const MAX_STEPS: usize = 30;

/// The set {p : KL(P^, p) <= b} around the frequencies P^ of n draws of one of m possible successors. With probability
/// at least 1 - alpha it contains the row for all n at once.
///
/// Formula: n b = ln(1/alpha) + D_n, D_n = sum_i N_i ln P^_i - ln of the average over a in {1/m, 1/2, 1} of Gamma(m
/// a)/Gamma(a)^m prod_i Gamma(N_i + a)/Gamma(n + m a). Proof: for a fixed q, prod_i (q_i/p_i)^N_i is a martingale that
/// starts at 1; so is its average over q from the three Dirichlet(a, ..., a) priors, the average above divided by
/// prod_i p_i^N_i. By Ville's inequality its logarithm, n KL(P^, p) - D_n, ever exceeds ln(1/alpha) with probability
/// at most alpha. Citation: Krichevsky and Trofimov 1981 (the prior 1/2); Jonsson et al. 2020, Proposition 1, is the
/// relaxation of the prior 1. Deviation: the average of three priors, at a cost of at most ln 3.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DirichletSet {
    radius: f64, // b, infinite without draws
}

impl DirichletSet {
    /// After draws with these counts (zeros may be left out), with the threshold ln(1/alpha) and m possible
    /// successors. Rounded outwards.
    #[must_use]
    pub fn new(threshold: f64, num_successors: usize, counts: impl Iterator<Item = u64>) -> Self {
        if num_successors <= 1 {
            return Self { radius: 0.0 };
        }
        let m = num_successors as f64;
        let sparse = 1.0 / m;
        let ln_gamma_sparse = ln_gamma(sparse);
        let ln_gamma_half = 0.5 * std::f64::consts::PI.ln();
        let (mut draws, mut seen) = (0.0, 0.0);
        let mut regrets = [0.0; 3]; // of the priors 1/m, 1/2, 1
        for count in counts.filter(|&count| count > 0) {
            let count = from_count(count);
            draws += count;
            seen += 1.0;
            regrets[0] += ln_gamma_sparse - gamma_excess(count, sparse);
            regrets[1] += ln_gamma_half - gamma_excess_half(count);
            regrets[2] -= gamma_excess_one(count);
        }
        if draws <= 0.0 {
            return Self {
                radius: f64::INFINITY,
            };
        }
        regrets[0] += gamma_excess_one(draws);
        regrets[1] += gamma_excess(draws, 0.5 * m) - ln_gamma(0.5 * m);
        regrets[2] += gamma_excess(draws, m) - ln_gamma(m);
        let least = regrets.iter().fold(f64::INFINITY, |a, &b| a.min(b));
        let mixed: f64 = regrets.iter().map(|regret| (least - regret).exp()).sum();
        let regret = least - (mixed / 3.0).ln();
        let rounding = 1e-13 * (1.0 + seen) + 1e-14 * m * m.ln();
        Self::from_radius((threshold + regret + rounding) / draws * (1.0 + 4.0 * f64::EPSILON))
    }

    /// The ball of radius b >= 0.
    #[must_use]
    pub fn from_radius(radius: f64) -> Self {
        Self { radius }
    }

    /// b; infinite without draws.
    #[must_use]
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// At least the largest expectation of the values over the set. `row` gives (P^_i, V_i) for every successor that
    /// was seen; `largest` is the largest value of any possible successor, seen or not.
    #[must_use]
    pub fn most(&self, row: impl Iterator<Item = (f64, f64)> + Clone, largest: f64) -> f64 {
        let gap = self.least_gap(row.map(|(p, value)| (p, largest - value)));
        (largest - gap).min(largest)
    }

    /// At most the least expectation of the values over the set; `smallest` is the least value of any possible
    /// successor.
    #[must_use]
    pub fn least(&self, row: impl Iterator<Item = (f64, f64)> + Clone, smallest: f64) -> f64 {
        let gap = self.least_gap(row.map(|(p, value)| (p, value - smallest)));
        (smallest + gap).max(smallest)
    }

    /// At most the least expectation of gaps x_i >= 0 over the set, when some possible successor has gap 0.
    ///
    /// Formula: the maximum over u >= 0 of e^-b exp(E ln(u + x)) - u, the expectation under P^. Proof that every u
    /// gives a lower bound: for p in the set, E ln(u + x) - b <= E ln(u + x) - KL(P^, p) = E ln((u + x) p/P^) <= ln of
    /// the sum of p_i (u + x_i) <= ln(u + E_p x) by Jensen's inequality, since no term is negative. So a step of
    /// Newton's method that has not converged costs width and not validity; the largest value met is returned.
    /// Citation: the dual of Filippi, Cappé and Garivier 2010 (KL-UCRL). Deviation: with s = 1/u, so that the bound
    /// (exp(E ln(1 + s x) - b) - 1)/s has no cancellation for small b.
    fn least_gap(&self, row: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
        let b = self.radius;
        let (mut mean, mut square, mut least) = (0.0, 0.0, f64::INFINITY);
        for (p, x) in row.clone().filter(|(p, _)| *p > 0.0) {
            mean += p * x;
            square += p * x * x;
            least = least.min(x);
        }
        if b == f64::INFINITY || mean <= 0.0 {
            return 0.0;
        }
        if b <= 0.0 {
            return mean * (1.0 - 64.0 * f64::EPSILON);
        }
        let mut best = 0.0_f64;
        if least > 0.0 {
            // The end u = 0.
            let at_end = AtEnd::of(row.clone());
            best = (at_end.mean_log - b).exp() * (1.0 - 64.0 * f64::EPSILON);
            if at_end.divergence() <= b {
                return best;
            }
        }
        search(b, mean, square, row, |at| {
            let rounding = 32.0 * f64::EPSILON * (at.mean_log + b);
            best = best.max((at.mean_log - b - rounding).exp_m1() / at.s);
        });
        best
    }

    /// A row of the set with the largest expectation, to about 1e-9 of the range: `write(i, p_i)` for the i-th entry
    /// of `row`. Returns the probability that is left for an unseen successor of the largest value; 0 unless `largest`
    /// exceeds all values seen.
    pub fn write_most(
        &self,
        row: impl Iterator<Item = (f64, f64)> + Clone,
        largest: f64,
        write: impl FnMut(usize, f64),
    ) -> f64 {
        self.write_least_gap(row.map(|(p, value)| (p, largest - value)), write)
    }

    /// A row of the set with the least expectation; as [`write_most`](Self::write_most).
    pub fn write_least(
        &self,
        row: impl Iterator<Item = (f64, f64)> + Clone,
        smallest: f64,
        write: impl FnMut(usize, f64),
    ) -> f64 {
        self.write_least_gap(row.map(|(p, value)| (p, value - smallest)), write)
    }

    /// Formula: p_i = P^_i/(1 + s x_i) divided by its sum, at the largest s with KL(P^, p) = E ln(1 + s x) + ln E(1
    /// / (1 + s x)) <= b; if all s qualify, p_i = e^-b exp(E ln x) P^_i/x_i, and the rest goes to the unseen
    /// successor. Derivation: stationarity of the dual. Deviation: s is taken from below, so that the row belongs to
    /// the set, up to the rounding of the divergence (1e-16).
    fn write_least_gap(
        &self,
        row: impl Iterator<Item = (f64, f64)> + Clone,
        mut write: impl FnMut(usize, f64),
    ) -> f64 {
        let b = self.radius;
        let (mut mean, mut square, mut least) = (0.0, 0.0, f64::INFINITY);
        for (p, x) in row.clone().filter(|(p, _)| *p > 0.0) {
            mean += p * x;
            square += p * x * x;
            least = least.min(x);
        }
        if b == f64::INFINITY && least > 0.0 {
            row.enumerate().for_each(|(i, _)| write(i, 0.0));
            return 1.0;
        }
        if least > 0.0 {
            let at_end = AtEnd::of(row.clone());
            if at_end.divergence() <= b {
                let factor = (at_end.mean_log - b).exp();
                let mut rest = 1.0;
                for (i, (p, x)) in row.enumerate() {
                    let probability = if p > 0.0 { factor * p / x } else { 0.0 };
                    write(i, probability);
                    rest -= probability;
                }
                return rest.max(0.0);
            }
        }
        let (mut inside, mut outside) = (0.0, f64::INFINITY);
        if mean > 0.0 && b > 0.0 {
            search(b.min(600.0), mean, square, row.clone(), |at| {
                if at.divergence() <= b {
                    inside = at.s.max(inside);
                } else {
                    outside = at.s.min(outside);
                }
            });
            for _ in 0..60 {
                let middle = if outside.is_finite() {
                    0.5 * (inside + outside)
                } else {
                    2.0 * inside
                };
                if !(middle > inside && middle < outside) || middle > 1e300 {
                    break;
                }
                if AtPrice::of(middle, row.clone()).divergence() <= b {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
        }
        let total: f64 = row.clone().map(|(p, x)| p / (1.0 + inside * x)).sum();
        for (i, (p, x)) in row.enumerate() {
            write(i, p / (1.0 + inside * x) / total);
        }
        0.0
    }
}

/// Sums at u = 0.
struct AtEnd {
    mean_log: f64,     // E ln x
    mean_inverse: f64, // E 1/x
}

impl AtEnd {
    fn of(row: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut mean_log, mut mean_inverse) = (0.0, 0.0);
        for (p, x) in row.filter(|(p, _)| *p > 0.0) {
            mean_log += p * x.ln();
            mean_inverse += p / x;
        }
        Self {
            mean_log,
            mean_inverse,
        }
    }

    /// The divergence at which the multiplier leaves u = 0.
    fn divergence(&self) -> f64 {
        self.mean_log + self.mean_inverse.ln()
    }
}

/// Sums at s = 1/u.
struct AtPrice {
    s: f64,
    mean_log: f64,     // E ln(1 + s x)
    mean_inverse: f64, // E 1/(1 + s x)
    slope: f64,        // of the divergence in s
}

impl AtPrice {
    fn of(s: f64, row: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut mean_log, mut mean_inverse, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
        for (p, x) in row {
            let inverse = 1.0 / (1.0 + s * x);
            mean_log += p * (s * x).ln_1p();
            mean_inverse += p * inverse;
            first += p * x * inverse;
            second += p * x * inverse * inverse;
        }
        Self {
            s,
            mean_log,
            mean_inverse,
            slope: first - second / mean_inverse,
        }
    }

    /// KL(P^, p) of the row p_i proportional to P^_i/(1 + s x_i); it increases with s.
    fn divergence(&self) -> f64 {
        self.mean_log + self.mean_inverse.ln()
    }
}

/// Newton's method for divergence(s) = b. Every point is shown to `visit`.
///
/// The square root of the divergence is nearly linear in s as long as it is small, the divergence itself in ln s when
/// it is large.
fn search(
    b: f64,
    mean: f64,
    square: f64,
    row: impl Iterator<Item = (f64, f64)> + Clone,
    mut visit: impl FnMut(&AtPrice),
) {
    let variance = (square - mean * mean).max(1e-9 * square);
    let mut s = (2.0 * b / variance).sqrt();
    let (mut inside, mut outside) = (0.0_f64, f64::INFINITY);
    for _ in 0..MAX_STEPS {
        let at = AtPrice::of(s, row.clone());
        visit(&at);
        let divergence = at.divergence();
        if divergence <= b {
            inside = inside.max(s);
        } else {
            outside = outside.min(s);
        }
        let next = if divergence <= 0.0 || at.slope <= 0.0 {
            2.0 * s
        } else if divergence < 1.0 {
            let root = divergence.sqrt();
            s + (b.sqrt() - root) * 2.0 * root / at.slope
        } else {
            s * ((b - divergence) / (s * at.slope)).clamp(-20.0, 20.0).exp()
        };
        let next = if next > inside && next < outside {
            next
        } else if outside.is_finite() {
            0.5 * (inside + outside)
        } else {
            2.0 * s
        };
        if (next - s).abs() <= LAST_STEP * s || next > 1e200 / (1.0 + mean) {
            break;
        }
        s = next;
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "ends of ranges are returned as they are")]
mod tests {
    use super::*;
    use crate::confidence::sets::testing::numbers;

    fn divergence(frequencies: &[f64], row: &[f64]) -> f64 {
        let pairs = frequencies.iter().zip(row);
        let terms = pairs.map(|(&q, &p)| if q > 0.0 { q * (q / p).ln() } else { 0.0 });
        terms.sum()
    }

    /// The largest expectation over a fine grid of the simplex of three successors.
    fn by_grid(frequencies: [f64; 3], values: [f64; 3], radius: f64, cells: u32) -> f64 {
        let mut best = f64::NEG_INFINITY;
        for i in 0..=cells {
            for j in 0..=cells - i {
                let share = |count: u32| f64::from(count) / f64::from(cells);
                let row = [share(i), share(j), share(cells - i - j)];
                if divergence(&frequencies, &row) <= radius {
                    best = best.max(row.iter().zip(values).map(|(p, v)| p * v).sum());
                }
            }
        }
        best
    }

    /// D_n from products over the draws.
    fn slow_regret(successors: usize, counts: &[u32]) -> f64 {
        let draws: u32 = counts.iter().sum();
        let (n, m) = (f64::from(draws), successors as f64);
        let average = [1.0 / m, 0.5, 1.0].into_iter().map(|a| {
            let mut log = 0.0;
            for &count in counts {
                log += (0..count).map(|i| (f64::from(i) + a).ln()).sum::<f64>();
            }
            log -= (0..draws).map(|i| (f64::from(i) + m * a).ln()).sum::<f64>();
            log.exp() / 3.0
        });
        let average = average.sum::<f64>().ln();
        let likelihood = counts.iter().filter(|count| **count > 0).map(|&count| {
            let count = f64::from(count);
            count * (count / n).ln()
        });
        likelihood.sum::<f64>() - average
    }

    #[test]
    fn the_radius_is_that_of_the_mixture_as_written() {
        for counts in [
            &[1_u32, 0][..],
            &[3, 5, 0, 1],
            &[40, 1, 30],
            &[0, 7, 0, 0, 0, 0, 2],
        ] {
            let draws: u32 = counts.iter().sum();
            let set = DirichletSet::new(
                3.0,
                counts.len(),
                counts.iter().map(|&count| u64::from(count)),
            );
            let expected = (3.0 + slow_regret(counts.len(), counts)) / f64::from(draws);
            assert!(
                (0.0..1e-11).contains(&(set.radius() - expected)),
                "{counts:?}"
            );
        }
        assert_eq!(
            DirichletSet::new(3.0, 4, [0, 0].into_iter()).radius(),
            f64::INFINITY
        );
        assert_eq!(DirichletSet::new(3.0, 1, [9].into_iter()).radius(), 0.0);
        // KT: about ((m - 1)/2) ln n.
        let large = DirichletSet::new(
            0.0,
            3,
            [4_000_000_000, 4_000_000_000, 2_000_000_000].into_iter(),
        );
        assert!((20.0..25.0).contains(&(large.radius() * 1e10)), "{large:?}");
    }

    #[test]
    fn the_extremes_agree_with_a_fine_grid_of_the_simplex() {
        let mut next = numbers(4);
        for case in 0..60 {
            let mut frequencies = [next(), next(), next()];
            if case % 4 == 0 {
                frequencies[case % 3] = 0.0; // unseen
            }
            let total: f64 = frequencies.iter().sum();
            frequencies.iter_mut().for_each(|p| *p /= total);
            let values = [next(), next(), if case % 5 == 0 { 0.5 } else { next() }];
            let radius = 10_f64.powf(-2.5 + 3.0 * next());
            let set = DirichletSet::from_radius(radius);
            let row = || {
                frequencies
                    .into_iter()
                    .zip(values)
                    .filter(|(p, _)| *p > 0.0)
            };
            let largest = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
            let smallest = values.into_iter().fold(f64::INFINITY, f64::min);
            let most = by_grid(frequencies, values, radius, 200);
            let found = set.most(row(), largest);
            assert!(
                found >= most && found < most + 0.02,
                "{case} {found} {most}"
            );
            let least = -by_grid(frequencies, values.map(|v| -v), radius, 200);
            let found = set.least(row(), smallest);
            assert!(
                found <= least && found > least - 0.02,
                "{case} {found} {least}"
            );
        }
    }

    #[test]
    fn the_written_row_belongs_to_the_set_and_reaches_the_bound() {
        let mut next = numbers(9);
        for case in 0..3000 {
            let successors = 1 + (12.0 * next()) as usize;
            let mut frequencies: Vec<f64> = (0..successors)
                .map(|_| if next() < 0.3 { 0.0 } else { next() * next() })
                .collect();
            frequencies[0] += 0.01;
            let total: f64 = frequencies.iter().sum();
            frequencies.iter_mut().for_each(|p| *p /= total);
            let scale = 10_f64.powf(4.0 * next() - 2.0);
            let values: Vec<f64> = (0..successors)
                .map(|_| {
                    scale
                        * if case % 3 == 0 {
                            next().round()
                        } else {
                            next()
                        }
                })
                .collect();
            let radius = 10_f64.powf(-9.0 + 10.0 * next());
            let set = DirichletSet::from_radius(radius);
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let best = values.iter().position(|&v| v >= largest).unwrap();
            let row = || frequencies.iter().copied().zip(values.iter().copied());
            let mut written = vec![0.0; successors];
            let rest = set.write_most(row(), largest, |i, p| written[i] = p);
            written[best] += rest;
            assert!((written.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{case}");
            let spent = divergence(&frequencies, &written);
            assert!(
                spent <= radius * (1.0 + 1e-6) + 1e-14,
                "{case} {spent} {radius}"
            );
            let reached: f64 = written.iter().zip(&values).map(|(p, v)| p * v).sum();
            let bound = set.most(row(), largest);
            let room = bound - reached;
            assert!(
                (-1e-11 * scale..2e-7 * scale).contains(&room),
                "{case} {radius} {room}"
            );
            let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let least = set.least(row(), smallest);
            let rest = set.write_least(row(), smallest, |i, p| written[i] = p);
            let reached =
                written.iter().zip(&values).map(|(p, v)| p * v).sum::<f64>() + rest * smallest;
            let room = reached - least;
            assert!(
                (-1e-11 * scale..2e-7 * scale).contains(&room),
                "{case} {radius} {room}"
            );
        }
    }

    #[test]
    fn extremes_widen_with_the_radius_and_start_at_the_average() {
        let row = || [(0.5, 1.0), (0.3, 4.0), (0.2, 2.0)].into_iter();
        let mean = 2.1;
        assert!((DirichletSet::from_radius(0.0).most(row(), 5.0) - mean).abs() < 1e-12);
        assert_eq!(
            DirichletSet::from_radius(f64::INFINITY).most(row(), 5.0),
            5.0
        );
        assert_eq!(
            DirichletSet::from_radius(f64::INFINITY).least(row(), 0.5),
            0.5
        );
        let (mut high, mut low) = (mean - 1e-9, mean + 1e-9);
        for power in -40..20 {
            let set = DirichletSet::from_radius(10_f64.powf(f64::from(power) / 4.0));
            let (most, least) = (set.most(row(), 5.0), set.least(row(), 0.5));
            assert!(
                most >= high && most <= 5.0 && least <= low && least >= 0.5,
                "{power}"
            );
            (high, low) = (most, least);
        }
        let same = [(0.4, 3.0), (0.6, 3.0)].into_iter();
        assert_eq!(DirichletSet::from_radius(0.1).most(same, 3.0), 3.0);
    }

    #[test]
    fn the_row_ever_leaves_with_less_than_the_level_and_a_smaller_threshold_fails() {
        let share = |truth: [f64; 3], threshold: f64| {
            let left = (0..300).filter(|&seed| {
                let (mut next, mut counts) = (numbers(seed), [0_u32; 3]);
                (1..=200).any(|draws| {
                    let uniform = next();
                    let drawn = usize::from(uniform > truth[0])
                        + usize::from(uniform > truth[0] + truth[1]);
                    counts[drawn] += 1;
                    let frequencies = counts.map(|count| f64::from(count) / f64::from(draws));
                    let set = DirichletSet::new(threshold, 3, counts.into_iter().map(u64::from));
                    divergence(&frequencies, &truth) > set.radius()
                })
            });
            left.count() as f64 / 300.0
        };
        let mut too_often = 0;
        for truth in [[0.3, 0.3, 0.4], [0.97, 0.02, 0.01], [0.5, 0.499, 0.001]] {
            let valid = share(truth, 10_f64.ln());
            assert!(valid < 0.1, "{truth:?} {valid}");
            too_often += usize::from(share(truth, 0.25 * 10_f64.ln()) > 0.1);
        }
        assert!(too_often > 0);
    }
}
