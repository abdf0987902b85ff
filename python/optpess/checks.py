"""Checks of arguments whose refusals are worded alike: types, names, missing libraries."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from operator import index
from typing import Any, SupportsFloat, TypeVar

from optpess.exceptions import InvalidInputError

__all__ = [
    "check_number",
    "check_type",
    "check_whole_number",
    "number_text",
    "optional_module",
    "unknown_name",
]

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


def check_number(argument: str, value: object) -> float:
    """The value as a float; text and other things that are no numbers are refused."""
    if isinstance(value, SupportsFloat) and not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise InvalidInputError(
        f"{argument} is {value!r}, of type {type(value).__name__}; it must be a number"
    )


def check_whole_number(
    argument: str, value: object, low: int, high: int | None = None, what: str = ""
) -> int:
    """The value as an integer within [low, high]; ``what`` says what the numbers up to high are."""
    try:
        found = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInputError(
            f"{argument} is {value!r}, of type {type(value).__name__}; it must be a whole number"
        ) from None
    if found >= low and (high is None or found <= high):
        return found
    allowed = f"at least {low}" if high is None else f"{low}"
    if high is not None and high != low:
        raise InvalidInputError(f"{argument} is {found}; it must lie in [{low}, {high}]{what}")
    raise InvalidInputError(f"{argument} is {found}; it must be {allowed}{what}")


def number_text(value: float) -> str:
    """A number as the core's messages show it: all its digits, and 3 in place of 3.0."""
    return repr(float(value)).removesuffix(".0")


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
