"""The algorithms that the paper's two are compared with, and the two ends of the scale.

They have the verbs, estimates and records of :class:`optpess.OptPessLP`; none of them sees the true
model.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from optpess import _core
from optpess.exceptions import InvalidInputError
from optpess.learners import Learner, MarginLearner, check_baseline, input_line, terms_of
from optpess.terms import ConfidenceRule, SafeBaseline, Theorem

__all__ = [
    "CUCRL",
    "OPDOP",
    "AlwaysBaseline",
    "OptCMDP",
    "OptCMDPBonus",
    "OptDualCMDP",
    "OptPrimalDualCMDP",
    "PeerLearner",
    "UnconstrainedOptimistic",
]


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
        check_baseline(baseline, shape)
        safe_cost = None if baseline.margin is None else float(baseline.margin.safe_cost)
        self._inner = _core.always_baseline(
            initial,
            baseline.policy,
            baseline.cost_limit,
            safe_cost,
            baseline._radius._name(),
            num_episodes,
        )
        self.parameters = input_line(
            "always the baseline", shape, baseline.cost_limit, safe_cost, num_episodes
        )


class _MarginPeer(PeerLearner, MarginLearner):
    """An algorithm of the comparison that is told of no safe policy."""


class UnconstrainedOptimistic(_MarginPeer):
    """Optimism without a constraint: the end of the scale that only wants reward.

    Plays the best policy for the estimated reward plus the bonus of :class:`OptCMDPBonus` on the
    estimated transitions. Its regret against the constrained optimum becomes negative, its
    violation grows like K.

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


class OptCMDP(_MarginPeer):
    """OptCMDP (Efroni, Mannor and Pirotta 2020): optimism in reward, cost and transitions.

    Plays the policy of the best pair of a policy and a plausible kernel: the most optimistic reward
    among pairs whose *optimistic* cost is within the limit, where a kernel is plausible if every
    probability is within its radius of the estimate (:func:`solve_extended` is the same problem for
    given arrays). A pair never visited may lead anywhere, also where :class:`Scaled` shrinks the radii.
    Should even the least optimistic cost exceed the limit, which has probability at most delta at the
    theorem's radii, it plays the policy of least cost, ``"LeastCost"``. Regret and strong violation
    grow like sqrt(K).

    Takes what :class:`UnconstrainedOptimistic` does, and respects the margin's limit.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OptCMDP(
        ...     shape=model.shape, initial=model.initial, num_episodes=100,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> deployment = learner.next_policy()
        >>> deployment.source, deployment.biased_cost <= 0.6, learner.guarantee
        ('Plausible', True, None)
    """

    _algorithm = ("optcmdp", "OptCMDP")


class OptCMDPBonus(_MarginPeer):
    """OptCMDP-bonus (Efroni, Mannor and Pirotta 2020): optimism in reward and cost, through bonuses.

    Plays the policy with the best optimistic reward among those whose *optimistic* cost is within
    the limit, on the estimated transitions. Should even the least optimistic cost exceed the limit,
    which has probability at most delta at the theorem's radii, it plays the policy of least cost;
    the source of such a deployment is ``"LeastCost"``. Regret and strong violation grow like
    sqrt(K).

    Takes what :class:`UnconstrainedOptimistic` does, and respects the margin's limit.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OptCMDPBonus(
        ...     shape=model.shape, initial=model.initial, num_episodes=100,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> learner.next_policy().biased_cost <= 0.6, learner.guarantee
        (True, None)
    """

    _algorithm = ("optcmdp-bonus", "OptCMDP-bonus")


