"""Draws plans: which action the policy takes in each state at each step."""

from __future__ import annotations

from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.arrays import FloatArray, IntArray
from optpess.checks import check_type
from optpess.plan.result import Plan
from optpess.plot.numbers import number_text
from optpess.plot.style import COLOURS, INK, drawing, settle_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_plan"]

# Of more states, those that are visited most are drawn.
_MOST_STATES = 40
# Probabilities below this are rounding errors of the planner.
_ROUNDING = 1e-9
# With more rectangles than this they are drawn as an image within the figure, which stays small.
_MOST_RECTANGLES = 4000
# The opacity of what is reached, and of what is not.
_REACHED, _NOT_REACHED = 0.9, 0.22
# The letters of a title in an inch.
_LETTERS = 9.2


def plot_plan(plan: Plan) -> Figure:
    """Draws the policy of a plan: a row for each state, a column for each step, from 0, a colour for
    each action.

    Where the policy is randomised, a cell is divided in proportion to the probabilities. States that the
    policy does not reach at a step are pale. Of more than forty states, the forty that are visited most
    are drawn.

    Args:
        plan: the plan.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import plot_plan
        >>> figure = plot_plan(op.solve(op.zoo.pair()))
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('step', 'state')
    """
    check_type("plan", plan, Plan)
    horizon, num_states, num_actions = plan.policy.shape
    reached = plan.occupancy.sum(axis=2)
    states = _drawn_states(reached)
    policy = np.where(plan.policy > _ROUNDING, plan.policy, 0.0)[:, states]
    visited = reached[:, states] > _ROUNDING
    with drawing("a figure of a plan") as new_figure:
        size = (min(14.0, max(7.5, 0.5 * horizon + 3.0)), max(3.2, 0.28 * len(states) + 1.8))
        figure = new_figure(figsize=size, layout="constrained")
        axis: Any = figure.subplots()
        colours = _colours(num_actions)
        _draw_cells(axis, policy, visited, colours)
        axis.set(
            xlim=(-0.5, horizon - 0.5), ylim=(len(states) - 0.5, -0.5), xlabel="step", ylabel="state"
        )
        axis.set_title(_title(plan, len(states), num_states, int(_LETTERS * size[0])))
        every = -(-len(states) // 20)
        axis.set_yticks(range(0, len(states), every), [str(state) for state in states[::every]])
        axis.xaxis.get_major_locator().set_params(integer=True, nbins=min(horizon, 12), min_n_ticks=1)
        axis.grid(visible=False)
        settle_ticks(axis)
        _add_key(axis, policy, visited, colours)
        return figure


def _drawn_states(reached: FloatArray) -> IntArray:
    """All states, or those that are visited most, by their numbers."""
    most_visited = np.argsort(-reached.sum(axis=0), kind="stable")[:_MOST_STATES]
    states: IntArray = np.sort(most_visited)
    return states


def _colours(num_actions: int) -> list[Any]:
    """A colour for each action: those of learners; for more actions, from dark to light by number."""
    if num_actions <= len(COLOURS):
        return list(COLOURS[:num_actions])
    from matplotlib import colormaps

    return [tuple(colour) for colour in colormaps["viridis"](np.linspace(0.0, 0.95, num_actions))]


def _draw_cells(axis: Any, policy: FloatArray, visited: Any, colours: list[Any]) -> None:
    """A rectangle for each action of each cell; equal cells of neighbouring steps are one."""
    from matplotlib.collections import PolyCollection

    rectangles: dict[tuple[int, bool], list[list[tuple[float, float]]]] = {}
    for state in range(policy.shape[1]):
        edges = _changes(policy[:, state], visited[:, state])
        for start, stop in pairwise(edges):
            left, top = start - 0.5, state - 0.5
            for action in np.flatnonzero(policy[start, state]):
                right = left + float(policy[start, state, action]) * (stop - start)
                corners = [(left, top), (right, top), (right, top + 1.0), (left, top + 1.0)]
                key = (int(action), bool(visited[start, state]))
                rectangles.setdefault(key, []).append(corners)
                left = right
    many = sum(map(len, rectangles.values())) > _MOST_RECTANGLES
    for (chosen, is_reached), corners_of_all in sorted(rectangles.items()):
        cells = PolyCollection(
            corners_of_all,
            facecolors=[colours[chosen]],
            alpha=_REACHED if is_reached else _NOT_REACHED,
            edgecolors="none" if many else INK,
            linewidths=0.4,
        )
        cells.set_rasterized(many)
        axis.add_collection(cells, autolim=False)


def _changes(chosen: FloatArray, visited: Any) -> list[int]:
    """The steps at which a state is drawn anew, the first and the end among them. Steps with the same
    single action are drawn as one; divided cells stay single.
    """
    steps = range(1, len(chosen))
    new = [
        step
        for step in steps
        if visited[step] != visited[step - 1]
        or chosen[step].max() < 1.0
        or not np.array_equal(chosen[step], chosen[step - 1])
    ]
    return [0, *new, len(chosen)]


def _title(plan: Plan, drawn: int, num_states: int, width: int) -> str:
    limits, costs = plan.certificate.limits, plan.costs
    texts = [
        f"{number_text(cost)} (limit {number_text(limit)})"
        for cost, limit in zip(costs, limits, strict=True)
    ]
    shown = ", ".join(texts[:3]) + (", ..." if len(texts) > 3 else "")
    numbers = f"reward {number_text(plan.value)}, cost {shown} an episode"
    lines = ["Policy by step", *wrap(numbers, width)]
    if drawn < num_states:
        lines.append(f"{drawn} of {num_states:,} states, those visited most")
    return "\n".join(lines)


def _add_key(axis: Any, policy: FloatArray, visited: Any, colours: list[Any]) -> None:
    """The colours of the actions that are taken, and how many cells are randomised or not reached."""
    from matplotlib.patches import Patch

    taken = np.flatnonzero(policy.max(axis=(0, 1)))
    every = -(-len(taken) // 12)
    shown = [*taken[::every]]
    patches = [
        Patch(color=colours[action], alpha=_REACHED, label=f"action {action}") for action in shown
    ]
    if not visited.all():
        patches.append(Patch(facecolor=INK, alpha=_NOT_REACHED, label="pale: not reached"))
    divided = int((((policy > 0.0).sum(axis=2) > 1) & visited).sum())
    if divided:
        cells = "1 cell is divided" if divided == 1 else f"{divided} cells are divided"
        patches.append(Patch(color="none", label=f"{cells}:\nrandomised"))
    # Beside the panel, below the title, which may be longer than the panel is wide.
    axis.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
