"""Planning and safe learning in finite-horizon constrained Markov decision processes.

The names below are the public interface; everything else may change.
"""

from optpess import zoo
from optpess._core import (
    Transitions,
    backward_induction,
    evaluate,
    mix_policies,
    occupancy,
    policy_from_occupancy,
    sample,
    state_values,
    value_difference,
)
from optpess.exceptions import (
    CertificateError,
    CheckpointError,
    InfeasibleError,
    InvalidInputError,
    NoSafetyMarginError,
    OptPessError,
    ProtocolError,
    SolverError,
)
from optpess.model import CMDP, Shape
from optpess.noise import Bernoulli, Deterministic, Gaussian, Uniform
from optpess.planning import (
    frontier,
    solve,
    solve_least_cost,
    solve_signals,
    solve_unconstrained,
)
from optpess.plans import Certificate, Endpoint, Frontier, Plan

__all__ = [
    "CMDP",
    "Bernoulli",
    "Certificate",
    "CertificateError",
    "CheckpointError",
    "Deterministic",
    "Endpoint",
    "Frontier",
    "Gaussian",
    "InfeasibleError",
    "InvalidInputError",
    "NoSafetyMarginError",
    "OptPessError",
    "Plan",
    "ProtocolError",
    "Shape",
    "SolverError",
    "Transitions",
    "Uniform",
    "backward_induction",
    "evaluate",
    "frontier",
    "mix_policies",
    "occupancy",
    "policy_from_occupancy",
    "sample",
    "solve",
    "solve_least_cost",
    "solve_signals",
    "solve_unconstrained",
    "state_values",
    "value_difference",
    "zoo",
]
