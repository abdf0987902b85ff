"""Calls from Python against NumPy doing the same thing, in one run.

Ours is timed as a user calls it: arrays are copied in and checked, the interpreter is released, the
result is a new array. Two kinds of NumPy stand against it. "Plain" is the loop of the formula:
P[h] @ V, times the policy, summed. "Tuned" has every advantage NumPy can have without a compiler: the
transitions are reshaped beforehand so that a step is one matrix-vector product, results are written in
place, and of several ways to write the loop the fastest counts. Neither checks anything.

Usage: evaluate.py [--quick] [--rounds N] [--no-record]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# One core for both sides: a thread pool for matrices of this size costs NumPy more than it gains.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import optpess as op

RECORD = Path(__file__).resolve().parent.parent / "record"
SLICE = 2e-3  # seconds of calls in a row, long against the clock, short against a scheduler's turn
Calls = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Size:
    states: int
    actions: int
    horizon: int
    successors: int | None = None  # None: every state follows every state

    def __str__(self) -> str:
        kind = "dense" if self.successors is None else f"{self.successors} successors"
        return f"{self.states},{self.actions},{self.horizon} {kind}"


SIZES = (
    Size(3, 2, 3),
    Size(10, 2, 10),
    Size(20, 4, 10),
    Size(50, 5, 20),
    Size(100, 5, 20),
    Size(100, 5, 20, successors=4),
)

# (size, way of calling ours): the least ratio to the plain loop that is promised, for every task.
BARS = {(Size(20, 4, 10), "made once"): 8.0, (Size(100, 5, 20, successors=4), "made once"): 20.0}


@dataclass(frozen=True)
class Instance:
    policy: np.ndarray  # [H, S, A]
    signal: np.ndarray  # [H, S, A]
    transitions: np.ndarray  # [H, S, A, S]
    initial: np.ndarray  # [S]
    kernel: op.Transitions

    @classmethod
    def random(cls, size: Size, seed: int = 0) -> Instance:
        generator = np.random.default_rng(seed)
        states, actions, horizon = size.states, size.actions, size.horizon
        rows = horizon * states * actions
        flat = np.zeros((rows, states))
        if size.successors is None:
            flat[:] = generator.dirichlet(np.ones(states), size=rows)
            transitions = flat.reshape(horizon, states, actions, states)
            kernel = op.Transitions(transitions)
        else:
            chosen = np.argsort(generator.random((rows, states)), axis=1)[:, : size.successors]
            chosen.sort(axis=1)
            probabilities = generator.dirichlet(np.ones(size.successors), size=rows)
            np.put_along_axis(flat, chosen, probabilities, axis=1)
            transitions = flat.reshape(horizon, states, actions, states)
            offsets = np.arange(0, rows * size.successors + 1, size.successors)
            kernel = op.Transitions.sparse(
                offsets,
                chosen.ravel(),
                probabilities.ravel(),
                num_states=states,
                num_actions=actions,
                horizon=horizon,
            )
        return cls(
            policy=generator.dirichlet(np.ones(actions), size=(horizon, states)),
            signal=generator.random((horizon, states, actions)),
            transitions=transitions,
            initial=generator.dirichlet(np.ones(states)),
            kernel=kernel,
        )


def plain_calls(instance: Instance) -> Calls:
    """NumPy as the formulas are written down."""
    policy, signal, initial = instance.policy, instance.signal, instance.initial
    transitions = instance.transitions
    horizon, states, actions = policy.shape

    def state_values() -> np.ndarray:
        values = np.zeros((horizon + 1, states))
        for step in reversed(range(horizon)):
            quality = signal[step] + transitions[step] @ values[step + 1]
            values[step] = (policy[step] * quality).sum(axis=1)
        return values

    def occupancy() -> np.ndarray:
        visits = np.zeros((horizon, states, actions))
        mass = initial
        for step in range(horizon):
            visits[step] = mass[:, None] * policy[step]
            mass = np.einsum("sa,sat->t", visits[step], transitions[step])
        return visits

    def backward_induction() -> tuple[np.ndarray, np.ndarray]:
        values = np.zeros((horizon + 1, states))
        greedy = np.zeros((horizon, states, actions))
        for step in reversed(range(horizon)):
            quality = signal[step] + transitions[step] @ values[step + 1]
            best = quality.argmax(axis=1)
            greedy[step, np.arange(states), best] = 1.0
            values[step] = quality.max(axis=1)
        return greedy, values

    return {
        "evaluate": lambda: float(initial @ state_values()[0]),
        "state_values": state_values,
        "occupancy": occupancy,
        "backward_induction": backward_induction,
    }


def tuned_calls(instance: Instance) -> dict[str, Calls]:
    """NumPy's fastest ways of doing each task; everything that can be prepared is."""
    policy, signal, initial = instance.policy, instance.signal, instance.initial
    horizon, states, actions = policy.shape
    flat = instance.transitions.reshape(horizon, states * actions, states)
    batched = instance.transitions
    sweep = range(horizon - 2, -1, -1)
    everyone = np.arange(states)

    def values_sum() -> np.ndarray:
        values = np.zeros((horizon + 1, states))
        values[-2] = (policy[-1] * signal[-1]).sum(axis=1)
        for step in sweep:
            next_values = (flat[step] @ values[step + 1]).reshape(states, actions)
            next_values += signal[step]
            next_values *= policy[step]
            next_values.sum(axis=1, out=values[step])
        return values

    def values_einsum() -> np.ndarray:
        values = np.zeros((horizon + 1, states))
        np.einsum("sa,sa->s", policy[-1], signal[-1], out=values[-2])
        for step in sweep:
            quality = signal[step] + (flat[step] @ values[step + 1]).reshape(states, actions)
            np.einsum("sa,sa->s", policy[step], quality, out=values[step])
        return values

    def values_matmul() -> np.ndarray:
        # The expected signal of all steps at once, so that a step is two products and a sum.
        values = np.zeros((horizon + 1, states))
        values[:-1] = (policy * signal).sum(axis=2)
        for step in sweep:
            quality = (flat[step] @ values[step + 1]).reshape(states, actions, 1)
            values[step] += (policy[step, :, None, :] @ quality)[:, 0, 0]
        return values

    def values_chain() -> np.ndarray:
        # The chain the policy makes of the kernel, for all steps at once, then one product a step.
        values = np.zeros((horizon + 1, states))
        values[:-1] = (policy * signal).sum(axis=2)
        chain = (policy[:-1, :, None, :] @ batched[:-1])[:, :, 0, :]
        for step in sweep:
            values[step] += chain[step] @ values[step + 1]
        return values

    all_values = [values_sum, values_einsum, values_matmul, values_chain]

    def occupancy_product() -> np.ndarray:
        visits = np.empty((horizon, states, actions))
        mass = initial
        for step in range(horizon):
            np.multiply(mass[:, None], policy[step], out=visits[step])
            if step + 1 < horizon:
                mass = visits[step].ravel() @ flat[step]
        return visits

    def occupancy_chain() -> np.ndarray:
        chain = (policy[:-1, :, None, :] @ batched[:-1])[:, :, 0, :]
        masses = np.empty((horizon, states))
        masses[0] = initial
        for step in range(horizon - 1):
            np.matmul(masses[step], chain[step], out=masses[step + 1])
        return masses[:, :, None] * policy

    def induction(take_along: bool) -> tuple[np.ndarray, np.ndarray]:
        values = np.zeros((horizon + 1, states))
        actions_taken = np.empty((horizon, states), dtype=np.intp)
        for step in range(horizon - 1, -1, -1):
            quality = signal[step]
            if step + 1 < horizon:
                quality = quality + (flat[step] @ values[step + 1]).reshape(states, actions)
            quality.argmax(axis=1, out=actions_taken[step])
            if take_along:
                values[step] = quality[everyone, actions_taken[step]]
            else:
                quality.max(axis=1, out=values[step])
        greedy = np.zeros((horizon * states, actions))
        greedy[np.arange(horizon * states), actions_taken.ravel()] = 1.0
        return greedy.reshape(horizon, states, actions), values

    return {
        "evaluate": {f.__name__: lambda f=f: float(initial @ f()[0]) for f in all_values},
        "state_values": {f.__name__: f for f in all_values},
        "occupancy": {f.__name__: f for f in (occupancy_product, occupancy_chain)},
        "backward_induction": {
            "induction_max": lambda: induction(take_along=False),
            "induction_take": lambda: induction(take_along=True),
        },
    }


