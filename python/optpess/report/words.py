"""Words for sizes, limits, units and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optpess.display import counted
from optpess.model.units import Units

__all__ = [
    "capitalised",
    "joined",
    "limits_of",
    "limits_text",
    "number",
    "sizes_text",
    "units_text",
]


def limits_of(parameters: Mapping[str, Any]) -> list[float]:
    """The limits that a learner keeps."""
    several: list[float] | None = parameters.get("cost_limits")
    return [float(parameters["cost_limit"])] if several is None else list(several)


def limits_text(limits: Sequence[float]) -> str:
    """The limits as a phrase: the limit 0.6; the limits 0.6 and 2."""
    return f"the limit{'' if len(limits) == 1 else 's'} {joined([number(limit) for limit in limits])}"


def number(value: float) -> str:
    """A number that was stated, in six digits or as many as it has before its point: 0.6, 8,000,000."""
    if 1000.0 <= abs(value) < 1e15:
        text = f"{value:,.{2 if abs(value) < 1e5 else 0}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:g}"


def units_text(units: Units) -> str:
    """In which units rewards, costs and excesses over a limit are."""
    costs = sorted(set(units.cost_ranges))
    if units.is_unit:
        return "Rewards and costs of one step lie between 0 and 1."
    low, high = units.reward_range
    ranges = joined([f"{number(least)} to {number(most)}" for least, most in costs])
    text = (
        "All numbers are in the units of the model: a reward of one step lies in "
        f"{number(low)} to {number(high)}, a cost in {ranges}."
    )
    if len(set(units.cost_widths.tolist())) > 1:
        text += (
            " Costs with ranges of different widths: excesses over limits are in parts of the ranges."
        )
    return text


def capitalised(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def joined(words: Sequence[str]) -> str:
    """Words as a list in a sentence: a, b and c."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def sizes_text(shape: Sequence[int]) -> str:
    """The sizes of a problem [H, S, A]."""
    horizon, states, actions = shape
    sizes = f"{counted(states, 'state')}, {counted(actions, 'action')}"
    return f"{sizes}, {counted(horizon, 'step')} an episode"
