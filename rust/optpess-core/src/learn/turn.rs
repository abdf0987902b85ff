//! Whose turn it is.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Keeps the two verbs in turn and counts episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Protocol {
    num_episodes: u64,
    observed: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Plan,
    /// The gate is open and the plan is to come from outside.
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

    pub(crate) fn observed(&self) -> u64 {
        self.observed
    }

    /// k = 1, 2, ... of the episode that is planned or played.
    pub(crate) fn k(&self) -> u64 {
        self.observed + 1
    }

    #[inline(always)]
    pub(crate) fn check_plan(&self) -> Result<()> {
        match self.stage {
            Stage::Plan if self.observed < self.num_episodes => Ok(()),
            Stage::Plan => Err(Error::EpisodesExhausted {
                num_episodes: self.num_episodes,
            }),
            // An outside engine that failed or was interrupted may be asked again.
            Stage::AwaitCandidate => Ok(()),
            Stage::Observe => Err(self.out_of_turn("next_policy")),
        }
    }

    pub(crate) fn await_candidate(&mut self) {
        self.stage = Stage::AwaitCandidate;
    }

    pub(crate) fn check_awaiting(&self) -> Result<()> {
        match self.stage {
            Stage::AwaitCandidate => Ok(()),
            _ => Err(self.out_of_turn("deploy")),
        }
    }

    #[inline(always)]
    pub(crate) fn planned(&mut self) {
        self.stage = Stage::Observe;
    }

    #[inline(always)]
    pub(crate) fn check_observe(&self) -> Result<()> {
        match self.stage {
            Stage::Observe => Ok(()),
            _ => Err(self.out_of_turn("observe")),
        }
    }

    #[inline(always)]
    pub(crate) fn seen(&mut self) {
        self.observed += 1;
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
