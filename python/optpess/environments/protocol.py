"""How an environment is read: its sizes, and what its ``reset`` and ``step`` return.

An environment is any object with ``reset`` and ``step``. Three forms of an answer of ``step`` are read:

- Gymnasium's ``(state, reward, terminated, truncated, info)``, with ``info["cost"]``, a number, or
  ``info["costs"]``, one for each constraint;
- Safety-Gymnasium's ``(state, reward, cost, terminated, truncated, info)``;
- the plain ``(next_state, reward, cost, done)``.

States and actions may be numbered from another number than 0; what is read here is numbered from 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import numpy as np

from optpess.arrays import BoolArray
from optpess.checks import whole_number
from optpess.exceptions import InvalidInputError
from optpess.model import Shape
from optpess.model.missing_actions import check_mask

__all__ = [
    "EnvironmentFacts",
    "Reader",
    "action_mask_in",
    "describe",
    "reader_of",
    "sizes",
    "state_in",
    "state_of_reset",
    "unwrapped",
]

# From what ``step`` returned to (state, reward, cost, terminated, truncated). The state is numbered from
# 0; that of a terminated episode is the absorbing end, whatever was returned. The cost is a number if
# there is one constraint, else a sequence of them.
Reader: TypeAlias = Callable[[Any], tuple[int, float, Any, bool, bool]]

_FORMS = (
    "(state, reward, terminated, truncated, info) with info['cost'], "
    "(state, reward, cost, terminated, truncated, info), or (next_state, reward, cost, done)"
)
# Where an answer of each form says that the episode is terminated.
_ENDED = {"gymnasium": 2, "safety": 3, "plain": 3}
_SPACES = {"states": ("observation_space", "num_states"), "actions": ("action_space", "num_actions")}


@dataclass(frozen=True, slots=True)
class EnvironmentFacts:
    """What is known of an environment before it is played."""

    num_states: int
    """The number of states, without the absorbing end."""
    num_actions: int
    """The number of actions."""
    first_state_number: int
    """The number the environment gives its first state."""
    first_action_number: int
    """The number the environment gives its first action."""
    cost_limit: float | tuple[float, ...] | None
    """The limit that the environment states, or one for each constraint; None if it states none."""
    accepts_seed: bool
    """Whether ``reset`` takes a seed; without it, no episode can be repeated."""
    existing_actions: BoolArray | None
    """Which actions exist, ``[S, A]``, if the environment says so; None if all do, or it does not."""
    time_limit: int | None
    """After how many steps Gymnasium's ``TimeLimit`` truncates an episode, if it is known."""


def describe(env: object) -> EnvironmentFacts:
    """The facts of an environment; refused if its states or actions are not a finite list."""
    _check_methods(env)
    num_states, first_state = _size(env, "states")
    num_actions, first_action = _size(env, "actions")
    spec = getattr(env, "spec", None)
    limit = getattr(spec, "max_episode_steps", None)
    return EnvironmentFacts(
        num_states=num_states,
        num_actions=num_actions,
        first_state_number=first_state,
        first_action_number=first_action,
        cost_limit=_cost_limit(env),
        accepts_seed=all(_takes_seed(each.reset) for each in (env, unwrapped(env))),  # type: ignore[attr-defined]
        existing_actions=check_mask(
            getattr(unwrapped(env), "existing_actions", None),
            num_states,
            num_actions,
            "env.existing_actions",
        ),
        time_limit=limit if isinstance(limit, int) and limit > 0 else None,
    )


def sizes(env: object, horizon: int) -> Shape:
    """The shape of a learner that is driven by an environment, with one state more than it has.

    That state, the last one, is the absorbing end: an episode that is ``terminated`` early stays there
    until step H, without reward or cost.

    Args:
        env: a Gymnasium environment with discrete spaces, wrapped or not; or any object with ``reset``,
            ``step`` and either such spaces or the attributes ``num_states`` and ``num_actions``.
        horizon: H, the number of steps of an episode.

    Example:
        >>> import optpess as op
        >>> class Walk:
        ...     num_states, num_actions = 5, 2
        ...     def reset(self): ...
        ...     def step(self, action): ...
        >>> op.environments.sizes(Walk(), horizon=20)
        Shape(horizon=20, num_states=6, num_actions=2)
    """
    facts = describe(env)
    return Shape(whole_number("horizon", horizon), facts.num_states + 1, facts.num_actions)


