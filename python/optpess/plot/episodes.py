"""Draws rollouts: running means of the costs and returns of single episodes, and what was played."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.arrays import FloatArray, IntArray
from optpess.checks import optional_module
from optpess.exceptions import InvalidInputError
from optpess.plot.style import line_styles
from optpess.run.rollout_record import Rollout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_rollout"]

# A mean is over this part of the episodes, so that the noise of single ones does not hide it, and over
# this many at least, if there are so many.
_WINDOW_SHARE = 50
_LEAST_WINDOW = 20
_POINTS = 600
_DARK = "#1e293b"


def plot_rollout(rollout: Rollout) -> Figure:
    """Draws, against the episodes: the running mean of each cost with its limit and the certified cost,
    the running mean of the return with that of the baseline, and the share of each source of policies.

    Bands are two standard errors wide on each side. Means are over whole windows: the first one is drawn
    at its last episode.
    """
    if not len(rollout):
        raise InvalidInputError("the rollout has no episode; there is nothing to draw")
    optional_module("matplotlib", "plot", "Rollout.plot")
    from matplotlib.figure import Figure

    count = len(rollout)
    window = min(count, max(_LEAST_WINDOW, count // _WINDOW_SHARE))
    ends = np.unique(np.linspace(window, count, _POINTS).astype(np.int64))
    figure = Figure(figsize=(13.5, 3.9), layout="constrained")
    axes = figure.subplots(1, 3)
    for draw, axis in zip((_draw_costs, _draw_returns, _draw_sources), axes, strict=True):
        draw(axis, rollout, window, ends)
        axis.set_xlabel(f"episode (means of {window} up to it)")
        axis.grid(visible=True, alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, loc="best", fontsize=9)
    return figure


def _draw_costs(axis: Any, rollout: Rollout, window: int, ends: IntArray) -> None:
    """Costs against their limits. With several constraints each is drawn as a part of its limit."""
    several = len(rollout.cost_limits) > 1
    limit = 1.0 if several else float(rollout.cost_limits[0])
    label = "limits" if several else f"limit {limit:g}"
    axis.axhline(limit, color=_DARK, linestyle="--", linewidth=1.2, label=label)
    for m, (own, (_, colour)) in enumerate(zip(rollout.cost_limits, line_styles(), strict=False)):
        unit, name = (own, f"cost {m}, of {own:g}") if several else (1.0, "cost")
        _draw_mean(axis, rollout, rollout.costs[:, m] / unit, window, ends, colour, f"mean {name}")
        certified = rollout.certified_costs[ends - 1, m] / unit
        if np.isfinite(certified).any():
            label = f"certified expected {name}" if not several else f"certified, cost {m}"
            axis.step(
                rollout.episodes[ends - 1],
                certified,
                ":",
                where="post",
                color=colour,
                linewidth=1.5,
                label=label,
            )
    axis.set_title("cost of an episode" + (", in parts of its limit" * several))
    low, high = axis.get_ylim()
    axis.set_ylim(min(0.0, low), max(high, limit + 0.05 * abs(limit)))


def _draw_returns(axis: Any, rollout: Rollout, window: int, ends: IntArray) -> None:
    """Returns, against those of the episodes that played the baseline."""
    _draw_mean(axis, rollout, rollout.returns, window, ends, "#0b6e99", "mean return")
    on_baseline = rollout.on_baseline
    if on_baseline.any() and not on_baseline.all():
        average = float(rollout.returns[on_baseline > 0].mean())
        axis.axhline(
            average,
            color=_DARK,
            linestyle="--",
            linewidth=1.2,
            label=f"mean on the baseline {average:.4g}",
        )
    axis.set_title("return of an episode")


def _draw_sources(axis: Any, rollout: Rollout, window: int, ends: IntArray) -> None:
    """The shares of the sources, in the order in which they first came."""
    found = np.array(rollout.sources)
    for name, (dashes, colour) in zip(dict.fromkeys(rollout.sources), line_styles(), strict=False):
        shares, _ = _means((found == name).astype(np.float64), window, ends)
        axis.plot(rollout.episodes[ends - 1], shares, dashes, color=colour, linewidth=1.6, label=name)
    axis.set_ylim(-0.03, 1.03)
    axis.set_title("share of the episodes that played")


def _draw_mean(
    axis: Any, rollout: Rollout, values: FloatArray, window: int, ends: IntArray, colour: str, label: str
) -> None:
    """A running mean with a band of two standard errors."""
    means, errors = _means(values, window, ends)
    places = rollout.episodes[ends - 1]
    axis.fill_between(
        places, means - 2 * errors, means + 2 * errors, color=colour, alpha=0.2, linewidth=0
    )
    axis.plot(places, means, color=colour, linewidth=1.6, label=label)


def _means(values: FloatArray, window: int, ends: IntArray) -> tuple[FloatArray, FloatArray]:
    """The mean of the last ``window`` values before each end, and its standard error."""
    centred = values - values.mean()  # against cancellation in the sums of squares
    first, second = (np.concatenate(([0.0], np.cumsum(centred**power))) for power in (1, 2))
    means: FloatArray = (first[ends] - first[ends - window]) / window
    squares: FloatArray = (second[ends] - second[ends - window]) / window
    errors = np.sqrt(np.maximum(squares - means**2, 0.0) / window)
    return means + values.mean(), errors
