"""Planning and safe learning in finite-horizon constrained Markov decision processes.

The names below are the public interface; everything else may change. They fall into groups:

- models: ``CMDP``, ``Transitions``, ``Shape``, ``Units``; noise models ``Bernoulli``, ``Deterministic``,
  ``Gaussian``, ``Uniform``, and ``Noise``, any of them; ``zoo``, named problems.
- evaluation: ``evaluate``, ``state_values``, ``occupancy``, ``policy_from_actions``,
  ``policy_from_occupancy``, ``mix_policies``, ``value_difference``, ``sample``.
- planning: ``solve``, ``solve_signals``, ``solve_unconstrained``, ``solve_least_cost``, ``frontier``,
  ``backward_induction``, ``solve_extended``, ``extended_induction``, and what they return: ``Plan``
  with its ``Reevaluation``, ``Endpoint``, ``Frontier``, ``ExtendedPlan``.
- learners: ``OptPessLP`` and ``OptPessPrimalDual``; those they are compared with, ``OptCMDP``,
  ``OptCMDPBonus``, ``OptDualCMDP``, ``OptPrimalDualCMDP``, ``OPDOP``, ``CUCRL``, ``SOPS``; the reference
  learners ``AlwaysBaseline`` and ``UnconstrainedOptimistic``. All are a ``Learner``. They hand out
  ``Deployment`` (with a ``Certificate``, or a ``Mixture`` of ``Member`` policies), ``Estimates``,
  ``Signals`` and ``Progress``. ``load_learner`` reads one from a file.
- the learner to start with, ``OptPessMix``, with ``Knowledge`` and ``Exploration``; ``certify`` gives
  ``PolicyBounds`` of any policy.
- arguments of learners: ``SafetyMargin``, ``SafeBaseline``; ``Theorem``, ``Sharp`` or ``Scaled`` (each
  is a ``ConfidenceRule``); ``SubGaussianRadius`` or ``PaperRadius`` (either is a ``CostRadius``). What
  follows is a ``Guarantee``: ``ZeroViolation``, ``BoundedViolation`` or
  ``SafeMixture``.
- deployment of any policy: ``StagedRollout``, with a ``RolloutCertificate``.
- environments of one's own and Gymnasium's, read, imported, made and checked: ``environments``;
  ``rollout`` drives a learner in one, and returns a ``Rollout`` of every ``Episode``.
- runs: ``simulate``, ``forecast``, ``compare``, ``load_run``, ``reproduce``, and what they return:
  ``Run`` with ``Trace`` and ``Finding``, ``Forecast``, ``Comparison``, ``Reproduction``.
- studies of many runs: ``Study``, ``sweep``, ``load_study``, and the ``StudyResult`` they return.
- reports: ``write_report`` writes runs, comparisons and rollouts to one HTML page.
- exceptions: ``OptPessError`` and its subclasses; a warning: ``GuaranteeWarning``.
"""

import inspect
from typing import TYPE_CHECKING

from optpess import environments, zoo
from optpess._core import (
    Transitions,
    backward_induction,
    evaluate,
    extended_induction,
    mix_policies,
    occupancy,
    policy_from_occupancy,
    state_values,
    value_difference,
)
from optpess.exceptions import (
    CertificateError,
    CheckpointError,
    GuaranteeWarning,
    InfeasibleError,
    InvalidInputError,
    NoSafetyMarginError,
    OptPessError,
    ProtocolError,
    SolverError,
)
from optpess.learn.base import Learner
from optpess.learn.deployment import Deployment, Estimates, Member, Mixture, Signals
from optpess.learn.mix import Exploration, Knowledge, OptPessMix, PolicyBounds, certify
from optpess.learn.optpess import OptPessLP, OptPessPrimalDual
from optpess.learn.peers import (
    CUCRL,
    OPDOP,
    SOPS,
    AlwaysBaseline,
    OptCMDP,
    OptCMDPBonus,
    OptDualCMDP,
    OptPrimalDualCMDP,
    UnconstrainedOptimistic,
)
from optpess.learn.progress import Progress
from optpess.learn.staged_rollout import RolloutCertificate, StagedRollout
from optpess.learn.stored import load_learner
from optpess.learn.terms import (
    BoundedViolation,
    ConfidenceRule,
    CostRadius,
    Guarantee,
    PaperRadius,
    SafeBaseline,
    SafeMixture,
    SafetyMargin,
    Scaled,
    Sharp,
    SubGaussianRadius,
    Theorem,
    ZeroViolation,
)
from optpess.model import CMDP, Shape
from optpess.model.noise import Bernoulli, Deterministic, Gaussian, Noise, Uniform
from optpess.model.policies import policy_from_actions
from optpess.model.sampling import sample
from optpess.model.units import Units
from optpess.plan._extended import solve_extended
from optpess.plan.certificate import Certificate, Reevaluation
from optpess.plan.frontier import frontier, solve_least_cost, solve_unconstrained
from optpess.plan.result import Endpoint, ExtendedPlan, Frontier, Plan
from optpess.plan.solve import solve, solve_signals
from optpess.report import write_report
from optpess.run.compare import Comparison, compare
from optpess.run.forecast import Forecast, forecast
from optpess.run.record import Finding, Run, Trace, load_run
from optpess.run.reproduce import Reproduction, reproduce
from optpess.run.rollout import Episode, rollout
from optpess.run.rollout_record import Rollout
from optpess.run.simulate import simulate
from optpess.study import Study, StudyResult, load_study, sweep

