//! The paper's constants: one function, one equation each. The paper counts episodes from k = 1.

use crate::confidence::{SafetyMargin, bisect_first};
use crate::shape::Shape;

/// Z, the logarithmic factor of every confidence radius.
///
/// Formula: Z = log(16 S^2 A H K / delta). Citation: \[Liu21\], Section 3. Deviation: none.
#[must_use]
pub fn log_factor(shape: Shape, num_episodes: u64, failure_probability: f64) -> f64 {
    let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
    (16.0 * states * states * actions * horizon * num_episodes as f64 / failure_probability).ln()
}

/// beta_h(s,a), the confidence radius of a pair visited N times.
///
/// Formula: beta = sqrt(Z / max(N, 1)). Citation: \[Liu21\], Section 3. Deviation: none.
#[must_use]
#[inline(always)]
pub fn confidence_radius(visits: u32, log_factor: f64) -> f64 {
    (log_factor / f64::from(visits.max(1))).sqrt()
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

/// alpha_r, the multiple of beta in the optimistic reward of Algorithm 1, as the paper writes it.
///
/// Formula: 1 + S H + 4 H (1 + S H) / (tau - c0). Citation: \[Liu21\], Eq. (7). Deviation: none. The
/// code multiplies [`cost_bonus_scale`] and [`reward_bonus_factor`]; a test holds them to this.
#[must_use]
pub fn reward_bonus_scale(shape: Shape, margin: &SafetyMargin) -> f64 {
    let (horizon, states) = (shape.horizon() as f64, shape.num_states() as f64);
    1.0 + states * horizon + 4.0 * horizon * (1.0 + states * horizon) / margin.gap()
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

/// eps_k, by which Algorithm 2 tightens the limit in its dual update of episode k = 1, 2, ...
///
/// Formula: eps_k = 5 H^2 sqrt(S^3 A) (L + 1) / sqrt(k L) with L = log(k / delta'). Citation:
/// \[Liu21\], Section 4. Deviation: none.
#[must_use]
pub fn constraint_tightening(k: u64, shape: Shape, tightening_delta: f64) -> f64 {
    tightening(k, tightening_scale(shape), tightening_delta)
}

fn tightening_scale(shape: Shape) -> f64 {
    let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
    5.0 * horizon * horizon * (states * states * states * actions).sqrt()
}

#[inline(always)]
fn tightening(k: u64, scale: f64, tightening_delta: f64) -> f64 {
    let log = (k as f64 / tightening_delta).ln();
    scale * (log + 1.0) / (k as f64 * log).sqrt()
}

/// eta_k, by which Algorithm 2 divides the multiplier in episode k = 1, 2, ...
///
/// Formula: eta_k = (tau - c0) H sqrt(k). Citation: \[Liu21\], Section 4. Deviation: none.
#[must_use]
pub fn primal_scaling(k: u64, shape: Shape, margin: &SafetyMargin) -> f64 {
    scaling(k, margin.gap() * shape.horizon() as f64)
}

#[inline(always)]
fn scaling(k: u64, scale: f64) -> f64 {
    scale * (k as f64).sqrt()
}

/// eps_k and eta_k of one run: what does not depend on k is computed once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EpisodeConstants {
    tightening_delta: f64,
    tightening_scale: f64,
    primal_scale: f64,
}

impl EpisodeConstants {
    pub(crate) fn new(shape: Shape, margin: &SafetyMargin, tightening_delta: f64) -> Self {
        Self {
            tightening_delta,
            tightening_scale: tightening_scale(shape),
            primal_scale: margin.gap() * shape.horizon() as f64,
        }
    }

    /// The bits of [`constraint_tightening`].
    #[inline(always)]
    pub(crate) fn constraint_tightening(&self, k: u64) -> f64 {
        tightening(k, self.tightening_scale, self.tightening_delta)
    }

    /// The bits of [`primal_scaling`].
    #[inline(always)]
    pub(crate) fn primal_scaling(&self, k: u64) -> f64 {
        scaling(k, self.primal_scale)
    }
}

/// C'', the first k from which eps_k <= (tau - c0) / 2 for good, or None beyond 2^62.
///
/// Citation: \[Liu21\], Section 5.2. Deviation: none. eps_k decreases in k wherever L >= 1, and
/// L >= log(16) since S, A, H >= 1 and delta < 1, so bisection finds it.
#[must_use]
pub fn tightening_horizon(
    shape: Shape,
    margin: &SafetyMargin,
    failure_probability: f64,
) -> Option<u64> {
    let delta = tightening_delta(shape, failure_probability);
    let small_enough = |k| constraint_tightening(k, shape, delta) <= margin.gap() / 2.0;
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
    tightening_delta: f64,
    horizon_and_sum: (u64, f64),
) -> f64 {
    let horizon = shape.horizon() as f64;
    let (tightening_horizon, sum) = horizon_and_sum;
    let rho = margin.gap() / 4.0;
    let zeta = rho / (horizon * horizon + horizon * rho / 3.0);
    let epsilon = constraint_tightening(k, shape, tightening_delta);
    let eta = primal_scaling(k, shape, margin);
    (11.0 * horizon * horizon / (3.0 * rho * rho)).ln() / zeta
        + tightening_horizon as f64 * (horizon - margin.cost_limit())
        + sum
        + horizon
        + 4.0 * (horizon * horizon + epsilon * epsilon + 2.0 * eta * horizon) / margin.gap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_r_is_the_product_of_the_two_factors() {
        let shape = Shape::new(6, 3, 2).unwrap();
        let margin = SafetyMargin::new(3.0, 0.6).unwrap();
        let product = cost_bonus_scale(shape) * reward_bonus_factor(shape, &margin);
        assert!((product / reward_bonus_scale(shape, &margin) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_tightening_falls_and_its_horizon_is_the_first_that_is_small_enough() {
        let shape = Shape::new(2, 2, 2).unwrap();
        let margin = SafetyMargin::new(0.6, 0.135).unwrap();
        let delta = tightening_delta(shape, 0.05);
        for k in 1..1000 {
            let next = constraint_tightening(k + 1, shape, delta);
            assert!(next < constraint_tightening(k, shape, delta));
        }
        let first = tightening_horizon(shape, &margin, 0.05).unwrap();
        assert!(constraint_tightening(first, shape, delta) <= margin.gap() / 2.0);
        assert!(constraint_tightening(first - 1, shape, delta) > margin.gap() / 2.0);
    }
}
