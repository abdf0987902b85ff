"""What commands and studies are given by name or file: models, policies, learners, records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from optpess import _core, storage, zoo
from optpess.arrays import FloatArray
from optpess.checks import unknown_name
from optpess.display import counted
from optpess.exceptions import InvalidInputError
from optpess.model import CMDP, Shape
from optpess.model.policies import policy_from_actions
from optpess.plan.solve import solve
from optpess.run.compare import Comparison
from optpess.run.record import Run, load_run
from optpess.study.learners import Word, flag
from optpess.zoo import Problem

__all__ = ["described", "model_of", "policy_of", "problem_of", "read", "record_of"]

_Read = TypeVar("_Read")


def model_of(text: str) -> CMDP:
    """The model of that name in the zoo, else of that file."""
    return zoo.problem(text).model if text in zoo.names() else _model_in_file(text)


def problem_of(
    text: str, policy_file: Path | None, safe_costs: tuple[float, ...], word: Word = flag
) -> Problem | None:
    """The model with a safe policy: the one in a file, or the optimum for limits at the safe costs, or
    that of the zoo; None if there is none of these. A policy in a file costs what it does on the model,
    unless the safe costs are given.
    """
    if policy_file is None and not safe_costs:
        return zoo.problem(text) if text in zoo.names() else None
    model = model_of(text)
    if safe_costs and len(safe_costs) != model.num_constraints:
        raise InvalidInputError(
            f"{word('safe_cost')} is given {counted(len(safe_costs), 'time')}; the model has "
            f"{counted(model.num_constraints, 'limit')}, and there must be one for each"
        )
    costs = np.array(safe_costs)
    if policy_file is None:
        return Problem(text, model, solve(model, cost_limit=costs).policy, costs)
    policy = policy_of(policy_file, model.shape)
    if not safe_costs:
        found = (_core.evaluate(policy, cost, model.transitions, model.initial) for cost in model.costs)
        costs = np.array(list(found))
    return Problem(text, model, policy, costs)


def policy_of(path: Path, shape: Shape) -> FloatArray:
    """A policy ``[H, S, A]``, or numbers of actions ``[H, S]`` or ``[S]``, in a ``.npy`` file."""
    stored = read(path, _array_in_file)
    if stored.dtype.kind in "iu" and stored.ndim in (1, 2):
        steps = shape.horizon if stored.ndim == 1 else None
        stored = policy_from_actions(stored, shape.num_actions, horizon=steps)
    if stored.shape != shape:
        raise InvalidInputError(f"{path} holds a policy {list(stored.shape)}; it must be {list(shape)}")
    return stored.astype(np.float64)


def read(path: str | Path, reader: Callable[[Path], _Read]) -> _Read:
    """What is in a file; a file that cannot be opened is bad input, as a damaged one is."""
    file = Path(path)
    with _naming(file):
        if file.exists() and not file.is_file() and not file.is_dir():
            raise InvalidInputError(f"{file} is a device or a pipe; it must be a file")
        return reader(file)


def record_of(path: Path) -> Run | Comparison:
    """A run or a comparison in a file."""
    found = read(path, storage.format_of)
    readers: dict[str, Callable[[Path], Run | Comparison]] = {
        "optpess.Run": load_run,
        "optpess.Comparison": Comparison.load,
    }
    reader = readers.get(found.partition("/")[0])
    if reader is None:
        raise InvalidInputError(f"{path} has the format {found!r}; reports are of runs and comparisons")
    return read(path, reader)


def described(text: str, model: CMDP) -> dict[str, object]:
    """The model of a result, for programs."""
    sizes = model.shape._asdict()
    return {"name": text} | sizes | {"num_constraints": model.num_constraints}


def _model_in_file(text: str) -> CMDP:
    path = Path(text)
    with _naming(path):
        is_there = bool(text) and path.exists()
    if not is_there and not path.suffix and path.name == text:  # more like a name
        raise unknown_name("there is no such file, and the model", text, zoo.names())
    return read(path, CMDP.from_umb if path.suffix == ".umb" else CMDP.load)


def _array_in_file(path: Path) -> FloatArray:
    try:
        with path.open("rb") as file:
            stored: FloatArray = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, MemoryError, OverflowError, TypeError) as error:
        raise InvalidInputError(f"{path} is not a readable .npy file") from error
    if stored.dtype.kind not in "fiu":
        raise InvalidInputError(f"{path} holds elements of type {stored.dtype}; allowed are numbers")
    return stored


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {str(path)!r}") from None
    except IsADirectoryError:
        raise InvalidInputError(f"{str(path)!r} is a folder; it must be a file") from None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
