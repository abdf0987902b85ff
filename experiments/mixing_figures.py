"""The figures of docs/mixing-results.md, from the record of the experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
from optpess.plot.labels import End, label_ends
from optpess.plot.style import DASHED, GREY, INK, SOLID, Style, drawing, styles_of, tidy

COLUMNS = 3
STYLES = styles_of(["OptPess-Mix", "S-OPS"])
DOTS = (0, (1.0, 1.2))
LABELS = {
    "regret": "regret of reward, summed (where it is positive)",
    "cost": "expected cost of an episode, in parts of the limit",
    "weight": "probability of not playing π0",
}


def panels(record: dict[str, Any]) -> dict[str, tuple[dict[str, Any], float | None]]:
    """What is drawn: the title of each panel, its row, and the floor if one is known."""
    found: dict[str, tuple[dict[str, Any], float | None]] = {}
    for name, row in record.get("regret", {}).items():
        if "curves" in row and "; stationary known" in name:
            problem, known, _ = name.split("; ")
            found[f"{problem}, {known}"] = (row, None)
    for name, row in record.get("floors", {}).items():
        if row["floor"] is not None and "swapped" not in name:
            found[name] = (row, row["floor"])
    return found


def draw(record: dict[str, Any], of: str) -> Any:
    """One panel for each problem: "regret", "cost" or "weight" over episodes."""
    shown = panels(record)
    with drawing("a figure") as figure_of:
        figure = figure_of(figsize=(15.5, 3.6 * -(-len(shown) // COLUMNS)), layout="constrained")
        axes: Any = figure.subplots(-(-len(shown) // COLUMNS), COLUMNS, squeeze=False).ravel()
        for axis, (title, (row, floor)) in zip(axes, shown.items(), strict=False):
            axis.set(xscale="log", title=title, xlabel="episodes")
            ends = DRAWN_OF[of](axis, row, floor)
            tidy(axis)
            label_ends(axis, ends)
        for axis in axes[len(shown) :]:
            axis.set_visible(False)
        figure.supylabel(LABELS[of])
    return figure


def draw_regret(axis: Any, row: dict[str, Any], floor: float | None) -> list[End]:
    """Regret where it is positive, on logarithmic axes, beside that of pi0 and the slope of a root."""
    ends = draw_bands(axis, row, "regret")
    episodes = np.array(next(iter(row["curves"].values()))["episodes"], dtype=float)
    always = row["gap"] * episodes
    axis.plot(episodes, always, **DASHED.line, linewidth=1.4)
    ends.append(End(episodes[-1], always[-1], "always π0", DASHED))
    root = always[0] * np.sqrt(episodes)
    axis.plot(episodes, root, color=GREY, linewidth=1.0)
    ends.append(End(episodes[-1], root[-1], "slope of √K", Style(GREY, "-")))
    if floor is not None:
        axis.plot(episodes[-1], floor, "_", color=INK, markersize=16, markeredgewidth=2.5, clip_on=False)
        ends.append(End(episodes[-1], floor, "proved floor", SOLID))
    axis.set_yscale("log")
    middles = [found["regret_median"] for found in row["curves"].values()]
    axis.set_ylim(bottom=min(always[0], *(each for line in middles for each in line if each > 0)) / 1.5)
    return ends


def draw_cost(axis: Any, row: dict[str, Any], _: float | None) -> list[End]:
    """True expected costs and the certified one of OptPess-Mix, in parts of the limit; linear axis."""
    ends = draw_bands(axis, row, "cost")
    found = row["curves"]["OptPess-Mix"]
    last, baseline = found["episodes"][-1], found["cost_of_pi0"]
    dotted = Style(STYLES["OptPess-Mix"].colour, DOTS)
    axis.plot(found["episodes"], found["certified_median"], **dotted.line, linewidth=1.6)
    axis.axhline(1.0, color=INK, linewidth=1.4)
    axis.axhline(baseline, **DASHED.line, linewidth=1.4)
    # Where pi0 costs nearly as much as is allowed, the axis begins not far below it.
    low = 0.0 if baseline < 0.5 else 1.0 - 3.0 * (1.0 - baseline)
    axis.set_ylim(low, 1.0 + 0.08 * (1.0 - low))
    return [
        *ends,
        End(last, found["certified_median"][-1], "OptPess-Mix, certified", dotted),
        End(last, 1.0, "limit", SOLID),
        End(last, baseline, "π0", DASHED),
    ]


def draw_weight(axis: Any, row: dict[str, Any], _: float | None) -> list[End]:
    """The probability of not playing pi0."""
    ends = draw_bands(axis, row, "weight")
    axis.set_ylim(-0.03, 1.03)
    return ends


def draw_bands(axis: Any, row: dict[str, Any], of: str) -> list[End]:
    """The median of each learner, with a band from the least to the greatest replicate."""
    ends = []
    for (name, found), style in zip(row["curves"].items(), STYLES.values(), strict=True):
        episodes = found["episodes"]
        least, middle, greatest = (
            np.array(found[f"{of}_{each}"]) for each in ("least", "median", "greatest")
        )
        if of == "regret":
            least, middle, greatest = (
                np.where(each > 0, each, np.nan) for each in (least, middle, greatest)
            )
        axis.fill_between(episodes, least, greatest, color=style.colour, alpha=0.2, linewidth=0)
        axis.plot(episodes, middle, **style.line)
        ends.append(End(episodes[-1], middle[-1], name, style))
    return ends


DRAWN_OF = {"regret": draw_regret, "cost": draw_cost, "weight": draw_weight}
