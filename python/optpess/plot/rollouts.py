"""Draws rollouts: running means of the costs and returns of single episodes, and what was played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.arrays import FloatArray, IntArray
from optpess.checks import check_type
from optpess.exceptions import InvalidInputError
from optpess.plot.curves import Reference, nearest_constraints
from optpess.plot.labels import End, label_ends
from optpess.plot.numbers import number_text
from optpess.plot.style import DASHED, PANEL, SOLID, Style, drawing, styles_of, tidy
from optpess.run.rollout_record import Rollout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_rollout"]

# A mean is over this part of the episodes, so that the noise of single ones does not hide it, and over
# this many at least, if there are so many.
_WINDOW_SHARE = 20
_LEAST_WINDOW = 20
_POINTS = 300
_MEAN, _CERTIFIED = styles_of(("mean", "certified")).values()


def plot_rollout(rollout: Rollout) -> Figure:
    """Draws, against the episodes: the running mean of each cost with its limit and the certified cost,
    the running mean of the return with that of the baseline, and the share of each source of policies.

    Bands are two standard errors wide on each side. Means are over whole windows: the first one is drawn
    at its last episode. Of more than four costs, those that come nearest to their limits are drawn.

    Args:
        rollout: the rollout.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import plot_rollout
        >>> class Still:  # one state; the action pays and costs its number
        ...     num_states, num_actions = 1, 2
        ...     def reset(self):
        ...         return 0
        ...     def step(self, action):
        ...         return 0, float(action), float(action), False
        >>> safe = op.policy_from_actions([[0]], num_actions=2)
        >>> learner = op.AlwaysBaseline(shape=(1, 1, 2), initial=0, num_episodes=50,
        ...     baseline=op.SafeBaseline(safe, op.SafetyMargin(cost_limit=0.5, safe_cost=0.0)))
        >>> figure = plot_rollout(op.rollout(learner, Still(), episodes=50))
        >>> [axis.get_title("left") for axis in figure.axes]
        ['Cost', 'Return', 'Policies played']
    """
    if not len(check_type("rollout", rollout, Rollout)):
        raise InvalidInputError("the rollout has no episode; there is nothing to draw")
    means_above = rollout.costs.mean(axis=0) - rollout.cost_limits
    constraints = nearest_constraints(means_above / rollout.units.cost_widths)
    count = len(constraints) + 2
    rows = -(-count // 2)
    with drawing("a figure of a rollout") as new_figure:
        width, height = PANEL
        figure = new_figure(figsize=(2 * width, rows * height), layout="constrained")
        axes: Any = figure.subplots(rows, 2, squeeze=False).ravel()
        means = _RunningMeans(rollout)
        for axis, m in zip(axes, constraints, strict=False):
            _draw_cost(axis, rollout, means, m)
        _draw_returns(axes[count - 2], rollout, means)
        _draw_sources(axes[count - 1], rollout, means)
        for axis in axes[count:]:
            axis.remove()
        return figure


class _RunningMeans:
    """Means of the last episodes before some of them, and where they are drawn."""

    def __init__(self, rollout: Rollout) -> None:
        count = len(rollout)
        self.window = min(count, max(_LEAST_WINDOW, count // _WINDOW_SHARE))
        self.ends: IntArray = np.unique(np.linspace(self.window, count, _POINTS).astype(np.int64))
        self.episodes = rollout.episodes[self.ends - 1] + 1

    def of(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean of the last values before each end, and its standard error."""
        centred = values - values.mean()  # against cancellation in the sums of squares
        first, second = (np.concatenate(([0.0], np.cumsum(centred**power))) for power in (1, 2))
        sums = [(total[self.ends] - total[self.ends - self.window]) for total in (first, second)]
        means, squares = (total / self.window for total in sums)
        errors: FloatArray = np.sqrt(np.maximum(squares - means**2, 0.0) / self.window)
        return means + values.mean(), errors

    def draw(self, axis: Any, values: FloatArray, style: Style, text: str) -> End:
        """Draws a running mean with a band of two standard errors."""
        means, errors = self.of(values)
        low, high = means - 2 * errors, means + 2 * errors
        axis.fill_between(self.episodes, low, high, color=style.colour, alpha=0.2, linewidth=0)
        return self.line(axis, means, style, text)

    def line(self, axis: Any, heights: FloatArray, style: Style, text: str) -> End:
        """Draws a line; a single point as a dot."""
        marker = "o" if len(self.episodes) == 1 else None
        axis.plot(self.episodes, heights, marker=marker, **style.line)
        return End(float(self.episodes[-1]), float(heights[-1]), text, style)

    def finish(
        self, axis: Any, title: str, unit: str, ends: list[End], references: Sequence[Reference] = ()
    ) -> None:
        """Titles, ticks, lines to compare with, and names at the ends of all lines."""
        for line in references:
            axis.axhline(line.height, linewidth=1.2, **line.style.line)
        if len(self.episodes) > 1:
            axis.set_xlim(self.episodes[0], self.episodes[-1])
        tidy(axis, whole=True)
        if len(self.episodes) == 1:
            axis.set_xticks(self.episodes)
        right = axis.get_xlim()[1]
        ends += [End(right, line.height, line.text, line.style) for line in references]
        episodes = "episode" if self.window == 1 else f"{self.window} episodes"
        axis.set(title=title, ylabel=unit, xlabel=f"episodes (means of the last {episodes})")
        label_ends(axis, ends)


def _draw_cost(axis: Any, rollout: Rollout, means: _RunningMeans, m: int) -> None:
    """One cost against its limit, with the certified cost if there is one."""
    ends = [means.draw(axis, rollout.costs[:, m], _MEAN, "mean cost")]
    certified = rollout.certified_costs[means.ends - 1, m]
    if np.isfinite(certified[-1]):
        ends.append(means.line(axis, certified, _CERTIFIED, "certified\nexpected cost"))
    limit = float(rollout.cost_limits[m])
    reference = Reference(limit, f"limit {number_text(limit)}", SOLID)
    several = rollout.costs.shape[1] > 1
    means.finish(axis, f"Cost {m}" if several else "Cost", "cost an episode", ends, [reference])


def _draw_returns(axis: Any, rollout: Rollout, means: _RunningMeans) -> None:
    """Returns, against those of the episodes that played the baseline."""
    ends = [means.draw(axis, rollout.returns, _MEAN, "mean return")]
    on_baseline, references = rollout.on_baseline, []
    if on_baseline.any() and not on_baseline.all():
        average = float(rollout.returns[on_baseline > 0].mean())
        references.append(Reference(average, f"baseline {number_text(average)}", DASHED))
    means.finish(axis, "Return", "reward an episode", ends, references)


def _draw_sources(axis: Any, rollout: Rollout, means: _RunningMeans) -> None:
    """The shares of the sources, in the order in which they first came."""
    found, ends = np.array(rollout.sources), []
    for name, style in styles_of(dict.fromkeys(rollout.sources)).items():
        shares, _ = means.of((found == name).astype(np.float64))
        ends.append(means.line(axis, shares, style, name))
    axis.set_ylim(-0.03, 1.03)
    means.finish(axis, "Policies played", "share of the episodes", ends)
