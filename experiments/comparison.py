"""The learners of the paper's Table 1 side by side: the tables and pictures of docs/comparison.md.

On the pair every learner runs at its theorem's own constants. On the other problems those would keep the
safe learners on the baseline for most of the run, so radii are scaled, by one rule for all: twice the
least factor 2^-j at which the learner's own optimism or pessimism held against the truth at every
episode of a pilot. OptPess-Mix, told nothing of the problem but its safe policy, and S-OPS run at
their own constants everywhere. Run by `make comparison`; takes about twenty minutes on one core, eight
with the factors of the record (`--same-factors`). `--only NAME` runs one problem again, `--draw` none.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import curves
import numpy as np
import optpess as op
from figures import save_figure
from optpess.plot import plot_runs
from optpess.run import tables
from optpess.run.compare import table_texts
from pages import DOCS, RECORD, provenance, replace_tables

PAGE, FOUND = DOCS / "comparison.md", RECORD / "comparison.json"
SEED, PILOT_SEED = 2021, 1
PILOT_EPISODES, PILOT_REPLICATES, LEAST_FACTOR = 30_000, 3, 2.0**-12
# The audit's checks of what a learner's proof needs of its biased values.
CHECKS = ("CostDominance", "CostOptimism", "RewardOptimism")
# Learners that are safe and move at the constants of their proofs.
AT_OWN_CONSTANTS = ("always the baseline", "OptPess-Mix", "S-OPS")
DRAWN_POINTS = 40
ALT = "expected cost against the limit, expected reward, gain, regret and violations of each learner"
FACTOR = re.compile(r"Scaled\(factor=([0-9.e-]+)\)")
Make = Callable[[Any], op.Learner]


class Problem:
    """A model, what the learners are told of it, and for how long they play."""

    def __init__(
        self, title: str, model: op.CMDP, safe_cost: float, baseline: Any, size: tuple[int, int]
    ) -> None:
        self.title, self.model = title, model
        self.margin = op.SafetyMargin(float(model.cost_limits[0]), safe_cost)
        self.baseline = op.SafeBaseline(baseline, self.margin)
        self.num_episodes, self.replicates = size

    def learners(self) -> dict[str, Make]:
        """Every learner of Table 1 and the two ends of the scale, given its confidence rule."""
        told = {"shape": self.model.shape, "initial": self.model.initial}
        endless = told
        told = told | {"num_episodes": self.num_episodes}

        def margin(kind: Any) -> Make:
            return lambda rule: kind(margin=self.margin, confidence=rule, **told)

        def safe(kind: Any, **more: Any) -> Make:
            return lambda rule: kind(baseline=self.baseline, confidence=rule, **told, **more)

        return {
            "OptPess-Mix": lambda _: op.OptPessMix(baseline=self.baseline, **endless),
            "S-OPS": lambda _: op.SOPS(baseline=self.baseline, replan_growth=0.25, **told),
            "OptPess-LP": safe(op.OptPessLP),
            "OptPess-PrimalDual": margin(op.OptPessPrimalDual),
            "C-UCRL (told P)": safe(op.CUCRL, transitions=self.model.transitions),
            "OptCMDP": margin(op.OptCMDP),
            "OptCMDP-bonus": margin(op.OptCMDPBonus),
            "OptDual-CMDP": margin(op.OptDualCMDP),
            "OptPrimalDual-CMDP": margin(op.OptPrimalDualCMDP),
            "OPDOP": margin(op.OPDOP),
            "no constraint": margin(op.UnconstrainedOptimistic),
            "always the baseline": lambda _: op.AlwaysBaseline(baseline=self.baseline, **told),
        }


def field(title: str, model: op.CMDP, size: tuple[int, int]) -> Problem:
    """The field's convention: the baseline is optimal for a fifth of the limit."""
    safe = float(model.cost_limits[0]) / 5
    return Problem(title, model, safe, op.solve(model, cost_limit=safe).policy, size)


def garnet(seed: int, size: tuple[int, int]) -> Problem:
    """A random problem: the limit half-way from the least cost to that of the most reward, the safe cost
    a fifth of the way to the limit.
    """
    drawn = op.zoo.garnet(6, 3, 6, successors=3, seed=seed)
    least = float(op.solve_least_cost(drawn).costs[0])
    limit = (least + float(op.solve_unconstrained(drawn).costs[0])) / 2
    model = op.zoo.garnet(6, 3, 6, successors=3, seed=seed, cost_limit=limit)
    safe = least + (limit - least) / 5
    title = f"Random ({seed}): 6 states, 3 actions, 6 steps, 3 successors"
    return Problem(title, model, safe, op.solve(model, cost_limit=safe).policy, size)


ALWAYS_FIRST = np.tile([1.0, 0.0], (2, 2, 1))
PROBLEMS: dict[str, Callable[[], Problem]] = {
    "pair": lambda: Problem(
        "Pair, at the theorems' own constants", op.zoo.pair(), 0.135, ALWAYS_FIRST, (10**7, 4)
    ),
    "ring": lambda: field("Ring", op.zoo.ring(), (10**6, 4)),
    "inventory": lambda: field("Inventory", op.zoo.inventory(), (10**6, 3)),
    "media": lambda: field("Media streaming", op.zoo.media(), (10**6, 3)),
    "random-1": lambda: garnet(1, (10**6, 3)),
    "random-2": lambda: garnet(2, (10**6, 3)),
}


