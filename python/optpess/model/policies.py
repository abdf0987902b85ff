"""Policies from the numbers of actions."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from optpess.arrays import ArrayLike, FloatArray
from optpess.checks import as_array, whole_number
from optpess.exceptions import InvalidInputError

__all__ = ["policy_from_actions"]

# As many as the compiled core takes.
_MAX_ENTRIES = 2**31


def policy_from_actions(
    actions: ArrayLike, num_actions: SupportsIndex, *, horizon: SupportsIndex | None = None
) -> FloatArray:
    """The deterministic policy ``[H, S, A]`` that takes the given actions.

    Args:
        actions: ``[H, S]``, the number of the action of each step and state; or ``[S]``, if they are the
            same at every step.
        num_actions: A.
        horizon: H, for actions ``[S]``.

    Example:
        >>> import optpess as op
        >>> op.policy_from_actions([[1, 0], [0, 0]], 2).tolist()
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
        >>> op.policy_from_actions([2, 0], 3, horizon=5).shape
        (5, 2, 3)
    """
    count = whole_number("num_actions", num_actions, most=2**31)
    given = np.asarray(as_array("actions", actions))
    if given.dtype.kind not in "iu" or isinstance(actions, np.ma.MaskedArray):
        raise InvalidInputError(
            f"actions holds elements of type {given.dtype} ({type(actions).__name__}); allowed are "
            "integers, the numbers of actions"
        )
    if given.ndim not in (1, 2) or given.size == 0:
        raise InvalidInputError(
            f"actions has shape {list(given.shape)}; it must have the axes [H, S], or [S] with horizon"
        )
    if given.ndim == 1:
        if horizon is None:
            raise InvalidInputError(
                f"actions has shape {list(given.shape)}, the axes [S], but horizon is None; it must be "
                "the number of steps"
            )
        steps = whole_number("horizon", horizon)
        entries = steps * len(given) * count
        if entries > _MAX_ENTRIES:
            raise InvalidInputError(
                f"a policy of {steps} steps, {len(given)} states and {count} actions has {entries} "
                f"entries; at most {_MAX_ENTRIES} can be stored"
            )
        given = np.broadcast_to(given, (steps, given.size))
    elif horizon is not None and whole_number("horizon", horizon) != len(given):
        raise InvalidInputError(
            f"horizon is {horizon}, but actions has {len(given)} steps; leave horizon out for actions "
            "[H, S]"
        )
    outside = (given < 0) | (given >= count)
    if outside.any():
        place = np.unravel_index(int(outside.argmax()), given.shape)
        where = ", ".join(map(str, place if np.ndim(actions) == 2 else place[1:]))
        raise InvalidInputError(
            f"actions[{where}] is {given[place]}; it must lie in [0, {count - 1}], the {count} actions"
        )
    policy = np.zeros((*given.shape, count))
    np.put_along_axis(policy, given[..., np.newaxis].astype(np.int64), 1.0, axis=-1)
    return policy
