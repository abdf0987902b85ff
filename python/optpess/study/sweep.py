"""Executes the cells of a study that are missing, in any pool of workers."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from os import PathLike
from pathlib import Path
from typing import Any

from optpess.checks import check_path, check_type, truth_value, whole_number
from optpess.exceptions import OptPessError
from optpess.progress import ProgressBar, showing
from optpess.run.interrupts import attach
from optpess.run.pool import pool_of
from optpess.study.definition import Study, label_of
from optpess.study.folder import Cell, StudyFolder
from optpess.study.result import StudyResult, result_of
from optpess.study.worker import Receipt, execute

__all__ = ["sweep"]

# So many cells wait in the pool: enough to keep workers busy, few enough to be stopped at once.
_WAITING = 64
_SECONDS_BETWEEN = 0.2


def sweep(
    study: Study,
    folder: str | PathLike[str],
    *,
    executor: Executor | Any = None,
    retries: int = 1,
    progress: bool = True,
) -> StudyResult:
    """Runs every cell of a study once, and writes one file a cell into the folder.

    Cells that are there are not run again, so a study that was stopped, by whatever cause, goes on with
    the same call. More problems, learners, parameters or replicates extend the study in the folder.
    Several processes, on one machine or on many that share the folder, can work on it at once: a cell
    that another process works on is left to it. Ctrl-C ends it and its own pool at once; the cells that
    were finished are kept.

    With the default pool, a script must call this under ``if __name__ == "__main__":``, as every use of
    Python's process pools must.

    Args:
        study: what to run.
        folder: where the files are; it is made if it is not there.
        executor: any ``concurrent.futures.Executor``, or a client of Dask's ``distributed``; None for a
            pool of one process a core. It is left open.
        retries: how often a cell that raised an exception is run again.
        progress: whether to show progress, as :func:`simulate` does.

    Example:
        >>> import tempfile, optpess as op
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> def mix(problem):
        ...     return op.OptPessMix(shape=problem.model.shape, initial=problem.model.initial,
        ...                          baseline=problem.baseline)
        >>> study = op.Study({"ring": op.zoo.problem("ring")}, {"mix": mix}, replicates=2, episodes=100)
        >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as executor:
        ...     op.sweep(study, folder, executor=executor, progress=False).executed
        2
    """
    check_type("study", study, Study)
    where = StudyFolder(Path(check_path(folder, "folder")).resolve())
    attempts = 1 + whole_number("retries", retries, least=0)
    shows = truth_value("progress", progress)
    with pool_of(executor) as pool:
        cells = where.add(study)
        left = [cell for cell in cells if not where.is_done(cell)]
        with showing(shows) as bar:
            try:
                failures = _executed(pool, left, attempts, bar)
            except OptPessError:
                raise
            except BaseException as error:
                attach(error, f"the cells that were finished are in {where.path}; the same call goes on")
                raise
    names = {each.identity(study.seed): each for each in study.configurations}
    named = {}
    for cell, failure in failures.items():
        each = names[cell.identity]
        place = f"{each.problem}, {label_of(each.learner, each.parameters)}, replicate {cell.replicate}"
        named[place] = failure
    return result_of(where, named)


def _executed(
    pool: Executor, cells: list[Cell], attempts: int, bar: ProgressBar | None
) -> dict[Cell, str]:
    """Executes the cells; those that failed in every attempt, with what they raised."""
    tried = dict.fromkeys(cells, 0)
    failures: dict[Cell, str] = {}
    waiting, running = list(reversed(cells)), dict[Future[Receipt], Cell]()
    elsewhere: list[Cell] = []
    finished = 0
    if bar is not None:
        bar.begin(len(cells), unit="cells")
    try:
        while waiting or running or elsewhere:
            while waiting and len(running) < _WAITING:
                running[pool.submit(execute, waiting[-1])] = waiting[-1]
                waiting.pop()
            done, _ = wait(running, timeout=_SECONDS_BETWEEN, return_when=FIRST_COMPLETED)
            for future in done:
                receipt = _receipt(future, running.pop(future))
                if receipt.state == "elsewhere":
                    elsewhere.append(receipt.cell)
                elif receipt.state == "failed":
                    tried[receipt.cell] += 1
                    if tried[receipt.cell] < attempts:
                        waiting.append(receipt.cell)
                    else:
                        failures[receipt.cell] = receipt.failure
                        finished += 1
                else:
                    finished += 1
            if not running and not waiting and elsewhere:
                # Nothing else is left: look again whether the others are done, or have died.
                time.sleep(_SECONDS_BETWEEN)
                waiting, elsewhere = elsewhere, []
            if bar is not None:
                bar(finished)
    except BrokenExecutor as error:
        raise OptPessError(
            "a worker process ended before its time; what was finished is kept. If it happened at the "
            'start, the script lacks `if __name__ == "__main__":` around its calls'
        ) from error
    finally:
        for future in running:
            future.cancel()
    return failures


def _receipt(future: Future[Receipt], cell: Cell) -> Receipt:
    """What came of a cell; it failed if its worker was lost, unless no worker is left."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:  # noqa: BLE001 - a pool has its own exceptions; the cell is listed
        return Receipt(cell, "failed", f"{type(error).__name__}: {error}")
