"""10^9 episodes of OptPess-PrimalDual on the pair instance, at the paper's constants, judged exactly.

Writes experiments/record/billion.{json,npz}, docs/billion.md and its picture. Run by `make billion`;
`--draw` writes page and picture again without running. A shorter run (`--episodes 1000000`) tries it
out and leaves all of that alone: its figures are printed, its picture goes to build/. Progress is shown
on a terminal.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from typing import Any

import curves
import optpess as op
from figures import save_figure
from optpess.plot.panels import draw_together
from optpess.plot.quantities import quantities
from optpess.plot.rows import draw_leaving, draw_violations, leaving
from optpess.plot.style import drawing, styles_of
from pages import DOCS, RECORD, ROOT, provenance

FOUND, CURVES = RECORD / "billion.json", RECORD / "billion.npz"
NAME = "OptPess-PrimalDual"
WHOLE = 10**9
ALT = (
    "Expected cost and reward of what was deployed, regret, violations and multiplier over episodes: "
    "single policies lie on both sides of the limit to the end, their mean comes to it from below"
)


def peak_megabytes() -> float:
    """The most memory this process has had, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def summary(run: op.Run, seconds: float, processor: float) -> dict[str, Any]:
    """The figures, as plain numbers."""
    episodes, replicates = int(run.episodes[-1]), len(run.replicates)
    return {
        "episodes": episodes,
        "replicates": replicates,
        "guarantee": repr(run.guarantee),
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "nanoseconds_an_episode": round(processor * 1e9 / (episodes * replicates), 1),
        "peak_megabytes": round(peak_megabytes(), 1),
        "optimal_value": run.optimal_value,
        "regret_final": float(run.reward_regret[:, -1].max()),
        "regret_exponent_last_decade": float(run.growth_exponent().max()),
        "weak_violation_largest": float(run.weak_violation.max()),
        "weak_violation_final": float(run.weak_violation[:, -1].max()),
        "strong_violation_final": float(run.strong_violation[:, -1].max()),
        "violating_episodes": int(run.violating_episodes.max()),
        "worst_violation": float(run.worst_violation.max()),
        "multiplier_final": float(run.multiplier[:, -1].max()),
        **provenance(),
    }


def page(found: dict[str, Any]) -> str:
    """The figures as a page of the documentation."""
    return f"""# A thousand million episodes

Written by `make billion`: OptPess-PrimalDual on the pair instance, at the paper's constants, every
deployed policy judged exactly. Commit {found["commit"]}, {found["date"]}.

| what | figure |
| --- | ---: |
| episodes | {found["episodes"]:,} |
| processor time | {found["processor_seconds"] / 60:.1f} min, \
{found["nanoseconds_an_episode"]:.0f} ns an episode |
| peak memory | {found["peak_megabytes"]:.0f} MB |
| regret an episode | {found["regret_final"] / found["episodes"]:.2e} |
| exponent of the regret, last decade | {found["regret_exponent_last_decade"]:.3f} |
| weak violation, largest / final | {found["weak_violation_largest"]:.2f} / \
{found["weak_violation_final"]:.2f} |
| strong violation, final | {found["strong_violation_final"]:,.0f} |
| episodes above the limit | {found["violating_episodes"]:,} |

![{ALT}](figures/billion.svg)
"""


def main() -> None:
    """Runs it and writes what it came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=WHOLE)
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--seed", type=int, default=2021)
    parser.add_argument("--draw", action="store_true", help="only write page and picture")
    arguments = parser.parse_args()
    # The paper's constants are the subject; a trial with --episodes may be short.
    warnings.simplefilter("ignore", op.GuaranteeWarning)
    if not arguments.draw:
        run, found = played(arguments)
        print(json.dumps(found, indent=2))
        if arguments.episodes < WHOLE:
            save_figure(draw(run), "billion", ROOT / "build")
            return
        RECORD.mkdir(parents=True, exist_ok=True)
        curves.save(CURVES, {NAME: run})
        FOUND.write_text(json.dumps(found, indent=2) + "\n")
    run = curves.with_origin(curves.load(CURVES)[NAME], op.zoo.pair(), learner_of(WHOLE))
    save_figure(draw(run), "billion")
    (DOCS / "billion.md").write_text(page(json.loads(FOUND.read_text())))


def draw(run: op.Run) -> Any:
    """The picture of the run, without a gain: the learner was given no baseline."""
    runs = {NAME: run}
    drawn = quantities(runs, multiplier=True)
    with drawing("a figure") as figure_of:
        figure = figure_of(figsize=(13.0, 9.6), layout="constrained")
        axes: Any = figure.subplot_mosaic(
            [["cost", "reward"], ["regret", "multiplier"], ["violations"] * 2, ["leaving"] * 2],
            height_ratios=[3, 3, 1, 1],
        )
        for name in ("cost", "reward", "regret", "multiplier"):
            draw_together(axes[name], drawn[name][0], styles_of(runs))
        draw_violations(axes["violations"], runs)
        draw_leaving(axes["leaving"], leaving(runs), int(run.episodes[-1]))
        axes["leaving"].set_title("Where the limit begins to be tightened by at most half of the margin")
    return figure


def learner_of(num_episodes: int) -> op.OptPessPrimalDual:
    """The learner, at the paper's constants."""
    model = op.zoo.pair()
    return op.OptPessPrimalDual(
        shape=model.shape,
        initial=model.initial,
        margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135),
        num_episodes=num_episodes,
    )


def played(arguments: argparse.Namespace) -> tuple[op.Run, dict[str, Any]]:
    """The run and its figures."""
    model, learner = op.zoo.pair(), learner_of(arguments.episodes)
    expected = op.forecast(model, learner).seconds * arguments.replicates / 60
    print(f"{arguments.episodes:,} episodes, about {expected:.1f} min of processor time", flush=True)
    start, processor = time.perf_counter(), time.process_time()
    run = op.simulate(model, learner, replicates=arguments.replicates, seed=arguments.seed)
    return run, summary(run, time.perf_counter() - start, time.process_time() - processor)


if __name__ == "__main__":
    main()
