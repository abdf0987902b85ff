"""Colours, dashes and titles of the figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product

__all__ = ["LEGEND_INSIDE", "PANELS", "line_styles"]

_COLOURS = ("#0b6e99", "#c4501b", "#65a30d", "#7c3aed", "#d4a017", "#be185d", "#1e293b", "#14b8a6")
_DASHES = ("-", "--", ":")  # when all colours are used, they repeat with the next dashes

LEGEND_INSIDE = 4
"""With more runs than this, the legend stands beside the panels."""
PANELS = (
    ("reward_regret", "regret of reward"),
    ("weak_violation", "weak violation"),
    ("strong_violation", "strong violation"),
    ("multiplier", "multiplier"),
)
"""The curve of each panel and its title."""


def line_styles() -> Iterator[tuple[str, str]]:
    """(dashes, colour) of one run after the other, without end."""
    return cycle(product(_DASHES, _COLOURS))
