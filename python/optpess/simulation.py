"""Learners against a known model: the compiled loop, the judge, and what to expect of a run."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from optpess import _core
from optpess.exceptions import InvalidInputError
from optpess.learners import Learner, OptPessLP, OptPessPrimalDual
from optpess.model import CMDP
from optpess.planning import solve
from optpess.runs import Finding, Run, Trace
from optpess.terms import SafeBaseline, SafetyMargin, Scaled

__all__ = ["Forecast", "forecast", "simulate"]

# Traces keep everything; more than this many episodes in all would be a surprise.
_MAX_TRACED = 10_000_000
# Each replicate keeps a few hundred record points; a million of them take some gigabytes.
_MAX_REPLICATES = 1_000_000


def simulate(
    model: CMDP,
    learner: Learner,
    *,
    replicates: int | Iterable[int] = 1,
    seed: int = 0,
    threads: int | None = None,
    episodes: int | None = None,
    progress: bool = True,
    trace: bool = False,
    audit: bool = False,
) -> Run:
    """Runs replicates of a learner against a model, in compiled code, and judges them exactly.

    Each replicate starts from a copy of the learner, which is left untouched. The model is used to
    sample and to judge; the learner never sees it. The same seed gives the same record, bit for bit,
    whatever the number of threads and whichever other replicates are run beside it.

    Args:
        model: the true model, with one constraint and the learner's limit.
        learner: the learner to copy.
        replicates: how many, or which ones (their numbers).
        seed: of the random numbers.
        threads: as many as there are cores if None.
        episodes: how many to play; all that the learner has left if None.
        progress: whether to show a progress bar on a terminal once the run takes two seconds.
        trace: whether to keep everything that was seen.
        audit: whether to check the paper's events and lemmas against the truth at every episode.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OptPessPrimalDual(
        ...     shape=model.shape, initial=model.initial, num_episodes=2000,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> run = op.simulate(model, learner, replicates=4, seed=1, progress=False)
        >>> run.reward_regret.shape[0], round(run.optimal_value * 96)
        (4, 79)
    """
    chosen = replicates if isinstance(replicates, Iterable) else range(index(replicates))
    if isinstance(chosen, range) and chosen.stop > _MAX_REPLICATES:
        raise InvalidInputError(f"replicates is {replicates}; it must lie in [1, {_MAX_REPLICATES}]")
    numbers = [index(number) for number in chosen]
    left = learner.num_episodes - learner.episodes_observed
    count = left if episodes is None else index(episodes)
    if getattr(learner, "engine", "parametric") != "parametric":
        raise InvalidInputError(
            "simulate runs the compiled engine; drive a learner with engine='highs' episode by episode"
        )
    if trace and count * len(numbers) > _MAX_TRACED:
        raise InvalidInputError(
            f"a trace of {count} episodes x {len(numbers)} replicates is too long; "
            f"at most {_MAX_TRACED} episodes in all can be traced"
        )
    _warn_if_stuck(model, learner, count)
    optimum = solve(model).value
    bar = _ProgressBar(count * len(numbers)) if progress and sys.stderr.isatty() else None
    try:
        outcomes = _core.simulate_learner(
            model,
            learner._inner,
            optimum,
            numbers,
            seed,
            os.cpu_count() or 1 if threads is None else threads,
            count,
            trace,
            audit,
            bar,
        )
    finally:
        if bar is not None:
            bar.close()
    facts = {"seed": int(seed), "episodes": count, "model": repr(model), "noise": repr(model.noise)}
    return _collected(learner, outcomes, numbers, count, optimum, facts)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of a run, before it is run."""

    leaves_baseline: int | None
    """The episode (from 0) at which OptPess-LP is expected to leave the baseline; None if it does not
    within K episodes, or for other algorithms."""
    tightening_horizon: int | None
    """C'': the first episode number from which the tightening of OptPess-PrimalDual is at most half
    the margin; None for other algorithms."""
    seconds: float
    """The predicted time of one replicate on one core of this machine."""


def forecast(model: CMDP, learner: Learner) -> Forecast:
    """Predicts, from expected counts and a short timing, what a run will come to.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> always_first = np.tile([1.0, 0.0], (2, 2, 1))
        >>> margin = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
        >>> learner = op.OptPessLP(shape=model.shape, initial=model.initial, num_episodes=10_000_000,
        ...                        baseline=op.SafeBaseline(always_first, margin))
        >>> 10_000 < op.forecast(model, learner).leaves_baseline < 1_000_000
        True
    """
    leaves = learner._inner.gate_forecast(model)
    horizon = None
    if isinstance(learner, OptPessPrimalDual):
        margin = (learner.cost_limit, learner.parameters["safe_cost"])
        delta = learner.parameters["failure_probability"]
        horizon = _core.tightening_horizon(learner.shape, *margin, delta)
    return Forecast(leaves, horizon, _predicted_seconds(model, learner, leaves))


