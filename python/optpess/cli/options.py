"""Options that several commands share, and how help shows examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from optpess import zoo
from optpess.checks import optional_module
from optpess.cli.output import check_output, emit
from optpess.cli.stopping import FAILED
from optpess.study.learners import LEARNERS, LearnerOptions

__all__ = [
    "Command",
    "completing",
    "learner_option",
    "learner_options",
    "model_argument",
    "number_option",
    "output_option",
    "page_option",
    "pop_learner_options",
    "safe_policy_options",
]

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


class Command(click.Command):
    """A command that returns a :class:`Result`, which is printed, as JSON on request. Its help ends with
    examples.
    """

    def __init__(self, *arguments: Any, examples: str, **further: Any) -> None:
        super().__init__(*arguments, **further)
        self._examples = examples.strip().splitlines()
        self.params += (
            click.Option(["--json", "as_json"], is_flag=True, help="Print JSON and nothing else."),
            click.Option(["--debug"], is_flag=True, help="Show the traceback of an error."),
        )

    def invoke(self, ctx: click.Context) -> None:
        """Runs the command and prints what it found."""
        as_json = ctx.params.pop("as_json")
        del ctx.params["debug"]  # which `optpess.cli.main.run` looks for, as it holds for all errors
        result = super().invoke(ctx)
        emit(result, as_json=as_json)
        if result.failed:
            ctx.exit(FAILED)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the examples as they are."""
        with formatter.section("Examples"):
            for line in self._examples:
                formatter.write(f"  {line.strip()}\n")


def number_option(*names: str, **further: Any) -> Callable[[_Decorated], _Decorated]:
    """An option with a whole number, also as 1e6 or 1_000_000. Its range is checked by what takes it."""

    def number(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            pass
        try:
            if (found := float(value)) == int(found):
                return int(found)
        except (ValueError, OverflowError):
            pass
        raise click.BadParameter(f"{value!r} is not a whole number", ctx, param)

    return click.option(*names, type=str, callback=number, **further)


def output_option(
    *names: str, suffixes: Sequence[str], drawn: bool = False, **further: Any
) -> Callable[[_Decorated], _Decorated]:
    """An option with a file to be written, of one of some suffixes. It is refused before anything is
    computed if its folder is missing or closed to the user, or if the pictures of a file that is drawn
    cannot be made.
    """

    def file(_ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
        if value is not None:
            check_output(param.opts[0], value, suffixes)
            if drawn:
                optional_module("matplotlib", "plot", "a report")
        return value

    return click.option(
        *names, type=click.Path(path_type=Path), metavar="FILE", callback=file, **further
    )


def page_option(*names: str, **further: Any) -> Callable[[_Decorated], _Decorated]:
    """An option with a page in HTML to be written."""
    return output_option(*names, suffixes=(".html", ".htm"), drawn=True, **further)


def model_argument(command: _Decorated) -> _Decorated:
    """The argument MODEL."""
    return click.argument("model", metavar="MODEL", shell_complete=completing(zoo.names()))(command)


def learner_option(**further: Any) -> Callable[[_Decorated], _Decorated]:
    """The option ``--learner``."""
    return click.option(
        "--learner",
        metavar="NAME",
        shell_complete=completing(LEARNERS),
        help=f"NAME or NAME:CONFIDENCE. Names: {', '.join(LEARNERS)}.",
        **further,
    )


def completing(names: Iterable[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell is told of a word that begins one of these names."""
    return lambda _ctx, _param, word: [name for name in names if name.startswith(word)]


def safe_policy_options(command: _Decorated) -> _Decorated:
    """The options that say which policy is known to be safe."""
    for option in (
        click.option(
            "--baseline",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The safe policy, a .npy file of probabilities [H, S, A] or action numbers [H, S] or "
            "[S]. Without it, that of the zoo's problem.",
        ),
        click.option(
            "--safe-cost",
            type=float,
            multiple=True,
            metavar="C",
            help="What the safe policy costs at most; once for each limit. Without --baseline, the "
            "safe policy is the best one of that cost.",
        ),
    ):
        command = option(command)
    return command


def learner_options(command: _Decorated) -> _Decorated:
    """The options of learners; :func:`pop_learner_options` reads them."""
    for option in (
        click.option("--variance-proxy", type=float, metavar="V", help="For unbounded noise of costs."),
        click.option(
            "--replan-growth", type=float, metavar="G", help="Plan when a count grew by this part."
        ),
        click.option(
            "--estimate-safe-cost", is_flag=True, help="Tell learners only that the safe policy is safe."
        ),
        click.option(
            "--stationary", is_flag=True, help="Tell learners that the model is the same at every step."
        ),
        click.option("--delta", type=float, metavar="D", help="The failure probability (0.05)."),
        click.option(
            "--confidence", metavar="RULE", help="theorem (default), sharp, or scaled:F with a factor F."
        ),
        number_option("--num-episodes", metavar="K", help="K of learners that need one."),
    ):
        command = option(command)
    return command


def pop_learner_options(given: dict[str, Any], episodes: int | None = None) -> LearnerOptions:
    """Removes the options of learners from those of a command; ``episodes`` will be played."""
    names = (each.name for each in fields(LearnerOptions) if each.name != "episodes")
    return LearnerOptions(**{name: given.pop(name) for name in names}, episodes=episodes)
