"""Progress of long calls: a line on a terminal, or a display in a notebook; silence elsewhere.

A program that shows progress in its own way gives its display to :func:`shown_by`.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from optpess.display import duration

__all__ = ["Display", "ProgressBar", "State", "SweepBar", "showing", "shown_by"]

_WIDTH = 20


@dataclass(frozen=True, slots=True)
class State:
    """How far a part of a call is."""

    label: str
    """What is running; it may be empty."""
    done: int
    total: int
    unit: str
    """What is counted, such as episodes."""
    elapsed: float
    """Seconds since the part began."""

    @property
    def share(self) -> float:
        """The part that is done, in [0, 1]."""
        return min(self.done / self.total, 1.0)

    @property
    def rate(self) -> float | None:
        """Units a second; None before any time has passed."""
        return self.done / self.elapsed if self.elapsed > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None before anything is done."""
        return self.elapsed * (1.0 - self.share) / self.share if self.share > 0 else None

    def __str__(self) -> str:
        filled, label = "#" * int(_WIDTH * self.share), f"{self.label}  " if self.label else ""
        parts = [f"{label}[{filled:<{_WIDTH}}] {self.share:6.1%}"]
        # A narrow terminal cuts the end.
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        if self.rate is not None:
            parts.append(f"{self.rate:,.0f} {self.unit}/s")
        return "  ".join(parts)


class Display(Protocol):
    """A place where progress is shown."""

    silent_seconds: float
    """A call that is over sooner shows nothing."""
    seconds_between: float
    """The least time from one state that is shown to the next."""

    def show(self, state: State) -> None:
        """Shows a state in place of the one before."""

    def clear(self) -> None:
        """Removes what was shown."""


class ProgressBar:
    """Shows how much is done, once a call has taken as long as the display is silent.

    A display that fails, because the terminal or the notebook has gone, is given up; the call goes on.

    Args:
        total: how many units there are in all.
        unit: what they are called.
        label: what is running, shown in front.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        total: int = 1,
        unit: str = "episodes",
        label: str = "",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._unit, self._clock = unit, clock
        self._display = _display()
        self._opened = self._clock()
        self._last: float | None = None  # when something was shown last
        self.begin(total, label)

    def begin(self, total: int, label: str = "", unit: str | None = None) -> None:
        """Starts the next part of the call, which shows from its start if the call has taken long."""
        self._total, self._label, self._unit = max(total, 1), label, unit or self._unit
        self._start = self._clock()

    def __call__(self, done: int) -> None:
        """Says that so many units of the part are done."""
        now, display = self._clock(), self._display
        if display is None or now - self._opened < display.silent_seconds:
            return
        if self._last is not None and now - self._last < display.seconds_between:
            return
        self._last = now
        state = State(self._label, done, self._total, self._unit, now - self._start)
        self._attempt(display.show, state)

    def close(self) -> None:
        """Clears what was shown."""
        if self._display is not None and self._last is not None:
            self._attempt(self._display.clear)

    def _attempt(self, show: Callable[..., None], *state: State) -> None:
        try:
            show(*state)
        except Exception:  # noqa: BLE001 - whatever a front end raises, the run matters more
            self._display = None


class SweepBar:
    """Shows which sweep over the steps of a model a plan is at, and how far it is. How many a plan needs
    is not known before.
    """

    def __init__(self, horizon: int) -> None:
        self._horizon, self._sweep = horizon, 0
        self._bar = ProgressBar(horizon, unit="steps", label="planning, sweep 1")

    def __call__(self, steps: int) -> None:
        """Says how many steps all sweeps together have done."""
        sweep, done = divmod(steps, self._horizon)
        if sweep != self._sweep:
            self._sweep = sweep
            self._bar.begin(self._horizon, label=f"planning, sweep {sweep + 1}")
        self._bar(done)

    def close(self) -> None:
        """Clears what was shown."""
        self._bar.close()


@contextmanager
def showing(progress: bool) -> Iterator[ProgressBar | None]:
    """A bar that is cleared at the end, also after an error; None if progress is not to be shown."""
    bar = ProgressBar() if progress else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


# What makes the displays of this program; None for those below.
_made_by: Callable[[], Display | None] | None = None


@contextmanager
def shown_by(make: Callable[[], Display | None]) -> Iterator[None]:
    """Lets ``make`` choose where the progress of calls within is shown; None shows nothing."""
    global _made_by
    before, _made_by = _made_by, make
    try:
        yield
    finally:
        _made_by = before


def _display() -> Display | None:
    """Where progress can be shown; None if nowhere."""
    if _made_by is not None:
        return _made_by()
    if _in_notebook():
        return _NotebookDisplay()
    stream: Any = sys.stderr  # None in a program without a console
    try:
        return _TerminalDisplay(stream) if stream.isatty() else None
    except (AttributeError, OSError, ValueError):  # no stream, or a closed one
        return None


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which has no terminal."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_shell is not None and hasattr(get_shell(), "kernel")


class _InPlace:
    """A display that can be read while it changes."""

    silent_seconds = 2.0
    seconds_between = 0.2


class _TerminalDisplay(_InPlace):
    """One line that is written again and again."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._longest = stream, 0

    def show(self, state: State) -> None:
        # A line that is broken into two could not be written over.
        text = str(state)[: max(shutil.get_terminal_size().columns - 1, 1)]
        self._write("\r" + text.ljust(self._longest))
        self._longest = max(self._longest, len(text))

    def clear(self) -> None:
        self._write("\r" + " " * self._longest + "\r")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _NotebookDisplay(_InPlace):
    """A text below the cell that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, state: State) -> None:
        text = str(state)
        if self._handle is None:
            # It is loaded, as this is a notebook.
            display = importlib.import_module("IPython.display").display
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