def our_calls(instance: Instance) -> dict[str, Calls]:
    policy, signal, initial = instance.policy, instance.signal, instance.initial
    ways = {"made once": instance.kernel, "array": instance.transitions}
    return {
        "evaluate": {
            way: lambda P=P: op.evaluate(policy, signal, P, initial) for way, P in ways.items()
        },
        "state_values": {way: lambda P=P: op.state_values(policy, signal, P) for way, P in ways.items()},
        "occupancy": {way: lambda P=P: op.occupancy(policy, P, initial) for way, P in ways.items()},
        "backward_induction": {
            way: lambda P=P: op.backward_induction(signal, P) for way, P in ways.items()
        },
    }


def check_agreement(ours: Calls, theirs: Calls) -> float:
    """The largest difference of any two answers; a fast wrong answer is no answer."""

    def flat(answer: object) -> np.ndarray:
        parts = answer if isinstance(answer, tuple) else (answer,)
        return np.concatenate([np.ravel(part) for part in parts])

    answers = [flat(call()) for call in (*ours.values(), *theirs.values())]
    worst = max(float(np.abs(answer - answers[0]).max()) for answer in answers[1:])
    if worst > 1e-10:
        raise SystemExit(f"the answers differ by {worst}")
    return worst


def seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(calls: Calls, rounds: int) -> dict[str, list[float]]:
    """Seconds a call, round by round; within a round every way has its turn, so that a machine that
    slows down slows all of them."""
    repeats = {name: max(1, round(SLICE / seconds(call, 5))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, repeats[name]))
    return times


