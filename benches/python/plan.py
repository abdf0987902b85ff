"""Planning against linear programs, in one run.

Four comparisons, each with a promise:

- a constrained plan in Rust, started from the last answer (as `cargo bench --bench plan` has it, which
  this script runs in turns with its own measurement), against HiGHS started from the last basis,
  both on a sequence of problems that differ by a part in a thousand. Of HiGHS only its own work counts:
  passing the model, setting the basis, running, reading the solution. A whole call is given beside it;
- `op.solve` against SciPy's `linprog` on the same sparse problem, whose matrices are made beforehand;
- `op.solve` against one `op.backward_induction` of the same large model, and the memory it takes.

Python's side is measured in processor time, which a busy machine does not inflate; criterion measures
the Rust plan by the wall clock, so that load can only make the first two ratios smaller.

Usage: plan.py [--rounds N] [--no-record]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import highspy
import numpy as np
import optpess as op
import scipy
from evaluate import RECORD, facts
from optpess.highs import OccupancyLP
from scipy import sparse
from scipy.optimize import linprog

ROOT = RECORD.parent.parent
CRITERION = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "criterion"
COPIES = 64
LARGE = {"num_states": 1000, "num_actions": 10, "horizon": 100, "successors": 5, "seed": 0}
MEMORY_BAR = 1000  # megabytes
BARS = {"3,2,3": 100.0, "media 10,2,10": 60.0, "linprog": 500.0, "inductions": 60.0}


class Stopwatch:
    """A solver that adds up the time spent inside some of its methods."""

    TIMED = ("passModel", "setBasis", "run", "getSolution", "getBasis")

    def __init__(self, solver: Any) -> None:
        self._solver = solver
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._solver, name)
        if name not in self.TIMED:
            return method

        def timed(*arguments: Any) -> Any:
            start = time.thread_time()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.thread_time() - start

        return timed


def small() -> op.CMDP:
    """A random problem of the smallest size; its limit is halfway along the frontier."""
    generator = np.random.default_rng(0)
    shape = (3, 3, 2)
    model = op.CMDP(
        generator.dirichlet(np.ones(3), size=shape),
        generator.random(shape),
        generator.random(shape),
        1.0,
        generator.dirichlet(np.ones(3)),
    )
    return halfway(model)


def halfway(model: op.CMDP) -> op.CMDP:
    least, most = op.solve_least_cost(model).costs[0], op.solve_unconstrained(model).costs[0]
    return op.CMDP(model.transitions, model.rewards, model.costs, (least + most) / 2, model.initial)


def warm_highs(model: op.CMDP, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds a solve, round by round: of HiGHS's own work, and of the whole call."""
    generator = np.random.default_rng(2)
    program = OccupancyLP(*model.shape, 1)
    program._solver = Stopwatch(program._solver)
    rewards, costs = np.array(model.rewards), np.array(model.costs)
    if costs.ndim == 3:
        costs = costs[np.newaxis]

    def perturbed(signal: np.ndarray) -> np.ndarray:
        return signal + 1e-3 * (generator.random(signal.shape) - 0.5)

    own, whole = [], []
    for _ in range(rounds + 1):
        copies = [(perturbed(rewards), perturbed(costs)) for _ in range(COPIES)]
        program._solver.seconds, start = 0.0, time.thread_time()
        for reward, cost in copies:
            answer = program.solve(model.transitions, reward, cost, model.cost_limits, model.initial)
            assert answer is not None
        whole.append((time.thread_time() - start) / COPIES)
        own.append(program._solver.seconds / COPIES)
    return own[1:], whole[1:]  # the first round began without a basis


