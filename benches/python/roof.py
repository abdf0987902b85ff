"""The roofline of OptPess-PrimalDual: the time below which no episode can be, on this machine.

Counted are the multiply-adds of two sums that depend on estimates the last episode changed, so that no
answer of the last episode can be kept:

- the backward induction, (H - 1) S A S: every action of every state at every step but the last, over
  every successor. Where rows are sparse: over the successors observed so far, as the numba peer with
  lists counts them, on average over the run;
- the optimistic cost of the policy found, (H - 1) S S: the same rows again, of one action each (sparse:
  one row in A).

Not counted: signals, comparisons of actions, drawing and counting an episode, judging. Multiplications
may not be fused with additions, since results are promised to the bit on every machine.

Every coefficient is used once in each sum, so that it must also be loaded: 8 bytes each, 12 where its
successor's index comes with it. (The values it is multiplied with are few and stay in registers or the
first cache; they are not counted.) The roof is the slower of the two at the measured peaks; the rate of
loads is that of the largest measured working set that is no larger than all coefficients together.
Dense rows that were never observed are zero, and a program that skips them can be under this roof early
in the run of a large problem.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from harness import ROOT
from problems import Size


def measured() -> dict[str, Any] | None:
    """The machine's peaks with its widest vectors; None where they cannot be measured."""
    command = ["cargo", "bench", "--quiet", "-p", "optpess-benches", "--bench", "roof"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines or "error" in lines[0]:
        print(lines[0]["error"] if lines else "the roof was not measured")
        return None
    return lines[0]


def roof(size: Size, peaks: dict[str, Any], observed: float | None = None) -> dict[str, float | str]:
    """Nanoseconds an episode at the roof, and what it is made of. `observed` is the number of stored
    successors of a sparse problem; all that there are if None."""
    entry = 8 if size.successors is None else 12
    coefficients = size.multiply_adds * size.actions / (size.actions + 1)
    if observed is not None:
        coefficients = observed
    multiply_adds = coefficients * (size.actions + 1) / size.actions
    sets = {int(kib) * 1024: rate for kib, rate in peaks["load_bytes_per_ns_by_kib"].items()}
    kept = coefficients * entry
    bandwidth = sets[max((room for room in sets if room <= kept), default=min(sets))]
    arithmetic = multiply_adds / peaks["multiply_adds_per_ns"]
    loads = multiply_adds * entry / bandwidth
    return {
        "multiply_adds": round(multiply_adds),
        "arithmetic_ns": round(arithmetic, 2),
        "loads_ns": round(loads, 2),
        "roof_ns": round(max(arithmetic, loads), 2),
        "bound_by": "loads" if loads > arithmetic else "arithmetic",
    }
