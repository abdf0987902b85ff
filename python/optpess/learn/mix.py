"""OptPess-Mix: safe from the first episode, by tossing a coin between certified policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray, IntArray, PolicyLike
from optpess.checks import check_type, real_array, real_number, truth_value, whole_number
from optpess.display import short
from optpess.learn.base import Learner, check_baseline, states_its_arguments, with_last_step
from optpess.learn.given import Given
from optpess.learn.terms import ConfidenceRule, Guarantee, SafeBaseline, Theorem, factor_of
from optpess.model.missing_actions import fold_rows
from optpess.model.units import CostRange, Range, Units

__all__ = ["Exploration", "Knowledge", "OptPessMix", "PolicyBounds", "certify"]


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What is known of the problem before learning. Each entry narrows the confidence sets and keeps the
    guarantee, which names it; the guarantee holds if the entry is true.

    An observation that contradicts an entry is refused by name: a successor outside of the support at
    once, means when the average of the observations shows it.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.ring()
        >>> op.Knowledge(stationary=True, support=model.transitions.to_array() > 0)
        Knowledge(stationary=True, support)
    """

    stationary: bool = False
    """Whether transitions, rewards and costs are the same at every step. Counts are then pooled."""
    rewards: ArrayLike | None = None
    """The mean rewards, ``[H, S, A]`` or ``[S, A]``."""
    costs: ArrayLike | None = None
    """The mean costs, ``[H, S, A]`` or ``[S, A]``; with M constraints a sequence of M of them."""
    support: ArrayLike | None = None
    """True where a successor is possible, ``[H, S, A, S]`` or ``[S, A, S]``."""

    def __repr__(self) -> str:
        tables = (name for name in ("rewards", "costs", "support") if getattr(self, name) is not None)
        return f"Knowledge({', '.join([f'stationary={self.stationary}', *tables])})"


@dataclass(frozen=True, slots=True)
class Exploration:
    """How much :class:`OptPessMix` explores. No guarantee depends on it.

    Example:
        >>> import optpess as op
        >>> op.Exploration(share=0.1)
        Exploration(share=0.1, least_share=0.01, threshold=1.0)
    """

    share: float = 0.2
    """The explorer's share of the episodes when nothing has been gained, times the relative gap that is
    left later on."""
    least_share: float = 0.01
    """The least share, so that no policy is left unexplored for ever."""
    threshold: float = 1.0
    """The width of the explorer's optimistic sets, as ln(1/level) of one sequence."""


