//! The safe policy pi0, what the user knows of its cost, and the estimation of that cost (Appendix E).

use serde::{Deserialize, Serialize};

use crate::confidence::{CostRadius, LearningTerms, SafetyMargin};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::learn::PolicySource;
use crate::policy::MarkovPolicy;
use crate::trajectory::Trajectory;

/// pi0 with what is known of its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SafeBaseline {
    policy: MarkovPolicy,
    cost: BaselineCost,
}

/// What the user knows of the cost of pi0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum BaselineCost {
    /// An upper bound c0 below the limit.
    Bounded(SafetyMargin),
    /// Only that it is below this limit: pi0 is played until its cost is known well enough
    /// (\[Liu21\], Appendix E).
    Unknown {
        /// tau.
        cost_limit: f64,
        /// The confidence radius of the average cost.
        radius: CostRadius,
    },
}

/// What is claimed of a cost of pi0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BaselineClaim {
    /// It is at most this.
    AtMost(f64),
    /// It is below this limit; how much is estimated.
    Below(f64),
}

impl SafeBaseline {
    /// pi0, and what is claimed of its cost.
    #[must_use]
    pub fn claims(&self) -> (&MarkovPolicy, Vec<BaselineClaim>) {
        let claim = match self.cost {
            BaselineCost::Bounded(margin) => BaselineClaim::AtMost(margin.safe_cost()),
            BaselineCost::Unknown { cost_limit, .. } => BaselineClaim::Below(cost_limit),
        };
        (&self.policy, vec![claim])
    }

    /// A policy whose cost is at most the margin's safe cost.
    pub fn new(policy: MarkovPolicy, margin: SafetyMargin) -> Result<Self> {
        margin.check_horizon(policy.shape().horizon())?;
        Ok(Self {
            policy,
            cost: BaselineCost::Bounded(margin),
        })
    }

    /// A strictly safe policy whose cost is to be estimated.
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
            cost: BaselineCost::Unknown { cost_limit, radius },
        })
    }

    /// pi0.
    #[must_use]
    pub fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    /// What the user knows of its cost.
    #[must_use]
    pub fn cost(&self) -> BaselineCost {
        self.cost
    }

    /// (tau, c0), if c0 is given.
    #[must_use]
    pub fn margin(&self) -> Option<SafetyMargin> {
        match self.cost {
            BaselineCost::Bounded(margin) => Some(margin),
            BaselineCost::Unknown { .. } => None,
        }
    }

    /// Whether c0 is given, or will be estimated with a radius that covers.
    #[must_use]
    pub fn cost_is_valid(&self) -> bool {
        match self.cost {
            BaselineCost::Bounded(_) => true,
            BaselineCost::Unknown { radius, .. } => radius.is_valid(),
        }
    }

    /// delta of a learner on these terms, with what the estimation of c0 spends ([`SafeCost::begin`]).
    pub(crate) fn total_failure_probability(&self, terms: &LearningTerms) -> f64 {
        match self.cost {
            BaselineCost::Bounded(_) => terms.failure_probability(),
            BaselineCost::Unknown { .. } => 2.0 * terms.failure_probability(),
        }
    }

    /// tau.
    #[must_use]
    pub fn cost_limit(&self) -> f64 {
        match self.cost {
            BaselineCost::Bounded(margin) => margin.cost_limit(),
            BaselineCost::Unknown { cost_limit, .. } => cost_limit,
        }
    }
}

/// The learner's knowledge of c0: known, or being estimated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum SafeCost {
    Known(SafetyMargin),
    Estimating(CostEstimation),
}

impl SafeCost {
    /// The state at the start, and the remaining terms: an estimation (Appendix E) spends half of delta.
    pub(crate) fn begin(
        baseline: &SafeBaseline,
        terms: LearningTerms,
    ) -> Result<(Self, LearningTerms)> {
        match baseline.cost() {
            BaselineCost::Bounded(margin) => Ok((Self::Known(margin), terms)),
            BaselineCost::Unknown { cost_limit, radius } => {
                let terms = terms.with_half_of_delta()?;
                let estimation = CostEstimation::new(cost_limit, radius, &terms);
                Ok((Self::Estimating(estimation), terms))
            }
        }
    }

