"""Models as UMB files, the binary format that PRISM and Storm exchange. Needs umbi, the extra ``umb``.

UMB describes one Markov decision process without a horizon: states, choices, branches, and any number of
rewards, each on states, choices or branches. What it has no place for (the horizon, the limits, the
distribution of the first state, the ranges, the noise) stands in the file's ``file-data``, under
``parameters.optpess``; other tools ignore it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess import storage
from optpess._core import Transitions
from optpess.arrays import BoolArray, FloatArray, IntArray
from optpess.checks import check_path, described, optional_module, shown, unknown_name
from optpess.exceptions import InvalidInputError
from optpess.model.units import CostRange, Range

if TYPE_CHECKING:
    from optpess.model import CMDP

__all__ = ["UmbContent", "read_umb", "write_umb"]

_TOOL = "optpess"
_REWARD, _COST = "reward", "cost"


@dataclass(frozen=True)
class UmbContent:
    """What a UMB file says of a model, as arguments of :meth:`CMDP.stationary`."""

    transitions: Transitions
    actions: BoolArray | None
    initial: FloatArray
    rewards: dict[str, FloatArray]
    """Every reward of the file, expected in a step, ``[S, A]``, by its name."""
    facts: dict[str, Any]
    """What optpess has added; empty for files of other tools."""

    def arguments(
        self,
        path: str | PathLike[str],
        reward: str | None,
        costs: str | Sequence[str] | None,
        ranges: tuple[Range | None, CostRange | None],
    ) -> dict[str, Any]:
        """Transitions, signals, ranges, first state and actions, for :meth:`CMDP.stationary`."""
        reward_name, cost_names = self._names(path, reward, costs)
        rewards = self.rewards[reward_name]
        signals = np.stack([self.rewards[name] for name in cost_names])
        reward_range, cost_range = ranges
        known = bool(self.facts)
        return {
            "transitions": self.transitions,
            "rewards": rewards,
            "costs": signals,
            "initial": self.initial,
            "actions": self.actions,
            "reward_range": reward_range
            or (self.facts["reward_range"] if known else _range_of(rewards, self.actions)),
            "cost_range": cost_range
            or (
                self.facts["cost_ranges"]
                if known and len(self.facts["cost_ranges"]) == len(cost_names)
                else [_range_of(cost, self.actions) for cost in signals]
            ),
        }

    def _names(
        self, path: str | PathLike[str], reward: str | None, costs: str | Sequence[str] | None
    ) -> tuple[str, list[str]]:
        """The names of the reward and of the costs within the file."""
        if self.facts:
            reward = self.facts[_REWARD] if reward is None else reward
            costs = self.facts[_COST] if costs is None else costs
        found = ", ".join(map(repr, self.rewards)) or "none"
        for argument, given in (("reward", reward), ("costs", costs)):
            if given is None:
                raise InvalidInputError(
                    f"{argument} is not given, and {path} does not say which of its rewards that is; "
                    f"found are {found}"
                )
        assert reward is not None
        assert costs is not None
        names = [costs] if isinstance(costs, str) else list(costs)
        for argument, name in (("reward", reward), *(("costs", name) for name in names)):
            if name not in self.rewards:
                raise unknown_name(f"{argument}, a reward of {path},", name, self.rewards)
        if not names:
            raise InvalidInputError("costs is empty; at least one cost is needed")
        return reward, names

    def fact(self, path: str | PathLike[str], argument: str, given: object) -> Any:
        """An argument as given, or as the file has it."""
        if given is not None:
            return given
        if argument not in self.facts:
            raise InvalidInputError(
                f"{argument} is not given, and {path} is not of optpess: UMB has no place for it"
            )
        return self.facts[argument]


def read_umb(path: str | PathLike[str]) -> UmbContent:
    """Reads a Markov decision process with probabilities that are numbers."""
    umb = optional_module("umbi.umb", "umb", "CMDP.from_umb")
    with storage.reading(check_path(path)):
        pass  # refuses what is no regular file, before umbi opens it
    try:
        stored = umb.read(os.fspath(path))
    except OSError:
        raise
    except Exception as error:
        # Bytes of other people, read by a library that checks them with whatever its parts raise.
        raise InvalidInputError(f"{path} is not a readable UMB file: {_first_line(error)}") from error
    system = stored.index.transition_system
    _check_kind(path, system)
    choices = _offsets(path, "state-to-choices", stored.state_to_choices, system.num_states)
    branches = _offsets(path, "choice-to-branches", stored.choice_to_branches, int(choices[-1]))
    targets = np.array(stored.branch_to_target or [], dtype=np.int64)
    given = stored.branch_to_probability
    probabilities = _numbers(
        path, "branch probabilities", [1.0] * len(targets) if given is None else given
    )
    if not len(targets) == len(probabilities) == branches[-1]:
        raise InvalidInputError(
            f"{path} has {len(targets)} targets and {len(probabilities)} probabilities for "
            f"{branches[-1]} branches"
        )
    facts = _facts(path, stored.index.file_data)
    names = stored.choice_action_to_string or []
    if facts and facts["num_actions"] != len(names):  # so that no table is larger than its file
        raise InvalidInputError(
            f"{path} names {len(names)} actions; by file-data.parameters.{_TOOL} it has "
            f"{facts['num_actions']}"
        )
    cells, num_actions = _cells(path, choices, stored.choice_to_choice_action, facts)
    actions = np.zeros((system.num_states, num_actions), dtype=np.bool_)
    actions.ravel()[cells] = True
    rewards = {}
    for name, kinds in (stored.annotations or {}).get("rewards", {}).items():
        each = _expected(path, name, kinds, choices, branches, probabilities)
        rewards[name] = np.zeros(actions.shape)
        rewards[name].ravel()[cells] = each
    return UmbContent(
        _transitions(actions, cells, branches, targets, probabilities),
        None if actions.all() else actions,
        _initial(path, stored.state_is_initial, facts),
        rewards,
        facts,
    )


def write_umb(model: CMDP, path: str | PathLike[str]) -> None:
    """Writes a stationary model; if that fails, an old file stays as it was."""
    umb = optional_module("umbi.umb", "umb", "CMDP.to_umb")
    check_path(path)
    if model.transitions.horizon is not None or model.stored_rewards().ndim == 3:
        raise InvalidInputError(
            "the model changes from step to step, which UMB cannot say; to_umb takes models of "
            "CMDP.stationary"
        )
    shape, limits = model.shape, model.cost_limits
    exists = np.ones(shape[1:], dtype=np.bool_) if model.actions is None else model.actions
    states, numbers = np.nonzero(exists)
    rows = states * shape.num_actions + numbers
    offsets, targets, probabilities = _rows(model.transitions)
    taken = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
    lengths = (offsets[1:] - offsets[:-1])[rows]
    names = [_COST] if len(limits) == 1 else [f"{_COST}_{m}" for m in range(len(limits))]
    signals = {_REWARD: model.units.rewards_out(model.stored_rewards())}
    signals |= dict(zip(names, model.units.costs_out(model.stored_costs()), strict=True))
    noise, parameter = model.noise._spec()
    facts = {
        _REWARD: _REWARD,
        _COST: names,
        "horizon": shape.horizon,
        "cost_limit": limits.tolist(),
        "initial": model.initial.tolist(),
        "reward_range": list(model.units.reward_range),
        "cost_ranges": [list(pair) for pair in model.units.cost_ranges],
        "num_actions": shape.num_actions,
        "noise": [noise, parameter],
    }
    index = umb.index
    types = optional_module("umbi.datatypes", "umb", "CMDP.to_umb").NumericPrimitiveType
    double = optional_module("umbi.binary", "umb", "CMDP.to_umb").SizedType.for_type(types.DOUBLE)
    description = {
        name: index.AnnotationDescription(applies_to=["choices"], type=double) for name in signals
    }
    stored = umb.ExplicitUmb(
        index=index.UmbIndex(
            file_data=index.FileData(
                tool=_TOOL, tool_version=_version(), creation_date=0, parameters={_TOOL: facts}
            ),
            transition_system=index.TransitionSystem(
                time="discrete",
                num_players=1,
                num_states=shape.num_states,
                num_initial_states=int((model.initial > 0).sum()),
                num_choices=len(rows),
                num_choice_actions=shape.num_actions,
                num_branches=len(taken),
                branch_probability_type=double,
            ),
            annotations={"rewards": description},
        ),
        state_is_initial=(model.initial > 0).tolist(),
        state_to_choices=_starts(exists.sum(axis=1)),
        choice_to_branches=_starts(lengths),
        branch_to_target=targets[taken].tolist(),
        branch_to_probability=probabilities[taken].tolist(),
        choice_to_choice_action=numbers.tolist(),
        choice_action_to_string=[f"action {a}" for a in range(shape.num_actions)],
        annotations={
            "rewards": {
                name: {"choices": signal[states, numbers].tolist()} for name, signal in signals.items()
            }
        },
    )
    with storage.replacing(path) as file:
        umb.write(stored, file.name, insert_umbi_metadata=False)


def _check_kind(path: str | PathLike[str], system: Any) -> None:
    """Refuses everything but Markov chains and decision processes in discrete time."""
    if system.time != "discrete":
        why = f"its time is {system.time}; only discrete time can be read"
    elif system.num_players > 1:
        why = f"it is a game of {system.num_players} players; only 0 or 1 can be read"
    elif system.num_observations:
        why = "its states are observed in part; learners and planners here see the state"
    else:
        return
    raise InvalidInputError(f"{path} holds no Markov decision process: {why}")


def _offsets(path: str | PathLike[str], name: str, given: list[int] | None, count: int) -> IntArray:
    """Where the entries of each of ``count`` things begin, ``[count + 1]``; UMB leaves them out if each
    has one entry.
    """
    offsets = np.arange(count + 1) if given is None else np.array(given, dtype=np.int64)
    if len(offsets) != count + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InvalidInputError(f"{path}: {name} is not a list of {count + 1} growing numbers from 0")
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        kind = name.split("-")[0]
        what = (
            "choice; an absorbing state needs one that leads to itself" if kind == "state" else "branch"
        )
        raise InvalidInputError(f"{path}: {kind} {empty[0]} has no {what}")
    return offsets


def _numbers(path: str | PathLike[str], what: str, given: Sequence[Any]) -> FloatArray:
    """Numbers, also rational ones, as floats; intervals are refused."""
    try:
        return np.array([float(each) for each in given])
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(
            f"{path}: its {what} are no numbers but such as {described(given[0])}; intervals and "
            "parameters cannot be read"
        ) from None


def _cells(
    path: str | PathLike[str], choices: IntArray, labels: list[int] | None, facts: dict[str, Any]
) -> tuple[IntArray, int]:
    """The cell of ``[S, A]`` that each choice fills, and A. Actions are numbered by the order of the
    choices of a state; files of optpess say their numbers.
    """
    counts = np.diff(choices)
    states = np.repeat(np.arange(len(counts)), counts)
    numbers = np.arange(choices[-1]) - np.repeat(choices[:-1], counts)
    num_actions = int(counts.max())
    if facts:
        num_actions = int(facts["num_actions"])
        numbers = np.array(labels or [], dtype=np.int64)
    cells = states * num_actions + numbers
    outside = len(numbers) != choices[-1] or (numbers < 0).any() or (numbers >= num_actions).any()
    if outside or len(np.unique(cells)) != len(cells):
        raise InvalidInputError(
            f"{path}: its choices are not numbered below {num_actions}, once a state"
        )
    return cells, num_actions


def _expected(
    path: str | PathLike[str],
    name: str,
    kinds: dict[str, Sequence[Any]],
    choices: IntArray,
    branches: IntArray,
    probabilities: FloatArray,
) -> FloatArray:
    """What a choice earns in a step: its state's reward, its own, and the mean of its branches."""
    total = np.zeros(len(branches) - 1)
    for kind, given in kinds.items():
        values = _numbers(path, f"rewards {name!r}", given)
        expected = {"states": len(choices) - 1, "choices": len(total), "branches": len(probabilities)}
        if len(values) != expected[kind]:
            raise InvalidInputError(
                f"{path}: reward {name!r} has {len(values)} entries for {expected[kind]} {kind}"
            )
        if kind == "states":
            values = np.repeat(values, np.diff(choices))
        elif kind == "branches":
            values = np.add.reduceat(values * probabilities, branches[:-1])
        total += values
    return total


