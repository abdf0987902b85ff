"""The last criterion measurements of the inner loops and of one episode of each algorithm, as one table.

Run by `make bench-rust` after `cargo bench`; writes benches/record/loops.{json,md}. A cell is empty
where a size was skipped; the bench says why.

Usage: criterion.py [--no-record]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from harness import RECORD, ROOT, duration, facts, listed, write

MEASURED = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "criterion"
LOOPS = ("update", "bonus", "evaluation", "induction", "parametric-cold", "parametric-warm", "judging")
EPISODES = ("primal-dual", "lp-before-gate", "lp-past-gate")


def medians() -> dict[str, dict[str, float]]:
    """Nanoseconds by loop and size."""
    found: dict[str, dict[str, float]] = {name: {} for name in LOOPS + EPISODES}
    for place in MEASURED.glob("*/new/estimates.json"):
        identity = json.loads((place.parent / "benchmark.json").read_text())["full_id"]
        loop, _, size = identity.partition("/")
        if loop in found:
            estimate = json.loads(place.read_text())["median"]["point_estimate"]
            found[loop][size] = round(float(estimate), 2)
    # Every size of today's grid is judged; others are left from an older one.
    return {
        loop: {size: time for size, time in column.items() if size in found["judging"]}
        for loop, column in found.items()
    }


def ordered(size: str) -> tuple[int, ...]:
    return tuple(int(number) for number in size.split("-")[0].split(","))


def described(found: dict[str, dict[str, float]]) -> str:
    sizes = sorted({size for column in found.values() for size in column}, key=ordered)
    lines = ["| S,A,H | " + " | ".join(found) + " |", "| --- |" + " ---: |" * len(found)]
    for size in sizes:
        cells = [duration(column.get(size)) for column in found.values()]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    arguments, _ = parser.parse_known_args()
    found = medians()
    table = described(found)
    print(table)
    if arguments.no_record:
        return
    about = facts()
    write(RECORD / "loops.json", json.dumps({"machine": about, "nanoseconds": found}, indent=1) + "\n")
    write(
        RECORD / "loops.md",
        "# Inner loops and episodes, by size\n\nWritten by `make bench-rust`: medians of criterion, by "
        "the wall clock, one thread. The loops run on the estimates of 512 episodes of random play; an "
        "update and a bonus are those of one episode. `benches/rust/loops.rs` and `learner.rs` say more."
        f"\n\n{listed(about)}\n\n{table}\n",
    )


if __name__ == "__main__":
    main()
