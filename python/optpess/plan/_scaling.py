"""Multiplies signals of extreme sizes by powers of two, so that their multipliers are finite.

A reward of 1e270 and a cost of 1e-110 have multipliers of 1e380. Powers of two change no digit, so that
a plan for the multiplied signals is one for the given ones. Signals of ordinary sizes are left as they
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from optpess.arrays import FloatArray, IntArray

__all__ = ["Scaling"]

# Signals whose largest entry lies between 2^-200 and 2^200 are of ordinary size: products and quotients
# of two such numbers are far from the ends of the floating-point numbers.
_ORDINARY = 200


@dataclass(frozen=True, eq=False)
class Scaling:
    """Binary exponents: the multiplied signals are the given ones times two to these powers."""

    reward: int
    costs: IntArray  # [M]

    @classmethod
    def of(cls, reward: FloatArray, costs: FloatArray) -> Self | None:
        """What brings the largest entry of each signal to about 1; None if all are of ordinary size."""
        exponents = [_exponent(signal) for signal in (reward, *costs)]
        if not any(exponents):
            return None
        return cls(exponents[0], np.array(exponents[1:], dtype=np.int64))

    def reward_in(self, reward: FloatArray | float) -> FloatArray:
        """The multiplied reward; also of a value, or of a difference of values."""
        return _multiplied(reward, self.reward)

    def costs_in(self, costs: FloatArray) -> FloatArray:
        """The multiplied costs, with the constraints along the first axis; also of limits ``[M]``."""
        powers = self.costs.reshape(-1, *(1,) * (costs.ndim - 1))
        return _multiplied(costs, powers)

    def value_out(self, value: float) -> float:
        """A value of the multiplied reward as one of the given reward."""
        return float(_multiplied(value, -self.reward))

    def costs_out(self, costs: FloatArray) -> FloatArray:
        """Costs ``[..., M]`` of the multiplied signals as those of the given ones."""
        return _multiplied(costs, -self.costs)

    def multipliers_out(self, multipliers: FloatArray) -> FloatArray:
        """What a unit of each given cost is worth in units of the given reward, ``[M]``."""
        return _multiplied(multipliers, self.costs - self.reward)


def _exponent(signal: FloatArray) -> int:
    """The power of two by which a signal is multiplied; 0 for one of ordinary size."""
    if signal.dtype.kind != "f" or not signal.size:
        return 0  # the core refuses what are no numbers; whole numbers have ordinary sizes
    largest = float(np.abs(signal).max())
    if not np.isfinite(largest) or largest == 0.0:
        return 0
    exponent = int(np.frexp(largest)[1])
    return 0 if abs(exponent) <= _ORDINARY else -exponent


def _multiplied(numbers: FloatArray | float, exponents: int | IntArray) -> FloatArray:
    """Numbers times powers of two; the largest number in place of one that is too large."""
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore", under="ignore"):
        made: FloatArray = np.ldexp(np.asarray(numbers, np.float64), exponents)
    return np.clip(made, -largest, largest)
