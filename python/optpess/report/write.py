"""Writes the report of runs, comparisons and rollouts to one HTML file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from optpess import storage
from optpess.checks import check_path, check_type, optional_module
from optpess.exceptions import InvalidInputError
from optpess.run.compare import Comparison
from optpess.run.record import Run
from optpess.run.rollout_record import Rollout

__all__ = ["write_report"]


def write_report(
    path: str | PathLike[str], *records: Run | Comparison | Rollout, title: str | None = None
) -> Path:
    """Writes one HTML page about the records: what came of them, pictures, the table, which guarantee
    holds on which assumptions, and how to run them again. Returns the path.

    The page needs no network and no other file. Runs of the same problem and number of episodes share
    their pictures and their table, under the names of their algorithms; so do those of a comparison,
    under its names. The same records give the same page, to the byte. If writing fails, an old file
    stays as it was. The pictures need matplotlib, the extra ``plot``.

    Args:
        path: the file to write.
        records: at least one :class:`Run`, :class:`Comparison` or :class:`Rollout`.
        title: the title of the page; None for the names of the algorithms.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> run = op.simulate(pair.model, learner, episodes=1000, replicates=4, progress=False)
        >>> op.write_report("report.html", run, title="A first run").name
        'report.html'
    """
    target = Path(check_path(path))
    heading = None if title is None else check_type("title", title, str).strip()
    if heading == "":
        raise InvalidInputError("title is empty; it must hold a word, or be None")
    optional_module("matplotlib", "plot", "write_report")
    from optpess.report.page import page  # here, as they would slow the import of the package
    from optpess.report.parts import parts_of

    text = page(heading, parts_of(records))
    with storage.replacing(target) as file:
        file.write(text.encode())
    return target