@states_its_arguments
class OptPessMix(Learner):
    """Safe from the first episode: a coin chooses between policies whose certified costs, weighted, are
    within the limits.

    Given a safe policy, the learner needs no number of episodes and never waits. A policy is certified
    by the worst case over confidence sets and by the episodes it has played itself; the weights of
    better policies grow as their certificates fall. Observed rewards and costs must lie in their
    ranges, unless ``variance_proxy`` is given.

    Args:
        shape: ...
        initial: ...
        baseline: the safe policy, with its margin, one margin for each constraint, or costs to be
            estimated.
        failure_probability: delta, the probability with which the promise may fail.
        confidence: ...
        knowledge: what is known of the problem; :class:`Knowledge`.
        exploration: how much is explored; :class:`Exploration`.
        replan_growth: a new plan is made when some count has grown by this part.
        variance_proxy: for unbounded noise: deviations of observed costs from their means are
            sub-Gaussian with this variance proxy, in parts of the cost range. None if observations lie
            in their ranges.
        reward_range: ...
        cost_range: ...
        actions: ...
        seed: ...

    Example:
        >>> import optpess as op
        >>> ring = op.zoo.problem("ring")
        >>> margin = op.SafetyMargin(cost_limit=3.0, safe_cost=float(ring.safe_costs[0]))
        >>> learner = op.OptPessMix(shape=ring.model.shape, initial=ring.model.initial,
        ...                         baseline=op.SafeBaseline(ring.safe_policy, margin),
        ...                         knowledge=op.Knowledge(stationary=True))
        >>> learner.guarantee
        SafeMixture(probability=0.95, rests_on=('stationary',))
        >>> run = op.simulate(ring.model, learner, episodes=20_000)
        >>> int(run.violating_episodes.sum())
        0
        >>> bool(run.reward_regret[0, -1] < 0.01 * 20_000 * (2.0 - 0.4))  # a hundredth of the baseline's
        True
    """

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: ArrayLike,
        baseline: SafeBaseline,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
        knowledge: Knowledge = Knowledge(),
        exploration: Exploration = Exploration(),
        replan_growth: float = 0.2,
        variance_proxy: float | None = None,
        reward_range: Range = (0.0, 1.0),
        cost_range: CostRange = (0.0, 1.0),
        actions: ArrayLike | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        baseline = check_baseline(baseline, shape, several=True)
        knowledge = check_type("knowledge", knowledge, Knowledge, "op.Knowledge(stationary=True)")
        exploration = check_type("exploration", exploration, Exploration, "op.Exploration()")
        factor = factor_of(confidence, "OptPess-Mix")
        limits, safe_costs = baseline.cost_limits, baseline.safe_costs
        if variance_proxy is not None:
            variance_proxy = real_number("variance_proxy", variance_proxy)
        given = Given.of(
            shape,
            len(limits),
            reward_range,
            cost_range,
            actions,
            seed,
            variance_proxy=variance_proxy,
        )
        settings = {
            "failure_probability": failure_probability,
            "share": exploration.share,
            "least_share": exploration.least_share,
            "threshold": exploration.threshold,
            "replan_growth": replan_growth,
        }
        inner = _core.optpess_mix(
            initial,
            baseline.policy,
            given.limits_in(limits),
            None if safe_costs is None else given.safe_costs_in(safe_costs),
            {
                **{name: real_number(name, number) for name, number in settings.items()},
                **_knowledge_in(knowledge, given),
                "radius_factor": 1.0 if factor is None else factor,
                "variance_proxy": variance_proxy,
                "seed": given.seed,
            },
        )
        self._inner = given.settle(inner)
        self.parameters = self._parameters(
            "OptPess-Mix",
            given.shape,
            float(limits[0]),
            None if safe_costs is None else float(safe_costs[0]),
            None,
            cost_limits=limits.tolist(),
            safe_costs=None if safe_costs is None else safe_costs.tolist(),
            failure_probability=float(failure_probability),
            confidence=repr(confidence),
            knowledge=repr(knowledge),
            exploration=repr(exploration),
            replan_growth=float(replan_growth),
            variance_proxy=variance_proxy,
            **given.parameters(),
        )

    @property
    def cost_limits(self) -> FloatArray:
        """The cost limits, ``[M]``."""
        return np.array(self.parameters["cost_limits"])

    @property
    def contradiction(self) -> str | None:
        """How the episodes so far contradict what was stated of the baseline; None if they do not.

        With probability 1 - delta the baseline costs at least its best case over the confidence sets. If
        that is above what was stated, the statement is false, and the learner has no guarantee.
        """
        if self.episodes_observed == 0:
            return None
        _, policy, _ = self._inner.start()
        least = certify(policy, self).best_case
        safe = self.parameters["safe_costs"]
        stated = self.cost_limits if safe is None else np.array(safe)
        above = np.flatnonzero(least > stated + 1e-9 * np.maximum(1.0, np.abs(stated)))
        if not above.size:
            return None
        m = int(above[0])
        which = f" of constraint {m}" if len(stated) > 1 else ""
        claim = "less than" if safe is None else "at most"
        return (
            f"the baseline costs at least {least[m]:.4g}{which}, by the {self.episodes_observed:,} "
            f"episodes so far; the learner was told that it costs {claim} {stated[m]:.4g}"
        )

    @property
    def guarantee(self) -> Guarantee | None:
        """What is promised; None if an argument is outside of the theorems, or if the episodes so far
        contradict what was stated of the baseline (``contradiction``).
        """
        return super().guarantee if self.contradiction is None else None

    def worst_kernel(self, policy: PolicyLike, constraint: int = 0) -> tuple[float, FloatArray]:
        """The largest expected cost of a policy over all kernels within the boxes of the confidence
        sets, and the kernel ``[H, S, A, S]`` that attains it (0 at the last step, which no value uses).

        :func:`certify` may give less: it also uses the other sets and the policy's own episodes.
        """
        last = len(self.cost_limits) - 1
        number = whole_number("constraint", constraint, least=0, most=last)
        cost, rows = self._inner.worst_kernel(policy, number)
        costs = self.units.cost_values_out(np.full(len(self.cost_limits), cost), self.shape.horizon)
        return float(costs[number]), with_last_step(rows)

    @property
    def inductions(self) -> int:
        """How many backward inductions all plans so far took."""
        return self._inner.inductions


