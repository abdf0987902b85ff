"""Models from the tables of Gymnasium's environments: FrozenLake, CliffWalking, Taxi and their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from optpess.arrays import ArrayLike, BoolArray, FloatArray
from optpess.environments.protocol import EnvironmentFacts, describe, sizes, unwrapped
from optpess.exceptions import InvalidInputError
from optpess.model import CMDP, Transitions
from optpess.model.noise import Bernoulli, Deterministic, Noise
from optpess.model.units import CostRange, Range, Units

__all__ = ["CostFunction", "from_gymnasium"]

# cost(state, action, next_state, reward, terminated), in the numbers of the environment.
CostFunction: TypeAlias = Callable[[int, int, int, float, bool], float]

# Above this number of states the rows are stored as lists of successors.
_DENSE_STATES = 64
# By how much the probabilities of a row of a table may miss 1.
_ROUNDING = 1e-9


class _Outcome(NamedTuple):
    """One entry of a table; the next state is numbered from 0."""

    probability: float
    next_state: int
    reward: float
    terminated: bool


# The outcomes of each (state, action), numbered from 0.
_Tables: TypeAlias = Mapping[tuple[int, int], list[_Outcome]]


def from_gymnasium(
    env: object,
    *,
    cost: CostFunction | Sequence[CostFunction],
    horizon: int,
    cost_limit: ArrayLike | None = None,
    reward_range: Range | None = None,
    cost_range: CostRange = (0.0, 1.0),
    initial: ArrayLike | None = None,
    noise: Noise | None = None,
) -> CMDP:
    """A known model, read from the tables ``env.unwrapped.P`` of a Gymnasium environment.

    ``P[state][action]`` is a list of (probability, next state, reward, terminated), as in FrozenLake,
    CliffWalking and Taxi. Rewards and costs of the model are expectations over next states. The model
    has the shape of :func:`sizes`: ``terminated`` leads to one more state, the last one, which is
    absorbing and has neither reward nor cost. States that no episode can be in get the same row, so the
    tables' self-loops of terminal states cost nothing.

    Time limits and other wrappers are not part of the tables; ``horizon`` takes their place.

    Args:
        env: the environment, wrapped or not.
        cost: f(state, action, next_state, reward, terminated), the cost of one step, with the numbers
            the environment uses; or one such function for each constraint.
        horizon: H, the number of steps of an episode.
        cost_limit: a number, or one for each constraint; None for the limit that the environment states
            as ``env.unwrapped.cost_limit``.
        reward_range: the least and the largest reward of a step; None for those of the tables and 0.
        cost_range: the same of the costs, or one for each constraint; it must contain 0.
        initial: ``[S]``, the distribution of the first state; None for
            ``env.unwrapped.initial_state_distrib``.
        noise: how observations differ from their means. None for :class:`Deterministic` if no reward or
            cost depends on the next state, else :class:`Bernoulli`.

    Example:
        >>> import gymnasium, optpess as op
        >>> lake = gymnasium.make("FrozenLake-v1")
        >>> def falls(state, action, next_state, reward, terminated):
        ...     return terminated and reward == 0
        >>> op.environments.from_gymnasium(lake, cost=falls, horizon=20, cost_limit=0.2)
        CMDP(horizon=20, num_states=17, num_actions=4, num_constraints=1, dense)
    """
    core = unwrapped(env)
    tables = getattr(core, "P", None)
    if tables is None:
        raise InvalidInputError(
            f"env, of type {type(core).__name__}, has no tables env.unwrapped.P[state][action] = "
            "[(probability, next_state, reward, terminated), ...]; drive it with op.rollout instead"
        )
    facts, shape = describe(core), sizes(env, horizon)
    if (facts.num_states + 1, facts.num_actions) != shape[1:]:
        raise InvalidInputError(
            "the wrappers of env change the number of its states or actions, its tables are those of "
            "env.unwrapped: hand over env.unwrapped"
        )
    if getattr(core, "fickle_passenger", False):
        raise InvalidInputError(
            "env.unwrapped.fickle_passenger is True, which its tables do not say; drive it with "
            "op.rollout instead"
        )
    limit = facts.cost_limit if cost_limit is None else cost_limit
    if limit is None:
        raise InvalidInputError(
            "cost_limit is None, and env states no limit as env.unwrapped.cost_limit; give one"
        )
    costs_of = list(cost) if isinstance(cost, Sequence) else [cost]
    _check_functions(costs_of)
    start = _first_states(core, initial, facts)
    read = _reached(_read(tables, facts), start)
    units = Units.of(
        _range_of(read) if reward_range is None else reward_range, cost_range, len(costs_of)
    )
    _check_end(units)
    means = _Means(read, costs_of, units, facts)
    if noise is None:
        noise = Deterministic() if means.are_certain else Bernoulli()
    return CMDP.stationary(
        _rows(read, facts),
        means.rewards,
        means.costs if len(costs_of) > 1 else means.costs[0],
        limit,
        np.append(start, 0.0),
        horizon=shape.horizon,
        noise=noise,
        reward_range=units.reward_range,
        cost_range=units.cost_ranges,
        actions=_existing(read, facts),
    )


def _check_functions(costs_of: list[Any]) -> None:
    for m, function in enumerate(costs_of):
        if not callable(function):
            raise InvalidInputError(
                f"{_cost_name(m, costs_of)} is {function!r}; it must be a function of (state, action, "
                "next_state, reward, terminated)"
            )
    if not costs_of:
        raise InvalidInputError("cost is empty; it must hold at least one function")


def _cost_name(m: int, costs_of: list[Any]) -> str:
    return "cost" if len(costs_of) == 1 else f"cost[{m}]"


def _existing(read: _Tables, facts: EnvironmentFacts) -> BoolArray:
    """Which actions exist, ``[S + 1, A]``: those that the tables name; all of them at the end."""
    exist = np.ones((facts.num_states + 1, facts.num_actions), dtype=bool)
    for state in {state for state, _ in read}:
        exist[state] = [(state, action) in read for action in range(facts.num_actions)]
    return exist


def _first_states(core: object, initial: ArrayLike | None, facts: EnvironmentFacts) -> FloatArray:
    """The distribution of the first state over the states of the environment."""
    given = getattr(core, "initial_state_distrib", None) if initial is None else initial
    if given is None:
        raise InvalidInputError(
            "initial is None and env.unwrapped has no initial_state_distrib: say how likely each of "
            f"its {facts.num_states} states is the first one"
        )
    start = np.array(given, dtype=np.float64)
    if start.shape != (facts.num_states,):
        raise InvalidInputError(
            f"initial has shape {start.shape}; it must be one probability for each of "
            f"{facts.num_states} states, without the absorbing end"
        )
    return start


def _read(tables: Any, facts: EnvironmentFacts) -> _Tables:
    """The tables of all states and actions, checked; actions without outcomes are left out."""
    read: dict[tuple[int, int], list[_Outcome]] = {}
    for state in range(facts.num_states):
        for action in range(facts.num_actions):
            own = state + facts.first_state_number, action + facts.first_action_number
            outcomes = _entry(tables, own)
            if outcomes:
                read[state, action] = [_outcome(each, own, facts) for each in outcomes]
                total = sum(each.probability for each in read[state, action])
                if not abs(total - 1.0) <= _ROUNDING:
                    raise InvalidInputError(
                        f"env.unwrapped.P[{own[0]}][{own[1]}] sums to {total:.9g}; its probabilities "
                        "must sum to 1"
                    )
    return read


def _entry(tables: Any, own: tuple[int, int]) -> list[Any]:
    state, action = own
    try:
        of_state = tables[state]
        missing = isinstance(of_state, Mapping) and action not in of_state
        return [] if missing else list(of_state[action])
    except (LookupError, TypeError):
        raise InvalidInputError(
            f"env.unwrapped.P[{state}][{action}] is not there; it must be a list of (probability, "
            "next_state, reward, terminated)"
        ) from None


def _outcome(entry: Any, own: tuple[int, int], facts: EnvironmentFacts) -> _Outcome:
    try:
        probability, next_state, reward, terminated = entry
        found = _Outcome(
            float(probability),
            int(next_state) - facts.first_state_number,
            float(reward),
            bool(terminated),
        )
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"env.unwrapped.P[{own[0]}][{own[1]}] holds {entry!r}; it must hold (probability, "
            "next_state, reward, terminated)"
        ) from None
    if not 0.0 <= found.probability <= 1.0 + _ROUNDING:
        raise InvalidInputError(
            f"env.unwrapped.P[{own[0]}][{own[1]}] holds the probability {found.probability}; it must "
            "lie in [0, 1]"
        )
    if not 0 <= found.next_state < facts.num_states:
        raise InvalidInputError(
            f"env.unwrapped.P[{own[0]}][{own[1]}] leads to the state {next_state}; env has "
            f"{facts.num_states} states, from {facts.first_state_number}"
        )
    return found


def _reached(tables: _Tables, start: FloatArray) -> _Tables:
    """The rows of the states that an episode can be in before it is terminated, without impossible
    outcomes. A state whose every outcome is to end in itself is terminal, so it is not among them.
    """
    possible = {
        pair: [each for each in outcomes if each.probability > 0] for pair, outcomes in tables.items()
    }
    of_state: dict[int, list[_Outcome]] = {}
    for (state, _), outcomes in possible.items():
        of_state.setdefault(state, []).extend(outcomes)
    going_on = {
        state
        for state, outcomes in of_state.items()
        if not all(each.terminated and each.next_state == state for each in outcomes)
    }
    waiting = [int(state) for state in np.flatnonzero(start) if int(state) in going_on]
    found = set(waiting)
    while waiting:
        for each in of_state[waiting.pop()]:
            if not each.terminated and each.next_state not in found and each.next_state in going_on:
                found.add(each.next_state)
                waiting.append(each.next_state)
    return {pair: outcomes for pair, outcomes in possible.items() if pair[0] in found}


def _range_of(read: _Tables) -> Range:
    """The least and the largest reward, and 0, which the absorbing end earns."""
    seen = [each.reward for outcomes in read.values() for each in outcomes]
    low, high = min([0.0, *seen]), max([0.0, *seen])
    return (low, high) if low < high else (0.0, 1.0)


def _check_end(units: Units) -> None:
    """Refuses ranges without 0."""
    named = [("reward_range", units.reward_range), *(("cost_range", pair) for pair in units.cost_ranges)]
    for name, (low, high) in named:
        if not low <= 0.0 <= high:
            raise InvalidInputError(
                f"{name} is ({low:g}, {high:g}); it must contain 0, as the absorbing end has neither "
                "reward nor cost"
            )


class _Means:
    """Expected rewards ``[S + 1, A]`` and costs ``[M, S + 1, A]``, and whether they are certain."""

    def __init__(
        self, read: _Tables, costs_of: list[CostFunction], units: Units, facts: EnvironmentFacts
    ) -> None:
        pairs = (facts.num_states + 1, facts.num_actions)
        self.rewards = np.zeros(pairs)
        self.costs = np.zeros((len(costs_of), *pairs))
        self.are_certain = True
        for (state, action), outcomes in read.items():
            self.rewards[state, action] = self._mean(outcomes, [each.reward for each in outcomes])
            for m, function in enumerate(costs_of):
                name = _cost_name(m, costs_of)
                charged = [
                    _charge(name, function, (state, action), each, units.cost_ranges[m], facts)
                    for each in outcomes
                ]
                self.costs[m, state, action] = self._mean(outcomes, charged)

    def _mean(self, outcomes: list[_Outcome], values: list[float]) -> float:
        """The expectation of one value for each outcome."""
        low, high = min(values), max(values)
        self.are_certain &= low == high
        total = sum(each.probability * value for each, value in zip(outcomes, values, strict=True))
        return min(max(total, low), high)  # without the rounding error of a mean outside of its values


def _charge(
    name: str,
    function: CostFunction,
    pair: tuple[int, int],
    outcome: _Outcome,
    allowed: Range,
    facts: EnvironmentFacts,
) -> float:
    """What the user's function charges for one outcome."""
    state, action = pair[0] + facts.first_state_number, pair[1] + facts.first_action_number
    next_state = outcome.next_state + facts.first_state_number
    place = f"{name}(state={state}, action={action}, next_state={next_state})"
    try:
        answer: Any = function(state, action, next_state, outcome.reward, outcome.terminated)
    except Exception as error:
        raise InvalidInputError(
            f"{place} raised {type(error).__name__}: {error}; it is called with (state, action, "
            "next_state, reward, terminated)"
        ) from error
    if not isinstance(answer, bool | int | float | np.number | np.bool_):
        raise InvalidInputError(f"{place} returned {answer!r}; it must return a number")
    low, high = allowed
    if not low <= answer <= high:
        raise InvalidInputError(
            f"{place} returned {answer:g}; it must lie in [{low:g}, {high:g}], the cost_range"
        )
    return float(answer)


def _rows(read: _Tables, facts: EnvironmentFacts) -> Transitions:
    """The transitions over the states of the environment and the absorbing end."""
    absorbing, num_actions = facts.num_states, facts.num_actions
    offsets, successors, probabilities = [0], [], []
    for state in range(absorbing + 1):
        for action in range(num_actions):
            row: dict[int, float] = {}
            for each in read.get((state, action), [_Outcome(1.0, absorbing, 0.0, True)]):
                target = absorbing if each.terminated else each.next_state
                row[target] = row.get(target, 0.0) + each.probability
            ordered = sorted(row)
            successors += ordered
            probabilities += [row[target] for target in ordered]
            offsets.append(len(successors))
    kernel = Transitions.sparse(
        offsets, successors, probabilities, num_states=absorbing + 1, num_actions=num_actions
    )
    return kernel if absorbing + 1 > _DENSE_STATES else Transitions(kernel.to_array())
