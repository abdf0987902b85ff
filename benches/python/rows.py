"""The rows of the speed table: each measures one kind of work against its peers, in turns."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import optpess as op
import peer_highs
import peer_numba
import peer_numba_baseline
import peer_numpy
import problems
import processes
from harness import ROOT, Turn, in_turns, wall_in_turns
from problems import DELTA, EPISODES, REPLICATES, SPARSE, TINY, Problem, Size
from roof import roof

try:
    import peer_jax
except ImportError as error:
    peer_jax, JAX_MISSING = None, f"JAX is not here, its column stays empty: {error}"
else:
    JAX_MISSING = ""

NUMBA_BARS = {TINY: 3.0, Size(10, 4, 10): 4.0, Size(20, 4, 10): 4.0}
ROOF_BARS = {Size(10, 4, 10): 4.0, Size(20, 4, 10): 4.0}
HIGHS_BARS = {"3,2,3": 150.0, "media 10,2,10": 60.0}
IMPORT_BAR, THREADS_BAR, MEMORY_BAR = 2.0, 1.8, 200


@dataclass
class Row:
    """One line of the table. A ratio is the peer's time over ours."""

    work: str
    peer: str
    ours_ns: float | None
    peer_ns: float | None
    ratio: float | None
    bar: float | None  # None: for information
    at_most: bool = False
    numpy_ratio: float | None = None
    jax_ratio: float | None = None
    roof_ratio: float | None = None
    roof_bar: float | None = None
    agreement: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def missed(self) -> bool:
        if self.bar is None:
            return False
        if self.ratio is None:
            return True
        return self.ratio > self.bar if self.at_most else self.ratio < self.bar

    @property
    def roof_missed(self) -> bool:
        bar, found = self.roof_bar, self.roof_ratio
        return bar is not None and (found is None or found > bar)

    def stored(self) -> dict[str, Any]:
        return asdict(self) | {"missed": self.missed, "roof_missed": self.roof_missed}


def simulated(task: Problem, K: int, episodes: int, **options: Any) -> tuple[float, float, float]:
    """Ours: the mean last multiplier and the mean sums of true rewards and costs over the replicates."""
    options = {"seed": 1, "threads": 1} | options
    run = op.simulate(task.model, task.primal_dual(K), episodes=episodes, progress=False, **options)
    rewards = run.optimal_value * episodes - run.reward_regret[:, -1]
    return float(run.multiplier[:, -1].mean()), float(rewards.mean()), 0.0


def apart(ours: tuple[float, ...], theirs: tuple[float, ...]) -> str:
    """How far last multipliers and mean deployed values are from each other; draws differ."""
    multiplier, reward = (abs(a - b) / abs(b) for a, b in zip(ours[:2], theirs[:2], strict=True))
    return f"multiplier {multiplier:.0e}, mean value {reward:.0e} apart"


def replay(task: Problem, K: int) -> str:
    """Our first episodes, fed to the NumPy referee."""
    learner = task.primal_dual(K)
    run = op.simulate(
        task.model, learner, episodes=problems.REPLAYED, trace=True, progress=False, seed=1, threads=1
    )
    others, multiplier = peer_numpy.replayed(task.arrays, K, DELTA, run.traces[0])
    same = f"{problems.REPLAYED - others} of {problems.REPLAYED}"
    return f"replayed: same policy in {same}, multiplier {multiplier:.0e} apart"


def primal_dual(size: Size, peaks: dict[str, Any] | None, rounds: int) -> Row:
    """One replicate on one thread, dense."""
    task, count = problems.problem(size), EPISODES[size]
    K = count.ours
    common = (K, DELTA)
    turns: dict[str, Turn] = {
        "ours": (lambda: simulated(task, K, count.ours), count.ours),
        "numba rows": (
            lambda: peer_numba.run_rows(*task.arrays, *common, count.numba, 1),
            count.numba,
        ),
        "numba columns": (
            lambda: peer_numba.run_columns(*task.arrays, *common, count.numba, 1),
            count.numba,
        ),
        "numpy": (lambda: peer_numpy.run(task.arrays, *common, count.numpy, 1), count.numpy),
    }
    if peer_jax is not None and count.jax:
        turns["jax"] = (lambda: peer_jax.run(task.arrays, *common, count.jax, 1), count.jax)
    times = in_turns(turns, rounds)
    fastest = min(("numba rows", "numba columns"), key=times.__getitem__)
    agreement = apart(turns["ours"][0](), turns[fastest][0]()) + "; " + replay(task, K)
    row = compared(f"PrimalDual {size}, one replicate", fastest, times, NUMBA_BARS[size], agreement)
    return roofed(row, size, peaks, ROOF_BARS.get(size))


def compared(work: str, peer: str, times: dict[str, float], bar: float | None, agreement: str) -> Row:
    ours = times["ours"]
    return Row(
        work=work,
        peer=peer,
        ours_ns=ours,
        peer_ns=times[peer],
        ratio=times[peer] / ours,
        bar=bar,
        numpy_ratio=times["numpy"] / ours if "numpy" in times else None,
        jax_ratio=times["jax"] / ours if "jax" in times else None,
        agreement=agreement,
        details={"ns_an_episode": times},
    )


