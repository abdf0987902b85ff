"""Arguments of learners (margins, baselines, confidence rules) and the guarantees that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, SupportsFloat, TypeAlias

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, PolicyLike
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
    """The bonus b = (1 + H S) sqrt(Z / N) that the theorems require."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """The theorem's bonus, multiplied by a factor. Voids the guarantee."""

    factor: float


@dataclass(frozen=True, slots=True)
class Sharp:
    """Bonuses from confidence sets that hold at all times, for :class:`OptPessLP`. Keeps the guarantee
    and leaves the baseline hundreds of times earlier than :class:`Theorem`.

    Observed rewards and costs must lie in [0, 1]; others are refused. Counts are kept for each step;
    pooling them over steps of a stationary problem does not fit Algorithm 1.
    """


@dataclass(frozen=True, slots=True)
class SubGaussianRadius:
    """A confidence radius for the mean cost of the baseline, valid for the paper's noise."""

    def _name(self) -> str:
        return "sub-gaussian"


@dataclass(frozen=True, slots=True)
class PaperRadius:
    """The radius printed in the paper's Appendix E. It is too small and voids the guarantee."""

    def _name(self) -> str:
        return "paper"


@dataclass(frozen=True, slots=True, repr=False)
class ZeroViolation:
    """With this probability, no policy deployed in any of the K episodes costs more than the limit,
    provided Assumptions 2.1 (noise) and 2.2 (the baseline is as safe as stated) hold.
    """

    probability: float
    """At least 1 - delta."""
    bounded_observations: bool = False
    """Whether it also rests on observed rewards and costs in [0, 1], which :class:`Sharp` assumes."""

    def __repr__(self) -> str:
        assumed = ", bounded_observations=True" if self.bounded_observations else ""
        return f"ZeroViolation(probability={self.probability!r}{assumed})"


@dataclass(frozen=True, slots=True)
class BoundedViolation:
    """With this probability, the sum over episodes of (cost - limit) stays below a constant that does
    not depend on K, provided Assumptions 2.1 (noise) and 2.2 (some policy is that safe) hold.

    The constant contains C'' (H - limit), the most that C'' episodes can add up to. So the theorem says
    nothing about a run of fewer than C'' episodes: each of them may exceed the limit.
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
        return float(confidence.factor)
    if isinstance(confidence, Theorem):
        return None
    reason = "which has no proof for" if isinstance(confidence, Sharp) else "which is no rule of"
    raise InvalidInputError(
        f"confidence is {confidence!r}, {reason} {learner}; allowed are Theorem and Scaled, and for "
        "OptPess-LP Sharp"
    )


@dataclass(frozen=True, slots=True)
class SafetyMargin:
    """A cost limit and a safe cost strictly below it.

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

    cost_limit: float
    safe_cost: float

    def __post_init__(self) -> None:
        _core.check_margin(float(self.cost_limit), float(self.safe_cost))


@dataclass(frozen=True, slots=True, eq=False)
class SafeBaseline:
    """A policy ``[H, S, A]`` that is known to cost at most the margin's safe cost.

    Use :meth:`estimated` for a policy whose cost is known to be below the limit, but not by how much.
    """

    policy: PolicyLike
    """``[H, S, A]``."""
    margin: SafetyMargin | Sequence[SafetyMargin] | None
    """The limit and the safe cost, or one of them for each constraint; None if the cost is to be
    estimated."""
    _cost_limit: float | Sequence[float] | None = None
    _radius: CostRadius = SubGaussianRadius()

    def __post_init__(self) -> None:
        if self.margin is None and self._cost_limit is None:
            raise InvalidInputError(
                "a SafeBaseline needs a margin; for a cost to be estimated, use SafeBaseline.estimated"
            )
        if not isinstance(self.margin, SafetyMargin | None):
            object.__setattr__(self, "margin", tuple(self.margin))
            if not self.margin:
                raise InvalidInputError("margin is empty; a SafeBaseline needs at least one margin")

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
        limit = float(cost_limit) if isinstance(cost_limit, SupportsFloat) else tuple(cost_limit)
        return cls(policy, None, limit, radius)

    @property
    def cost_limits(self) -> FloatArray:
        """The cost limits, ``[M]``."""
        if self.margin is None:
            assert self._cost_limit is not None
            return np.atleast_1d(np.array(self._cost_limit, dtype=np.float64))
        return np.array([float(margin.cost_limit) for margin in self._margins])

    @property
    def safe_costs(self) -> FloatArray | None:
        """The safe costs, ``[M]``; None if they are to be estimated."""
        if self.margin is None:
            return None
        return np.array([float(margin.safe_cost) for margin in self._margins])

    @property
    def cost_limit(self) -> float:
        """The cost limit tau; the first one of several constraints."""
        return float(self.cost_limits[0])

    @property
    def safe_cost(self) -> float | None:
        """The safe cost; the first one of several constraints. None if it is to be estimated."""
        return None if self.safe_costs is None else float(self.safe_costs[0])

    @property
    def _margins(self) -> Sequence[SafetyMargin]:
        if isinstance(self.margin, SafetyMargin):
            return (self.margin,)
        return self.margin or ()
