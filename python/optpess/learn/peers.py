"""Algorithms that the paper's two are compared with, and two reference learners.

They have the methods and estimates of :class:`optpess.OptPessLP`. Only :class:`CUCRL` is given
the transitions of the true model.
"""

from __future__ import annotations

from typing import SupportsIndex

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray, TransitionsLike
from optpess.checks import real_number, whole_number
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner, MarginLearner, check_baseline, states_its_arguments
from optpess.learn.given import Given
from optpess.learn.terms import ConfidenceRule, SafeBaseline, Theorem, factor_of
from optpess.model.units import CostRange, Range

__all__ = [
    "CUCRL",
    "OPDOP",
    "SOPS",
    "AlwaysBaseline",
    "OptCMDP",
    "OptCMDPBonus",
    "OptDualCMDP",
    "OptPrimalDualCMDP",
    "PeerLearner",
    "UnconstrainedOptimistic",
]


class PeerLearner(Learner):
    """The base class of the algorithms compared with."""

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


@states_its_arguments
class AlwaysBaseline(PeerLearner):
    """A reference learner that plays the baseline in every episode.

    Args:
        shape: ...
        initial: ...
        baseline: the safe policy; its cost need not be known.
        num_episodes: K; episode K + 1 is refused.
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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
        initial: ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
        reward_range: Range = (0.0, 1.0),
        cost_range: CostRange = (0.0, 1.0),
        actions: ArrayLike | None = None,
        bounded_observations: bool = True,
        seed: SupportsIndex = 0,
    ) -> None:
        baseline = check_baseline(baseline, shape)
        given = Given.of(shape, 1, reward_range, cost_range, actions, seed, bounded_observations)
        safe_costs = baseline.safe_costs
        inner = _core.always_baseline(
            initial,
            baseline.policy,
            given.limits_in(baseline.cost_limits)[0],
            None if safe_costs is None else given.safe_costs_in(safe_costs)[0],
            baseline._radius._name(),
            whole_number("num_episodes", num_episodes, least=None),
        )
        self._inner = given.settle(inner)
        self.parameters = self._parameters(
            "always the baseline",
            given.shape,
            baseline.cost_limit,
            baseline.safe_cost,
            num_episodes,
            **given.parameters(),
        )


class _MarginPeer(PeerLearner, MarginLearner):
    """The base class of algorithms compared with that are given no safe policy."""


@states_its_arguments
class UnconstrainedOptimistic(_MarginPeer):
    """A reference learner that ignores the constraint: optimism in the reward only.

    Plays the best policy for the estimated reward plus the bonus of :class:`OptCMDPBonus` on the
    estimated transitions. Its regret against the constrained optimum becomes negative, its violation
    grows like K.

    Args:
        shape: ...
        initial: ...
        margin: the cost limit, and a cost below it that some policy attains; kept in the record, not
            used.
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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


@states_its_arguments
class OptCMDP(_MarginPeer):
    """OptCMDP (Efroni, Mannor and Pirotta 2020): optimism in reward, cost and transitions.

    A kernel is plausible if every probability is within its radius of the estimate. Plays the policy of
    the best pair of a policy and a plausible kernel: the one with the most optimistic reward among
    pairs whose *optimistic* cost is within the limit (:func:`solve_extended` solves this problem for
    given arrays). A pair that was never visited may lead anywhere, also if :class:`Scaled` shrinks the
    radii. If even the least optimistic cost exceeds the limit, which has probability at most delta at
    the theorem's radii, plays the policy of least cost; the source of such a deployment is
    ``"LeastCost"``. Regret and strong violation grow like sqrt(K).

    Args:
        shape: ...
        initial: ...
        margin: ...
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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


@states_its_arguments
class OptCMDPBonus(_MarginPeer):
    """OptCMDP-bonus (Efroni, Mannor and Pirotta 2020): optimism in reward and cost, through bonuses.

    Plays the policy with the best optimistic reward among those whose *optimistic* cost is within the
    limit, on the estimated transitions. If even the least optimistic cost exceeds the limit, which has
    probability at most delta at the theorem's radii, plays the policy of least cost; the source of such
    a deployment is ``"LeastCost"``. Regret and strong violation grow like sqrt(K).

    Args:
        shape: ...
        initial: ...
        margin: ...
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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


@states_its_arguments
class OptDualCMDP(_MarginPeer):
    """OptDual-CMDP (Efroni, Mannor and Pirotta 2020): a multiplier for the cost, on plausible kernels.

    Plays the policy of the pair of a policy and a plausible kernel that is best for optimistic reward
    minus multiplier times optimistic cost, and moves the multiplier by that pair's excess over the
    limit. Plausible kernels are those of :class:`OptCMDP`. Regret and weak violation grow like sqrt(K).

    Args:
        shape: ...
        initial: ...
        margin: the cost limit, and a cost below it that some policy attains; it scales the multiplier's
            steps.
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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


@states_its_arguments
class OptPrimalDualCMDP(_MarginPeer):
    """OptPrimalDual-CMDP (Efroni, Mannor and Pirotta 2020): mirror ascent with a multiplier for the
    cost.

    Does not plan: multiplies the policy by the exponential of its optimistic action values (reward minus
    multiplier times cost), and updates the multiplier. Regret and weak violation grow like sqrt(K).

    Args:
        shape: ...
        initial: ...
        margin: the cost limit, and a cost below it that some policy attains; it bounds the multiplier.
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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


