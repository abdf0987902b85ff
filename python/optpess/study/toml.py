"""Reads the arguments of a study from a TOML file: problems and learners by name, options by key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from optpess import storage, zoo
from optpess.checks import check_type, described, real_number, truth_value, unknown_name, whole_number
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.study.learners import LearnerOptions, learners_of
from optpess.study.models import model_of, problem_of
from optpess.zoo import Problem

__all__ = ["arguments_in", "naming"]

_MOST_BYTES = 1_000_000


def _text(argument: str, value: object) -> str:
    return check_type(argument, value, str)


# The keys of a file and of its tables, with what checks a value.
_STUDY: dict[str, Callable[[str, Any], Any]] = {
    "episodes": whole_number,
    "replicates": whole_number,
    "seed": lambda argument, value: whole_number(argument, value, least=0, most=2**64 - 1),
}
_OPTIONS: dict[str, Callable[[str, Any], Any]] = {
    "confidence": _text,
    "delta": real_number,
    "stationary": truth_value,
    "replan_growth": real_number,
    "variance_proxy": real_number,
    "estimate_safe_cost": truth_value,
    "num_episodes": whole_number,
}


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Puts the name of the file in front of a refusal of what it holds."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def arguments_in(path: str | PathLike[str]) -> dict[str, Any]:
    """The arguments of a study in a file. Files that it names are looked for beside it."""
    found = _read(path)
    _check_keys("the key", found, (*_STUDY, "problems", "learners"))
    numbers = {key: check(key, found[key]) for key, check in _STUDY.items() if key in found}
    for key in ("problems", "learners"):
        if not found.get(key):
            raise InvalidInputError(f"there are no {key}; name at least one")
    folder = Path(path).parent
    learners = check_type("learners", found["learners"], dict, "write [learners.NAME]")
    return numbers | {
        "problems": _problems(found["problems"], folder),
        "learners": {
            name: _learner(name, table, numbers.get("episodes")) for name, table in learners.items()
        },
    }


def _read(path: str | PathLike[str]) -> dict[str, Any]:
    with storage.reading(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidInputError(f"it has more than {_MOST_BYTES} bytes, which is no study")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"it is not TOML: {error}") from error


def _check_keys(what: str, found: Iterable[str], allowed: Iterable[str]) -> None:
    names = list(allowed)
    for key in found:
        if key not in names:
            raise unknown_name(what, key, names)


def _problems(given: object, folder: Path) -> dict[str, CMDP | Problem]:
    """The problems by their names: texts, or tables with a model and its safe policy."""
    problems: dict[str, CMDP | Problem] = {}
    for number, each in enumerate(check_type("problems", given, list)):
        place = f"problems[{number}]"
        table = {"model": each} if isinstance(each, str) else each
        if not isinstance(table, Mapping):
            raise InvalidInputError(f"{place} is {described(each)}; it must be a text or a table")
        _check_keys(f"the key of {place}", table, ("name", "model", "safe_cost", "baseline"))
        if "model" not in table:
            raise InvalidInputError(f"{place} has no model; it must be a name of the zoo or a file")
        model = _text(f"{place}.model", table["model"])
        name = _text(f"{place}.name", table.get("name", model))
        if name in problems:
            raise InvalidInputError(f"{place} is a second {name!r}; give it another name")
        problems[name] = _problem(place, model, table, folder)
    return problems


def _problem(place: str, model: str, table: Mapping[str, Any], folder: Path) -> CMDP | Problem:
    costs = table.get("safe_cost", [])
    each = costs if isinstance(costs, list) else [costs]
    safe_costs = tuple(real_number(f"{place}.safe_cost", cost) for cost in each)
    file = table.get("baseline")
    baseline = None if file is None else folder / _text(f"{place}.baseline", file)
    # A text that could be a file or a misspelled name is left as it is: the refusal knows both.
    beside = model not in zoo.names() and (folder / model).exists()
    text = str(folder / model) if beside else model
    return problem_of(text, baseline, safe_costs, word=str) or model_of(text)


@dataclass(frozen=True)
class _Maker:
    """Makes the learner of a table; what the table lists are the parameters of a call."""

    place: str
    name: str
    fixed: dict[str, Any]
    episodes: int | None

    def __call__(self, problem: CMDP | Problem, **chosen: Any) -> Learner:
        options = LearnerOptions(**self.fixed | chosen, episodes=self.episodes)
        known, model = (problem, problem.model) if isinstance(problem, Problem) else (None, problem)
        (made,) = learners_of([self.name], model, known, options, word=self._word).values()
        return made

    def _word(self, key: str) -> str:
        return f"{self.place}.{key}" if key in ("learner", *_OPTIONS) else f"its problem's {key}"


def _learner(name: str, given: object, episodes: int | None) -> tuple[_Maker, dict[str, list[Any]]]:
    """The function that makes a learner, and its parameters: the keys with lists."""
    place = f"learners.{name}"
    table = check_type(place, given, dict, f"write [{place}]")
    _check_keys(f"the key of {place}", table, ("learner", *_OPTIONS))
    fixed: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    for key, check in _OPTIONS.items():
        value = table.get(key)
        if isinstance(value, list):
            lists[key] = [check(f"{place}.{key}[{i}]", each) for i, each in enumerate(value)]
            if not value:
                raise InvalidInputError(f"{place}.{key} is empty; it must list at least one value")
        elif value is not None:
            fixed[key] = check(f"{place}.{key}", value)
    kind = _text(f"{place}.learner", table.get("learner", name))
    return _Maker(place, kind, fixed, episodes), lists
