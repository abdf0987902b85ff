"""Clocks and facts that the benches share."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluate import RECORD, facts

__all__ = [
    "RECORD",
    "ROOT",
    "Turn",
    "duration",
    "facts",
    "in_turns",
    "listed",
    "wall_in_turns",
    "write",
]

ROOT = RECORD.parent.parent
Turn = tuple[Callable[[], Any], int]  # a call, and how many episodes it plays
PAUSE = 0.2  # seconds before a turn: threads that the one before left spinning are charged to nobody


def in_turns(
    turns: dict[str, Turn], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """The median of nanoseconds an episode; in every round each has its turn, so that a machine that
    slows down slows all of them. Each is called once beforehand, to compile it and fill the caches."""
    for call, _ in turns.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, (call, episodes) in turns.items():
            time.sleep(PAUSE)
            start = clock()
            call()
            times[name].append((clock() - start) / episodes * 1e9)
    return {name: statistics.median(measured) for name, measured in times.items()}


def wall_in_turns(turns: dict[str, Turn], rounds: int) -> dict[str, float]:
    """As `in_turns`, by the wall clock: for what takes several threads."""
    return in_turns(turns, rounds, time.perf_counter)


def duration(nanoseconds: float | None) -> str:
    if nanoseconds is None:
        return ""
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def listed(machine: dict[str, object]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in machine.items())


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
