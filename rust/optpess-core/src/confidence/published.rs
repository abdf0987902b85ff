//! The constants of the algorithms that \[Liu21\] is compared with: one function, one equation each.
//!
//! \[Efroni20\] is Efroni, Mannor and Pirotta, *Exploration-Exploitation in Constrained MDPs*, 2020;
//! \[Ding21\] is Ding, Wei, Yang, Wang and Jovanovic, *Provably Efficient Safe Exploration via
//! Primal-Dual Policy Optimization*, AISTATS 2021. Write-ups of these algorithms differ in the constants
//! inside the logarithms; all of them use L here. \[Stradi25\] is Stradi, Castiglioni, Marchesi and Gatti, *Learning
//! Adversarial MDPs with Stochastic Hard Constraints*, ICML 2025; \[Zuo26\] is Zuo and Stradi, *Toward Optimal Regret in
//! Adversarial MDPs with Stochastic Hard Constraints*, 2026, which restates it. S-OPS has a logarithm of its own.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::confidence_radius;
use crate::confidence::{LearningTerms, SafetyMargin};
use crate::number::from_count;
use crate::shape::Shape;

/// L, the logarithmic factor of every radius below.
///
/// Formula: L = log(6 S^2 A H K / delta). Citation: \[Efroni20\], the good event. Deviation: the number
/// inside the logarithm is ours, one for all algorithms.
#[must_use]
pub fn peer_log_factor(shape: Shape, num_episodes: u64, failure_probability: f64) -> f64 {
    let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
    (6.0 * states * states * actions * horizon * num_episodes as f64 / failure_probability).ln()
}

/// b_o, how far the average of N observed rewards or costs may be from its mean.
///
/// Formula: b_o = sqrt(L / max(N, 1)). Citation: \[Efroni20\], the good event. Deviation: the constant 1
/// is the one for noise within Assumption 2.1 of \[Liu21\].
#[must_use]
pub fn observation_radius(visits: u64, log_factor: f64) -> f64 {
    confidence_radius(from_count(visits), log_factor)
}

/// b_p(s'), how far a frequency p among N successors may be from its probability.
///
/// Formula: b_p = sqrt(4 p (1 - p) L / max(N, 1)) + 14 L / (3 max(N, 1)). Citation: \[Efroni20\], the good
/// event (empirical Bernstein). Deviation: none but L.
#[must_use]
pub fn successor_radius(frequency: f64, visits: u64, log_factor: f64) -> f64 {
    let count = from_count(visits.max(1));
    // A frequency is a quotient of counts, so 1 - p cannot be negative.
    (4.0 * frequency * (1.0 - frequency) * log_factor / count).sqrt()
        + 14.0 * log_factor / (3.0 * count)
}

/// The bonus of OPDOP.
///
/// Formula: (1 + H sqrt(S)) sqrt(L / (N + 1)). Citation: \[Ding21\], the tabular case. Deviation: the
/// constant in front and L are ours.
#[must_use]
pub fn regularised_radius(shape: Shape, visits: u64, log_factor: f64) -> f64 {
    let scale = 1.0 + shape.horizon() as f64 * (shape.num_states() as f64).sqrt();
    scale * (log_factor / (from_count(visits) + 1.0)).sqrt()
}

/// rho, a bound on the optimal multiplier.
///
/// Formula: rho = H / (tau - c0). Citation: \[Efroni20\], Slater's condition. Deviation: none.
#[must_use]
pub fn multiplier_cap(shape: Shape, margin: &SafetyMargin) -> f64 {
    shape.horizon() as f64 / margin.gap()
}

/// By what an excess of cost is multiplied in the dual updates of \[Efroni20\].
///
/// Formula: 1 / t with t = sqrt(K) H / rho. Citation: \[Efroni20\], OptDual-CMDP and OptPrimalDual-CMDP.
/// Deviation: none.
#[must_use]
pub fn dual_step(shape: Shape, margin: &SafetyMargin, num_episodes: u64) -> f64 {
    multiplier_cap(shape, margin) / ((num_episodes as f64).sqrt() * shape.horizon() as f64)
}

/// The step of mirror ascent of OptPrimalDual-CMDP.
///
/// Formula: t_K = sqrt(2 log A / (H^2 (1 + rho)^2 K)). Citation: \[Efroni20\], OptPrimalDual-CMDP.
/// Deviation: none.
#[must_use]
pub fn mirror_step(shape: Shape, margin: &SafetyMargin, num_episodes: u64) -> f64 {
    let widest = shape.horizon() as f64 * (1.0 + multiplier_cap(shape, margin));
    (2.0 * (shape.num_actions() as f64).ln() / num_episodes as f64).sqrt() / widest
}

