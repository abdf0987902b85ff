"""Planning on known models against Storm, QuantEcon and linear programs: `make bench-planning`.

Every side runs in a process of its own, which builds the model, solves it several times and says what it
found, how long each solve took and the most memory it ever had. Sides take turns within a case. Values
are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-6  # of Storm and of ours
CURVE_TOLERANCE = 0.01
AGREEMENT = 1e-5  # both values are within 1e-6 of the optimum, relative to a value of some tens
LIMIT = 0.4  # of the horizon, for each cost


@dataclass(frozen=True)
class Case:
    """A random stationary model."""

    states: int
    actions: int
    horizon: int
    successors: int
    constraints: int = 1
    within: int = 0  # successors at most this many states away; 0: anywhere

    def __str__(self) -> str:
        name = f"{self.states},{self.actions},{self.horizon},{self.successors}"
        name += f" within {self.within}" if self.within else ""
        return name if self.constraints == 1 else f"{name}, {self.constraints} limits"

    @property
    def limits(self) -> list[float]:
        return [LIMIT * self.horizon] * self.constraints

    def arrays(self) -> tuple[tuple[Any, Any, Any], Any, Any]:
        """Rows (offsets, successors, probabilities), rewards [S, A] and costs [M, S, A]."""
        random = np.random.default_rng(0)
        rows, count = self.states * self.actions, self.successors
        if self.within:
            start = np.repeat(np.arange(self.states), self.actions)[:, np.newaxis]
            offset = random.integers(-self.within, self.within + 1, (rows, count))
            found = (start + offset) % self.states
        else:
            found = random.integers(0, self.states, (rows, count))
        found.sort(axis=1)
        weights = random.exponential(size=(rows, count))
        weights /= weights.sum(axis=1, keepdims=True)
        # A successor that was drawn twice gets both weights.
        again = np.zeros_like(found, dtype=bool)
        again[:, 1:] = found[:, 1:] == found[:, :-1]
        for place in range(count - 1, 0, -1):
            twice = again[:, place]
            weights[twice, place - 1] += weights[twice, place]
        offsets = np.r_[0, np.cumsum((~again).sum(axis=1))]
        rewards = random.random((self.states, self.actions))
        costs = random.random((self.constraints, self.states, self.actions))
        return (offsets, found[~again], weights[~again]), rewards, costs


CASES = {
    "small": Case(100, 5, 20, 4),
    "1e3": Case(1_000, 10, 100, 5),
    "1e4": Case(10_000, 8, 50, 5),
    "1e5": Case(100_000, 4, 20, 5),
    "1e6": Case(1_000_000, 2, 20, 3),
    "1e6 local": Case(1_000_000, 2, 20, 3, within=32),
    "1e3 two": Case(1_000, 10, 100, 5, 2),
    "1e3 three": Case(1_000, 10, 100, 5, 3),
    "1e4 two": Case(10_000, 8, 50, 5, 2),
    "1e4 three": Case(10_000, 8, 50, 5, 3),
    "1e7": Case(10_000_000, 2, 5, 3),
}
Solved = tuple[float, float]  # seconds, and a value to compare


def our_model(case: Case) -> Any:
    import optpess as op

    (offsets, successors, probabilities), rewards, costs = case.arrays()
    kernel = op.Transitions.sparse(
        offsets, successors, probabilities, num_states=case.states, num_actions=case.actions
    )
    return op.CMDP.stationary(
        kernel, rewards, costs, np.array(case.limits), initial=0, horizon=case.horizon
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def ours(case: Case, **arguments: Any) -> Callable[[], Solved]:
    import optpess as op

    model = our_model(case)

    def solve() -> Solved:
        seconds, plan = timed(lambda: op.solve(model, **arguments))
        return seconds, plan.value

    return solve


def our_curve(case: Case) -> Callable[[], Solved]:
    import optpess as op

    model = our_model(case)

    def solve() -> Solved:
        seconds, curve = timed(lambda: op.frontier(model, tolerance=CURVE_TOLERANCE))
        return seconds, curve.value_at(case.limits[0])

    return solve


def storm(case: Case) -> Callable[[], Solved]:
    from peer_storm import StormModel

    model = StormModel(*case.arrays())
    return lambda: model.best_within(case.horizon, case.limits)


def storm_curve(case: Case) -> Callable[[], Solved]:
    from peer_storm import StormModel

    model = StormModel(*case.arrays())

    def solve() -> Solved:
        seconds, _ = model.curve(case.horizon, "1/100")
        return seconds, float(
            "nan"
        )  # Storm's points are of both bounds; nothing to compare at one limit

    return solve


def storm_search(case: Case) -> Callable[[], Solved]:
    """The least Lagrangian bound over multipliers, each by Storm's query for one signal; no policy."""
    from peer_storm import StormModel
    from scipy.optimize import minimize_scalar

    model = StormModel(*case.arrays())

    def solve() -> Solved:
        total = 0.0

        def bound(multiplier: float) -> float:
            nonlocal total
            seconds, value = model.best_for(case.horizon, multiplier)
            total += seconds
            return value + multiplier * case.limits[0]

        # Brent's method needs the fewest queries of scipy's; the bound is flat at its least value.
        found = minimize_scalar(bound, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-5})
        return total, float(found.fun)

    return solve