def _knowledge_in(knowledge: Knowledge, given: Given) -> dict[str, Any]:
    """The tables of what is known, in parts of the ranges; rows of missing actions are not read."""
    units, mask = given.units, given.actions
    rewards, support = knowledge.rewards, knowledge.support
    if rewards is not None:
        rewards = units.rewards_in("rewards", fold_rows(real_array("rewards", rewards), mask))
    if support is not None:
        known = real_array("support", support).astype(float)
        support = fold_rows(known, mask, trailing=1)
    costs = _cost_tables(knowledge.costs, len(units.cost_ranges))
    if costs is not None:
        ranges = (Units(cost_ranges=(pair,)) for pair in units.cost_ranges)
        each = zip(ranges, costs, strict=False)  # the core refuses another number of tables
        costs = [own.costs_in("costs", fold_rows(cost, mask)) for own, cost in each] or costs
    return {
        "stationary": float(truth_value("stationary", knowledge.stationary)),
        "rewards": rewards,
        "costs": costs,
        "support": support,
    }


def _cost_tables(costs: ArrayLike | None, constraints: int) -> list[Any] | None:
    """Known costs as a list with one table for each constraint."""
    if costs is None:
        return None
    array = real_array("costs", costs)
    # A model's costs are [M, H, S, A]; with one constraint the first axis may be left out.
    if constraints == 1 and not (array.ndim == 4 or (array.ndim == 3 and len(array) == 1)):
        return [array]
    return list(array)


@dataclass(frozen=True, slots=True, eq=False)
class PolicyBounds:
    """What is certified of a policy's expected costs, and what it rests on.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> bounds = op.certify(pair.safe_policy, learner)
        >>> bounds.is_safe, bounds.upper, bounds.limits
        (False, array([2.]), array([0.6]))
    """

    worst_case: FloatArray
    """Upper bounds, ``[M]``: the worst case over the confidence sets, which rest on all episodes."""
    best_case: FloatArray
    """Lower bounds, ``[M]``: the best case over the same sets."""
    own_episodes_bound: FloatArray | None
    """Upper bounds, ``[M]``, from the episodes that the policy has played itself; None if it has played
    none that count."""
    own_episodes: IntArray
    """How many episodes that bound rests on, ``[M]``."""
    limits: FloatArray
    """The cost limits, ``[M]``."""

    @property
    def upper(self) -> FloatArray:
        """The smaller of the two upper bounds, ``[M]``."""
        if self.own_episodes_bound is None:
            return self.worst_case
        return np.minimum(self.worst_case, self.own_episodes_bound)

    @property
    def is_safe(self) -> bool:
        """Whether the policy is certified to be within every limit by itself, without a coin."""
        return bool((self.upper <= self.limits).all())

    def __repr__(self) -> str:
        safe = "safe" if self.is_safe else "not certified to be safe"
        numbers = f"lower={short(self.best_case)}, limits={short(self.limits)}"
        played = f"{int(self.own_episodes.max())} episodes of its own"
        return f"PolicyBounds({safe}: upper={short(self.upper)}, {numbers}, {played})"


def certify(policy: PolicyLike, learner: OptPessMix) -> PolicyBounds:
    """Bounds on the expected costs of a policy ``[H, S, A]``, by all that a learner has seen.

    With probability 1 - delta the bounds of all policies hold at all times at once.

    Args:
        policy: ``[H, S, A]``, any policy.
        learner: what it has seen, and its limits.

    Example:
        >>> import numpy as np, optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...     baseline=op.SafeBaseline(pair.safe_policy, op.SafetyMargin(0.6, 0.135)))
        >>> op.certify(pair.safe_policy, learner).upper  # nothing has been seen yet
        array([2.])
    """
    hint = "it has the confidence sets; the order is certify(policy, learner)"
    check_type("learner", learner, OptPessMix, hint)
    upper, lower, own, episodes = learner._inner.certify(policy)
    played, units, horizon = np.array(episodes), learner.units, learner.shape.horizon
    return PolicyBounds(
        worst_case=units.cost_values_out(np.array(upper), horizon),
        best_case=units.cost_values_out(np.array(lower), horizon),
        own_episodes_bound=units.cost_values_out(np.array(own), horizon) if played.any() else None,
        own_episodes=played,
        limits=learner.cost_limits,
    )
