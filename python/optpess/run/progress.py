"""Progress of long calls: a line on a terminal, or a display in a notebook; silence elsewhere."""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

__all__ = ["ProgressBar", "showing"]

# A call that is over sooner shows nothing.
_SILENT_SECONDS = 2.0
_SECONDS_BETWEEN = 0.2
_WIDTH = 20


class _Display(Protocol):
    def show(self, text: str) -> None: ...
    def clear(self) -> None: ...


class ProgressBar:
    """Shows how much is done once a call has taken two seconds.

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

    def begin(self, total: int, label: str = "") -> None:
        """Starts the next part of the call, which shows from its start if the call has taken long."""
        self._total, self._label = max(total, 1), f"{label}  " if label else ""
        self._start = self._clock()

    def __call__(self, done: int) -> None:
        """Says that so many units of the part are done."""
        now = self._clock()
        if self._display is None or now - self._opened < _SILENT_SECONDS:
            return
        if self._last is not None and now - self._last < _SECONDS_BETWEEN:
            return
        self._last = now
        self._attempt(self._display.show, self._text(done, now - self._start))

    def close(self) -> None:
        """Clears what was shown."""
        if self._display is not None and self._last is not None:
            self._attempt(self._display.clear)

    def _text(self, done: int, elapsed: float) -> str:
        share = min(done / self._total, 1.0)
        filled = "#" * int(_WIDTH * share)
        parts = [f"{self._label}[{filled:<{_WIDTH}}] {share:6.1%}"]
        # A narrow terminal cuts the end.
        if share > 0:
            parts.append(f"{elapsed * (1.0 - share) / share:,.0f} s left")
        if elapsed > 0:
            parts.append(f"{done / elapsed:,.0f} {self._unit}/s")
        return "  ".join(parts)

    def _attempt(self, show: Callable[..., None], *text: str) -> None:
        try:
            show(*text)
        except Exception:  # noqa: BLE001 - whatever a front end raises, the run matters more
            self._display = None


@contextmanager
def showing(progress: bool) -> Iterator[ProgressBar | None]:
    """A bar that is cleared at the end, also after an error; None if progress is not to be shown."""
    bar = ProgressBar() if progress else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def _display() -> _Display | None:
    """Where progress can be shown; None if nowhere."""
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


class _TerminalDisplay:
    """One line that is written again and again."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._longest = stream, 0

    def show(self, text: str) -> None:
        # A line that is broken into two could not be written over.
        text = text[: max(shutil.get_terminal_size().columns - 1, 1)]
        self._write("\r" + text.ljust(self._longest))
        self._longest = max(self._longest, len(text))

    def clear(self) -> None:
        self._write("\r" + " " * self._longest + "\r")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


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
