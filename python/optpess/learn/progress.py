"""How far a learner is: what it would play now, its limit, its gate, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a learner is. ``str`` of it is one line.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> baseline = op.SafeBaseline(np.tile([1.0, 0.0], (2, 2, 1)), op.SafetyMargin(0.6, 0.135))
        >>> learner = op.OptPessLP(shape=model.shape, initial=model.initial, baseline=baseline,
        ...                        num_episodes=1000)
        >>> progress = learner.progress
        >>> progress.on_baseline, progress.gate_open, progress.gate_threshold
        (True, False, 0.3675)
        >>> print(progress)  # doctest: +ELLIPSIS
        0 of 1,000 episodes; plays the baseline: certified cost 19.65, limit 0.6; gate shut: ...
    """

    episodes_observed: int
    """The number of episodes observed so far."""
    num_episodes: int | None
    """K; None for a learner without one."""
    on_baseline: bool
    """Whether the baseline is being played, or would be now, because no other policy may be."""
    certified_cost: float | None
    """The upper bound that the learner's own estimates give for the cost of that policy; None if it
    computes none. For the baseline it can be above the limit: the baseline is played because of what the
    learner was told of it. It is a bound only if the learner has a guarantee."""
    cost_limit: float
    """The cost limit tau."""
    gate_cost: float | None
    """The pessimistic cost of the baseline, for OptPess-LP; None for others."""
    gate_threshold: float | None
    """The middle between safe cost and limit: the gate opens when ``gate_cost`` is below it. None while
    the safe cost is being estimated, and for other learners."""
    gate_open: bool | None
    """Whether OptPess-LP may play other policies than the baseline; None for other learners."""
    tightening_horizon: int | None
    """C'' of OptPess-PrimalDual: until this episode the limit may be exceeded. None for others, and
    beyond 2^62."""
    weight: float | None
    """How much of the deployed mixture is not the baseline; None for learners without a coin."""
    episodes_left: int | None
    """How many further episodes the learner is expected to stay on the baseline, from what it has seen;
    0 once it has left. None if that cannot be estimated yet, is above 10^18, or if there is nothing to
    leave; and for a shut gate under :class:`optpess.Sharp`. It may be more than K allows."""

    def __str__(self) -> str:
        total = "" if self.num_episodes is None else f" of {self.num_episodes:,}"
        parts = [f"{self.episodes_observed:,}{total} episodes"]
        bound = "none" if self.certified_cost is None else f"{self.certified_cost:.4g}"
        played = "the baseline" if self.on_baseline else "a policy of its own"
        parts.append(f"plays {played}: certified cost {bound}, limit {self.cost_limit:.4g}")
        if self.gate_open is not None:
            parts.append(self._gate())
        if self.weight is not None:
            parts.append(f"weight {self.weight + 0.0:.3g}")  # no weights add up to -0.0
        if self.tightening_horizon is not None:
            parts.append(f"may exceed the limit until episode {self.tightening_horizon:,}")
        if self.on_baseline and self.episodes_left:
            parts.append(f"leaves the baseline in about {self._left()} episodes")
        return "; ".join(parts)

    def _gate(self) -> str:
        if self.gate_open:
            return "gate open"
        if self.gate_threshold is None:
            return "gate shut: the safe cost is being estimated"
        return f"gate shut: {self.gate_cost:.4g} is not below {self.gate_threshold:.4g}"

    def _left(self) -> str:
        assert self.episodes_left is not None
        number = self.episodes_left
        shown = f"{number:,}" if number < 10**9 else f"{number:.2g}"
        beyond = self.num_episodes is not None and self.episodes_observed + number >= self.num_episodes
        return f"{shown} (beyond the last)" if beyond else shown
