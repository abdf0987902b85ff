"""Drives a learner in an environment, episode by episode, and keeps what happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from optpess import _core
from optpess.arrays import FloatArray
from optpess.checks import check_type, whole_number
from optpess.environments.protocol import (
    EnvironmentFacts,
    Reader,
    describe,
    reader_of,
    state_of_reset,
)
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model.units import Range, Units
from optpess.run.episode_log import EpisodeLog
from optpess.run.progress import ProgressBar
from optpess.run.rollout_checkpoint import RolloutCheckpoint
from optpess.run.rollout_record import EpisodeList, Rollout

__all__ = ["Episode", "rollout"]

# How often the clock is read: for progress, for the log and for checkpoints.
_SECONDS_BETWEEN_REPORTS = 0.2
_SECONDS_BETWEEN_CHECKPOINTS = 10.0


class Episode(NamedTuple):
    """What a callback of :func:`rollout` is told of an episode.

    Example:
        >>> import optpess as op
        >>> episode = op.Episode(number=0, total_reward=1.5, total_cost=(0.5,), length=3,
        ...                      source="Baseline")
        >>> episode.total_reward, episode.total_cost[0]
        (1.5, 0.5)
    """

    number: int
    """From 0, counted by the learner."""
    total_reward: float
    """The sum of its rewards, in the environment's units."""
    total_cost: tuple[float, ...]
    """The sum of its costs, for each constraint."""
    length: int
    """How many steps it took until its end, at most H."""
    source: str
    """Where its policy came from, as in :class:`optpess.Deployment`."""


def rollout(
    learner: Learner,
    env: Any,
    *,
    episodes: int,
    seed: int | None = 0,
    reward_range: Range = (0.0, 1.0),
    checkpoint: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    callback: Callable[[Episode], object] | None = None,
    progress: bool = True,
) -> Rollout:
    """Plays episodes of an environment with a learner. **The learner moves**: it counts every episode.

    The environment is a Gymnasium environment with discrete spaces, or any object with ``reset`` and
    ``step``; :mod:`optpess.environments` says how its answers are read and where costs are found. An
    episode has H steps, those of the learner. If it is ``terminated`` before, the learner spends the
    rest in its last state, the absorbing end, which earns and costs nothing: make the learner with the
    shape :func:`optpess.environments.sizes` gives. ``truncated`` before step H is refused.

    Episode k begins with ``env.reset(seed=s)``, where s depends on ``seed`` and k alone, and its actions
    come from the learner's own stream. So a rollout that is stopped, by Ctrl-C or by an error, can go on
    later with the same learner, or a stored one, and gives the same episodes. The learner is then as it
    was before the episode that was stopped. This needs an environment that accepts a seed and keeps
    nothing else from one episode to the next.

    Args:
        learner: the learner to drive, with the environment's sizes.
        env: the environment.
        episodes: how many episodes to play in this call; with a ``checkpoint``, in all calls together.
        seed: of the environment's episodes; None to call ``reset`` without a seed.
        reward_range: the least and the largest reward of a step of the environment. Rewards are mapped
            from it to the learner's range, others are refused. (0, 1) stands for the learner's own.
        checkpoint: a file that is written from time to time and at the end. If it exists, the learner
            continues from it.
        log: a CSV file that gets a line for each episode.
        callback: called with an :class:`Episode` after each episode; True stops the rollout.
        progress: whether to show progress once it takes two seconds.

    Example:
        >>> import numpy as np, optpess as op
        >>> class Walk:  # two states; action 1 pays more, and ends the episode now and then
        ...     num_states, num_actions = 2, 2
        ...     def reset(self, seed=None):
        ...         self.random = np.random.default_rng(seed)
        ...         return 0
        ...     def step(self, action):
        ...         return action, 0.5 * action, float(action), self.random.random() < 0.1 * action
        >>> env = Walk()
        >>> shape = op.environments.sizes(env, horizon=5)
        >>> safe = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=2)
        >>> learner = op.OptPessMix(shape=shape, initial=0,
        ...     baseline=op.SafeBaseline(safe, op.SafetyMargin(cost_limit=2.0, safe_cost=0.0)))
        >>> result = op.rollout(learner, env, episodes=500)
        >>> learner.episodes_observed, result.returns.shape
        (500, (500,))
    """
    check_type("learner", learner, Learner, "the learner comes first, then the environment")
    count = whole_number("episodes", episodes)
    driver = _Driver(learner, env, seed, reward_range)
    _check_turn(learner)
    record = EpisodeList(len(learner._limits))
    first = learner.episodes_observed
    store = None if checkpoint is None else RolloutCheckpoint(Path(checkpoint), driver.facts())
    if store is not None and store.exists():
        record, first = store.resume(learner)
    elif learner.num_episodes is not None and first + count > learner.num_episodes:
        raise InvalidInputError(
            f"episodes is {count}; the learner has {learner.num_episodes - first} of its "
            f"{learner.num_episodes} episodes left"
        )
    lines = None if log is None else EpisodeLog(Path(log), record, first, driver.costs_out)
    bar = ProgressBar(count, "episodes") if progress else None
    try:
        driver.play(record, first, count, _Reports(learner, record, first, store, lines, callback, bar))
    except BaseException as error:
        _add_note(error, learner)
        error.rollout = driver.result(record, first)  # type: ignore[attr-defined]
        raise
    finally:
        learner._inner.drive(None)
        if bar is not None:
            bar.close()
    return driver.result(record, first)


