"""Arguments of learners (margins, baselines, confidence rules) and the guarantees that follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, PolicyLike
from optpess.checks import as_array, check_type, real_number, shown
from optpess.display import short_repr
from optpess.exceptions import InvalidInputError

__all__ = [
    "BoundedViolation",
    "ConfidenceRule",
    "CostRadius",
    "Guarantee",
    "PaperRadius",
    "SafeBaseline",
    "SafeMixture",
    "SafetyMargin",
    "Scaled",
    "Sharp",
    "SubGaussianRadius",
    "Theorem",
    "ZeroViolation",
    "factor_of",
]


@dataclass(frozen=True, slots=True)
class Theorem:
    """The bonus b = (1 + H S) sqrt(Z / N) that the theorems require.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessLP(shape=pair.model.shape, initial=pair.model.initial, num_episodes=100,
        ...                        baseline=pair.baseline)
        >>> learner.guarantee
        ZeroViolation(probability=0.95)
    """


@dataclass(frozen=True, slots=True)
class Scaled:
    """The theorem's bonus, multiplied by a factor. Voids the guarantee.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OPDOP(shape=model.shape, initial=model.initial, num_episodes=100,
        ...                    margin=op.SafetyMargin(0.6, 0.135), confidence=op.Scaled(0.01))
        >>> learner.guarantee is None
        True
    """

    factor: float


@dataclass(frozen=True, slots=True)
class Sharp:
    """Bonuses from confidence sets that hold at all times, for :class:`OptPessLP`. Keeps the guarantee
    and leaves the baseline hundreds of times earlier than :class:`Theorem`.

    Observed rewards and costs must lie in their ranges; others are refused. Counts are kept for each
    step; pooling them over steps of a stationary problem does not fit Algorithm 1.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessLP(shape=pair.model.shape, initial=pair.model.initial, num_episodes=100,
        ...                        baseline=pair.baseline, confidence=op.Sharp())
        >>> learner.guarantee
        ZeroViolation(probability=0.95, bounded_observations=True)
    """


@dataclass(frozen=True, slots=True)
class SubGaussianRadius:
    """A confidence radius for the mean cost of the baseline, valid for the paper's noise.

    Example:
        >>> import optpess as op
        >>> policy = op.zoo.problem("pair").safe_policy
        >>> op.SafeBaseline.estimated(policy, cost_limit=0.6, radius=op.SubGaussianRadius())
        SafeBaseline.estimated(policy [2, 2, 2], cost_limit=0.6, radius=SubGaussianRadius())
    """

    def _name(self) -> str:
        return "sub-gaussian"


@dataclass(frozen=True, slots=True)
class PaperRadius:
    """The radius printed in the paper's Appendix E. It is too small and voids the guarantee.

    Example:
        >>> import optpess as op
        >>> policy = op.zoo.problem("pair").safe_policy
        >>> op.SafeBaseline.estimated(policy, cost_limit=0.6, radius=op.PaperRadius())
        SafeBaseline.estimated(policy [2, 2, 2], cost_limit=0.6, radius=PaperRadius())
    """

    def _name(self) -> str:
        return "paper"


@dataclass(frozen=True, slots=True, repr=False)
class ZeroViolation:
    """With this probability, no policy deployed in any of the K episodes costs more than the limit,
    provided Assumptions 2.1 (noise) and 2.2 (the baseline is as safe as stated) hold.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessLP(shape=pair.model.shape, initial=pair.model.initial, num_episodes=100,
        ...                        baseline=pair.baseline)
        >>> learner.guarantee
        ZeroViolation(probability=0.95)
    """

    probability: float
    """At least 1 - delta."""
    bounded_observations: bool = False
    """Whether it also rests on observed rewards and costs in their ranges, as :class:`Sharp` assumes."""

    def __repr__(self) -> str:
        assumed = ", bounded_observations=True" if self.bounded_observations else ""
        return f"ZeroViolation(probability={self.probability!r}{assumed})"


@dataclass(frozen=True, slots=True)
class BoundedViolation:
    """With this probability, the sum over episodes of (cost - limit) stays below a constant that does
    not depend on K, provided Assumptions 2.1 (noise) and 2.2 (some policy is that safe) hold.

    The constant contains C'' (H - limit), the most that C'' episodes can add up to. So the theorem says
    nothing about a run of fewer than C'' episodes: each of them may exceed the limit.

    Example:
        >>> import optpess as op
        >>> promise = op.BoundedViolation(0.95, tightening_horizon=1000, num_episodes=4000)
        >>> promise.episodes_over_horizon
        4.0
    """

    probability: float
    """At least 1 - delta."""
    tightening_horizon: int | None = None
    """C'': until this episode the limit may be exceeded. None if it is beyond 2^62, and in records that
    were saved without it."""
    num_episodes: int | None = None
    """K; None in records that were saved without it."""

    @property
    def episodes_over_horizon(self) -> float | None:
        """K / C''. Below 1 the guarantee says nothing; None if one of the two numbers is None."""
        if self.tightening_horizon is None or self.num_episodes is None:
            return None
        return self.num_episodes / self.tightening_horizon


@dataclass(frozen=True, slots=True)
class SafeMixture:
    """With this probability, in every episode the expected cost given the past, over the coin too, is
    within every limit. It is no promise for the branch that the coin chose.

    Provided the baseline costs at most what was stated in expectation, observations are as stated, and
    all that was declared to be known is true. For :class:`StagedRollout` also: no episode costs more
    than the largest cost stated, and the candidate does not change: given the past, its expected cost
    is the same in every episode.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> learner.guarantee
        SafeMixture(probability=0.95, rests_on=())
    """

    probability: float
    """At least 1 - delta."""
    rests_on: tuple[str, ...] = ()
    """The entries of :class:`Knowledge` that were declared."""


ConfidenceRule: TypeAlias = Theorem | Scaled | Sharp
CostRadius: TypeAlias = SubGaussianRadius | PaperRadius
Guarantee: TypeAlias = ZeroViolation | BoundedViolation | SafeMixture


def factor_of(confidence: object, learner: str) -> float | None:
    """The factor of the theorem's bonus, None for 1. Refuses a rule without a proof for the learner."""
    if isinstance(confidence, Scaled):
        return real_number("factor", confidence.factor)
    if isinstance(confidence, Theorem):
        return None
    reason = "which has no proof for" if isinstance(confidence, Sharp) else "which is no rule of"
    raise InvalidInputError(
        f"confidence is {confidence!r}, {reason} {learner}; allowed are Theorem() and "
        "Scaled(factor), and for OptPess-LP Sharp()"
    )


