//! Assumption 2.2 of a learner against the true model: whether the policy that it was told of is as safe as it was told.

use std::fmt;

use crate::control::Control;
use crate::error::Result;
use crate::evaluate::Evaluator;
use crate::learn::{AnyLearner, BaselineClaim, Learner};
use crate::model::ConstrainedMdp;
use crate::parallel::Workers;
use crate::plan::{Objective, Point, extreme};
use crate::run::replicate::check_model;

/// The allowance for rounding, relative to the size of the values compared.
const ROUNDING: f64 = 1e-9;

/// By how much `left` is above `right`, beyond rounding; not positive if it is not.
pub(crate) fn excess_over(left: f64, right: f64) -> f64 {
    left - right - ROUNDING * left.abs().max(right.abs()).max(1.0)
}

/// What was stated to a learner of the cost of a safe policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StatedCost {
    /// pi0 costs at most c0.
    BaselineAtMost(f64),
    /// pi0 costs less than tau; how much less is estimated.
    BaselineBelow(f64),
    /// Some policy, which is not given, costs at most c0.
    SomePolicyAtMost(f64),
}

/// What a learner was told of a safe policy, and the truth. No guarantee holds in a model that contradicts it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SafetyClaim {
    stated: StatedCost,
    true_cost: f64,
}

impl SafetyClaim {
    /// The claim of a learner in a model; None if it was told of no safe policy.
    pub fn of(model: &ConstrainedMdp, learner: &AnyLearner) -> Result<Option<Self>> {
        check_model(model, learner)?;
        if let Some((policy, claims)) = learner.claimed_baseline() {
            let mut evaluator = Evaluator::new(model.shape())?;
            let claims = claims
                .into_iter()
                .zip(model.costs())
                .map(|(claim, cost)| Self {
                    stated: match claim {
                        BaselineClaim::AtMost(bound) => StatedCost::BaselineAtMost(bound),
                        BaselineClaim::Below(limit) => StatedCost::BaselineBelow(limit),
                    },
                    true_cost: evaluator.evaluate(policy, cost, model.kernel(), model.initial()),
                });
            // With several constraints, the claim that the truth contradicts most.
            return Ok(claims.max_by(|a, b| a.excess().total_cmp(&b.excess())));
        }
        let Some(margin) = learner.margin() else {
            return Ok(None);
        };
        let control = Control::default();
        let workers = Workers::alone(&control);
        let least = extreme(model, 0, Objective::LeastCostAlone, workers)?;
        Ok(Some(Self {
            stated: StatedCost::SomePolicyAtMost(margin.safe_cost()),
            true_cost: least.cost(),
        }))
    }

    /// What was stated.
    #[must_use]
    pub fn stated(&self) -> StatedCost {
        self.stated
    }

    /// V(c, P) of pi0; the least V(c, P) of any policy if no policy was given.
    #[must_use]
    pub fn true_cost(&self) -> f64 {
        self.true_cost
    }

    /// By how much the truth contradicts the claim, beyond rounding; not positive if it does not.
    #[must_use]
    pub fn excess(&self) -> f64 {
        match self.stated {
            StatedCost::BaselineAtMost(bound) | StatedCost::SomePolicyAtMost(bound) => {
                excess_over(self.true_cost, bound)
            }
            // Strictly below: equality contradicts it too.
            StatedCost::BaselineBelow(limit) => self.true_cost - limit.next_down(),
        }
    }

    /// Whether the truth agrees with the claim.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.excess() <= 0.0
    }
}

/// The truth and the claim in one sentence.
impl fmt::Display for SafetyClaim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.true_cost;
        match self.stated {
            StatedCost::BaselineAtMost(bound) => write!(
                out,
                "the baseline costs {found} in this model; the learner was told that it costs at most {bound}"
            ),
            StatedCost::BaselineBelow(limit) => write!(
                out,
                "the baseline costs {found} in this model; the learner was told that it costs less than {limit}"
            ),
            StatedCost::SomePolicyAtMost(bound) => write!(
                out,
                "no policy costs less than {found} in this model; the learner was told that one costs at most {bound}"
            ),
        }
    }
}
