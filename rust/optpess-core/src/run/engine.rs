//! Which of the equivalent implementations of a run is used.

use crate::error::{Error, Result};
use crate::lanes::LANES;

/// The implementations of a run. All give the same bits; tests force each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The fastest that the learner, the problem and what is observed allow.
    #[default]
    Auto,
    /// The learner itself, every figure of every deployment computed; an audit needs it.
    Plain,
    /// One replicate at a time, and only what a record needs. A learner without shortcuts runs as in `Plain`.
    Packed,
    /// Replicates of a tiny problem in the lanes of vectors; for OptPess-PrimalDual, without trace or audit.
    Batch {
        /// How many at once: 1 or 8.
        lanes: usize,
    },
}

impl EngineChoice {
    /// Refuses what cannot be, whatever the learner.
    pub(super) fn check(self, trace: bool, audit: bool) -> Result<()> {
        match self {
            Self::Packed if audit => refused("Packed", "an audit reads figures it leaves out"),
            Self::Batch { .. } if trace => refused("Batch", "it keeps no trace"),
            Self::Batch { .. } if audit => refused("Batch", "an audit reads figures it leaves out"),
            Self::Batch { lanes } if lanes != 1 && lanes != LANES => {
                refused("Batch", "it has 1 or 8 lanes")
            }
            _ => Ok(()),
        }
    }
}

/// The refusal of an engine.
pub(super) fn refused<T>(engine: &'static str, reason: &'static str) -> Result<T> {
    Err(Error::NoSuchEngine { engine, reason })
}
