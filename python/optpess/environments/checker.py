"""A checker of environments, whose findings name the likely cause."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from optpess.checks import whole_number
from optpess.display import counted
from optpess.environments.protocol import (
    EnvironmentFacts,
    Reader,
    action_mask_in,
    describe,
    reader_of,
    state_of_reset,
    unwrapped,
)
from optpess.exceptions import InvalidInputError
from optpess.model.units import CostRange, Range, Units

__all__ = ["EnvironmentFinding", "EnvironmentReport", "check"]

# How long an episode without a horizon may be.
_LONGEST = 1000

# The most findings in the text of a report.
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class EnvironmentFinding:
    """Something that is wrong with an environment, or could be.

    Example:
        >>> import optpess as op
        >>> print(op.environments.EnvironmentFinding("error", "env.reset returned None"))
        error: env.reset returned None
    """

    severity: str
    """``"error"`` if a learner cannot be driven by the environment, else ``"advice"``."""
    message: str
    """What was found, with its likely cause."""

    def __str__(self) -> str:
        return f"{self.severity}: {self.message}"


@dataclass(frozen=True, slots=True)
class EnvironmentReport:
    """What :func:`check` found.

    Example:
        >>> import optpess as op
        >>> finding = op.environments.EnvironmentFinding("error", "env.reset returned None")
        >>> report = op.environments.EnvironmentReport("Maze", (finding,), episodes=0, steps=0)
        >>> report.is_sound
        False
    """

    environment: str
    """The environment, as text."""
    findings: tuple[EnvironmentFinding, ...]
    """The findings, errors first; each kind once."""
    episodes: int
    """The number of episodes that were played to their end."""
    steps: int
    """The number of steps that were played."""

    @property
    def errors(self) -> tuple[EnvironmentFinding, ...]:
        """The findings that are errors."""
        return tuple(each for each in self.findings if each.severity == "error")

    @property
    def is_sound(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def __str__(self) -> str:
        played = f"{counted(self.episodes, 'episode')}, {counted(self.steps, 'step')}"
        if not self.findings:
            return f"{self.environment}: nothing found in {played}"
        found = "\n".join(f"  {each}" for each in self.findings[:_MOST_SHOWN])
        left = len(self.findings) - _MOST_SHOWN
        rest = f"\n  and {left} more, in findings" if left > 0 else ""
        return f"{self.environment}: {counted(len(self.errors), 'error')} in {played}\n{found}{rest}"

    def __repr__(self) -> str:
        found = f"{counted(len(self.findings), 'finding')}, {counted(len(self.errors), 'error')}"
        played = f"episodes={self.episodes}, steps={self.steps}"
        return f"EnvironmentReport({self.environment!r}, {found}, {played})"


def check(
    env: Any,
    *,
    horizon: int | None = None,
    episodes: int = 3,
    seed: int = 0,
    reward_range: Range = (0.0, 1.0),
    cost_range: CostRange = (0.0, 1.0),
    num_constraints: int = 1,
    strict: bool = False,
) -> EnvironmentReport:
    """Plays a few episodes with random actions, and reports what a learner could not be driven by.

    An action is chosen among those of ``info["action_mask"]``, if there is one. Nothing is raised for
    what is found, unless ``strict`` is set. If ``reset`` takes a seed, the episodes are played twice, to
    be compared. What a few episodes do not show is not found.

    Args:
        env: a Gymnasium environment or any object with ``reset`` and ``step``.
        horizon: H, the number of steps of an episode; None to play until the environment ends it.
        episodes: how many episodes to play.
        seed: the seed of the first episode and of the actions.
        reward_range: the least and the largest reward of a step that the learner will be told.
        cost_range: the same of the costs, or one for each constraint.
        num_constraints: M, the number of costs of a step.
        strict: whether to raise an :class:`InvalidInputError` if there is an error.

    Example:
        >>> import optpess as op
        >>> class Walk:
        ...     num_states, num_actions = 5, 2
        ...     def reset(self, seed=None):
        ...         self.place = 2
        ...         return self.place
        ...     def step(self, action):
        ...         self.place += 1 if action == 1 else -1
        ...         return self.place, -1.0, 0.0, self.place in (0, 4)
        >>> report = op.environments.check(Walk(), horizon=20)
        >>> report.is_sound
        False
        >>> print(report.errors[0].message.partition(";")[0])
        env.step returned the reward -1, outside of the range (0, 1)
        >>> print(op.environments.check(Walk(), horizon=20, reward_range=(-1, 0)))
        Walk: nothing found in 3 episodes, 8 steps
    """
    steps = None if horizon is None else whole_number("horizon", horizon, most=2**32 - 1)
    units = Units.of(reward_range, cost_range, whole_number("num_constraints", num_constraints))
    visit = _Visit(env, units, steps)
    count = whole_number("episodes", episodes)
    with contextlib.suppress(_StopVisit):
        visit.play(count, seed)
    report = visit.report()
    if strict and not report.is_sound:
        raise InvalidInputError(str(report))
    return report


class _StopVisit(Exception):  # noqa: N818 - no error: the visit ends here, with its findings
    """Nothing further can be checked."""


@dataclass(slots=True)
class _Seen:
    """The least and the largest of some numbers."""

    low: float = math.inf
    high: float = -math.inf

    def add(self, number: float) -> None:
        number += 0.0  # -0 becomes 0
        self.low, self.high = min(self.low, number), max(self.high, number)


@dataclass(slots=True)
class _Episode:
    """What was observed in an episode, to be compared."""

    first_state: int
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    ended_by: str = "horizon"


class _Visit:
    """Plays episodes and collects findings, the first of each kind."""

    def __init__(self, env: Any, units: Units, horizon: int | None) -> None:
        self._env, self._units, self._horizon = env, units, horizon
        self._findings: dict[str, tuple[str, str]] = {}
        self._rewards, self._costs = _Seen(), [_Seen() for _ in units.cost_ranges]
        self._masks: dict[int, Any] = {}
        self._episodes = self._steps = 0
        self._reader: Reader | None = None

    def report(self) -> EnvironmentReport:
        if self._steps:
            self._check_ranges()
        found = [EnvironmentFinding(*each) for each in self._findings.values()]
        found.sort(key=lambda each: each.severity != "error")
        name = type(unwrapped(self._env)).__name__
        return EnvironmentReport(name, tuple(found), self._episodes, self._steps)

    def play(self, episodes: int, seed: int) -> None:
        facts = self._describe()
        self._check_limit(facts)
        played = self._all_episodes(facts, episodes, seed)
        self._check_lengths(facts, played)
        if facts.accepts_seed:
            before = self._episodes, self._steps
            again = self._all_episodes(facts, episodes, seed)
            self._episodes, self._steps = before
            self._check_repetition(played, again)

    def _all_episodes(self, facts: EnvironmentFacts, episodes: int, seed: int) -> list[_Episode]:
        """Plays them, the first one with the seed."""
        generator = np.random.default_rng(seed)
        seeds = [seed, *[None] * (episodes - 1)]
        return [self._episode(facts, generator, each) for each in seeds]

    # Before the first episode

    def _describe(self) -> EnvironmentFacts:
        try:
            facts = describe(self._env)
        except InvalidInputError as error:
            self._stop("facts", str(error))
        if not facts.accepts_seed:
            self._advise(
                "seed",
                "env.reset takes no argument seed, so its episodes cannot be repeated: a rollout that "
                "is stopped and resumed will not be the one that was not stopped",
            )
        return facts

    def _check_limit(self, facts: EnvironmentFacts) -> None:
        if facts.cost_limit is None:
            return
        count, expected = np.size(facts.cost_limit), len(self._units.cost_ranges)
        if count != expected:
            self._blame(
                "limit",
                f"env.cost_limit has {count} limits, and num_constraints is {expected}; there must be "
                "one limit for each cost",
            )

    # Episodes

    def _episode(
        self, facts: EnvironmentFacts, generator: np.random.Generator, seed: int | None
    ) -> _Episode:
        state, info = self._reset(facts, seed)
        episode = _Episode(state)
        for step in range(self._horizon or facts.time_limit or _LONGEST):
            mask = self._mask(facts, state, info)
            allowed = np.arange(facts.num_actions) if mask is None else np.flatnonzero(mask)
            action = int(generator.choice(allowed)) + facts.first_action_number
            answer = self._call("step", action)
            if self._reader is None:
                self._reader = self._read(reader_of, answer, facts, len(self._units.cost_ranges))
            state, reward, cost, terminated, truncated = self._read(self._reader, answer)
            costs = self._numbers(reward, cost, step)
            self._steps += 1
            ended = bool(terminated), bool(truncated)
            episode.steps.append((int(state), float(reward), *costs, *ended))
            info = answer[-1]
            if terminated:
                episode.ended_by = "terminated"
                break
            if truncated:
                episode.ended_by = "truncated"
                self._check_truncation(facts, step + 1)
                break
        self._episodes += 1
        return episode

    def _reset(self, facts: EnvironmentFacts, seed: int | None) -> tuple[int, Any]:
        seeded = {"seed": seed} if seed is not None and facts.accepts_seed else {}
        answer = self._call("reset", **seeded)
        if hasattr(self._env, "observation_space") and not isinstance(answer, tuple):
            self._advise(
                "pair",
                "env.reset returned the state alone; Gymnasium's returns (state, info), and wrappers "
                "unpack that (before Gym 0.26 it was the state alone)",
            )
        state = self._read(state_of_reset, answer, facts)
        return state, answer[1] if isinstance(answer, tuple) else None

    def _mask(self, facts: EnvironmentFacts, state: int, info: Any) -> Any:
        mask = self._read(action_mask_in, info, facts)
        if mask is None:
            return None
        number = state + facts.first_state_number
        if not mask.any():
            self._stop("mask", f"info['action_mask'] allows no action in state {number}")
        before = self._masks.setdefault(state, mask)
        if not np.array_equal(before, mask):
            self._blame(
                "mask",
                f"info['action_mask'] in state {number} was {before.astype(int).tolist()} and later "
                f"{mask.astype(int).tolist()}; which actions exist must depend on the state alone "
                "(likely: it is the mask of the state before the step)",
            )
        return mask

    def _numbers(self, reward: Any, cost: Any, step: int) -> list[float]:
        """Takes note of rewards and costs; refuses those that are not finite numbers."""
        try:
            value, costs = float(reward), [float(each) for each in np.atleast_1d(cost)]
        except (TypeError, ValueError):
            self._stop(
                "numbers",
                f"env.step returned the reward {reward!r} and the cost {cost!r} at step {step}; they "
                "must be numbers at every step",
            )
        if len(costs) != len(self._costs):
            self._stop(
                "numbers",
                f"env.step returned {counted(len(costs), 'cost')} at step {step}; there are "
                f"{len(self._costs)} at other steps",
            )
        for name, number in (("reward", value), *(("cost", each) for each in costs)):
            if not math.isfinite(number):
                self._stop(
                    "numbers",
                    f"env.step returned the {name} {number} at step {step} (likely: a division by zero "
                    "or a logarithm of 0 in the environment)",
                )
        self._rewards.add(value)
        for seen, each in zip(self._costs, costs, strict=True):
            seen.add(each)
        return costs

    # After the episodes

    def _check_truncation(self, facts: EnvironmentFacts, steps: int) -> None:
        if self._horizon is None or steps >= self._horizon:
            return
        if facts.time_limit == steps:
            cause = (
                f"its TimeLimit is shorter than the horizon {self._horizon}: make it with "
                f"max_episode_steps=-1, or with at least {self._horizon}"
            )
        else:
            cause = (
                f"likely a time limit of its own that is shorter than the horizon {self._horizon}: "
                "lengthen it, or return terminated if the episode really ends there"
            )
        self._blame(
            "truncated",
            f"the episode was truncated after {steps} steps; {cause}, or take horizon={steps}",
        )

    def _check_ranges(self) -> None:
        seen, (low, high) = self._rewards, self._units.reward_range
        if seen.low < low or seen.high > high:
            outside = seen.low if seen.low < low else seen.high
            fits = f"({min(seen.low, 0.0):g}, {max(seen.high, 0.0):g})"
            self._blame(
                "rewards",
                f"env.step returned the reward {outside:g}, outside of the range ({low:g}, {high:g}); "
                f"rewards from {seen.low:g} to {seen.high:g} were seen: say reward_range={fits}, or the "
                "range that the problem guarantees",
            )
        for m, (seen, (low, high)) in enumerate(zip(self._costs, self._units.cost_ranges, strict=True)):
            if low <= seen.low and seen.high <= high:
                continue
            outside = seen.low if seen.low < low else seen.high
            cause = (
                "likely a negative reward was used as the cost: change its sign"
                if outside < 0.0
                else f"scale it, or say cost_range=({min(seen.low, 0.0):g}, {max(seen.high, 0.0):g})"
            )
            name = "cost" if len(self._costs) == 1 else f"cost [{m}]"
            self._blame(
                f"costs {m}",
                f"env.step returned the {name} {outside:g}, outside of the range ({low:g}, {high:g}); "
                f"costs from {seen.low:g} to {seen.high:g} were seen; {cause}",
            )

    def _check_lengths(self, facts: EnvironmentFacts, played: list[_Episode]) -> None:
        lengths = {len(each.steps) for each in played}
        ends = {each.ended_by for each in played}
        if len(played) > 1 and ends == {"terminated"} and len(lengths) == 1:
            (length,) = lengths
            if length > 1 and length != self._horizon:
                self._advise(
                    "lengths",
                    f"every episode was terminated after {length} steps; if that is a time limit and "
                    f"not an end, take horizon={length}",
                )
        if self._horizon is None and "horizon" in ends and facts.time_limit is None:
            self._advise(
                "endless",
                f"an episode had no end within {_LONGEST} steps; say its length: horizon",
            )

    def _check_repetition(self, played: list[_Episode], again: list[_Episode]) -> None:
        if played != again:
            self._advise(
                "repetition",
                "after env.reset with the same seed and with the same actions, other episodes were "
                "observed (likely: env.reset does not seed what env.step draws from, or something is "
                "kept between episodes); a rollout that is stopped and resumed will not be the one that "
                "was not stopped",
            )

    # Findings

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        try:
            return getattr(self._env, method)(*arguments, **named)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a finding
            self._stop(
                "raised",
                f"env.{method}({', '.join(map(str, arguments))}) raised {type(error).__name__}: {error}",
            )

    def _read(self, read: Any, *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except InvalidInputError as error:
            self._stop("form", str(error))

    def _blame(self, kind: str, message: str) -> None:
        self._findings.setdefault(kind, ("error", message))

    def _advise(self, kind: str, message: str) -> None:
        self._findings.setdefault(kind, ("advice", message))

    def _stop(self, kind: str, message: str) -> NoReturn:
        self._blame(kind, message)
        raise _StopVisit


# As users import them; pickles do not depend on the layout.
EnvironmentFinding.__module__ = EnvironmentReport.__module__ = "optpess.environments"
