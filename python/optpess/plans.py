"""What planning is about and what it returns: problems, plans with their certificates, frontiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.exceptions import InfeasibleError, InvalidInputError
from optpess.model import CMDP, Shape

__all__ = ["Certificate", "Endpoint", "Frontier", "Plan", "Problem", "floats", "limits_in"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """Signals on a kernel, whoever they come from: a model's, or a learner's biased ones. Signals
    are kept as stored, ``[H, S, A]`` or, if the same at every step, ``[S, A]``.
    """

    shape: Shape
    transitions: _core.Transitions
    reward: FloatArray
    costs: FloatArray  # one axis more, in front
    initial: FloatArray

    @classmethod
    def of(cls, model: CMDP) -> Problem:
        """The problem a known model poses."""
        rewards, costs = model.stored_rewards(), model.stored_costs()
        return cls(model.shape, model.transitions, rewards, costs, model.initial)

    def lagrangian(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """The best policy for reward minus priced costs, and its value."""
        signal = self.reward - np.tensordot(multipliers, self.costs, axes=1)
        horizon = self.shape.horizon if signal.ndim == 2 else None
        policy, values = _core.backward_induction(signal, self.transitions, horizon=horizon)
        return policy, float(values[0] @ self.initial)

    def full(self, signal: FloatArray) -> FloatArray:
        """A signal (or several, along the first axis) with its step axis."""
        if signal.ndim == self.reward.ndim and self.reward.ndim == 2:
            return np.broadcast_to(signal, self.shape)
        if self.reward.ndim == 2:
            return np.broadcast_to(signal[:, np.newaxis], (len(signal), *self.shape))
        return signal

    def cost_sizes(self, limits: FloatArray) -> FloatArray:
        """The unit in which the excess over each limit is measured: the largest cost of a step or the
        limit, whichever is larger, ``[M]``.
        """
        largest: FloatArray = np.abs(self.costs).reshape(len(self.costs), -1).max(axis=1)
        sizes: FloatArray = np.maximum(largest, np.abs(limits))
        return sizes

    def evaluated(self, policy: FloatArray) -> tuple[float, FloatArray]:
        """Value and costs of a policy."""
        costs = [self._value(policy, cost) for cost in self.costs]
        return self._value(policy, self.reward), np.array(costs)

    def _value(self, policy: FloatArray, signal: FloatArray) -> float:
        return _core.evaluate(policy, signal, self.transitions, self.initial)

    def certificate(
        self, policy: FloatArray, multipliers: FloatArray, limits: FloatArray, repair: float
    ) -> Certificate:
        """Re-evaluates a policy and bounds the optimum from above."""
        value, costs = self.evaluated(policy)
        _, lagrangian = self.lagrangian(multipliers)
        bound = lagrangian + float(multipliers @ limits)
        return Certificate(value, costs, limits, bound, repair)


@dataclass(frozen=True)
class Certificate:
    """What re-evaluating a plan found, by code that had no part in making it."""

    value: float
    """V(r) of the policy."""
    costs: FloatArray
    """V(c_m) of the policy, ``[M]``."""
    limits: FloatArray
    """The limits, ``[M]``."""
    bound: float
    """No policy within the limits has a larger value: the Lagrangian at the plan's multipliers."""
    repair: float
    """The weight of a safer policy that was mixed in, or the amount by which limits were tightened,
    to make up for rounding; 0 if nothing was repaired."""

    @property
    def slack(self) -> FloatArray:
        """Limits - costs, ``[M]``."""
        return self.limits - self.costs

    @property
    def gap(self) -> float:
        """Bound - value: how far from optimal the policy can be at most."""
        return self.bound - self.value


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimal policy of a known model."""

    problem: Problem = field(repr=False)
    policy: FloatArray
    """``[H, S, A]``."""
    multipliers: FloatArray
    """The price of each limit: how much value one more unit of it would buy, ``[M]``."""
    certificate: Certificate
    engine: str
    inductions: int
    """How many backward inductions it took; 0 for a linear program."""
    ends: tuple[tuple[float, FloatArray], ...]
    """The deterministic policies that are mixed and their weights, where the engine knows them."""

    @property
    def value(self) -> float:
        """V(r), the optimum."""
        return self.certificate.value

    @property
    def costs(self) -> FloatArray:
        """V(c_m), ``[M]``."""
        return self.certificate.costs

    @cached_property
    def occupancy(self) -> FloatArray:
        """How often each (state, action) is met at each step, ``[H, S, A]``."""
        return _core.occupancy(self.policy, self.problem.transitions, self.problem.initial)

    def __repr__(self) -> str:
        costs = np.array2string(self.costs, precision=6, separator=", ")
        return f"Plan(value={self.value:.6g}, costs={costs}, engine={self.engine!r})"


@dataclass(frozen=True, eq=False)
class Endpoint:
    """A deterministic policy at one end of the trade-off between reward and cost."""

    policy: FloatArray
    """``[H, S, A]``."""
    value: float
    """V(r)."""
    costs: FloatArray
    """V(c_m), ``[M]``."""


class Frontier:
    """The vertices (cost, value) of the curve "best reward for a limit", by increasing cost.

    Iterating gives pairs; ``numpy.asarray`` gives an array ``[V, 2]``.
    """

    def __init__(self, vertices: FloatArray) -> None:
        self._vertices = vertices
        self._vertices.setflags(write=False)

    @property
    def costs(self) -> FloatArray:
        """The limits at which the slope changes, ``[V]``; the first is the least attainable cost."""
        return self._vertices[:, 0]

    @property
    def values(self) -> FloatArray:
        """The best reward at those limits, ``[V]``."""
        return self._vertices[:, 1]

    @property
    def slopes(self) -> FloatArray:
        """The multiplier along each edge, ``[V - 1]``, decreasing."""
        return np.diff(self.values) / np.diff(self.costs)

    def value_at(self, limit: float) -> float:
        """The best reward for a limit; InfeasibleError below the least attainable cost."""
        if not limit >= self.costs[0]:
            error = InfeasibleError(
                f"no policy meets the limit {limit}: the least attainable cost is {self.costs[0]}"
            )
            error.kind, error.least_cost = "Infeasible", float(self.costs[0])
            raise error
        return float(np.interp(limit, self.costs, self.values))

    def __len__(self) -> int:
        return len(self._vertices)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return ((float(cost), float(value)) for cost, value in self._vertices)

    def __getitem__(self, index: int) -> tuple[float, float]:
        cost, value = self._vertices[index]
        return float(cost), float(value)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        return np.array(self._vertices, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        (low, worst), (high, best) = self[0], self[-1]
        return (
            f"Frontier({len(self)} vertices, cost {low:.6g}..{high:.6g}, value {worst:.6g}..{best:.6g})"
        )


def floats(name: str, values: npt.ArrayLike) -> FloatArray:
    """An array of 64-bit floats; what has no faithful conversion is refused, not cut."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(
            f"{name} holds elements of type {array.dtype} ({type(values).__name__}); "
            "allowed are real numbers"
        )
    return array.astype(np.float64)


def limits_in(cost_limit: npt.ArrayLike, num_constraints: int) -> FloatArray:
    """One finite limit a constraint, ``[M]``."""
    limits = np.atleast_1d(floats("cost_limit", cost_limit))
    if limits.shape != (num_constraints,) or not np.isfinite(limits).all():
        raise InvalidInputError(
            f"cost_limit is {cost_limit!r}; it must be {num_constraints} finite number(s)"
        )
    return limits