/// The step of mirror ascent of OPDOP.
///
/// Formula: sqrt(log A) / (H^2 sqrt(K)). Citation: \[Ding21\], Theorem 1. Deviation: none.
#[must_use]
pub fn opdop_mirror_step(shape: Shape, num_episodes: u64) -> f64 {
    let horizon = shape.horizon() as f64;
    ((shape.num_actions() as f64).ln() / num_episodes as f64).sqrt() / (horizon * horizon)
}

/// The dual step of OPDOP.
///
/// Formula: 1 / sqrt(K). Citation: \[Ding21\], Theorem 1. Deviation: none.
#[must_use]
pub fn opdop_dual_step(num_episodes: u64) -> f64 {
    1.0 / (num_episodes as f64).sqrt()
}

/// What OPDOP clips its multiplier to.
///
/// Formula: 2 H / (tau - c0). Citation: \[Ding21\], Theorem 1. Deviation: none.
#[must_use]
pub fn opdop_multiplier_cap(shape: Shape, margin: &SafetyMargin) -> f64 {
    2.0 * multiplier_cap(shape, margin)
}

/// u, the logarithmic factor of S-OPS.
///
/// Formula: u = log(8 m X^2 A K / delta) with m = 1 constraint and X = S H + 2. Citation: \[Zuo26\], Lemma B.2, for
/// \[Stradi25\]. Deviation: none; X is the number of states of its layered problem, here one copy of every state a step,
/// a first and a last state. Our start distribution is known, so fewer would do; more states only widen the sets.
#[must_use]
pub fn sops_log_factor(shape: Shape, num_episodes: u64, failure_probability: f64) -> f64 {
    let [horizon, states, actions] = shape.sizes().map(|size| size as f64);
    let layered = states * horizon + 2.0;
    (8.0 * layered * layered * actions * num_episodes as f64 / failure_probability).ln()
}

/// xi of S-OPS before it is cut off at 1.
///
/// Formula: sqrt(4 u / max(N, 1)). Citation: \[Zuo26\], (C.2), for \[Stradi25\]. Deviation: none. Stated for
/// observations in [0, 1], for which Hoeffding's inequality gives 2 exp(-8u); noise within Assumption 2.1 of \[Liu21\] has
/// at most 2 exp(-4u), which the union over both signals and all (step, state, action, N) still leaves below
/// delta / 8.
#[must_use]
pub fn sops_observation_radius(visits: u64, log_factor: f64) -> f64 {
    (4.0 * log_factor / from_count(visits.max(1))).sqrt()
}

/// eps(s') of S-OPS before it is cut off at 1.
///
/// Formula: 2 sqrt(p u / max(N - 1, 1)) + 14 u / (3 max(N - 1, 1)). Citation: \[Zuo26\], (C.2), for \[Stradi25\].
/// Deviation: none.
#[must_use]
pub fn sops_successor_radius(frequency: f64, visits: u64, log_factor: f64) -> f64 {
    let count = from_count(visits.saturating_sub(1).max(1));
    2.0 * (frequency * log_factor / count).sqrt() + 14.0 * log_factor / (3.0 * count)
}

/// The radii of one learner: L, and the factor of its confidence rule on every one of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PeerRadii {
    shape: Shape,
    log_factor: f64,
    factor: f64,
}

impl PeerRadii {
    /// The radii for a problem of this shape on these terms.
    #[must_use]
    pub fn new(shape: Shape, terms: &LearningTerms) -> Self {
        Self {
            shape,
            log_factor: peer_log_factor(shape, terms.num_episodes(), terms.failure_probability()),
            factor: terms.rule().factor(),
        }
    }

    /// The radii of S-OPS, whose logarithm is u.
    #[must_use]
    pub fn of_sops(shape: Shape, terms: &LearningTerms) -> Self {
        Self {
            log_factor: sops_log_factor(shape, terms.num_episodes(), terms.failure_probability()),
            ..Self::new(shape, terms)
        }
    }

    /// L, or u of S-OPS.
    #[must_use]
    pub fn log_factor(&self) -> f64 {
        self.log_factor
    }

    /// b_o.
    #[must_use]
    pub fn observation(&self, visits: u64) -> f64 {
        self.factor * observation_radius(visits, self.log_factor)
    }

    /// The bonus that makes up for unknown signals and unknown transitions at once.
    ///
    /// Formula: b_o + H sum_s' b_p(s'). Citation: \[Efroni20\], OptCMDP-bonus. Deviation: at the last
    /// step, which no state follows (`frequencies` is empty), b_o alone.
    #[must_use]
    pub fn bonus(&self, visits: u64, frequencies: &[f64]) -> f64 {
        let successors: f64 = frequencies
            .iter()
            .map(|&frequency| successor_radius(frequency, visits, self.log_factor))
            .sum();
        self.observation(visits) + self.factor * self.shape.horizon() as f64 * successors
    }

