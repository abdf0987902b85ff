"""What commands print: a text for people, or JSON for programs; and the files they write."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpess.checks import unknown_name
from optpess.cli.stopping import OutputError
from optpess.exceptions import InvalidInputError

__all__ = ["Result", "check_output", "discard_unwritten", "emit", "plain", "writing", "written"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command found."""

    text: str
    """For people."""
    values: dict[str, Any]
    """For programs: numbers, texts, lists and dictionaries, made plain by :func:`plain`."""
    failed: bool = False
    """Whether some of it failed, so that the exit code must say so."""


def emit(result: Result, *, as_json: bool) -> None:
    """Prints a result. Raises :class:`OutputError` if that fails, BrokenPipeError if nobody reads on."""
    text = _json(result.values) if as_json else result.text
    stream: Any = sys.stdout
    if stream is None:  # the parent closed it
        raise OutputError("the result cannot be printed: standard output is closed")
    try:
        # A terminal of another encoding may lack a sign such as the plus-minus.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"the result cannot be printed: {reason}") from error


def _json(values: Mapping[str, Any]) -> str:
    """One key a line."""
    lines = (
        f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in plain(values).items()
    )
    return "{\n" + ",\n".join(lines) + "\n}"


def discard_unwritten() -> None:
    """Gives to nobody what could not be written, or Python would try, and complain, at its end."""
    try:
        sys.stdout.flush()
        return
    except (OSError, ValueError, AttributeError):
        pass
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        return


def plain(value: Any) -> Any:
    """A value in terms of JSON. NaN and infinity, which JSON lacks, become None."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        return {"kind": type(value).__name__} | parts
    return str(value) if isinstance(value, os.PathLike) else value


def check_output(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Refuses a file that cannot be written, or whose suffix promises another format."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # a new file, or in a folder that is looked at below
    except OSError as error:  # a name that is too long, a link to itself
        raise InvalidInputError(f"{option} is {str(path)!r}: {error.strerror or error}") from error
    if path.is_dir():
        raise InvalidInputError(f"{option} is {str(path)!r}, which is a folder; it must be a file")
    if path.exists() and not path.is_file():
        return  # a device or a pipe, which is written as it is
    if path.suffix.lower() not in suffixes:
        raise unknown_name(f"the suffix of {option}", path.suffix, suffixes)
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InvalidInputError(f"{option} is {str(path)!r}; there is no such folder")
    if not os.access(folder, os.W_OK):
        raise InvalidInputError(f"{option} is {str(path)!r}; its folder is closed to writing")


def written(*paths: Path | None) -> str:
    """The lines at the end of a text that say what was written."""
    return "".join(f"\nwritten to {path}" for path in paths if path is not None)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Names the file if it cannot be written."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
