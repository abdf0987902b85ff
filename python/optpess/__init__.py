"""Planning and safe learning in finite-horizon constrained Markov decision processes.

The names below are the public interface; everything else may change.
"""

from optpess import zoo
from optpess._core import (
    Transitions,
    backward_induction,
    evaluate,
    extended_induction,
    mix_policies,
    occupancy,
    policy_from_occupancy,
    sample,
    state_values,
    value_difference,
)
from optpess.comparison import Comparison, compare
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
from optpess.extended import ExtendedPlan, solve_extended
from optpess.learners import Deployment, OptPessLP, OptPessPrimalDual
from optpess.model import CMDP, Shape
from optpess.noise import Bernoulli, Deterministic, Gaussian, Uniform
from optpess.peers import (
    CUCRL,
    OPDOP,
    AlwaysBaseline,
    OptCMDP,
    OptCMDPBonus,
    OptDualCMDP,
    OptPrimalDualCMDP,
    UnconstrainedOptimistic,
)
from optpess.planning import (
    frontier,
    solve,
    solve_least_cost,
    solve_signals,
    solve_unconstrained,
)
from optpess.plans import Certificate, Endpoint, Frontier, Plan
from optpess.runs import Run, load_run
from optpess.simulation import Forecast, forecast, simulate
from optpess.terms import (
    BoundedViolation,
    PaperRadius,
    SafeBaseline,
    SafetyMargin,
    Scaled,
    SubGaussianRadius,
    Theorem,
    ZeroViolation,
)

__all__ = [
    "CMDP",
    "CUCRL",
    "OPDOP",
    "AlwaysBaseline",
    "Bernoulli",
    "BoundedViolation",
    "Certificate",
    "CertificateError",
    "CheckpointError",
    "Comparison",
    "Deployment",
    "Deterministic",
    "Endpoint",
    "ExtendedPlan",
    "Forecast",
    "Frontier",
    "Gaussian",
    "InfeasibleError",
    "InvalidInputError",
    "NoSafetyMarginError",
    "OptCMDP",
    "OptCMDPBonus",
    "OptDualCMDP",
    "OptPessError",
    "OptPessLP",
    "OptPessPrimalDual",
    "OptPrimalDualCMDP",
    "PaperRadius",
    "Plan",
    "ProtocolError",
    "Run",
    "SafeBaseline",
    "SafetyMargin",
    "Scaled",
    "Shape",
    "SolverError",
    "SubGaussianRadius",
    "Theorem",
    "Transitions",
    "UnconstrainedOptimistic",
    "Uniform",
    "ZeroViolation",
    "backward_induction",
    "compare",
    "evaluate",
    "extended_induction",
    "forecast",
    "frontier",
    "load_run",
    "mix_policies",
    "occupancy",
    "policy_from_occupancy",
    "sample",
    "simulate",
    "solve",
    "solve_extended",
    "solve_least_cost",
    "solve_signals",
    "solve_unconstrained",
    "state_values",
    "value_difference",
    "zoo",
]
