//! The part that every learner has: start distribution, terms, estimates, and the protocol.

use serde::{Deserialize, Serialize};

use crate::confidence::LearningTerms;
use crate::error::{Error, Result};
use crate::estimate::{EmpiricalKernel, Estimates};
use crate::learn::protocol::Protocol;
use crate::model::InitialDistribution;
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// mu; K, delta and the confidence rule; counts and the estimates that follow from them; the protocol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Experience {
    initial: InitialDistribution,
    terms: LearningTerms,
    pub(super) estimates: Estimates,
    pub(super) protocol: Protocol,
}

impl Experience {
    /// Nothing seen yet.
    pub(super) fn new(
        estimates: Estimates,
        initial: InitialDistribution,
        terms: LearningTerms,
    ) -> Self {
        Self {
            initial,
            terms,
            estimates,
            protocol: Protocol::new(terms.num_episodes()),
        }
    }

    /// H, |S|, |A|.
    #[must_use]
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        self.estimates.shape()
    }

    /// mu.
    #[must_use]
    #[inline(always)]
    pub fn initial(&self) -> &InitialDistribution {
        &self.initial
    }

    /// K, delta and the confidence rule.
    #[must_use]
    pub fn terms(&self) -> &LearningTerms {
        &self.terms
    }

    /// Counts and averages.
    #[must_use]
    #[inline(always)]
    pub fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    /// P-hat as of the last refresh.
    #[must_use]
    #[inline(always)]
    pub fn kernel(&self) -> &EmpiricalKernel {
        self.estimates.kernel()
    }

    /// Which call comes next.
    #[must_use]
    #[inline(always)]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Counts one episode. Refuses one of another shape or out of turn, and changes nothing then.
    #[inline(always)]
    pub(super) fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.protocol.check_observe()?;
        if seen.shape() != self.shape() {
            return Err(Error::ShapeMismatch {
                array: "the episode",
                axes: "[H, S, A] of the learner",
                expected: self.shape().sizes().to_vec(),
                found: seen.shape().sizes().to_vec(),
            });
        }
        self.estimates.count(seen)?;
        self.protocol.end_episode();
        Ok(())
    }
}