def _predicted_seconds(model: CMDP, learner: Learner, leaves: int | None) -> float:
    total = learner.num_episodes
    if not isinstance(learner, OptPessLP):
        return total * _seconds_per_episode(model, learner)
    on_baseline = total if leaves is None else leaves
    seconds = on_baseline * _seconds_per_episode(model, learner)
    if on_baseline < total:
        # A learner with next to no bonus passes its gate at once and plans every episode.
        margin = SafetyMargin(learner.cost_limit, float(learner.safe_cost or 0.0))
        planning = OptPessLP(
            shape=learner.shape,
            initial=learner._initial,
            baseline=SafeBaseline(learner._baseline, margin),
            num_episodes=total,
            confidence=Scaled(1e-9),
        )
        seconds += (total - on_baseline) * _seconds_per_episode(model, planning)
    return seconds


def _seconds_per_episode(model: CMDP, learner: Learner) -> float:
    """Times longer and longer bursts until one takes a twentieth of a second."""
    left = learner.num_episodes - learner.episodes_observed
    burst = min(256, left)
    while True:
        start = time.perf_counter()
        _core.simulate_learner(model, learner._inner, 0.0, [0], 0, 1, burst, False, False, None)
        elapsed = time.perf_counter() - start
        if elapsed > 0.05 or burst == left:
            return elapsed / burst
        burst = min(4 * burst, left)


def _warn_if_stuck(model: CMDP, learner: Learner, episodes: int) -> None:
    """A straight line of regret looks like a fault; say beforehand why it will be one."""
    if not isinstance(learner, OptPessLP) or learner.safe_cost is None or episodes < 1:
        return
    leaves = learner._inner.gate_forecast(model)
    if leaves is None or leaves >= learner.episodes_observed + episodes:
        expected = "not within K" if leaves is None else f"at episode {leaves}"
        warnings.warn(
            f"this run is expected to play the baseline in all {episodes} episodes: with these bonuses "
            f"the gate is expected to open {expected}; see optpess.forecast",
            stacklevel=3,
        )


def _collected(
    learner: Learner,
    outcomes: list[dict[str, Any]],
    numbers: list[int],
    episodes: int,
    optimum: float,
    facts: dict[str, Any],
) -> Run:
    def stacked(name: str) -> Any:
        return np.array([outcome[name] for outcome in outcomes], dtype=np.float64)

    def counted(name: str) -> Any:
        values = [outcome[name] for outcome in outcomes]
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)

    audits = [outcome["audit"] for outcome in outcomes]
    traces = [Trace(**outcome["trace"]) for outcome in outcomes if "trace" in outcome]
    return Run(
        episodes=np.array(_core.recorded_episodes(episodes), dtype=np.int64),
        replicates=np.array(numbers, dtype=np.int64),
        reward_regret=stacked("reward_regret"),
        weak_violation=np.maximum(stacked("signed_violation"), 0.0),
        strong_violation=stacked("strong_violation"),
        multiplier=stacked("multiplier"),
        worst_violation=stacked("worst_violation"),
        violating_episodes=counted("violating_episodes"),
        first_violation=counted("first_violation"),
        baseline_episodes=counted("baseline_episodes"),
        estimation_episodes=counted("estimation_episodes"),
        first_planned=counted("first_planned"),
        least_slack=stacked("least_slack"),
        repairs=counted("repairs"),
        largest_repair=stacked("largest_repair"),
        safe_cost=stacked("safe_cost"),
        optimal_value=optimum,
        guarantee=learner.guarantee,
        parameters=learner.parameters | facts,
        audits=None
        if audits[0] is None
        else tuple({name: Finding(*row) for name, row in audit.items()} for audit in audits),
        traces=tuple(traces) or None,
    )


class _ProgressBar:
    """A line on the terminal that appears once a run has taken two seconds."""

    def __init__(self, total: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._total, self._clock = total, clock
        self._start, self._shown = clock(), 0.0

    def __call__(self, done: int) -> None:
        elapsed = self._clock() - self._start
        if elapsed < 2.0 or elapsed - self._shown < 0.2:
            return
        self._shown = elapsed
        share = min(done / self._total, 1.0)
        left = elapsed * (1.0 - share) / share if share > 0 else float("inf")
        filled = "#" * int(30 * share)
        line = f"\r[{filled:<30}] {share:6.1%}  {done / elapsed:,.0f} episodes/s  {left:,.0f} s left "
        sys.stderr.write(line)
        sys.stderr.flush()

    def close(self) -> None:
        """Wipes the line."""
        if self._shown:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()
