"""OptPess-Mix measured: regret beside S-OPS, violations, coverage, floors and speed.

Writes experiments/record/mixing.json, docs/mixing-results.md and two figures. Run by `make mixing`;
takes about fifteen minutes on two cores. `--only PART` runs one part again, `--rows TEXT` only those of
its rows whose name contains the text; what else the record holds is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optpess as op
from scipy.stats import binomtest
from theorem_constants import provenance

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
RECORD = ROOT / "experiments" / "record" / "mixing.json"
PAGE = ROOT / "docs" / "mixing-results.md"
DELTA, COVERAGE_DELTA, SEED = 0.01, 0.1, 2021
SOPS_GROWTH = 0.25
# The checks of the audit that are about certificates and confidence sets.
CHECKS = ("PlausibleTransitions", "PlausibleCost", "MemberCost", "CostDominance")
Rows = Iterator[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Setup:
    """How large a run is, and which rows of a part are wanted."""

    shrink: int = 1
    """Numbers of replicates and episodes are divided by this."""
    rows: str = ""
    """Only rows whose name contains this."""

    def sizes(self, episodes: int, replicates: int) -> dict[str, int]:
        """Episodes and replicates, as arguments of `simulate`."""
        return {
            "episodes": max(20, episodes // self.shrink),
            "replicates": max(2, replicates // self.shrink) if replicates > 1 else 1,
        }


@dataclass(frozen=True)
class Case:
    """One row: a problem, what is known of it, and how long it is played."""

    problem: str
    known: tuple[str, ...]
    episodes: int
    replicates: int
    bar: int | None = None
    """The largest median regret asked for."""
    sops: int = 0
    """Replicates of S-OPS."""
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The problem, its arguments, what is known, and K."""
        words = ", ".join(
            f"{key} {value}" if value is not True else key for key, value in self.arguments
        )
        title = f"{self.problem} ({words})" if words else self.problem
        return f"{title}; {' and '.join(self.known) or 'nothing'} known; K = {self.episodes:.0e}"


STATIONARY, SUPPORT = ("stationary",), ("stationary", "support")


def garnet(states: int, actions: int, horizon: int) -> tuple[tuple[str, Any], ...]:
    """The arguments of a garnet."""
    return (("num_states", states), ("num_actions", actions), ("horizon", horizon))


CASES = [
    Case("ring", STATIONARY, 10**5, 1000, 250, 3),
    Case("ring", (), 10**5, 1000, 1200, 3),
    Case("media", STATIONARY, 10**5, 200, 7000, 3),
    Case("media", SUPPORT, 10**5, 200, 6000, 3),
    Case("inventory", STATIONARY, 10**6, 20, 80_000, 3),
    Case("pair", (), 10**7, 9, 45_000, 3),
    Case("cliff_grid", STATIONARY, 10**5, 200, 90_000, 3),
    Case("cliff_grid", SUPPORT, 10**5, 200, 40_000, 3),
    Case("garnet", STATIONARY, 10**5, 9, 8000, 3, garnet(20, 4, 10)),
    Case("garnet", STATIONARY, 10**5, 5, 25_000, 3, garnet(50, 4, 10)),
    Case("garnet", STATIONARY, 10**5, 3, 75_000, 1, garnet(100, 5, 20)),
    # As little known as S-OPS knows.
    Case("media", (), 10**5, 20, None, 3),
    Case("inventory", (), 10**6, 9, None, 3),
    Case("cliff_grid", (), 10**5, 9, None, 3),
    Case("garnet", (), 10**5, 5, None, 3, garnet(20, 4, 10)),
    Case("pair", (), 10**5, 1000, None, 3),
    Case("inventory", STATIONARY, 10**5, 200, None, 3),
    Case("job_scheduling", (), 10**5, 200, None, 3),
    *(Case("random", STATIONARY, 10**5, 200, None, 3, (("seed", seed),)) for seed in range(1, 11)),
]
DRAWN = ("ring", "media", "inventory", "cliff_grid")


