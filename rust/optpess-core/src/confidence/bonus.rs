//! The bonus b as a function of visits, and the terms it follows from: K, delta and the confidence rule. `sharp.rs` has
//! the bonuses of the rule Sharp.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::{confidence_radius, cost_bonus_scale, log_factor};
use crate::confidence::margin::check;
use crate::confidence::sharp::SharpBonus;
use crate::error::{Error, Interval, Result};
use crate::estimate::{Estimates, RowEstimate};
use crate::number::{MAX_COUNT, Number, from_count};
use crate::shape::Shape;

/// How the bonus b is computed. A rule that leaves the theorem voids the guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ConfidenceRule {
    /// b = (1 + H S) beta, as the theorems require.
    Theorem,
    /// The theorem's bonus times a factor; no guarantee.
    Scaled(ScaleFactor),
    /// Bonuses from confidence sets that hold at all times, for observations in \[0, 1\]. For Algorithm 1.
    Sharp,
}

/// A positive, finite factor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScaleFactor(f64);

/// The largest factor: with a larger one bonuses and what is multiplied with them may overflow.
const MAX_FACTOR: f64 = 1e100;

impl ConfidenceRule {
    /// The theorem's bonus times `factor`.
    pub fn scaled(factor: f64) -> Result<Self> {
        check("factor", factor, Interval::open_closed(0.0, MAX_FACTOR))?;
        Ok(Self::Scaled(ScaleFactor(factor)))
    }

    /// The factor of the theorem's bonus; 1 for Sharp, which does not use that bonus.
    #[must_use]
    pub fn factor(&self) -> f64 {
        match self {
            Self::Theorem | Self::Sharp => 1.0,
            Self::Scaled(factor) => factor.0,
        }
    }

    /// Whether the guarantees hold for this rule.
    #[must_use]
    pub fn keeps_guarantee(&self) -> bool {
        matches!(self, Self::Theorem | Self::Sharp)
    }
}

/// The largest K: constants and averages take K and counts as f64, exactly.
pub const MAX_EPISODES: u64 = MAX_COUNT;

/// The least failure probability. Products of a smaller one with shares of it may underflow, and then its logarithm is
/// infinite.
pub const MIN_FAILURE_PROBABILITY: f64 = 1e-200;

/// Refuses a failure probability outside [1e-200, 1).
pub(crate) fn check_failure_probability(found: f64) -> Result<()> {
    let allowed = Interval::closed_open(MIN_FAILURE_PROBABILITY, 1.0);
    check("failure_probability", found, allowed)
}

/// K, delta and the confidence rule of a learner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredTerms", try_from = "StoredTerms")]
pub struct LearningTerms {
    num_episodes: u64,
    failure_probability: f64,
    rule: ConfidenceRule,
}

/// The stored form of [`LearningTerms`]: K, delta and the rule.
type StoredTerms = (u64, f64, ConfidenceRule);

impl From<LearningTerms> for StoredTerms {
    fn from(terms: LearningTerms) -> Self {
        (terms.num_episodes, terms.failure_probability, terms.rule)
    }
}

/// Stored terms are checked as given ones are.
impl TryFrom<StoredTerms> for LearningTerms {
    type Error = Error;

    fn try_from((num_episodes, failure_probability, rule): StoredTerms) -> Result<Self> {
        if let ConfidenceRule::Scaled(factor) = rule {
            ConfidenceRule::scaled(factor.0)?;
        }
        Self::new(num_episodes, failure_probability, rule)
    }
}

impl LearningTerms {
    /// Refuses K outside [1, 2^53) and delta outside [1e-200, 1).
    pub fn new(num_episodes: u64, failure_probability: f64, rule: ConfidenceRule) -> Result<Self> {
        let most = Interval::closed(1.0, MAX_EPISODES as f64);
        check("num_episodes", num_episodes as f64, most)?;
        check_failure_probability(failure_probability)?;
        Ok(Self {
            num_episodes,
            failure_probability,
            rule,
        })
    }

    /// K.
    #[must_use]
    pub fn num_episodes(&self) -> u64 {
        self.num_episodes
    }

    /// delta.
    #[must_use]
    pub fn failure_probability(&self) -> f64 {
        self.failure_probability
    }

    /// The confidence rule.
    #[must_use]
    pub fn rule(&self) -> ConfidenceRule {
        self.rule
    }

