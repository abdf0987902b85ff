"""The checkpoint of a simulation: the states of all replicates in one file, without pickle."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.run.arguments import Request
from optpess.run.checkpoint import CheckpointFile, hash_of_arrays, hash_of_learner, learner_facts

__all__ = ["SimulationCheckpoint", "State"]

State = tuple[int, bytes] | None
"""How many episodes a replicate has played, and its state; None for one that has none yet."""

_FORMAT = "optpess.SimulationCheckpoint/1"
_REQUIRED = {
    "played": "i",  # [replicates], -1 for those without a state
    "lengths": "i",  # [replicates], how many bytes each state has
    "states": "u",  # the bytes of the core, one state after the other
}


class SimulationCheckpoint:
    """A file from which a simulation goes on.

    Args:
        path: the file.
        model: the true model.
        learner: the learner that every replicate copies.
        episodes: how many episodes each plays.
        request: the replicates, and what is kept of them.
        keeps_learners: whether the learners are kept.
    """

    def __init__(
        self,
        path: Path,
        model: CMDP,
        learner: Learner,
        episodes: int,
        request: Request,
        *,
        keeps_learners: bool,
    ) -> None:
        facts = learner_facts(learner) | {
            "the hash of the learner": hash_of_learner(learner),
            "the hash of the model": hash_of_arrays(model._arrays()),
            "seed": request.seed,
            "replicates": request.numbers,
            "episodes": episodes,
            "trace": request.trace,
            "audit": request.audit,
            "learners": keeps_learners,
        }
        self._file = CheckpointFile(path, _FORMAT, _REQUIRED, facts, "a simulation")
        self._count = len(request.numbers)

    def load(self) -> list[State]:
        """The states of the replicates; none of them has one if there is no file."""
        if not self._file.exists():
            return [None] * self._count
        arrays = self._file.read()
        played, lengths = arrays["played"], arrays["lengths"]
        stored = arrays["states"].tobytes()
        fits = played.shape == lengths.shape == (self._count,) and lengths.min(initial=0) >= 0
        if not fits or int(lengths.sum()) != len(stored):
            raise self._file.unreadable(InvalidInputError("its arrays do not fit each other"))
        states: list[State] = []
        start = 0
        for episodes, length in zip(played.tolist(), lengths.tolist(), strict=True):
            states.append(None if episodes < 0 else (episodes, stored[start : start + length]))
            start += length
        return states

    def save(self, states: list[State]) -> None:
        """Replaces the file."""
        stored = [b"" if state is None else state[1] for state in states]
        played = [-1 if state is None else state[0] for state in states]
        self._file.write(
            {
                "played": np.array(played, dtype=np.int64),
                "lengths": np.array([len(each) for each in stored], dtype=np.int64),
                "states": np.frombuffer(b"".join(stored), dtype=np.uint8),
            }
        )

    def refused(self, error: InvalidInputError) -> Exception:
        """The refusal of states that the core cannot read."""
        return self._file.unreadable(error)
