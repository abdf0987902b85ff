"""Progress of long calls: a line on a terminal, or a display in a notebook; silence elsewhere."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["ProgressBar"]

# A call that is over sooner shows nothing.
_SILENT_SECONDS = 2.0
_SECONDS_BETWEEN = 0.2
_WIDTH = 30


class _Display(Protocol):
    def show(self, text: str) -> None: ...
    def clear(self) -> None: ...


class ProgressBar:
    """Shows how much is done once a call has taken two seconds.

    Args:
        total: how many units there are in all.
        unit: what they are called.
        label: what is running, shown in front.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        total: int,
        unit: str = "episodes",
        label: str = "",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._total, self._unit, self._clock = max(total, 1), unit, clock
        self._label = f"{label}  " if label else ""
        self._start, self._shown = clock(), 0.0
        self._display = _display()

    def __call__(self, done: int) -> None:
        """Says that so many units are done."""
        elapsed = self._clock() - self._start
        if (
            self._display is None
            or elapsed < _SILENT_SECONDS
            or elapsed - self._shown < _SECONDS_BETWEEN
        ):
            return
        self._shown = elapsed
        share = min(done / self._total, 1.0)
        left = f"{elapsed * (1.0 - share) / share:,.0f} s left" if share > 0 else ""
        filled = "#" * int(_WIDTH * share)
        rate = f"{done / elapsed:,.0f} {self._unit}/s"
        self._display.show(f"{self._label}[{filled:<{_WIDTH}}] {share:6.1%}  {rate}  {left}")

    def close(self) -> None:
        """Clears what was shown."""
        if self._display is not None and self._shown:
            self._display.clear()


def _display() -> _Display | None:
    """Where progress can be shown; None if nowhere."""
    if _in_notebook():
        return _NotebookDisplay()
    stream = sys.stderr
    if stream is not None and stream.isatty():
        return _TerminalDisplay(stream)
    return None


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which has no terminal."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _TerminalDisplay:
    """One line that is written again and again."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._longest = stream, 0

    def show(self, text: str) -> None:
        self._write("\r" + text.ljust(self._longest))
        self._longest = max(self._longest, len(text))

    def clear(self) -> None:
        self._write("\r" + " " * self._longest + "\r")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = _Nowhere()  # the terminal has gone; the run goes on


class _Nowhere:
    def write(self, _: str) -> None:
        """Drops the text."""

    def flush(self) -> None:
        """Nothing to do."""


class _NotebookDisplay:
    """A text below the cell that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        if self._handle is None:
            # It is loaded, as this is a notebook.
            display = importlib.import_module("IPython.display").display
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
