"""``optpess zoo``: the named problems, and one of them as a file."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from optpess import zoo
from optpess.checks import unknown_name
from optpess.cli.options import Command, completing, output_option
from optpess.cli.output import Result, writing, written
from optpess.display import short, table
from optpess.exceptions import InvalidInputError
from optpess.study.models import described
from optpess.zoo import Problem

__all__ = ["command"]


@click.command(
    "zoo",
    short_help="List the named problems.",
    cls=Command,
    examples="""
    optpess zoo
    optpess zoo ring --output ring.npz
    optpess zoo --json
    """,
)
@click.argument("name", required=False, shell_complete=completing(zoo.names()))
@output_option("--output", suffixes=(".npz",), help="Write the model of NAME to this .npz file.")
def command(name: str | None, output: Path | None) -> Result:
    """List the named problems, or show the problem NAME and write its model to a file."""
    if name is None:
        if output is not None:
            raise InvalidInputError("--output is given, but no NAME: say which model to write")
        problems = [zoo.problem(each) for each in zoo.names()]
        return Result(_table(problems), {"problems": [_values(each) for each in problems]})
    if name not in zoo.names():
        raise unknown_name("the name", name, zoo.names())
    found = zoo.problem(name)
    if output is not None:
        with writing(output):
            found.model.save(output)
    described_as = _description(name)
    return Result(
        f"{described_as}\n{_table([found])}{written(output)}",
        _values(found) | {"description": described_as, "output": output},
    )


def _description(name: str) -> str:
    """The first sentences of the docstring of the problem, in one line."""
    text = inspect.getdoc(getattr(zoo, name)) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _table(problems: list[Problem]) -> str:
    header = ("name", "steps", "states", "actions", "limits", "safe costs")
    rows = (
        (
            each.name,
            *map(str, each.model.shape),
            short(each.model.cost_limits),
            short(each.safe_costs),
        )
        for each in problems
    )
    return table(header, rows)


def _values(problem: Problem) -> dict[str, object]:
    costs = {"cost_limits": problem.model.cost_limits, "safe_costs": problem.safe_costs}
    return described(problem.name, problem.model) | costs
