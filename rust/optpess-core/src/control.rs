//! Stop flag and progress counter of a long call, shared between the caller and the workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// How many episodes pass between two reports of progress.
const PROGRESS_INTERVAL: u64 = 1024;

/// How the caller follows and stops a run.
#[derive(Debug, Default)]
pub struct Control {
    /// Set it to end the run with [`Error::Interrupted`].
    pub stop: AtomicBool,
    /// How many episodes all replicates together have begun, rounded up a little.
    pub episodes_done: AtomicU64,
}

impl Control {
    /// To be called before episode `episode` of `episodes`, played by so many replicates at once. The stop flag is read
    /// every time: one load, and an episode of a large problem takes long enough for a user to notice a thousand of
    /// them.
    #[inline(always)]
    pub(crate) fn begin_episode(&self, episode: u64, episodes: u64, replicates: u64) -> Result<()> {
        if episode.is_multiple_of(PROGRESS_INTERVAL) {
            let begun = PROGRESS_INTERVAL.min(episodes - episode) * replicates;
            self.episodes_done.fetch_add(begun, Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}
