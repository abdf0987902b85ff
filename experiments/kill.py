"""Kills simulations and rollouts at random moments, goes on from their checkpoints, compares records.

Every process is killed with SIGKILL after a random time; a part of the kills falls into the writing of a
checkpoint, which is done as often as possible. The next process goes on from the file. When a run has
come to its end, its record is compared with that of a run that was never stopped, bit for bit.

    python experiments/kill.py [--kills 200]

Writes experiments/record/kill.json and the tables of docs/interrupts-and-checkpoints.md. Run by
`make kill`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import endurance_page
import numpy as np
import optpess as op
from optpess.run import checkpoint
from pages import RECORD, provenance

SEED = 11


class Walk:
    """Two states; action 1 pays more, costs more and ends the episode now and then."""

    num_states, num_actions = 2, 2

    def reset(self, seed: int | None = None) -> int:
        """Begins an episode."""
        self.random = random.Random(seed)
        return 0

    def step(self, action: int) -> tuple[int, float, float, bool]:
        """State, reward, cost, and whether the episode is over."""
        return action, 0.5 * action, float(action), self.random.random() < 0.1 * action


def simulation(path: Path | None) -> op.Run:
    """Five replicates of OptPess-PrimalDual in lanes, and what they come to."""
    pair = op.zoo.problem("pair")
    learner = op.OptPessPrimalDual(
        shape=pair.model.shape,
        initial=pair.model.initial,
        num_episodes=2_000_000,
        margin=op.SafetyMargin(0.6, 0.135),
        confidence=op.Scaled(0.01),
    )
    given: dict[str, Any] = {"replicates": 5, "seed": SEED, "progress": False}
    return op.simulate(pair.model, learner, **given, checkpoint=path, checkpoint_every=1e-3)


def mixing(path: Path | None) -> op.Run:
    """Two replicates of OptPess-Mix, whose portfolio and coin are in the file."""
    pair = op.zoo.problem("pair")
    learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial, baseline=pair.baseline)
    given: dict[str, Any] = {"replicates": 2, "seed": SEED, "episodes": 400_000, "progress": False}
    return op.simulate(pair.model, learner, **given, checkpoint=path, checkpoint_every=1e-3)


def rollout(path: Path | None) -> Any:
    """OptPess-Mix in an environment that gets its state back by the seed of each episode."""
    env = Walk()
    shape = op.environments.sizes(env, horizon=5)
    safe = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=2)
    baseline = op.SafeBaseline(safe, op.SafetyMargin(cost_limit=2.0, safe_cost=0.0))
    learner = op.OptPessMix(shape=shape, initial=0, baseline=baseline)
    given: dict[str, Any] = {"episodes": 60_000, "seed": SEED, "progress": False}
    return op.rollout(learner, env, **given, checkpoint=path, checkpoint_every=1e-3)


RUNS = {"simulation": simulation, "mixing": mixing, "rollout": rollout}


def record_of(result: Any) -> str:
    """A hash of everything that a run recorded."""
    arrays = {name: value for name, value in vars(result).items() if type(value).__name__ == "ndarray"}
    return checkpoint.hash_of_arrays(arrays)


def one_run(name: str, path: Path, generator: random.Random, expected: str) -> tuple[int, int, bool]:
    """Kills a run until it comes to its end: how often, how often a part was left, whether it agrees."""
    kills, parts = 0, 0
    while True:
        told = played_until(generator.uniform(0.0, 0.6), name, path)
        if told:
            return kills, parts, told == expected
        kills += 1
        left = list(path.parent.glob(".*.part"))  # killed while a checkpoint was written
        parts += bool(left)
        for each in left:
            each.unlink()


def played_until(seconds: float, name: str, path: Path) -> str:
    """Plays a run in a forked process, which is killed after some seconds; its record, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, record_of(RUNS[name](path)).encode())
        os._exit(0)
    os.close(writing)
    ended, _, _ = select.select([reading], [], [], seconds)
    told = os.read(reading, 100).decode() if ended else ""  # nothing, if it died
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reading)
    if ended and not told:
        raise SystemExit(f"a run of {name} ended with the status {status}")
    return told


def main() -> None:
    """Kills the runs, compares, and writes the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="at least so many, of simulations")
    given = parser.parse_args()
    generator, found_runs = random.Random(SEED), []
    for name, play in RUNS.items():
        expected = record_of(play(None))
        runs, kills, parts, wrong = 0, 0, 0, 0
        start = time.monotonic()
        while kills < given.kills:
            with tempfile.TemporaryDirectory() as folder:
                found = one_run(name, Path(folder) / "checkpoint", generator, expected)
            runs, kills, parts, wrong = (
                runs + 1,
                kills + found[0],
                parts + found[1],
                wrong + (not found[2]),
            )
        found_runs.append(
            {
                "run": name,
                "runs": runs,
                "kills": kills,
                "while a checkpoint was written": parts,
                "records that differ": wrong,
                "seconds": round(time.monotonic() - start),
            }
        )
        print(*found_runs[-1].values(), sep=" | ", flush=True)
        if wrong:
            raise SystemExit(f"{wrong} records of {name} differ")
    record = {"provenance": provenance(), "runs": found_runs}
    (RECORD / "kill.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    endurance_page.write()


if __name__ == "__main__":
    main()
