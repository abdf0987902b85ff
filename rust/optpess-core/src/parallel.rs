//! Work in stages, whose parts may run on several threads: a stage begins when the one before it has ended. Which
//! thread does a part never changes a number.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use crate::control::Control;
use crate::error::{Error, Result};

/// How often a thread that waits for the others looks before it lets other programs run.
const LOOKS: u32 = 2_000;

/// So many runs with short stages stay on one thread after one in which threads waited for each other: other programs
/// have the cores.
const RUNS_ALONE: u32 = 32;

/// How many of them are left. It decides how long a call takes, and no number.
static ALONE: AtomicU32 = AtomicU32::new(0);

/// Whether a run whose stages are short may be shared now.
pub(crate) fn short_stages_may_be_shared() -> bool {
    let one_less = |left: u32| left.checked_sub(1);
    ALONE
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        .is_err()
}

/// How many threads a call may use, and what can stop it.
#[derive(Debug, Clone, Copy)]
pub struct Workers<'a> {
    /// At least 1.
    pub threads: usize,
    /// The stop flag is read before every part.
    pub control: &'a Control,
}

impl<'a> Workers<'a> {
    /// One thread.
    #[must_use]
    pub fn alone(control: &'a Control) -> Self {
        Self {
            threads: 1,
            control,
        }
    }

    /// Calls `work(stage, part)` for every part of every stage. Parts of a stage run in any order and at the same
    /// time; all of them have ended, and what they wrote can be read, before a part of the next stage begins.
    ///
    /// [`Error::Interrupted`] if the stop flag was set; then some parts may have been left out.
    pub fn run(
        self,
        stages: usize,
        parts: usize,
        work: impl Fn(usize, usize) + Sync,
    ) -> Result<()> {
        let total = stages * parts;
        let progress = Progress::default();
        let share = || {
            let _leave = Leave(&progress);
            loop {
                let task = progress.claimed.fetch_add(1, Ordering::Relaxed);
                if task >= total {
                    return;
                }
                let stage = task / parts;
                let mut looks = 0;
                while progress.done.load(Ordering::Acquire) < stage * parts {
                    if self.stopped(&progress) {
                        return;
                    }
                    looks += 1;
                    if looks < LOOKS {
                        std::hint::spin_loop();
                    } else {
                        progress.waits.fetch_add(1, Ordering::Relaxed);
                        thread::yield_now();
                    }
                }
                if self.stopped(&progress) {
                    return;
                }
                if task % parts == 0 {
                    self.control.steps_begun.fetch_add(1, Ordering::Relaxed);
                }
                work(stage, task % parts);
                progress.done.fetch_add(1, Ordering::Release);
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.min(parts) {
                // A thread that cannot be had is done without.
                if thread::Builder::new().spawn_scoped(scope, share).is_err() {
                    break;
                }
            }
            share();
        });
        if progress.waits.load(Ordering::Relaxed) > stages {
            ALONE.store(RUNS_ALONE, Ordering::Relaxed);
        }
        let all = progress.done.load(Ordering::Acquire) == total;
        if all && !self.stopped(&progress) {
            Ok(())
        } else {
            Err(Error::Interrupted)
        }
    }

    /// Whether the call is to end: it was stopped, or a part of it panicked.
    fn stopped(self, progress: &Progress) -> bool {
        self.control.stop.load(Ordering::Relaxed) || progress.abandoned.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Progress {
    /// Parts that a thread has begun, or is about to.
    claimed: AtomicUsize,
    /// Parts that have ended.
    done: AtomicUsize,
    /// How often a thread let other programs run because it had nothing to do.
    waits: AtomicUsize,
    abandoned: AtomicBool,
}

/// Tells the other threads of a panic: they would wait for ever.
struct Leave<'a>(&'a Progress);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandoned.store(true, Ordering::Relaxed);
        }
    }
}

/// A slice whose parts are written by several threads.
#[derive(Debug)]
pub(crate) struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    of: PhantomData<&'a mut [T]>,
}

// SAFETY: the methods that reach the elements are unsafe; their contracts rule out that an element is reached by two
// threads at once, one of which writes.
unsafe impl<T: Send + Sync> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            of: PhantomData,
        }
    }

    /// Some elements, to be written.
    ///
    /// # Safety
    ///
    /// No other part that is in use at the same time, on any thread, may share an element with this one.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "that is what the contract is about")]
    pub(crate) unsafe fn write(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range is within the slice, which is borrowed for 'a; by this function's contract nobody else has
        // its elements.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Some elements, to be read.
    ///
    /// # Safety
    ///
    /// No part that is written while this one is in use, on any thread, may share an element with it.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, range: Range<usize>) -> &[T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range is within the slice, which is borrowed for 'a; by this function's contract nobody writes
        // its elements.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_stage_begins_when_the_one_before_has_ended() {
        for threads in 1..5 {
            let control = Control::default();
            let workers = Workers {
                threads,
                control: &control,
            };
            let (stages, parts) = (50, 7);
            let ended: Vec<AtomicUsize> = (0..stages).map(|_| AtomicUsize::new(0)).collect();
            let seen = AtomicU64::new(0);
            workers
                .run(stages, parts, |stage, part| {
                    if stage > 0 {
                        assert_eq!(ended[stage - 1].load(Ordering::Relaxed), parts);
                    }
                    seen.fetch_add((stage * parts + part) as u64, Ordering::Relaxed);
                    ended[stage].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
            let total = (stages * parts) as u64;
            assert_eq!(seen.load(Ordering::Relaxed), total * (total - 1) / 2);
        }
    }

    #[test]
    fn a_call_that_is_stopped_says_so() {
        for threads in 1..4 {
            let control = Control::default();
            let workers = Workers {
                threads,
                control: &control,
            };
            let done = AtomicUsize::new(0);
            let found = workers.run(1_000, 3, |stage, _| {
                done.fetch_add(1, Ordering::Relaxed);
                if stage == 5 {
                    control.stop.store(true, Ordering::Relaxed);
                }
            });
            assert!(matches!(found, Err(Error::Interrupted)));
            assert!(done.load(Ordering::Relaxed) < 30);
        }
    }

    #[test]
    fn a_panic_on_one_thread_reaches_the_caller_and_nobody_waits() {
        let control = Control::default();
        let workers = Workers {
            threads: 3,
            control: &control,
        };
        let outcome = std::panic::catch_unwind(|| {
            workers.run(100, 3, |stage, part| assert!(stage != 7 || part != 1))
        });
        assert!(outcome.is_err());
    }
}
