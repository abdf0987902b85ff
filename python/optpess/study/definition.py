"""What a study runs: problems, learners, parameters and replicates, and the cells that follow."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np

from optpess.arrays import StoredArrays
from optpess.checks import check_path, check_type, described, whole_number
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.run.arguments import check_arguments, episodes_of
from optpess.run.origin import Origin
from optpess.study import toml
from optpess.zoo import Problem

__all__ = ["Configuration", "Study", "label_of"]

Made = Callable[..., Learner]
_SIMPLE = (str, int, float, bool)


@dataclass(frozen=True)
class Configuration:
    """One learner with one choice of parameters on one problem."""

    problem: str
    learner: str
    parameters: dict[str, Any]
    origin: Origin
    """The model and the learner."""
    episodes: int
    """How many episodes a replicate plays."""

    def identity(self, seed: int) -> str:
        """A hash of everything that a run of it depends on, except the number of the replicate."""
        found = hashlib.sha256(json.dumps([self.episodes, seed]).encode())
        for name, array in sorted(self.origin.arrays().items()):
            found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:20]

    def arrays(self) -> StoredArrays:
        """The model and the learner, as arrays for a file."""
        return self.origin.arrays()


@dataclass(frozen=True)
class Study:
    """Problems x learners x parameters x replicates, each combination to be run once.

    Args:
        problems: models, or problems of the zoo, by their names in the study.
        learners: by their names in the study, functions that make a learner. A function is called with
            the problem, and with those of the ``parameters`` that it takes. Instead of a function, a
            pair of a function and the parameters of this learner alone, as a dictionary of lists.
        parameters: the values of each parameter; a learner runs with every combination of those that it
            takes. Values are numbers, texts and truth values.
        replicates: how many replicates of each combination.
        episodes: how many episodes each plays; None for all that a learner has left.
        seed: the seed of the random numbers, the same for all.

    Example:
        >>> import optpess as op
        >>> def mix(problem, delta):
        ...     model = problem.model
        ...     return op.OptPessMix(shape=model.shape, initial=model.initial,
        ...                          baseline=problem.baseline, failure_probability=delta)
        >>> study = op.Study(problems={"ring": op.zoo.problem("ring")}, learners={"mix": mix},
        ...                  parameters={"delta": [0.01, 0.1]}, replicates=5, episodes=1000)
        >>> study
        Study(1 problem, 1 learner, 2 combinations, 10 cells of 1,000 episodes)
    """

    problems: Mapping[str, CMDP | Problem]
    learners: Mapping[str, Made | tuple[Made, Mapping[str, Sequence[Any]]]]
    parameters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    replicates: int = 1
    episodes: int | None = None
    seed: int = 0
    configurations: tuple[Configuration, ...] = field(init=False, repr=False, compare=False)
    """Every learner with every choice of its parameters on every problem."""

    def __post_init__(self) -> None:
        _check_names("problems", self.problems)
        _check_names("learners", self.learners)
        _check_parameters("parameters", self.parameters)
        whole_number("replicates", self.replicates)
        whole_number("seed", self.seed, least=0, most=2**64 - 1)
        if self.episodes is not None:
            whole_number("episodes", self.episodes)
        unused = set(self.parameters)
        made = []
        for problem_name, problem in self.problems.items():
            for learner_name, given in self.learners.items():
                make, own = _parts(learner_name, given)
                taken = _taken(make, self.parameters)
                unused -= taken.keys()
                made += [
                    self._made(problem_name, problem, learner_name, make, chosen)
                    for chosen in _combinations({**taken, **own})
                ]
        if unused:
            raise InvalidInputError(
                f"parameters[{sorted(unused)[0]!r}] is taken by none of the learners: a function takes "
                "it by an argument of that name"
            )
        object.__setattr__(self, "configurations", tuple(made))

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        r"""Reads a study from a TOML file; docs/studies.md lists what it may hold.

        Example:
            >>> import pathlib, tempfile, optpess as op
            >>> lines = ["episodes = 1000", "problems = ['ring']", "[learners.mix]",
            ...          "learner = 'optpess-mix'", "delta = [0.01, 0.1]"]
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "study.toml")
            ...     _ = path.write_text("\n".join(lines))
            ...     op.Study.from_toml(path)
            Study(1 problem, 1 learner, 2 combinations, 2 cells of 1,000 episodes)
        """
        file = check_path(path)
        with toml.naming(file):
            return cls(**toml.arguments_in(file))

    def _made(
        self, problem: str, given: CMDP | Problem, learner: str, make: Made, chosen: dict[str, Any]
    ) -> Configuration:
        """The configuration, with a learner that was checked against the model."""
        place = label_of(learner, chosen)
        model = given.model if isinstance(given, Problem) else given
        check_type(f"problems[{problem!r}]", model, CMDP)
        found = make(given, **chosen)
        name = f"learners[{learner!r}], made as {place} for {problem}"
        check_arguments(model, check_type(name, found, Learner), "sweep", name)
        episodes = episodes_of(found, self.episodes, name)
        return Configuration(problem, learner, chosen, Origin((model, found)), episodes)

    def __repr__(self) -> str:
        cells = len(self.configurations) * self.replicates
        episodes = {each.episodes for each in self.configurations}
        each = f" of {episodes.pop():,} episodes" if len(episodes) == 1 else ""
        return (
            f"Study({_counted(self.problems, 'problem')}, {_counted(self.learners, 'learner')}, "
            f"{_counted(self.configurations, 'combination')}, {cells:,} cells{each})"
        )


def label_of(learner: str, parameters: Mapping[str, Any]) -> str:
    """The name of a learner with its parameters, as tables and pictures show it."""
    chosen = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{learner} ({chosen})" if chosen else learner


def _counted(things: Sequence[Any] | Mapping[str, Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _check_names(argument: str, given: object) -> None:
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"{argument} is {described(given)}; it must be a dictionary by the names in the study"
        )
    if not given:
        raise InvalidInputError(f"{argument} is empty; there is nothing to run")
    for name in given:
        check_type(f"a name in {argument}", name, str)


def _check_parameters(argument: str, given: object) -> Mapping[str, Sequence[Any]]:
    """Lists of values by the names of parameters."""
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"{argument} is {described(given)}; it must be a dictionary of lists by names"
        )
    for name, values in given.items():
        check_type(f"a name in {argument}", name, str)
        place = f"{argument}[{name!r}]"
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise InvalidInputError(
                f"{place} is {described(values)}; it must be a list of at least one value"
            )
        for number, value in enumerate(values):
            if not isinstance(value, _SIMPLE):
                raise InvalidInputError(
                    f"{place}[{number}] is {described(value)}; it must be a number, a text or a truth "
                    "value, so that a file can name it"
                )
    return given


def _parts(name: str, given: object) -> tuple[Made, Mapping[str, Sequence[Any]]]:
    """The function that makes a learner, and the parameters of this learner alone."""
    make, own = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
    if not callable(make):
        raise InvalidInputError(
            f"learners[{name!r}] is {described(make)}; it must be a function that makes a learner for a "
            "problem, such as lambda problem: op.OptPessMix(...)"
        )
    return make, _check_parameters(f"learners[{name!r}][1]", own)


def _taken(make: Made, parameters: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The parameters that a function takes."""
    arguments = inspect.signature(make).parameters.values()
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in arguments)
    names = {each.name for each in arguments}
    return {name: values for name, values in parameters.items() if takes_all or name in names}


def _combinations(parameters: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))
