"""Draws rollouts: running averages of the costs and returns of single episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.arrays import FloatArray
from optpess.checks import optional_module
from optpess.exceptions import InvalidInputError
from optpess.plot.style import line_styles
from optpess.run.rollout_record import Rollout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_rollout"]

# An average over this part of the episodes, so that the noise of single ones does not hide their mean.
_WINDOW_SHARE = 50


def plot_rollout(rollout: Rollout) -> Figure:
    """Draws, against the episodes: the running mean of each cost with its limit and the certified cost,
    and the running mean of the return with the share of episodes on the baseline.
    """
    if not len(rollout):
        raise InvalidInputError("the rollout has no episode; there is nothing to draw")
    optional_module("matplotlib", "plot", "Rollout.plot")
    from matplotlib.figure import Figure

    window = max(1, len(rollout) // _WINDOW_SHARE)
    figure = Figure(figsize=(10.8, 3.9), layout="constrained")
    costs, returns = figure.subplots(1, 2)
    _draw_costs(costs, rollout, window)
    _draw_returns(returns, rollout, window)
    for axis in (costs, returns):
        axis.set_xlabel("episode")
        axis.grid(visible=True, alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, loc="best")
    return figure


def _draw_costs(axis: Any, rollout: Rollout, window: int) -> None:
    """Costs against their limits. With several constraints each is drawn as a part of its limit."""
    several = len(rollout.cost_limits) > 1
    for m, (limit, (_, colour)) in enumerate(zip(rollout.cost_limits, line_styles(), strict=False)):
        unit, name = (limit, f"cost {m}") if several else (1.0, "cost")
        means = _running_mean(rollout.costs[:, m], window) / unit
        axis.plot(rollout.episodes, means, color=colour, linewidth=1.6, label=f"mean {name}")
        certified = rollout.certified_costs[:, m] / unit
        if np.isfinite(certified).any():
            axis.step(
                rollout.episodes,
                certified,
                ":",
                where="post",
                color=colour,
                linewidth=1.2,
                label=f"certified expected {name}",
            )
    limit = 1.0 if several else float(rollout.cost_limits[0])
    axis.axhline(limit, color="#1e293b", linestyle="--", linewidth=1.2, label="limit")
    axis.set_title(f"cost of an episode, mean of {window}" + (" (parts of the limits)" * several))
    axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))


def _draw_returns(axis: Any, rollout: Rollout, window: int) -> None:
    means = _running_mean(rollout.returns, window)
    axis.plot(rollout.episodes, means, color="#0b6e99", linewidth=1.6, label="mean return")
    on_baseline = rollout.on_baseline
    if on_baseline.any() and not on_baseline.all():
        average = float(rollout.returns[on_baseline > 0].mean())
        axis.axhline(average, color="#1e293b", linestyle="--", linewidth=1.2, label="on the baseline")
    axis.set_title(f"return of an episode, mean of {window}")


def _running_mean(values: FloatArray, window: int) -> FloatArray:
    """The mean of the last ``window`` values; at the beginning, of those there are."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: FloatArray = (sums[ends] - sums[starts]) / (ends - starts)
    return means
