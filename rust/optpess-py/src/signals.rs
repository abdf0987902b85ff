//! Ctrl-C and SIGTERM for calls on other threads than the main one.
//!
//! Python runs the handlers of signals on the main thread, and tells other threads nothing. So that they can look
//! themselves, handlers of ours count the signals; then they call those that were there before.

#[cfg(unix)]
mod handlers;

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::prelude::*;

/// The numbers of two signals, on all systems.
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
/// What a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// Without handlers of ours, as on Windows, calls on other threads see no signal.
#[cfg(not(unix))]
mod handlers {
    pub(super) fn install() {}
    pub(super) fn seen() -> (usize, usize) {
        (0, 0)
    }
    pub(super) fn is_delayed() -> bool {
        false
    }
    pub(super) fn delay() {}
    pub(super) fn end_delay(_came: bool) {}
}

/// The signals that come while a call runs.
#[pyclass(frozen, module = "optpess._core")]
#[derive(Debug, Clone, Copy)]
pub struct SignalWatch {
    /// How often SIGINT and SIGTERM had come before; None on the main thread, where Python looks itself.
    before: Option<(usize, usize)>,
    /// Whether SIGTERM is to end the process after the call only.
    delays: bool,
}

#[pymethods]
impl SignalWatch {
    /// Looks for signals from now on. With `delays`, SIGTERM does not end the process before `end`.
    #[new]
    #[pyo3(signature = (delays=false))]
    pub fn new(py: Python<'_>, delays: bool) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        let is_main = main.eq(threading.call_method0("get_ident")?)?;
        if delays {
            handlers::delay();
        }
        handlers::install();
        Ok(Self {
            before: (!is_main).then(handlers::seen),
            delays,
        })
    }

    /// Raises what a signal that has come asks for: KeyboardInterrupt, or SystemExit where SIGTERM is delayed. A handler
    /// that the program has set for SIGINT is left to do what it does.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        let Some((interrupts, terminations)) = self.before else {
            return py.check_signals();
        };
        let seen = handlers::seen();
        if seen.0 != interrupts {
            let signal = py.import("signal")?;
            let handler = signal.call_method1("getsignal", (SIGINT,))?;
            if handler.is(&signal.getattr("default_int_handler")?) {
                return Err(PyKeyboardInterrupt::new_err(()));
            }
        }
        if seen.1 != terminations && handlers::is_delayed() {
            return Err(PySystemExit::new_err(SIGNALLED + SIGTERM));
        }
        handlers::install();
        Ok(())
    }

    /// Looks no longer. A SIGTERM that came ends the process now, unless another call still delays it.
    pub fn end(&self) {
        if self.delays {
            let came = self
                .before
                .is_some_and(|before| handlers::seen().1 != before.1);
            handlers::end_delay(came);
        }
    }
}
