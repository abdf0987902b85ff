"""How objects show themselves: short texts for the prompt, small HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "counted",
    "duration",
    "html_folded",
    "html_paragraph",
    "html_table",
    "percent",
    "short",
    "short_repr",
    "span",
    "table",
]

# The most numbers of an array in a text, and the most rows of a table in a notebook.
_MOST_NUMBERS = 6
_MOST_ROWS = 20


def short(numbers: npt.NDArray[Any]) -> str:
    """A list of numbers in a line: six digits, and at most six numbers."""
    shown = [f"{number:.6g}" for number in numbers[:_MOST_NUMBERS]]
    return f"[{', '.join(shown)}{', ...' if len(numbers) > _MOST_NUMBERS else ''}]"


def short_repr(value: object) -> str:
    """The repr of a value; of a sequence of many, the first ones and how many there are."""
    elements = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(elements, tuple | list) or len(elements) <= _MOST_NUMBERS:
        return repr(value)
    return f"({', '.join(map(repr, elements[:3]))}, ... {len(elements)} in all)"


def counted(number: int, name: str) -> str:
    """A number of things: 1 episode, 2,000 episodes."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def span(counts: Iterable[int]) -> str:
    """The least and the greatest of some counts: 31 to 40; 31 if they are equal."""
    every = [int(count) for count in counts]
    least, greatest = min(every), max(every)
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def percent(share: float) -> str:
    """A share in percent, never rounded to all or nothing: 54 %, 99.999 %."""
    for digits in range(5):
        text = f"{100.0 * share:.{digits}f}"
        rounded = float(text) / 100.0
        if abs(rounded - share) <= 5e-4 and (rounded not in (0.0, 1.0) or share in (0.0, 1.0)):
            return f"{text} %"
    return "less than 0.0001 %" if share < 0.5 else "more than 99.9999 %"


def duration(seconds: float) -> str:
    """A time in its two largest units: 42 s, 3 min 5 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of aligned columns as plain text; the first to the left, the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = (
        [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs)]
        for pairs in (zip(line, widths, strict=True) for line in lines)
    )
    return "\n".join("  ".join(line).rstrip() for line in shown)


def html_paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def html_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    what: str = "rows",
    most: int | None = _MOST_ROWS,
) -> str:
    """A plain table, which a notebook shows in its own colours. Of more rows than ``most`` the first are
    shown; ``what`` names those left out.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:most])
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    left = 0 if most is None else len(rows) - most
    rest = html_paragraph(f"and {left} more {what}") if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def html_folded(title: str, facts: Mapping[str, str]) -> str:
    """Names and values, shown when the title is clicked on."""
    rows = (f"<tr><th>{escape(name)}</th><td>{escape(fact)}</td></tr>" for name, fact in facts.items())
    body = f"<table><tbody>{''.join(rows)}</tbody></table>"
    return f"<details><summary>{escape(title)}</summary>{body}</details>"
