"""The paper's two algorithms at the paper's own constants, run to where something happens.

Writes experiments/record/theorem-constants-*, docs/theorem-constants.md and two figures. Run by
`make experiments`; takes about ten minutes on two cores. `--only NAME` runs one part again, `--draw`
none.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import curves
import numpy as np
import optpess as op
from figures import save_figure
from optpess.plot import plot_runs
from optpess.plot.panels import draw_together
from optpess.plot.quantities import quantities
from optpess.plot.style import drawing, styles_of
from pages import DOCS, RECORD, provenance

PAIR_MARGIN = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
# Curves of a file: replicates times record points.
MOST_POINTS = 6000
# What is drawn of other problems than the pair, and whether the axis of episodes is linear.
OF_OTHERS = {"cost": True, "reward": True, "regret": False}
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


def curves_of(name: str) -> Path:
    """The file with the curves of one part."""
    return RECORD / f"theorem-constants-{name.replace(', ', '-').lower()}.npz"


def main() -> None:
    """Runs the parts and writes what they came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--draw", action="store_true", help="only write page and figures")
    chosen = parser.parse_args()
    RECORD.mkdir(parents=True, exist_ok=True)
    stored = RECORD / "theorem-constants.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name, (make_model, make_learner, replicates) in PARTS.items():
        if chosen.draw or chosen.only not in (None, name):
            continue
        model = make_model()
        learner = make_learner(model)
        start = time.perf_counter()
        run = op.simulate(model, learner, replicates=replicates, seed=2021)
        seconds = time.perf_counter() - start
        results[name] = summary(model, learner, run, seconds) | provenance()
        curves.save(curves_of(name), {name: run}, MOST_POINTS // replicates)
        stored.write_text(json.dumps(results, indent=2) + "\n")
        print(name, json.dumps(results[name], indent=2), flush=True)
    write_table(results)
    runs = {name: recorded(name) for name in results}
    save_figure(
        plot_runs({name.removeprefix("pair, "): run for name, run in runs.items() if "pair" in name}),
        "theorem-constants-pair",
    )
    save_figure(
        draw_others({name: run for name, run in runs.items() if "pair" not in name}),
        "theorem-constants-others",
    )


def recorded(name: str) -> op.Run:
    """The run of one part, from the record."""
    make_model, make_learner, _ = PARTS[name]
    model = make_model()
    return curves.with_origin(curves.load(curves_of(name))[name], model, make_learner(model))


def draw_others(runs: dict[str, op.Run]) -> Any:
    """A row for each problem: cost, reward and regret. The baseline is left late in the runs, which
    linear axes of episodes show.
    """
    with drawing("a figure") as figure_of:
        figure = figure_of(figsize=(17.0, 3.3 * len(runs)), layout="constrained")
        rows: Any = figure.subplots(len(runs), 3)
        for panels, (name, run) in zip(rows, runs.items(), strict=True):
            problem, learner = name.split(", ")
            alone = {learner: run}
            drawn = quantities(alone)
            for axis, (quantity, linear) in zip(panels, OF_OTHERS.items(), strict=True):
                each = replace(drawn[quantity][0], linear=linear)
                draw_together(axis, each, styles_of(alone))
                axis.set_title(f"{problem}: {each.title[0].lower()}{each.title[1:]}")
    return figure


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
    (DOCS / "theorem-constants.md").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
