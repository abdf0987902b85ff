//! Calls into the core, with the interpreter released and errors converted. Every call that computes uses them.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use optpess_core::control::Control;
use optpess_core::error::Result;
use optpess_core::shape::Shape;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::signals::SignalWatch;

/// How often a long call checks for signals and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// Problems with fewer (step, state, action) triples are not given a thread of their own that could be stopped: their
/// plans take some milliseconds.
pub const STOPPABLE_FROM: usize = 1 << 14;

/// Runs a computation of the core without holding the interpreter.
pub fn run<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> Result<T>) -> PyResult<T> {
    py.detach(work).map_err(|error| to_python(&error))
}

/// Runs a computation of the core that may take long if the problem is large. Then it is stopped where the core looks
/// whether its thread is to stop.
pub fn stoppable<T: Send>(
    py: Python<'_>,
    shape: Shape,
    work: impl Send + FnOnce() -> Result<T>,
) -> PyResult<T> {
    if shape.triples() < STOPPABLE_FROM {
        return run(py, work);
    }
    interruptible(py, None, |control| {
        let _watch = control.watch();
        work()
    })
}

/// Runs `work` on a thread of its own, while this one checks for signals (Ctrl-C) and reports progress.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl Send + FnOnce(&Control) -> Result<T>,
) -> PyResult<T> {
    let (answer, interruption) = watched(py, |py, control| report(py, progress, control), work)?;
    match interruption {
        Some(interruption) => Err(interruption),
        None => answer.map_err(|error| to_python(&error)),
    }
}

/// Tells the progress of a call.
pub fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, control: &Control) -> PyResult<()> {
    if let Some(progress) = progress {
        progress.call1(py, (control.episodes_done.load(Ordering::Relaxed),))?;
    }
    Ok(())
}

/// Runs `work` on a thread of its own, while this one checks for signals and calls `look` from time to time. Returns
/// what the work came to, and the exception of a signal or of `look`, which stopped it.
pub fn watched<T: Send>(
    py: Python<'_>,
    mut look: impl Send + FnMut(Python<'_>, &Control) -> PyResult<()>,
    work: impl Send + FnOnce(&Control) -> Result<T>,
) -> PyResult<(Result<T>, Option<PyErr>)> {
    let (control, signals) = (Control::default(), SignalWatch::new(py, false)?);
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let control = &control;
            let call = move || {
                // The receiver lives until the result has arrived, so sending cannot fail.
                let _ = sender.send(work(control));
            };
            std::thread::Builder::new().spawn_scoped(scope, call)?;
            let lost =
                |_| PyRuntimeError::new_err("a call ended without an answer; please report a bug");
            loop {
                match receiver.recv_timeout(POLL) {
                    Ok(answer) => return Ok((answer, None)),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Err(lost(mpsc::RecvError)),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
                let looked = Python::attach(|py| {
                    signals.check(py)?;
                    look(py, control)
                });
                if let Err(interruption) = looked {
                    control.stop.store(true, Ordering::Relaxed);
                    let answer = receiver.recv().map_err(lost)?; // the workers stop after their episode
                    return Ok((answer, Some(interruption)));
                }
            }
        })
    })
}
