"""Pictures of runs. Needs matplotlib (``pip install optpess[plot]``)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optpess.runs import Run

__all__ = ["plot_run", "plot_runs"]

_COLOURS = ("#0b6e99", "#c4501b", "#65a30d", "#7c3aed", "#d4a017", "#be185d", "#1e293b", "#14b8a6")
_DASHES = ("-", "--", ":")  # one for each round of the colours
_MANY = 4  # more runs than this have their legend beside the panels
_PANELS = (
    ("reward_regret", "regret of reward"),
    ("weak_violation", "weak violation"),
    ("strong_violation", "strong violation"),
    ("multiplier", "multiplier"),
)


def plot_run(run: Run) -> Figure:
    """Regret, weak and strong violation and multiplier of one run; each replicate a line, their median
    in bold.
    """
    return plot_runs({str(run.parameters.get("algorithm", "run")): run})


def plot_runs(runs: Mapping[str, Run]) -> Figure:
    """Several runs over each other, by name."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install optpess[plot]") from error
    panels = [panel for panel in _PANELS if panel[0] != "multiplier" or _any_multiplier(runs)]
    rows = 2 if len(panels) == 4 else 1
    columns = len(panels) // rows
    beside = len(runs) > _MANY
    figure = Figure(figsize=(5.4 * columns + 2.2 * beside, 3.9 * rows), layout="constrained")
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
    """One panel: thin lines for replicates, a bold one for their median."""
    lowest = 0.0
    styles = product(_DASHES, _COLOURS)
    for (dashes, colour), (label, run) in zip(cycle(styles), runs.items(), strict=False):
        curves = getattr(run, name)
        if name == "multiplier" and not curves.any():
            continue  # an algorithm without a multiplier
        axis.plot(run.episodes, curves.T, color=colour, alpha=0.18, linewidth=0.8)
        middle = np.median(curves, axis=0)
        axis.plot(run.episodes, middle, dashes, color=colour, linewidth=2, label=label)
        lowest = min(lowest, float(curves.min()))
    # The curves span decades, but a violation of exactly zero must be visible as such.
    axis.set_yscale("symlog", linthresh=1.0)
    if lowest >= 0.0:
        # Curves that are zero throughout get a scale on which zero looks like zero.
        axis.set_ylim(-0.08, max(axis.get_ylim()[1], 1.5))


def _any_multiplier(runs: Mapping[str, Run]) -> bool:
    return any(run.multiplier.any() for run in runs.values())
