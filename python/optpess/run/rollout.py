"""Drives a learner in an environment, episode by episode, and keeps what happened."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import starmap
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray
from optpess.checks import check_path, check_type, shown, truth_value, whole_number
from optpess.environments.protocol import (
    EnvironmentFacts,
    Reader,
    describe,
    reader_of,
    state_of_reset,
)
from optpess.exceptions import GuaranteeWarning, InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.mix import OptPessMix
from optpess.model.units import Range, Units
from optpess.progress import ProgressBar
from optpess.run.arguments import check_pause
from optpess.run.episode_log import EpisodeLog
from optpess.run.interrupts import attach, exits_on_termination
from optpess.run.rollout_checkpoint import RolloutCheckpoint
from optpess.run.rollout_record import EpisodeList, Rollout

__all__ = ["Episode", "rollout"]

# How often something else is done than playing: for signals, progress, the log and checkpoints.
_SECONDS_BETWEEN_REPORTS = 0.1
# The arguments of one call without arguments.
_ONCE: tuple[tuple[()], ...] = ((),)


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
    checkpoint_every: float = 10.0,
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
            continues from it. The one before is kept beside it, with ``.previous`` after its name.
        checkpoint_every: the seconds between two checkpoints.
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
    count = whole_number("episodes", episodes, most=2**63 - 1)
    show_progress = truth_value("progress", progress)
    if callback is not None and not callable(callback):
        raise InvalidInputError(f"callback is {shown(callback)}; it must be a function of an Episode")
    driver = _Driver(learner, env, seed, reward_range)
    _check_turn(learner)
    pause = check_pause(checkpoint_every)
    reports = _Reports.of(driver, count, checkpoint, log, callback)
    reports.pause = pause
    left = count - len(reports.record)
    reports.begin(ProgressBar(left, "episodes") if show_progress else None)
    with exits_on_termination() if reports.store is not None else nullcontext():
        try:
            driver.play(count, reports)
            reports.end()
            result = driver.result(reports.record, reports.first)
            _warn_of_contradiction(learner)  # a warning may be turned into an error
        except BaseException as error:
            driver.stop()
            _add_facts(error, driver, reports)
            raise
        finally:
            learner._inner.drive(None)
            reports.close()
    return result


def _check_turn(learner: Learner) -> None:
    if (pending := learner._inner.pending()) is not None:
        raise InvalidInputError(
            f"learner has planned episode {pending['episode']} and not observed it: call observe, or "
            "abandon, first"
        )


def _add_facts(error: BaseException, driver: _Driver, reports: _Reports) -> None:
    """Ends the reports of a rollout that was stopped, and adds to its error what was played."""
    note = (
        f"stopped in episode {reports.first + len(reports.record)}; the learner has counted "
        "the episodes before it and can go on. What was recorded is in the attribute 'rollout' of this "
        "exception."
    )
    attach(error, note, rollout=driver.result(reports.record, reports.first))
    try:
        reports.end()
    except Exception as second:  # noqa: BLE001 - the first error is the one to show
        attach(error, f"then the log or the checkpoint could not be written: {second!r}")


@dataclass(slots=True)
class _Reports:
    """The record of the episodes, and what is done between them: log, callback, checkpoint, progress."""

    learner: Learner
    record: EpisodeList
    first: int
    store: RolloutCheckpoint | None
    lines: EpisodeLog | None
    callback: Callable[[Episode], object] | None
    bar: ProgressBar | None = None
    pause: float = 10.0  # seconds between two checkpoints
    _resumed: int = 0  # how many episodes the record began with
    _next_report: float = 0.0
    _next_checkpoint: float = 0.0

    @classmethod
    def of(
        cls,
        driver: _Driver,
        count: int,
        checkpoint: str | PathLike[str] | None,
        log: str | PathLike[str] | None,
        callback: Callable[[Episode], object] | None,
    ) -> Self:
        """Checks everything, then moves the learner to where its checkpoint ends."""
        learner = driver.learner
        record, first = EpisodeList(len(learner._limits)), learner.episodes_observed
        store = lines = resumed = None
        if checkpoint is not None:
            path = Path(check_path(checkpoint, "checkpoint"))
            if log is not None and Path(check_path(log, "log")).absolute() == path.absolute():
                raise InvalidInputError(f"log and checkpoint are the same file, {str(path)!r}")
            store = RolloutCheckpoint(path, driver.facts(), learner)
            if store.exists():
                resumed = store.load(learner, count)
                record, first = resumed.record, resumed.first
        if learner.num_episodes is not None and first + count > learner.num_episodes:
            raise InvalidInputError(
                f"episodes is {count}; the learner has {learner.num_episodes - first} of its "
                f"{learner.num_episodes} episodes left"
            )
        if log is not None:
            path = Path(check_path(log, "log"))
            lines = EpisodeLog(path, record, first, driver.costs_out, resumed=resumed is not None)
        if resumed is not None:
            learner._inner = resumed.learner._inner
        return cls(learner, record, first, store, lines, callback)

    def begin(self, bar: ProgressBar | None) -> None:
        """Opens the files: what cannot be written is found before an episode is played."""
        if self.store is not None:
            self._save()
        if self.lines is not None:
            self.lines.open()
        self.bar, self._resumed = bar, len(self.record)
        now = time.monotonic()
        self._next_report = now + _SECONDS_BETWEEN_REPORTS
        self._next_checkpoint = now + self.pause

    def call(self, number: int) -> bool:
        """Calls the callback; returns whether to stop."""
        assert self.callback is not None
        stop = self.callback(Episode(*self.record.last(number)))
        if self.learner.episodes_observed != number + 1:
            raise InvalidInputError(
                "the callback moved the learner: it may look at it, but observe, and a rollout of the "
                "same learner, belong outside"
            )
        return isinstance(stop, bool | np.bool_) and bool(stop)

    def report(self, now: float) -> None:
        """What is due from time to time."""
        self._next_report = now + _SECONDS_BETWEEN_REPORTS
        self.record.pack()
        if self.lines is not None:
            self.lines.write()
        if self.bar is not None:
            self.bar(len(self.record) - self._resumed)
        if now >= self._next_checkpoint:
            self._next_checkpoint = now + self.pause
            self._save()

    def end(self) -> None:
        """Writes what is left. May be called again."""
        if self.lines is not None:
            self.lines.close()
        self._save()

    def close(self) -> None:
        """Clears the progress."""
        if self.bar is not None:
            self.bar.close()

    def _save(self) -> None:
        # A learner that something else has moved does not fit its episodes: the old file stays.
        fits = self.learner.episodes_observed == self.first + len(self.record)
        if self.store is not None and fits:
            self.store.save(self.learner, self.record, self.first)


class _Driver:
    """A learner and an environment that fit each other."""

    def __init__(self, learner: Learner, env: Any, seed: int | None, reward_range: Range) -> None:
        self.learner, self._env = learner, env
        self._facts = describe(env)
        self._seed = None if seed is None else whole_number("seed", seed, least=0, most=2**64 - 1)
        self._end_exists = _check_sizes(learner, self._facts)
        _check_actions(learner, self._facts)
        _check_limits(learner, self._facts)
        self._range = _reward_range(learner, reward_range)
        self._reader: Reader | None = None
        self._plans_outside = getattr(learner, "_highs", None) is not None  # not in the core

    def facts(self) -> dict[str, Any]:
        """What must be the same when a rollout goes on."""
        return {"env_seed": self._seed, "env_reward_range": list(self._range)}

    def costs_out(self, costs: FloatArray) -> FloatArray:
        """Certified costs ``[n, M]`` in the user's units."""
        return self.learner.units.cost_values_out(costs, self.learner.shape.horizon)

    def result(self, record: EpisodeList, first: int) -> Rollout:
        """The record as arrays."""
        facts = self.facts() | {"env": _name_of(self._env), "accepts_seed": self._facts.accepts_seed}
        return Rollout.of(record, first, self.learner, facts)

    def play(self, count: int, reports: _Reports) -> None:
        """Plays until the record has ``count`` episodes."""
        inner, record, first = self.learner._inner, reports.record, reports.first
        inner.drive(self._range)
        seeded = self._seed is not None and self._facts.accepts_seed
        seed, reset, clock = self._seed or 0, self._env.reset, time.monotonic
        signals = _core.SignalWatch()
        finish, lengths, calls_back = inner.finish_episode, record.lengths, reports.callback is not None
        del lengths[len(record) :]
        for number in range(first + len(record), first + count):
            answer = reset(seed=_core.episode_seed(seed, number)) if seeded else reset()
            lengths.append(self._steps(self._begin(answer)))
            # The learner counts the episode and the record gets its row, without an interrupt between.
            record.fresh.extend(starmap(finish, _ONCE))
            if calls_back and reports.call(number):
                return
            if (now := clock()) >= reports._next_report:
                signals.check()
                reports.report(now)

    def stop(self) -> None:
        """Gives up the episode that is being played, if there is one."""
        if self.learner._inner.pending() is not None:
            self.learner._inner.abandon()

    def _begin(self, answer: Any) -> int:
        """Plans an episode that begins with what ``reset`` returned; the first action."""
        state = state_of_reset(answer, self._facts)
        inner = self.learner._inner
        if self._plans_outside and inner.pending() is None:
            self.learner.next_policy()
        try:
            return inner.begin_episode(state)
        except InvalidInputError as error:
            if error.kind != "Impossible":
                raise
            number = state + self._facts.first_state_number
            raise InvalidInputError(
                f"env.reset returned the state {number}; the learner was told that an episode starts "
                "there with probability 0: make it with another initial"
            ) from None

    def _steps(self, action: int | None) -> int:
        """Plays the steps of one episode; returns how many there were."""
        step, take, read = self._env.step, self.learner._inner.take_step, self._reader
        shift, length = self._facts.first_action_number, 0
        while action is not None:
            answer = step(action + shift)
            length += 1
            if read is None:
                read = self._reader = reader_of(answer, self._facts, len(self.learner._limits))
            state, reward, cost, terminated, truncated = read(answer)
            try:
                if terminated:
                    self._end(length, reward, cost, state)
                    return length
                action = take(reward, cost, state)
            except InvalidInputError as error:
                raise self._refused(error, length) from None
            if truncated and action is not None:
                raise self._truncated(length)
        return length

    def _end(self, length: int, reward: float, cost: Any, state: int) -> None:
        """Takes the last step of an episode that the environment ended."""
        inner, horizon = self.learner._inner, self.learner.shape.horizon
        if length == horizon:
            inner.take_step(reward, cost, state)
        elif self._end_exists:
            self._check_nothing(length)
            inner.end_early(reward, cost)
        else:
            raise InvalidInputError(
                f"env terminated an episode after {length} of {horizon} steps, but the learner has no "
                f"state for the end: make it with op.environments.sizes(env, {horizon}), which has one "
                "state more than the environment"
            )

    def _check_nothing(self, length: int) -> None:
        """Refuses an early end if a reward or cost of 0 is outside of its range."""
        ranges = {"reward_range": self._range}
        for m, pair in enumerate(self.learner.units.cost_ranges):
            ranges["the learner's cost_range" + (f"[{m}]" if m else "")] = pair
        for name, (low, high) in ranges.items():
            if not low <= 0.0 <= high:
                raise InvalidInputError(
                    f"env terminated an episode after {length} of {self.learner.shape.horizon} steps; "
                    f"after the end rewards and costs are 0, but {name} is {(low, high)}: it must "
                    "contain 0"
                )

    def _refused(self, error: InvalidInputError, length: int) -> InvalidInputError:
        """A refusal of the core in the words of somebody who has an environment."""
        found = re.match(r"(reward|cost)s\[(.*?)\] is ([^;]*)", str(error))
        if found is None:
            return error
        what, place, value = found.groups()
        which = f" [{place.partition(',')[0]}]" if "," in place else ""
        made = _reworded(error, f"env.step returned the {what}{which} {value} at step {length - 1}")
        if what == "reward" and self._range != self.learner.units.reward_range:
            words = str(made).replace("the learner's reward_range", "the reward_range of the rollout")
            made.args = (words,)
        return made

    def _truncated(self, length: int) -> InvalidInputError:
        horizon, limit = self.learner.shape.horizon, self._facts.time_limit
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


