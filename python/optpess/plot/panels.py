"""Draws one quantity of runs: all learners in one panel, or each in a small panel of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

import numpy as np

from optpess.plot.curves import Curve, Quantity, Reference
from optpess.plot.labels import End, label_ends
from optpess.plot.style import GREY, INK, Style, tidy, wrapped

__all__ = ["GRID_COLUMNS", "MOST_TOGETHER", "draw_alone", "draw_grid", "draw_together", "share_scales"]

MOST_TOGETHER = 5
"""With more learners than this, each has a small panel of its own."""
GRID_COLUMNS = 4
"""How many small panels stand in a row."""
# The number of points of a line that is there to compare with.
_COARSE = 30
# The width of a remark in a panel, in letters.
_REMARK = 34
_ROOT = Style(GREY, (0, (1.0, 1.5)))


def draw_together(axis: Any, quantity: Quantity, styles: Mapping[str, Style]) -> None:
    """All learners in one panel, with their names at the ends of their lines."""
    ends, remarks = [], []
    for name in quantity.references:
        curve = quantity.curves.get(name)
        if curve is None or curve.end is None:
            remarks.append(f"{_short(name)}: {' '.join(quantity.missing.split())}")
            continue
        _draw_curve(axis, curve, styles[name])
        if quantity.log and curve.end[0] < curve.episodes[-1]:
            remarks.append(f"{_short(name)}: not above 0 after episode {curve.end[0]:,.0f}")
        else:
            ends.append(End(*curve.end, quantity.label(name), styles[name]))
    drawn = quantity.names
    lines = dict.fromkeys(line for name in drawn for line in quantity.references[name])
    _draw_references(axis, lines)
    _scale(axis, quantity, drawn)
    if quantity.root:
        ends += _draw_root(axis, quantity)
    label_ends(axis, [*ends, *_reference_ends(axis, lines)])
    axis.set(title=quantity.title, xlabel="episodes", ylabel=quantity.unit)
    if not drawn:
        axis.set(xticks=[], yticks=[])
        _write(axis, quantity.missing)
    elif remarks:
        _remark(axis, remarks, above=quantity.log or quantity.linear)


def draw_alone(axis: Any, quantity: Quantity, name: str, styles: Mapping[str, Style]) -> None:
    """One learner in a small panel, with lines to compare with. The axes are left to the caller."""
    if quantity.among_others:
        for other in (curve for other, curve in quantity.curves.items() if other != name):
            kept = _thinned(other)
            axis.plot(other.episodes[kept], other.middle[kept], color=GREY, linewidth=0.7, alpha=0.55)
    _draw_references(axis, quantity.references[name])
    curve = quantity.curves.get(name)
    if curve is None or curve.end is None:
        _write(axis, quantity.missing)
    else:
        _draw_curve(axis, curve, styles[name])


def draw_grid(figure: Any, quantity: Quantity, styles: Mapping[str, Style]) -> None:
    """Small panels with the same axes, one for each learner, in rows."""
    names = list(quantity.references)
    columns = min(GRID_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    axes: Any = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, name in zip(axes, names, strict=False):
        draw_alone(axis, quantity, name, styles)
        axis.set_title(quantity.label(name), fontsize="medium")
    for axis in axes[len(names) :]:
        axis.remove()
    share_scales(axes[: len(names)], quantity)
    for place, axis in enumerate(axes[: len(names)]):
        axis.tick_params(labelbottom=place + columns >= len(names))
    figure.supxlabel("episodes")
    figure.supylabel(" ".join(quantity.unit.split()))
    figure.suptitle(f"{quantity.title}\n{', '.join(quantity.key)}", x=0.01, ha="left")


def share_scales(axes: Iterable[Any], quantity: Quantity) -> None:
    """The scales of small panels that share their axes, and the guide in each."""
    panels = list(axes)
    _scale(panels[0], quantity, quantity.references)
    for axis in panels:
        tidy(axis, few=True, whole=True)
        if quantity.root:
            _draw_root(axis, quantity)


def _scale(axis: Any, quantity: Quantity, names: Iterable[str]) -> None:
    """Scales, limits and ticks for the curves of these learners."""
    curves = [quantity.curves[name] for name in names if name in quantity.curves]
    drawn = [curve for curve in curves if curve.end is not None]
    firsts = [int(curve.episodes[0]) for curve in drawn]
    lasts = [int(curve.episodes[-1]) for curve in drawn]
    several = bool(drawn) and max(lasts) > min(firsts)
    decades = several and (max(lasts) >= 100 * min(firsts) or quantity.root)  # a root is straight there
    if decades and not quantity.linear:
        axis.set_xscale("log")
    if several:
        axis.set_xlim(min(firsts), max(lasts))
    if quantity.log and drawn:
        axis.set_yscale("log")
        # A sum grows in proportion to the episodes at most. Where it crosses zero its logarithm has no
        # lower end: lines and bands are cut off a decade below such a growth.
        high = max(float(np.nanmax(curve.high)) for curve in drawn)
        low = min(float(np.nanmin(curve.middle)) for curve in drawn)
        lines = [line.height for each in quantity.references.values() for line in each]
        bottom = max(low, 0.1 * high * min(firsts) / max(lasts))
        axis.set_ylim(min(bottom, *lines, high) / 1.5, max(high, *lines, bottom) * 1.5)
    if quantity.probability:
        axis.set_ylim(-0.03, 1.03)
    tidy(axis, whole=True)
    if drawn and not several:
        axis.set_xticks([max(lasts)])


def _write(axis: Any, text: str) -> None:
    """A sentence in the middle of an empty panel."""
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=INK)


def _remark(axis: Any, sentences: Iterable[str], *, above: bool) -> None:
    """Sentences in lines that fit: at the upper left, where sums leave room, or at the lower left."""
    lines = [line for sentence in sentences for line in wrap(sentence, _REMARK)]
    place, side = (0.98, "top") if above else (0.03, "bottom")
    text = "\n".join(lines)
    axis.text(0.02, place, text, transform=axis.transAxes, va=side, color=INK, fontsize="small")


def _draw_curve(axis: Any, curve: Curve, style: Style) -> None:
    """A line with its bands; a single record point as a dot."""
    single = len(curve.episodes) == 1
    if single:
        error = [[curve.middle[0] - curve.low[0]], [curve.high[0] - curve.middle[0]]]
        axis.errorbar(curve.episodes, curve.middle, error, color=style.colour, marker="o", capsize=3)
        return
    for low, high, opacity in (
        (curve.least, curve.greatest, 0.13),
        (curve.low, curve.high, 0.28),
    ):
        if low is not None and high is not None and np.nanmax(high - low, initial=0.0) > 0.0:
            # On a logarithmic axis a band without a lower end goes down to the bottom.
            floor = np.where(np.isnan(low) & np.isfinite(high), 1e-300, low)
            axis.fill_between(
                curve.episodes, floor, high, color=style.colour, alpha=opacity, linewidth=0
            )
    axis.plot(curve.episodes, curve.middle, **style.line)


def _draw_references(axis: Any, lines: Iterable[Reference]) -> None:
    for line in lines:
        axis.axhline(line.height, linewidth=1.2, zorder=1.5, **line.style.line)


def _reference_ends(axis: Any, lines: Iterable[Reference]) -> list[End]:
    """The ends of the lines to compare with, one for each name and height."""
    right = axis.get_xlim()[1]
    return [End(right, line.height, line.text, line.style) for line in lines]


def _root_line(axis: Any, quantity: Quantity) -> tuple[list[float], list[float]] | None:
    """A line of slope one half, below the curves that reach the end: over the last two decades, over one
    if there is no room, else below the lowest end.
    """
    left, right = axis.get_xlim()
    curves = [curve for curve in quantity.curves.values() if curve.end is not None]
    curves = [curve for curve in curves if curve.end is not None and curve.end[0] >= right]
    if not curves or axis.get_yscale() != "log":
        return None
    low = 1.3 * axis.get_ylim()[0]
    for start in (max(left, right / 100.0), max(left, right / 10.0)):
        shares = [np.where(curve.episodes >= start, curve.episodes / right, np.nan) for curve in curves]
        lifted = [curve.middle / np.sqrt(share) for curve, share in zip(curves, shares, strict=True)]
        height = 0.6 * min(float(np.nanmin(each)) for each in lifted)
        fall = (start / right) ** 0.5
        if height * fall >= low:
            return [start, right], [height * fall, height]
    height = max(low / fall, 0.6 * min(float(curve.middle[-1]) for curve in curves))
    return [start, right], [height * fall, height]


def _draw_root(axis: Any, quantity: Quantity) -> list[End]:
    """Draws the guide and gives its end."""
    if (line := _root_line(axis, quantity)) is None:
        return []
    across, up = line
    axis.plot(across, up, linewidth=1.6, **_ROOT.line)
    return [End(across[1], up[1], "slope of √K", _ROOT)]


def _thinned(curve: Curve) -> Any:
    """The places of a few record points, the last among them."""
    count = len(curve.episodes)
    return np.unique(np.linspace(0, count - 1, min(count, _COARSE)).round().astype(np.int64))


def _short(name: str) -> str:
    return wrapped(name).replace("\n", " ")
