"""What a study came to: the runs of every configuration, as comparisons, tables and a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from optpess.checks import check_path
from optpess.display import counted
from optpess.exceptions import InvalidInputError
from optpess.report import write_report
from optpess.run import tables
from optpess.run.compare import Comparison
from optpess.study.definition import label_of
from optpess.study.folder import StudyFolder

__all__ = ["StudyResult", "load_study", "result_of"]

_MOST_SHOWN = 8


@dataclass(frozen=True, eq=False)
class StudyResult:
    """The runs of a study that are there.

    Example:
        >>> import tempfile, optpess as op
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def mix(problem):
        ...     return op.OptPessMix(shape=problem.model.shape, initial=problem.model.initial,
        ...                          baseline=problem.baseline)
        >>> study = op.Study({"ring": op.zoo.problem("ring")}, {"mix": mix}, replicates=2, episodes=100)
        >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as executor:
        ...     found = op.sweep(study, folder, executor=executor, progress=False)
        >>> found
        StudyResult(1 problem, 2 of 2 cells, 2 executed, 0 failed)
    """

    folder: Path
    """Where the files are."""
    comparisons: dict[str, Comparison]
    """The runs on each problem, by the names of its learners with their parameters."""
    missing: tuple[str, ...]
    """The cells that are not there, by problem, learner, parameters and replicate."""
    num_cells: int
    """How many cells the study has."""
    executed: int
    """How many cells were executed, over all calls and processes; a cell whose process died counts twice
    if it was begun again."""
    failures: dict[str, str] = field(default_factory=dict)
    """What the cells raised that failed in every attempt of this call, by their names."""

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows of :attr:`Comparison.table`, with the name of the problem in ``problem``."""
        return [
            {"problem": name} | row for name, found in self.comparisons.items() for row in found.table
        ]

    def to_markdown(self) -> str:
        """A table for each problem, and what failed or is missing."""
        parts = [f"## {name}\n\n{found.to_markdown()}" for name, found in self.comparisons.items()]
        for title, lines in (("Failed", self._failure_lines()), ("Missing", list(self.missing))):
            if lines:
                parts.append(f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines))
        return "\n\n".join(parts) + "\n"

    def write_report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Writes one HTML page about the comparisons on all problems; see :func:`write_report`."""
        if not self.comparisons:
            raise InvalidInputError(f"{self.folder} has no finished cell; there is nothing to report")
        return write_report(path, *self.comparisons.values(), title=title)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Writes every curve of every run to a CSV file, with the problem in front."""
        parts = {name: found.columns() for name, found in self.comparisons.items()}
        names = dict.fromkeys(key for part in parts.values() for key in part)
        lengths = {name: len(part["episodes"]) for name, part in parts.items()}
        columns = {"problem": np.repeat(np.array(list(lengths), dtype=np.str_), list(lengths.values()))}
        for key in names:
            each = (part.get(key, np.full(lengths[name], np.nan)) for name, part in parts.items())
            columns[key] = np.concatenate(list(each))
        tables.write_csv(check_path(path), columns)

    def _failure_lines(self) -> list[str]:
        return [f"{name}: {failure}" for name, failure in self.failures.items()]

    def __repr__(self) -> str:
        problems, found = counted(len(self.comparisons), "problem"), self.num_cells - len(self.missing)
        return (
            f"StudyResult({problems}, {found} of {self.num_cells} cells, {self.executed} executed, "
            f"{len(self.failures)} failed)"
        )

    def __str__(self) -> str:
        """A line for each problem."""
        lines = [f"  {name}: {_summary(found)}" for name, found in self.comparisons.items()]
        if len(lines) > _MOST_SHOWN:
            lines[_MOST_SHOWN:] = [f"  and {len(lines) - _MOST_SHOWN} more problems"]
        return "\n".join([repr(self), *lines])


def _summary(found: Comparison) -> str:
    """What the runs on a problem came to, in a line."""
    unsafe = sum(bool(run.violating_episodes.any()) for run in found.runs.values())
    violations = f"{unsafe} of them exceeded a limit" if unsafe else "none exceeded a limit"
    least = min(found.table, key=lambda row: float(row["regret"]))
    regret = tables.cell(least["regret"], least["regret_error"])
    return (
        f"{counted(len(found.runs), 'learner')}, {violations}; least regret {regret}, {least['learner']}"
    )


def load_study(folder: str | PathLike[str]) -> StudyResult:
    """Reads what is there of a study, also while processes work on it.

    Args:
        folder: the folder that :func:`sweep` was given.

    Example:
        >>> import tempfile, optpess as op
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def safe(problem):
        ...     return op.AlwaysBaseline(shape=problem.model.shape, initial=problem.model.initial,
        ...                              baseline=problem.baseline, num_episodes=10)
        >>> study = op.Study({"ring": op.zoo.problem("ring")}, {"safe": safe})
        >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as executor:
        ...     _ = op.sweep(study, folder, executor=executor, progress=False)
        ...     op.load_study(folder).comparisons["ring"]
        Comparison(safe)
    """
    return result_of(StudyFolder(Path(check_path(folder, "folder"))), {})


def result_of(folder: StudyFolder, failures: dict[str, str]) -> StudyResult:
    """What the folder holds."""
    _, replicates, entries = folder.manifest()
    logged = folder.logged()
    seconds: dict[str, float] = {}
    for line in logged:
        if line.get("event") == "done":
            seconds[str(line["cell"])] = float(line["seconds"])
    comparisons: dict[str, Comparison] = {}
    missing: list[str] = []
    seen: set[str] = set()
    for entry in entries:
        label = label_of(entry.learner, entry.parameters)
        run = folder.run_of(entry.identity, replicates)
        present = set() if run is None else set(run.replicates.tolist())
        if entry.identity not in seen:
            left = (number for number in range(replicates) if number not in present)
            missing += [f"{entry.problem}, {label}, replicate {number}" for number in left]
        seen.add(entry.identity)
        if run is None:
            continue
        found = comparisons.setdefault(entry.problem, Comparison({}, {}))
        found.runs[label] = run
        found.seconds[label] = sum(seconds.get(f"{entry.identity}-{n}", np.nan) for n in present)
    executed = sum(line.get("event") == "begun" for line in logged)
    cells = len(seen) * replicates
    return StudyResult(folder.path, comparisons, tuple(missing), cells, executed, failures)