def random_problem(seed: int) -> op.zoo.Problem:
    """A dense random problem: 5 to 8 states, 3 actions, 4 to 6 steps, Dirichlet(1) rows, uniform
    signals. Limit and safe policy are chosen as for the zoo's garnets.
    """
    rng = np.random.default_rng(seed)
    states, horizon = int(rng.integers(5, 9)), int(rng.integers(4, 7))
    rows = rng.dirichlet(np.ones(states), size=(states, 3))
    rewards, costs = rng.random((2, states, 3))
    initial = np.eye(states)[0]

    def model(limit: float) -> op.CMDP:
        return op.CMDP.stationary(rows, rewards, costs, limit, initial, horizon=horizon)

    loose = model(float(horizon))
    least = float(op.solve_least_cost(loose).costs[0])
    limit = (least + float(op.solve_unconstrained(loose).costs[0])) / 2
    safe = least + 0.2 * (limit - least)
    found = model(limit)
    policy = op.solve(found, cost_limit=safe).policy
    cost = max(safe, op.evaluate(policy, found.costs[0], found.transitions, found.initial))
    return op.zoo.Problem("random", found, np.array(policy), np.array([cost]))


def made(case: Case) -> op.zoo.Problem:
    """The problem of a row."""
    if case.problem == "random":
        return random_problem(**dict(case.arguments))
    return op.zoo.problem(case.problem, **dict(case.arguments))


def baseline_of(problem: op.zoo.Problem) -> op.SafeBaseline:
    """The safe policy with one margin for each constraint."""
    margins = [
        op.SafetyMargin(float(limit), float(cost))
        for limit, cost in zip(problem.model.cost_limits, problem.safe_costs, strict=True)
    ]
    return op.SafeBaseline(problem.safe_policy, margins if len(margins) > 1 else margins[0])


def mix(problem: op.zoo.Problem, known: tuple[str, ...] = (), **more: Any) -> op.OptPessMix:
    """OptPess-Mix in its default settings, apart from the failure probability."""
    model = problem.model
    support = model.transitions.to_array() > 0 if "support" in known else None
    arguments: dict[str, Any] = {
        "baseline": baseline_of(problem),
        "failure_probability": DELTA,
        "knowledge": op.Knowledge(stationary="stationary" in known, support=support),
    }
    return op.OptPessMix(shape=model.shape, initial=model.initial, **(arguments | more))


def sops(problem: op.zoo.Problem, num_episodes: int) -> op.SOPS:
    """S-OPS at its own constants. It takes no knowledge."""
    return op.SOPS(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=baseline_of(problem),
        num_episodes=num_episodes,
        failure_probability=DELTA,
        replan_growth=SOPS_GROWTH,
    )


def simulated(model: op.CMDP, learner: op.Learner, **more: Any) -> tuple[op.Run, float]:
    """A run, and the seconds a replicate took on one core."""
    arguments: dict[str, Any] = {"seed": SEED, "threads": os.cpu_count(), "progress": False} | more
    begin = time.perf_counter()
    run = op.simulate(model, learner, **arguments)
    used = min(arguments["threads"] or 1, len(run.replicates))
    return run, (time.perf_counter() - begin) * used / len(run.replicates)


def summary(run: op.Run, seconds: float) -> dict[str, Any]:
    """The figures of a run, as plain numbers."""
    last = run.reward_regret[:, -1]
    found = {
        "episodes": int(run.episodes[-1]),
        "replicates": len(run.replicates),
        "median": float(np.median(last)),
        "least": float(last.min()),
        "greatest": float(last.max()),
        "violating_episodes": int(run.violating_episodes.sum()),
        "violating_replicates": int((run.violating_episodes > 0).sum()),
        "guarantee": repr(run.guarantee),
        "seconds_a_replicate": float(f"{seconds:.3g}"),
    }
    if found["violating_replicates"]:
        found["violating"] = run.replicates[run.violating_episodes > 0].tolist()
    if run.weight is not None:
        found["last_weight"] = float(np.median(run.weight[:, -1]))
    return found


def curves(run: op.Run) -> dict[str, list[float]]:
    """Median, least and greatest regret, and the weights, at some of the record points."""
    points = np.unique(np.linspace(0, len(run.episodes) - 1, 80).astype(int))
    assert run.weight is not None

    def rounded(values: Any) -> list[float]:
        return [float(f"{value:.4g}") for value in values]

    found = {"episodes": [int(count) for count in run.episodes[points]]}
    for name, table in (("regret", run.reward_regret), ("weight", run.weight)):
        for of, reduce in (("median", np.median), ("least", np.min), ("greatest", np.max)):
            found[f"{name}_{of}"] = rounded(reduce(table[:, points], axis=0))
    return found


def gap(problem: op.zoo.Problem) -> float:
    """The regret of one episode of the safe policy."""
    model = problem.model
    value = op.evaluate(problem.safe_policy, model.rewards, model.transitions, model.initial)
    return float(op.solve(model).value - value)


