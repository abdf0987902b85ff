"""A planning problem: a reward and costs on a kernel, from a model or from a learner's estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.arrays import ActionArray, ArrayLike, BoolArray, FloatArray, TransitionsLike
from optpess.checks import as_array, number_text, real_array, real_number, shown
from optpess.exceptions import InfeasibleError, InvalidInputError
from optpess.model import CMDP, Shape, Transitions
from optpess.model.missing_actions import fold_actions, fold_policy
from optpess.model.policies import policy_from_actions
from optpess.model.units import Units
from optpess.plan._scaling import Scaling
from optpess.plan.certificate import Reevaluation

__all__ = [
    "Problem",
    "check_one_constraint",
    "check_sums",
    "finite_floats",
    "first_state",
    "limits_of",
    "policy_of_actions",
    "tolerance_of",
]


@dataclass(frozen=True, eq=False)
class Problem:
    """Signals on a kernel. Signals are kept as given: ``[H, S, A]`` or, if the same at every step,
    ``[S, A]``. Those of a model are in the unit interval; what is handed out is in its units.
    """

    shape: Shape
    transitions: Transitions
    reward: FloatArray
    costs: FloatArray  # one axis more, in front
    initial: FloatArray
    units: Units | None = None  # None if the signals are in the caller's units themselves
    actions: BoolArray | None = None  # the actions that exist, [S, A]; None if all do
    scaling: Scaling | None = None  # by what the signals were multiplied; None if by nothing

    @classmethod
    def of(cls, model: CMDP) -> Self:
        """The problem of a known model."""
        rewards, costs = model.stored_rewards(), model.stored_costs()
        units, actions = model.units, model.actions
        return cls(model.shape, model.transitions, rewards, costs, model.initial, units, actions)

    @classmethod
    def of_signals(
        cls,
        reward: ArrayLike,
        costs: ArrayLike,
        transitions: TransitionsLike,
        initial: ArrayLike,
        horizon: int | None = None,
    ) -> Self:
        """The problem of signals ``[H, S, A]`` and ``[M, H, S, A]`` or ``[H, S, A]``; with a horizon, of
        signals without a step axis.

        Elements are not checked here: the compiled core checks the arrays it is given, and
        :meth:`checked` those that go to HiGHS.
        """
        reward, costs = as_array("reward", reward), as_array("costs", costs)
        costs = costs[np.newaxis] if costs.ndim == reward.ndim else costs
        axes = ("[H, S, A]", "[M, H, S, A]") if horizon is None else ("[S, A]", "[M, S, A]")
        if reward.ndim != axes[0].count(",") + 1 or costs.shape[1:] != reward.shape:
            raise InvalidInputError(
                f"reward has shape {reward.shape} and costs {costs.shape}; they must have the axes "
                f"{axes[0]} and {axes[1]}"
            )
        shape = Shape(*reward.shape) if horizon is None else Shape(horizon, *reward.shape)
        check_sums("reward", reward, shape.horizon)
        check_sums("costs", costs, shape.horizon)
        kernel = _stored(transitions, shape)
        return cls(shape, kernel, reward, costs, first_state(initial, shape.num_states))

    def checked(self) -> Self:
        """The same problem with arrays of finite 64-bit floats, refused if it is malformed."""
        made = replace(
            self,
            reward=finite_floats("reward", self.reward),
            costs=finite_floats("costs", self.costs),
        )
        # The core checks the kernel's sizes and the distribution of the first state.
        _core.evaluate(_first_action(self.shape), made.reward, self.transitions, self.initial)
        return replace(made, initial=finite_floats("initial", self.initial))

    def scaled(self, scaling: Scaling) -> Self:
        """The same problem with signals that are multiplied by powers of two."""
        reward, costs = scaling.reward_in(self.reward), scaling.costs_in(self.costs)
        return replace(self, reward=reward, costs=costs, scaling=scaling)

    def lagrangian(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """The best policy for reward - sum_m multipliers[m] costs[m], and its value."""
        signal = self.reward - np.tensordot(multipliers, self.costs, axes=1)
        horizon = self.shape.horizon if signal.ndim == 2 else None
        policy, values = _core.backward_induction(signal, self.transitions, horizon=horizon)
        return policy, float(values[0] @ self.initial)

    def bound(self, multipliers: FloatArray, limits: FloatArray) -> float:
        """An upper bound on the value of every policy within the limits."""
        signal = self.reward - np.tensordot(multipliers, self.costs, axes=1)
        horizon = self.shape.horizon if signal.ndim == 2 else None
        _, values = _core.backward_induction(signal, self.transitions, horizon=horizon, as_actions=True)
        return float(values[0] @ self.initial) + float(multipliers @ limits)

    def least_costs(self) -> FloatArray:
        """The least attainable cost of each constraint, regardless of the others, ``[M]``."""
        horizon = self.shape.horizon if self.reward.ndim == 2 else None
        inductions = (
            _core.backward_induction(-cost, self.transitions, horizon=horizon, as_actions=True)
            for cost in self.costs
        )
        return np.array([-float(values[0] @ self.initial) for _, values in inductions])

    def with_steps(self, signal: FloatArray) -> FloatArray:
        """A signal (or several, along the first axis) with its step axis."""
        if self.reward.ndim != 2:
            return signal
        if signal.ndim == 2:
            return np.broadcast_to(signal, self.shape)
        return np.broadcast_to(signal[:, np.newaxis], (len(signal), *self.shape))

    def cost_units(self, limits: FloatArray) -> FloatArray:
        """The unit in which the excess over each limit is measured, ``[M]``: the largest cost of a step
        or the limit, whichever is larger.
        """
        largest: FloatArray = np.abs(self.costs).reshape(len(self.costs), -1).max(axis=1)
        units: FloatArray = np.maximum(largest, np.abs(limits))
        return units

    def reward_size(self, policy: FloatArray) -> float:
        """V(abs(r)) of a policy: the size of its value."""
        return self._value(policy, np.abs(self.reward))

    def cost_magnitudes(self, policy: FloatArray) -> FloatArray:
        """V(abs(c)) of a policy for each cost, ``[M]``: what rounding of its costs is relative to."""
        return np.array([self._value(policy, np.abs(cost)) for cost in self.costs])

    def evaluated(self, policy: FloatArray) -> tuple[float, FloatArray]:
        """Value and costs of a policy."""
        costs = [self._value(policy, cost) for cost in self.costs]
        return self._value(policy, self.reward), np.array(costs)

    def _value(self, policy: FloatArray, signal: FloatArray) -> float:
        return _core.evaluate(policy, signal, self.transitions, self.initial)

    # What is handed out.

    def limits_in(self, limits: FloatArray) -> FloatArray:
        """Limits ``[M]`` in the caller's units as the problem's own."""
        return limits if self.units is None else self.units.limits_in(limits, self.shape.horizon)

    def costs_out(self, costs: FloatArray) -> FloatArray:
        """V(c_m) or limits, ``[..., M]``, in the caller's units."""
        if self.scaling is not None:
            costs = self.scaling.costs_out(costs)
        return costs if self.units is None else self.units.cost_values_out(costs, self.shape.horizon)

    def value_out(self, value: float) -> float:
        """V(r) in the caller's units."""
        return value if self.units is None else float(self.units.values_out(value, self.shape.horizon))

    def multipliers_out(self, multipliers: FloatArray) -> FloatArray:
        """Multipliers ``[M]`` in the caller's units."""
        return multipliers if self.units is None else self.units.multipliers_out(multipliers)

    def policy_out(self, policy: FloatArray) -> FloatArray:
        """A policy that uses no action that does not exist."""
        return fold_policy(policy, self.actions)

    def reevaluation_out(self, found: Reevaluation, limits: FloatArray) -> Reevaluation:
        """A re-evaluation in the caller's units, in which the limits are ``limits``."""
        if self.units is None or self.units.is_unit:
            return found
        costs = self.costs_out(found.costs)
        # The map's rounding must not put a cost above a limit that it meets.
        costs = np.where(found.costs <= found.limits, np.minimum(costs, limits), costs)
        value, bound = self.value_out(found.value), self.value_out(found.bound)
        return Reevaluation(costs, limits, found.repair, value, bound)

    def infeasible(self, limits: FloatArray) -> InfeasibleError:
        """The refusal of limits that no policy meets."""
        least = (self.costs_out(self.least_costs()) + 0.0).tolist()  # HiGHS may find -0
        given = self.costs_out(limits).tolist()
        if len(least) == 1:
            limit, cost = number_text(given[0]), number_text(least[0])
            message = f"the limit {limit}: the least attainable cost is {cost}"
        else:
            message = f"the limits {given}: the least attainable costs, one at a time, are {least}"
        error = InfeasibleError(f"no policy meets {message}")
        error.kind = "Infeasible"
        error.least_cost = least[0] if len(least) == 1 else None
        return error

    def reevaluated(
        self, policy: FloatArray, multipliers: FloatArray, limits: FloatArray, repair: float
    ) -> Reevaluation:
        """Evaluates a policy and bounds the optimum from above."""
        value, costs = self.evaluated(policy)
        bound = self.bound(multipliers, limits)
        return Reevaluation(costs=costs, limits=limits, repair=repair, value=value, bound=bound)


