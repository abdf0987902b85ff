"""What re-evaluating a policy found: certificates of deployments, re-evaluations of plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optpess.arrays import ArrayLike, FloatArray
from optpess.display import short, short_repr
from optpess.exceptions import CertificateError, InvalidInputError

__all__ = ["Certificate", "Reevaluation"]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Certificate:
    """The pessimistic costs of a deployed policy, none of which is above its limit.

    The costs are computed again after planning, by code that took no part in it. A certificate with a
    cost above its limit cannot be made.

    Args:
        costs: ``[M]``, the cost of the policy for each constraint.
        limits: ``[M]``.
        repair: the weight of the baseline in the policy that removes an excess due to rounding; usually
            0.

    Raises
    ------
        CertificateError: a cost is above its limit, or not a number.

    Example:
        >>> import optpess as op
        >>> certificate = op.Certificate(costs=[0.5], limits=[0.75], repair=0.0)
        >>> certificate.cost, certificate.least_slack
        (0.5, 0.25)
    """

    costs: FloatArray
    """The cost of the policy for each constraint, ``[M]``, read-only."""
    limits: FloatArray
    """The limits, ``[M]``, read-only."""
    repair: float
    """The weight of the baseline in the policy that removes an excess due to rounding; usually 0."""

    def __init__(self, costs: ArrayLike, limits: ArrayLike, repair: float = 0.0) -> None:
        made = {"costs": np.array(costs, np.float64), "limits": np.array(limits, np.float64)}
        shapes = {array.shape for array in made.values()}
        if made["costs"].ndim != 1 or len(shapes) != 1 or made["costs"].size == 0:
            raise InvalidInputError(
                f"costs has shape {made['costs'].shape} and limits {made['limits'].shape}; "
                "both must have the axes [M], with M at least 1"
            )
        if not (made["costs"] <= made["limits"]).all():
            raise CertificateError(
                f"the costs {made['costs'].tolist()} are not within the limits {made['limits'].tolist()}"
            )
        for name, array in made.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "repair", float(repair))

    @property
    def slack(self) -> FloatArray:
        """Limits - costs, ``[M]``, never negative."""
        return self.limits - self.costs

    @property
    def least_slack(self) -> float:
        """The smallest slack of any constraint."""
        return float(self.slack.min())

    @property
    def cost(self) -> float:
        """The cost, if there is one constraint."""
        return _only(self.costs, "cost")

    @property
    def limit(self) -> float:
        """The limit, if there is one constraint."""
        return _only(self.limits, "limit")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.costs, self.limits, self.repair)  # pickles are checked too

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        numbers = f"costs={short_repr(self.costs)}, limits={short_repr(self.limits)}"
        return f"Certificate({numbers}, repair={self.repair!r})"

    def _key(self) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        return tuple(self.costs.tolist()), tuple(self.limits.tolist()), self.repair


@dataclass(frozen=True, slots=True, eq=False)
class Reevaluation:
    """What re-evaluating a plan of a known model found, by code that took no part in planning.

    If the least attainable cost equals the limit, a cost may be above its limit by a rounding error.

    Example:
        >>> import optpess as op
        >>> certificate = op.solve(op.zoo.pair()).certificate
        >>> certificate.limits, bool(certificate.gap < 1e-9)
        (array([0.6]), True)
    """

    costs: FloatArray
    """V(c_m) of the policy, ``[M]``."""
    limits: FloatArray
    """The limits, ``[M]``."""
    repair: float
    """The weight of a policy of lower cost that was mixed in, or the amount by which limits were
    lowered, to remove an excess due to rounding; 0 if nothing was repaired."""
    value: float
    """V(r) of the policy."""
    bound: float
    """An upper bound on the value of every policy within the limits: the Lagrangian at the plan's
    multipliers."""

    @property
    def slack(self) -> FloatArray:
        """Limits - costs, ``[M]``."""
        return self.limits - self.costs

    @property
    def gap(self) -> float:
        """Bound - value: the policy is at most this far from optimal."""
        return self.bound - self.value

    def __repr__(self) -> str:
        numbers = f"value={self.value:.6g}, bound={self.bound:.6g}, repair={self.repair:.3g}"
        return f"Reevaluation(costs={short(self.costs)}, limits={short(self.limits)}, {numbers})"


def _only(values: FloatArray, what: str) -> float:
    if values.size != 1:
        raise InvalidInputError(f"there are {values.size} constraints; use {what}s")
    return float(values[0])