def roofed(
    row: Row,
    size: Size,
    peaks: dict[str, Any] | None,
    bar: float | None,
    observed: float | None = None,
) -> Row:
    row.roof_bar = bar
    if peaks is not None and row.ours_ns is not None:
        found = roof(size, peaks, observed)
        row.roof_ratio = row.ours_ns / float(found["roof_ns"])
        row.details["roof"] = found
    return row


def replicates(peaks: dict[str, Any] | None, rounds: int) -> Row:
    """Sixteen replicates on one thread, per episode."""
    task, K = problems.problem(TINY), problems.REPLICATE_EPISODES
    played = K * REPLICATES
    times = in_turns(
        {
            "ours": (lambda: simulated(task, K, K, replicates=REPLICATES), played),
            "numba rows": (
                lambda: peer_numba.replicated(*task.arrays, K, DELTA, K, 1, REPLICATES),
                played,
            ),
        },
        rounds,
    )
    agreement = apart(
        simulated(task, K, K, replicates=REPLICATES),
        peer_numba.replicated(*task.arrays, K, DELTA, K, 1, REPLICATES),
    )
    work = f"PrimalDual {TINY}, {REPLICATES} replicates, per episode"
    return roofed(compared(work, "numba rows", times, 8.0, agreement), TINY, peaks, None)


def sparse(peaks: dict[str, Any] | None, rounds: int) -> list[Row]:
    """A large problem with few successors, against numba with and without lists."""
    task, count = problems.problem(SPARSE), EPISODES[SPARSE]
    K, lists, few = count.ours, task.lists(), problems.DENSE_NUMBA_OF_SPARSE
    turns: dict[str, Turn] = {
        "ours": (lambda: simulated(task, K, K), K),
        "numba lists": (
            lambda: peer_numba.run_lists(lists, *task.arrays[1:], K, DELTA, count.numba, 1),
            count.numba,
        ),
        "numba rows": (lambda: peer_numba.run_rows(*task.arrays, K, DELTA, few, 1), few),
        "numba columns": (lambda: peer_numba.run_columns(*task.arrays, K, DELTA, few, 1), few),
        "numpy": (lambda: peer_numpy.run(task.arrays, K, DELTA, count.numpy, 1), count.numpy),
    }
    times = in_turns(turns, rounds)
    dense = min(("numba rows", "numba columns"), key=times.__getitem__)
    theirs = turns["numba lists"][0]()
    agreement = apart(turns["ours"][0](), theirs)
    work = f"PrimalDual {SPARSE}"
    against_lists = compared(work, "numba lists", times, 3.0, agreement)
    return [
        compared(work, dense, times, 15.0, replay(task, K)),
        roofed(against_lists, SPARSE, peaks, None, observed=theirs[3]),
    ]


def past_gate(name: str, rounds: int) -> Row:
    """OptPess-LP that plans at every episode, against a linear program an episode."""
    model, margin, pi0 = problems.lp_problems()[name]
    factor = problems.LP_FACTORS[name]
    K = problems.LP_WARM_UP + problems.LP_EPISODES
    learner = problems.lp_learner(model, margin, pi0, K, op.Scaled(factor))
    problems.advanced(model, learner, problems.LP_WARM_UP)
    start = known(model, margin, pi0, learner, factor)
    few = problems.HIGHS_EPISODES

    def ours(episodes: int = problems.LP_EPISODES, trace: bool = False) -> op.Run:
        return op.simulate(
            model, learner, episodes=episodes, seed=3, threads=1, progress=False, trace=trace
        )

    traced = ours(few, trace=True)
    seen = traced.traces[0]
    fed = (seen.states, seen.actions, seen.rewards, seen.costs)
    turns: dict[str, Turn] = {"ours": (ours, problems.LP_EPISODES)}
    differences = {}
    for label, way in peer_highs.WAYS.items():
        turns[label] = (lambda way=way: peer_highs.run(start, few, 1, way), few)
        answer = peer_highs.run(start, few, 1, way, fed)
        found = max(
            float(np.abs(answer.rewards - seen.deployed_value).max()),
            float(np.abs(answer.costs - seen.deployed_cost).max()),
        )
        differences[label] = (found, answer.on_baseline)
    times = in_turns(turns, rounds)
    fastest = min(peer_highs.WAYS, key=times.__getitem__)
    worst, on_baseline = differences[fastest]
    agreement = (
        f"values {worst:.0e} apart in {few} replayed; "
        f"on pi0: ours {int(traced.baseline_episodes[0])}, theirs {on_baseline}"
    )
    slower = (way for way in peer_highs.WAYS if way != fastest)
    agreement += "; " + ", ".join(f"{way}: {times[way] / times['ours']:.0f}" for way in slower)
    row = compared(f"OptPess-LP past its gate, {name}", fastest, times, HIGHS_BARS[name], agreement)
    row.peer = f"highspy, {fastest}"
    return row


