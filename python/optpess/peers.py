"""The algorithms that the paper's two are compared with, and the two ends of the scale.

They have the verbs, estimates and records of :class:`optpess.OptPessLP`; none of them sees the true
model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.exceptions import InvalidInputError
from optpess.learners import Learner
from optpess.terms import ConfidenceRule, SafeBaseline, SafetyMargin, Theorem

__all__ = ["AlwaysBaseline", "PeerLearner", "UnconstrainedOptimistic"]


class PeerLearner(Learner):
    """What the algorithms of the comparison share."""

    @property
    def promise(self) -> str:
        """What the algorithm's own paper proves of it, in words."""
        promise = self._inner.promise
        assert promise is not None
        return promise

    @property
    def multiplier(self) -> float:
        """The dual variable the next plan will use; 0 for algorithms without one."""
        return self._inner.multiplier


class AlwaysBaseline(PeerLearner):
    """Never leaves the baseline: the end of the scale that only wants safety.

    Args:
        shape: (H, S, A).
        initial: ``[S]``, the distribution of the first state.
        baseline: the safe policy; its cost need not be known.
        num_episodes: K.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> baseline = op.SafeBaseline(np.tile([1.0, 0.0], (2, 2, 1)), op.SafetyMargin(0.6, 0.135))
        >>> learner = op.AlwaysBaseline(shape=model.shape, initial=model.initial, baseline=baseline,
        ...                             num_episodes=100)
        >>> run = op.simulate(model, learner, progress=False)
        >>> int(run.baseline_episodes[0]), learner.guarantee
        (100, ZeroViolation(probability=1.0))
    """

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: npt.ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
    ) -> None:
        if np.shape(baseline.policy) != tuple(shape):
            raise InvalidInputError(
                f"baseline has shape {np.shape(baseline.policy)}; the learner's is {tuple(shape)}"
            )
        safe_cost = None if baseline.margin is None else float(baseline.margin.safe_cost)
        self._inner = _core.always_baseline(
            initial,
            baseline.policy,
            baseline.cost_limit,
            safe_cost,
            baseline._radius._name(),
            num_episodes,
        )
        self.parameters = {
            "algorithm": "always the baseline",
            "shape": [int(size) for size in shape],
            "cost_limit": baseline.cost_limit,
            "safe_cost": safe_cost,
            "num_episodes": int(num_episodes),
        }


class _MarginLearner(PeerLearner):
    """An algorithm that is told of no safe policy, only of a cost that some policy attains."""

    _algorithm: tuple[str, str]  # in the core, in records

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: npt.ArrayLike,
        margin: SafetyMargin,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
    ) -> None:
        name, shown = self._algorithm
        self._inner = _core.peer_learner(
            name,
            tuple(shape),
            initial,
            float(margin.cost_limit),
            float(margin.safe_cost),
            num_episodes,
            failure_probability,
            confidence._factor(),
        )
        self.parameters = {
            "algorithm": shown,
            "shape": [int(size) for size in shape],
            "cost_limit": float(margin.cost_limit),
            "safe_cost": float(margin.safe_cost),
            "num_episodes": int(num_episodes),
            "failure_probability": float(failure_probability),
            "confidence": repr(confidence),
        }


class UnconstrainedOptimistic(_MarginLearner):
    """Optimism without a constraint: the end of the scale that only wants reward.

    Plays the best policy for the estimated reward plus a bonus on the estimated transitions. Its regret
    against the constrained optimum becomes negative, its violation grows like K.

    Args:
        shape: (H, S, A).
        initial: ``[S]``, the distribution of the first state.
        margin: the limit, and a cost below it that some policy attains; for the record only.
        num_episodes: K; it enters every bonus, and episode K + 1 is refused.
        failure_probability: delta.
        confidence: :class:`Theorem`, or :class:`Scaled`, whose factor multiplies every radius.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.UnconstrainedOptimistic(
        ...     shape=model.shape, initial=model.initial, num_episodes=100,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> learner.next_policy().source, learner.guarantee
        ('Optimistic', None)
    """

    _algorithm = ("unconstrained", "optimism without a constraint")
