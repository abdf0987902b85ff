//! The paper's constants: one function, one equation each. The paper counts episodes from k = 1.

use serde::{Deserialize, Serialize};

use crate::confidence::{SafetyMargin, bisect_first};
use crate::number::Number;
use crate::shape::Shape;

/// Z, the logarithmic factor of every confidence radius.
///
/// Formula: Z = log(16 S^2 A H K / delta). Citation: \[Liu21\], Section 3. Deviation: none.
#[must_use]
pub fn log_factor(shape: Shape, num_episodes: u64, failure_probability: f64) -> f64 {
    let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
    (16.0 * states * states * actions * horizon * num_episodes as f64 / failure_probability).ln()
}

/// How far noise can carry an observation from its mean: further away it contradicts what was stated of the noise.
///
/// Formula: t with exp(-t^2 / (2 v)) = exp(-49), which is 5e-22, so t = sqrt(98 v) for the variance proxy v. Citation: the
/// tail bound of sub-Gaussian noise, which Assumption 2.1 of \[Liu21\] makes with v = 1/2. Deviation: the level is ours.
#[must_use]
pub fn noise_reach(variance_proxy: f64) -> f64 {
    (98.0 * variance_proxy).sqrt()
}

/// beta_h(s,a), the confidence radius of a pair visited N times.
///
/// Formula: beta = sqrt(Z / max(N, 1)). Citation: \[Liu21\], Section 3. Deviation: none.
#[must_use]
#[inline(always)]
pub fn confidence_radius<V: Number>(visits: V, log_factor: f64) -> V {
    visits.map(|visits| (log_factor / visits.max(1.0)).sqrt())
}

/// The multiple of beta in the pessimistic cost, and in both optimistic signals of Algorithm 2.
///
/// Formula: 1 + H S. Citation: \[Liu21\], Eq. (8), (11). Deviation: none.
#[must_use]
pub fn cost_bonus_scale(shape: Shape) -> f64 {
    1.0 + (shape.horizon() * shape.num_states()) as f64
}

/// The multiple of the bonus b = (1 + H S) beta in the optimistic reward of Algorithm 1.
///
/// Formula: 1 + 4 H / (tau - c0), so that its product with 1 + H S is alpha_r. Citation: \[Liu21\],
/// Eq. (6)-(7). Deviation: none.
#[must_use]
pub fn reward_bonus_factor(shape: Shape, margin: &SafetyMargin) -> f64 {
    1.0 + 4.0 * shape.horizon() as f64 / margin.gap()
}

/// delta' of Section 4, which enters the tightening.
///
/// Formula: delta' = delta / (16 S^2 A H). Citation: \[Liu21\], Section 4. Deviation: none; the delta'
/// of Appendix A is another number and appears in no code.
#[must_use]
pub fn tightening_delta(shape: Shape, failure_probability: f64) -> f64 {
    let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
    failure_probability / (16.0 * states * states * actions * horizon)
}

/// eps_k and eta_k of one run of Algorithm 2, k = 1, 2, ...; what does not depend on k is computed once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    tightening_delta: f64,
    tightening_scale: f64,
    primal_scale: f64,
}

impl Schedule {
    /// The schedule of a problem and a failure probability.
    #[must_use]
    pub fn new(shape: Shape, margin: &SafetyMargin, failure_probability: f64) -> Self {
        let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
        let tightening_scale =
            5.0 * horizon * horizon * (states * states * states * actions).sqrt();
        Self {
            tightening_delta: tightening_delta(shape, failure_probability),
            tightening_scale,
            primal_scale: margin.gap() * horizon,
        }
    }

    /// eps_k, by which Algorithm 2 tightens the limit in its dual update.
    ///
    /// Formula: eps_k = 5 H^2 sqrt(S^3 A) (L + 1) / sqrt(k L) with L = log(k / delta'). Citation:
    /// \[Liu21\], Section 4. Deviation: none.
    #[must_use]
    #[inline(always)]
    pub fn tightening(&self, k: u64) -> f64 {
        let log = (k as f64 / self.tightening_delta).ln();
        self.tightening_scale * (log + 1.0) / (k as f64 * log).sqrt()
    }

