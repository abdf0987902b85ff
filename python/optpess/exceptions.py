"""The exceptions and the warning of this package. The compiled core raises the exceptions too; it
declares none of its own.
"""

from __future__ import annotations

__all__ = [
    "CertificateError",
    "CheckpointError",
    "GuaranteeWarning",
    "InfeasibleError",
    "InvalidInputError",
    "NoSafetyMarginError",
    "OptPessError",
    "ProtocolError",
    "SolverError",
]


class OptPessError(Exception):
    """The base class of all exceptions of this package.

    ``kind`` names the cause, one of a fixed list; None if the class says it all.
    """

    kind: str | None = None


class InvalidInputError(OptPessError, ValueError):
    """An argument is not what it must be.

    The message names the array, the index, what was found and what is allowed; nothing was changed.
    """


class NoSafetyMarginError(OptPessError, ValueError):
    """The safe cost is not below the limit, so there is no room to explore."""


class InfeasibleError(OptPessError):
    """No policy of the known model meets the limit.

    ``least_cost`` is the least attainable cost, with one constraint; None with several.
    """

    least_cost: float | None = None


class SolverError(OptPessError, ArithmeticError):
    """A numerical solver did not reach its tolerance; the message carries its status."""


class CertificateError(OptPessError):
    """Re-evaluating a policy contradicts the planner, or its cost is above the limit; the policy is
    not handed out.
    """


class ProtocolError(OptPessError, RuntimeError):
    """``next_policy`` and ``observe`` did not alternate, or were called after the last episode."""


class CheckpointError(OptPessError):
    """A stored run cannot be resumed."""


class GuaranteeWarning(UserWarning):
    """A guarantee says nothing about the run that is asked for, or does not hold in the true model."""