def reader_of(answer: Any, facts: EnvironmentFacts, num_constraints: int = 1) -> Reader:
    """A function that reads answers of the form that this first answer of ``step`` has.

    The first answer is checked in full. Later ones are only unpacked and their state compared with the
    range: this runs at every step. An answer of another form is still refused.
    """
    form = _form_of(answer)
    key = _cost_key(answer[4], num_constraints) if form == "gymnasium" else ""
    raw = answer[4][key] if key else answer[2]
    _check_number("reward", answer[1])
    several = not _is_number(raw)
    _check_cost(raw, num_constraints)
    read = _readers(facts)[form](key)
    if not answer[_ENDED[form]]:
        state_in(answer[0], facts, "env.step")
    if not several or num_constraints > 1:
        return read

    def first_cost(answer: Any) -> tuple[int, float, Any, bool, bool]:
        state, reward, costs, terminated, truncated = read(answer)
        return state, reward, costs[0], terminated, truncated

    return first_cost


def state_of_reset(answer: Any, facts: EnvironmentFacts) -> int:
    """The first state, from what ``reset`` returned: (state, info), or the state alone."""
    if isinstance(answer, tuple):
        if len(answer) != 2 or not isinstance(answer[1], Mapping):
            raise InvalidInputError(
                f"env.reset returned {len(answer)} values; it must return (state, info), where info is "
                "a dict, or the state alone"
            )
        answer = answer[0]
    return state_in(answer, facts, "env.reset")


def state_in(value: Any, facts: EnvironmentFacts, method: str) -> int:
    """A state that a method returned, checked and numbered from 0."""
    try:
        number = index(value)
    except TypeError:
        raise InvalidInputError(
            f"{method} returned the state {_shown(value)}; it must be an integer: number the states, "
            "for example in a wrapper (gymnasium.ObservationWrapper)"
        ) from None
    first = facts.first_state_number
    if not 0 <= number - first < facts.num_states:
        raise _outside(number, facts, method)
    return number - first


def action_mask_in(info: Any, facts: EnvironmentFacts) -> Any:
    """``info["action_mask"]`` as an array of bool, ``[A]``; None if there is none."""
    mask = info.get("action_mask") if isinstance(info, Mapping) else None
    if mask is None:
        return None
    found = np.asarray(mask)
    if found.shape != (facts.num_actions,) or not np.isin(found, (0, 1)).all():
        raise InvalidInputError(
            f"info['action_mask'] has shape {found.shape} and type {found.dtype}; it must be one 0 or 1 "
            f"for each of {facts.num_actions} actions"
        )
    return found.astype(bool)


# What ``step`` returned.


def _form_of(answer: Any) -> str:
    """Which of the three forms an answer of ``step`` has."""
    if not isinstance(answer, tuple | list):
        raise InvalidInputError(f"env.step returned {_shown(answer)}; it must return {_FORMS}")
    last_is_info = len(answer) > 0 and isinstance(answer[-1], Mapping)
    if len(answer) == 4 and last_is_info:
        raise InvalidInputError(
            "env.step returned (state, reward, done, info), the form of Gym before 0.26; return "
            "(state, reward, terminated, truncated, info), or wrap the environment for Gymnasium"
        )
    form = {(5, True): "gymnasium", (6, True): "safety", (4, False): "plain"}.get(
        (len(answer), last_is_info)
    )
    if form is None:
        last = f", the last {_shown(answer[-1])}" if answer else ""
        raise InvalidInputError(f"env.step returned {len(answer)} values{last}; it must return {_FORMS}")
    return form


def _cost_key(info: Mapping[str, Any], num_constraints: int) -> str:
    """Under which key of ``info`` the costs are."""
    keys = ("cost", "costs")
    for key in keys if num_constraints == 1 else reversed(keys):
        if key in info:
            return key
    found = ", ".join(map(repr, info)) or "nothing"
    raise InvalidInputError(
        f"env.step returned no cost: info holds {found}; put it into info['cost'] at every step, also "
        "when it is 0 (a wrapper may have dropped it)"
    )


def _readers(facts: EnvironmentFacts) -> dict[str, Callable[[str], Reader]]:
    """For each form, what makes its reader from the key of the cost."""
    absorbing = facts.num_states
    first = facts.first_state_number
    end = first + facts.num_states

    def gymnasium(key: str) -> Reader:
        def read(answer: Any) -> tuple[int, float, Any, bool, bool]:
            try:
                state, reward, terminated, truncated, info = answer
                cost = info[key]
                if terminated:
                    return absorbing, reward, cost, terminated, truncated
                if first <= state < end:
                    return (state - first if first else state), reward, cost, terminated, truncated
            except (TypeError, ValueError, LookupError):
                raise _changed(answer, facts) from None
            raise _outside(state, facts, "env.step")

        return read

    def safety(_: str) -> Reader:
        def read(answer: Any) -> tuple[int, float, Any, bool, bool]:
            try:
                state, reward, cost, terminated, truncated, _ = answer
                if terminated:
                    return absorbing, reward, cost, terminated, truncated
                if first <= state < end:
                    return (state - first if first else state), reward, cost, terminated, truncated
            except (TypeError, ValueError):
                raise _changed(answer, facts) from None
            raise _outside(state, facts, "env.step")

        return read

    def plain(_: str) -> Reader:
        def read(answer: Any) -> tuple[int, float, Any, bool, bool]:
            try:
                state, reward, cost, done = answer
                if done:
                    return absorbing, reward, cost, done, False
                if first <= state < end:
                    return (state - first if first else state), reward, cost, False, False
            except (TypeError, ValueError):
                raise _changed(answer, facts) from None
            raise _outside(state, facts, "env.step")

        return read

    return {"gymnasium": gymnasium, "safety": safety, "plain": plain}


