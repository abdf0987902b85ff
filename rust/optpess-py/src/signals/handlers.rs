//! Handlers of SIGINT and SIGTERM that count, and then do what was done before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::{SIG_DFL, SIG_IGN, SIGINT, SIGTERM, c_int};

/// A signal, how often it came, and the handler that was there before ours.
struct Counted {
    number: c_int,
    seen: AtomicUsize,
    before: AtomicUsize,
    ours: extern "C" fn(c_int),
}

static INTERRUPT: Counted = Counted::new(SIGINT, count_interrupt);
static TERMINATION: Counted = Counted::new(SIGTERM, count_termination);

/// How many calls are to end before SIGTERM ends the process.
static DELAYS: Mutex<usize> = Mutex::new(0);

extern "C" fn count_interrupt(number: c_int) {
    INTERRUPT.count(number);
}

extern "C" fn count_termination(number: c_int) {
    TERMINATION.count(number);
}

impl Counted {
    const fn new(number: c_int, ours: extern "C" fn(c_int)) -> Self {
        Self {
            number,
            seen: AtomicUsize::new(0),
            before: AtomicUsize::new(SIG_DFL),
            ours,
        }
    }

    /// What our handlers do: two atomic operations, and the handler that was there before.
    fn count(&self, number: c_int) {
        self.seen.fetch_add(1, Ordering::Relaxed);
        let before = self.before.load(Ordering::Relaxed);
        if before != SIG_DFL {
            // SAFETY: `install` stores SIG_DFL or what the system said of a handler without SA_SIGINFO: the address of
            // a function that takes the number of the signal.
            let before: extern "C" fn(c_int) = unsafe { std::mem::transmute(before) };
            before(number);
        }
    }

    /// What the system does with the signal now; None if it does not say.
    fn action(&self) -> Option<libc::sigaction> {
        // SAFETY: zeros are a valid sigaction, and the pointer is to one that lives until the call has returned.
        unsafe {
            let mut found: libc::sigaction = std::mem::zeroed();
            let status = libc::sigaction(self.number, std::ptr::null(), &raw mut found);
            (status == 0).then_some(found)
        }
    }

    fn set(&self, action: &libc::sigaction) {
        // SAFETY: the action is what the system told us, but for its handler, which is ours or the one before. Ours
        // does nothing that is forbidden in a handler, and lives as long as the process: Python unloads no module.
        unsafe { libc::sigaction(self.number, action, std::ptr::null_mut()) };
    }

    fn is_ours(&self, action: &libc::sigaction) -> bool {
        action.sa_sigaction == self.ours as *const () as usize
    }

    /// Puts our handler before one that takes the number of the signal alone, or, if `ending`, in the place of the end
    /// of the process. Whatever else is there stays.
    fn install(&self, ending: bool) {
        let Some(mut action) = self.action() else {
            return;
        };
        let handler = action.sa_sigaction;
        let is_function = handler != SIG_DFL && handler != SIG_IGN;
        let fits = if ending {
            handler == SIG_DFL
        } else {
            is_function && action.sa_flags & libc::SA_SIGINFO == 0
        };
        if fits && !self.is_ours(&action) {
            self.before.store(handler, Ordering::Relaxed);
            action.sa_sigaction = self.ours as *const () as usize;
            self.set(&action);
        }
    }

    /// Puts back what was there before our handler.
    fn remove(&self) {
        if let Some(mut action) = self.action()
            && self.is_ours(&action)
        {
            action.sa_sigaction = self.before.load(Ordering::Relaxed);
            self.set(&action);
        }
    }
}

/// Makes sure that signals are counted; to be called again from time to time, as the program may set handlers.
pub(super) fn install() {
    INTERRUPT.install(false);
    if *delays() > 0 {
        TERMINATION.install(true);
    }
}

/// How often SIGINT and SIGTERM have come.
pub(super) fn seen() -> (usize, usize) {
    let [interrupts, terminations] =
        [&INTERRUPT, &TERMINATION].map(|each| each.seen.load(Ordering::Relaxed));
    (interrupts, terminations)
}

/// Whether SIGTERM is kept from ending the process.
pub(super) fn is_delayed() -> bool {
    *delays() > 0
}

/// Keeps SIGTERM from ending the process until [`end_delay`].
pub(super) fn delay() {
    *delays() += 1;
    TERMINATION.install(true);
}

/// Ends [`delay`]. If nobody else delays SIGTERM, it ends the process as before; at once if it `came`.
pub(super) fn end_delay(came: bool) {
    let mut delays = delays();
    *delays = delays.saturating_sub(1);
    if *delays == 0 {
        TERMINATION.remove();
        if came {
            // SAFETY: the signal is one that a process may send to itself.
            unsafe { libc::raise(SIGTERM) };
        }
    }
}

fn delays() -> std::sync::MutexGuard<'static, usize> {
    DELAYS.lock().unwrap_or_else(PoisonError::into_inner)
}
