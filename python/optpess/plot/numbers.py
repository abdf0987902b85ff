"""Writes numbers for figures, at ticks and in the names of lines: 10⁶ in place of 1e+06."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, isclose, isfinite, log10

__all__ = ["LARGE", "number_text", "power_text", "tick_text"]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MINUS = "\N{MINUS SIGN}"
LARGE = 1e6
"""Numbers of at least this size are written with a power of ten."""
_SMALL = 1e-4  # and below this one


def number_text(number: float) -> str:
    """A number in four digits, as a whole one from 1,000 to a million: 0.1235, 12,345, 2.5 × 10⁷."""
    if not isfinite(number):
        return f"{number}".replace("-", _MINUS)
    size = abs(number)
    if size != 0.0 and not _SMALL <= size < LARGE:
        return _scientific(number, _power(size), 3)
    return (f"{number:,.0f}" if round(size) >= 1000 else f"{number:.4g}").replace("-", _MINUS)


def power_text(number: float) -> str:
    """A number on a logarithmic axis: 0.01, 1, 1,000, 10⁴; 2 × 10⁷ in place of other large ones."""
    if not number > 0.0:
        return ""
    power = round(log10(number))
    if isclose(number, 10.0**power, rel_tol=1e-6):
        return f"{10.0**power:,.{max(0, -power)}f}" if -3 <= power <= 3 else _power_of_ten(power)
    if 1e-3 <= number < 1e4:
        return _trimmed(f"{number:,.{max(0, 2 - _power(number))}f}")
    return _scientific(number, _power(number), 1)


def tick_text(number: float, ticks: Sequence[float]) -> str:
    """A number on a linear axis with these ticks: 0.25, 1,000, 2.5 × 10⁶. All have as many digits as
    the distance between them needs, and the same power of ten.
    """
    largest = max(map(abs, (number, *ticks)))
    steps = [after - before for before, after in pairwise(ticks)]
    step = min(steps, default=1e-3 * largest)
    if not step > 0.0 or abs(number) < 1e-6 * step:
        return "0"
    digits = 1 - floor(log10(step) + 1e-9)  # one more than the first: steps may be 2.5
    if _SMALL <= largest < LARGE:
        return _trimmed(f"{number:,.{max(0, digits)}f}").replace("-", _MINUS)
    power = _power(largest)
    return _scientific(number, power, max(0, digits + power))


def _power(size: float) -> int:
    """The power of ten at or below a positive number."""
    power = floor(log10(size))
    return power + 1 if isclose(size, 10.0 ** (power + 1), rel_tol=1e-9) else power


def _scientific(number: float, power: int, digits: int) -> str:
    """A number as a multiple of this power of ten."""
    factor = _trimmed(f"{number / 10.0**power:,.{digits}f}").replace("-", _MINUS)
    text = _power_of_ten(power)
    return {"1": text, f"{_MINUS}1": _MINUS + text}.get(factor, f"{factor} × {text}")


def _power_of_ten(power: int) -> str:
    return "10" + str(power).translate(_SUPERSCRIPTS)


def _trimmed(text: str) -> str:
    """Without zeros at the end of a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text
