"""Draws frontiers: the best reward for every limit, and what learners deployed on the way to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.arrays import FloatArray
from optpess.checks import check_type, real_number
from optpess.exceptions import InvalidInputError
from optpess.plan.result import Frontier
from optpess.plot.labels import End, label_ends
from optpess.plot.numbers import number_text
from optpess.plot.style import INK, SOLID, Style, drawing, styles_of, tidy, wrapped
from optpess.run.record import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_frontier"]

# More vertices than this are not marked.
_MOST_MARKED = 60
_DEPLOYED = ",\nand what was deployed at episodes 1, 10, 100, ... and the last (dots)"
# In parts of the axes: dots that are nearer to each other than this have no room for both numbers.
_NEAR = (0.13, 0.05)


def plot_frontier(
    frontier: Frontier, *, path: Run | Mapping[str, Run] | None = None, limit: float | None = None
) -> Figure:
    """Draws the best reward for every limit, the limit of the model and the optimum there.

    A path shows the expected cost and reward of what a learner deployed, as the episodes went on:
    medians of the replicates at the record points, with a dot at the first, the tenth, the hundredth
    episode and so on. Above the frontier there is no policy; right of the limit a policy breaks it.

    Args:
        frontier: the frontier.
        path: a run on the same model, or several by the names of their learners.
        limit: the limit to mark, if not that of the model.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import plot_frontier
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> figure = plot_frontier(op.frontier(pair.model), path=op.simulate(pair.model, learner))
        >>> figure.axes[0].get_xlabel()
        'expected cost an episode'
    """
    check_type("frontier", frontier, Frontier)
    runs = _runs_of(path)
    marked = frontier.limit if limit is None else real_number("limit", limit)
    with drawing("a figure of a frontier") as new_figure:
        figure = new_figure(figsize=(8.6, 5.2), layout="constrained")
        axis: Any = figure.subplots()
        marker = "o" if len(frontier) <= _MOST_MARKED else ""
        axis.plot(frontier.costs, frontier.values, marker=marker, markersize=4, **SOLID.line)
        ends = [End(float(frontier.costs[-1]), float(frontier.values[-1]), "best reward", SOLID)]
        if marked is not None:
            axis.axvline(marked, linewidth=1.2, **SOLID.line)
        styles = styles_of(runs)
        paths = {name: _draw_path(axis, run, styles[name]) for name, run in runs.items()}
        last = float(frontier.costs[-1])
        most = max([marked or last, *(float(dots[:, 1].max()) for dots in paths.values())])
        if most > last:  # there a higher limit buys nothing
            axis.plot([last, most], [frontier.values[-1]] * 2, **SOLID.line)
        axis.margins(0.06)
        if marked is not None and marked >= frontier.costs[0]:
            best = frontier.value_at(marked)
            axis.plot([marked], [best], "*", color=INK, markersize=15)
            text = f"optimum {number_text(best)}\nat the limit {number_text(marked)}"
            ends.append(End(marked, best, text, SOLID))
        axis.set(
            title="The best reward for every limit" + _DEPLOYED * bool(runs),
            xlabel="expected cost an episode",
            ylabel="expected reward an episode",
        )
        tidy(axis)
        for name, dots in paths.items():
            ends.append(End(float(dots[-1, 1]), float(dots[-1, 2]), wrapped(name), styles[name]))
            if len(paths) == 1:
                _number_dots(axis, dots)
        label_ends(axis, ends)
        return figure


def _runs_of(path: Run | Mapping[str, Run] | None) -> dict[str, Run]:
    """The runs by name, each with the costs and rewards of what was deployed, of one constraint."""
    if path is None:
        return {}
    if isinstance(path, Mapping):
        named = {check_type("a name in path", name, str): run for name, run in path.items()}
    else:
        named = {str(check_type("path", path, Run).parameters.get("algorithm", "run")): path}
    for name, run in named.items():
        place = f"path[{name!r}]" if isinstance(path, Mapping) else "path"
        check_type(place, run, Run)
        if run.deployed_cost is None or run.deployed_value is None:
            raise InvalidInputError(
                f"{place} is a record of an earlier version, without the costs and rewards of what was "
                "deployed; run it again, see optpess.reproduce"
            )
        if run.deployed_cost.shape[-1] != 1:
            raise InvalidInputError(
                f"{place} has {run.deployed_cost.shape[-1]} constraints; a frontier is that of one"
            )
    return named


def _draw_path(axis: Any, run: Run, style: Style) -> FloatArray:
    """Draws what a run deployed, and gives the dots: episode, cost and reward."""
    assert run.deployed_cost is not None
    assert run.deployed_value is not None
    costs: FloatArray = np.median(run.deployed_cost[..., 0], axis=0)
    values: FloatArray = np.median(run.deployed_value, axis=0)
    axis.plot(costs, values, alpha=0.75, linewidth=1.4, **style.line)
    powers = 10.0 ** np.arange(0, 1 + np.log10(run.episodes[-1]))
    places = np.searchsorted(run.episodes, powers)
    kept = np.unique([*places[places < len(run.episodes)], len(run.episodes) - 1])
    axis.plot(costs[kept], values[kept], "o", color=style.colour, markersize=7)
    return np.stack([run.episodes[kept], costs[kept], values[kept]], axis=1)


def _number_dots(axis: Any, dots: FloatArray) -> None:
    """Writes the episodes beside the dots, from the last to the first; not upon each other."""
    to_parts = axis.transScale + axis.transLimits
    said: list[FloatArray] = []
    for episode, cost, value in dots[::-1]:
        place = to_parts.transform((cost, value))
        if all((np.abs(place - other) > _NEAR).any() for other in said):
            said.append(place)
            text = f"{episode:,.0f}"
            axis.annotate(text, (cost, value), (8, -11), textcoords="offset points", color=INK)