def against_warm_highs(rounds: int) -> list[dict[str, object]]:
    cases = {
        "3,2,3": (small(), "3,2,3-dense"),
        "media 10,2,10": (per_step(op.zoo.media()), "10,2,10-media"),
    }
    inductions = bench()
    print("\n".join(inductions))
    turns: dict[str, list[tuple[float, float, float]]] = {name: [] for name in cases}
    for _ in range(rounds):
        bench("--quick", "parametric_warm/(3,2,3|10,2,10)")
        for name, (model, identifier) in cases.items():
            own, whole = warm_highs(model, 5)
            ours = criterion(f"parametric_warm_{identifier}")
            turns[name].append((ours, statistics.median(own), statistics.median(whole)))
    rows: list[dict[str, object]] = []
    for name, (_, identifier) in cases.items():
        ours, own, whole = (statistics.median(column) for column in zip(*turns[name], strict=True))
        rows.append(
            {
                "comparison": name,
                "ours_microseconds": round(ours * 1e6, 3),
                "cold_microseconds": round(criterion(f"parametric_cold_{identifier}") * 1e6, 3),
                "induction_microseconds": round(criterion(f"one_induction_{identifier}") * 1e6, 3),
                "highs_microseconds": round(own * 1e6, 1),
                "highs_whole_call_microseconds": round(whole * 1e6, 1),
                "ratio": round(statistics.median(turn[1] / turn[0] for turn in turns[name]), 1),
                "bar": BARS[name],
                "inductions": next(line for line in inductions if line.startswith(identifier)),
            }
        )
    return rows


def bench(*arguments: str) -> list[str]:
    """Runs the Rust bench; the lines that say how many inductions a plan took."""
    command = ["cargo", "bench", "--quiet", "-p", "optpess-core", "--bench", "plan", "--", *arguments]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [line for line in output.splitlines() if "inductions cold" in line]


def per_step(model: op.CMDP) -> op.CMDP:
    """A stationary model with its signals and kernel repeated for every step, as the bench has it."""
    horizon = model.shape.horizon
    dense = np.broadcast_to(model.transitions.to_array(), (horizon, *model.transitions.to_array().shape))
    return op.CMDP(dense, model.rewards, model.costs, model.cost_limits, model.initial)


def criterion(name: str) -> float:
    """The median of a criterion measurement, in seconds."""
    estimates = json.loads((CRITERION / name / "new" / "estimates.json").read_text())
    return float(estimates["median"]["point_estimate"]) * 1e-9


Calls = dict[str, tuple[Callable[[], object], int]]