def _stored(transitions: TransitionsLike, shape: Shape) -> Transitions:
    """The transitions, checked and stored once."""
    return transitions if isinstance(transitions, Transitions) else Transitions._of(transitions, shape)


def first_state(initial: ArrayLike, num_states: int) -> npt.NDArray[Any]:
    """The distribution of the first state. A state number is turned into one if it is in range; the core
    refuses others.
    """
    given = as_array("initial", initial)
    if given.ndim or given.dtype.kind not in "iu" or not 0 <= int(given) < num_states:
        return given
    distribution = np.zeros(num_states)
    distribution[int(given)] = 1.0
    return distribution


def _first_action(shape: Shape) -> FloatArray:
    """The policy that always takes the first action."""
    policy = np.zeros(shape)
    policy[..., 0] = 1.0
    return policy


def finite_floats(name: str, values: ArrayLike) -> FloatArray:
    """An array of finite 64-bit floats, for HiGHS, which accepts NaN without an error."""
    array = real_array(name, values)
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} has entries that are not finite; HiGHS needs finite ones")
    return array.astype(np.float64)


def check_sums(name: str, signal: npt.NDArray[Any], horizon: int) -> None:
    """Refuses finite numbers whose sum over an episode may not be finite. The core refuses others."""
    if signal.dtype.kind != "f" or not signal.size:
        return
    with np.errstate(over="ignore"):
        largest = float(np.abs(signal).max())
    if np.isfinite(largest) and not np.isfinite(largest * horizon):
        raise InvalidInputError(
            f"{name} has an entry of size {number_text(largest)}; the sum of {horizon} such numbers "
            "must be finite"
        )


