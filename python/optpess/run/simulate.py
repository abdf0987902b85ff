"""Runs replicates of a learner against a known model, in compiled code."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, IntArray
from optpess.exceptions import GuaranteeWarning, InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.optpess import OptPessLP
from optpess.learn.terms import Sharp
from optpess.model import CMDP
from optpess.plan.solve import unit_optimum
from optpess.run.record import Finding, Run, Trace

if TYPE_CHECKING:
    from optpess._core import OutcomeDict

__all__ = ["simulate"]

# The longest trace, over all replicates: longer ones would fill the memory.
_MAX_TRACED = 10_000_000
# A replicate has a few hundred record points, so this many take some gigabytes.
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
    """Runs replicates of a learner against a model, and evaluates every deployed policy exactly.

    Each replicate starts from a copy of the learner, which does not change. The model is used to draw
    episodes and to evaluate policies; the learner never sees it. The same seed gives the same record,
    bit for bit, for any number of threads and any choice of other replicates.

    If the model contradicts what the learner was told of a safe policy (Assumption 2.2), the record has
    no guarantee: ``Run.void_because`` says why, and a :class:`GuaranteeWarning` is shown. A true cost
    above the told one by no more than rounding (1e-9) is no contradiction.

    Args:
        model: the true model, with the learner's limits.
        learner: the learner to copy.
        replicates: how many replicates, or their numbers.
        seed: the seed of the random numbers.
        threads: how many threads; None for one per core.
        episodes: how many episodes to play; None for all that the learner has left. It must be given
            for a learner without ``num_episodes``.
        progress: whether to show a progress bar on a terminal once the run takes two seconds.
        trace: whether to keep everything that happened.
        audit: whether to check the paper's events and lemmas against the true model in every episode.

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
    count = _episodes_left(learner) if episodes is None else index(episodes)
    if getattr(learner, "engine", "parametric") != "parametric":
        raise InvalidInputError(
            "simulate runs the compiled engine; drive a learner with engine='highs' episode by episode"
        )
    if trace and count * len(numbers) > _MAX_TRACED:
        raise InvalidInputError(
            f"a trace of {count} episodes x {len(numbers)} replicates is too long; "
            f"at most {_MAX_TRACED} episodes in all can be traced"
        )
    void_because = _broken_claim(model, learner)
    _warn_if_gate_stays_shut(model, learner, count)
    optimum = unit_optimum(model)
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
    return _to_run(learner, outcomes, numbers, count, optimum, facts, void_because)


def _broken_claim(model: CMDP, learner: Learner) -> str | None:
    """How the model contradicts what the learner was told of a safe policy; warns if it does."""
    broken = learner._inner.broken_safety_claim(model)
    if broken is not None:
        warnings.warn(
            f"{broken} (Assumption 2.2), so no guarantee holds in this run",
            GuaranteeWarning,
            stacklevel=3,
        )
    return broken


def _episodes_left(learner: Learner) -> int:
    if learner.num_episodes is None:
        raise InvalidInputError(
            f"episodes is None, but {type(learner).__name__} has no num_episodes: "
            "say how many episodes to play"
        )
    return learner.num_episodes - learner.episodes_observed


def _warn_if_gate_stays_shut(model: CMDP, learner: Learner, episodes: int) -> None:
    """Warns if the run is expected to play only the baseline: regret then grows linearly to the end."""
    if not isinstance(learner, OptPessLP) or learner.safe_cost is None or episodes < 1:
        return
    if learner.parameters["confidence"] == repr(Sharp()):
        return  # when that gate opens depends on what will be observed
    leaves = learner._inner.gate_extrapolation(model)
    if leaves is None or leaves >= learner.episodes_observed + episodes:
        if leaves is None:
            expected = "not within 10^18 episodes"
        else:
            last = learner.num_episodes
            beyond = "not within K, but " if last is not None and leaves >= last else ""
            expected = f"{beyond}at episode {leaves}"
        warnings.warn(
            f"this run is expected to play the baseline in all {episodes} episodes: with these bonuses "
            f"the gate is expected to open {expected}; see optpess.forecast",
            stacklevel=3,
        )


def _to_run(
    learner: Learner,
    outcomes: list[OutcomeDict],
    numbers: list[int],
    episodes: int,
    optimum: float,
    facts: dict[str, Any],
    void_because: str | None,
) -> Run:
    """The outcomes of all replicates as one record."""
    found: list[Any] = list(outcomes)

    def stacked(name: str) -> FloatArray:
        return np.array([outcome[name] for outcome in found], dtype=np.float64)

    def counted(name: str) -> IntArray:
        values = [outcome[name] for outcome in found]
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)

    audits = [
        {name: Finding(*row) for name, row in outcome["audit"].items()}
        for outcome in outcomes
        if outcome["audit"] is not None
    ]
    traces = [Trace(**outcome["trace"]) for outcome in outcomes if "trace" in outcome]
    sources = {name: [outcome["plays"][name] for outcome in outcomes] for name in outcomes[0]["plays"]}
    plays = {name: np.array(counts, dtype=np.int64) for name, counts in sources.items() if any(counts)}
    mixes = all("weight" in outcome for outcome in outcomes)
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
        guarantee=learner.guarantee if void_because is None else None,
        parameters=learner.parameters | facts,
        audits=tuple(audits) or None,
        traces=tuple(traces) or None,
        void_because=void_because,
        plays=plays,
        weight=stacked("weight") if mixes else None,
        certified_cost=stacked("certified_cost") if mixes else None,
        mixtures=counted("mixtures") if mixes else None,
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
        """Clears the line."""
        if self._shown:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()
