//! The bonus b as a function of visits, and the terms it follows from: K, delta and the confidence rule. `sharp.rs` has
//! the bonuses of the rule Sharp.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::{confidence_radius, cost_bonus_scale, log_factor};
use crate::confidence::margin::check;
use crate::confidence::sharp::SharpBonus;
use crate::error::{Error, Interval, Result};
use crate::estimate::{Estimates, RowEstimate};
use crate::number::Number;
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

impl ConfidenceRule {
    /// The theorem's bonus times `factor`.
    pub fn scaled(factor: f64) -> Result<Self> {
        check("factor", factor, Interval::open_closed(0.0, f64::MAX))?;
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

/// The largest K. Counts are 32-bit: half the memory traffic, and enough for 4.29 * 10^9 episodes.
pub const MAX_EPISODES: u64 = u32::MAX as u64;

/// K, delta and the confidence rule of a learner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LearningTerms {
    num_episodes: u64,
    failure_probability: f64,
    rule: ConfidenceRule,
}

impl LearningTerms {
    /// Refuses K outside [1, 2^32) and delta outside (0, 1).
    pub fn new(num_episodes: u64, failure_probability: f64, rule: ConfidenceRule) -> Result<Self> {
        let most = Interval::closed(1.0, MAX_EPISODES as f64);
        check("num_episodes", num_episodes as f64, most)?;
        check(
            "failure_probability",
            failure_probability,
            Interval::open(0.0, 1.0),
        )?;
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
    pub fn at(&self, visits: u32) -> f64 {
        self.after(f64::from(visits))
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
