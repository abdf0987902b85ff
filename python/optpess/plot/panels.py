"""Draws the curves of runs: one panel for each curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.checks import optional_module
from optpess.plot.style import LEGEND_INSIDE, PANELS, line_styles
from optpess.run.record import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_run", "plot_runs"]


def plot_run(run: Run) -> Figure:
    """Draws regret, weak and strong violation and multiplier of one run: a thin line for each
    replicate, a bold one for their median.
    """
    return plot_runs({str(run.parameters.get("algorithm", "run")): run})


def plot_runs(runs: Mapping[str, Run]) -> Figure:
    """Draws several runs into the same panels; the keys are their names in the legend."""
    module = optional_module("matplotlib.figure", "plot", "a figure")
    panels = [panel for panel in PANELS if panel[0] != "multiplier" or _any_multiplier(runs)]
    rows = 2 if len(panels) == 4 else 1
    columns = len(panels) // rows
    beside = len(runs) > LEGEND_INSIDE
    size = (5.4 * columns + 2.2 * beside, 3.9 * rows)
    figure: Figure = module.Figure(figsize=size, layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (name, title) in zip(axes, panels, strict=True):
        _draw(axis, runs, name)
        axis.set(xscale="log", xlabel="episodes", title=title)
        axis.grid(visible=True, alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    if beside:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    else:
        axes[0].legend(frameon=False)
    return figure


def _draw(axis: Any, runs: Mapping[str, Run], name: str) -> None:
    """Draws one panel."""
    lowest = 0.0
    for (dashes, colour), (label, run) in zip(line_styles(), runs.items(), strict=False):
        curves = getattr(run, name)
        if name == "multiplier" and not curves.any():
            continue  # an algorithm without a multiplier
        axis.plot(run.episodes, curves.T, color=colour, alpha=0.18, linewidth=0.8)
        middle = np.median(curves, axis=0)
        axis.plot(run.episodes, middle, dashes, color=colour, linewidth=2, label=label)
        lowest = min(lowest, float(curves.min()))
    # Linear near zero, logarithmic beyond: curves span decades, but a violation of zero must be visible.
    axis.set_yscale("symlog", linthresh=1.0)
    if lowest >= 0.0:
        # So that a curve of zeros is drawn just above the bottom.
        axis.set_ylim(-0.08, max(axis.get_ylim()[1], 1.5))


def _any_multiplier(runs: Mapping[str, Run]) -> bool:
    return any(run.multiplier.any() for run in runs.values())
