//! The protocol of a learner: planning and observing alternate, K times at most.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Which call comes next, and how many episodes have been observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    num_episodes: u64,
    observed: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Plan,
    /// Estimates are up to date and a candidate is to be deployed.
    AwaitCandidate,
    Observe,
}

impl Protocol {
    pub(crate) fn new(num_episodes: u64) -> Self {
        Self {
            num_episodes,
            observed: 0,
            stage: Stage::Plan,
        }
    }

    /// The number of episodes observed so far.
    #[must_use]
    #[inline(always)]
    pub fn observed(&self) -> u64 {
        self.observed
    }

    /// k = 1, 2, ... of the episode that is planned or played.
    #[must_use]
    #[inline(always)]
    pub fn k(&self) -> u64 {
        self.observed + 1
    }

    /// Whether it is that of a learner with K episodes.
    pub(crate) fn fits(&self, num_episodes: u64) -> bool {
        let left = match self.stage {
            Stage::Plan => self.observed <= num_episodes,
            Stage::AwaitCandidate | Stage::Observe => self.observed < num_episodes,
        };
        left && self.num_episodes == num_episodes
    }

    /// Refuses what must come before the first plan.
    pub(crate) fn check_fresh(&self, called: &'static str) -> Result<()> {
        match self.stage {
            Stage::Plan if self.observed == 0 => Ok(()),
            _ => Err(self.out_of_turn(called)),
        }
    }

    /// Refuses a plan out of turn or after the last episode. A plan that failed may be repeated.
    #[inline(always)]
    pub(crate) fn check_plan(&self) -> Result<()> {
        match self.stage {
            Stage::Plan if self.observed < self.num_episodes => Ok(()),
            Stage::Plan => Err(Error::EpisodesExhausted {
                num_episodes: self.num_episodes,
            }),
            Stage::AwaitCandidate => Ok(()),
            Stage::Observe => Err(self.out_of_turn("next_policy")),
        }
    }

    /// Begins a plan; a candidate may then be deployed.
    #[inline(always)]
    pub(crate) fn await_candidate(&mut self) -> Result<()> {
        self.check_plan()?;
        self.stage = Stage::AwaitCandidate;
        Ok(())
    }

    /// Refuses a candidate if no plan has begun.
    #[inline(always)]
    pub(crate) fn check_awaiting(&self) -> Result<()> {
        match self.stage {
            Stage::AwaitCandidate => Ok(()),
            _ => Err(self.out_of_turn("deploy")),
        }
    }

    /// Notes that a policy is deployed; returns its episode, from 0.
    #[inline(always)]
    pub(crate) fn deploy(&mut self) -> Result<u64> {
        self.check_plan()?;
        self.stage = Stage::Observe;
        Ok(self.observed)
    }

    /// Refuses an episode that was not planned.
    #[inline(always)]
    pub(crate) fn check_observe(&self) -> Result<()> {
        match self.stage {
            Stage::Observe => Ok(()),
            _ => Err(self.out_of_turn("observe")),
        }
    }

    /// Notes that the episode has been observed.
    #[inline(always)]
    pub(crate) fn end_episode(&mut self) {
        self.observed += 1;
        self.stage = Stage::Plan;
    }

    /// Lets a plan be made again for an episode that was planned and not played.
    pub(crate) fn reopen(&mut self) {
        self.stage = Stage::Plan;
    }

    /// Notes that so many episodes have been planned and observed in all, by an engine that keeps no protocol.
    pub(crate) fn skip_to(&mut self, observed: u64) {
        self.observed = observed;
        self.stage = Stage::Plan;
    }

    fn out_of_turn(&self, called: &'static str) -> Error {
        let expected = match self.stage {
            Stage::Plan => "next_policy",
            Stage::AwaitCandidate => "the plan of an outside engine",
            Stage::Observe => "observe",
        };
        Error::OutOfTurn { called, expected }
    }
}
