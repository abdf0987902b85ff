"""Tables of results: pandas frames, CSV files, Markdown. A table is a dictionary of columns."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from optpess import storage
from optpess.arrays import Columns, FloatArray
from optpess.checks import check_path, optional_module

__all__ = ["cell", "columns_of_axis", "facts", "markdown", "standard_error", "to_frame", "write_csv"]


def to_frame(columns: Columns, what: str) -> Any:
    """The columns as a pandas DataFrame; ``what`` is the method that needs pandas, for the refusal."""
    return optional_module("pandas", "frame", what).DataFrame(columns)


def write_csv(path: str | PathLike[str], columns: Columns) -> None:
    """Writes the columns to a CSV file with a header, in UTF-8. Every float is written so that it is
    read back as it was; NaN is left empty. If writing fails, an old file stays as it was.
    """
    check_path(path)
    import csv  # here, as it would slow the import of the package

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    lists = (
        ["" if value != value else value for value in column.tolist()] for column in columns.values()
    )
    writer.writerows(zip(*lists, strict=True))
    with storage.replacing(path) as file:
        file.write(text.getvalue().encode())


def columns_of_axis(name: str, values: npt.NDArray[Any]) -> Columns:
    """An array ``[..., M]`` as M columns ``name_0``, ``name_1``, ...; as one, ``name``, if M is 1."""
    count = values.shape[-1]
    names = [name] if count == 1 else [f"{name}_{m}" for m in range(count)]
    return {name: values[..., m].ravel() for m, name in enumerate(names)}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_escaped(text) for text in line) + " |" for line in lines)


def cell(value: object, error: float | None = None) -> str:
    """A value in few digits, with its standard error if there is one."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {cell(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(cell(each) for each in value)
    if isinstance(value, float):
        spread = "" if error is None or np.isnan(error) else f" ± {_number(error, 2, 10)}"
        return _number(value, 4, 1000) + spread
    return "none" if value is None else str(value)


def _number(value: float, digits: int, whole_from: float) -> str:
    """A number in so many digits; from ``whole_from`` on rounded to a whole one."""
    return f"{value:.{digits}g}" if not abs(value) >= whole_from else f"{value:,.0f}"


def facts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters of learners and runs as texts; a mask of actions as how many are missing."""
    shown = dict(parameters)
    if (mask := shown.get("actions")) is not None:
        exist = np.asarray(mask, dtype=np.bool_)
        shown["actions"] = f"{int((~exist).sum())} of {exist.size} missing"
    return {name: cell(value) for name, value in shown.items()}


def standard_error(values: npt.NDArray[Any]) -> float:
    """The standard error of the mean over replicates, ``[R]``; NaN for a single one."""
    numbers: FloatArray = values.astype(np.float64)
    if len(numbers) < 2:
        return float("nan")
    return float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