def known(
    model: op.CMDP, margin: op.SafetyMargin, pi0: np.ndarray, learner: Any, factor: float
) -> peer_highs.Start:
    """What the learner knows, for a peer to start from."""
    P, r, c, initial = problems.arrays_of(model)
    estimates, (H, S, A) = learner.estimates, model.shape
    visits = np.asarray(estimates.visits, dtype=float)
    counts = np.zeros((H, S, A, S))
    stored = np.asarray(estimates.transition_counts)
    counts[: len(stored)] = stored
    return peer_highs.Start(
        P=P,
        r=r,
        c=c,
        initial=initial,
        pi0=np.array(pi0, dtype=float),
        limit=margin.cost_limit,
        safe=margin.safe_cost,
        K=learner.num_episodes,
        delta=DELTA,
        factor=factor,
        sums=np.stack([visits, estimates.rewards * visits, estimates.costs * visits]),
        counts=counts,
    )


def on_baseline(rounds: int) -> list[Row]:
    """OptPess-LP before its gate, with the theorem's bonus; the second peer has our bound on it."""
    size, K = problems.BASELINE, problems.BASELINE_EPISODES
    task = problems.problem(size)
    actions, least = problems.safest(task.model)
    limit = task.margin.cost_limit
    pi0 = np.eye(size.actions)[actions]
    learner = problems.lp_learner(task.model, op.SafetyMargin(limit, least), pi0, K, op.Theorem())
    arrays = (*task.arrays[:4], limit, least)
    turns: dict[str, Turn] = {
        "ours": (
            lambda: op.simulate(task.model, learner, seed=1, threads=1, progress=False),
            K,
        ),
        "numba": (lambda: peer_numba_baseline.run(*arrays, K, DELTA, K, 1, actions), K),
        "numba, given our bound": (
            lambda: peer_numba_baseline.run_watched(*arrays, K, DELTA, K, 1, actions),
            K,
        ),
    }
    times = in_turns(turns, rounds)
    run = turns["ours"][0]()
    value = run.optimal_value - float(run.reward_regret[0, -1]) / K
    made = []
    for peer, bar in (("numba", 5.0), ("numba, given our bound", None)):
        theirs = turns[peer][0]()
        agreement = (
            f"value of pi0 {abs(value * K - theirs[1]) / K:.0e} apart; "
            f"on pi0: ours {int(run.baseline_episodes[0])}, theirs {round(theirs[1] / value)}"
        )
        made.append(compared(f"OptPess-LP while on pi0, {size}", peer, times, bar, agreement))
    return made


def threads(rounds: int) -> Row:
    """Two threads against one, by the wall clock."""
    task, K = problems.problem(TINY), problems.THREADS_EPISODES
    played = K * REPLICATES
    answers: dict[int, tuple] = {}

    def run(count: int) -> None:
        answers[count] = simulated(task, K, K, replicates=REPLICATES, threads=count)

    times = wall_in_turns({"one": (lambda: run(1), played), "two": (lambda: run(2), played)}, rounds)
    same = "identical" if answers[1] == answers[2] else "DIFFERENT"
    at_most = processes.ratio(rounds)
    return Row(
        work=f"two threads against one, {REPLICATES} replicates of PrimalDual {TINY}, wall time",
        peer="ours, one thread",
        ours_ns=times["two"],
        peer_ns=times["one"],
        ratio=times["one"] / times["two"],
        bar=THREADS_BAR,
        agreement=f"{same}; {os.cpu_count()} cores; two processes instead of threads: {at_most:.2f}",
        details={"two_processes": at_most},
    )


def imports(rounds: int) -> Row:
    """`import optpess` against `import numpy`, in fresh interpreters."""
    times: dict[str, list[float]] = {"numpy": [], "optpess": []}
    for _ in range(rounds + 1):
        for name, measured in times.items():
            code = f"import time; t = time.process_time(); import {name}; print(time.process_time() - t)"
            command = [sys.executable, "-c", code]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            measured.append(float(found) * 1e9)
    ours, theirs = (statistics.median(times[name][1:]) for name in ("optpess", "numpy"))
    return Row("`import optpess`", "import numpy", ours, theirs, ours / theirs, IMPORT_BAR, at_most=True)


def billion() -> Row:
    """What `make billion` came to, if it was run."""
    stored = ROOT / "experiments" / "record" / "billion.json"
    found = json.loads(stored.read_text()) if stored.exists() else {}
    row = Row("10^9 PrimalDual episodes, pair: peak memory, MB", "", None, None, None, MEMORY_BAR, True)
    if found.get("episodes", 0) < 10**9:
        row.agreement = "not run yet: `make billion`"
        return row
    row.ratio = found["peak_megabytes"]
    row.ours_ns = found["nanoseconds_an_episode"]
    row.agreement = f"finished in {found['seconds'] / 60:.0f} min at commit {found['commit']}"
    return row
