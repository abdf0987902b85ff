"""Draws the picture of the README: the problem, and what three learners deploy while they learn it.

Writes docs/figures/problem.svg. Run by `make stories`; takes a few seconds.
"""

from __future__ import annotations

import warnings

import optpess as op
from optpess.plot import Picture
from pages import FIGURES

FIGURE = FIGURES / "problem.svg"
EPISODES, REPLICATES, SEED = 100_000, 20, 1
RED = "#d55e00"
ALT = (
    "Expected reward against expected cost of what three learners play. OptPess-Mix stays left of the "
    "limit and ends at the optimum, the learner without a constraint is right of it all the time, and "
    "OptPess-LP stays at the safe policy."
)


def main() -> None:
    """Runs the learners and draws their paths below the frontier."""
    warnings.filterwarnings("ignore", message="this run is expected to play the baseline")
    problem = op.zoo.problem("media")
    model, baseline = problem.model, problem.baseline
    sizes = {"shape": model.shape, "initial": model.initial}
    told = sizes | {"num_episodes": EPISODES}
    known = op.Knowledge(stationary=True)
    found = op.compare(
        model,
        {
            "OptPess-Mix": op.OptPessMix(**sizes, baseline=baseline, knowledge=known),
            "OptPess-LP,\nthe safe policy": op.OptPessLP(**told, baseline=baseline),
            "no constraint": op.UnconstrainedOptimistic(**told, margin=baseline.margin),
        },
        episodes=EPISODES,
        replicates=REPLICATES,
        seed=SEED,
    )
    figure = op.frontier(model).plot(path=found.runs)
    axis = figure.axes[0]
    low, high = axis.get_xlim()
    axis.axvspan(model.cost_limits[0], high, color=RED, alpha=0.07, linewidth=0)
    axis.text(model.cost_limits[0] + 0.2, 0.15, "costs more than the limit", color=RED)
    axis.text(low + 0.3, 4.2, "no policy gets here", color=axis.xaxis.label.get_color())
    axis.set_xlim(low, high)
    axis.set_title(
        "Video over a metered link: what is played at episodes 1, 10, 100, ... (dots)", loc="left"
    )
    Picture("problem", "The problem", caption="", alt=ALT, figure=figure).save(FIGURE)
    print(f"Picture: {FIGURE.name}")


if __name__ == "__main__":
    main()
