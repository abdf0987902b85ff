"""Figures of runs: one with everything in it, or one picture for each quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from optpess.checks import check_type, described, truth_value
from optpess.exceptions import InvalidInputError
from optpess.plot.curves import Quantity
from optpess.plot.panels import (
    GRID_COLUMNS,
    MOST_TOGETHER,
    draw_alone,
    draw_grid,
    draw_together,
    share_scales,
)
from optpess.plot.picture import Picture
from optpess.plot.quantities import quantities
from optpess.plot.rows import Leaving, draw_leaving, draw_violations, leaving, violation_text
from optpess.plot.style import PANEL, Style, drawing, styles_of, wrapped
from optpess.run.record import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pictures", "plot_run", "plot_runs"]

# Sizes in inches: of a small panel, of a cell of the table; the width of a panel of bars, and the height
# of a bar.
_SMALL = (2.9, 1.9)
_CELL = (2.5, 1.15)
_WIDE = 11.6
_BAR = 0.45
# The width of the header of a column, in letters.
_HEADER = 20
# The groups of quantities that every run has.
_MAIN = ("cost", "reward", "gain", "regret")
# The titles of groups of several.
_SEVERAL = {"cost": "Costs of what was deployed", "mixture": "Weight and certified cost of the mixture"}


def plot_run(run: Run, *, multiplier: bool = False) -> Figure:
    """Draws one run: cost against the limit, reward, gain, regret and violations; see :func:`plot_runs`.

    Args:
        run: the run.
        multiplier: whether to draw the multiplier too.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import plot_run
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> figure = plot_run(op.simulate(pair.model, learner))
        >>> figure.axes[0].get_title("left")
        'Cost of what was deployed'
    """
    name = str(check_type("run", run, Run).parameters.get("algorithm", "run"))
    return plot_runs({name: run}, multiplier=multiplier)


def plot_runs(runs: Mapping[str, Run], *, multiplier: bool = False) -> Figure:
    """Draws several runs: costs against limits, rewards, gains, regrets and violations; weights and
    certified costs of mixtures, and when learners leave their baselines, where they have them.

    Up to five learners share each panel, with their names at the ends of their lines. More have a row of
    small panels each.

    Args:
        runs: the runs by the names of their learners.
        multiplier: whether to draw the multipliers too, in units of the optimal one.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import plot_runs
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> run = op.simulate(pair.model, learner)
        >>> len(plot_runs({f"copy {i}": run for i in range(6)}).axes)  # six rows of five panels
        30
    """
    shown = _Shown.of(runs, multiplier)
    with drawing("a figure of runs") as new_figure:
        return _stacked(new_figure, shown.strips())


def pictures(runs: Mapping[str, Run], *, multiplier: bool = False) -> list[Picture]:
    """A picture for each quantity of :func:`plot_runs`: ``cost``, ``reward``, ``gain``, ``regret``,
    ``violations`` and, where a learner has them, ``mixture``, ``leaving`` and ``multiplier``.

    Args:
        runs: the runs by the names of their learners.
        multiplier: whether to draw the multipliers too, in units of the optimal one.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import pictures
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> made = pictures({"safe": op.simulate(pair.model, learner)})
        >>> made[4].alt
        'Episodes above the limit. safe: none.'
    """
    shown = _Shown.of(runs, multiplier)
    with drawing("a figure of runs") as new_figure:
        made = [_picture_of(new_figure, shown, name) for name in shown.groups]
        made.insert(list(shown.groups).index("regret") + 1, _picture_of_violations(new_figure, shown))
        if shown.leaving:
            made.append(_picture_of_leaving(new_figure, shown))
    return made


@dataclass(frozen=True, slots=True)
class _Strip:
    """A part of a figure over its whole width; sizes are in inches."""

    width: float
    height: float
    draw: Callable[[Any], None]
    """Draws it on a figure, or on a part of one."""


def _stacked(new_figure: type[Figure], strips: list[_Strip]) -> Figure:
    """A figure of strips one below the other."""
    heights = [strip.height for strip in strips]
    size = (max(strip.width for strip in strips), sum(heights))
    figure = new_figure(figsize=size, layout="constrained")
    if len(strips) == 1:
        strips[0].draw(figure)
        return figure
    parts: Any = figure.subfigures(len(strips), 1, height_ratios=heights)
    for part, strip in zip(parts, strips, strict=True):
        strip.draw(part)
    return figure


@dataclass(frozen=True, eq=False)
class _Shown:
    """What a figure shows."""

    runs: dict[str, Run]
    styles: dict[str, Style]
    groups: dict[str, list[Quantity]]
    leaving: dict[str, Leaving]

    @classmethod
    def of(cls, runs: Mapping[str, Run], multiplier: bool) -> _Shown:
        """Checks the arguments, and reads off the runs what is drawn."""
        with_multiplier = truth_value("multiplier", multiplier)
        if not isinstance(runs, Mapping):
            raise InvalidInputError(
                f"runs is {described(runs)}; it must be a dictionary of runs by their names"
            )
        if not runs:
            raise InvalidInputError("runs is empty; there is nothing to draw")
        found = {
            check_type("a name in runs", name, str): check_type(f"runs[{name!r}]", run, Run)
            for name, run in runs.items()
        }
        groups = quantities(found, multiplier=with_multiplier)
        return cls(found, styles_of(found), groups, leaving(found))

    def strips(self) -> list[_Strip]:
        """All of it."""
        main = [each for name in _MAIN for each in self.groups[name]]
        rest = [each for name in self.groups if name not in _MAIN for each in self.groups[name]]
        if len(self.runs) <= MOST_TOGETHER:
            strips = [self.together(main), self.violations()]
        else:
            many = [each for each in (*main, *rest) if len(each.names) > MOST_TOGETHER]
            strips = [self.table(many)]
            rest = [each.of_those_who_have_it() for each in (*main, *rest) if each not in many]
        if rest:
            strips.append(self.together(rest))
        if self.leaving:
            strips.append(self.when_left())
        return strips

    def group(self, name: str) -> list[_Strip]:
        """One group of quantities."""
        group = self.groups[name]
        if len(self.runs) <= MOST_TOGETHER:
            return [self.together(group)]
        if all(len(quantity.names) <= MOST_TOGETHER for quantity in group):
            return [self.together([quantity.of_those_who_have_it() for quantity in group])]
        return [self.grid(quantity) for quantity in group]

    def together(self, drawn: list[Quantity]) -> _Strip:
        """Panels in two columns, with all learners in each."""
        columns = min(2, len(drawn))
        rows = -(-len(drawn) // columns)

        def draw(figure: Any) -> None:
            axes = figure.subplots(rows, columns, squeeze=False).ravel()
            for axis, quantity in zip(axes, drawn, strict=False):
                draw_together(axis, quantity, self.styles)
            for axis in axes[len(drawn) :]:
                axis.remove()

        return _Strip(PANEL[0] * columns, PANEL[1] * rows, draw)

    def grid(self, quantity: Quantity) -> _Strip:
        """A small panel for each learner."""
        rows = -(-len(quantity.references) // GRID_COLUMNS)
        return _Strip(
            _SMALL[0] * GRID_COLUMNS,
            _SMALL[1] * rows + 1.0,
            lambda figure: draw_grid(figure, quantity, self.styles),
        )

    def table(self, drawn: list[Quantity]) -> _Strip:
        """A row of small panels for each learner, a column for each quantity, violations in the last."""
        ratios = [*([1.0] * len(drawn)), 1.5]

        def draw(figure: Any) -> None:
            size = (len(self.runs), len(ratios))
            axes: Any = figure.subplots(
                *size, sharex="col", sharey="col", width_ratios=ratios, squeeze=False
            )
            for column, quantity in zip(axes.T, drawn, strict=False):
                for axis, name in zip(column, self.runs, strict=True):
                    draw_alone(axis, quantity, name, self.styles)
                share_scales(column, quantity)
                unit = " ".join(quantity.unit.split())
                texts = (*wrap(quantity.title, _HEADER), *wrap(f"({unit})", _HEADER), *quantity.key)
                column[0].set_title("\n".join(texts), fontsize="medium")
                column[-1].set_xlabel("episodes")
            for row, (name, run) in zip(axes, self.runs.items(), strict=True):
                row[0].set_ylabel(wrapped(name), rotation=0, ha="right", va="center", labelpad=12)
                draw_violations(row[-1], {name: run}, names=False)
            axes[0, -1].set_title("Episodes above the limit", fontsize="medium")
            axes[-1, -1].set_xlabel("share of the episodes")

        width, height = _CELL
        return _Strip(width * sum(ratios) + 2.2, height * len(self.runs) + 1.4, draw)

    def violations(self) -> _Strip:
        """A bar for each learner."""
        return _Strip(
            _WIDE,
            _BAR * len(self.runs) + 1.1,
            lambda figure: draw_violations(figure.subplots(), self.runs),
        )

    def when_left(self) -> _Strip:
        """A line for each learner that leaves a baseline or has a C''."""
        last = max(int(run.episodes[-1]) for run in self.runs.values())
        return _Strip(
            _WIDE,
            _BAR * len(self.leaving) + 1.1,
            lambda figure: draw_leaving(figure.subplots(), self.leaving, last),
        )


def _picture_of(new_figure: type[Figure], shown: _Shown, name: str) -> Picture:
    """The picture of a group of quantities."""
    group = shown.groups[name]
    title = group[0].title if len(group) == 1 else _SEVERAL[name]
    figure = _stacked(new_figure, shown.group(name))
    captions = " ".join(dict.fromkeys(quantity.caption for quantity in group))
    return Picture(name, title, captions, " ".join(map(_spoken, group)), figure)


def _spoken(quantity: Quantity) -> str:
    """The last point of each line, in words."""
    ends = {name: quantity.curves[name].end for name in quantity.names}
    points = [f"{name} {end[1]:.4g}" for name, end in ends.items() if end is not None]
    if not points:
        return f"{quantity.title}: {' '.join(quantity.missing.split())}."
    lines = dict.fromkeys(line.text for lines in quantity.references.values() for line in lines)
    return f"{quantity.title} against episodes. At the end: {'; '.join([*points, *lines])}."


def _picture_of_violations(new_figure: type[Figure], shown: _Shown) -> Picture:
    said = "; ".join(f"{name}: {violation_text(run)}" for name, run in shown.runs.items())
    caption = (
        "Episodes whose deployed policy or mixture has an expected cost above a limit. Bars are means "
        "over replicates; the dark line goes from the least replicate to the greatest."
    )
    title = "Episodes above the limit"
    figure = _stacked(new_figure, [shown.violations()])
    return Picture("violations", title, caption, f"{title}. {said}.", figure)


def _picture_of_leaving(new_figure: type[Figure], shown: _Shown) -> Picture:
    said = "; ".join(f"{name}: {each.text}" for name, each in shown.leaving.items())
    caption = (
        "When each learner left its baseline: a dot for each replicate, a diamond where the gate of "
        "OptPess-LP was expected to open, a square at C'', up to which OptPess-PrimalDual tightens the "
        "limit by more than half of the margin. The vertical line is the end of the run."
    )
    figure = _stacked(new_figure, [shown.when_left()])
    return Picture("leaving", "Leaving the baseline", caption, f"{said}.", figure)
