//! The known safe policy, and what is known of its cost.

use serde::{Deserialize, Serialize};

use crate::confidence::SafetyMargin;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::policy::MarkovPolicy;

/// pi0 with what is known of its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SafeBaseline {
    policy: MarkovPolicy,
    safe_cost: SafeCost,
}

/// What is known of the cost of pi0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum SafeCost {
    /// An upper bound c0 below the limit.
    Known(SafetyMargin),
    /// Only that it is below this limit: pi0 is played until its cost is known well enough
    /// (\[Liu21\], Appendix E).
    Estimated {
        /// tau.
        cost_limit: f64,
        /// How far the average is trusted.
        radius: CostRadius,
    },
}

impl SafeBaseline {
    /// A policy whose cost is at most the margin's safe cost.
    pub fn new(policy: MarkovPolicy, margin: SafetyMargin) -> Result<Self> {
        margin.check_horizon(policy.shape().horizon())?;
        Ok(Self {
            policy,
            safe_cost: SafeCost::Known(margin),
        })
    }

    /// A policy that is strictly safe, with a cost still to be estimated.
    pub fn estimated(policy: MarkovPolicy, cost_limit: f64, radius: CostRadius) -> Result<Self> {
        let allowed = Interval::open_closed(0.0, policy.shape().horizon() as f64);
        if !allowed.contains(cost_limit) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::scalar("cost_limit"),
                found: cost_limit,
                allowed,
            });
        }
        Ok(Self {
            policy,
            safe_cost: SafeCost::Estimated { cost_limit, radius },
        })
    }

    /// pi0.
    #[must_use]
    pub fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    /// What is known of its cost.
    #[must_use]
    pub fn safe_cost(&self) -> SafeCost {
        self.safe_cost
    }

    /// tau.
    #[must_use]
    pub fn cost_limit(&self) -> f64 {
        match self.safe_cost {
            SafeCost::Known(margin) => margin.cost_limit(),
            SafeCost::Estimated { cost_limit, .. } => cost_limit,
        }
    }
}

/// How far the average cost of k episodes of pi0 may be from its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CostRadius {
    /// Valid for the paper's noise.
    ///
    /// Formula: sqrt((H^2/2 + H) log(2K/d) / k). Derivation: given its path, an episode's cost is a
    /// sum of H independent terms of variance proxy 1/2; its mean given the path lies in \[0, H\],
    /// proxy H^2/4; proxies add to H^2/4 + H/2, and Hoeffding's bound is taken over k <= K and both
    /// sides. Deviation from \[Liu21\], Appendix E: the paper's radius does not cover
    /// (docs/paper-notes.md).
    SubGaussian,
    /// The paper's, sqrt(log(2K/d) / (k H)); it under-covers, so it carries no guarantee.
    Paper,
}

impl CostRadius {
    /// The radius after k >= 1 episodes.
    #[must_use]
    pub fn at(self, k: u64, horizon: usize, num_episodes: u64, failure_probability: f64) -> f64 {
        let horizon = horizon as f64;
        let log = (2.0 * num_episodes as f64 / failure_probability).ln();
        match self {
            Self::SubGaussian => ((horizon * horizon / 2.0 + horizon) * log / k as f64).sqrt(),
            Self::Paper => (log / (k as f64 * horizon)).sqrt(),
        }
    }

    /// Whether the radius covers with the probability it claims.
    #[must_use]
    pub fn is_valid(self) -> bool {
        matches!(self, Self::SubGaussian)
    }
}

/// The running average of the cost of pi0, until it can be bounded away from the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostEstimation {
    cost_limit: f64,
    radius: CostRadius,
    num_episodes: u64,
    failure_probability: f64,
    episodes: u64,
    total: f64,
}

impl CostEstimation {
    pub(crate) fn new(
        cost_limit: f64,
        radius: CostRadius,
        num_episodes: u64,
        failure_probability: f64,
    ) -> Self {
        Self {
            cost_limit,
            radius,
            num_episodes,
            failure_probability,
            episodes: 0,
            total: 0.0,
        }
    }

    /// Takes in the costs of one episode of pi0; returns the margin once the estimate is good enough.
    ///
    /// Formula: stop at the first k with tau - c-hat(k) >= 3 radius(k), and use
    /// c0' = c-hat(k) + radius(k). Citation: \[Liu21\], Appendix E. Deviation: the radius; and c0' is
    /// not taken below 0, where no cost lies.
    pub(crate) fn observe(&mut self, costs: &[f64]) -> Result<Option<SafetyMargin>> {
        self.episodes += 1;
        self.total += costs.iter().sum::<f64>();
        let mean = self.total / self.episodes as f64;
        let radius = self.radius.at(
            self.episodes,
            costs.len(),
            self.num_episodes,
            self.failure_probability,
        );
        if self.cost_limit - mean >= 3.0 * radius {
            SafetyMargin::new(self.cost_limit, (mean + radius).max(0.0)).map(Some)
        } else {
            Ok(None)
        }
    }
}
