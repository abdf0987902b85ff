"""Environments: Gymnasium's and your own, as learners and models see them.

:func:`sizes` gives the shape of a learner for an environment, :func:`check` looks for what a learner
could not be driven by. :func:`from_gymnasium` reads the tables of an environment into a model, and
:func:`as_gymnasium` samples a model as an environment. Only the last one needs Gymnasium.
"""

from __future__ import annotations

from optpess.environments.checker import EnvironmentFinding, EnvironmentReport, check
from optpess.environments.protocol import sizes
from optpess.environments.sampler import as_gymnasium
from optpess.environments.tables import from_gymnasium

__all__ = [
    "EnvironmentFinding",
    "EnvironmentReport",
    "as_gymnasium",
    "check",
    "from_gymnasium",
    "sizes",
]

# As users import them; pickles do not depend on the layout.
EnvironmentFinding.__module__ = EnvironmentReport.__module__ = __name__