def alternating(calls: Calls, rounds: int) -> dict[str, list[float]]:
    """Seconds a call; in every round each has its turn, repeated as often as asked."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (call, repeats) in calls.items():
            start = time.process_time()
            for _ in range(repeats):
                call()
            times[name].append((time.process_time() - start) / repeats)
    return times


def against_linprog(rounds: int) -> dict[str, object]:
    model = op.zoo.garnet(100, 5, 20, successors=4, seed=0)
    least, most = op.solve_least_cost(model).costs[0], op.solve_unconstrained(model).costs[0]
    limit = (least + most) / 2
    horizon, states, actions = model.shape
    stay = sparse.kron(sparse.eye_array(states), np.ones((1, actions)))
    move = sparse.csr_array(model.transitions.to_array().reshape(-1, states).T)
    flow = sparse.kron(sparse.eye_array(horizon), stay)
    flow = sparse.csr_array(flow - sparse.kron(sparse.eye_array(horizon, k=-1), move))
    right = np.r_[model.initial, np.zeros((horizon - 1) * states)]
    reward = np.broadcast_to(model.rewards, model.shape).ravel()
    cost = sparse.csr_array(np.broadcast_to(model.costs, (1, *model.shape)).reshape(1, -1))

    def scipy_call() -> float:
        answer = linprog(-reward, A_ub=cost, b_ub=[limit], A_eq=flow, b_eq=right, method="highs")
        return -float(answer.fun)

    difference = abs(scipy_call() - op.solve(model, cost_limit=limit).value)
    if difference > 1e-6:  # linprog at its own tolerances
        raise SystemExit(f"the optima differ by {difference}")
    times = alternating(
        {"scipy": (scipy_call, 1), "ours": (lambda: op.solve(model, cost_limit=limit), 20)}, rounds
    )
    ratios = [a / b for a, b in zip(times["scipy"], times["ours"], strict=True)]
    return {
        "comparison": "linprog",
        "ours_milliseconds": round(statistics.median(times["ours"]) * 1e3, 3),
        "linprog_milliseconds": round(statistics.median(times["scipy"]) * 1e3, 1),
        "ratio": round(statistics.median(ratios), 1),
        "bar": BARS["linprog"],
        "inductions": op.solve(model, cost_limit=limit).inductions,
        "difference": difference,
    }


def large(rounds: int) -> dict[str, object]:
    """In a process of its own, so that the peak memory is that of this model alone."""
    model = op.zoo.garnet(**LARGE)
    least, most = op.solve_least_cost(model).costs[0], op.solve_unconstrained(model).costs[0]
    limit = (least + most) / 2
    signal, kernel, horizon = model.stored_rewards(), model.transitions, model.shape.horizon
    times = alternating(
        {
            "induction": (lambda: op.backward_induction(signal, kernel, horizon=horizon), 5),
            "solve": (lambda: op.solve(model, cost_limit=limit), 1),
        },
        rounds,
    )
    ratios = [a / b for a, b in zip(times["solve"], times["induction"], strict=True)]
    plan = op.solve(model, cost_limit=limit)
    return {
        "comparison": "inductions",
        "ours_milliseconds": round(statistics.median(times["solve"]) * 1e3, 1),
        "induction_milliseconds": round(statistics.median(times["induction"]) * 1e3, 2),
        "ratio": round(statistics.median(ratios), 1),
        "bar": BARS["inductions"],
        "inductions": plan.inductions,
        "gap": plan.certificate.gap,
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "memory_bar": MEMORY_BAR,
    }


def missed(row: dict[str, Any]) -> bool:
    if row["comparison"] == "inductions":
        return row["ratio"] > row["bar"] or row["peak_megabytes"] > row["memory_bar"]
    return row["ratio"] < row["bar"]


def described(rows: list[dict[str, Any]]) -> str:
    *warm, peer, big = rows
    lines = ["| problem | ours | theirs | ratio | promised |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [
        f"| {row['comparison']}, warm, against warm HiGHS | {row['ours_microseconds']:.2f} us "
        f"| {row['highs_microseconds']:.0f} us ({row['highs_whole_call_microseconds']:.0f} the call) "
        f"| {row['ratio']:.0f} | at least {row['bar']:.0f} |"
        for row in warm
    ]
    lines += [
        f"| 100,5,20, 4 successors, `op.solve` against `linprog` | {peer['ours_milliseconds']:.2f} ms "
        f"| {peer['linprog_milliseconds']:.0f} ms | {peer['ratio']:.0f} | at least {peer['bar']:.0f} |",
        "| 1000,10,100, 5 successors, `op.solve` against one backward induction "
        f"| {big['ours_milliseconds']:.0f} ms | {big['induction_milliseconds']:.1f} ms "
        f"| {big['ratio']:.0f} | at most {big['bar']:.0f} |",
        "",
        f"Peak memory of the last: {big['peak_megabytes']} MB (promised: below {MEMORY_BAR}).",
        "",
        "Backward inductions:",
        *(f"- {row['inductions']}" for row in warm),
        f"- `op.solve`: {peer['inductions']} at 100,5,20 and {big['inductions']} at 1000,10,100",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    parser.add_argument("--large", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.large:
        print(json.dumps(large(arguments.rounds)))
        return
    rows = against_warm_highs(arguments.rounds)
    rows.append(against_linprog(max(3, arguments.rounds // 3)))
    own = [sys.executable, __file__, "--large", "--rounds", str(max(5, arguments.rounds // 2))]
    rows.append(json.loads(subprocess.run(own, check=True, capture_output=True, text=True).stdout))
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout
    machine = facts() | {
        "scipy": scipy.__version__,
        "highspy": highspy.Highs().version(),
        "rustc": rustc.split("(")[0].removeprefix("rustc").strip(),
    }
    print(described(rows))
    if not arguments.no_record:
        RECORD.mkdir(exist_ok=True)
        record = {"machine": machine, "rounds": arguments.rounds, "results": rows}
        (RECORD / "plan.json").write_text(json.dumps(record, indent=1) + "\n")
        listed = "\n".join(f"- {name}: {value}" for name, value in machine.items())
        (RECORD / "plan.md").write_text(
            "# Planning against linear programs\n\nWritten by `benches/python/plan.py`, which says what "
            f"is compared. Medians in one run.\n\n{listed}\n\n{described(rows)}\n"
        )
    failures = [row["comparison"] for row in rows if missed(row)]
    for name in failures:
        print(f"short of the promise: {name}")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
