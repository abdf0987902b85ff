"""Checks of arguments whose refusals are worded alike: types, numbers, names, missing libraries."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from operator import index
from os import PathLike
from typing import Any, SupportsFloat, SupportsIndex, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from optpess.exceptions import InvalidInputError

__all__ = [
    "as_array",
    "check_path",
    "check_type",
    "described",
    "is_name",
    "number_text",
    "optional_module",
    "real_array",
    "real_number",
    "shown",
    "truth_value",
    "unknown_name",
    "whole_number",
]

_Kind = TypeVar("_Kind")


def check_type(argument: str, value: object, kind: type[_Kind], hint: str = "") -> _Kind:
    """The value, if it is of this class; else a refusal that names the argument and both classes."""
    if isinstance(value, kind):
        return value
    advice = f"; {hint}" if hint else ""
    raise InvalidInputError(
        f"{argument} is {described(value)}; it must be of type {kind.__name__}{advice}"
    )


def whole_number(
    argument: str, value: object, *, least: int | None = 1, most: int | None = None, what: str = ""
) -> int:
    """A whole number within [least, most]; floats, texts and truth values are refused. With None for
    ``least`` the core checks the range. ``what`` says what the numbers up to ``most`` are.
    """
    number = None if isinstance(value, bool) else _index(value)
    if number is None:
        raise InvalidInputError(f"{argument} is {described(value)}; it must be a whole number")
    if least is None or (number >= least and (most is None or number <= most)):
        return number
    if most is None:
        allowed = f"be at least {least}"
    elif most == least:
        allowed = f"be {least}"
    else:
        top = f"2^{most.bit_length()})" if most >= 2**62 - 1 and (most & (most + 1)) == 0 else f"{most}]"
        allowed = f"lie in [{least}, {top}"
    raise InvalidInputError(f"{argument} is {number}; it must {allowed}{what}")


def real_number(argument: str, value: object) -> float:
    """A real number as a float; texts, truth values and arrays of several numbers are refused."""
    is_text = isinstance(value, str | bytes | bool)
    if not is_text and isinstance(value, SupportsFloat | SupportsIndex):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidInputError(f"{argument} is {described(value)}; it must be a number")


def as_array(argument: str, values: object) -> npt.NDArray[Any]:
    """The values as an array of any type. Masked arrays stay masked, so that they can be refused."""
    try:
        return np.asanyarray(values)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{argument} cannot be made an array: {error}") from error


def real_array(argument: str, values: object) -> npt.NDArray[Any]:
    """The values as an array of real numbers; texts, objects and masked arrays are refused."""
    array = as_array(argument, values)
    if array.dtype.kind not in "fiub" or isinstance(array, np.ma.MaskedArray):
        raise InvalidInputError(
            f"{argument} holds elements of type {array.dtype} ({type(values).__name__}); "
            "allowed are real numbers"
        )
    return array


def _index(value: object) -> int | None:
    """A whole number as an int; None for everything else, arrays of several numbers too."""
    try:
        return index(value) if isinstance(value, SupportsIndex) else None
    except TypeError:
        return None


def described(value: object) -> str:
    """A value and its type, as a message shows them."""
    text, kind = shown(value), type(value).__name__
    return text if text.endswith(f" {kind}") else f"{text}, of type {kind}"


def shown(value: object) -> str:
    """A value as a message shows it: short, or only its kind."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail because the value does
        text = "\n"
    if len(text) <= 40 and "\n" not in text and " at 0x" not in text.lower():
        return text
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' or name == 'ndarray' else 'a'} {name}"


def number_text(value: float) -> str:
    """A number as the core's messages show it: all its digits, and 3 in place of 3.0."""
    return repr(float(value)).removesuffix(".0")


def is_name(value: object, allowed: Iterable[str]) -> TypeGuard[str]:
    """Whether the value is one of these names. An array, which cannot be compared with one, is not."""
    return isinstance(value, str) and value in allowed


def unknown_name(argument: str, found: object, allowed: Iterable[str]) -> InvalidInputError:
    """The refusal of a name that is not one of those allowed, with the nearest of them."""
    import difflib  # here, as it would slow the import of the package

    names = list(allowed)
    nearest = difflib.get_close_matches(found, names, n=1) if isinstance(found, str) else []
    meant = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return InvalidInputError(
        f"{argument} is {shown(found)}; allowed are {', '.join(map(repr, names))}{meant}"
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


def truth_value(argument: str, value: object) -> bool:
    """True or False, also NumPy's; everything else is refused, because a text such as "no" is true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InvalidInputError(f"{argument} is {described(value)}; it must be True or False")


def check_path(value: object, argument: str = "path") -> str | PathLike[str]:
    """A path of a file."""
    if not isinstance(value, str | PathLike):
        raise InvalidInputError(f"{argument} is {described(value)}; it must be a text or a pathlib.Path")
    if "\0" in str(value):
        raise InvalidInputError(f"{argument} is {shown(value)}; a path has no null character")
    return value
