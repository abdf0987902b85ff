"""The checkpoint of a rollout: the learner and all episodes so far in one file, without pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpess.exceptions import CheckpointError, InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.stored import REQUIRED, arrays_of, learner_of
from optpess.run.checkpoint import CheckpointFile, hash_of_learner, learner_facts
from optpess.run.rollout_record import EpisodeList

__all__ = ["Resumed", "RolloutCheckpoint"]

_FORMAT = "optpess.RolloutCheckpoint/2"
_REQUIRED = REQUIRED | {
    "start": "U",  # a hash of the learner as it was before the first episode
    "first": "i",
    "returns": "f",
    "lengths": "i",
    "costs": "f",
    "certified": "f",
    "sources": "U",
}


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
        facts = learner_facts(learner) | facts
        self._file = CheckpointFile(path, _FORMAT, _REQUIRED, facts, "a rollout")
        self._start = hash_of_learner(learner)

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self._file.exists()

    def save(self, learner: Learner, record: EpisodeList, first: int) -> None:
        """Replaces the file."""
        place = {"start": np.array(self._start), "first": np.array(first)}
        self._file.write(place | arrays_of(learner) | record.to_arrays())

    def load(self, learner: Learner, episodes: int) -> Resumed:
        """What the file holds, checked; the learner does not change.

        The file must be of a learner with the same arguments, and of a rollout with the same seed and
        ranges. The learner must be where the rollout began, or where the file ends.
        """
        arrays = self._file.read()
        try:
            stored, first = learner_of(arrays), int(arrays["first"])
            record = EpisodeList.from_arrays(arrays, len(stored._limits))
        except (InvalidInputError, ValueError, TypeError) as error:
            raise self._file.unreadable(error) from error
        path = self._file.path
        if stored.episodes_observed != first + len(record):
            raise CheckpointError(f"checkpoint {path}: the learner and its episodes differ")
        if len(record) > episodes:
            raise CheckpointError(
                f"checkpoint {path} holds {len(record)} episodes; episodes is {episodes}, which "
                "counts those of all calls together"
            )
        self._check_place(learner, stored, first, str(arrays["start"]))
        self._start = str(arrays["start"])
        return Resumed(record, first, stored)

    def _check_place(self, learner: Learner, stored: Learner, first: int, start: str) -> None:
        """Refuses a learner that is neither where the rollout began nor where the file ends."""
        if self._start in (start, hash_of_learner(stored)):
            return
        path, seen, end = self._file.path, learner.episodes_observed, stored.episodes_observed
        if seen in (first, end):
            raise CheckpointError(
                f"checkpoint {path} is of another learner after {seen} episodes: it had another "
                "initial, baseline or knowledge, or saw other episodes"
            )
        raise CheckpointError(
            f"checkpoint {path} is of a rollout that began after {first} episodes and has come to "
            f"{end}; the learner has seen {seen}"
        )
