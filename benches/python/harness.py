"""Clocks, facts and files that the benches share; it refuses to measure an extension built for tests."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One core for both sides: a thread pool for matrices of these sizes costs NumPy more than it gains.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import optpess

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "benches" / "record"
Turn = tuple[Callable[[], Any], int]  # a call, and how many episodes it plays
PAUSE = 0.2  # seconds before a turn: threads that the one before left spinning are charged to nobody


def check_build() -> None:
    """Ends the program unless the extension is the one that `make build` installed."""
    stored = ROOT / "target" / "optimised-extension"
    installed = Path(optpess.__file__).parent / "_core.abi3.so"
    with installed.open("rb") as extension:
        found = subprocess.run(["cksum"], stdin=extension, capture_output=True, text=True, check=True)
    if not stored.exists() or stored.read_text() != found.stdout:
        raise SystemExit("the installed extension is not the optimised one; run `make build` first")


def in_turns(
    turns: dict[str, Turn], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """The median of nanoseconds an episode; in every round each has its turn, so that a machine that
    slows down slows all of them. Each is called once beforehand, to compile it and fill the caches."""
    check_build()
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


def facts() -> dict[str, object]:
    """What a reader needs to judge the numbers; nothing that names a machine or a person."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=RECORD.parent,
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": git.stdout.strip() or "unknown",
    }


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
