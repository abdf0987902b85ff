"""Random constrained MDPs with sparse transitions (garnets)."""

from __future__ import annotations

import numpy as np

from optpess.checks import whole_number
from optpess.exceptions import InvalidInputError
from optpess.model import CMDP, Transitions

__all__ = ["garnet"]

# The most entries of the rows, and the largest size.
_LARGEST = 10**9


def garnet(
    num_states: int,
    num_actions: int,
    horizon: int,
    *,
    successors: int,
    seed: int,
    cost_limit: float | None = None,
) -> CMDP:
    """A random sparse problem, stored in sparse rows.

    Every (state, action) has ``successors`` random successors with Dirichlet(1) probabilities, and
    rewards and costs uniform on [0, 1]. The limit defaults to H/3.

    Args:
        num_states: S.
        num_actions: A.
        horizon: H.
        successors: how many states can follow a state and an action.
        seed: of the random numbers.
        cost_limit: the limit; None for H/3.

    Example:
        >>> import optpess as op
        >>> op.zoo.garnet(20, 4, 10, successors=3, seed=1)
        CMDP(horizon=10, num_states=20, num_actions=4, num_constraints=1, sparse)
    """
    num_states = whole_number("num_states", num_states, most=_LARGEST)
    num_actions = whole_number("num_actions", num_actions, most=_LARGEST)
    horizon = whole_number("horizon", horizon, most=_LARGEST)
    seed = whole_number("seed", seed, least=0)
    successors = whole_number("successors", successors, most=num_states, what=", the number of states")
    if num_states * num_actions * successors > _LARGEST:
        raise InvalidInputError(
            f"num_states x num_actions x successors is {num_states * num_actions * successors}; at most "
            f"{_LARGEST} can be drawn"
        )
    generator = np.random.default_rng(seed)
    rows = num_states * num_actions
    if successors == num_states:
        states = np.tile(np.arange(num_states), (rows, 1))
    else:
        states = np.empty((rows, successors), dtype=np.int64)
        for row in range(rows):
            states[row] = generator.choice(num_states, successors, replace=False, shuffle=False)
        states.sort(axis=1)
    probabilities = generator.dirichlet(np.ones(successors), size=rows)
    transitions = Transitions.sparse(
        np.arange(0, rows * successors + 1, successors),
        states.ravel(),
        probabilities.ravel(),
        num_states=num_states,
        num_actions=num_actions,
    )
    rewards = generator.random((num_states, num_actions))
    costs = generator.random((num_states, num_actions))
    limit = horizon / 3 if cost_limit is None else cost_limit
    initial = np.r_[1.0, np.zeros(num_states - 1)]
    return CMDP.stationary(transitions, rewards, costs, limit, initial, horizon=horizon)
