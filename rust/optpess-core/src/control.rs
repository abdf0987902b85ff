//! Stop flag and progress counter of a long call, shared between the caller and the workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// How many episodes pass between two reports of progress.
const PROGRESS_INTERVAL: u64 = 1024;

/// The stop flag and the progress counter of one call.
#[derive(Debug, Default)]
pub struct Control {
    /// Set it to end the run with [`Error::Interrupted`].
    pub stop: AtomicBool,
    /// How many episodes all replicates together have begun, rounded up a little.
    pub episodes_done: AtomicU64,
}

impl Control {
    /// Call it before episode `episode` of `episodes`, with the number of replicates that play it at once. It reads
    /// the stop flag every time: that is one load, and a thousand episodes of a large problem would be a delay a user
    /// can notice.
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
