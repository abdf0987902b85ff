"""Mixtures of deterministic policies, kept as numbers of actions until a policy in full is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from optpess.arrays import ActionArray, BoolArray, FloatArray
from optpess.model.missing_actions import fold_actions

__all__ = ["ActionMixture"]


@dataclass(frozen=True, eq=False)
class ActionMixture:
    """Deterministic policies, the probability of each, and the Markov policy that mixes them."""

    weights: tuple[float, ...]  # one an end
    actions: tuple[ActionArray, ...]  # [H, S] of each end
    shares: FloatArray  # [H, S, ends - 1]: of each end but the first, in the mass that arrives
    num_actions: int

    def folded(self, mask: BoolArray | None) -> Self:
        """The same without actions that do not exist."""
        return replace(self, actions=tuple(fold_actions(each, mask) for each in self.actions))

    def ends(self) -> tuple[tuple[float, FloatArray], ...]:
        """Each weight with its deterministic policy ``[H, S, A]``."""
        ones = np.ones(self.actions[0].shape)
        policies = (self._spread([actions], [ones]) for actions in self.actions)
        return tuple(zip(self.weights, policies, strict=True))

    def policy(self) -> FloatArray:
        """The policy in full, ``[H, S, A]``."""
        first, *others = self.actions
        if not others:
            return self._spread(self.actions, [np.ones(first.shape)])
        same = np.logical_and.reduce([first == other for other in others])
        shares = np.where(same[..., np.newaxis], 0.0, self.shares)
        rest = np.maximum(1.0 - shares.sum(axis=-1), 0.0)
        return self._spread(self.actions, [rest, *np.moveaxis(shares, -1, 0)])

    def _spread(
        self, actions: tuple[ActionArray, ...] | list[ActionArray], shares: list[FloatArray]
    ) -> FloatArray:
        """Puts the shares ``[H, S]`` of each end on its actions."""
        policy = np.zeros((*self.actions[0].shape, self.num_actions))
        rows = policy.reshape(-1, self.num_actions)
        places = np.arange(len(rows))
        for each, share in zip(actions, shares, strict=True):
            rows[places, each.ravel()] += share.ravel()
        return policy