def regret(setup: Setup) -> Rows:
    """Regret and violations of OptPess-Mix, S-OPS and the safe policy."""
    for case in CASES:
        if setup.rows not in case.name:
            continue
        problem = made(case)
        sizes = setup.sizes(case.episodes, case.replicates)
        run, seconds = simulated(problem.model, mix(problem, case.known), **sizes)
        row = {"bar": case.bar, "gap": gap(problem), "mix": summary(run, seconds), "sops": None}
        drawn = case.problem in DRAWN and case.bar is not None and case.known == STATIONARY
        if drawn:
            row["curves"] = {"OptPess-Mix": curves(run)}
        if case.sops:
            sizes["replicates"] = case.sops
            run, seconds = simulated(problem.model, sops(problem, sizes["episodes"]), **sizes)
            row["sops"] = summary(run, seconds)
            if drawn:
                row["curves"]["S-OPS"] = curves(run)
        yield case.name, row


def unknown(setup: Setup) -> Rows:
    """The cost of the safe policy is not told but estimated."""
    for name in ("ring", "media"):
        if setup.rows not in name:
            continue
        problem = op.zoo.problem(name)
        limit = float(problem.model.cost_limits[0])
        learner = mix(
            problem, STATIONARY, baseline=op.SafeBaseline.estimated(problem.safe_policy, limit)
        )
        run, seconds = simulated(problem.model, learner, **setup.sizes(10**5, 20))
        waits = float(np.median(run.estimation_episodes))
        yield (
            name,
            {"gap": gap(problem), "mix": summary(run, seconds), "estimation_episodes": waits},
        )


def several(setup: Setup) -> Rows:
    """Two and three constraints."""
    names = ("inventory_stock_out", "inventory_three_limits", "cliff_grid_two_hazards")
    for name, (episodes, replicates) in product(names, ((10**5, 20), (10**6, 9))):
        key = f"{name}; K = {episodes:.0e}"
        if setup.rows not in key:
            continue
        problem = op.zoo.problem(name)
        run, seconds = simulated(
            problem.model, mix(problem, STATIONARY), **setup.sizes(episodes, replicates)
        )
        constraints = problem.model.num_constraints
        yield (
            key,
            {"constraints": constraints, "gap": gap(problem), "mix": summary(run, seconds)},
        )


def floors(setup: Setup) -> Rows:
    """Pairs of problems with a proved least regret."""
    episodes = 10**5
    floor_a, floor_b = np.sqrt(episodes) / (32 * (1 / 32)), 1 / (1152 * (1 / 1024) * (1 / 64))
    pairs = [
        ("pair A", "lower_bound_a", {"num_episodes": episodes}, floor_a),
        ("pair A, shifted", "lower_bound_a", {"num_episodes": episodes, "shifted": True}, None),
        ("pair B", "lower_bound_b", {}, floor_b),
        ("pair B, swapped", "lower_bound_b", {"swapped": True}, floor_b),
    ]
    for name, function, arguments, floor in pairs:
        if setup.rows not in name:
            continue
        problem = op.zoo.problem(function, **arguments)
        sizes = setup.sizes(episodes, 200)
        ours, seconds = simulated(problem.model, mix(problem), **sizes)
        theirs, more = simulated(problem.model, sops(problem, sizes["episodes"]), **sizes)
        row = {"floor": None if floor is None else float(floor), "gap": gap(problem)}
        row |= {"mix": summary(ours, seconds), "sops": summary(theirs, more)}
        yield name, row | {"curves": {"OptPess-Mix": curves(ours), "S-OPS": curves(theirs)}}


@dataclass(frozen=True)
class Adversary:
    """A small problem on which confidence sets are put to the test."""

    model: op.CMDP
    known: tuple[str, ...] = ()
    variance_proxy: float | None = None
    episodes: int = 500

    def learner(self, delta: float, confidence: Any) -> op.OptPessMix:
        """From the policy that always takes action 0; its cost is told exactly."""
        policy = np.zeros(self.model.shape)
        policy[..., 0] = 1.0
        model = self.model
        cost = op.evaluate(policy, model.costs[0], model.transitions, model.initial)
        problem = op.zoo.Problem("adversary", model, policy, np.array([cost]))
        return mix(
            problem,
            self.known,
            failure_probability=delta,
            confidence=confidence,
            variance_proxy=self.variance_proxy,
        )


def small(
    rows: Any, rewards: Any, costs: Any, limit: float, initial: Any, horizon: int, **more: Any
) -> op.CMDP:
    """A stationary model with one limit."""
    return op.CMDP.stationary(rows, rewards, costs, limit, initial, horizon=horizon, **more)


