"""Checks what a run is asked for: model and learner that belong together, numbers, and what to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np

from optpess import _core
from optpess.arrays import BoolArray, FloatArray
from optpess.checks import check_type, real_number, shown, truth_value, whole_number
from optpess.display import short
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.model.noise import Bernoulli, Deterministic
from optpess.run.pool import cores

__all__ = ["Request", "about_noise", "check_arguments", "check_pause", "episodes_of"]

# The largest trace, over all replicates, in bytes: larger ones would fill the memory.
_MAX_TRACED = 2 * 2**30
# A replicate has a few hundred record points, so this many take some gigabytes.
_MAX_REPLICATES = 1_000_000
# Each replicate owns four streams of random numbers, of which there are 2^64.
_MAX_NUMBER = 2**62 - 1
# More threads than any machine has cores only cost memory.
_MAX_THREADS = 1024
# The most episodes of a learner that has no number of them.
_MAX_EPISODES = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Request:
    """Which replicates to run, how, and what to keep of them."""

    numbers: list[int]
    seed: int
    threads: int
    trace: bool
    audit: bool
    learners: bool | None

    @classmethod
    def of(
        cls,
        replicates: object,
        seed: object,
        threads: object,
        *,
        trace: object = False,
        audit: object = False,
        learners: object = None,
    ) -> Self:
        """The arguments as a user gives them, checked."""
        return cls(
            numbers=_replicate_numbers(replicates),
            seed=whole_number("seed", seed, least=0, most=2**64 - 1),
            threads=cores() if threads is None else whole_number("threads", threads, most=_MAX_THREADS),
            trace=truth_value("trace", trace),
            audit=truth_value("audit", audit),
            learners=None if learners is None else truth_value("learners", learners),
        )

    def check_length(self, episodes: int, horizon: int, num_costs: int) -> None:
        """Refuses a trace that would not fit into the memory."""
        # A state, an action, a reward and the costs of a step; values, a source and a multiplier.
        bytes_each = 8 * horizon * (3 + num_costs) + 8 * (3 + num_costs)
        replicates = len(self.numbers)
        if self.trace and episodes * replicates * bytes_each > _MAX_TRACED:
            most = _MAX_TRACED // (replicates * bytes_each)
            raise InvalidInputError(
                f"a trace of {episodes} episodes x {replicates} replicates is too long: an episode of "
                f"{horizon} steps takes {bytes_each} bytes, and a trace at most {_MAX_TRACED}; at most "
                f"{most} episodes of so many replicates can be traced"
            )


def check_pause(checkpoint_every: object) -> float:
    """The seconds between two checkpoints, as a user gives them."""
    pause = real_number("checkpoint_every", checkpoint_every)
    if not pause > 0.0:
        raise InvalidInputError(f"checkpoint_every is {pause}; it must be a positive number of seconds")
    return pause


def check_arguments(model: object, learner: object, function: str, name: str = "learner") -> None:
    """Refuses what is no model or no learner, a learner within an episode, and one for another model."""
    hint = f"the order is {function}(model, {name.partition('[')[0]})"
    inside = isinstance(getattr(model, "model", None), CMDP)
    known = check_type("model", model, CMDP, "its attribute model is one" if inside else hint)
    called = isinstance(learner, type) and issubclass(learner, Learner)
    advice = "make one: this is its class" if called else hint
    checked = check_type(name, learner, Learner, advice)
    if checked._inner.is_pending:
        raise InvalidInputError(
            f"{name} has planned episode {checked.episodes_observed} and not observed it: call observe, "
            "or abandon, first"
        )
    if function != "forecast" and getattr(checked, "engine", "parametric") != "parametric":
        raise InvalidInputError(
            f"{name} has engine={checked.parameters['engine']!r}; {function} runs the compiled engine: "
            "make it with engine='parametric', or drive it episode by episode"
        )
    _check_same_problem(known, checked, name)


def episodes_of(learner: Learner, episodes: object, name: str = "learner") -> int:
    """How many episodes to play: those that the caller says, or all that the learner has left."""
    last = learner.num_episodes
    if last is None:
        if episodes is None:
            raise InvalidInputError(
                f"episodes is None, but {type(learner).__name__} has no num_episodes: "
                "say how many episodes to play"
            )
        return whole_number("episodes", episodes, most=_MAX_EPISODES)
    count = None if episodes is None else whole_number("episodes", episodes)
    left = last - learner.episodes_observed
    if left <= 0:
        raise InvalidInputError(f"{name} has observed all of its {last} episodes; none is left to play")
    if count is not None and count > left:
        raise _refused(
            "OutOfRange", f"episodes is {count}; {name} has {left} of its {last} episodes left"
        )
    return left if count is None else count


@contextmanager
def about_noise(model: CMDP, learner: Learner) -> Iterator[None]:
    """Names the noise if an observation of a run left the range that the learner rests on."""
    try:
        yield
    except InvalidInputError as error:
        if isinstance(model.noise, Bernoulli | Deterministic):
            raise
        instead = "op.Bernoulli() or op.Deterministic()"
        if "variance_proxy" in learner.parameters:
            instead += ", or give the learner a variance_proxy"
        message = (
            f"the model's noise is {model.noise!r}, and {type(learner).__name__} needs observations "
            f"within their ranges ({error}, in parts of the range): use {instead}"
        )
        raise _refused(error.kind, message) from error


def _check_same_problem(model: CMDP, learner: Learner, name: str) -> None:
    """Refuses a learner that was made for another problem than the model."""
    if model.shape != learner.shape:
        shapes = f"model has shape {tuple(model.shape)} and {name} {tuple(learner.shape)}"
        raise _refused("ShapeMismatch", f"{shapes}; make the learner with shape=model.shape")
    limits = np.array(learner._limits)
    if model.num_constraints != len(limits):
        raise _refused(
            "OutOfRange",
            f"model has {model.num_constraints} limits and {name} {len(limits)}; give the learner a "
            "baseline or margin with one limit for each of the model's (OptPessMix takes several)",
        )
    if model.units != learner.units:
        raise InvalidInputError(
            f"model has {model.units} and {name} {learner.units}; give both the same reward_range and "
            "cost_range"
        )
    if (model.cost_limits != limits).any():
        both = f"model has cost_limit {_numbers(model.cost_limits)} and {name} {_numbers(limits)}"
        raise _refused("OutOfRange", f"{both}; give both the same limit")
    if not _same_masks(model.actions, learner.actions):
        raise InvalidInputError(
            f"model and {name} differ in the actions that exist; give both the same mask, "
            "actions=model.actions"
        )
    try:
        _core.baseline_values(model, learner._inner)  # which compares the first states
    except InvalidInputError as error:
        message = f"{error}; make {name} with initial=model.initial"
        raise _refused(error.kind, message) from error


def _numbers(limits: FloatArray) -> str:
    return repr(float(limits[0])) if len(limits) == 1 else short(limits)


def _refused(kind: str | None, message: str) -> InvalidInputError:
    error = InvalidInputError(message)
    error.kind = kind
    return error


def _same_masks(first: BoolArray | None, second: BoolArray | None) -> bool:
    if first is None or second is None:
        return first is second
    return bool((first == second).all())


def _replicate_numbers(replicates: object) -> list[int]:
    """The numbers of the replicates, from their count or from the numbers themselves."""
    if isinstance(replicates, np.ndarray) and replicates.ndim == 0:
        replicates = replicates.item()
    if isinstance(replicates, Iterable) and not isinstance(replicates, str | bytes):
        return _distinct(replicates)
    try:
        count = whole_number("replicates", replicates)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}, or the numbers of the replicates") from None
    if count > _MAX_REPLICATES:
        raise InvalidInputError(
            f"replicates is {shown(replicates)}; it must lie in [1, {_MAX_REPLICATES}]"
        )
    return list(range(count))


def _distinct(replicates: Iterable[object]) -> list[int]:
    """Numbers of replicates, each of which may be there once."""
    numbers = [
        whole_number(f"replicates[{place}]", number, least=0) for place, number in enumerate(replicates)
    ]
    if not numbers:
        raise InvalidInputError("replicates is empty; there must be at least one")
    if max(numbers) > _MAX_NUMBER:
        raise InvalidInputError(
            f"replicates[{numbers.index(max(numbers))}] is {max(numbers)}; it must lie in [0, 2^62)"
        )
    first: dict[int, int] = {}
    for place, number in enumerate(numbers):
        if number in first:
            raise InvalidInputError(
                f"replicates[{first[number]}] and replicates[{place}] are both {number}; each "
                "replicate must be there once, as the same number is the same run"
            )
        first[number] = place
    return numbers
