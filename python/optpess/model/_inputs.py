"""The arguments of a model on their way to the core: missing actions folded, units mapped.

What is malformed passes through unchanged: the core refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, Self

import numpy as np

from optpess import _core
from optpess._core import Transitions
from optpess.arrays import ArrayLike, BoolArray, FloatArray, TransitionsLike
from optpess.checks import as_array
from optpess.exceptions import InvalidInputError
from optpess.model.missing_actions import check_mask, fold_compressed, fold_rows
from optpess.model.units import CostRange, Range, Units

__all__ = ["Inputs"]


@dataclass(frozen=True)
class Inputs:
    """What the core is given, and what the model keeps beside it."""

    transitions: TransitionsLike
    rewards: ArrayLike
    costs: ArrayLike
    cost_limit: ArrayLike
    initial: ArrayLike
    horizon: int | None  # None if the signals have a step axis
    units: Units = field(default_factory=Units)
    actions: BoolArray | None = None
    limits: FloatArray | None = None  # in the user's units; None if the core's are
    # The same with harmless rows for missing actions, so that a refusal names a row that exists.
    unfolded: Inputs | None = None

    @classmethod
    def of(
        cls,
        given: Self,
        reward_range: Range,
        cost_range: CostRange,
        actions: ArrayLike | None,
    ) -> Self:
        """Arguments in the user's units, for the core."""
        try:
            return given._with_mask(actions)._in_units(reward_range, cost_range)._folded()
        except MemoryError:
            return given  # a view that repeats its elements: the core refuses its size

    def _with_mask(self, actions: ArrayLike | None) -> Self:
        if actions is None:
            return self
        transitions = _core.plain_transitions(self.transitions)
        mask = check_mask(actions, *_states_and_actions(transitions, actions))
        return replace(self, transitions=transitions, actions=mask)

    def _in_units(self, reward_range: Range, cost_range: CostRange) -> Self:
        """Signals and limits mapped to the unit interval; with the ranges (0, 1) nothing is touched.
        Missing actions get the least reward and cost.
        """
        limits, steps = _limits(self.cost_limit, self._num_constraints()), self._steps()
        if limits is None or steps is None:
            return self  # the core refuses these limits, or this horizon
        units = Units.of(reward_range, cost_range, limits.size)
        rewards, costs = self.rewards, self.costs
        if self.actions is not None:
            rewards = _filled(rewards, self.actions, np.array(units.reward_range[0]))
            lows = np.array([low for low, _ in units.cost_ranges])
            costs = _filled(costs, self.actions, lows if limits.size > 1 else lows[0])
        made = replace(self, rewards=rewards, costs=costs, units=units)
        if units.is_unit:
            return made
        return replace(
            made,
            rewards=units.rewards_in("rewards", rewards),
            costs=units.costs_in("costs", costs),
            cost_limit=units.checked_limits_in("cost_limit", limits, steps),
            limits=limits,
        )

    def _folded(self) -> Self:
        """The rows of actions that do not exist replaced by those of their stand-ins."""
        mask = self.actions
        if mask is None:
            return self
        transitions = _folded(self.transitions, mask)
        harmless = transitions
        if isinstance(self.transitions, np.ndarray) and isinstance(transitions, np.ndarray):
            stay = np.zeros(transitions.shape[-1])
            stay[:1] = 1.0
            fits = transitions.shape[-3:-1] == mask.shape and transitions.dtype.kind in "fiub"
            harmless = np.where(mask[..., np.newaxis], self.transitions, stay) if fits else transitions
        return replace(
            self,
            transitions=transitions,
            rewards=_folded_signal(self.rewards, mask),
            costs=_folded_signal(self.costs, mask),
            unfolded=replace(self, transitions=harmless),
        )

    def _num_constraints(self) -> int:
        costs = _array(self.costs)
        signal_axes = 3 if self.horizon is None else 2
        return len(costs) if costs is not None and costs.ndim == signal_axes + 1 else 1

    def _steps(self) -> int | None:
        if self.horizon is None:
            rewards = _array(self.rewards)
            return None if rewards is None or rewards.ndim != 3 else len(rewards)
        try:
            return index(self.horizon)
        except TypeError:
            return None


