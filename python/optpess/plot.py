"""Pictures of runs. Needs matplotlib (``pip install optpess[plot]``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optpess.runs import Run

__all__ = ["plot_run", "plot_runs"]

_COLOURS = ("#0b6e99", "#c4501b", "#4d7c0f", "#7c3aed", "#a16207", "#be185d", "#334155", "#0f766e")
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
    figure = Figure(figsize=(5.2 * len(panels), 4.2), layout="constrained")
    axes: Any = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, title) in zip(axes, panels, strict=True):
        for colour, (label, run) in zip(_COLOURS, runs.items(), strict=False):
            curves = getattr(run, name)
            axis.plot(run.episodes, curves.T, color=colour, alpha=0.18, linewidth=0.8)
            axis.plot(run.episodes, np.median(curves, axis=0), color=colour, linewidth=2, label=label)
        axis.set(xscale="log", xlabel="episodes", title=title)
        # The curves span decades, but a violation of exactly zero must be visible as such.
        axis.set_yscale("symlog", linthresh=1.0)
        axis.grid(visible=True, alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    return figure


def _any_multiplier(runs: Mapping[str, Run]) -> bool:
    return any(run.multiplier.any() for run in runs.values())
