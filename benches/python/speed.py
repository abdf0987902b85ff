"""One table of ratios: the learners against peers that do the same work in the same run.

The peers, `peer_*.py`, say in their own files what they are; `problems.py` has the problems and the
numbers of episodes, `roof.py` the roofline. Times are medians of processor time, taken in turns (wall
time where threads are compared). What both sides learnt is compared, and the difference printed beside
the ratio.
A figure short of its bar is marked "(missed)".

Usage: speed.py [--rounds N] [--only TEXT] [--no-record]; needs `pip install --group bench`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from importlib import metadata
from typing import Any

import roof
import rows
from harness import RECORD, duration, facts, listed, write
from problems import EPISODES, SPARSE, TINY
from rows import Row

Maker = Callable[[], Row | list[Row]]


def makers(peaks: dict[str, Any] | None, rounds: int) -> dict[str, Maker]:
    """What is measured, in the order of the table."""
    few = max(3, rounds // 2)
    sized: dict[str, Maker] = {
        f"primal-dual {size}": lambda size=size: rows.primal_dual(size, peaks, rounds)
        for size in EPISODES
        if size != SPARSE
    }
    first = sized.pop(f"primal-dual {TINY}")
    return {
        f"primal-dual {TINY}": first,
        "replicates": lambda: rows.replicates(peaks, rounds),
        **sized,
        "sparse": lambda: rows.sparse(peaks, few),
        **{f"lp {name}": lambda name=name: rows.past_gate(name, rounds) for name in rows.HIGHS_BARS},
        "baseline": lambda: rows.on_baseline(rounds),
        "threads": lambda: rows.threads(rounds),
        "billion": rows.billion,
        "import": lambda: rows.imports(2 * rounds),
    }


def factor(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.2f}" if ratio < 3 else f"{ratio:.1f}"


def described(found: list[Row]) -> str:
    """The table."""
    lines = [
        "| work | ours | peer | theirs | ratio | bar | NumPy | JAX | over the roof | bar | agreement |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in found:
        verdict = " (missed)" if row.missed and row.ratio is not None else ""
        over = factor(row.roof_ratio) + (" (missed)" if row.roof_missed else "")
        cells = [
            row.work,
            duration(row.ours_ns),
            row.peer,
            duration(row.peer_ns),
            (factor(row.ratio) or "not measured") + verdict,
            "" if row.bar is None else f"{'at most' if row.at_most else 'at least'} {row.bar:g}",
            factor(row.numpy_ratio),
            factor(row.jax_ratio),
            over,
            "" if row.roof_bar is None else f"at most {row.roof_bar:g}",
            row.agreement,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine(peaks: dict[str, Any] | None) -> dict[str, object]:
    """The facts, with the versions of the peers and the measured peaks."""
    found = facts()
    for package in ("numba", "jax", "highspy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout
    found["rustc"] = rustc.split("(")[0].removeprefix("rustc").strip()
    if peaks is not None:
        rate, loads = peaks["multiply_adds_per_ns"], peaks["load_bytes_per_ns_by_kib"]
        found["peak"] = (
            f"{rate} multiply-adds a ns, not fused, in vectors of {peaks['vector_bits']} bits"
        )
        found["loads"] = ", ".join(f"{rate} B a ns from {kib} KiB" for kib, rate in loads.items())
    return found


def recorded(found: list[Row], peaks: dict[str, Any] | None, rounds: int, note: str) -> None:
    about = machine(peaks) | ({"note": note} if note else {})
    stored = {
        "machine": about,
        "peaks": peaks,
        "rounds": rounds,
        "rows": [row.stored() for row in found],
    }
    write(RECORD / "speed.json", json.dumps(stored, indent=1) + "\n")
    missed = sum((row.missed and row.ratio is not None) + row.roof_missed for row in found)
    write(
        RECORD / "speed.md",
        "# The learners against their peers\n\nWritten by `make bench`; `benches/python/speed.py` says "
        "what is compared. Times are an episode's, medians of processor time in one run on one thread, "
        "the peers in turns with ours. The ratio is the peer's time over ours; for threads it is the "
        "wall time of one thread over that of two, for the import ours over NumPy's, for memory the "
        "peak itself. NumPy and JAX are ratios too. "
        f"The roofline is explained in `benches/python/roof.py`. Missed: {missed}.\n\n"
        f"{listed(about)}\n\n{described(found)}\n",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", help="measure only what has this text in its name; writes no record")
    parser.add_argument("--note", default="", help="a remark for the record, say on other load")
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    arguments = parser.parse_args()
    if rows.JAX_MISSING:
        print(rows.JAX_MISSING)
    peaks = roof.measured()
    found: list[Row] = []
    for name, make in makers(peaks, arguments.rounds).items():
        if arguments.only is None or arguments.only in name:
            print(f"measuring {name}", flush=True)
            made = make()
            found += made if isinstance(made, list) else [made]
    print(described(found))
    if arguments.only is None and not arguments.no_record:
        recorded(found, peaks, arguments.rounds, arguments.note)


if __name__ == "__main__":
    main()
