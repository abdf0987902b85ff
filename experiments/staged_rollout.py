"""Simulated staged rollouts: how often the budget is exceeded, how long they take, and drift.

Writes experiments/record/staged-rollout.json and the tables of docs/staged-rollout.md. Run by
`make staged-rollout`; takes about three minutes on two cores.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import optpess as op
from pages import DOCS, RECORD
from scipy.stats import binomtest

FOUND, PAGE = RECORD / "staged-rollout.json", DOCS / "staged-rollout.md"
LIMIT, BASELINE_COST, LARGEST = 0.4, 0.2, 1.0
DELTA = 0.1
DEPLOYMENTS, EPISODES = 1500, 2000
SPREADS, MARGINS = (0.03, 0.1, 0.3), (0.02, 0.05, 0.1, 0.2)

Costs = Callable[[np.random.Generator, int], np.ndarray]


def beta(mean: float, deviation: float) -> Costs:
    """Costs with this mean and standard deviation."""
    size = mean * (1 - mean) / deviation**2 - 1
    return lambda rng, count: rng.beta(mean * size, (1 - mean) * size, count)


def two_values(low: float, high: float, share: float) -> Costs:
    """The high cost in this share of the episodes, else the low one."""
    return lambda rng, count: np.where(rng.random(count) < share, high, low)


# The name, the expected cost and the costs of each kind of candidate. The limit is 0.4.
CANDIDATES: list[tuple[str, float, Costs]] = [
    ("good: mean .3, sd .1", 0.3, beta(0.3, 0.1)),
    ("good, rare large costs: 1 in 20 % of the episodes, else .125", 0.3, two_values(0.125, 1, 0.2)),
    ("bad: mean .41, sd .03", 0.41, beta(0.41, 0.03)),
    ("bad: mean .41, sd .3", 0.41, beta(0.41, 0.3)),
    ("bad: mean .7, sd .3", 0.7, beta(0.7, 0.3)),
    ("bad, 0/1: mean .45", 0.45, two_values(0, 1, 0.45)),
    ("bad, rare large costs: 1 in 3 %, else .39", 0.03 + 0.97 * 0.39, two_values(0.39, 1, 0.03)),
    ("bad, rare large costs: 1 in 20 %, else .3", 0.2 + 0.8 * 0.3, two_values(0.3, 1, 0.2)),
]


def rollout(failure_probability: float, seed: int) -> op.StagedRollout:
    """A rollout with the numbers of this experiment."""
    return op.StagedRollout(
        cost_limit=LIMIT,
        baseline_cost=BASELINE_COST,
        max_episode_cost=LARGEST,
        failure_probability=failure_probability,
        seed=seed,
    )


def exceeded(kind: int, failure_probability: float, seed: int) -> tuple[bool, float]:
    """Whether the expected cost of any episode of one deployment is above the limit; the last weight."""
    _, mean, costs = CANDIDATES[kind]
    staged = rollout(failure_probability, seed)
    drawn = costs(np.random.default_rng([seed, kind]), EPISODES).tolist()
    above = False
    for cost in drawn:
        weight = staged.weight
        above = above or weight * mean + (1 - weight) * BASELINE_COST > LIMIT * (1 + 1e-12)
        if staged.use_candidate():
            staged.record(cost)
    return above, staged.weight


def coverage(task: tuple[int, float]) -> dict[str, Any]:
    """All deployments of one kind of candidate."""
    kind, failure_probability = task
    ends = [exceeded(kind, failure_probability, seed) for seed in range(DEPLOYMENTS)]
    return {
        "candidate": CANDIDATES[kind][0],
        "expected_cost": CANDIDATES[kind][1],
        "failure_probability": failure_probability,
        "deployments": DEPLOYMENTS,
        "exceeded": sum(above for above, _ in ends),
        "median_last_weight": float(np.median([weight for _, weight in ends])),
    }


def until_full(task: tuple[float, float]) -> dict[str, Any]:
    """How many episodes a deployment takes until the weight is 1."""
    margin, deviation = task
    episodes, played = [], []
    for seed in range(21):
        staged = rollout(0.05, seed)
        rng = np.random.default_rng([seed, 99])
        costs = beta(LIMIT - margin, deviation)
        while staged.weight < 1:
            for cost in costs(rng, 100).tolist():
                if staged.use_candidate():
                    staged.record(cost)
                if staged.weight >= 1:
                    break
        episodes.append(staged.episodes)
        played.append(staged.candidate_episodes)
    return {
        "margin": margin,
        "deviation": deviation,
        "episodes": float(np.median(episodes)),
        "candidate_episodes": float(np.median(played)),
    }


def drift(name: str, after: float, slow: bool) -> dict[str, Any]:
    """A candidate that costs .3 until it is deployed in full, then more: in 200 deployments."""
    above = []
    for seed in range(200):
        staged = rollout(DELTA, seed)
        rng = np.random.default_rng([seed, 77])
        since, share = 0, 0
        for _ in range(6000):
            full = staged.weight >= 1
            since += full
            mean = (0.3 + (after - 0.3) * min(1.0, since / 2000 if slow else 1.0)) if full else 0.3
            weight = staged.weight
            share += weight * mean + (1 - weight) * BASELINE_COST > LIMIT
            if staged.use_candidate():
                staged.record(float(rng.random() < mean))
        above.append(share)
    return {
        "drift": name,
        "deployments": 200,
        "exceeded": sum(count > 0 for count in above),
        "median_episodes_above": float(np.median(above)),
    }


def tables(record: dict[str, Any]) -> str:
    """The tables of the page."""
    total, control = record["total"], record["control"][0]
    lines = [
        f"Limit {LIMIT}, baseline {BASELINE_COST} (exactly as stated), largest cost {LARGEST}, failure "
        f"probability {DELTA}, {EPISODES:,} episodes a deployment. Exceeded: the expected cost of some "
        "episode, over the coin too, was above the limit.",
        "",
        "| candidate | expected cost | deployments | exceeded | median last weight |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['candidate']} | {row['expected_cost']:.3f} | {row['deployments']:,} "
        f"| {row['exceeded']} | {row['median_last_weight']:.3f} |"
        for row in record["coverage"]
    ]
    lines += [
        f"| all | | {total['deployments']:,} | {total['exceeded']} | |",
        "",
        f"The largest share of any kind is {total['largest_share']:.4f}. The exact binomial test of at "
        f"most {DELTA} against more has a p-value of at least {total['least_p_value']:.3g} for each. "
        "The first candidate spends half of the failure probability. For comparison, with the failure "
        f"probability {control['failure_probability']} the kind that fails most exceeds the budget "
        f"in {control['exceeded']:,} of {control['deployments']:,}.",
        "",
        "Median number of episodes until the candidate plays all of them (in brackets: those it "
        "played), failure probability 0.05, by the margin between its expected cost and the limit and "
        "by the standard deviation of its costs, both as parts of the largest cost:",
        "",
        "| margin | " + " | ".join(f"sd {spread}" for spread in SPREADS) + " |",
        "| --- | " + " | ".join("---" for _ in SPREADS) + " |",
    ]
    for margin in MARGINS:
        cells = [
            f"{row['episodes']:,.0f} ({row['candidate_episodes']:,.0f})"
            for row in record["until_full"]
            if row["margin"] == margin
        ]
        lines.append(f"| {margin} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Drift, which voids the promise: a candidate with 0/1 costs of mean .3 until it is deployed in "
        "full, then more, 6,000 episodes each.",
        "",
        "| what happens | deployments | exceeded | median episodes above the limit |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['drift']} | {row['deployments']} | {row['exceeded']} "
        f"| {row['median_episodes_above']:,.0f} |"
        for row in record["drift"]
    ]
    return "\n".join(lines)


def main() -> None:
    """Runs everything, writes the record and the tables."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        covered = list(pool.map(coverage, [(kind, DELTA) for kind in range(len(CANDIDATES))]))
        worst = int(np.argmax([row["exceeded"] for row in covered]))
        control = list(pool.map(coverage, [(worst, 0.9)]))
        full = list(pool.map(until_full, [(m, s) for m in MARGINS for s in SPREADS]))
        drifts = list(
            pool.map(
                drift,
                ["its mean jumps to .6", "its mean rises to .6 over 2,000 episodes", "none"],
                [0.6, 0.6, 0.3],
                [False, True, False],
            )
        )
    p_values = [
        binomtest(row["exceeded"], row["deployments"], DELTA, alternative="greater").pvalue
        for row in covered
    ]
    record = {
        "coverage": covered,
        "control": control,
        "total": {
            "deployments": sum(row["deployments"] for row in covered),
            "exceeded": sum(row["exceeded"] for row in covered),
            "largest_share": max(row["exceeded"] / row["deployments"] for row in covered),
            "least_p_value": float(min(p_values)),
        },
        "until_full": full,
        "drift": drifts,
        "seconds": round(time.perf_counter() - begin, 1),
    }
    FOUND.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split("<!-- tables: begin -->\n")
    _, tail = rest.split("<!-- tables: end -->")
    page = f"{head}<!-- tables: begin -->\n{tables(record)}\n<!-- tables: end -->{tail}"
    PAGE.write_text(page, encoding="utf-8")
    print(tables(record))
    assert min(p_values) > 0.01, "the budget is exceeded more often than promised"


if __name__ == "__main__":
    main()
