"""Draws benches/record/scaling.json into docs/figures: cost by size, throughput by threads."""

from __future__ import annotations

import json
from typing import Any

from harness import RECORD, ROOT
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

FIGURES = ROOT / "docs" / "figures"
OURS, PEER, ROOF = "#0b6e99", "#c4501b", "#64748b"
PANELS = {
    "states": (0, "states S", "A = 4, H = 10, dense"),
    "actions": (1, "actions A", "S = 10, H = 10, dense"),
    "horizon": (2, "horizon H", "S = 10, A = 4, dense"),
    "successors": (3, "successors of a row", "S = 100, A = 5, H = 20"),
}


def tidy(axis: Any) -> None:
    axis.grid(visible=True, which="major", alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def cost(axis: Any, name: str, points: list[dict[str, Any]]) -> None:
    """One sweep, both axes logarithmic."""
    place, label, title = PANELS[name]
    across = [point["sizes"][place] for point in points]
    lines = {"numba_ns": ("numba", PEER, "s--"), "ours_ns": ("optpess", OURS, "o-")}
    for key, (legend, colour, style) in lines.items():
        height = [point[key] / 1e3 for point in points]
        axis.plot(across, height, style, color=colour, label=legend, markersize=4)
    if points[0]["roof_ns"] is not None:
        height = [point["roof_ns"] / 1e3 for point in points]
        axis.plot(across, height, ":", color=ROOF, label="roof of this machine")
    axis.set(xscale="log", yscale="log", xlabel=label, title=title)
    axis.set_ylabel("us an episode")
    axis.set_xticks(across)
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_formatter(NullFormatter())
    tidy(axis)


def main() -> None:
    sweeps = json.loads((RECORD / "scaling.json").read_text())["sweeps"]
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(10, 7.4), layout="constrained")
    for axis, name in zip(figure.subplots(2, 2).ravel(), PANELS, strict=True):
        cost(axis, name, sweeps[name])
    figure.axes[0].legend(frameon=False)
    figure.suptitle("OptPess-PrimalDual, one thread: cost of an episode")
    figure.savefig(FIGURES / "speed-scaling.png", dpi=110)
    figure = Figure(figsize=(5, 3.8), layout="constrained")
    axis = figure.subplots()
    counts = [point["threads"] for point in sweeps["threads"]]
    rates = [point["episodes_per_second"] / 1e6 for point in sweeps["threads"]]
    axis.plot(counts, rates, "o-", color=OURS, label="measured")
    axis.plot(counts, [rates[0] * count for count in counts], ":", color=ROOF, label="in proportion")
    axis.set(xlabel="threads", ylabel="million episodes a second", title="3,2,3, sixteen replicates")
    axis.set_xticks(counts)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    tidy(axis)
    figure.savefig(FIGURES / "speed-threads.png", dpi=110)


if __name__ == "__main__":
    main()
