//! The part that every learner has: start distribution, terms, estimates, and the protocol.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::confidence::LearningTerms;
use crate::error::{Error, Result};
use crate::estimate::{EmpiricalKernel, Estimates};
use crate::learn::protocol::Protocol;
use crate::learn::stored::check;
use crate::model::InitialDistribution;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// mu; K, delta and the confidence rule; counts and the estimates that follow from them; the protocol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Experience {
    initial: InitialDistribution,
    terms: LearningTerms,
    pub(super) estimates: Estimates,
    pub(super) protocol: Protocol,
    /// None if every action exists.
    actions: Option<Box<StandIns>>,
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
            actions: None,
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

    /// Which actions exist; None if all do.
    #[must_use]
    #[inline(always)]
    pub fn actions(&self) -> Option<&StandIns> {
        self.actions.as_deref()
    }

    /// Refuses actions of another problem, and any once there was a plan or some actions are known not to exist.
    pub(super) fn check_restriction(&self, actions: &StandIns) -> Result<()> {
        actions.check_shape(self.shape())?;
        match self.actions {
            None => self.protocol.check_fresh("restrict"),
            Some(_) => Err(Error::OutOfTurn {
                called: "restrict",
                expected: "next_policy",
            }),
        }
    }

    /// Sets which actions exist, after [`Experience::check_restriction`].
    pub(super) fn restrict(&mut self, actions: &StandIns) {
        self.actions = (!actions.all_exist()).then(|| Box::new(actions.clone()));
    }

    /// Moves the probability of actions that do not exist to those they stand in for.
    #[inline(always)]
    pub(super) fn fold(&self, policy: &mut MarkovPolicy) {
        if let Some(actions) = &self.actions {
            actions.fold(policy);
        }
    }

    /// Refuses a policy that plays an action that does not exist.
    pub(super) fn check_policy(&self, name: &'static str, policy: &MarkovPolicy) -> Result<()> {
        let actions = self.actions.as_ref();
        actions.map_or(Ok(()), |actions| actions.check_policy(name, policy))
    }

    /// Refuses stored parts that do not fit each other: sizes, K, and the number of episodes against the counts.
    pub(super) fn check_stored(&self) -> Result<()> {
        let shape = self.shape();
        let sizes = self.initial.data().len() == shape.num_states();
        check("the first states of a learner", sizes)?;
        if let Some(actions) = &self.actions {
            actions.check_shape(shape)?;
        }
        let k = self.terms.num_episodes();
        check("the episodes of a learner", self.protocol.fits(k))?;
        // An episode visits one pair of each step, and those that stand in for it.
        let visits = self.estimates.visits().chunks_exact(shape.pairs());
        let mut sums = visits.map(|step| step.iter().copied().fold(0, u64::saturating_add));
        let observed = self.protocol.observed();
        let counted = sums.all(|sum| match self.actions {
            None => sum == observed || sum == 0,
            Some(_) => sum >= observed || sum == 0,
        });
        check("the counts of a learner", counted)
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
        if let Some(actions) = &self.actions {
            actions.check_episode(seen)?;
            self.estimates.count_stand_ins(seen, actions)?;
        }
        self.estimates.count(seen)?;
        self.protocol.end_episode();
        Ok(())
    }
}
