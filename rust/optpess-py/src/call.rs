//! Calls into the core, with the interpreter released and errors converted. Every call that computes uses them.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use optpess_core::control::Control;
use optpess_core::error::Result;
use pyo3::prelude::*;

use crate::error::to_python;

/// How often a long call checks for signals and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// Runs a computation of the core without holding the interpreter.
pub fn run<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> Result<T>) -> PyResult<T> {
    py.detach(work).map_err(|error| to_python(&error))
}

/// Runs `work` on a thread of its own, while this one checks for signals (Ctrl-C) and reports progress.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl Send + FnOnce(&Control) -> Result<T>,
) -> PyResult<T> {
    let control = Control::default();
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let control = &control;
            scope.spawn(move || {
                // The receiver lives until the result has arrived, so sending cannot fail.
                let _ = sender.send(work(control));
            });
            loop {
                match receiver.recv_timeout(POLL) {
                    Ok(answer) => return answer.map_err(|error| to_python(&error)),
                    Err(mpsc::RecvTimeoutError::Disconnected) => {
                        return Err(pyo3::exceptions::PyRuntimeError::new_err(
                            "a call ended without an answer; please report a bug",
                        ));
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    if let Some(progress) = progress {
                        progress.call1(py, (control.episodes_done.load(Ordering::Relaxed),))?;
                    }
                    Ok(())
                });
                if let Err(interruption) = looked {
                    control.stop.store(true, Ordering::Relaxed);
                    let _ = receiver.recv(); // the workers stop after their episode
                    return Err(interruption);
                }
            }
        })
    })
}
