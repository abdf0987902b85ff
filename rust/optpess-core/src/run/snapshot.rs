//! The states of the replicates of a run between two episodes: what a checkpoint holds, and from what a run goes on.
//!
//! A state is the learner, the record, the position of the noise, the trace and the audit. Everything else follows from
//! the arguments of the run and the number of episodes: engines and judges are made anew, and the other streams are
//! moved. Replicates are independent, so the states of a run may be of different episodes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::learn::stored::{from_bytes, to_bytes};
use crate::learn::{AnyLearner, Learner};
use crate::record::RecorderState;
use crate::run::audit::AuditState;
use crate::run::episode_loop::Trace;

/// A replicate between two episodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReplicateState {
    pub(crate) record: RecorderState,
    /// None after the last episode of a run that does not keep its learners.
    pub(crate) learner: Option<AnyLearner>,
    /// c0 as the learner uses it; NaN while it is unknown.
    pub(crate) safe_cost: f64,
    pub(crate) noise_words: u128,
    pub(crate) trace: Option<Trace>,
    pub(crate) audit: Option<AuditState>,
}

/// A replicate between two episodes, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReplicate {
    /// How many episodes it has played.
    pub episodes: u64,
    /// Its state.
    pub bytes: Arc<[u8]>,
}

impl StoredReplicate {
    /// A state as bytes.
    pub(crate) fn of(state: &ReplicateState) -> Result<Self> {
        let bytes = to_bytes("the state of a replicate", state)?;
        Ok(Self {
            episodes: state.record.episodes(),
            bytes: bytes.into(),
        })
    }

    /// The state in the bytes, which must be that of a run of this learner.
    pub(crate) fn state(&self, first: &AnyLearner) -> Result<ReplicateState> {
        let damaged = |what| Error::StoredState { what };
        let state: ReplicateState = from_bytes("the state of a replicate", &self.bytes)?;
        if state.record.episodes() != self.episodes {
            return Err(damaged("the number of episodes of a replicate"));
        }
        if let Some(learner) = &state.learner {
            learner.check_stored()?;
            let seen = first.episodes_observed() + self.episodes;
            let same_kind = std::mem::discriminant(learner) == std::mem::discriminant(first);
            if !same_kind || learner.shape() != first.shape() || learner.episodes_observed() != seen
            {
                return Err(damaged("the learner of a replicate"));
            }
        }
        Ok(state)
    }
}

/// The last known states of all replicates of a run.
#[derive(Debug)]
pub struct Snapshots {
    slots: Vec<Mutex<Slot>>,
    /// Whether states are kept at all.
    kept: bool,
}

#[derive(Debug, Default)]
struct Slot {
    stored: Option<StoredReplicate>,
    is_running: bool,
    /// The last request for states that it answered.
    answered: u64,
}

impl Snapshots {
    /// Keeps the states of these replicates; one that has no state yet begins anew.
    #[must_use]
    pub fn new(stored: Vec<Option<StoredReplicate>>) -> Self {
        let slots = stored.into_iter().map(|stored| {
            Mutex::new(Slot {
                stored,
                ..Slot::default()
            })
        });
        Self {
            slots: slots.collect(),
            kept: true,
        }
    }

    /// Keeps no states.
    #[must_use]
    pub fn none() -> Self {
        Self {
            slots: Vec::new(),
            kept: false,
        }
    }

    /// Whether states are kept at all.
    pub(crate) fn are_kept(&self) -> bool {
        self.kept
    }

    fn slot(&self, index: usize) -> Option<MutexGuard<'_, Slot>> {
        let slot = self.slots.get(index)?;
        // A slot is written in one assignment, so that of a thread that panicked is whole.
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last known state of each replicate, in their order.
    #[must_use]
    pub fn stored(&self) -> Vec<Option<StoredReplicate>> {
        let indices = 0..self.slots.len();
        indices
            .map(|index| self.slot(index).and_then(|slot| slot.stored.clone()))
            .collect()
    }

    /// Whether all replicates that are being played have answered a request for states.
    #[must_use]
    pub fn have_answered(&self, request: u64) -> bool {
        let mut indices = 0..self.slots.len();
        indices.all(|index| {
            self.slot(index)
                .is_none_or(|slot| !slot.is_running || slot.answered >= request)
        })
    }

    /// The last known state of a replicate.
    pub(crate) fn of(&self, index: usize) -> Option<StoredReplicate> {
        self.slot(index)?.stored.clone()
    }

    /// Notes that a replicate is being played.
    pub(crate) fn begin(&self, index: usize) {
        if let Some(mut slot) = self.slot(index) {
            slot.is_running = true;
        }
    }

    /// Keeps the state of a replicate that answers a request.
    pub(crate) fn put(&self, index: usize, request: u64, state: &ReplicateState) -> Result<()> {
        let stored = StoredReplicate::of(state)?;
        if let Some(mut slot) = self.slot(index) {
            (slot.stored, slot.answered) = (Some(stored), request);
        }
        Ok(())
    }

    /// Notes that a replicate is no longer being played.
    pub(crate) fn end(&self, index: usize) {
        if let Some(mut slot) = self.slot(index) {
            slot.is_running = false;
        }
    }
}