def adversaries() -> dict[str, Adversary]:
    """The problems by name."""
    stay, move = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    mixed = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]])
    rewards, costs = [[0.1, 0.6], [0.2, 0.9]], [[0.1, 0.5], [0.2, 0.7]]
    rare = np.array(
        [
            [[0.99, 0.005, 0.005], [0.98, 0.01, 0.01]],
            [[0.995, 0.0, 0.005], [0.97, 0.02, 0.01]],
            [[1.0, 0.0, 0.0], [0.95, 0.0, 0.05]],
        ]
    )
    return {
        "rare successors": Adversary(
            small(rare, [[0.1, 0.5]] * 3, [[0.05, 0.2], [0.3, 0.5], [0.9, 1.0]], 0.6, [1, 0, 0], 3)
        ),
        "deterministic rows": Adversary(
            small(np.stack([stay, move], axis=1), rewards, [[0.0, 1.0], [0.0, 1.0]], 1.5, [1, 0], 3)
        ),
        "two absorbing starts": Adversary(
            small(np.stack([stay, stay], axis=1), rewards, costs, 0.9, [0.5, 0.5], 2)
        ),
        "ties": Adversary(small(mixed, [[0.5, 0.5]] * 2, [[0.4, 0.4]] * 2, 1.0, [1, 0], 2)),
        "heavy noise": Adversary(
            small(mixed, rewards, costs, 0.9, [1, 0], 2, noise=op.Gaussian(0.5**0.5 - 1e-12)),
            variance_proxy=0.5,
        ),
        "long horizon": Adversary(small(mixed, rewards, costs, 12.0, [1, 0], 30), STATIONARY),
        "one state": Adversary(
            small(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.3, 0.5]], 0.5, [1], 1), episodes=2000
        ),
    }


def coverage(setup: Setup) -> Rows:
    """The share of replicates in which any certificate or any set ever fails, also with halved radii."""
    for name, adversary in adversaries().items():
        for rule, confidence in (("full", op.Theorem()), ("halved", op.Scaled(0.5))):
            key = f"{name}, {rule} radii"
            if setup.rows not in key:
                continue
            learner = adversary.learner(COVERAGE_DELTA, confidence)
            sizes = setup.sizes(adversary.episodes, 10_000)
            run, _ = simulated(adversary.model, learner, audit=True, **sizes)
            assert run.audits is not None
            failed = {check: sum(audit[check].failed > 0 for audit in run.audits) for check in CHECKS}
            any_failed = [any(audit[check].failed for check in CHECKS) for audit in run.audits]
            count = len(any_failed)
            test = binomtest(sum(any_failed), count, COVERAGE_DELTA, alternative="greater")
            row = {
                "episodes": int(run.episodes[-1]),
                "replicates": count,
                "failing_replicates": sum(any_failed),
                "share": sum(any_failed) / count,
                "upper_95": float(binomtest(sum(any_failed), count).proportion_ci(0.90, "exact").high),
                "p_value_above_delta": float(test.pvalue),
                "failed": failed,
                "checks": int(sum(audit[c].made for audit in run.audits for c in CHECKS)),
                "violating_replicates": int((run.violating_episodes > 0).sum()),
            }
            if rule == "full":
                row["first_failing"] = [int(i) for i in np.flatnonzero(any_failed)[:20]]
                row["violating"] = np.flatnonzero(run.violating_episodes > 0).tolist()
                row["worst_violation"] = float(run.worst_violation.max())
            yield key, row


