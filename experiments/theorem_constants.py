"""The paper's two algorithms at the paper's own constants, run to where something happens.

Writes experiments/record/theorem-constants.json, docs/theorem-constants.md and two figures. Run by
`make experiments`; takes about twenty minutes on two cores. `--only NAME` runs one part again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import optpess as op
from optpess.plot import plot_runs

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
RECORD = ROOT / "experiments" / "record"
PAIR_MARGIN = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
ALWAYS_FIRST = np.tile([1.0, 0.0], (2, 2, 1))


def pair_lp(num_episodes: int, failure_probability: float = 0.05) -> op.OptPessLP:
    """OptPess-LP on the pair instance, from "always the first action"."""
    model = op.zoo.pair()
    return op.OptPessLP(
        shape=model.shape,
        initial=model.initial,
        baseline=op.SafeBaseline(ALWAYS_FIRST, PAIR_MARGIN),
        num_episodes=num_episodes,
        failure_probability=failure_probability,
    )


def pair_primal_dual(num_episodes: int) -> op.OptPessPrimalDual:
    """OptPess-PrimalDual on the pair instance."""
    model = op.zoo.pair()
    return op.OptPessPrimalDual(
        shape=model.shape, initial=model.initial, margin=PAIR_MARGIN, num_episodes=num_episodes
    )


def field_lp(model: op.CMDP, num_episodes: int) -> op.OptPessLP:
    """OptPess-LP with the field's convention: pi0 is optimal for a fifth of the limit."""
    limit = float(model.cost_limits[0])
    safe = op.solve(model, cost_limit=limit / 5)
    margin = op.SafetyMargin(cost_limit=limit, safe_cost=limit / 5)
    return op.OptPessLP(
        shape=model.shape,
        initial=model.initial,
        baseline=op.SafeBaseline(safe.policy, margin),
        num_episodes=num_episodes,
        failure_probability=0.01,
    )


PARTS: dict[str, tuple[Any, Any, int]] = {
    "pair, OptPess-LP": (op.zoo.pair, lambda _: pair_lp(10**7), 100),
    "pair, OptPess-PrimalDual": (op.zoo.pair, lambda _: pair_primal_dual(10**8), 4),
    "ring, OptPess-LP": (op.zoo.ring, lambda model: field_lp(model, 10**6), 8),
    "inventory, OptPess-LP": (op.zoo.inventory, lambda model: field_lp(model, 5 * 10**6), 4),
    "media, OptPess-LP": (op.zoo.media, lambda model: field_lp(model, 2 * 10**7), 2),
}


def summary(model: op.CMDP, learner: Any, run: op.Run, seconds: float) -> dict[str, Any]:
    """The figures of one part, as plain numbers."""
    forecast = op.forecast(model, learner)
    weak = run.weak_violation
    return {
        "episodes": int(run.episodes[-1]),
        "replicates": len(run.replicates),
        "failure_probability": learner.parameters["failure_probability"],
        "guarantee": repr(run.guarantee),
        "optimal_value": run.optimal_value,
        "regret_median": float(np.median(run.reward_regret[:, -1])),
        "regret_exponent_last_decade": [float(x) for x in np.sort(run.growth_exponent())[[0, -1]]],
        "violating_episodes": int(run.violating_episodes.sum()),
        "violating_replicates": int((run.violating_episodes > 0).sum()),
        "worst_violation": float(run.worst_violation.max()),
        "weak_violation_largest": float(weak.max()),
        "weak_violation_final": float(weak[:, -1].max()),
        "strong_violation_final": float(run.strong_violation[:, -1].max()),
        "baseline_episodes": [
            int(x) for x in (run.baseline_episodes.min(), run.baseline_episodes.max())
        ],
        "first_planned": [int(x) for x in (run.first_planned.min(), run.first_planned.max())],
        "forecast_leaves_baseline": forecast.leaves_baseline,
        "forecast_tightening_horizon": forecast.tightening_horizon,
        "least_slack": float(run.least_slack.min()) if np.isfinite(run.least_slack).any() else None,
        "repairs": int(run.repairs.sum()),
        "seconds": round(seconds, 1),
        "microseconds_per_episode": 1e6 * seconds / (len(run.replicates) * int(run.episodes[-1])),
    }


def spread(counts: Any) -> list[int]:
    """The least and the largest."""
    return [int(counts.min()), int(counts.max())]


def main() -> None:
    """Runs the parts and writes what they came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    only = parser.parse_args().only
    RECORD.mkdir(parents=True, exist_ok=True)
    stored = RECORD / "theorem-constants.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name, (make_model, make_learner, replicates) in PARTS.items():
        if only not in (None, name):
            continue
        model = make_model()
        learner = make_learner(model)
        start = time.perf_counter()
        run = op.simulate(model, learner, replicates=replicates, seed=2021)
        seconds = time.perf_counter() - start
        results[name] = summary(model, learner, run, seconds) | provenance()
        run.save(RECORD / f"{name.replace(', ', '-').lower()}.npz")
        stored.write_text(json.dumps(results, indent=2) + "\n")
        print(name, json.dumps(results[name], indent=2), flush=True)
    write_table(results)
    runs = {name: op.load_run(RECORD / f"{name.replace(', ', '-').lower()}.npz") for name in results}
    plot_runs({name: run for name, run in runs.items() if name.startswith("pair")}).savefig(
        FIGURES / "theorem-constants-pair.png", dpi=110
    )
    plot_runs({name: run for name, run in runs.items() if not name.startswith("pair")}).savefig(
        FIGURES / "theorem-constants-others.png", dpi=110
    )


def write_table(results: dict[str, Any]) -> None:
    """The figures as a page of the documentation."""
    rows = [
        "# Runs at the paper's constants",
        "",
        "Written by `make experiments`; read with [learning.md](learning.md). Ranges: over replicates.",
        "Every deployed policy was judged exactly against the true model.",
        "",
        "| run | episodes | replicates | promise | leaves the baseline at | forecast "
        "| violating episodes | weak violation, largest / final | regret an episode "
        "| its exponent, last decade | commit |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, found in results.items():
        leaves = "-" if "LP" not in name else "{:,} to {:,}".format(*found["first_planned"])
        forecast = found["forecast_leaves_baseline"]
        weak = f"{found['weak_violation_largest']:.2f} / {found['weak_violation_final']:.2f}"
        exponents = "{:.3f} to {:.3f}".format(*found["regret_exponent_last_decade"])
        cells = [
            name,
            f"{found['episodes']:,}",
            str(found["replicates"]),
            found["guarantee"],
            leaves,
            "-" if forecast is None else f"{forecast:,}",
            f"{found['violating_episodes']:,}",
            weak,
            f"{found['regret_median'] / found['episodes']:.4f}",
            exponents,
            f"{found['commit']}, {found['date']}",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    (ROOT / "docs" / "theorem-constants.md").write_text("\n".join(rows) + "\n")


def provenance() -> dict[str, str]:
    """When and from which commit."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return {"date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(), "commit": commit}


if __name__ == "__main__":
    main()
