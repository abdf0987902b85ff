"""Names at the ends of lines, moved apart where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpess.arrays import FloatArray
from optpess.plot.style import INK, Style

__all__ = ["End", "label_ends", "spread"]

# In parts of the width of the panel: where the sample of a line begins and ends, and where its name
# begins.
_SAMPLE = (1.03, 1.09)
_NAME = 1.105
# Lines that end left of this, in the same parts, end within the panel.
_RIGHT_EDGE = 0.98
# The height of a line of text, with the space to the next, in font sizes.
_LINE = 1.25


@dataclass(frozen=True, slots=True)
class End:
    """The last point of a line, and its name."""

    x: float
    y: float
    text: str
    style: Style


def label_ends(axis: Any, ends: Sequence[End]) -> None:
    """Writes the names to the right of the panel, each behind a sample of its line.

    The limits of the axes must not change afterwards.
    """
    from matplotlib.lines import Line2D

    if not ends:
        return
    axis.get_xlim(), axis.get_ylim()  # so that pending limits are set
    to_parts = axis.transScale + axis.transLimits
    parts: FloatArray = to_parts.transform([(end.x, end.y) for end in ends])
    size = _font_size()
    inches = 0.8 * axis.get_window_extent().height / axis.figure.dpi  # the layout takes some of it
    line = _LINE * size / 72.0 / inches
    heights = np.array([line * (1 + end.text.count("\n")) for end in ends])
    places = spread(parts[:, 1], heights)
    for end, (x, y), place in zip(ends, parts, places, strict=True):
        start, stop = _SAMPLE
        across, up = [start, stop], [place, place]
        shared: dict[str, Any] = {"transform": axis.transAxes, "clip_on": False}
        ends_inside = x < _RIGHT_EDGE
        if abs(place - y) > 0.25 * line or ends_inside:
            leader: dict[str, Any] = {"color": end.style.colour, "linewidth": 0.8, "alpha": 0.7}
            if ends_inside:  # a full line from there would look like data
                leader |= {"linestyle": (0, (1, 3)), "marker": "o", "markersize": 4.0, "markevery": [0]}
            axis.add_artist(Line2D([x, start], [y, place], **leader, **shared))
        axis.add_artist(Line2D(across, up, linewidth=2.0, **end.style.line, **shared))
        axis.text(
            _NAME, place, end.text, transform=axis.transAxes, va="center", color=INK, linespacing=1.0
        )


def spread(wanted: FloatArray, heights: FloatArray) -> FloatArray:
    """Places as near as possible to those wanted, by the sum of squares, for texts of these heights that
    do not overlap and keep the order of the wanted places; within [0, 1] if there is room.

    The places minus the heights below them must not decrease: isotonic regression.
    """
    order = np.argsort(wanted, kind="stable")
    tall = heights[order]
    below = np.concatenate(([0.0], np.cumsum(0.5 * (tall[:-1] + tall[1:]))))
    blocks: list[list[float]] = []  # [mean, how many]
    for number in wanted[order].clip(0.0, 1.0) - below:
        blocks.append([float(number), 1.0])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (upper, more), (lower, fewer) = blocks.pop(), blocks.pop()
            blocks.append([(upper * more + lower * fewer) / (more + fewer), more + fewer])
    lowest, highest = 0.0, 1.0 - below[-1]
    if highest < lowest:  # no room: as much above the panel as below it
        lowest = highest = 0.5 * highest
    means = np.repeat([block[0] for block in blocks], [int(block[1]) for block in blocks])
    places = np.empty_like(wanted, dtype=np.float64)
    places[order] = means.clip(lowest, highest) + below
    return places


def _font_size() -> float:
    from matplotlib import rcParams

    return float(rcParams["font.size"])