@states_its_arguments
class OPDOP(_MarginPeer):
    """OPDOP (Ding, Wei, Yang, Wang and Jovanovic 2021), in tabular form.

    As :class:`OptPrimalDualCMDP`, with averages over N + 1, another bonus and other step sizes, and the
    uniform policy mixed in with weight 1/K before every step. Regret and weak violation grow like
    sqrt(K).

    Args:
        shape: ...
        initial: ...
        margin: the cost limit, and a cost below it that some policy attains; it bounds the multiplier.
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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


@states_its_arguments
class CUCRL(PeerLearner):
    """C-UCRL (Zheng and Ratliff 2020) in episodic form: a learner that is given the transitions.

    Plays the policy with the best optimistic reward among those whose *pessimistic* cost is within the
    limit on the given transitions, and the baseline until there is one. The published algorithm is for
    the average reward of one unending episode. The guarantee holds if the given transitions are the
    true ones.

    Args:
        transitions: ``[H, S, A, S]``, ``[S, A, S]`` or :class:`optpess.Transitions`: the true ones.
        shape: ...
        initial: ...
        baseline: the safe policy, with its margin.
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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
        transitions: TransitionsLike,
        shape: tuple[int, int, int],
        initial: ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
        reward_range: Range = (0.0, 1.0),
        cost_range: CostRange = (0.0, 1.0),
        actions: ArrayLike | None = None,
        bounded_observations: bool = True,
        seed: SupportsIndex = 0,
    ) -> None:
        baseline = check_baseline(baseline, shape)
        safe_costs = _known_costs(baseline, "C-UCRL")
        given = Given.of(shape, 1, reward_range, cost_range, actions, seed, bounded_observations)
        inner = _core.cucrl(
            transitions,
            initial,
            baseline.policy,
            given.limits_in(baseline.cost_limits)[0],
            given.safe_costs_in(safe_costs)[0],
            whole_number("num_episodes", num_episodes, least=None),
            real_number("failure_probability", failure_probability),
            factor_of(confidence, "C-UCRL"),
        )
        self._inner = given.settle(inner)
        self.parameters = self._parameters(
            "C-UCRL (transitions known)",
            given.shape,
            baseline.cost_limit,
            baseline.safe_cost,
            num_episodes,
            failure_probability=float(failure_probability),
            confidence=repr(confidence),
            **given.parameters(),
        )


@states_its_arguments
class SOPS(PeerLearner):
    """S-OPS (Stradi, Castiglioni, Marchesi and Gatti 2025) for stochastic rewards: a coin between an
    optimistic policy and the baseline.

    The candidate is the policy of the best pair of a policy and a plausible kernel, as in
    :class:`OptCMDP`, with the widths of S-OPS. Its certificate w is its cost in the worst plausible
    kernel, for pessimistic costs. If w is above the limit tau, the coin chooses the baseline with
    probability (w - tau)/(w - c0), else the candidate, once an episode and before it starts. If no pair
    is within the limit, the baseline is played. Every deployment carries its :class:`Mixture`: the
    candidate first, then the baseline. All episodes are counted.

    The guarantee is the paper's: with probability 1 - delta, in every episode the expected cost, over
    the coin too, is at most the limit. It is no promise for the policy that the coin chose. It needs
    only that the confidence sets hold (Zuo and Stradi 2026, (C.2) and Lemma B.2), not how the candidate
    was chosen. The paper's candidate comes from mirror descent, because its losses are adversarial; its
    bound on the regret is proved for that one. The worst case is that of one kernel for the whole cost
    (Zuo and Stradi 2026, (6)); the paper takes one for each pair, which gives a larger w.

    Args:
        shape: ...
        initial: ...
        baseline: the safe policy, with its margin.
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        replan_growth: 0 plans before every episode, as published. With g above 0 the learner plans when
            some count has grown by the factor 1 + g since the last plan, which is quicker; the guarantee
            holds all the same, because an old certificate stays valid.
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> baseline = op.SafeBaseline(np.tile([1.0, 0.0], (2, 2, 1)), op.SafetyMargin(0.6, 0.135))
        >>> learner = op.SOPS(shape=model.shape, initial=model.initial, baseline=baseline,
        ...                   num_episodes=100)
        >>> mixture = learner.next_policy().mixture
        >>> [member.source for member in mixture.members], mixture.weights.round(3).tolist()
        (['Plausible', 'Baseline'], [0.249, 0.751])
        >>> learner.guarantee
        SafeMixture(probability=0.95, rests_on=())
    """

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
        replan_growth: float = 0.0,
        reward_range: Range = (0.0, 1.0),
        cost_range: CostRange = (0.0, 1.0),
        actions: ArrayLike | None = None,
        bounded_observations: bool = True,
        seed: SupportsIndex = 0,
    ) -> None:
        baseline = check_baseline(baseline, shape)
        safe_costs = _known_costs(baseline, "S-OPS")
        given = Given.of(shape, 1, reward_range, cost_range, actions, seed, bounded_observations)
        inner = _core.sops(
            initial,
            baseline.policy,
            given.limits_in(baseline.cost_limits)[0],
            given.safe_costs_in(safe_costs)[0],
            whole_number("num_episodes", num_episodes, least=None),
            real_number("failure_probability", failure_probability),
            factor_of(confidence, "S-OPS"),
            real_number("replan_growth", replan_growth),
            given.seed,
        )
        self._inner = given.settle(inner)
        self.parameters = self._parameters(
            "S-OPS",
            given.shape,
            baseline.cost_limit,
            baseline.safe_cost,
            num_episodes,
            failure_probability=float(failure_probability),
            confidence=repr(confidence),
            replan_growth=float(replan_growth),
            **given.parameters(),
        )


def _known_costs(baseline: SafeBaseline, learner: str) -> FloatArray:
    """The safe costs ``[M]`` of a baseline whose cost is known."""
    if baseline.safe_costs is None:
        raise InvalidInputError(f"{learner} needs a baseline with a margin; its cost is not estimated")
    return baseline.safe_costs
