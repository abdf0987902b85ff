"""The file of a checkpoint: versioned, checksummed, replaced as a whole, the one before kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from optpess import storage
from optpess.arrays import StoredArrays
from optpess.exceptions import CheckpointError, InvalidInputError
from optpess.learn.base import Learner
from optpess.run.origin import versions

__all__ = ["CheckpointFile", "hash_of_arrays", "hash_of_learner", "learner_facts"]

_TAGS = {
    "facts": "U",  # JSON: what must be the same when the call goes on
    "checksum": "U",  # of all other arrays
}


class CheckpointFile:
    """A file from which a call goes on.

    Args:
        path: the file.
        tag: the name and the number of its format.
        required: the kinds of the arrays it holds, by name.
        facts: what must be the same when the call goes on, by names for messages.
        call: the call in a message.
    """

    def __init__(
        self, path: Path, tag: str, required: dict[str, str], facts: dict[str, Any], call: str
    ) -> None:
        with storage.naming(path):
            path.parent.stat()
            if path.is_dir():
                raise IsADirectoryError
        self.path, self._call = path, call
        self._check_name()
        self._fields = storage.Fields(tag, required=required | _TAGS)
        self._facts = {"the version of optpess": versions()["optpess"]} | facts

    @property
    def previous(self) -> Path:
        """The checkpoint before the last."""
        return self.path.with_name(f"{self.path.name}.previous")

    def _check_name(self) -> None:
        """Refuses a name that leaves no room for that of the checkpoint before."""
        if not hasattr(os, "pathconf"):
            return
        most = os.pathconf(self.path.parent, "PC_NAME_MAX")
        length, more = (len(os.fsencode(path.name)) for path in (self.path, self.previous))
        if more > most:
            raise InvalidInputError(
                f"the name of checkpoint {self.path} has {length} bytes; allowed are at most "
                f"{most - (more - length)}, as the checkpoint before it is {self.previous.name}"
            )

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self.path.exists()

    def write(self, arrays: StoredArrays) -> None:
        """Replaces the file as a whole; the old one becomes the previous one."""
        tagged = {
            "format": np.array(self._fields.format),
            "facts": np.array(json.dumps(self._facts)),
        } | arrays
        checksum = {"checksum": np.array(hash_of_arrays(tagged))}
        if self.exists():
            self._keep_previous()
        storage.save_arrays(self.path, tagged | checksum)

    def _keep_previous(self) -> None:
        # A second name for the old file, so that there is one under its own name at every moment. Of a
        # symbolic link the file it leads to: another link would lead to the new file.
        old = os.path.realpath(self.path)
        spare = self.previous.with_name(f".optpess-{os.urandom(8).hex()}.part")
        try:
            try:
                os.link(old, spare)
            except OSError:  # a file system without links, or another one
                shutil.copyfile(old, spare)
            spare.replace(self.previous)
        finally:
            spare.unlink(missing_ok=True)

    def read(self) -> StoredArrays:
        """The arrays, if the file is whole and of the same call."""
        try:
            arrays = storage.load_arrays(self.path, self._fields)
            tags = {name: arrays.pop(name) for name in ("checksum",)}
            if str(tags["checksum"]) != hash_of_arrays(arrays):
                raise InvalidInputError("the checksum does not match what it holds")
            facts = json.loads(str(arrays.pop("facts")))
        except (InvalidInputError, ValueError, TypeError) as error:
            raise self.unreadable(error) from error
        for name in [*self._facts, *(facts.keys() - self._facts.keys())]:
            self._compare(name, facts.get(name), self._facts.get(name))
        return arrays

    def unreadable(self, error: Exception) -> CheckpointError:
        """The refusal of a damaged file."""
        advice = f"; the checkpoint before it is {self.previous}" if self.previous.exists() else ""
        return CheckpointError(f"checkpoint {self.path} cannot be read: {error}{advice}")

    def _compare(self, what: str, stored: Any, given: Any) -> None:
        if json.dumps(stored) != json.dumps(given):
            raise CheckpointError(
                f"checkpoint {self.path}: {what} is {stored!r} there and {given!r} here; {self._call} "
                "goes on with the same arguments"
            )


def learner_facts(learner: Learner) -> dict[str, Any]:
    """The class and the arguments of a learner, as a checkpoint compares them."""
    facts = {"the class of the learner": type(learner).__name__}
    arguments = sorted(learner.parameters.items())
    return facts | {f"the learner's {name}": value for name, value in arguments}


def hash_of_learner(learner: Learner) -> str:
    """Of all that a learner is: its arguments and what it has seen. Looking at it changes nothing."""
    twin = learner._inner.copy()
    twin.signals()  # refreshes what follows from the counts, as a look at the learner may have done
    return hashlib.sha256(twin.to_bytes()).hexdigest()


def hash_of_arrays(arrays: StoredArrays) -> str:
    """Of the names, the types, the shapes and the numbers of some arrays."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {arrays[name].shape} ".encode())
        found.update(array.tobytes())
    return found.hexdigest()
