"""Episodes of a known model."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, IntArray, PolicyLike
from optpess.checks import as_array, whole_number
from optpess.model import CMDP, check_model
from optpess.model.missing_actions import check_actions_exist

__all__ = ["sample"]


def sample(
    model: CMDP,
    policy: PolicyLike,
    num_episodes: SupportsIndex,
    *,
    seed: SupportsIndex = 0,
    replicate: SupportsIndex = 0,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Plays episodes of a known model with one policy.

    Returns ``(states [N, H], actions [N, H], rewards [N, H], costs [N, M, H])`` as observed, noise
    included. The same seed and replicate give the same episodes on every machine.

    Rewards and costs are in the model's units. The noise acts in the unit interval, before the map to
    those units: with Bernoulli noise a reward of the range (0, 10) is observed as 0 or 10. A policy that
    uses an action that does not exist is refused.

    Args:
        model: the model.
        policy: ``[H, S, A]``.
        num_episodes: N, how many episodes to play.
        seed: the seed of the random numbers.
        replicate: which of the independent streams of that seed to use.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.CMDP.stationary(np.ones((1, 1, 1)), [[0.5]], [[1.0]], 2.0, [1.0], horizon=3)
        >>> states, actions, rewards, costs = op.sample(model, np.ones((3, 1, 1)), 100, seed=1)
        >>> costs.shape, float(costs.mean())
        ((100, 1, 3), 1.0)
    """
    check_model(model)
    if model.actions is not None:
        check_actions_exist(as_array("policy", policy), model.actions)
    numbers = {"seed": seed, "replicate": replicate}
    address = {
        name: whole_number(name, number, least=0, most=2**64 - 1) for name, number in numbers.items()
    }
    states, actions, rewards, costs = _core.sample(model, policy, num_episodes, **address)
    units = model.units
    if not units.is_unit:
        rewards = units.rewards_out(rewards)
        costs = np.moveaxis(units.costs_out(np.moveaxis(costs, 1, 0)), 0, 1)
    return states, actions, rewards, np.ascontiguousarray(costs)
