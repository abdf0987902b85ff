"""The checkpoint of a rollout: the learner and all episodes so far in one file, without pickle."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpess import storage
from optpess.exceptions import CheckpointError, InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.stored import REQUIRED, arrays_of, learner_of
from optpess.run.rollout_record import EpisodeList

__all__ = ["Resumed", "RolloutCheckpoint"]

_FORMAT = "optpess.RolloutCheckpoint/1"
_FIELDS = storage.Fields(
    _FORMAT,
    required=REQUIRED
    | {
        "facts": "U",  # JSON: the arguments of the rollout
        "start": "U",  # a hash of the learner as it was before the first episode
        "first": "i",
        "returns": "f",
        "lengths": "i",
        "costs": "f",
        "certified": "f",
        "sources": "U",
    },
)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a checkpoint holds."""

    record: EpisodeList
    """The episodes so far."""
    first: int
    """The number of the first one."""
    learner: Learner
    """The learner after the last one."""


class RolloutCheckpoint:
    """A file from which a rollout goes on.

    Args:
        path: the file.
        facts: the arguments of the rollout that must be the same when it goes on.
        learner: the learner before the first episode; of one that goes on, wherever it is.
    """

    def __init__(self, path: Path, facts: dict[str, Any], learner: Learner) -> None:
        with storage.naming(path):
            path.parent.stat()
            if path.is_dir():
                raise IsADirectoryError
        self._path, self._facts, self._start = path, facts, _hash_of(learner)

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self._path.exists()

    def save(self, learner: Learner, record: EpisodeList, first: int) -> None:
        """Writes everything to a temporary file, then renames it."""
        tags = {
            "format": np.array(_FORMAT),
            "facts": np.array(json.dumps(self._facts)),
            "start": np.array(self._start),
            "first": np.array(first),
        }
        storage.save_arrays(self._path, tags | arrays_of(learner) | record.to_arrays())

    def load(self, learner: Learner, episodes: int) -> Resumed:
        """What the file holds, checked; the learner does not change.

        The file must be of a learner with the same arguments, and of a rollout with the same seed and
        ranges. The learner must be where the rollout began, or where the file ends.
        """
        try:
            arrays = storage.load_arrays(self._path, _FIELDS)
            stored, first = learner_of(arrays), int(arrays["first"])
            record = EpisodeList.from_arrays(arrays, len(stored._limits))
            facts = json.loads(str(arrays["facts"]))
        except (InvalidInputError, ValueError, TypeError) as error:
            raise CheckpointError(f"checkpoint {self._path} cannot be read: {error}") from error
        self._compare("the class of the learner", type(stored).__name__, type(learner).__name__)
        for name in sorted(stored.parameters.keys() | learner.parameters.keys()):
            mine = learner.parameters.get(name)
            self._compare(f"the learner's {name}", stored.parameters.get(name), mine)
        for name in sorted(facts.keys() | self._facts.keys()):
            self._compare(name, facts.get(name), self._facts.get(name))
        if stored.episodes_observed != first + len(record):
            raise CheckpointError(f"checkpoint {self._path}: the learner and its episodes differ")
        if len(record) > episodes:
            raise CheckpointError(
                f"checkpoint {self._path} holds {len(record)} episodes; episodes is {episodes}, which "
                "counts those of all calls together"
            )
        self._check_place(learner, stored, first, str(arrays["start"]))
        self._start = str(arrays["start"])
        return Resumed(record, first, stored)

    def _check_place(self, learner: Learner, stored: Learner, first: int, start: str) -> None:
        """Refuses a learner that is neither where the rollout began nor where the file ends."""
        if self._start in (start, _hash_of(stored)):
            return
        seen, end = learner.episodes_observed, stored.episodes_observed
        if seen in (first, end):
            raise CheckpointError(
                f"checkpoint {self._path} is of another learner after {seen} episodes: it had another "
                "initial, baseline or knowledge, or saw other episodes"
            )
        raise CheckpointError(
            f"checkpoint {self._path} is of a rollout that began after {first} episodes and has come to "
            f"{end}; the learner has seen {seen}"
        )

    def _compare(self, what: str, stored: Any, given: Any) -> None:
        if json.dumps(stored) != json.dumps(given):
            raise CheckpointError(
                f"checkpoint {self._path}: {what} is {stored!r} there and {given!r} here; a rollout "
                "goes on with the same arguments"
            )


def _hash_of(learner: Learner) -> str:
    """Of all that a learner is: its arguments and what it has seen. Looking at it changes nothing."""
    twin = learner._inner.copy()
    twin.signals()  # refreshes what follows from the counts, as a look at the learner may have done
    return hashlib.sha256(twin.to_bytes()).hexdigest()
