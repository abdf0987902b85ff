"""Environments: Gymnasium's and your own, as learners and models see them.

:func:`sizes` gives the shape of a learner for an environment, :func:`check` looks for what a learner
could not be driven by. :func:`from_gymnasium` reads the tables of an environment into a model, and
:func:`as_gymnasium` samples a model as an environment. Only the last one needs Gymnasium.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optpess.environments.protocol import sizes

if TYPE_CHECKING:
    from optpess.environments.checker import EnvironmentFinding, EnvironmentReport, check
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

# Loaded when asked for: together they would take a fifth of the import of the package.
_PLACES = {
    "EnvironmentFinding": "checker",
    "EnvironmentReport": "checker",
    "as_gymnasium": "sampler",
    "check": "checker",
    "from_gymnasium": "tables",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """A name of a module that has not been loaded yet."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return __all__
