"""What a run started from: its model and its learner, and the versions of the software."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from optpess.arrays import StoredArrays
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.stored import REQUIRED, arrays_of, learner_of
from optpess.model import _FIELDS as MODEL_FIELDS
from optpess.model import CMDP

__all__ = ["KINDS", "Origin", "versions"]

_PREFIX = "model_"
# The arrays of an origin in a file, and their kinds of elements.
KINDS = {_PREFIX + name: kind for name, kind in MODEL_FIELDS.kinds().items()} | REQUIRED


@cache
def versions() -> dict[str, str]:
    """The versions of optpess, NumPy and Python."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("optpess")
    except PackageNotFoundError:  # on the path, but not installed
        own = "not installed"
    return {
        "optpess": own,
        "numpy": np.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


@dataclass(frozen=True, slots=True)
class Origin:
    """The model of a run and the learner as it was before the first episode.

    That of a file stays in the form of arrays until it is needed, so that curves can be read even if a
    later version cannot restore the learner.
    """

    _pair: tuple[CMDP, Learner] | None
    _stored: StoredArrays | None = None

    @classmethod
    def of(cls, arrays: StoredArrays) -> Self | None:
        """The origin within the arrays of a file; None if it holds none."""
        stored = {name: array for name, array in arrays.items() if name in KINDS}
        return cls(None, stored) if stored else None

    def arrays(self) -> StoredArrays:
        """The arrays to be stored."""
        if self._pair is None:
            return dict(self._stored or {})
        model, learner = self._pair
        return {_PREFIX + name: array for name, array in model._arrays().items()} | arrays_of(learner)

    def restore(self) -> tuple[CMDP, Learner]:
        """The model and the learner."""
        if self._pair is not None:
            return self._pair
        stored = self._stored or {}
        try:
            model = {
                name.removeprefix(_PREFIX): array
                for name, array in stored.items()
                if name.startswith(_PREFIX)
            }
            return CMDP._from_arrays(model), learner_of(stored)
        except LookupError as error:
            raise InvalidInputError(
                f"the model or the learner is incomplete: no array {error}"
            ) from error

    def same_as(self, other: Origin) -> bool:
        """Whether both have the same model and the same learner, to the bit."""
        if self._pair is not None and other._pair is not None and self._pair[0] is other._pair[0]:
            ours, theirs = (arrays_of(pair[1]) for pair in (self._pair, other._pair))
        else:
            ours, theirs = self.arrays(), other.arrays()
        return ours.keys() == theirs.keys() and all(
            array.dtype == theirs[name].dtype
            and array.shape == theirs[name].shape
            and array.tobytes() == theirs[name].tobytes()
            for name, array in ours.items()
        )
