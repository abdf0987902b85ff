"""Actions that do not exist in some states: the mask of those that do, and how the others are folded.

The rule is the same wherever a mask is accepted. An action that does not exist in a state stands in for
the lowest action that does: it has the same transitions, rewards and costs. So the optimum over all
actions is the optimum over those that exist, and moving a policy's probability from missing actions to
the lowest existing one changes none of its values. What a caller gives in the rows of missing actions is
never read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from optpess.arrays import ArrayLike, BoolArray, FloatArray, IntArray
from optpess.checks import as_array
from optpess.exceptions import InvalidInputError

__all__ = [
    "check_actions_exist",
    "check_mask",
    "fold_actions",
    "fold_compressed",
    "fold_policy",
    "fold_rows",
    "stand_ins",
]


def check_mask(
    actions: ArrayLike | None, num_states: int, num_actions: int, name: str = "actions"
) -> BoolArray | None:
    """The mask ``[S, A]``, True where an action exists; None if all exist.

    A mask of zeros and ones is accepted too. Every state needs at least one action.
    """
    if actions is None:
        return None
    given = np.asarray(as_array(name, actions))
    if given.shape != (num_states, num_actions):
        raise InvalidInputError(
            f"{name} has shape {list(given.shape)}; it must have shape {[num_states, num_actions]} "
            "(axes [S, A], True where the action exists)"
        )
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise InvalidInputError(
            f"{name} holds elements of type {given.dtype} that are not all True or False; it must be "
            "True where the action exists, else False"
        )
    mask: BoolArray = np.array(given, dtype=np.bool_)  # a copy: the caller may change his array
    without = np.flatnonzero(~mask.any(axis=1))
    if without.size:
        raise InvalidInputError(
            f"{name}[{without[0]}] is False for every action; every state needs at least one action"
        )
    mask.setflags(write=False)
    return None if mask.all() else mask


def stand_ins(mask: BoolArray) -> IntArray:
    """``[S, A]``: each action itself where it exists, else the lowest that exists in the state."""
    own = np.arange(mask.shape[1])
    return np.where(mask, own, mask.argmax(axis=1)[:, np.newaxis]).astype(np.int64)


def fold_rows(array: npt.NDArray[Any], mask: BoolArray | None, *, trailing: int = 0) -> npt.NDArray[Any]:
    """A copy of an array ``[..., S, A]`` (with ``trailing`` further axes at the end, 1 for transitions)
    in which the rows of missing actions are those of their stand-ins. Other shapes are returned as they
    are: the core refuses them.
    """
    first = array.ndim - 2 - trailing
    if mask is None or first < 0 or array.shape[first : first + 2] != mask.shape:
        return array
    axes = array.shape[:first]
    by_state = array.reshape(-1, *array.shape[len(axes) :])
    states = np.arange(mask.shape[0])[:, np.newaxis]
    folded: npt.NDArray[Any] = by_state[:, states, stand_ins(mask)].reshape(array.shape)
    return folded


def fold_compressed(
    offsets: IntArray, successors: IntArray, probabilities: FloatArray, mask: BoolArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Compressed sparse rows over (h, s, a), or over (s, a), in which the rows of missing actions are
    those of their stand-ins.
    """
    num_states, num_actions = mask.shape
    pairs = num_states * num_actions
    within = (np.arange(num_states)[:, np.newaxis] * num_actions + stand_ins(mask)).ravel()
    slices = (offsets.size - 1) // pairs
    source = (np.arange(slices)[:, np.newaxis] * pairs + within).ravel()
    lengths = np.diff(offsets)[source]
    made = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.repeat(offsets[:-1][source] - made[:-1], lengths) + np.arange(made[-1])
    return made, successors[entries], probabilities[entries]


def fold_policy(policy: FloatArray, mask: BoolArray | None) -> FloatArray:
    """A policy ``[..., S, A]`` with the probability of missing actions moved to their stand-ins.

    On a model whose rows are folded by the same mask, every value of the policy stays the same. A policy
    that uses no missing action is returned as it is.
    """
    if mask is None or not policy[..., ~mask].any():
        return policy
    folded = np.where(mask, policy, 0.0)
    moved = np.where(mask, 0.0, policy).sum(axis=-1)
    folded[..., np.arange(mask.shape[0]), mask.argmax(axis=1)] += moved
    return folded


def fold_actions(actions: npt.NDArray[Any], mask: BoolArray | None) -> npt.NDArray[Any]:
    """Action numbers ``[..., S]`` with missing ones replaced by their stand-ins."""
    if mask is None:
        return actions
    folded: npt.NDArray[Any] = stand_ins(mask)[np.arange(mask.shape[0]), actions].astype(actions.dtype)
    return folded


def check_actions_exist(policy: npt.NDArray[Any], mask: BoolArray | None, name: str = "policy") -> None:
    """Refuses a policy ``[H, S, A]`` that gives a missing action any probability."""
    if (
        mask is None
        or policy.ndim != 3
        or policy.shape[1:] != mask.shape
        or policy.dtype.kind not in "fiub"
    ):
        return  # other shapes and elements are refused by the core
    used = (policy != 0.0) & ~mask
    if used.any():
        step, state, action = np.unravel_index(int(used.argmax()), used.shape)
        exist = np.flatnonzero(mask[state]).tolist()
        raise InvalidInputError(
            f"{name}[{step}, {state}, {action}] is {policy[step, state, action]:g}; action {action} "
            f"does not exist in state {state}, where the actions are {exist}"
        )
