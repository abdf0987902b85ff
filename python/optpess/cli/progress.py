"""Progress on a terminal as a bar with rate and time left; in a log, a line a minute."""

from __future__ import annotations

import os
import sys
from typing import Any

from optpess.cli.stopping import say
from optpess.display import duration
from optpess.progress import Display, State

__all__ = ["LogDisplay", "RichDisplay", "display"]


def display() -> Display:
    """Where the progress of this program is shown."""
    stream: Any = sys.stderr
    try:
        moves = stream.isatty() and os.environ.get("TERM") != "dumb"  # which cannot go back in a line
        return RichDisplay() if moves else LogDisplay()
    except (AttributeError, OSError, ValueError):  # no stream, or a closed one
        return LogDisplay()


class RichDisplay:
    """A bar on the terminal, which is gone at the end."""

    silent_seconds = 1.0
    seconds_between = 0.1

    def __init__(self) -> None:
        self._progress: Any = None
        self._task: Any = None

    def show(self, state: State) -> None:
        """Shows a state in place of the one before."""
        if self._progress is None:
            self._open()
        self._progress.update(
            self._task,
            description=state.label,
            total=state.total,
            completed=state.done,
            speed=_speed(state),
            left=_left(state),
            refresh=True,
        )

    def clear(self) -> None:
        """Removes the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TextColumn("{task.fields[left]}"),  # a narrow terminal cuts the end
            TextColumn("{task.fields[speed]}"),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
        )
        self._task = self._progress.add_task("", total=1, speed="", left="")
        self._progress.start()


class LogDisplay:
    """A line a minute on standard error, for logs."""

    silent_seconds = 60.0
    seconds_between = 60.0

    def show(self, state: State) -> None:
        """Adds a line."""
        label = f"{state.label}: " if state.label else ""
        done = f"{state.done:,} of {state.total:,} {state.unit}"
        parts = (f"{label}{done}", f"{state.share:.1%}", _speed(state), _left(state))
        say(", ".join(part for part in parts if part))

    def clear(self) -> None:
        """Leaves the lines where they are."""


def _speed(state: State) -> str:
    return "" if state.rate is None else f"{state.rate:,.0f} {state.unit}/s"


def _left(state: State) -> str:
    return "" if state.seconds_left is None else f"{duration(state.seconds_left)} left"
