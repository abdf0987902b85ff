"""Checks of arguments whose refusals are worded alike: types, names, missing libraries."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, TypeVar

from optpess.exceptions import InvalidInputError

__all__ = ["check_type", "optional_module", "unknown_name"]

_Kind = TypeVar("_Kind")


def check_type(argument: str, value: object, kind: type[_Kind], hint: str = "") -> _Kind:
    """The value, if it is of this class; else a refusal that names the argument and both classes."""
    if isinstance(value, kind):
        return value
    text = repr(value) if isinstance(value, str | int | float | bool | None) else "given"
    advice = f"; {hint}" if hint else ""
    raise InvalidInputError(
        f"{argument} is {text}, of type {type(value).__name__}; it must be of type "
        f"{kind.__name__}{advice}"
    )


def unknown_name(argument: str, found: object, allowed: Iterable[str]) -> InvalidInputError:
    """The refusal of a name that is not one of those allowed, with the nearest of them."""
    import difflib  # here, as it would slow the import of the package

    names = list(allowed)
    nearest = difflib.get_close_matches(str(found), names, n=1)
    meant = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return InvalidInputError(
        f"{argument} is {found!r}; allowed are {', '.join(map(repr, names))}{meant}"
    )


def optional_module(name: str, extra: str, what: str) -> Any:
    """A library outside of the base install; if it is missing, the refusal names the command to run."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise ImportError(
            f"{what} needs {package}: pip install {package} "
            f"(or, in a checkout of optpess, pip install '.[{extra}]')"
        ) from error