__all__ = [
    "CMDP",
    "CUCRL",
    "OPDOP",
    "SOPS",
    "AlwaysBaseline",
    "Bernoulli",
    "BoundedViolation",
    "Certificate",
    "CertificateError",
    "CheckpointError",
    "Comparison",
    "ConfidenceRule",
    "CostRadius",
    "Deployment",
    "Deterministic",
    "Endpoint",
    "Episode",
    "Estimates",
    "Exploration",
    "ExtendedPlan",
    "Finding",
    "Forecast",
    "Frontier",
    "Gaussian",
    "Guarantee",
    "GuaranteeWarning",
    "InfeasibleError",
    "InvalidInputError",
    "Knowledge",
    "Learner",
    "Member",
    "Mixture",
    "NoSafetyMarginError",
    "Noise",
    "OptCMDP",
    "OptCMDPBonus",
    "OptDualCMDP",
    "OptPessError",
    "OptPessLP",
    "OptPessMix",
    "OptPessPrimalDual",
    "OptPrimalDualCMDP",
    "PaperRadius",
    "Plan",
    "PolicyBounds",
    "Progress",
    "ProtocolError",
    "Reevaluation",
    "Reproduction",
    "Rollout",
    "RolloutCertificate",
    "Run",
    "SafeBaseline",
    "SafeMixture",
    "SafetyMargin",
    "Scaled",
    "Shape",
    "Sharp",
    "Signals",
    "SolverError",
    "StagedRollout",
    "Study",
    "StudyResult",
    "SubGaussianRadius",
    "Theorem",
    "Trace",
    "Transitions",
    "UnconstrainedOptimistic",
    "Uniform",
    "Units",
    "ZeroViolation",
    "__version__",
    "backward_induction",
    "certify",
    "compare",
    "environments",
    "evaluate",
    "extended_induction",
    "forecast",
    "frontier",
    "load_learner",
    "load_run",
    "load_study",
    "mix_policies",
    "occupancy",
    "policy_from_actions",
    "policy_from_occupancy",
    "reproduce",
    "rollout",
    "sample",
    "simulate",
    "solve",
    "solve_extended",
    "solve_least_cost",
    "solve_signals",
    "solve_unconstrained",
    "state_values",
    "sweep",
    "value_difference",
    "write_report",
    "zoo",
]

__version__: str

if not TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        """The version, read when asked for: importlib.metadata would take a fifth of the import."""
        if name == "__version__":
            from importlib.metadata import version

            return version("optpess")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def _show_public_place() -> None:
    """Makes classes and functions name this package as their module, also in tracebacks and pickles."""
    for thing in [globals()[name] for name in __all__ if name != "__version__"]:
        if inspect.isclass(thing) and (fields := inspect.get_annotations(thing, eval_str=True)):
            thing.__annotations__ = fields  # as text, they could not be found in this module
        if (inspect.isclass(thing) or inspect.isroutine(thing)) and thing.__module__ != __name__:
            thing.__module__ = __name__


_show_public_place()
