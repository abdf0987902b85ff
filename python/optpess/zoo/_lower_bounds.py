"""Pairs of problems on which every safe learner has a proved least regret."""

from __future__ import annotations

import math

import numpy as np

from optpess.exceptions import InvalidInputError
from optpess.model import CMDP

__all__ = ["lower_bound_a", "lower_bound_b"]


def lower_bound_a(
    *,
    num_episodes: int = 100_000,
    margin: float = 1 / 64,
    best_margin: float = 1 / 32,
    shifted: bool = False,
) -> CMDP:
    """Pair A of MA-OPS: the best action is just within the limit, or just above it.

    One state, one step, three actions, limit 1/2. Rewards are (1/2, 1, 1/2), mean costs
    (1/2 - margin, 1/2, 1/2 - best_margin); in the ``shifted`` problem the second is
    1/2 + 1/(8 sqrt(num_episodes)). The safe policy takes action 0.

    A learner that is safe on both with probability 1 - delta has, with probability at least
    3/4 - delta, regret at least sqrt(num_episodes) / (32 best_margin) on the one that is not shifted.

    In the paper the cost of action 0 is deterministic. Here all observations are Bernoulli, as a model
    has one kind of noise. Expected values are the same. The bound still holds: who observes the
    deterministic cost can draw a Bernoulli observation from it, so a learner for this problem is also
    one for the paper's.

    Args:
        num_episodes: K, the number of episodes the bound is about; at least 1.
        margin: by how much action 0 costs less than the limit; in (0, best_margin].
        best_margin: the same of action 2, the cheapest; at most 1/8.
        shifted: whether action 1 costs more than the limit.

    Example:
        >>> import optpess as op
        >>> op.zoo.lower_bound_a(num_episodes=100)
        CMDP(horizon=1, num_states=1, num_actions=3, num_constraints=1, dense)
    """
    if num_episodes < 1:
        raise InvalidInputError(f"num_episodes is {num_episodes}; it must be at least 1")
    _check("best_margin", best_margin, 1 / 8, "1/8")
    _check("margin", margin, best_margin, "best_margin")
    excess = 1 / (8 * math.sqrt(num_episodes)) if shifted else 0.0
    return _bandit([0.5, 1.0, 0.5], [0.5 - margin, 0.5 + excess, 0.5 - best_margin])


def lower_bound_b(
    *, margin: float = 1 / 1024, best_margin: float = 1 / 64, swapped: bool = False
) -> CMDP:
    """Pair B of MA-OPS: one of two good actions is safe, and the safe policy earns nothing.

    One state, one step, three actions, limit 1/2. Rewards are (0, 1, 1), mean costs
    (1/2 - margin, 1/2 - best_margin, 1/2 + 2 best_margin); in the ``swapped`` problem actions 1 and 2
    have exchanged their costs. The safe policy takes action 0.

    A learner that is safe on both with probability 1 - delta has, with probability at least
    3/4 - 2 delta, regret at least 1 / (1152 margin best_margin) on one of the two.

    In the paper the cost of action 0 is deterministic; here it is Bernoulli with the same mean, and the
    bound still holds, see :func:`lower_bound_a`.

    Args:
        margin: by how much action 0 costs less than the limit; in (0, best_margin/4].
        best_margin: the same of the cheapest action; at most 1/4.
        swapped: whether action 2 is the safe one, and not action 1.

    Example:
        >>> import optpess as op
        >>> op.zoo.lower_bound_b()
        CMDP(horizon=1, num_states=1, num_actions=3, num_constraints=1, dense)
    """
    _check("best_margin", best_margin, 1 / 4, "1/4")
    _check("margin", margin, best_margin / 4, "best_margin/4")
    costs = [0.5 - margin, 0.5 - best_margin, 0.5 + 2 * best_margin]
    if swapped:
        costs[1], costs[2] = costs[2], costs[1]
    return _bandit([0.0, 1.0, 1.0], costs)


def _check(name: str, found: float, largest: float, description: str) -> None:
    if not 0 < found <= largest:
        raise InvalidInputError(f"{name} is {found}; it must lie in (0, {description}]")


def _bandit(rewards: list[float], costs: list[float]) -> CMDP:
    stay = np.ones((1, len(rewards), 1))
    return CMDP.stationary(stay, [rewards], [costs], 0.5, [1.0], horizon=1)
