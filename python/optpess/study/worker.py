"""Executes one cell of a study: reads its model and learner, simulates a replicate, writes its file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.run.arguments import Request
from optpess.run.simulate import simulate_as
from optpess.study.folder import Cell, StudyFolder

__all__ = ["Receipt", "execute"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a worker says of a cell. The run itself is in the folder."""

    cell: Cell
    state: str
    """``"done"`` before, ``"executed"`` now, ``"elsewhere"`` (by another process) or ``"failed"``."""
    failure: str = ""
    """What was raised, if it failed."""


def execute(cell: Cell) -> Receipt:
    """Executes a cell, unless its file is there or another process works on it."""
    folder = StudyFolder(Path(cell.folder))
    if folder.is_done(cell):
        return Receipt(cell, "done")
    with folder.claimed(cell) as ours:
        if not ours:
            return Receipt(cell, "done" if folder.is_done(cell) else "elsewhere")
        folder.log("begun", cell)
        begun = time.process_time()
        try:
            model, learner = _configuration(cell.folder, cell.identity)
            run = simulate_as(model, learner, cell.episodes, _request(cell), None, warns=False)
            run.save(folder.cell_path(cell))
        except Exception as error:  # noqa: BLE001 - one cell must not end the study; it is listed
            failure = f"{type(error).__name__}: {error}"
            folder.log("failed", cell, failure=failure)
            return Receipt(cell, "failed", failure)
        folder.log("done", cell, seconds=round(time.process_time() - begun, 6))
        return Receipt(cell, "executed")


def _request(cell: Cell) -> Request:
    return Request.of([cell.replicate], cell.seed, threads=1, learners=False)


@lru_cache(maxsize=8)
def _configuration(folder: str, identity: str) -> tuple[CMDP, Learner]:
    """The model and the learner; a worker executes many replicates of the same."""
    return StudyFolder(Path(folder)).configuration(identity).restore()