    /// eta_k, by which Algorithm 2 divides the multiplier.
    ///
    /// Formula: eta_k = (tau - c0) H sqrt(k). Citation: \[Liu21\], Section 4. Deviation: none.
    #[must_use]
    #[inline(always)]
    pub fn scaling(&self, k: u64) -> f64 {
        self.primal_scale * (k as f64).sqrt()
    }
}

/// C'', the first k from which on eps_k <= (tau - c0) / 2, or None beyond 2^62.
///
/// Citation: \[Liu21\], Section 5.2. Deviation: none. eps_k decreases in k wherever L >= 1, and
/// L >= log(16) since S, A, H >= 1 and delta < 1, so bisection finds it.
#[must_use]
pub fn tightening_horizon(
    shape: Shape,
    margin: &SafetyMargin,
    failure_probability: f64,
) -> Option<u64> {
    let schedule = Schedule::new(shape, margin, failure_probability);
    let small_enough = |k| schedule.tightening(k) <= margin.gap() / 2.0;
    let most = 1_u64 << 62;
    let first = bisect_first(1..most + 1, small_enough);
    (first <= most).then_some(first)
}

/// The bound on lambda^k for k >= C''.
///
/// Formula: the sum of ln(11 nu^2 / (3 rho^2)) / zeta, C''(H - tau), eps_1 + ... + eps_C'', H and
/// 4 (H^2 + eps_k^2 + 2 eta_k H) / (tau - c0), with rho = (tau - c0)/4, nu = H and
/// zeta = rho / (nu^2 + nu rho / 3). Citation: \[Liu21\], Lemma 5.6. Deviation: none; the sum up to
/// C'' is the caller's, since it does not depend on k.
#[must_use]
pub fn multiplier_bound(
    k: u64,
    shape: Shape,
    margin: &SafetyMargin,
    schedule: &Schedule,
    horizon_and_sum: (u64, f64),
) -> f64 {
    let horizon = shape.horizon() as f64;
    let (tightening_horizon, sum) = horizon_and_sum;
    let rho = margin.gap() / 4.0;
    let zeta = rho / (horizon * horizon + horizon * rho / 3.0);
    let (epsilon, eta) = (schedule.tightening(k), schedule.scaling(k));
    (11.0 * horizon * horizon / (3.0 * rho * rho)).ln() / zeta
        + tightening_horizon as f64 * (horizon - margin.cost_limit())
        + sum
        + horizon
        + 4.0 * (horizon * horizon + epsilon * epsilon + 2.0 * eta * horizon) / margin.gap()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// alpha_r as the paper writes it: 1 + S H + 4 H (1 + S H) / (tau - c0), Eq. (7).
    #[test]
    fn alpha_r_is_the_product_of_the_two_factors() {
        let shape = Shape::new(6, 3, 2).unwrap();
        let margin = SafetyMargin::new(3.0, 0.6).unwrap();
        let product = cost_bonus_scale(shape) * reward_bonus_factor(shape, &margin);
        let alpha_r = 1.0 + 18.0 + 4.0 * 6.0 * (1.0 + 18.0) / (3.0 - 0.6);
        assert!((product / alpha_r - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_tightening_falls_and_its_horizon_is_the_first_that_is_small_enough() {
        let shape = Shape::new(2, 2, 2).unwrap();
        let margin = SafetyMargin::new(0.6, 0.135).unwrap();
        let schedule = Schedule::new(shape, &margin, 0.05);
        for k in 1..1000 {
            assert!(schedule.tightening(k + 1) < schedule.tightening(k));
        }
        let first = tightening_horizon(shape, &margin, 0.05).unwrap();
        assert!(schedule.tightening(first) <= margin.gap() / 2.0);
        assert!(schedule.tightening(first - 1) > margin.gap() / 2.0);
    }
}
