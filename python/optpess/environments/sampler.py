"""Gymnasium environments that sample known models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optpess.checks import check_type, optional_module
from optpess.model import CMDP

if TYPE_CHECKING:
    import gymnasium

__all__ = ["as_gymnasium"]


def as_gymnasium(model: CMDP) -> gymnasium.Env[int, int]:
    """A Gymnasium environment that samples a known model, with the model's noise and in its units.

    ``step`` returns (state, reward, terminated, truncated, info). The cost is ``info["cost"]``, a float;
    with several constraints it is ``info["costs"]``, a list. ``truncated`` is True at step H, and
    ``terminated`` never. ``env.cost_limit`` is the limit, or the list of them.

    If actions are missing in some states, ``info["action_mask"]`` has a 1 for each that exists; one that
    does not acts as the lowest one that does. The transition of the last step is drawn only if the
    transitions are the same at every step, as no model says what it is; else the state stays.

    Args:
        model: the model to sample.

    Example:
        >>> import optpess as op
        >>> env = op.environments.as_gymnasium(op.zoo.ring())
        >>> env.reset(seed=1)
        (0, {})
        >>> env.step(0)  # staying is free
        (0, 0.0, False, False, {'cost': 0.0})
        >>> env.cost_limit
        3.0
    """
    optional_module("gymnasium", "gym", "as_gymnasium")
    from optpess.environments._model_environment import ModelEnvironment

    return ModelEnvironment(check_type("model", model, CMDP))