def compare(size: Size, rounds: int) -> list[dict[str, object]]:
    instance = Instance.random(size)
    ours, plain, tuned = our_calls(instance), plain_calls(instance), tuned_calls(instance)
    rows: list[dict[str, object]] = []
    for task in ours:
        numpy_ways = {"plain": plain[task]} | tuned[task]
        difference = check_agreement(ours[task], numpy_ways)
        times = measure(ours[task] | numpy_ways, rounds)
        medians = {way: statistics.median(seconds) for way, seconds in times.items()}
        fastest = min(tuned[task], key=lambda way: medians[way])
        for way in ours[task]:
            row: dict[str, object] = {"task": task, "size": str(size), "transitions": way}
            row["microseconds"] = round(medians[way] * 1e6, 2)
            for kind, rival in (("plain", "plain"), ("tuned", fastest)):
                ratios = [a / b for a, b in zip(times[rival], times[way], strict=True)]
                row[f"{kind}_microseconds"] = round(medians[rival] * 1e6, 2)
                row[f"{kind}_ratio"] = round(statistics.median(ratios), 1)
            row |= {"tuned_way": fastest, "promised": BARS.get((size, way))}
            rows.append(row | {"largest_difference": difference})
    return rows


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


def table(rows: list[dict[str, object]]) -> str:
    lines = [
        "| task | S,A,H | transitions | ours, us | plain, us | tuned, us | plain / ours | tuned / ours "
        "| promised |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        bar = "" if row["promised"] is None else f"{row['promised']:.0f}"
        lines.append(
            f"| {row['task']} | {row['size']} | {row['transitions']} | {row['microseconds']:.1f} "
            f"| {row['plain_microseconds']:.1f} | {row['tuned_microseconds']:.1f} "
            f"| {row['plain_ratio']:.1f} | {row['tuned_ratio']:.1f} | {bar} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only the sizes with a promised ratio")
    parser.add_argument("--rounds", type=int, default=41, help="rounds per task and size")
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    arguments = parser.parse_args()
    promised = {size for size, _ in BARS}
    rows = []
    for size in SIZES:
        if not arguments.quick or size in promised:
            rows += compare(size, arguments.rounds)
    machine = facts()
    print(table(rows))
    if not arguments.no_record:
        RECORD.mkdir(exist_ok=True)
        record = {"machine": machine, "rounds": arguments.rounds, "results": rows}
        (RECORD / "evaluate.json").write_text(json.dumps(record, indent=1) + "\n")
        described = "\n".join(f"- {name}: {value}" for name, value in machine.items())
        (RECORD / "evaluate.md").write_text(
            "# Calls from Python against NumPy\n\n"
            "Written by `benches/python/evaluate.py`, which says what is compared. Medians of "
            f"{arguments.rounds} interleaved rounds, one core; ratios are medians over the rounds."
            f"\n\n{described}\n\n{table(rows)}\n"
        )
    for row in rows:
        if row["promised"] is not None and row["plain_ratio"] < row["promised"]:
            print(f"below the promise: {row['task']} at {row['size']}, {row['transitions']}")


if __name__ == "__main__":
    main()
