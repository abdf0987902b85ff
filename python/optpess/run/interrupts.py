"""What a call that is stopped from outside does: it adds to the exception what was recorded so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from optpess import _core

__all__ = ["attach", "exits_on_termination"]


def attach(error: BaseException, note: str, **attributes: object) -> None:
    """Adds attributes and a note to an exception that stopped a call."""
    error.add_note(f"optpess: {note}")
    for name, value in attributes.items():
        with suppress(AttributeError, TypeError):  # an exception that takes no attributes
            setattr(error, name, value)


@contextmanager
def exits_on_termination() -> Iterator[None]:
    """Turns SIGTERM into SystemExit, so that a checkpoint can be written before the process ends.

    Only if SIGTERM would end the process at once; a handler that the caller has set stays. On another
    thread than the main one, whose SystemExit would end nothing else, the process ends after this.
    """
    if threading.current_thread() is not threading.main_thread():
        watch = _core.SignalWatch(delays=True)
        try:
            yield
        finally:
            watch.end()
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)  # the status that a shell shows for a process ended by a signal

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