def _check_turn(learner: Learner) -> None:
    if (pending := learner._inner.pending()) is not None:
        raise InvalidInputError(
            f"learner has planned episode {pending['episode']} and not observed it: call observe, or "
            "abandon, first"
        )


def _add_note(error: BaseException, learner: Learner) -> None:
    error.add_note(
        f"optpess: stopped in episode {learner.episodes_observed}; the learner has counted the episodes "
        "before it and can go on. What was recorded is in the attribute 'rollout' of this exception."
    )


@dataclass(slots=True)
class _Reports:
    """What is done between episodes: log, callback, checkpoint, progress."""

    learner: Learner
    record: EpisodeList
    first: int
    store: RolloutCheckpoint | None
    lines: EpisodeLog | None
    callback: Callable[[Episode], object] | None
    bar: ProgressBar | None
    _next_report: float = 0.0
    _next_checkpoint: float = 0.0

    def begin(self) -> None:
        now = time.monotonic()
        self._next_report = now + _SECONDS_BETWEEN_REPORTS
        self._next_checkpoint = now + _SECONDS_BETWEEN_CHECKPOINTS

    def after_episode(self) -> bool:
        """Whether to stop."""
        stop = False
        if self.callback is not None:
            stop = self.callback(Episode(*self.record.last(self.first))) is True
        now = time.monotonic()
        if now >= self._next_report:
            self._next_report = now + _SECONDS_BETWEEN_REPORTS
            if self.lines is not None:
                self.lines.write()
            if self.bar is not None:
                self.bar(len(self.record))
            if now >= self._next_checkpoint:
                self._next_checkpoint = now + _SECONDS_BETWEEN_CHECKPOINTS
                self._save()
        return stop

    def end(self) -> None:
        """Also after an error: nothing that was recorded is lost."""
        if self.lines is not None:
            self.lines.close()
        self._save()

    def _save(self) -> None:
        if self.store is not None:
            self.store.save(self.learner, self.record, self.first)


