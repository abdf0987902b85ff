"""The command ``optpess`` with its subcommands, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from optpess.checks import unknown_name
from optpess.cli.commands import certify, planning, report, runs, sweep, zoo
from optpess.cli.output import discard_unwritten
from optpess.cli.progress import display
from optpess.cli.stopping import Stopped, ended_by, signals_raise, warnings_in_lines
from optpess.progress import shown_by

__all__ = ["optpess", "run"]


class _Group(click.Group):
    """Subcommands with a suggestion for a misspelled one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise unknown_name("the command", name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order in which one uses them."""
        return list(self.commands)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 failed, 2 bad input, 3 infeasible, 130 interrupted.",
)
@click.version_option(package_name="optpess", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def optpess(ctx: click.Context) -> None:
    """Exact planning and provably safe learning in finite-horizon constrained MDPs."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (
    zoo.command,
    planning.solve,
    planning.frontier,
    runs.simulate,
    runs.compare,
    runs.forecast,
    sweep.command,
    certify.command,
    report.command,
):
    optpess.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code. Whatever happens, it says so in one line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    if "_OPTPESS_COMPLETE" in os.environ:  # a shell asks how a word could go on
        optpess.main(given, prog_name="optpess")
    try:
        with signals_raise(), warnings_in_lines(), shown_by(display):
            _invoke(given)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (Exception, Stopped) as error:  # noqa: BLE001 - every error ends in one line
        return ended_by(error, debug=debug)
    finally:
        discard_unwritten()
    return 0


def _invoke(arguments: list[str]) -> None:
    """Runs the command and prints its result. ``click.Group.main`` would turn Ctrl-C and a closed pipe
    into the exit code 1.
    """
    with optpess.make_context("optpess", arguments) as ctx:
        optpess.invoke(ctx)
