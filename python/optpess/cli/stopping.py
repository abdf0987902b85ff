"""How a command ends: signals, errors and warnings as exit codes and single lines."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

import click

from optpess.exceptions import (
    CheckpointError,
    InfeasibleError,
    InvalidInputError,
    NoSafetyMarginError,
)

__all__ = [
    "FAILED",
    "OutputError",
    "Stopped",
    "ended_by",
    "interruptible",
    "one_line",
    "say",
    "signals_raise",
    "warnings_in_lines",
]

_Answer = TypeVar("_Answer")

FAILED, BAD_INPUT, INFEASIBLE = 1, 2, 3
# What a shell reports of a program that a signal ended is this plus the number of the signal.
_SIGNALLED = 128
_SIGPIPE = 13  # which Windows lacks
_BAD = (click.UsageError, InvalidInputError, NoSafetyMarginError, CheckpointError)
_SIGNALS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}


class OutputError(Exception):
    """Something outside of the arguments failed, such as writing a file."""


class Stopped(BaseException):
    """A signal asks the program to end."""

    def __init__(self, name: str) -> None:
        super().__init__(_SIGNALS[name])
        self.exit_code: int = _SIGNALLED + getattr(signal, name)


@contextmanager
def signals_raise() -> Iterator[None]:
    """Makes the signals that end a program raise :class:`Stopped`, so that nothing is left behind.

    A signal that the parent told the program to ignore stays ignored, as with ``nohup``. The second
    signal ends the program at once.
    """
    before = {
        name: signal.getsignal(getattr(signal, name)) for name in _SIGNALS if hasattr(signal, name)
    }
    caught = [name for name, handler in before.items() if handler not in (signal.SIG_IGN, None)]

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        for name in caught:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        raise Stopped(signal.Signals(number).name)

    for name in caught:
        signal.signal(getattr(signal, name), stop)
    try:
        yield
    finally:
        for name in caught:
            signal.signal(getattr(signal, name), before[name])


def interruptible(work: Callable[[], _Answer]) -> _Answer:
    """The result of a computation that does not look for signals itself, as simulations do.

    It runs on a thread of its own, which a signal leaves behind: the program ends at once. The
    computation must not write files.
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []

    def answer() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        thread.join()
    except Stopped as stopped:
        os._exit(ended_by(stopped, debug=False))
    if errors:
        raise errors[0]
    return answers[0]


@contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Writes each warning as one line, without the place in the source."""

    def show(message: Warning | str, *_place: object, **_further: object) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = show
        yield


def ended_by(error: BaseException, *, debug: bool) -> int:
    """Says in one line, or with the traceback, what ended the program; returns the exit code."""
    if isinstance(error, BrokenPipeError):
        return _SIGNALLED + _SIGPIPE  # silently, as programs end that nobody reads any more
    if debug and not isinstance(error, Stopped):
        traceback.print_exception(error, file=sys.stderr)
    else:
        say(_message(error))
    if isinstance(error, Stopped):
        return error.exit_code
    if isinstance(error, InfeasibleError):
        return INFEASIBLE
    if isinstance(error, _BAD):
        return BAD_INPUT
    return FAILED


def _message(error: BaseException) -> str:
    """What a user needs to know."""
    if isinstance(error, Stopped):
        return str(error)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "optpess"
        message = _usage_message(error)
        return f"{message}{' See' if message.endswith('?') else '; see'} {command} --help"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if type(error).__module__.startswith("optpess") or isinstance(error, OSError | ImportError):
        return str(error)
    kind = type(error).__name__
    return f"unexpected {kind}: {error}; please report it with what --debug shows"


def _usage_message(error: click.UsageError) -> str:
    """What is wrong with the arguments, in the form of the package's own refusals."""
    if isinstance(error, click.NoSuchOption):
        meant = " or ".join(error.possibilities or ())
        return f"there is no option {error.option_name}" + (f"; did you mean {meant}?" if meant else "")
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def say(text: str) -> None:
    """Writes one line to standard error; nobody hears it if that is closed or full."""
    try:
        click.echo(f"optpess: {one_line(text)}", err=True)
    except (OSError, ValueError):
        return


def one_line(text: str) -> str:
    """The text without breaks and control characters, which a name of a file may have."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in words)