    /// The same with another failure probability.
    pub fn with_failure_probability(&self, failure_probability: f64) -> Result<Self> {
        Self::new(self.num_episodes, failure_probability, self.rule)
    }

    /// The same with half of delta, whose other half is spent elsewhere.
    pub(crate) fn with_half_of_delta(&self) -> Result<Self> {
        let allowed = Interval::closed_open(2.0 * MIN_FAILURE_PROBABILITY, 1.0);
        check("failure_probability", self.failure_probability, allowed)?;
        self.with_failure_probability(self.failure_probability / 2.0)
    }

    /// Refuses Sharp, which has a proof for Algorithm 1 only.
    pub(crate) fn check_rule(&self, learner: &'static str) -> Result<()> {
        match self.rule {
            ConfidenceRule::Sharp => Err(Error::RuleWithoutProof {
                rule: "Sharp",
                learner,
            }),
            ConfidenceRule::Theorem | ConfidenceRule::Scaled(_) => Ok(()),
        }
    }

    /// The bonuses of Sharp; None for the other rules.
    pub fn sharp_bonus(&self, shape: Shape) -> Result<Option<SharpBonus>> {
        match self.rule {
            ConfidenceRule::Sharp => SharpBonus::new(shape, self.failure_probability).map(Some),
            ConfidenceRule::Theorem | ConfidenceRule::Scaled(_) => Ok(None),
        }
    }

    /// The bonus b as a function of visits. Not for Sharp, whose bonuses also depend on what was observed.
    #[must_use]
    pub fn bonus(&self, shape: Shape) -> Bonus {
        Bonus {
            log_factor: log_factor(shape, self.num_episodes, self.failure_probability),
            scale: self.rule.factor() * cost_bonus_scale(shape),
        }
    }
}

/// b_h(s,a) = scale beta_h(s,a), a function of the number of visits alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bonus {
    log_factor: f64,
    scale: f64,
}

impl Bonus {
    /// b of a row.
    #[must_use]
    #[inline(always)]
    pub fn of(&self, row: &RowEstimate<'_>) -> f64 {
        self.at(row.visits)
    }

    /// b after N visits.
    #[must_use]
    #[inline(always)]
    pub fn at(&self, visits: u64) -> f64 {
        self.after(from_count(visits))
    }

    /// b after N visits, which may be an expected, hence fractional, number.
    ///
    /// Formula: b = factor (1 + H S) sqrt(Z / max(N, 1)). Citation: \[Liu21\], Eq. (8), (11). Deviation: the
    /// factor, which is 1 under the theorem's rule.
    #[must_use]
    #[inline(always)]
    pub fn after<V: Number>(&self, visits: V) -> V {
        confidence_radius(visits, self.log_factor).map(|radius| self.scale * radius)
    }

    /// b of every row, `[H, S, A]`, from its counts.
    #[must_use]
    pub fn of_all(&self, estimates: &Estimates) -> Vec<f64> {
        let visits = estimates.visits().iter();
        visits.map(|&visits| self.at(visits)).collect()
    }

    /// Z.
    #[must_use]
    pub fn log_factor(&self) -> f64 {
        self.log_factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A factor of 1e308 was told that "signal[0, 0, 0] is inf".
    #[test]
    fn a_factor_that_makes_bonuses_overflow_is_refused() {
        let refusal = ConfidenceRule::scaled(1e308).unwrap_err().to_string();
        assert_eq!(refusal, "factor is 1e308; it must lie in (0, 1e100]");
    }

    // 1e-308 overflowed before the logarithm: "signal[0, 0, 0] is inf".
    #[test]
    fn bonuses_are_finite_for_every_failure_probability_that_is_allowed() {
        let shape = Shape::new(1 << 10, 1 << 11, 1 << 10).unwrap();
        let terms = |delta| LearningTerms::new(MAX_EPISODES, delta, ConfidenceRule::Theorem);
        let least = terms(MIN_FAILURE_PROBABILITY).unwrap();
        assert!(least.bonus(shape).at(0).is_finite());
        let refusal = terms(1e-308).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "failure_probability is 1e-308; it must lie in [1e-200, 1)"
        );
        let refusal = least.with_half_of_delta().unwrap_err().to_string();
        assert_eq!(
            refusal,
            "failure_probability is 1e-200; it must lie in [2e-200, 1)"
        );
    }
}
