"""Draws benches/record/scaling.json into docs/figures: the cost of an episode by size."""

from __future__ import annotations

import json
from typing import Any

from harness import RECORD, ROOT
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
from optpess.plot import Picture
from optpess.plot.labels import End, label_ends
from optpess.plot.style import INK, Style, drawing, styles_of, tidy

STYLES = styles_of(["optpess", "numba"]) | {"roof of this machine": Style(INK, (0, (1.0, 1.5)))}
KEYS = {"optpess": "ours_ns", "numba": "numba_ns", "roof of this machine": "roof_ns"}
PANELS = {
    "states": (0, "states S", "A = 4, H = 10, dense"),
    "actions": (1, "actions A", "S = 10, H = 10, dense"),
    "horizon": (2, "horizon H", "S = 10, A = 4, dense"),
    "successors": (3, "successors of a row", "S = 100, A = 5, H = 20"),
}


def cost(axis: Any, name: str, points: list[dict[str, Any]]) -> None:
    """One sweep, both axes logarithmic."""
    place, label, title = PANELS[name]
    across = [point["sizes"][place] for point in points]
    axis.set(xscale="log", yscale="log", xlabel=label, title=title, ylabel="µs an episode")
    ends = []
    for text, style in STYLES.items():
        if points[0][KEYS[text]] is None:
            continue
        height = [point[KEYS[text]] / 1e3 for point in points]
        axis.plot(across, height, marker="o", markersize=4, **style.line)
        ends.append(End(across[-1], height[-1], text, style))
    tidy(axis)
    # The texts of ticks need some room.
    apart = [size for before, size in zip([0, *across], across, strict=False) if size > 1.3 * before]
    axis.xaxis.set_major_locator(FixedLocator(apart))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())
    label_ends(axis, ends)


def main() -> None:
    sweeps = json.loads((RECORD / "scaling.json").read_text())["sweeps"]
    with drawing("a figure") as figure_of:
        figure = figure_of(figsize=(13.0, 7.6), layout="constrained")
        for axis, name in zip(figure.subplots(2, 2).ravel(), PANELS, strict=True):
            cost(axis, name, sweeps[name])
    title = "OptPess-PrimalDual, one thread: cost of an episode"
    picture = Picture("speed-scaling", title, "", "", figure)
    picture.save(ROOT / "docs" / "figures" / "speed-scaling.svg")


if __name__ == "__main__":
    main()
