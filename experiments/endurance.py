"""Ten simulations in ten threads against the same one by one, and the memory of a run of 10^8 episodes.

    python experiments/endurance.py [--episodes 100000000]

Writes experiments/record/endurance.json and the tables of docs/interrupts-and-checkpoints.md. Run by
`make endurance`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import endurance_page
import optpess as op
from pages import RECORD, provenance

SECONDS_BETWEEN = 0.25


def learners() -> list[tuple[op.CMDP, op.Learner]]:
    """Five learners on two problems."""
    found: list[tuple[op.CMDP, op.Learner]] = []
    for name in ("pair", "ring"):
        problem = op.zoo.problem(name)
        model = problem.model
        known = {"shape": model.shape, "initial": model.initial}
        safe = known | {"baseline": problem.baseline}
        margin = problem.baseline.margin
        terms = {"num_episodes": 2**31, "confidence": op.Scaled(0.01)}
        found += [
            (model, op.OptPessMix(**safe)),
            (model, op.OptPessMix(**safe, knowledge=op.Knowledge(stationary=True))),
            (model, op.OptPessLP(**safe, **terms)),
            (model, op.OptPessPrimalDual(**known, **terms, margin=margin)),
            (model, op.SOPS(**safe, num_episodes=2**31)),
        ]
    return found


def ten_threads(episodes: int) -> dict[str, Any]:
    """Ten simulations at the same time, each with two threads and replicates, and one by one."""
    cases = learners()
    given: dict[str, Any] = {"episodes": episodes, "replicates": 2, "threads": 2, "progress": False}
    start = time.perf_counter()
    alone = [op.simulate(model, learner, seed=k, **given) for k, (model, learner) in enumerate(cases)]
    seconds = time.perf_counter() - start
    found: list[op.Run | None] = [None] * len(cases)

    def play(number: int) -> None:
        model, learner = cases[number]
        found[number] = op.simulate(model, learner, seed=number, **given)

    threads = [threading.Thread(target=play, args=(number,)) for number in range(len(cases))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = time.perf_counter() - start
    same = sum(
        ours is not None and ours.same_as(theirs) for ours, theirs in zip(found, alone, strict=True)
    )
    return {
        "simulations": len(cases),
        "episodes each": episodes,
        "the same to the bit": same,
        "seconds one by one": round(seconds, 1),
        "seconds together": round(together, 1),
    }


def resident() -> float:
    """The memory of this process that is in use, in megabytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the system does not say how much memory is used")


def memory(episodes: int, *, kept: bool) -> dict[str, Any]:
    """The memory over a run of OptPess-PrimalDual, with a checkpoint every second or without one."""
    pair = op.zoo.problem("pair")
    learner = op.OptPessPrimalDual(
        shape=pair.model.shape,
        initial=pair.model.initial,
        num_episodes=episodes,
        margin=op.SafetyMargin(0.6, 0.135),
        confidence=op.Scaled(0.01),
    )
    samples: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN):
            samples.append(resident())

    looking = threading.Thread(target=look)
    looking.start()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {"checkpoint": Path(folder) / "state", "checkpoint_every": 1.0}
        op.simulate(pair.model, learner, seed=1, progress=False, **(given if kept else {}))
    seconds = time.perf_counter() - start
    over.set()
    looking.join()
    settled = samples[min(4, len(samples) - 1) :]  # from the first second on
    return {
        "episodes": episodes,
        "checkpoint": "every second" if kept else "none",
        "seconds": round(seconds, 1),
        "samples": len(samples),
        "megabytes after a second": round(settled[0], 1),
        "most megabytes later": round(max(settled), 1),
        "growth": round(max(settled) - settled[0], 2),
    }


def main() -> None:
    """Measures, and writes the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000_000)
    given = parser.parse_args()
    record = {
        "provenance": provenance(),
        "threads": ten_threads(20_000),
        "memory": [memory(given.episodes, kept=kept) for kept in (False, True)],
    }
    print(json.dumps(record, indent=1))
    (RECORD / "endurance.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    endurance_page.write()


if __name__ == "__main__":
    main()
