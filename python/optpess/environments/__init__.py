"""Environments: Gymnasium's and your own, as learners and models see them.

:func:`sizes` gives the shape of a learner for an environment. Gymnasium itself is not needed.
"""

from __future__ import annotations

from optpess.environments.protocol import sizes

__all__ = ["sizes"]
