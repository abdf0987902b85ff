"""Packs a learner into arrays of a file and unpacks it: its class, its arguments, its state."""

from __future__ import annotations

import json
import zlib
from os import PathLike

import numpy as np

from optpess import _core, storage
from optpess.arrays import StoredArrays
from optpess.checks import check_path, unknown_name
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.optpess import OptPessLP, _HighsPlanner

__all__ = ["REQUIRED", "arrays_of", "learner_of", "load_learner", "save_learner"]

_FORMAT = "optpess.Learner/2"
# The arrays of a stored learner and their kinds of elements, as `storage.Fields` takes them.
REQUIRED = {
    "learner_class": "U",
    "learner_facts": "U",  # JSON: the parameters and what else the object holds
    "learner_state": "u",  # the bytes of the core
    "learner_checksum": "i",  # of the three above
}


def arrays_of(learner: Learner) -> StoredArrays:
    """All that a learner is, as arrays for a file without pickle. The learner does not change."""
    kept = {name: value for name, value in vars(learner).items() if name not in ("_inner", "_highs")}
    kind, facts = type(learner).__name__, json.dumps(kept)
    state = learner._inner.to_bytes()
    return {
        "learner_class": np.array(kind),
        "learner_facts": np.array(facts),
        "learner_state": np.frombuffer(state, dtype=np.uint8),
        "learner_checksum": np.array(_checksum(kind, facts, state)),
    }


def learner_of(arrays: StoredArrays) -> Learner:
    """The learner that :func:`arrays_of` packed. It goes on as the one that was stored would.

    Arrays that do not hold a learner, or whose checksum does not match, are refused.
    """
    kind, facts = str(arrays["learner_class"]), str(arrays["learner_facts"])
    state = arrays["learner_state"].tobytes()
    # Most damaged bytes are a learner too, with other counts or another baseline.
    if arrays["learner_checksum"].tolist() != _checksum(kind, facts, state):
        raise InvalidInputError("not a stored learner: the checksum does not match the bytes")
    classes = {found.__name__: found for found in _subclasses(Learner)}
    if kind not in classes:
        raise unknown_name("the class of a stored learner", kind, sorted(classes))
    made = object.__new__(classes[kind])
    try:
        made.__dict__.update(json.loads(facts))
        made._inner = _core.Learner.from_bytes(state)
        made._check_arguments()
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"not a stored learner: {error}") from error
    if isinstance(made, OptPessLP):
        made._highs = _HighsPlanner(*made._inner.start()) if made.engine == "highs" else None
    return made


def save_learner(learner: Learner, path: str | PathLike[str]) -> None:
    """Writes a learner to a file; if that fails, an old file stays as it was."""
    storage.save_arrays(check_path(path), {"format": np.array(_FORMAT)} | arrays_of(learner))


def load_learner(path: str | PathLike[str]) -> Learner:
    """Reads a learner written by :meth:`Learner.save`. It goes on as the one that was saved would.

    Nothing is unpickled. A file that is damaged or holds something else is refused.

    Args:
        path: the file.

    Example:
        >>> import tempfile, pathlib, optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...     baseline=op.SafeBaseline(pair.safe_policy, op.SafetyMargin(0.6, 0.135)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     learner.save(pathlib.Path(folder) / "learner.npz")
        ...     op.load_learner(pathlib.Path(folder) / "learner.npz").episodes_observed
        0
    """
    arrays = storage.load_arrays(check_path(path), storage.Fields(_FORMAT, required=REQUIRED))
    try:
        return learner_of(arrays)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def _checksum(kind: str, facts: str, state: bytes) -> int:
    return zlib.crc32(state, zlib.crc32(f"{kind}\n{facts}\n".encode()))


def _subclasses(kind: type[Learner]) -> list[type[Learner]]:
    """All classes below this one."""
    direct = kind.__subclasses__()
    return direct + [each for child in direct for each in _subclasses(child)]
