"""Every exception optpess raises on purpose.

The compiled core imports these classes; it has none of its own.
"""

from __future__ import annotations

__all__ = [
    "CertificateError",
    "CheckpointError",
    "InfeasibleError",
    "InvalidInputError",
    "NoSafetyMarginError",
    "OptPessError",
    "ProtocolError",
    "SolverError",
]


class OptPessError(Exception):
    """The common ancestor.

    ``kind`` names the cause, one of a fixed list; None if there is no finer cause than the class.
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
    """Re-evaluating a policy contradicts the planner; the policy is not handed on."""


class ProtocolError(OptPessError, RuntimeError):
    """A learner's verbs were called out of turn, or past the last episode."""


class CheckpointError(OptPessError):
    """A stored run cannot be resumed."""