def quantecon(case: Case) -> Callable[[], Solved]:
    from quantecon.markov import DiscreteDP
    from quantecon.markov import backward_induction as induction
    from scipy.sparse import csr_matrix

    (offsets, successors, probabilities), rewards, _ = case.arrays()
    rows = case.states * case.actions
    kernel = csr_matrix((probabilities, successors, offsets), shape=(rows, case.states))
    state, action = np.divmod(np.arange(rows), case.actions)
    model = DiscreteDP(rewards.ravel(), kernel, 1.0 - 1e-16, state, action)

    def solve() -> Solved:
        seconds, (values, _) = timed(lambda: induction(model, case.horizon))
        return seconds, float(values[0, 0])

    return solve


def our_induction(case: Case) -> Callable[[], Solved]:
    import optpess as op

    model = our_model(case)
    rewards = model.stored_rewards()

    def solve() -> Solved:
        seconds, (_, values) = timed(
            lambda: op.backward_induction(
                rewards, model.transitions, horizon=case.horizon, as_actions=True
            )
        )
        return seconds, float(values[0, 0])

    return solve


def linear_program(case: Case, method: str) -> Callable[[], Solved]:
    """The occupancy linear program by HiGHS (simplex, ipm, pdlp), or by scipy's linprog."""
    from peer_linear_program import OccupancyProgram

    program = OccupancyProgram(case.arrays(), case.horizon, case.limits)
    return lambda: timed(lambda: program.solve(method))


SIDES: dict[str, Callable[[Case], Callable[[], Solved]]] = {
    "ours": lambda case: ours(case, tolerance=TOLERANCE),
    "ours, exact": ours,
    "ours, one thread": lambda case: ours(case, tolerance=TOLERANCE, threads=1),
    "storm": storm,
    "storm, multipliers": storm_search,
    "ours, curve": our_curve,
    "storm, curve": storm_curve,
    "ours, induction": our_induction,
    "quantecon": quantecon,
    "simplex": lambda case: linear_program(case, "simplex"),
    "ipm": lambda case: linear_program(case, "ipm"),
    "pdlp": lambda case: linear_program(case, "pdlp"),
    "linprog": lambda case: linear_program(case, "linprog"),
}

# What is compared with what, and the ratio that is to be reached; None: none was set.
ROWS: list[tuple[str, str, str, float | None]] = [
    ("small", "storm", "ours", None),
    ("1e3", "storm", "ours", 3.0),
    ("1e4", "storm", "ours", 3.0),
    ("1e5", "storm", "ours", 2.5),
    ("1e6", "storm", "ours", 2.0),
    ("1e6 local", "storm", "ours", 4.0),
    ("1e3 two", "storm", "ours", 4.0),
    ("1e3 three", "storm", "ours", 8.0),
    ("1e4 two", "storm", "ours", 2.5),
    ("1e4 three", "storm", "ours", 2.5),
    ("1e3", "storm, multipliers", "ours", 1.0),
    ("1e4", "storm, multipliers", "ours", 1.0),
    ("1e5", "storm, multipliers", "ours", 1.0),
    ("1e3", "storm, curve", "ours, curve", 15.0),
    ("1e4", "storm, curve", "ours, curve", 6.0),
    ("1e4", "quantecon", "ours, induction", 3.0),
    ("1e5", "quantecon", "ours, induction", 2.0),
    ("1e6", "quantecon", "ours, induction", 2.0),
    ("small", "simplex", "ours", None),
    ("small", "ipm", "ours", None),
    ("small", "pdlp", "ours", None),
    ("small", "linprog", "ours", None),
]