def _changed(answer: Any, facts: EnvironmentFacts) -> InvalidInputError:
    """The refusal of an answer that is not of the form of the first one."""
    try:
        form = _form_of(answer)
        if form == "gymnasium":
            _cost_key(answer[4], 1)
        if not answer[_ENDED[form]]:
            state_in(answer[0], facts, "env.step")
    except InvalidInputError as error:
        return error
    return InvalidInputError(
        f"env.step returned {len(answer)} values, in another form than at the first step; "
        "it must return the same form, and the cost in the same place, at every step"
    )


def _check_cost(cost: Any, num_constraints: int) -> None:
    """Refuses what is not a number for each constraint."""
    if isinstance(cost, Sequence | np.ndarray) and np.ndim(cost) == 1 and not isinstance(cost, str):
        count = len(cost)
        for m, each in enumerate(cost):
            _check_number(f"cost [{m}]", each)
    else:
        _check_number("cost", cost)
        count = 1
    if count != num_constraints:
        raise InvalidInputError(
            f"env.step returned {count} cost{'s' * (count != 1)} a step; there "
            f"{'is 1 limit' if num_constraints == 1 else f'are {num_constraints} limits'}"
        )


def _check_number(what: str, value: Any) -> None:
    if not _is_number(value):
        raise InvalidInputError(f"env.step returned the {what} {_shown(value)}; it must be a number")


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiub"
    )


def _outside(state: Any, facts: EnvironmentFacts, method: str) -> InvalidInputError:
    first = facts.first_state_number
    return InvalidInputError(
        f"{method} returned the state {state}; the environment has {facts.num_states} states, "
        f"{first} to {first + facts.num_states - 1}"
    )


# What the environment says of itself.


def _check_methods(env: object) -> None:
    """Refuses what has no ``reset`` or no ``step``."""
    missing = [name for name in ("reset", "step") if not callable(getattr(env, name, None))]
    if missing:
        hint = "; call it to make an environment" if isinstance(env, type) else ""
        raise InvalidInputError(
            f"env, of type {type(env).__name__}, has no method {' and no method '.join(missing)}{hint}"
        )
    if isinstance(env, type):
        raise InvalidInputError(f"env is the class {env.__name__}; call it to make an environment")


def _size(env: object, what: str) -> tuple[int, int]:
    """How many states (or actions) there are, and the number of the first one."""
    space_name, count_name = _SPACES[what]
    space = getattr(env, space_name, None)
    if space is None:
        for each in (env, unwrapped(env)):
            if (count := getattr(each, count_name, None)) is not None:
                return whole_number(f"env.{count_name}", count), 0
        raise InvalidInputError(
            f"env, of type {type(env).__name__}, has neither {space_name} (a Discrete space of "
            f"Gymnasium) nor {count_name} (an integer)"
        )
    # By name, as Gymnasium need not be installed; MultiBinary has an attribute n too.
    if not any(kind.__name__ == "Discrete" for kind in type(space).__mro__):
        wrapper = "gymnasium.ObservationWrapper" if what == "states" else "gymnasium.ActionWrapper"
        raise InvalidInputError(
            f"env.{space_name} is a {type(space).__name__}; it must be a Discrete space: number the "
            f"{what} in a wrapper ({wrapper}), continuous ones in bins"
        )
    return whole_number(f"env.{space_name}.n", space.n), index(getattr(space, "start", 0))


def _cost_limit(env: object) -> float | tuple[float, ...] | None:
    """The limit that the environment states."""
    found = getattr(env, "cost_limit", None)
    if found is None:
        found = getattr(unwrapped(env), "cost_limit", None)
    if found is None or _is_number(found):
        return None if found is None else float(found)
    if isinstance(found, Sequence | np.ndarray) and all(_is_number(each) for each in found):
        return tuple(float(each) for each in found)
    raise InvalidInputError(
        f"env.cost_limit is {_shown(found)}; it must be a number, or one for each constraint"
    )


def unwrapped(env: object) -> object:
    """The environment inside all wrappers."""
    return getattr(env, "unwrapped", env)


def _takes_seed(reset: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(reset).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        each.kind is each.VAR_KEYWORD or (each.name == "seed" and each.kind is not each.POSITIONAL_ONLY)
        for each in parameters
    )


def _shown(value: Any) -> str:
    """A value as a message shows it: short, or its type."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 40 else f"of type {type(value).__name__}"