def _reworded(error: InvalidInputError, found: str) -> InvalidInputError:
    """A refusal of the core that names an environment's method in place of an array."""
    rule = "it must be finite" if error.kind == "NotFinite" else str(error).partition("; ")[2]
    made = InvalidInputError(f"{found}; {rule}")
    made.kind = error.kind
    return made


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


def _check_actions(learner: Learner, facts: EnvironmentFacts) -> None:
    """Refuses a learner that may take an action that does not exist in the environment."""
    exist = facts.existing_actions
    if exist is None:
        return
    known = np.ones(exist.shape, bool) if learner.actions is None else learner.actions[: len(exist)]
    missing = np.argwhere(known & ~exist)
    if len(missing):
        state, action = missing[0]
        raise InvalidInputError(
            f"env.existing_actions[{state}, {action}] is False; the learner may take that action: make "
            "it with actions=, a mask [S, A] of those that exist"
        )


def _check_limits(learner: Learner, facts: EnvironmentFacts) -> None:
    """Warns if the learner keeps a higher limit than the environment states."""
    if facts.cost_limit is None:
        return
    stated, kept = np.atleast_1d(facts.cost_limit), np.array(learner._limits)
    if stated.shape != kept.shape or (kept > stated).any():
        warnings.warn(
            f"env states the cost_limit {facts.cost_limit}; the learner keeps {learner._limits}, which "
            "is what its guarantee is about",
            GuaranteeWarning,
            stacklevel=4,
        )


def _warn_of_contradiction(learner: Learner) -> None:
    """Warns if the episodes contradict what the learner was told of its baseline."""
    if isinstance(learner, OptPessMix) and (contradiction := learner.contradiction) is not None:
        warnings.warn(
            f"{contradiction} (Assumption 2.2), so no guarantee holds",
            GuaranteeWarning,
            stacklevel=3,
        )


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
