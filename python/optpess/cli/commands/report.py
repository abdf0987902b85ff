"""``optpess report``: a page about runs and comparisons."""

from __future__ import annotations

from pathlib import Path

import click

from optpess.cli.options import Command, page_option
from optpess.cli.output import Result, writing, written
from optpess.report import write_report
from optpess.study.models import record_of

__all__ = ["command"]


@click.command(
    "report",
    short_help="Write a page in HTML about runs.",
    cls=Command,
    examples="""
    optpess simulate ring --episodes 20000 --replicates 4 --stationary --output run.npz
    optpess report run.npz --output ring.html --title "The ring, learned safely"
    """,
)
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--title", metavar="TEXT", help="The title of the page.")
@page_option("--output", default="report.html", help="The page (report.html).")
def command(records: tuple[Path, ...], title: str | None, output: Path) -> Result:
    """Write one HTML page about each RUN: what was run, what is guaranteed, the table, the pictures, and
    how to run it again. The page needs no network.

    RUN is a .npz file that simulate or compare wrote with --output.
    """
    read = [record_of(path) for path in records]
    with writing(output):
        write_report(output, *read, title=title)
    return Result(written(output).lstrip(), {"records": records, "output": output})
