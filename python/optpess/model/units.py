"""The map between a user's units of reward and cost and the unit interval in which the core computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from optpess.arrays import ArrayLike, FloatArray
from optpess.checks import as_array, number_text, real_number, shown
from optpess.display import short_repr
from optpess.exceptions import InvalidInputError

__all__ = ["CostRange", "Range", "Units"]

# The least and the largest reward (or cost) of one step.
Range: TypeAlias = tuple[float, float]
# One range for all constraints, or one for each.
CostRange: TypeAlias = Range | Sequence[Range]

_UNIT: Range = (0.0, 1.0)
# More ends of ranges than any model has; a view of one number may claim any length.
_MAX_ENDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Units:
    """The ranges of the rewards and costs of one step, in the user's units.

    A step's reward r of the range (low, high) is (r - low) / (high - low) in the core, a sum V of H
    rewards is (V - H low) / (high - low). Costs likewise, each with its own range. With the range (0, 1)
    no number is touched.

    Example:
        >>> import optpess as op
        >>> model = op.CMDP.stationary([[[1.0]]], [[5.0]], [[2.0]], 7.0, [1.0], horizon=3,
        ...                            reward_range=(0, 10), cost_range=(0, 4))
        >>> model.units
        Units(reward_range=(0.0, 10.0), cost_ranges=((0.0, 4.0),))
        >>> op.solve(model).value
        15.0
    """

    reward_range: Range = _UNIT
    """The least and the largest reward of a step."""
    cost_ranges: tuple[Range, ...] = (_UNIT,)
    """The least and the largest cost of a step, for each constraint."""

    def __post_init__(self) -> None:
        each = enumerate(_ends("cost_ranges", self.cost_ranges))
        ranges = tuple(_checked(f"cost_ranges[{m}]", pair) for m, pair in each)
        object.__setattr__(self, "reward_range", _checked("reward_range", self.reward_range))
        object.__setattr__(self, "cost_ranges", ranges)

    def __repr__(self) -> str:
        return f"Units(reward_range={self.reward_range!r}, cost_ranges={short_repr(self.cost_ranges)})"

    @classmethod
    def of(cls, reward_range: Range, cost_range: CostRange, num_constraints: int) -> Self:
        """Units from the arguments ``reward_range`` and ``cost_range``, which are checked."""
        if _is_pair_of_numbers(cost_range):
            costs = (_checked("cost_range", cost_range),) * num_constraints
        else:
            each = _elements("cost_range", cost_range)
            if len(each) != num_constraints:
                raise InvalidInputError(
                    f"cost_range has {len(each)} ranges; it must be one (low, high) for all "
                    f"constraints, or one for each of {num_constraints}"
                )
            costs = tuple(_checked(f"cost_range[{m}]", pair) for m, pair in enumerate(each))
        return cls(_checked("reward_range", reward_range), costs)

    @property
    def is_unit(self) -> bool:
        """Whether all ranges are (0, 1), so that every map is the identity."""
        return self.reward_range == _UNIT and all(pair == _UNIT for pair in self.cost_ranges)

    @property
    def reward_width(self) -> float:
        """High - low of the rewards."""
        return self.reward_range[1] - self.reward_range[0]

    @property
    def cost_widths(self) -> FloatArray:
        """High - low of each cost, ``[M]``."""
        return np.array([high - low for low, high in self.cost_ranges])

    @property
    def violation_width(self) -> float:
        """The unit of V(c) - limit in records. With costs of different widths an excess over one limit
        cannot be compared with that over another, except in parts of their ranges: the unit is then 1.
        """
        widths = set(self.cost_widths.tolist())
        return widths.pop() if len(widths) == 1 else 1.0

    # Inwards: the user's numbers, checked against their range, to the unit interval.

    def rewards_in(self, name: str, rewards: ArrayLike) -> npt.NDArray[Any]:
        """Rewards of single steps, of any shape."""
        return _inwards(name, rewards, self.reward_range, "reward_range")

    def costs_in(self, name: str, costs: ArrayLike) -> npt.NDArray[Any]:
        """Costs of single steps; with M > 1 constraints, the first axis is that of the constraints."""
        if len(self.cost_ranges) == 1 or len(set(self.cost_ranges)) == 1:
            return _inwards(name, costs, self.cost_ranges[0], "cost_range")
        each = _elements(name, costs)
        if len(each) != len(self.cost_ranges):
            raise InvalidInputError(
                f"{name} has {len(each)} entries along its first axis; there are "
                f"{len(self.cost_ranges)} cost ranges"
            )
        return np.stack(
            [
                _inwards(f"{name}[{m}]", cost, pair, f"cost_range[{m}]")
                for m, (cost, pair) in enumerate(zip(each, self.cost_ranges, strict=True))
            ]
        )

    def limits_in(self, limits: FloatArray, horizon: int) -> FloatArray:
        """Limits (or sums of costs over an episode), ``[..., M]``."""
        lows, widths = self._cost_lows, self.cost_widths
        return np.where((lows == 0.0) & (widths == 1.0), limits, (limits - horizon * lows) / widths)

    def checked_limits_in(self, name: str, limits: FloatArray, horizon: int) -> FloatArray:
        """Limits ``[M]`` of a problem: each must lie in (H low, H high] of its range.

        Limits of the range (0, 1) are left to the core.
        """
        for m, (limit, pair) in enumerate(zip(limits.tolist(), self.cost_ranges, strict=True)):
            low, high = (horizon * end for end in pair)
            if pair != _UNIT and not low < limit <= high:
                ends = ", ".join(map(number_text, (low, high)))
                pair_text = ", ".join(map(number_text, pair))
                raise InvalidInputError(
                    f"{name}[{m}] is {number_text(limit)}; it must lie in ({ends}], as an episode has "
                    f"{horizon} steps and the cost_range is ({pair_text})"
                )
        inside = self.limits_in(limits, horizon)
        # A rounding error must not leave the interval; the core refuses what is outside by more.
        return np.where(limits <= horizon * self._cost_highs, np.minimum(inside, horizon), inside)

    # Outwards: numbers of the core to the user's units.

    def rewards_out(self, rewards: FloatArray) -> FloatArray:
        """Rewards of single steps."""
        low, _ = self.reward_range
        return rewards if self.reward_range == _UNIT else low + self.reward_width * rewards

    def costs_out(self, costs: FloatArray) -> FloatArray:
        """Costs of single steps, ``[M, ...]``."""
        if all(pair == _UNIT for pair in self.cost_ranges):
            return costs
        axes = (-1, *(1,) * (costs.ndim - 1))
        return self._cost_lows.reshape(axes) + self.cost_widths.reshape(axes) * costs

    def values_out(self, values: Any, horizon: int) -> Any:
        """V(r): sums of rewards over an episode, a number or an array."""
        if self.reward_range == _UNIT:
            return values
        return horizon * self.reward_range[0] + self.reward_width * values

    def cost_values_out(self, costs: FloatArray, horizon: int) -> FloatArray:
        """V(c_m): sums of costs over an episode, ``[..., M]``."""
        lows, widths = self._cost_lows, self.cost_widths
        return np.where((lows == 0.0) & (widths == 1.0), costs, horizon * lows + widths * costs)

    def first_cost_out(self, cost: FloatArray) -> FloatArray:
        """Costs of single steps of the first constraint, of any shape."""
        low, high = self.cost_ranges[0]
        return cost if (low, high) == _UNIT else low + (high - low) * cost

    def first_cost_value_out(self, cost: float, horizon: int) -> float:
        """V(c): a sum of costs over an episode, of the first constraint."""
        low, high = self.cost_ranges[0]
        return cost if (low, high) == _UNIT else horizon * low + (high - low) * cost

    def multipliers_out(self, multipliers: FloatArray) -> FloatArray:
        """Value for each unit of a limit, ``[..., M]``."""
        return multipliers * (self.reward_width / self.cost_widths)

    @property
    def _cost_lows(self) -> FloatArray:
        return np.array([low for low, _ in self.cost_ranges])

    @property
    def _cost_highs(self) -> FloatArray:
        return np.array([high for _, high in self.cost_ranges])


def _is_pair_of_numbers(given: object) -> bool:
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or not _has_axes(given):
        return False
    return all(np.ndim(each) == 0 for each in given)


def _has_axes(given: object) -> bool:
    return not isinstance(given, np.ndarray) or given.ndim > 0


def _ends(name: str, given: object) -> list[Any]:
    """What a range, or a sequence of them, holds."""
    if isinstance(given, np.ndarray) and (given.ndim > 2 or given.size > _MAX_ENDS):
        raise InvalidInputError(f"{name} has shape {list(given.shape)}; it must be (low, high)")
    return _elements(name, given)


def _elements(name: str, given: object) -> list[Any]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes) and _has_axes(given):
        return list(given)
    raise InvalidInputError(f"{name} is {shown(given)}; it must be (low, high)")


def _checked(name: str, given: object) -> Range:
    """A pair of finite numbers, the first below the second."""
    pair = _ends(name, given)
    try:
        low, high = (real_number(name, number) for number in pair)  # no texts
    except ValueError:
        raise InvalidInputError(f"{name} is {given!r}; it must be two numbers (low, high)") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high and np.isfinite(high - low)):
        raise InvalidInputError(
            f"{name} is ({low!r}, {high!r}); it must be two finite numbers, the first below the second"
        )
    return low, high


def _inwards(name: str, values: ArrayLike, allowed: Range, argument: str) -> npt.NDArray[Any]:
    """Values in the unit interval. With the range (0, 1) they are returned as they are: the core checks
    them. Elements that are no numbers are left to the core too.
    """
    array = as_array(name, values)
    if allowed == _UNIT or array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        return array
    low, high = allowed
    array = array.astype(np.float64, copy=False)
    outside = ~((array >= low) & (array <= high))
    if outside.any():
        index = np.unravel_index(int(outside.argmax()), array.shape)
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        found, ends = number_text(array[index]), ", ".join(map(number_text, allowed))
        raise InvalidInputError(f"{place} is {found}; it must lie in [{ends}], the {argument}")
    mapped: npt.NDArray[Any] = (array - low) / (high - low)
    return mapped.clip(0.0, 1.0)  # a rounding error must not leave the interval
