"""The folder of a study: a manifest, one file a configuration, one a cell, and a log of executions.

Every file is written atomically and never changed afterwards, except the manifest, which only grows. So
any number of processes can work on a folder at once, and a folder survives the death of all of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from optpess import storage
from optpess.exceptions import InvalidInputError
from optpess.run.origin import KINDS, Origin
from optpess.run.record import Run, load_run
from optpess.study.definition import Configuration, Study

__all__ = ["Cell", "Entry", "StudyFolder"]

_FORMAT = "optpess.Study/1"
_CONFIGURATION = storage.Fields("optpess.Configuration/1", required={}, optional=KINDS)
_MOST_BYTES = 100_000_000  # of a manifest


@dataclass(frozen=True, slots=True)
class Entry:
    """What the manifest says of a configuration."""

    identity: str
    problem: str
    learner: str
    parameters: dict[str, Any]
    episodes: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One replicate of a configuration: what a worker is told."""

    folder: str
    identity: str
    replicate: int
    episodes: int
    seed: int

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        return f"{self.identity}-{self.replicate}"


class StudyFolder:
    """The files of a study.

    Args:
        path: the folder; it is made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # The manifest

    def add(self, study: Study) -> list[Cell]:
        """Enters a study into the manifest, beside what is there; its cells."""
        for part in ("configurations", "cells", "locks"):
            (self.path / part).mkdir(parents=True, exist_ok=True)
        added = []
        for each in study.configurations:
            identity = each.identity(study.seed)
            self._write_configuration(identity, each)
            added.append(Entry(identity, each.problem, each.learner, each.parameters, each.episodes))
        with self._locked("manifest", wait=True):
            seed, replicates, known = self.manifest() if self.exists() else (study.seed, 0, [])
            if seed != study.seed:
                raise InvalidInputError(
                    f"seed is {study.seed}, and the study in {self.path} has {seed}; a folder holds one "
                    "study: give another folder"
                )
            new = [each for each in added if each not in known]
            self._write_manifest(seed, max(replicates, study.replicates), known + new)
        # The same model and learner under two names is one cell.
        identities = {each.identity: each.episodes for each in added}
        return [
            Cell(str(self.path), identity, replicate, episodes, study.seed)
            for replicate in range(study.replicates)
            for identity, episodes in identities.items()
        ]

    def exists(self) -> bool:
        """Whether the folder holds a study."""
        return self._manifest_path.exists()

    def manifest(self) -> tuple[int, int, list[Entry]]:
        """The seed, the number of replicates and the configurations."""
        try:
            with storage.reading(self._manifest_path) as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES} bytes")
            found = json.loads(content)
            if found["format"] != _FORMAT:
                raise ValueError(f"its format is {found['format']!r}, not {_FORMAT!r}")
            entries = [
                Entry(
                    _hexadecimal(each["identity"]),
                    str(each["problem"]),
                    str(each["learner"]),
                    dict(each["parameters"]),
                    int(each["episodes"]),
                )
                for each in found["configurations"]
            ]
            return int(found["seed"]), int(found["replicates"]), entries
        except FileNotFoundError:
            raise InvalidInputError(f"{self.path} holds no study: there is no manifest.json") from None
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"{self._manifest_path} is not a manifest: {error}") from error

    def _write_manifest(self, seed: int, replicates: int, entries: list[Entry]) -> None:
        content = {
            "format": _FORMAT,
            "seed": seed,
            "replicates": replicates,
            "configurations": [
                {name: getattr(each, name) for name in Entry.__dataclass_fields__} for each in entries
            ],
        }
        with storage.replacing(self._manifest_path) as file:
            file.write(json.dumps(content, indent=1).encode())

    @property
    def _manifest_path(self) -> Path:
        return self.path / "manifest.json"

    # Configurations and cells

    def _write_configuration(self, identity: str, configuration: Configuration) -> None:
        target = self.path / "configurations" / f"{identity}.npz"
        if not target.exists():
            tag = {"format": np.array(_CONFIGURATION.format)}
            storage.save_arrays(target, tag | configuration.arrays())

    def configuration(self, identity: str) -> Origin:
        """The model and the learner of a configuration."""
        arrays = storage.load_arrays(self.path / "configurations" / f"{identity}.npz", _CONFIGURATION)
        found = Origin.of({name: array for name, array in arrays.items() if name != "format"})
        assert found is not None
        return found

    def cell_path(self, cell: Cell) -> Path:
        """The file of a cell's run."""
        return self.path / "cells" / f"{cell.name}.npz"

    def is_done(self, cell: Cell) -> bool:
        """Whether the run of a cell is there."""
        return self.cell_path(cell).exists()

    def run_of(self, identity: str, replicates: int) -> Run | None:
        """The run of all replicates of a configuration that are there; None if there is none."""
        paths = (self.path / "cells" / f"{identity}-{number}.npz" for number in range(replicates))
        runs = [load_run(path) for path in paths if path.exists()]
        return Run.concat(runs) if runs else None

    # Work at the same time, and the log of it

    @contextmanager
    def claimed(self, cell: Cell) -> Iterator[bool]:
        """Whether the cell is this process's to execute, for as long as it takes.

        The system gives a lock back when the process that holds it dies, however it dies.
        """
        with self._locked(cell.name, wait=False) as got:
            yield got and not self.is_done(cell)
        if got and self.is_done(cell):
            # Whoever has the file open finds the cell done, so it may go.
            (self.path / "locks" / f"{cell.name}.lock").unlink(missing_ok=True)

    @contextmanager
    def _locked(self, name: str, *, wait: bool) -> Iterator[bool]:
        with (self.path / "locks" / f"{name}.lock").open("ab") as file:
            yield _lock(file, wait=wait)

    def log(self, event: str, cell: Cell, **more: Any) -> None:
        """Adds a line to the log; lines of several processes do not mix."""
        facts = {
            "event": event,
            "cell": cell.name,
            "process": os.getpid(),
            "time": round(time.time(), 3),
        }
        line = json.dumps(facts | more) + "\n"
        descriptor = os.open(self.path / "log.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def logged(self) -> list[dict[str, Any]]:
        """The lines of the log; a line that was cut short by the death of its process is left out."""
        try:
            text = (self.path / "log.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        found = []
        for line in text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return [each for each in found if isinstance(each, dict)]


def _lock(file: BinaryIO, *, wait: bool) -> bool:
    """Whether the lock of a file is this process's, until the file is closed.

    Where there are no locks (Windows, some file systems) a cell may be executed twice, with the same
    result.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _hexadecimal(identity: object) -> str:
    """An identity is part of a path: nothing but hexadecimal digits is taken from a file."""
    if isinstance(identity, str) and identity and set(identity) <= set("0123456789abcdef"):
        return identity
    raise ValueError(f"an identity is {identity!r}, not hexadecimal digits")