    /// Whether it can have come from [`SafeCost::begin`] with this baseline, which left these terms.
    pub(crate) fn fits(&self, baseline: &SafeBaseline, terms: &LearningTerms) -> bool {
        match (self, baseline.cost()) {
            (Self::Known(margin), BaselineCost::Bounded(given)) => *margin == given,
            (Self::Known(margin), BaselineCost::Unknown { cost_limit, .. }) => {
                margin.cost_limit().to_bits() == cost_limit.to_bits()
            }
            (Self::Estimating(found), BaselineCost::Unknown { cost_limit, radius }) => {
                let fresh = CostEstimation {
                    episodes: found.episodes,
                    total: found.total,
                    ..CostEstimation::new(cost_limit, radius, terms)
                };
                *found == fresh
            }
            (Self::Estimating(_), BaselineCost::Bounded(_)) => false,
        }
    }

    /// (tau, c0), once c0 is known.
    #[inline(always)]
    pub(crate) fn margin(&self) -> Option<SafetyMargin> {
        match self {
            Self::Known(margin) => Some(*margin),
            Self::Estimating(_) => None,
        }
    }

    /// The source that a deployment of pi0 has now.
    #[inline(always)]
    pub(crate) fn source(&self) -> PolicySource {
        match self {
            Self::Known(_) => PolicySource::Baseline,
            Self::Estimating(_) => PolicySource::BaselineEstimation,
        }
    }

    /// Counts one episode of pi0; returns the margin if c0 has just become known.
    #[inline(always)]
    pub(crate) fn observe(&mut self, seen: &Trajectory) -> Result<Option<SafetyMargin>> {
        let Self::Estimating(estimation) = self else {
            return Ok(None);
        };
        let costs = &seen.costs()[..seen.shape().horizon()];
        let margin = estimation.observe(costs)?;
        if let Some(margin) = margin {
            *self = Self::Known(margin);
        }
        Ok(margin)
    }
}

/// The running average of the cost of pi0.
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
    fn new(cost_limit: f64, radius: CostRadius, terms: &LearningTerms) -> Self {
        Self {
            cost_limit,
            radius,
            num_episodes: terms.num_episodes(),
            failure_probability: terms.failure_probability(),
            episodes: 0,
            total: 0.0,
        }
    }

    /// Adds the costs of one episode of pi0; returns the margin once the estimate is good enough.
    ///
    /// Formula: stop at the first k with tau - c-hat(k) >= 3 radius(k), and use
    /// c0' = c-hat(k) + radius(k). Citation: \[Liu21\], Appendix E. Deviation: the radius; and c0' is
    /// not taken below 0, where no cost lies.
    fn observe(&mut self, costs: &[f64]) -> Result<Option<SafetyMargin>> {
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

/// pi0 with the limit of every constraint, and what is known of its costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitedBaseline {
    policy: MarkovPolicy,
    limits: Vec<f64>,
    costs: Option<Vec<f64>>,
}

impl LimitedBaseline {
    /// A policy whose cost is at most the safe cost of each margin; one margin a constraint.
    pub fn new(policy: MarkovPolicy, margins: &[SafetyMargin]) -> Result<Self> {
        check_number(margins.len())?;
        for margin in margins {
            margin.check_horizon(policy.shape().horizon())?;
        }
        Ok(Self {
            policy,
            limits: margins.iter().map(SafetyMargin::cost_limit).collect(),
            costs: Some(margins.iter().map(SafetyMargin::safe_cost).collect()),
        })
    }

    /// A policy that is strictly within every limit, by how much is not known.
    pub fn estimated(policy: MarkovPolicy, limits: &[f64]) -> Result<Self> {
        check_number(limits.len())?;
        let allowed = Interval::open_closed(0.0, policy.shape().horizon() as f64);
        for (constraint, &limit) in limits.iter().enumerate() {
            if !allowed.contains(limit) {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new("cost_limit", &[constraint]),
                    found: limit,
                    allowed,
                });
            }
        }
        Ok(Self {
            policy,
            limits: limits.to_vec(),
            costs: None,
        })
    }

    /// pi0.
    #[must_use]
    pub fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    /// pi0, and what is claimed of each of its costs.
    #[must_use]
    pub fn claims(&self) -> (&MarkovPolicy, Vec<BaselineClaim>) {
        let claims = match &self.costs {
            Some(costs) => costs.iter().copied().map(BaselineClaim::AtMost).collect(),
            None => self
                .limits
                .iter()
                .copied()
                .map(BaselineClaim::Below)
                .collect(),
        };
        (&self.policy, claims)
    }

    /// tau of every constraint.
    #[must_use]
    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    /// c0 of every constraint, if given.
    #[must_use]
    pub fn costs(&self) -> Option<&[f64]> {
        self.costs.as_deref()
    }
}

fn check_number(constraints: usize) -> Result<()> {
    if constraints > 0 {
        return Ok(());
    }
    Err(Error::EmptyAxis {
        array: "the margins of the baseline",
        axis: 0,
        found: vec![0],
    })
}