def _array(given: ArrayLike) -> np.ndarray[Any, Any] | None:
    """An array of real numbers, or None."""
    try:
        array = as_array("", given)
    except InvalidInputError:
        return None
    return array if array.dtype.kind in "fiub" else None


def _limits(cost_limit: ArrayLike, num_constraints: int) -> FloatArray | None:
    """The limits ``[M]`` as they were given."""
    limits = _array(cost_limit)
    if limits is None or isinstance(limits, np.ma.MaskedArray):
        return None
    if limits.ndim == 0 and num_constraints == 1:
        limits = limits.reshape(1)
    return limits.astype(np.float64) if limits.shape == (num_constraints,) else None


def _states_and_actions(transitions: TransitionsLike, mask: ArrayLike) -> tuple[int, int]:
    """S and A of plain transitions. For sparse rows, A is that of the mask."""
    if isinstance(transitions, Transitions):
        return transitions.num_states, transitions.num_actions
    plain: Any = transitions  # an array, or a sparse matrix
    sizes: tuple[int, ...] = plain.shape
    if len(sizes) >= 3:
        return sizes[-3], sizes[-2]
    shape = as_array("actions", mask).shape
    if isinstance(transitions, np.ndarray) or len(sizes) != 2 or len(shape) != 2:
        raise InvalidInputError(
            f"actions has shape {list(shape)} and transitions {list(sizes)}; they must have the axes "
            "[S, A] and [H, S, A, S] or, if stationary, [S, A, S]"
        )
    return sizes[1], shape[1]


def _filled(signal: ArrayLike, mask: BoolArray, value: FloatArray) -> ArrayLike:
    """A signal with a number, or one for each entry along the first axis, for missing actions."""
    array = _array(signal)
    if array is None or array.shape[-2:] != mask.shape or isinstance(array, np.ma.MaskedArray):
        return signal
    axes = (*value.shape, *(1,) * (array.ndim - 1)) if value.ndim else ()
    return np.where(mask, array, value.reshape(axes))


def _folded_signal(signal: ArrayLike, mask: BoolArray) -> ArrayLike:
    array = _array(signal)
    return signal if array is None else fold_rows(array, mask)


def _folded(transitions: TransitionsLike, mask: BoolArray) -> TransitionsLike:
    """Plain transitions in which the rows of missing actions are those of their stand-ins."""
    if isinstance(transitions, np.ndarray):
        return fold_rows(transitions, mask, trailing=1)
    if isinstance(transitions, Transitions):
        stored = dict(transitions.stored())
        if not transitions.is_sparse:
            return Transitions(fold_rows(stored["probabilities"], mask, trailing=1))
        rows = (stored["offsets"], stored["successors"], stored["probabilities"])
        horizon = transitions.horizon
    else:
        given: Any = transitions
        rows = tuple(np.asarray(part) for part in (given.indptr, given.indices, given.data))  # type: ignore[assignment]
        steps, rest = divmod(given.shape[0], mask.size)
        if rest or not _is_well_formed(*rows, given.shape[0]):
            return transitions
        horizon = None if steps == 1 else steps
    num_states, num_actions = mask.shape
    return Transitions.sparse(
        *fold_compressed(*rows, mask), num_states=num_states, num_actions=num_actions, horizon=horizon
    )


def _is_well_formed(
    offsets: np.ndarray[Any, Any],
    successors: np.ndarray[Any, Any],
    probabilities: np.ndarray[Any, Any],
    num_rows: int,
) -> bool:
    """Whether compressed rows can be read at all."""
    return bool(
        all(part.ndim == 1 for part in (offsets, successors, probabilities))
        and offsets.dtype.kind == "i"
        and offsets.size == num_rows + 1
        and offsets[0] == 0
        and (np.diff(offsets) >= 0).all()
        and offsets[-1] == successors.size == probabilities.size
    )