    /// b_p(s'), the half-width of the box of plausible probabilities.
    ///
    /// Formula: b_p, and at least 1 at N = 0. Citation: \[Efroni20\], the good event. Deviation: the
    /// minimum, which changes nothing at the theorem's radii (14 L / 3 > 1). A factor below 1 could
    /// otherwise leave a pair never visited, whose frequencies are all 0, without any plausible
    /// distribution; nothing is known of it, so everything stays plausible.
    #[must_use]
    pub fn successor(&self, visits: u64, frequency: f64) -> f64 {
        let radius = self.factor * successor_radius(frequency, visits, self.log_factor);
        if visits == 0 { radius.max(1.0) } else { radius }
    }

    /// xi of S-OPS, at most 1; 1 at N = 0, whatever the factor.
    #[must_use]
    pub fn sops_observation(&self, visits: u64) -> f64 {
        self.cut_off(visits, sops_observation_radius(visits, self.log_factor))
    }

    /// eps(s') of S-OPS, at most 1; 1 at N = 0, whatever the factor.
    #[must_use]
    pub fn sops_successor(&self, visits: u64, frequency: f64) -> f64 {
        let radius = sops_successor_radius(frequency, visits, self.log_factor);
        self.cut_off(visits, radius)
    }

    /// A factor below 1 would otherwise leave a pair never visited without any plausible distribution.
    fn cut_off(&self, visits: u64, radius: f64) -> f64 {
        if visits == 0 {
            1.0
        } else {
            (self.factor * radius).min(1.0)
        }
    }

    /// The bonus of OPDOP.
    #[must_use]
    pub fn regularised(&self, visits: u64) -> f64 {
        self.factor * regularised_radius(self.shape, visits, self.log_factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_never_visited_has_a_bonus_above_any_value() {
        let shape = Shape::new(3, 2, 2).unwrap();
        let rule = crate::confidence::ConfidenceRule::Theorem;
        let radii = PeerRadii::new(shape, &LearningTerms::new(1, 0.99, rule).unwrap());
        assert!(radii.bonus(0, &[0.0, 0.0]) > 3.0);
        assert!(radii.bonus(0, &[]) > 1.0, "the last step pays at most 1");
    }

    #[test]
    fn a_pair_never_visited_may_lead_anywhere_whatever_the_factor() {
        let shape = Shape::new(3, 5, 2).unwrap();
        let rule = crate::confidence::ConfidenceRule::scaled(1e-6).unwrap();
        let radii = PeerRadii::new(shape, &LearningTerms::new(1, 0.99, rule).unwrap());
        assert!((radii.successor(0, 0.0) - 1.0).abs() < f64::EPSILON);
        assert!(radii.successor(1, 0.5) < 1e-3);
    }

    #[test]
    fn the_widths_of_s_ops_are_those_of_its_formulas_and_at_most_1() {
        // S H + 2 = 20 layered states: u = log(8 * 400 * 2 * 1e5 / 0.01) = log(6.4e10).
        let shape = Shape::new(6, 3, 2).unwrap();
        let terms = LearningTerms::new(100_000, 0.01, crate::confidence::ConfidenceRule::Theorem);
        let radii = PeerRadii::of_sops(shape, &terms.unwrap());
        let u = 6.4e10_f64.ln();
        assert!((radii.log_factor() / u - 1.0).abs() < 1e-15);
        let close = |found: f64, printed: f64| assert!((found / printed - 1.0).abs() < 1e-14);
        close(radii.sops_observation(10_000), (4.0 * u).sqrt() / 100.0);
        close(radii.sops_successor(1001, 0.0), 14.0 * u / 3000.0);
        let inner = 2.0 * (0.25 * u / 1000.0).sqrt() + 14.0 * u / 3000.0;
        close(radii.sops_successor(1001, 0.25), inner);
        for visits in [0, 1, 2, 50] {
            close(radii.sops_observation(visits), 1.0);
            close(radii.sops_successor(visits, 0.0), 1.0);
        }
    }

    #[test]
    fn the_dual_step_is_the_gap_free_form_of_its_formula() {
        let shape = Shape::new(6, 3, 2).unwrap();
        let margin = SafetyMargin::new(3.0, 0.6).unwrap();
        assert!((dual_step(shape, &margin, 100) * 10.0 * margin.gap() - 1.0).abs() < 1e-15);
        let step = mirror_step(shape, &margin, 100);
        let (horizon, rho) = (6.0_f64, 2.5_f64);
        let printed = (2.0 * 2.0_f64.ln() / (horizon.powi(2) * (1.0 + rho).powi(2) * 100.0)).sqrt();
        assert!((step / printed - 1.0).abs() < 1e-15);
    }
}