class _Driver:
    """A learner and an environment that fit each other."""

    def __init__(self, learner: Learner, env: Any, seed: int | None, reward_range: Range) -> None:
        self._learner, self._env = learner, env
        self._facts = describe(env)
        self._seed = None if seed is None else whole_number("seed", seed, least=0)
        self._end_exists = _check_sizes(learner, self._facts)
        self._range = _reward_range(learner, reward_range)

    def facts(self) -> dict[str, Any]:
        """What must be the same when a rollout goes on."""
        return {"env_seed": self._seed, "env_reward_range": list(self._range)}

    def costs_out(self, costs: FloatArray) -> FloatArray:
        """Certified costs ``[n, M]`` in the user's units."""
        return self._learner.units.cost_values_out(costs, self._learner.shape.horizon)

    def result(self, record: EpisodeList, first: int) -> Rollout:
        """The record as arrays."""
        facts = self.facts() | {"env": _name_of(self._env), "accepts_seed": self._facts.accepts_seed}
        return Rollout.of(record, first, self._learner, facts)

    def play(self, record: EpisodeList, first: int, count: int, reports: _Reports) -> None:
        """Plays until the record has ``count`` episodes."""
        inner = self._learner._inner
        inner.drive(self._range)
        begin, finish = inner.begin_episode, inner.finish_episode
        reset, shift = self._env.reset, self._facts.first_action_number
        seeded = self._seed is not None and self._facts.accepts_seed
        seed, facts, keep = self._seed or 0, self._facts, record.add
        reports.begin()
        try:
            for number in range(first + len(record), first + count):
                answer = reset(seed=_core.episode_seed(seed, number)) if seeded else reset()
                action = begin(state_of_reset(answer, facts))
                length = self._steps(action, shift)
                keep(length, *finish())
                if reports.after_episode():
                    return
        finally:
            if inner.pending() is not None:
                inner.abandon()
            reports.end()

    def _steps(self, action: int | None, shift: int) -> int:
        """Plays the steps of one episode; returns how many there were."""
        step, take, read = self._env.step, self._learner._inner.take_step, self._reader
        length = 0
        while action is not None:
            answer = step(action + shift)
            length += 1
            if read is None:
                read = self._first_reader(answer)
            state, reward, cost, terminated, truncated = read(answer)
            if terminated:
                self._end(length, reward, cost, state)
                return length
            action = take(reward, cost, state)
            if truncated and action is not None:
                raise self._truncated(length)
        return length

    _reader: Reader | None = None

    def _first_reader(self, answer: Any) -> Reader:
        self._reader = reader_of(answer, self._facts, len(self._learner._limits))
        return self._reader

    def _end(self, length: int, reward: float, cost: Any, state: int) -> None:
        """Takes the last step of an episode that the environment ended."""
        inner, horizon = self._learner._inner, self._learner.shape.horizon
        if length == horizon:
            inner.take_step(reward, cost, state)
        elif self._end_exists:
            inner.end_early(reward, cost)
        else:
            raise InvalidInputError(
                f"env terminated an episode after {length} of {horizon} steps, but the learner has no "
                f"state for the end: make it with op.environments.sizes(env, {horizon}), which has one "
                "state more than the environment"
            )

    def _truncated(self, length: int) -> InvalidInputError:
        horizon, limit = self._learner.shape.horizon, self._facts.time_limit
        cause = (
            f"its time limit is {limit} steps"
            if limit is not None and limit <= length
            else "a time limit is the likely cause"
        )
        return InvalidInputError(
            f"env truncated an episode after {length} steps, before step {horizon}, the learner's "
            f"horizon: {cause}; make it with max_episode_steps={horizon}, or a learner with horizon "
            f"{length}"
        )


def _check_sizes(learner: Learner, facts: EnvironmentFacts) -> bool:
    """Whether the learner has a state for the end; refuses other sizes than the environment's."""
    _, num_states, num_actions = learner.shape
    if num_actions != facts.num_actions:
        raise InvalidInputError(
            f"learner has {num_actions} actions; env has {facts.num_actions}: make the learner with "
            "the shape op.environments.sizes(env, horizon)"
        )
    if num_states not in (facts.num_states, facts.num_states + 1):
        raise InvalidInputError(
            f"learner has {num_states} states; env has {facts.num_states}, and one more for an early "
            "end: make the learner with the shape op.environments.sizes(env, horizon)"
        )
    return num_states == facts.num_states + 1


def _reward_range(learner: Learner, given: Range) -> Range:
    """The range of the environment's rewards; (0, 1) stands for the learner's own."""
    stated, own = Units.of(given, (0.0, 1.0), 1).reward_range, learner.units.reward_range
    if stated == (0.0, 1.0) or stated == own:
        return own
    if own != (0.0, 1.0):
        raise InvalidInputError(
            f"reward_range is {stated}; the learner's own is {own}: give one of the two, or the same"
        )
    return stated


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    name = getattr(spec, "id", None)
    return name if isinstance(name, str) else type(env).__name__