def holds(problem: Problem, make: Make, factor: float) -> bool:
    """Whether the audit of a pilot finds nothing against the learner's optimism or pessimism."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a pilot stays on the baseline
        run = op.simulate(
            problem.model,
            make(op.Scaled(factor)),
            episodes=PILOT_EPISODES,
            replicates=PILOT_REPLICATES,
            seed=PILOT_SEED,
            threads=1,
            audit=True,
            progress=False,
        )
    assert run.audits is not None
    return not any(audit[check].failed for audit in run.audits for check in CHECKS)


def rule_for(name: str, problem: Problem, make: Make) -> Any:
    """The theorem's radii on the pair; elsewhere scaled, by the rule above."""
    if problem.model.shape == (2, 2, 2) or name in AT_OWN_CONSTANTS:
        return op.Theorem()
    factor = 1.0
    while factor > LEAST_FACTOR and holds(problem, make, factor / 2):
        factor /= 2
    return op.Scaled(min(2 * factor, 1.0))


def recorded_rules(found: dict[str, Any]) -> dict[str, Any]:
    """The confidence rules of a recorded table."""
    texts = {row["learner"]: row["confidence"] for row in found["rows"]}
    factors = {name: FACTOR.search(text or "") for name, text in texts.items()}
    return {
        name: op.Scaled(float(factor[1])) if factor else op.Theorem() for name, factor in factors.items()
    }


def compared(name: str, rules: dict[str, Any]) -> dict[str, Any]:
    """Runs every learner on one problem; keeps the curves and returns the table. Rules that are not
    given are found by pilots.
    """
    problem = PROBLEMS[name]()
    start = time.perf_counter()
    learners = {}
    for learner, make in problem.learners().items():
        rule = rules[learner] if learner in rules else rule_for(learner, problem, make)
        learners[learner] = make(rule)
        print(f"{name}: {learner} with {rule}, {time.perf_counter() - start:.0f} s", flush=True)
    episodes, replicates = problem.num_episodes, problem.replicates
    found = op.compare(problem.model, learners, episodes=episodes, replicates=replicates, seed=SEED)
    print(f"{name}: {time.perf_counter() - start:.0f} s\n{found.to_markdown()}", flush=True)
    curves.save(curves_of(name), found.runs)
    return shown(problem, found)


def shown(problem: Problem, found: op.Comparison) -> dict[str, Any]:
    """What the page says of one problem, and the rows of its table."""
    facts = (
        f"V* = {op.solve(problem.model).value:.4f}, limit {problem.margin.cost_limit:.4g}, safe cost "
        f"{problem.margin.safe_cost:.4g}; {problem.num_episodes:,} episodes, "
        f"{problem.replicates} replicates; commit {{commit}}, {{date}}."
    ).format(**provenance())
    rows = [row | {"guarantee": repr(row["guarantee"])} for row in found.table]
    shown = {"title": problem.title, "facts": facts}
    return shown | {"rows": json.loads(json.dumps(rows).replace("NaN", "null"))}


def table_of(rows: list[dict[str, Any]]) -> str:
    """The table as `op.Comparison.to_markdown` writes it, from the rows of a record. JSON has neither
    tuples nor NaN.
    """
    made = []
    for row in rows:
        spreads = {
            name: tuple(math.nan if number is None else number for number in value)
            for name, value in row.items()
            if isinstance(value, list)
        }
        guarantee = None if row["guarantee"] == "None" else row["guarantee"]
        made.append(row | spreads | {"guarantee": guarantee})
    return tables.markdown(*table_texts(made))


def draw(name: str, rules: dict[str, Any]) -> Any:
    """The figure of one problem, from the record."""
    problem = PROBLEMS[name]()
    learners = {learner: make(rules[learner]) for learner, make in problem.learners().items()}
    runs = {
        learner: curves.with_origin(curves.thinned(run, DRAWN_POINTS), problem.model, learners[learner])
        for learner, run in curves.load(curves_of(name)).items()
    }
    return plot_runs(runs)


def curves_of(name: str) -> Path:
    """The file with the curves of one problem."""
    return RECORD / f"comparison-{name}.npz"


def main() -> None:
    """Runs the problems and writes what they came to into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PROBLEMS)
    parser.add_argument("--same-factors", action="store_true", help="those of the record; no pilots")
    parser.add_argument("--draw", action="store_true", help="only write page and figures")
    chosen = parser.parse_args()
    # Those of the paper's learners that were made for few episodes say so.
    warnings.simplefilter("ignore", op.GuaranteeWarning)
    results = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    for name in PROBLEMS:
        if chosen.only not in (None, name):
            continue
        if not chosen.draw:
            rules = recorded_rules(results[name]) if chosen.same_factors else {}
            results[name] = compared(name, rules)
            FOUND.write_text(json.dumps(results, indent=2) + "\n")
        save_figure(draw(name, recorded_rules(results[name])), f"comparison-{name}")
    write_page(results)


def write_page(results: dict[str, Any]) -> None:
    """Replaces the part of the page between the marks."""
    parts = [
        f"### {found['title']}\n\n{found['facts']}\n\n{table_of(found['rows'])}\n\n"
        f"![{found['title']}: {ALT}](figures/comparison-{name}.svg)\n"
        for name, found in results.items()
        if name in PROBLEMS
    ]
    replace_tables(PAGE, "\n".join(parts).rstrip())


if __name__ == "__main__":
    main()