def _transitions(
    actions: BoolArray,
    cells: IntArray,
    branches: IntArray,
    targets: IntArray,
    probabilities: FloatArray,
) -> Transitions:
    """Sparse rows (s, a), with the successors of a row in order and each once; empty rows for missing
    actions, which are not read.
    """
    num_states, num_actions = actions.shape
    rows = np.repeat(cells, np.diff(branches))
    keys, places = np.unique(rows * num_states + targets, return_inverse=True)
    summed = np.bincount(places, weights=probabilities, minlength=len(keys))
    counts = np.bincount(keys // num_states, minlength=actions.size)
    return Transitions.sparse(
        np.concatenate(([0], np.cumsum(counts))),
        keys % num_states,
        summed,
        num_states=num_states,
        num_actions=num_actions,
    )


def _initial(path: str | PathLike[str], marked: list[bool], facts: dict[str, Any]) -> FloatArray:
    if facts:
        return np.array(facts["initial"], dtype=np.float64)
    flags = np.array(marked, dtype=np.float64)
    if flags.sum() != 1:
        raise InvalidInputError(
            f"{path} has {int(flags.sum())} initial states; an episode starts in one, or by a "
            "distribution, for which UMB has no place"
        )
    return flags


def _facts(path: str | PathLike[str], file_data: Any) -> dict[str, Any]:
    """What optpess has added to a file, checked for names and types; empty for files of other tools."""
    parameters = getattr(file_data, "parameters", None)
    if not isinstance(parameters, dict) or _TOOL not in parameters:
        return {}
    facts, place = parameters[_TOOL], f"{path}: file-data.parameters.{_TOOL}"
    if not isinstance(facts, dict) or facts.keys() != _FACTS.keys():
        raise InvalidInputError(f"{place} must hold {', '.join(sorted(_FACTS))}")
    for name, (fits, allowed) in _FACTS.items():
        if not fits(facts[name]):
            raise InvalidInputError(f"{place}.{name} is {shown(facts[name])}; it must be {allowed}")
    return facts


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _list_of(fits: Callable[[object], bool], count: int | None = None) -> Callable[[object], bool]:
    """Whether something is a list, of so many, all of which fit."""
    return lambda value: (
        isinstance(value, list) and count in (None, len(value)) and all(map(fits, value))
    )


def _is_noise(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_text(value[0]) and _is_number(value[1])


# What optpess adds to a file: whether something can be it, and what it must be.
_FACTS: dict[str, tuple[Callable[[object], bool], str]] = {
    _REWARD: (_is_text, "the name of a reward"),
    _COST: (_list_of(_is_text), "a list of names of rewards"),
    "horizon": (_is_count, "a whole number above 0"),
    "cost_limit": (_list_of(_is_number), "a list of numbers"),
    "initial": (_list_of(_is_number), "a list of numbers"),
    "reward_range": (_list_of(_is_number, 2), "two numbers"),
    "cost_ranges": (_list_of(_list_of(_is_number, 2)), "a list of pairs of numbers"),
    "num_actions": (_is_count, "a whole number above 0"),
    "noise": (_is_noise, "a name and a number"),
}


def _range_of(signal: FloatArray, actions: BoolArray | None) -> Range:
    """The least range with 0 and 1, or with 0 and the values, of the actions that exist."""
    values = signal if actions is None else signal[actions]
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidInputError(f"a reward of the file reaches from {low} to {high}; it must be finite")
    return (low, high) if low < 0.0 or high > 1.0 else (0.0, 1.0)


def _rows(transitions: Transitions) -> tuple[IntArray, IntArray, FloatArray]:
    """The rows (s, a) of a stationary kernel as offsets, successors and probabilities."""
    stored = dict(transitions.stored())
    if "offsets" in stored:
        return stored["offsets"], stored["successors"], stored["probabilities"]
    table = stored["probabilities"].reshape(-1, stored["probabilities"].shape[-1])
    rows, targets = np.nonzero(table)
    counts = np.bincount(rows, minlength=len(table))
    return np.concatenate(([0], np.cumsum(counts))), targets, table[rows, targets]


def _starts(counts: IntArray) -> list[int]:
    return [0, *np.cumsum(counts).tolist()]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_TOOL)
    except PackageNotFoundError:  # on the path, but not installed
        return "unknown"


def _first_line(error: Exception) -> str:
    return (str(error) or repr(error)).splitlines()[0]