class OptDualCMDP(_MarginPeer):
    """OptDual-CMDP (Efroni, Mannor and Pirotta 2020): a price of cost on plausible kernels.

    Plays the policy of the pair of a policy and a plausible kernel that is best for optimistic reward
    less priced optimistic cost, and moves the price by that pair's excess over the limit. Plausible
    kernels are those of :class:`OptCMDP`. Regret and weak violation grow like sqrt(K).

    Takes what :class:`UnconstrainedOptimistic` does; the margin scales the steps of the price.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OptDualCMDP(
        ...     shape=model.shape, initial=model.initial, num_episodes=100,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> learner.next_policy().source, learner.multiplier, learner.guarantee
        ('PlausibleLagrangian', 0.0, None)
    """

    _algorithm = ("optdual-cmdp", "OptDual-CMDP")


class OptPrimalDualCMDP(_MarginPeer):
    """OptPrimalDual-CMDP (Efroni, Mannor and Pirotta 2020): mirror ascent with a price of cost.

    Multiplies the policy by the exponential of its optimistic action values, reward less priced
    cost, and adapts the price; plans nothing. Regret and weak violation grow like sqrt(K).

    Takes what :class:`UnconstrainedOptimistic` does; the margin bounds the price.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OptPrimalDualCMDP(
        ...     shape=model.shape, initial=model.initial, num_episodes=100,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> learner.next_policy().policy[0, 0].tolist()
        [0.5, 0.5]
    """

    _algorithm = ("optprimaldual-cmdp", "OptPrimalDual-CMDP")


class OPDOP(_MarginPeer):
    """OPDOP (Ding, Wei, Yang, Wang and Jovanovic 2021), for tables.

    As :class:`OptPrimalDualCMDP`, with averages over N + 1, another bonus and other steps, and a share
    1/K of the uniform policy mixed in before every step. Regret and weak violation grow like sqrt(K).

    Takes what :class:`UnconstrainedOptimistic` does; the margin bounds the price.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OPDOP(
        ...     shape=model.shape, initial=model.initial, num_episodes=100,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> learner.next_policy().source, learner.multiplier
        ('MirrorAscent', 0.0)
    """

    _algorithm = ("opdop", "OPDOP")


class CUCRL(PeerLearner):
    """C-UCRL (Zheng and Ratliff 2020) in episodic form: a learner that is told the transitions.

    Plays the policy with the best optimistic reward among those whose *pessimistic* cost is within the
    limit on the told transitions, and the baseline until there is one. Its own setting is average reward
    in one unending episode. The guarantee holds if the told transitions are the true ones.

    Args:
        transitions: ``[H, S, A, S]``, ``[S, A, S]`` or :class:`optpess.Transitions`: what it is told.
        shape: (H, S, A).
        initial: ``[S]``, the distribution of the first state.
        baseline: the safe policy, with its margin.
        num_episodes: K; it enters every radius, and episode K + 1 is refused.
        failure_probability: delta.
        confidence: :class:`Theorem`, or :class:`Scaled` without a guarantee.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> baseline = op.SafeBaseline(np.tile([1.0, 0.0], (2, 2, 1)), op.SafetyMargin(0.6, 0.135))
        >>> learner = op.CUCRL(transitions=model.transitions, shape=model.shape, initial=model.initial,
        ...                    baseline=baseline, num_episodes=100)
        >>> learner.next_policy().source, learner.guarantee
        ('Baseline', ZeroViolation(probability=0.95))
    """

    def __init__(
        self,
        *,
        transitions: Any,
        shape: tuple[int, int, int],
        initial: npt.ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
    ) -> None:
        check_baseline(baseline, shape)
        if baseline.margin is None:
            raise InvalidInputError("C-UCRL needs a baseline with a margin; its cost is not estimated")
        margin = baseline.margin
        self._inner = _core.cucrl(
            transitions,
            initial,
            baseline.policy,
            float(margin.cost_limit),
            float(margin.safe_cost),
            num_episodes,
            failure_probability,
            confidence._factor(),
        )
        self.parameters = input_line(
            "C-UCRL (transitions known)", shape, margin.cost_limit, margin.safe_cost, num_episodes
        ) | terms_of(failure_probability, confidence)
