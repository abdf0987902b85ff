"""OptPess-Mix measured: regret beside S-OPS, violations, coverage, floors and speed.

Writes experiments/record/mixing.json, docs/mixing-results.md and three figures. Run by `make mixing`;
takes about fifteen minutes on two cores. `--only PART` runs one part again, `--rows TEXT` only those of
its rows whose name contains the text; what else the record holds is kept. `--draw` runs nothing.
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
from typing import Any

import curves
import numpy as np
import optpess as op
from figures import save_figure
from mixing_figures import DRAWN_OF, draw, panels
from mixing_page import CHECKS, page
from mixing_problems import (
    CASES,
    COVERAGE_DELTA,
    DRAWN,
    SEED,
    STATIONARY,
    adversaries,
    baseline_of,
    gap,
    garnet,
    made,
    mix,
    sops,
)
from pages import DOCS, RECORD, provenance
from scipy.stats import binomtest

FOUND, PAGE = RECORD / "mixing.json", DOCS / "mixing-results.md"
POINTS = 60  # of a curve
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


def bands(run: op.Run) -> dict[str, Any]:
    """Median, least and greatest over replicates of regret, weight, and true and certified expected cost
    in parts of the limit, at some of the record points.
    """
    thin = curves.thinned(run, POINTS)
    assert thin.weight is not None
    assert thin.certified_cost is not None
    limit = float(thin.cost_limits[0])

    def cost(of: Any) -> Any:
        return of[..., 0] / limit

    tables = {
        "regret": (thin.reward_regret,) * 3,
        "weight": (thin.weight,) * 3,
        "cost": tuple(
            map(cost, (thin.deployed_cost, thin.deployed_cost_least, thin.deployed_cost_greatest))
        ),
        "certified": (cost(thin.certified_cost),) * 3,
    }
    reduced = {"median": np.median, "least": np.min, "greatest": np.max}
    found: dict[str, Any] = {"episodes": [int(count) for count in thin.episodes]}
    found["cost_of_pi0"] = float(thin.baseline_costs[0]) / limit
    for name, each in tables.items():
        for (of, reduce), table in zip(reduced.items(), each, strict=True):
            found[f"{name}_{of}"] = [float(f"{value:.6g}") for value in reduce(table, axis=0)]
    return found


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
            row["curves"] = {"OptPess-Mix": bands(run)}
        if case.sops:
            sizes["replicates"] = case.sops
            run, seconds = simulated(problem.model, sops(problem, sizes["episodes"]), **sizes)
            row["sops"] = summary(run, seconds)
            if drawn:
                row["curves"]["S-OPS"] = bands(run)
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
        yield name, row | {"curves": {"OptPess-Mix": bands(ours), "S-OPS": bands(theirs)}}


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


def main() -> None:
    """Runs the parts; writes the record after every row, then the page and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rows", default="", metavar="TEXT")
    parser.add_argument("--draw", action="store_true", help="only write page and figures")
    chosen = parser.parse_args()
    for part, run_part in PARTS.items():
        if chosen.draw or chosen.only not in (None, part):
            continue
        for name, row in run_part(Setup(rows=chosen.rows)):
            keep(part, name, row)
            print(part, name, json.dumps({k: v for k, v in row.items() if k != "curves"}), flush=True)
    record = load()
    PAGE.write_text(page(record), encoding="utf-8")
    if panels(record):
        for of in DRAWN_OF:
            save_figure(draw(record, of), f"mixing-{of}")


def load() -> dict[str, Any]:
    """The record so far."""
    found: dict[str, Any] = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return found


def keep(part: str, name: str, row: dict[str, Any]) -> None:
    """Adds a row to the record, which may have changed in the meantime."""
    record = load()
    record.setdefault(part, {})[name] = row
    record.setdefault("provenance", {})[part] = provenance()
    FOUND.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
