//! Stop flag and progress counter of a long call, shared between the caller and the workers.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// How many episodes pass between two reports of progress.
const PROGRESS_INTERVAL: u64 = 1024;

/// The stop flag and the progress counter of one call, and how often the states of its replicates were asked for.
#[derive(Debug, Default)]
pub struct Control {
    /// Set it to end the run with [`Error::Interrupted`].
    pub stop: Arc<AtomicBool>,
    /// How many episodes all replicates together have begun, rounded up a little.
    pub episodes_done: AtomicU64,
    /// How many steps of a model the sweeps of a plan have begun.
    pub steps_begun: AtomicU64,
    /// How often the states of all replicates were asked for.
    states_asked: AtomicU64,
}

thread_local! {
    /// The stop flag that ends the plans of this thread.
    static WATCHED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// While it exists, the plans of learners on this thread end with [`Error::Interrupted`] once a flag is set.
#[derive(Debug)]
pub struct Watch(());

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.with_borrow_mut(|watched| *watched = None);
    }
}

/// Ends a long plan of a thread that is to stop. The plan of a large problem takes seconds, and learners are not told
/// of a control.
#[inline]
pub(crate) fn check_stopped() -> Result<()> {
    let is_set = |stop: &Arc<AtomicBool>| stop.load(Ordering::Relaxed);
    if WATCHED.with_borrow(|watched| watched.as_ref().is_some_and(is_set)) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

impl Control {
    /// Lets the stop flag end the plans of learners on this thread.
    #[must_use]
    pub fn watch(&self) -> Watch {
        WATCHED.with_borrow_mut(|watched| *watched = Some(Arc::clone(&self.stop)));
        Watch(())
    }

    /// Call it before episode `episode` of `episodes`. It reads the stop flag every time: that is one load, and a
    /// thousand episodes of a large problem would be a delay a user can notice.
    #[inline(always)]
    pub(crate) fn begin_episode(&self, episode: u64, episodes: u64) -> Result<()> {
        self.note_progress(episode, episodes, 1);
        if self.is_stopped() {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Counts that an episode of `episodes` begins, with the number of replicates that play it at once.
    #[inline(always)]
    pub(crate) fn note_progress(&self, episode: u64, episodes: u64, replicates: u64) {
        if episode.is_multiple_of(PROGRESS_INTERVAL) {
            let begun = PROGRESS_INTERVAL.min(episodes - episode) * replicates;
            self.episodes_done.fetch_add(begun, Ordering::Relaxed);
        }
    }

    /// Counts the episodes that a replicate, which goes on after `episode` of `episodes`, would have counted so far.
    pub(crate) fn note_resumed(&self, episode: u64, episodes: u64) {
        let begun = episode.next_multiple_of(PROGRESS_INTERVAL).min(episodes);
        self.episodes_done.fetch_add(begun, Ordering::Relaxed);
    }

    /// Whether a replicate pauses before its next episode: to stop, or to answer a request for its state. `answered` is
    /// the last request it answered.
    #[inline(always)]
    pub(crate) fn pauses(&self, answered: u64) -> bool {
        self.is_stopped() || self.last_request() != answered
    }

    /// Whether the call is to end.
    #[must_use]
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks every replicate for its state after the episode it plays; returns the number of the request, from 1.
    pub fn ask_for_states(&self) -> u64 {
        self.states_asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the last request for states; 0 if there was none.
    #[must_use]
    #[inline(always)]
    pub(crate) fn last_request(&self) -> u64 {
        self.states_asked.load(Ordering::Relaxed)
    }
}
