"""What every learner is given of its problem: sizes, units, actions that exist, and a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, SupportsIndex

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, BoolArray, FloatArray
from optpess.checks import shown, truth_value, whole_number
from optpess.exceptions import InvalidInputError
from optpess.model import Shape
from optpess.model.missing_actions import check_mask
from optpess.model.units import CostRange, Range, Units

__all__ = ["Given", "shape_in"]

# The paper's noise (Assumption 2.1), in parts of a range.
_PAPER_PROXY = 0.5
# A few rounding errors, relative to the numbers that are subtracted.
_ROUNDING = 8 * np.finfo(float).eps


def shape_in(shape: object) -> Shape:
    """(H, S, A) as three whole numbers."""
    if isinstance(shape, np.ndarray) and shape.ndim == 1:
        shape = shape.tolist()
    if not isinstance(shape, tuple | list) or len(shape) != 3:
        inside = isinstance(getattr(shape, "shape", None), Shape)
        advice = ", as in model.shape" if inside else ""
        raise InvalidInputError(
            f"shape is {shown(shape)}; it must be three whole numbers (H, S, A){advice}"
        )
    names = ("horizon", "num_states", "num_actions")
    each = zip(names, shape, strict=True)
    return Shape(*(whole_number(f"shape: {name}", size, least=0) for name, size in each))


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Arguments that all learners share, checked."""

    shape: Shape
    units: Units
    actions: BoolArray | None
    seed: int
    variance_proxy: float | None

    @classmethod
    def of(
        cls,
        shape: object,
        num_constraints: int,
        reward_range: Range,
        cost_range: CostRange,
        actions: ArrayLike | None,
        seed: SupportsIndex,
        bounded_observations: bool = True,
        *,
        variance_proxy: float | None = None,
    ) -> Self:
        """The arguments as a user gives them."""
        sizes = shape_in(shape)
        bounded = truth_value("bounded_observations", bounded_observations)
        if not bounded and variance_proxy is None:
            variance_proxy = _PAPER_PROXY
        return cls(
            shape=sizes,
            units=Units.of(reward_range, cost_range, num_constraints),
            actions=check_mask(actions, sizes.num_states, sizes.num_actions),
            seed=whole_number("seed", seed, least=0, most=2**64 - 1),
            variance_proxy=variance_proxy,
        )

    def limits_in(self, limits: FloatArray) -> list[float]:
        """Cost limits ``[M]`` in parts of the ranges; refused in the user's units."""
        return self._sums_in("cost_limit", "(", limits)

    def safe_costs_in(self, costs: FloatArray) -> list[float]:
        """Safe costs ``[M]`` in parts of the ranges; refused in the user's units."""
        return self._sums_in("safe_cost", "[", costs)

    def _sums_in(self, name: str, bracket: str, sums: FloatArray) -> list[float]:
        """Sums of costs ``[M]`` in parts of the ranges. With the bracket "(" the least is excluded."""
        horizon, mapped = self.shape.horizon, self.units.limits_in(sums, self.shape.horizon).tolist()
        for m, (found, part) in enumerate(zip(sums.tolist(), mapped, strict=True)):
            low, high = self.units.cost_ranges[m]
            if (low, high) == (0.0, 1.0):
                continue  # the core checks it
            for end in (0.0, horizon):  # a rounding error of the map must not leave the interval
                if abs(part - end) <= _ROUNDING * (horizon * max(abs(low), abs(high)) / (high - low)):
                    mapped[m] = part = float(end)
            if not (0.0 < part <= horizon or (part == 0.0 and bracket == "[")):
                place = name if len(sums) == 1 else f"{name}[{m}]"
                raise InvalidInputError(
                    f"{place} is {found:g}; it must lie in {bracket}{horizon * low:g}, "
                    f"{horizon * high:g}], the sums of {horizon} costs in the cost_range"
                )
        return list(mapped)

    def settle(self, inner: _core.Learner) -> _core.Learner:
        """The learner of the core, told of the ranges, the stream of actions and the missing actions."""
        costs = list(self.units.cost_ranges)
        inner.settle(self.units.reward_range, costs, self.variance_proxy, self.seed)
        if self.actions is not None:
            inner.restrict(self.actions)
        return inner

    def parameters(self) -> dict[str, Any]:
        """What records keep, as plain numbers."""
        kept: dict[str, Any] = {"seed": self.seed}
        if not self.units.is_unit:
            kept["reward_range"] = list(self.units.reward_range)
            kept["cost_ranges"] = [list(pair) for pair in self.units.cost_ranges]
        if self.actions is not None:
            kept["actions"] = self.actions.astype(int).tolist()
        return kept
