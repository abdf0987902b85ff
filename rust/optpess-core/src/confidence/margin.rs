//! The limit tau and a safe cost c0 below it.

use serde::{Deserialize, Serialize};

use crate::error::{ArrayIndex, Error, Interval, Result};

/// (tau, c0) with 0 <= c0 < tau. All formulas take the two numbers in this form.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(f64, f64)", try_from = "(f64, f64)")]
pub struct SafetyMargin {
    cost_limit: f64,
    safe_cost: f64,
}

impl From<SafetyMargin> for (f64, f64) {
    fn from(margin: SafetyMargin) -> Self {
        (margin.cost_limit, margin.safe_cost)
    }
}

/// A stored margin is checked as a given one is.
impl TryFrom<(f64, f64)> for SafetyMargin {
    type Error = Error;

    fn try_from((cost_limit, safe_cost): (f64, f64)) -> Result<Self> {
        Self::new(cost_limit, safe_cost)
    }
}

impl SafetyMargin {
    /// Refuses a limit that is not positive, a negative safe cost, and a safe cost that is not below
    /// the limit.
    pub fn new(cost_limit: f64, safe_cost: f64) -> Result<Self> {
        check(
            "cost_limit",
            cost_limit,
            Interval::open_closed(0.0, f64::MAX),
        )?;
        check("safe_cost", safe_cost, Interval::closed(0.0, f64::MAX))?;
        if safe_cost < cost_limit {
            Ok(Self {
                cost_limit,
                safe_cost,
            })
        } else {
            Err(Error::NoSafetyMargin {
                safe_cost,
                limit: cost_limit,
            })
        }
    }

    /// tau.
    #[must_use]
    pub fn cost_limit(&self) -> f64 {
        self.cost_limit
    }

    /// c0.
    #[must_use]
    pub fn safe_cost(&self) -> f64 {
        self.safe_cost
    }

    /// tau - c0, positive.
    #[must_use]
    pub fn gap(&self) -> f64 {
        self.cost_limit - self.safe_cost
    }

    /// (tau + c0) / 2, the threshold of Eq. (9).
    #[must_use]
    pub fn midpoint(&self) -> f64 {
        f64::midpoint(self.cost_limit, self.safe_cost)
    }

    /// Refuses a limit above the horizon: the paper has tau in (0, H].
    pub fn check_horizon(&self, horizon: usize) -> Result<()> {
        check(
            "cost_limit",
            self.cost_limit,
            Interval::open_closed(0.0, horizon as f64),
        )
    }
}

/// Refuses a scalar parameter outside its range.
pub(crate) fn check(name: &'static str, found: f64, allowed: Interval) -> Result<()> {
    if allowed.contains(found) {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            place: ArrayIndex::scalar(name),
            found,
            allowed,
        })
    }
}
