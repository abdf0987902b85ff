"""How figures look: fonts and lines, a colour and dashes for each learner, texts of ticks and names."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optpess.checks import optional_module
from optpess.plot.numbers import LARGE, power_text, tick_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "DASHED",
    "FONT",
    "GREY",
    "INK",
    "PANEL",
    "SOLID",
    "Style",
    "drawing",
    "settle_ticks",
    "styles_of",
    "tidy",
    "wrapped",
]

INK = "#1e293b"
"""The colour of texts, axes, limits, optima and baselines. Colours below are those of learners."""
GREY = "#9aa3b0"
"""The colour of lines that are there to compare with."""
PANEL = (6.4, 3.3)
"""Width and height, in inches, of a panel with names at its right."""
# Colours that people with the usual colour deficiencies tell apart (Okabe and Ito, Color Universal
# Design), without the yellow, which is hard to see on white, and the black, which is the ink.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Six colours and five dashes have no common factor: 30 pairs, and neighbours differ in both.
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5.0, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6.0, 1.5, 1.2, 1.5)),
    (0, (6.0, 1.5, 1.2, 1.5, 1.2, 1.5)),
)
FONT = "DejaVu Sans"
"""The font of all texts; matplotlib brings it along."""
_FONT_SIZE = 12.0
_GRID = 0.12
# Our own settings, on top of matplotlib's defaults: a user's settings do not change what is drawn.
_SETTINGS: dict[str, Any] = {
    "font.family": [FONT],
    "font.size": _FONT_SIZE,
    "axes.titlesize": _FONT_SIZE + 1,
    "axes.titlelocation": "left",
    "axes.labelsize": _FONT_SIZE,
    "figure.labelsize": _FONT_SIZE,
    "figure.titlesize": _FONT_SIZE + 1,
    "xtick.labelsize": _FONT_SIZE - 1,
    "ytick.labelsize": _FONT_SIZE - 1,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": _GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "butt",
    "text.parse_math": False,  # a dollar in the name of a learner is a dollar
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
}
_LONGEST_LINE = 22
_LONGEST_WORD = 30


@dataclass(frozen=True, slots=True)
class Style:
    """The colour and the dashes of one learner."""

    colour: str
    dashes: Any

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of ``plot``."""
        return {"color": self.colour, "linestyle": self.dashes}


SOLID = Style(INK, "-")
"""The line of limits and optima."""
DASHED = Style(INK, (0, (4.0, 2.0)))
"""The line of baselines."""


def styles_of(names: Iterable[str]) -> dict[str, Style]:
    """A style for each name, by its place; no two of thirty in a row are alike."""
    return {
        name: Style(COLOURS[number % len(COLOURS)], _DASHES[number % len(_DASHES)])
        for number, name in enumerate(names)
    }


@contextmanager
def drawing(what: str) -> Iterator[type[Figure]]:
    """The class of figures, with our settings as long as the context lasts; no window is opened.
    ``what`` needs matplotlib, for the refusal if it is missing.
    """
    library = optional_module("matplotlib", "plot", what)
    figure = optional_module("matplotlib.figure", "plot", what)
    with library.rc_context():
        library.rcdefaults()
        library.rcParams.update(_SETTINGS)
        yield figure.Figure


def settle_ticks(axis: Any) -> None:
    """Gives the ticks our settings for good: matplotlib makes some of them later, when it draws."""
    axis.tick_params(labelsize=_FONT_SIZE - 1, color=INK, labelcolor=INK)
    axis.tick_params(grid_color=INK, grid_alpha=_GRID, grid_linewidth=0.8)


def tidy(axis: Any, *, few: bool = False, whole: bool = False) -> None:
    """Plain numbers at the ticks of both axes, powers of ten where one is logarithmic; about five of
    them, or three if they are to be few; on the horizontal axis only whole ones, if that is asked for.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    settle_ticks(axis)
    for name in ("x", "y"):
        side = getattr(axis, f"{name}axis")
        if getattr(axis, f"get_{name}scale")() == "log":
            low, high = side.get_view_interval()
            # Over less than a decade there may be no power of ten.
            steps = (
                (1.0,) if high > 30.0 * low else (1.0, 2.0, 5.0) if high > 4.0 * low else range(1, 10)
            )
            side.set_major_locator(LogLocator(subs=steps, numticks=4 if few else 6))
            side.set_minor_locator(NullLocator())
            side.set_major_formatter(FuncFormatter(lambda number, _: power_text(number)))
        else:
            # Large numbers are long, and stand side by side on a horizontal axis.
            long = max(map(abs, side.get_view_interval())) >= LARGE
            bins = 3 if few or (long and name == "x") else 4 if name == "x" else 5
            integer = whole and name == "x"
            side.set_major_locator(MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10], integer=integer))
            side.set_major_formatter(FuncFormatter(_tick_text_of(side)))


def _tick_text_of(side: Any) -> Callable[[float, object], str]:
    """The text of a tick of an axis, among those that can be seen."""

    def text(number: float, _place: object) -> str:
        low, high = sorted(side.get_view_interval())
        return tick_text(number, [tick for tick in side.get_majorticklocs() if low <= tick <= high])

    return text


def wrapped(name: str, width: int = _LONGEST_LINE) -> str:
    """A name in one line or two. Of a longer one the beginning and the end are kept."""
    whole = " ".join(name.split())
    lines = textwrap.wrap(whole, width, break_long_words=False) or [""]
    if len(lines) <= 2 and max(map(len, lines)) <= _LONGEST_WORD:
        return "\n".join(lines)
    return f"{whole[: width - 1]}…\n…{whole[-(width - 1) :]}"
