"""Cost of an OptPess-PrimalDual episode as one size grows.

Ours and the faster of the numba peers (lists of successors where rows are sparse), in turns, processor
time, one thread. `plots.py` draws what this writes to benches/record/scaling.json.

Usage: scaling.py [--rounds N] [--no-record]
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import peer_numba
import problems
import roof
from harness import RECORD, Turn, facts, in_turns, write
from problems import DELTA, Size
from rows import simulated

SWEEPS = {
    "states": [Size(S, 4, 10) for S in (3, 5, 8, 10, 16, 20, 32, 50, 100)],
    "actions": [Size(10, A, 10) for A in (2, 4, 8, 16, 32)],
    "horizon": [Size(10, 4, H) for H in (2, 3, 5, 10, 20, 50)],
    "successors": [Size(100, 5, 20, B) for B in (2, 4, 8, 16, 32, 64)],
}


def point(size: Size, peaks: dict[str, Any] | None, rounds: int) -> dict[str, Any]:
    """One size: nanoseconds an episode of each side, and at the roof."""
    task, K = problems.problem(size), problems.scaling_episodes(size)
    turns: dict[str, Turn] = {"ours": (lambda: simulated(task, K, K), K)}
    observed = None
    if size.successors is None:
        for name, run in (("rows", peer_numba.run_rows), ("columns", peer_numba.run_columns)):
            turns[f"numba {name}"] = (lambda run=run: run(*task.arrays, K, DELTA, K, 1), K)
    else:
        lists = task.lists()
        turns["numba lists"] = (
            lambda: peer_numba.run_lists(lists, *task.arrays[1:], K, DELTA, K, 1),
            K,
        )
        observed = turns["numba lists"][0]()[3]
    times = in_turns(turns, rounds)
    return {
        "size": str(size),
        "sizes": [size.states, size.actions, size.horizon, size.successors],
        "episodes": K,
        "ours_ns": times["ours"],
        "numba_ns": min(time for name, time in times.items() if name != "ours"),
        "roof_ns": None if peaks is None else roof.roof(size, peaks, observed)["roof_ns"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--note", default="", help="a remark for the record, say on other load")
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    arguments = parser.parse_args()
    peaks = roof.measured()
    sweeps: dict[str, list[dict[str, Any]]] = {}
    for name, sizes in SWEEPS.items():
        sweeps[name] = []
        for size in sizes:
            found = point(size, peaks, arguments.rounds)
            sweeps[name].append(found)
            print(
                f"{name} {size}: ours {found['ours_ns']:.0f}, numba {found['numba_ns']:.0f} ns",
                flush=True,
            )
    if not arguments.no_record:
        about = facts() | ({"note": arguments.note} if arguments.note else {})
        stored = {"machine": about, "peaks": peaks, "rounds": arguments.rounds, "sweeps": sweeps}
        write(RECORD / "scaling.json", json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