def peak_megabytes() -> float:
    """The most memory this process has had (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return float(line.split()[1]) / 1024


def child(case: str, side: str, rounds: int) -> None:
    """Builds and solves; prints what the parent reads."""
    solve = SIDES[side](CASES[case])
    for _ in range(rounds):
        before = time.process_time()
        seconds, value = solve()
        used = time.process_time() - before
        found = {"seconds": seconds, "processor": used, "value": value, "peak": peak_megabytes()}
        print(json.dumps(found), flush=True)


def measured(case: str, side: str, rounds: int) -> dict[str, float]:
    """The median time, the value and the peak memory of one side, from a process of its own."""
    command = [sys.executable, str(HERE / "planning.py"), "--child", case, side, str(rounds)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode or not lines:
        raise SystemExit(f"{side} on {case} failed:\n{run.stderr}")
    return {
        "seconds": statistics.median(line["seconds"] for line in lines),
        "processor": statistics.median(line["processor"] for line in lines),
        "value": lines[-1]["value"],
        "peak": lines[-1]["peak"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only rows whose case or sides contain this text")
    parser.add_argument(
        "--rounds", type=int, default=3, help="solves a side, of which the median counts"
    )
    parser.add_argument("--turns", type=int, default=1, help="how often both sides of a row take turns")
    parser.add_argument("--child", nargs=3, metavar=("CASE", "SIDE", "ROUNDS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        case, side, rounds = arguments.child
        child(case, side, int(rounds))
        return
    from harness import RECORD, check_build, facts, listed, write

    check_build()
    header = "| model S,A,H,successors | peer | ours | peer / ours | bar | processor time | peak MB |"
    table = [header, "| --- | --- | --- | --- | --- | --- | --- |"]
    record = []
    for case, peer, own, bar in ROWS:
        if arguments.only not in f"{case} {peer} {own}":
            continue
        rounds = 1 if CASES[case].states >= 10**6 else arguments.rounds
        turns = [
            (measured(case, peer, rounds), measured(case, own, rounds)) for _ in range(arguments.turns)
        ]
        theirs, mine = turns[0]
        ratio = statistics.median(each["seconds"] / other["seconds"] for each, other in turns)
        work = statistics.median(each["processor"] / other["processor"] for each, other in turns)
        difference = abs(theirs["value"] - mine["value"])
        if difference > AGREEMENT * max(1.0, abs(mine["value"])):
            raise SystemExit(f"{case}: {peer} found {theirs['value']}, {own} {mine['value']}")
        missed = bar is not None and ratio < bar
        row = (
            f"| {CASES[case]} | {peer} {theirs['seconds']:.3g} s | {own} {mine['seconds']:.3g} s | "
            f"{ratio:.2f}{' (missed)' if missed else ''} | {'' if bar is None else bar} | {work:.2f} | "
            f"{theirs['peak']:.0f} / {mine['peak']:.0f} |"
        )
        print(row, flush=True)
        table.append(row)
        record.append({"case": str(CASES[case]), "peer": peer, "own": own, "bar": bar, "turns": turns})
    if not arguments.only:
        title = "# Planning on known models: `make bench-planning`\n\n"
        note = "Medians; each side in a process of its own. Times are of the first turn.\n"
        write(RECORD / "planning.md", f"{title}{note}\n{listed(facts())}\n\n" + "\n".join(table) + "\n")
        write(RECORD / "planning.json", json.dumps({"facts": facts(), "rows": record}, indent=1) + "\n")


if __name__ == "__main__":
    main()