def _numbers(argument: str, value: Any) -> tuple[float, ...]:
    """One number, or several, as floats."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        return (real_number(argument, value),)
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return (real_number(argument, value),)
    if len(value) == 0:
        raise InvalidInputError(f"{argument} is empty; it must be a number, or one a constraint")
    return tuple(real_number(f"{argument}[{m}]", number) for m, number in enumerate(value))


def _policy_in(policy: object) -> FloatArray:
    """A copy of a policy, read-only. Its elements are checked by the core when a learner is made."""
    made = np.array(as_array("policy", policy))
    if made.ndim != 3:
        hint = ""
        if made.dtype.kind in "iu" and made.ndim in (1, 2):
            hint = "; policy_from_actions makes a policy of action numbers"
        elif isinstance(policy, SafetyMargin):
            hint = "; the policy comes first, then the margin"
        raise InvalidInputError(
            f"policy has shape {list(made.shape)}; it must have the axes [H, S, A]{hint}"
        )
    made.setflags(write=False)
    return made


@dataclass(frozen=True, slots=True)
class SafetyMargin:
    """A cost limit and a safe cost strictly below it; or a sequence of each, for several constraints.

    Example:
        >>> import optpess as op
        >>> op.SafetyMargin(cost_limit=1.0, safe_cost=0.25)
        SafetyMargin(cost_limit=1.0, safe_cost=0.25)
        >>> try:
        ...     op.SafetyMargin(cost_limit=1.0, safe_cost=1.0)
        ... except op.NoSafetyMarginError as error:
        ...     print(str(error).split(";")[0])
        the safe cost 1 is not below the limit 1
    """

    cost_limit: float | Sequence[float]
    """The limit tau, or one for each constraint."""
    safe_cost: float | Sequence[float]
    """The safe cost c0, or one for each constraint."""

    def __post_init__(self) -> None:
        names = ("cost_limit", "safe_cost")
        limits, costs = (_numbers(name, getattr(self, name)) for name in names)
        if len(limits) != len(costs):
            raise InvalidInputError(
                f"cost_limit has {len(limits)} entries and safe_cost {len(costs)}; there must be one of "
                "each for every constraint"
            )
        for limit, cost in zip(limits, costs, strict=True):
            _core.check_margin(limit, cost)
        for name, numbers in zip(names, (limits, costs), strict=True):
            several = np.ndim(getattr(self, name)) > 0
            object.__setattr__(self, name, numbers if several else numbers[0])

    def __repr__(self) -> str:
        limit, cost = short_repr(self.cost_limit), short_repr(self.safe_cost)
        return f"SafetyMargin(cost_limit={limit}, safe_cost={cost})"

    @property
    def _limits(self) -> tuple[float, ...]:
        return _numbers("cost_limit", self.cost_limit)

    @property
    def _safe_costs(self) -> tuple[float, ...]:
        return _numbers("safe_cost", self.safe_cost)


@dataclass(frozen=True, slots=True, eq=False)
class SafeBaseline:
    """A policy ``[H, S, A]`` that is known to cost at most the margin's safe cost.

    Use :meth:`estimated` for a policy whose cost is known to be below the limit, but not by how much.

    Example:
        >>> import optpess as op
        >>> policy = op.policy_from_actions([[0, 0], [0, 0]], num_actions=2)
        >>> op.SafeBaseline(policy, op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        SafeBaseline(policy [2, 2, 2], margin=SafetyMargin(cost_limit=0.6, safe_cost=0.135))
    """

    policy: PolicyLike
    """``[H, S, A]``, copied and read-only."""
    margin: SafetyMargin | Sequence[SafetyMargin] | None
    """The limit and the safe cost, or one of them for each constraint; None if the cost is to be
    estimated."""
    # Given by `estimated` alone.
    _cost_limit: float | Sequence[float] | None = field(default=None, init=False)
    _radius: CostRadius = field(default=SubGaussianRadius(), init=False)

    def __post_init__(self) -> None:
        if self.margin is None:
            raise InvalidInputError(
                "a SafeBaseline needs a margin; for a cost to be estimated, use SafeBaseline.estimated"
            )
        object.__setattr__(self, "policy", _policy_in(self.policy))
        if not isinstance(self.margin, SafetyMargin | None):
            given: object = self.margin
            margins: tuple[object, ...] = (given,)
            if isinstance(given, Iterable) and not isinstance(given, np.ndarray):
                margins = tuple(given)
            if not margins:
                raise InvalidInputError("margin is empty; a SafeBaseline needs at least one margin")
            hint = "op.SafetyMargin(cost_limit=..., safe_cost=...)"
            for margin in margins:
                check_type("margin", margin, SafetyMargin, hint)
            object.__setattr__(self, "margin", margins)

    @classmethod
    def estimated(
        cls,
        policy: PolicyLike,
        cost_limit: float | Sequence[float],
        *,
        radius: CostRadius = SubGaussianRadius(),
    ) -> Self:
        """A baseline of unknown cost, which the learner first estimates by playing it: with ``radius``
        in OptPess-LP (Appendix E), which uses half of its failure probability; by its certificates in
        OptPess-Mix. ``cost_limit`` is a number, or one for each constraint.
        """
        limits = _numbers("cost_limit", cost_limit)
        if not isinstance(radius, CostRadius):
            raise InvalidInputError(
                f"radius is {shown(radius)}; it must be SubGaussianRadius() or PaperRadius()"
            )
        made = object.__new__(cls)
        for name, value in (
            ("policy", _policy_in(policy)),
            ("margin", None),
            ("_cost_limit", limits if np.ndim(cost_limit) else limits[0]),
            ("_radius", radius),
        ):
            object.__setattr__(made, name, value)
        return made

    @property
    def cost_limits(self) -> FloatArray:
        """The cost limits, ``[M]``."""
        if self.margin is None:
            assert self._cost_limit is not None
            return np.atleast_1d(np.array(self._cost_limit, dtype=np.float64))
        return np.array([limit for margin in self._margins for limit in margin._limits])

    @property
    def safe_costs(self) -> FloatArray | None:
        """The safe costs, ``[M]``; None if they are to be estimated."""
        if self.margin is None:
            return None
        return np.array([cost for margin in self._margins for cost in margin._safe_costs])

    @property
    def cost_limit(self) -> float:
        """The cost limit tau; the first one of several constraints."""
        return float(self.cost_limits[0])

    @property
    def safe_cost(self) -> float | None:
        """The safe cost; the first one of several constraints. None if it is to be estimated."""
        return None if self.safe_costs is None else float(self.safe_costs[0])

    def __repr__(self) -> str:
        policy = f"policy {list(np.shape(self.policy))}"
        if self.margin is None:
            limit = short_repr(self._cost_limit)
            return f"SafeBaseline.estimated({policy}, cost_limit={limit}, radius={self._radius!r})"
        if isinstance(self.margin, SafetyMargin):
            return f"SafeBaseline({policy}, margin={self.margin!r})"
        costs = short_repr(tuple(self.safe_costs.tolist())) if self.safe_costs is not None else "None"
        limits = short_repr(tuple(self.cost_limits.tolist()))
        return f"SafeBaseline({policy}, cost_limits={limits}, safe_costs={costs})"

    @property
    def _margins(self) -> Sequence[SafetyMargin]:
        if isinstance(self.margin, SafetyMargin):
            return (self.margin,)
        return self.margin or ()
