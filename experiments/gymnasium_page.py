"""The tables and the picture of docs/gymnasium.md, from the record of the experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
from optpess.plot.labels import End, label_ends
from optpess.plot.style import COLOURS, INK, Style, drawing, tidy
from pages import DOCS, replace_tables

WINDOWS = 10  # of equal length
GROUPS = ("simulate, Bernoulli()", "rollout", "simulate, Deterministic()")
STYLES = {group: Style(colour, "-") for group, colour in zip(GROUPS, COLOURS, strict=False)}


def mean_and_error(runs: list[dict[str, Any]], what: str, place: int) -> str:
    """The mean over runs of a window, with its standard error."""
    values = np.array([run[what][place] for run in runs])
    return f"{values.mean():.4g} ± {values.std(ddof=1) / np.sqrt(len(values)):.1g}"


def tables(record: dict[str, Any]) -> str:
    """The tables of the page."""
    parts = []
    for name, found in record["problems"].items():
        size = found["episodes"] // WINDOWS
        base, best = found["baseline"], found["optimum"]
        parts += [
            f"## {name}",
            "",
            f"H = {found['horizon']}, limit {found['cost limit']:g}, {found['episodes']:,} episodes. "
            f"The baseline returns {base['return']:.4g} and costs {base['cost']:.3g}; the best policy "
            f"within the limit returns {best['return']:.4g} and costs {best['cost']:.3g}.",
            "",
            f"| | runs | expected return, first {size:,} | last {size:,} | cost, first | last "
            "| on the baseline, first | last | largest expected cost | processor time an episode |",
            "| --- " * 10 + "|",
        ]
        for group, runs in found["groups"].items():
            cells = [
                group.replace("simulate, ", "`simulate`, ").replace("rollout", "`rollout`"),
                len(runs),
            ]
            for what in ("expected return", "cost", "on baseline"):
                cells += [mean_and_error(runs, what, place) for place in (0, -1)]
            cells.append(f"{max(run['largest expected cost'] for run in runs):.3g}")
            cells.append(f"{np.median([run['us an episode'] for run in runs]):.0f} us")
            parts.append("| " + " | ".join(map(str, cells)) + " |")
        parts.append("")
        for group, values in found["p"].items():
            shown = ", ".join(f"{what} {p:.2g}" for what, p in values.items())
            parts.append(f"`rollout` against {group.replace('simulate', '`simulate`')}: p = {shown}.")
            parts.append("")
    return "\n".join(parts).rstrip()


def write_page(record: dict[str, Any]) -> None:
    """Replaces the tables of the page."""
    replace_tables(DOCS / "gymnasium.md", tables(record))


def draw(record: dict[str, Any]) -> Any:
    """Expected cost and return against episodes: a line for each rollout, a band for the simulations."""
    with drawing("a figure") as figure_of:
        figure = figure_of(figsize=(13.5, 7.4), layout="constrained")
        columns = figure.subplots(2, len(record["problems"]), sharex="col").T
        for (cost, value), (name, found) in zip(columns, record["problems"].items(), strict=True):
            cost.set_title(name)
            cost_lines = {"limit": found["cost limit"], "baseline": found["baseline"]["cost"]}
            value_lines = {key: found[key]["return"] for key in ("optimum", "baseline")}
            draw_runs(cost, found, "expected cost", cost_lines)
            draw_runs(value, found, "expected return", value_lines)
            value.set_xlabel("episodes, in thousands")
        columns[0, 0].set_ylabel("expected cost of an episode")
        columns[0, 1].set_ylabel("expected return of an episode")
    return figure


def draw_runs(axis: Any, found: dict[str, Any], what: str, lines: dict[str, float]) -> None:
    """The rollouts and simulations of one problem, and what to compare them with."""
    middles = (np.arange(WINDOWS) + 0.5) * found["episodes"] / WINDOWS / 1000
    ends = []
    for (name, height), dashes in zip(lines.items(), ("-", (0, (4.0, 2.0))), strict=True):
        axis.axhline(height, color=INK, linestyle=dashes, linewidth=1.4)
        text = f"{name} {height:.4g}".replace("-", "\N{MINUS SIGN}")
        ends.append(End(middles[-1], height, text, Style(INK, dashes)))
    for group, runs in found["groups"].items():
        of_runs = np.array([run[what] for run in runs])
        style = STYLES[group]
        if group == "rollout":
            axis.plot(middles, of_runs.T, color=style.colour, linewidth=1.0, alpha=0.8)
        else:
            band = (of_runs.min(axis=0), of_runs.max(axis=0))
            axis.fill_between(middles, *band, color=style.colour, alpha=0.3, linewidth=0)
        text = group.replace("simulate, ", "simulated:\n").removesuffix("()")
        middle = np.quantile(of_runs[:, -1], 0.5, method="lower")  # at a line, not between two
        ends.append(End(middles[-1], float(middle), text, style))
    if what == "expected cost":
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    axis.set_xlim(middles[0], middles[-1])
    tidy(axis)
    label_ends(axis, ends)
