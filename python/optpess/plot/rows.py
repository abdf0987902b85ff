"""Draws what is one number a learner: violations, and when a learner leaves its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpess.arrays import IntArray
from optpess.display import span
from optpess.exceptions import OptPessError
from optpess.plot.numbers import number_text, power_text
from optpess.plot.style import COLOURS, INK, settle_ticks, tidy, wrapped
from optpess.run.forecast import Gates, expected_gates
from optpess.run.record import Run
from optpess.run.violations import above_text, share_above

__all__ = ["draw_leaving", "draw_violations", "leaving", "violation_text"]

_BAR = COLOURS[1]


def violation_text(run: Run) -> str:
    """How many episodes were expected to cost more than the limit, and how much more, in words."""
    void = "" if run.void_because is None else "; guarantee void"
    if not share_above(run):
        return f"none{void}"
    return f"{above_text(run)}, by at most {number_text(float(run.worst_violation.max()))}{void}"


def draw_violations(axis: Any, runs: Mapping[str, Run], *, names: bool = True) -> None:
    """(e) A bar for the share of the episodes above the limit, and the same in words."""
    for place, run in enumerate(runs.values()):
        shares = run.violating_episodes / float(run.episodes[-1])
        share = float(shares.mean())
        axis.barh(place, share, height=0.4, color=_BAR)
        if len(shares) > 1 and shares.max() > shares.min():
            axis.plot([shares.min(), shares.max()], [place, place], color=INK, linewidth=1.4)
        if names:
            axis.text(1.02, place, violation_text(run), va="center")
        else:
            axis.text(0.0, place - 0.27, violation_text(run), va="bottom")
    axis.set(xlim=(0.0, 1.0), ylim=(len(runs) - 0.5, -0.5 if names else -0.9))
    axis.spines["left"].set_position(("data", 0.0))  # which makes the ticks anew
    labels = [wrapped(name) for name in runs] if names else []
    axis.set_yticks(range(len(labels)), labels)
    settle_ticks(axis)
    for text, side in zip(
        axis.set_xticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"]),
        ("left", "center", "right"),
        strict=True,
    ):
        text.label1.set_horizontalalignment(side)  # so that it stays within the panel
    if names:
        axis.set(title="Episodes above the limit", xlabel="share of the episodes")
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")


@dataclass(frozen=True, slots=True)
class Leaving:
    """When one learner left its baseline, and when that was expected."""

    found: IntArray
    """The episodes (from 1) of the replicates that left it."""
    stayed: int
    """How many replicates stayed on it."""
    expected: Gates | None
    """What the true model and the learner make expect; None if they are not known."""

    @property
    def gate(self) -> int | None:
        """The episode (from 1) at which the gate of OptPess-LP was expected to open."""
        gate = None if self.expected is None else self.expected.would_leave_baseline
        return None if gate is None else gate + 1

    @property
    def horizon(self) -> int | None:
        """C'' of OptPess-PrimalDual."""
        return None if self.expected is None else self.expected.tightening_horizon

    @property
    def text(self) -> str:
        """All of it in words."""
        texts = []
        if len(self.found):
            texts.append(f"left the baseline at {span(self.found)}")
        if self.stayed:
            texts.append(f"{self.stayed} stayed" if len(self.found) else "stayed on the baseline")
        if self.gate is not None:
            texts.append(f"gate expected at {_round(self.gate)}")
        if self.horizon is not None:
            texts.append(f"C'' = {_round(self.horizon)}")
        return ", ".join(texts)


def leaving(runs: Mapping[str, Run]) -> dict[str, Leaving]:
    """The learners that start on a baseline and may leave it, or whose tightening has a horizon C''."""
    made = {}
    for name, run in runs.items():
        has_baseline = run.baseline_value is not None
        left = run.first_planned[run.first_planned >= (0 if has_baseline else 1)] + 1
        each = Leaving(left, int((run.first_planned < 0).sum()), _expected(run))
        if each.gate is not None or each.horizon is not None or (left > 1).any():
            made[name] = each
    return made


def _expected(run: Run) -> Gates | None:
    if run._origin is None:
        return None
    try:
        return expected_gates(*run._origin.restore())
    except OptPessError:  # a file whose learner this version cannot restore
        return None


def draw_leaving(axis: Any, found: Mapping[str, Leaving], last: int) -> None:
    """The gate and C'' of each learner on a line of episodes; ``last`` is the end of the longest run."""
    axis.set_xscale("log")
    for place, each in enumerate(found.values()):
        axis.plot(each.found, np.full(len(each.found), place), "o", color=COLOURS[0], markersize=8)
        for episode, marker, colour in ((each.gate, "D", COLOURS[0]), (each.horizon, "s", COLOURS[1])):
            if episode is not None:
                axis.plot(episode, place, marker, color=colour, markersize=8, markerfacecolor="none")
        axis.text(1.02, place, each.text, va="center", transform=axis.get_yaxis_transform())
    marks = [mark for each in found.values() for mark in (each.gate, each.horizon) if mark is not None]
    greatest = max(float(last), *map(float, marks), 1.0)
    axis.axvline(last, color=INK, linewidth=1.2)
    axis.set(xlim=(0.8, 2.0 * greatest), ylim=(len(found) - 0.5, -0.5), xlabel="episodes")
    tidy(axis)
    axis.set_yticks(range(len(found)), [wrapped(name) for name in found])
    axis.set_title("Leaving the baseline")
    axis.text(last, 1.0, " end", transform=axis.get_xaxis_transform(), va="top")


def _round(episode: int) -> str:
    return f"{episode:,}" if episode < 10_000_000 else power_text(episode)