def seconds_of(model: op.CMDP, learner: op.Learner, episodes: int, repeats: int) -> float:
    """The median time of a run on one thread."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        op.simulate(model, learner, episodes=episodes, seed=SEED, threads=1, progress=False)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def seconds_to_sample(problem: op.zoo.Problem, episodes: int, repeats: int) -> float:
    """The median time of drawing episodes of the safe policy, without a learner."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        op.sample(problem.model, problem.safe_policy, episodes, seed=SEED)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def speed(setup: Setup) -> Rows:
    """Microseconds an episode on one thread."""
    million = 10**6 // setup.shrink
    bars = {"pair": 0.5, "ring": 1.5, "media": 3.0, "inventory": 3.0}
    for name, bar in bars.items():
        if setup.rows not in name:
            continue
        problem = op.zoo.problem(name)
        known = () if name == "pair" else STATIONARY
        model, learner = problem.model, mix(problem, known)
        told: dict[str, Any] = {
            "shape": model.shape,
            "initial": model.initial,
            "baseline": baseline_of(problem),
            "num_episodes": 3 * million,
        }
        whole, longer = (seconds_of(model, learner, count * million, 5) for count in (1, 3))
        row: dict[str, Any] = {
            "bar": bar,
            "episodes": million,
            "us": 1e6 * whole / million,
            "us_later": 1e6 * (longer - whole) / (2 * million),
        }
        # Bonuses so large that OptPess-LP never leaves pi0.
        shut = op.OptPessLP(confidence=op.Scaled(1e6), **told)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it stays on the baseline
            ended = op.simulate(model, shut, episodes=million, seed=SEED, threads=1, progress=False)
            assert ended.baseline_episodes[0] == million, "OptPess-LP has left pi0"
            of_pi0 = {
                "AlwaysBaseline": seconds_of(model, op.AlwaysBaseline(**told), million, 5),
                "OptPess-LP on pi0": seconds_of(model, shut, million, 5),
                "sample": seconds_to_sample(problem, max(20, million // 5), 5) * 5,
            }
        row["us_pi0"] = {way: 1e6 * seconds / million for way, seconds in of_pi0.items()}
        row["ratio"] = {way: row["us_later"] / us for way, us in row["us_pi0"].items()}
        yield name, row | {"load": os.getloadavg()[0]}
    sizes = (20, 4, 10) if setup.shrink > 1 else (100, 5, 20)
    problem = op.zoo.problem("garnet", **dict(garnet(*sizes)))
    for episodes, bar_seconds in ((10**5, 60), (10**6, 180)):
        name = f"garnet 100,5,20; K = {episodes:.0e}"
        if setup.rows not in name:
            continue
        count = max(20, episodes // setup.shrink)
        found = seconds_of(problem.model, mix(problem, STATIONARY), count, 1)
        yield name, {"bar_seconds": bar_seconds, "seconds": found, "load": os.getloadavg()[0]}


PARTS: dict[str, Callable[[Setup], Rows]] = {
    "regret": regret,
    "unknown": unknown,
    "several": several,
    "floors": floors,
    "coverage": coverage,
    "speed": speed,
}


def table(header: str, rows: list[list[str]]) -> list[str]:
    """A table in markdown; the first column is text."""
    titles = [title.strip() for title in header.split("|")]
    rule = ["---", *("---:" for _ in titles[1:])]
    return ["| " + " | ".join(cells) + " |" for cells in (titles, rule, *rows)] + [""]


def met(found: float, bar: float | None) -> str:
    """The bar, and whether it is met."""
    return "" if bar is None else f"{bar:,} ({'met' if found <= bar else 'missed'})"


def of_sops(row: dict[str, Any]) -> str:
    """The median regret of S-OPS and its number of replicates."""
    return (
        "not run"
        if row["sops"] is None
        else f"{row['sops']['median']:,.0f} ({row['sops']['replicates']})"
    )


def violations(found: dict[str, Any]) -> str:
    """Violating episodes, and of how many."""
    return f"{found['violating_episodes']:,} of {found['episodes'] * found['replicates']:.1e}"


def regret_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about regret."""
    lines = ["## Regret and violations", ""]
    lines += [
        f"delta = {DELTA}, default settings, Bernoulli observations. S-OPS at its own constants, "
        f"told K, planning when a count has grown by {SOPS_GROWTH:.0%}. It takes no knowledge, so it is "
        "compared like with like only in rows where nothing is known; in the others OptPess-Mix "
        "knows more. In brackets: replicates of S-OPS. Violating: episodes of OptPess-Mix whose "
        "expected cost, over the coin, was above the limit. Ratio: always pi0 to the median.",
        "",
    ]
    order = [case.name for case in CASES if case.name in rows]
    rows = {name: rows[name] for name in order}  # rows that were run again stand where they stood
    cells = []
    for name, row in rows.items():
        ours, always = row["mix"], row["gap"] * row["mix"]["episodes"]
        cells.append(
            [
                name,
                f"{ours['median']:,.0f}",
                f"{ours['least']:,.0f} to {ours['greatest']:,.0f}",
                f"{ours['replicates']:,}",
                met(ours["median"], row["bar"]),
                f"{always:,.0f}",
                f"{always / ours['median']:,.1f}",
                of_sops(row),
                violations(ours),
            ]
        )
    header = (
        "problem | median regret | least to greatest | replicates | bar | always pi0 | ratio | S-OPS"
    )
    lines += table(header + " | violating", cells)
    total = sum(row["mix"]["violating_episodes"] for row in rows.values())
    runs = sum(row["mix"]["replicates"] for row in rows.values())
    theirs = sum(row["sops"]["violating_episodes"] for row in rows.values() if row["sops"])
    lines += [
        f"In all: {total:,} violating episodes of OptPess-Mix in {runs:,} replicates; {theirs:,} "
        "of S-OPS.",
        "",
    ]
    missed = [
        f"- {name}: median {row['mix']['median']:,.0f}, bar {row['bar']:,}."
        for name, row in rows.items()
        if row["bar"] is not None and row["mix"]["median"] > row["bar"]
    ]
    if missed:
        lines += ["Bars that are missed:", "", *missed, ""]
    worse = [
        f"- {name}: {row['sops']['median']:,.0f} against {row['gap'] * row['sops']['episodes']:,.0f}."
        for name, row in rows.items()
        if row["sops"] and row["sops"]["median"] > row["gap"] * row["sops"]["episodes"]
    ]
    if worse:
        lines += ["S-OPS has more regret than always playing pi0 on:", "", *worse, ""]
    return lines


def unknown_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about an unknown safe cost."""
    lines = ["## The safe policy's cost is not known", ""]
    lines += [
        f"`SafeBaseline.estimated`, stationary known, delta = {DELTA}: the learner plays the "
        "safe policy until it "
        "has a certificate of its cost.",
        "",
    ]
    cells = [
        [
            name,
            f"{row['mix']['median']:,.0f}",
            f"{row['mix']['least']:,.0f} to {row['mix']['greatest']:,.0f}",
            str(row["mix"]["replicates"]),
            f"{row['gap'] * row['mix']['episodes']:,.0f}",
            f"{row['estimation_episodes']:,.0f}",
            violations(row["mix"]),
        ]
        for name, row in rows.items()
    ]
    header = "problem | median regret | least to greatest | replicates | always pi0"
    return lines + table(header + " | median episodes to estimate | violating", cells)


def several_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about several constraints."""
    lines = ["## Two and three constraints", ""]
    lines += [
        f"Stationary known, delta = {DELTA}. The bar, for K = 1e5, is a fifth of always pi0; the longer "
        "runs show how the ratio goes on. Share: of always pi0.",
        "",
    ]
    cells = []
    for name, row in rows.items():
        always = row["gap"] * row["mix"]["episodes"]
        cells.append(
            [
                name,
                str(row["constraints"]),
                f"{row['mix']['median']:,.0f}",
                f"{row['mix']['least']:,.0f} to {row['mix']['greatest']:,.0f}",
                str(row["mix"]["replicates"]),
                met(row["mix"]["median"], None if "1e+06" in name else round(always / 5)),
                f"{always:,.0f}",
                f"{row['mix']['median'] / always:.3f}",
                violations(row["mix"]),
            ]
        )
    header = "problem | constraints | median regret | least to greatest | replicates | bar"
    return lines + table(header + " | always pi0 | share | violating", cells)


def floors_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about least regrets."""
    lines = ["## Beside the proved floors", ""]
    lines += [
        "The pairs of MA-OPS, K = 1e5, nothing known. Every learner that is safe on both "
        "problems of a pair has "
        "regret of at least sqrt(K)/(32 rho) on A (rho = 1/32), and of at least 1/(1152 d rho) "
        "on one of the two "
        "problems of B (d = 1/1024, rho = 1/64), with probability about 3/4. On A, shifted, "
        "nothing is claimed.",
        "",
    ]
    cells = [
        [
            name,
            "" if row["floor"] is None else f"{row['floor']:,.0f}",
            f"{row['mix']['median']:,.0f}",
            f"{row['mix']['least']:,.0f} to {row['mix']['greatest']:,.0f}",
            f"{row['sops']['median']:,.0f}",
            f"{row['gap'] * row['mix']['episodes']:,.0f}",
            str(row["mix"]["replicates"]),
            f"{violations(row['mix'])}; {row['sops']['violating_episodes']:,}",
        ]
        for name, row in rows.items()
    ]
    header = "problem | floor | OptPess-Mix, median | least to greatest | S-OPS, median | always pi0"
    lines += table(header + " | replicates | violating; of S-OPS", cells)
    far = [
        f"{row['mix']['median'] / row['floor']:,.0f} times on {name}"
        for name, row in rows.items()
        if row["floor"] is not None
    ]
    lines += [
        f"Regret is far above the floors: {', '.join(far)}. On B both learners "
        "stay within 1 % of always pi0 in the median.",
        "",
    ]
    return lines


def coverage_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about confidence sets."""
    lines = ["## Coverage", ""]
    lines += [
        f"Small problems made to break confidence sets, delta = {COVERAGE_DELTA}, every set and "
        "every certificate "
        "checked against the truth whenever another mixture is deployed (`audit=True`: "
        + ", ".join(f"`{check}`" for check in CHECKS)
        + "). A replicate fails if one check fails once. p: exact binomial test of at most delta "
        "against more. "
        "Halved radii have no guarantee and show that the test can fail.",
        "",
    ]
    cells = [
        [
            name,
            f"{row['episodes']:,}",
            f"{row['replicates']:,}",
            f"{row['failing_replicates']:,}",
            f"{row['share']:.4f}",
            f"{row['upper_95']:.4f}",
            f"{row['p_value_above_delta']:.2g}",
            " / ".join(f"{row['failed'][check]:,}" for check in CHECKS),
            f"{row['violating_replicates']:,}",
        ]
        for name, row in rows.items()
    ]
    header = "problem | episodes | replicates | failing | share | its upper 95 % bound | p"
    lines += table(
        header + " | by check (transitions / cost / member / mixture) | violating replicates", cells
    )
    exceeded = [
        f"- {name}: replicates {', '.join(map(str, row['violating']))} (seed {SEED}), by at most "
        f"{row['worst_violation']:.2g}."
        for name, row in rows.items()
        if row.get("violating")
    ]
    if exceeded:
        lines += [
            "Replicates with full radii in which some mixture was above the limit, which the promise "
            f"allows in a share of {COVERAGE_DELTA}:",
            "",
            *exceeded,
            "",
        ]
    full = {name: row["share"] for name, row in rows.items() if "full" in name}
    halved = {name: row["share"] for name, row in rows.items() if "halved" in name}
    if full and halved:
        above = [name for name, share in halved.items() if share > COVERAGE_DELTA]
        lines += [
            f"The largest share with full radii is {max(full.values()):.4f}. With halved radii "
            + (
                f"it is above delta on {len(above)} of {len(halved)} problems, at most "
                f"{max(halved.values()):.4f}."
                if above
                else f"it stays below delta: {max(halved.values()):.4f} at most."
            ),
            "",
        ]
    return lines


def speed_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about time."""
    small_rows = {name: row for name, row in rows.items() if "us" in row}
    lines = ["## Time", ""]
    lines += [
        "One thread, 1e6 episodes, planning and judging included, median of five runs. Later: from "
        "episode 1e6 to 3e6, where plans are rare.",
        "",
    ]
    cells = [
        [name, f"{row['us']:.3f}", met(row["us"], row["bar"]), f"{row['us_later']:.3f}"]
        for name, row in small_rows.items()
    ]
    lines += table("problem | us an episode | bar | later", cells)
    ways = ("AlwaysBaseline", "OptPess-LP on pi0", "sample")
    lines += [
        "A later episode against an episode of pi0, in us; in brackets the ratio, for which the bar "
        "is 1.5. What playing pi0 takes depends on who plays it. `AlwaysBaseline` is slow for what it "
        "does: a ratio below 1 says that, not that mixing is free. OptPess-LP has bonuses so large "
        "that it never leaves pi0; it counts and is judged too. `sample` only draws episodes and "
        "returns them.",
        "",
    ]
    cells = [
        [name, *(f"{row['us_pi0'][way]:.3f} ({row['ratio'][way]:.2f})" for way in ways)]
        for name, row in small_rows.items()
    ]
    lines += table("problem | " + " | ".join(ways), cells)
    for way in ways:
        missed = [name for name, row in small_rows.items() if row["ratio"][way] > 1.5]
        lines += [f"- Against {way}: " + (f"missed on {', '.join(missed)}." if missed else "met.")]
    lines += [""]
    cells = [
        [name, f"{row['seconds']:.1f}", met(row["seconds"], row["bar_seconds"])]
        for name, row in rows.items()
        if "seconds" in row
    ]
    lines += table("problem | seconds | bar", cells) if cells else []
    load = max((row["load"] for row in rows.values()), default=0.0)
    busy = " Other programs ran at the same time, so the times may be too long." if load > 1.5 else ""
    return [*lines, f"The load of the machine was at most {load:.1f} during this part.{busy}", ""]


LINES = {
    "regret": regret_lines,
    "unknown": unknown_lines,
    "several": several_lines,
    "floors": floors_lines,
    "coverage": coverage_lines,
    "speed": speed_lines,
}


def page(record: dict[str, Any]) -> str:
    """The page, from the record."""
    lines = [
        "# OptPess-Mix, measured",
        "",
        "Written by `make mixing`, from `experiments/record/mixing.json`; "
        "`python experiments/mixing.py --only regret` repeats one part. Every deployed mixture "
        "was judged exactly "
        f"against the true model. Seed {SEED}.",
        "",
    ]
    for part, made_lines in LINES.items():
        if record.get(part):
            lines += made_lines(record[part])
            source = record.get("provenance", {}).get(part)
            if source:
                lines += [f"Commit {source['commit']}, {source['date']}.", ""]
        if part == "floors" and record.get("regret"):
            lines += ["## Curves", ""]
            lines += [
                "OptPess-Mix is told that the problem is stationary, S-OPS is not; on the pairs neither "
                "is told anything. Axes are linear near zero, so that zero can be told from small.",
                "",
            ]
            lines += ["![Regret over episodes](figures/mixing-regret.png)", ""]
            lines += ["![Weight over episodes](figures/mixing-weight.png)", ""]
    return "\n".join(lines).rstrip() + "\n"


def panels(record: dict[str, Any]) -> dict[str, tuple[dict[str, Any], float | None]]:
    """What is drawn: the title of each panel, its row, and the floor if one is known."""
    found: dict[str, tuple[dict[str, Any], float | None]] = {}
    for name, row in record.get("regret", {}).items():
        if "curves" in row and "; stationary known" in name:
            problem, known, _ = name.split("; ")
            found[f"{problem}, {known}"] = (row, None)
    for name, row in record.get("floors", {}).items():
        if row["floor"] is not None and "swapped" not in name:
            found[name] = (row, row["floor"])
    return found


def draw(record: dict[str, Any], of: str) -> Any:
    """One panel for each problem: "regret" or "weight" over episodes, on logarithmic axes."""
    from matplotlib.figure import Figure
    from optpess.plot.style import line_styles

    shown = panels(record)
    columns = 3
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(4.4 * columns, 3.3 * rows), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (title, (row, floor)) in zip(axes, shown.items(), strict=False):
        styles = line_styles()
        for (label, found), (_, colour) in zip(row["curves"].items(), styles, strict=False):
            episodes = found["episodes"]
            least, greatest = found[f"{of}_least"], found[f"{of}_greatest"]
            axis.fill_between(episodes, least, greatest, color=colour, alpha=0.2, linewidth=0)
            axis.plot(episodes, found[f"{of}_median"], color=colour, linewidth=2, label=label)
        if of == "regret":
            line = [row["gap"] * count for count in episodes]
            axis.plot(episodes, line, "--", color="#1e293b", linewidth=1.2, label="always pi0")
            if floor is not None:
                axis.axhline(floor, color="#be185d", linestyle=":", label="floor at the end")
        # Linear near zero, logarithmic beyond, so that zero can be told from small.
        threshold = 1.0 if of == "regret" else 1e-3
        axis.set_yscale("symlog", linthresh=threshold)
        axis.axhline(0.0, color="#94a3b8", linewidth=0.8)
        axis.set(xscale="log", title=title, xlabel="episodes")
        axis.title.set_fontsize(10)
        if of == "weight":
            axis.set_ylim(-threshold / 3, 1.3)
        else:
            axis.set_ylim(-threshold / 3, max(axis.get_ylim()[1], 1.5))
        axis.grid(visible=True, alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    handles = {}
    for axis in axes[: len(shown)]:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False)
    what = "regret of reward" if of == "regret" else "probability of not playing pi0"
    figure.supylabel(f"{what}: median, band from least to greatest", fontsize=10)
    return figure


def main() -> None:
    """Runs the parts; writes the record after every row, then the page and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rows", default="", metavar="TEXT")
    parser.add_argument("--page", action="store_true", help="only write page and figures")
    chosen = parser.parse_args()
    for part, run_part in PARTS.items():
        if chosen.page or chosen.only not in (None, part):
            continue
        for name, row in run_part(Setup(rows=chosen.rows)):
            keep(part, name, row)
            print(part, name, json.dumps({k: v for k, v in row.items() if k != "curves"}), flush=True)
    record = load()
    PAGE.write_text(page(record), encoding="utf-8")
    if panels(record):
        for of in ("regret", "weight"):
            draw(record, of).savefig(FIGURES / f"mixing-{of}.png", dpi=90)


def load() -> dict[str, Any]:
    """The record so far."""
    found: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def keep(part: str, name: str, row: dict[str, Any]) -> None:
    """Adds a row to the record, which may have changed in the meantime."""
    record = load()
    record.setdefault(part, {})[name] = row
    record.setdefault("provenance", {})[part] = provenance()
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