def limits_of(cost_limit: ArrayLike, num_constraints: int) -> FloatArray:
    """One finite limit for each constraint, ``[M]``."""
    limits = np.atleast_1d(as_array("cost_limit", cost_limit))
    real = limits.dtype.kind in "fiub" and not isinstance(cost_limit, np.ma.MaskedArray)
    if not real or limits.shape != (num_constraints,) or not np.isfinite(limits).all():
        raise InvalidInputError(
            f"cost_limit is {shown(cost_limit)}; it must be {num_constraints} finite number(s)"
        )
    return limits.astype(np.float64)


def tolerance_of(tolerance: object) -> float:
    """A tolerance as a user gives it, checked."""
    given = real_number("tolerance", tolerance)
    if not 0.0 <= given < np.inf:
        raise InvalidInputError(f"tolerance is {tolerance!r}; it must be at least 0 and finite")
    return given


def check_one_constraint(num_constraints: int, what: str) -> None:
    """Refuses any other number of constraints."""
    if num_constraints != 1:
        raise InvalidInputError(
            f"there are {num_constraints} constraints; {what} is defined for exactly one"
        )


def policy_of_actions(model: CMDP, actions: ActionArray) -> FloatArray:
    """The deterministic policy ``[H, S, A]`` that takes the actions ``[H, S]``, or their stand-ins where
    they do not exist.
    """
    return policy_from_actions(fold_actions(actions, model.actions), model.shape.num_actions)
