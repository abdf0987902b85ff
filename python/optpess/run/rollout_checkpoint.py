"""The checkpoint of a rollout: the learner and all episodes so far in one file, without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from optpess import storage
from optpess.exceptions import CheckpointError, InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.stored import REQUIRED, arrays_of, learner_of
from optpess.run.rollout_record import EpisodeList

__all__ = ["RolloutCheckpoint"]

_FORMAT = "optpess.RolloutCheckpoint/1"
_FIELDS = storage.Fields(
    _FORMAT,
    required=REQUIRED
    | {
        "facts": "U",
        "first": "i",
        "returns": "f",
        "lengths": "i",
        "costs": "f",
        "certified": "f",
        "sources": "i",
        "source_names": "U",
    },
)


class RolloutCheckpoint:
    """A file from which a rollout goes on."""

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self._path, self._facts = path, facts

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self._path.exists()

    def save(self, learner: Learner, record: EpisodeList, first: int) -> None:
        """Writes everything to a temporary file, then renames it."""
        tags = {
            "format": np.array(_FORMAT),
            "facts": np.array(json.dumps(self._facts)),
            "first": np.array(first),
        }
        storage.save_arrays(self._path, tags | arrays_of(learner) | record.to_arrays())

    def resume(self, learner: Learner) -> tuple[EpisodeList, int]:
        """Moves the learner to where the file ends; returns its episodes and the number of the first.

        The file must be of the same kind of learner with the same arguments, and of a rollout with the
        same seed and ranges. The learner must be where the rollout began, or anywhere within it.
        """
        try:
            arrays = storage.load_arrays(self._path, _FIELDS)
            stored, first = learner_of(arrays), int(arrays["first"])
            record = EpisodeList.from_arrays(arrays, len(stored._limits))
            facts = json.loads(str(arrays["facts"]))
        except (InvalidInputError, ValueError, TypeError) as error:
            raise CheckpointError(f"checkpoint {self._path} cannot be read: {error}") from error
        self._compare("the class of the learner", type(stored).__name__, type(learner).__name__)
        for name in stored.parameters.keys() | learner.parameters.keys():
            mine = learner.parameters.get(name)
            self._compare(f"the learner's {name}", stored.parameters.get(name), mine)
        for name in facts.keys() | self._facts.keys():
            self._compare(name, facts.get(name), self._facts.get(name))
        if stored.episodes_observed != first + len(record):
            raise CheckpointError(f"checkpoint {self._path}: the learner and its episodes differ")
        if not first <= learner.episodes_observed <= stored.episodes_observed:
            raise CheckpointError(
                f"checkpoint {self._path} is of episodes {first} to {stored.episodes_observed}; the "
                f"learner has seen {learner.episodes_observed}"
            )
        learner._inner = stored._inner
        return record, first

    def _compare(self, what: str, stored: Any, given: Any) -> None:
        if json.dumps(stored) != json.dumps(given):
            raise CheckpointError(
                f"checkpoint {self._path}: {what} is {stored!r} there and {given!r} here; a rollout "
                "goes on with the same arguments"
            )
