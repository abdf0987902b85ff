"""``optpess sweep``: the runs of a study in a folder."""

from __future__ import annotations

from pathlib import Path

import click

from optpess.checks import unknown_name
from optpess.cli.options import Command, number_option, page_option
from optpess.cli.output import Result, writing, written
from optpess.cli.stopping import Stopped
from optpess.exceptions import InvalidInputError
from optpess.study.definition import Study
from optpess.study.models import read
from optpess.study.result import StudyResult
from optpess.study.sweep import sweep

__all__ = ["command"]


@click.command(
    "sweep",
    short_help="Run a study: problems x learners x parameters.",
    cls=Command,
    examples="""
    optpess sweep study.toml
    optpess sweep study.toml --output study --report study.html
    """,
)
@click.argument("study", type=click.Path(path_type=Path), metavar="STUDY")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the results are, one file a run. By default STUDY without its suffix.",
)
@number_option("--retries", default=1, metavar="N", help="How often a failed run is run again (1).")
@page_option("--report", help="Write a page in HTML about what came out, too.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(study: Path, output: Path | None, retries: int, report: Path | None, quiet: bool) -> Result:
    """Run every learner of STUDY, with every choice of its parameters, on every problem.

    STUDY is a .toml file. Runs that the folder holds are not run again: the same command goes on with a
    study that was stopped, and extends it after STUDY was changed. All cores are used.
    """
    if study.suffix.lower() != ".toml":
        raise unknown_name("the suffix of STUDY", study.suffix, (".toml",))
    definition = read(study, Study.from_toml)
    folder = study.with_suffix("") if output is None else output
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            raise InvalidInputError(f"--output is {str(folder)!r}, which is a file; it must be a folder")
    found = _executed(definition, folder, retries, quiet=quiet)
    if report is not None and found.comparisons:
        with writing(report):
            found.write_report(report)
    return Result(
        _text(found) + written(folder, report),
        {
            "study": study,
            "output": folder,
            "num_cells": found.num_cells,
            "executed": found.executed,
            "failures": found.failures,
            "missing": found.missing,
            "table": found.table,
            "report": report,
        },
        failed=bool(found.failures),
    )


def _executed(study: Study, folder: Path, retries: int, *, quiet: bool) -> StudyResult:
    try:
        with writing(folder):
            return sweep(study, folder, retries=retries, progress=not quiet)
    except Stopped as stopped:
        stopped.args = (f"{stopped}; what was finished is in {folder}, and the same command goes on",)
        raise


def _text(found: StudyResult) -> str:
    parts = [f"{name}\n{comparison}" for name, comparison in found.comparisons.items()]
    parts += [f"failed: {name}: {failure}" for name, failure in found.failures.items()]
    there = found.num_cells - len(found.missing)
    return "\n\n".join([*parts, f"{there} of {found.num_cells} runs are there"])
