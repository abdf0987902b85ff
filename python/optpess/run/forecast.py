"""Predicts what a run will do: when it leaves the baseline, and how long it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpess import _core
from optpess.learn.base import Learner
from optpess.learn.optpess import OptPessPrimalDual
from optpess.model import CMDP
from optpess.run.arguments import about_noise, check_arguments

__all__ = ["Forecast", "Gates", "expected_gates", "forecast"]

# A timing is long enough to be trusted after this many seconds.
_LONG_ENOUGH = 0.05
_TOO_LONG = 0.5  # for a call that is to answer at once


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of a run.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessLP(shape=pair.model.shape, initial=pair.model.initial, num_episodes=100,
        ...                        baseline=pair.baseline)
        >>> op.forecast(pair.model, learner).beyond_num_episodes  # the gate would open after the last
        True
    """

    leaves_baseline: int | None
    """The episode (from 0) at which OptPess-LP is expected to leave the baseline; None if it does not
    within K episodes (see ``would_leave_baseline``), if the safe cost is still to be estimated, under
    :class:`optpess.Sharp`, whose bonuses depend on what will be observed, or for other algorithms."""
    tightening_horizon: int | None
    """C'': the first episode number from which the tightening of OptPess-PrimalDual is at most half
    the margin; None for other algorithms."""
    seconds: float | None
    """The predicted time of the episodes that are left, for one replicate on one core of this machine.
    None for OptPess-LP if it is still on the baseline and expected to leave it: how long its plans take
    is not known before."""
    would_leave_baseline: int | None = None
    """``leaves_baseline`` or, if that is beyond K, the episode at which OptPess-LP would leave the
    baseline if it could play on. The bonus is that of the learner's own K: with a larger K it grows by
    the logarithm, and the baseline is left somewhat later. None if it takes more than 10^18 episodes, or
    never happens because the baseline costs too much; and where there is nothing to leave, as above."""
    beyond_num_episodes: bool = False
    """Whether ``would_leave_baseline`` lies beyond the learner's K episodes."""


def forecast(model: CMDP, learner: Learner) -> Forecast:
    """Predicts a run from expected counts and from the time of its first episodes.

    Args:
        model: the true model, with the learner's limits.
        learner: the learner, which does not change.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> always_first = np.tile([1.0, 0.0], (2, 2, 1))
        >>> margin = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
        >>> learner = op.OptPessLP(shape=model.shape, initial=model.initial, num_episodes=10_000_000,
        ...                        baseline=op.SafeBaseline(always_first, margin))
        >>> 10_000 < op.forecast(model, learner).leaves_baseline < 1_000_000
        True
        >>> short = op.OptPessLP(shape=model.shape, initial=model.initial, num_episodes=1000,
        ...                      baseline=op.SafeBaseline(always_first, margin))
        >>> expected = op.forecast(model, short)
        >>> expected.leaves_baseline, expected.beyond_num_episodes, expected.would_leave_baseline > 1000
        (None, True, True)
    """
    check_arguments(model, learner, "forecast")
    gates = expected_gates(model, learner)
    last = learner.num_episodes
    would_leave = gates.would_leave_baseline
    beyond = would_leave is not None and last is not None and would_leave >= last
    leaves = None if beyond else would_leave
    will_change = leaves is not None and leaves >= learner.episodes_observed
    seconds = None if will_change or last is None else _seconds(model, learner, last)
    return Forecast(leaves, gates.tightening_horizon, seconds, would_leave, beyond)


class Gates(NamedTuple):
    """The part of a :class:`Forecast` that is not timed."""

    would_leave_baseline: int | None
    tightening_horizon: int | None


def expected_gates(model: CMDP, learner: Learner) -> Gates:
    """When OptPess-LP would leave its baseline, and C'' of OptPess-PrimalDual; see :class:`Forecast`."""
    horizon = None
    if isinstance(learner, OptPessPrimalDual):
        margin = np.array([[learner.cost_limit], [learner.parameters["safe_cost"]]])
        limit, cost = learner.units.limits_in(margin, learner.shape.horizon)[:, 0].tolist()
        delta = learner.parameters["failure_probability"]
        horizon = _core.tightening_horizon(learner.shape, limit, cost, delta)
    return Gates(learner._inner.gate_extrapolation(model), horizon)


def _seconds(model: CMDP, learner: Learner, last: int) -> float:
    """Times longer and longer bursts of the episodes that are left, until one takes long enough.

    The first one, of a single episode, tells what it takes to begin.
    """
    left = last - learner.episodes_observed
    if left == 0:
        return 0.0
    burst, beginning = 1, 0.0
    while True:
        start = time.perf_counter()
        with about_noise(model, learner):
            _, interruption, _ = _core.simulate_learner(
                model, learner._inner, 0.0, [0], 0, 1, burst, False, False, False, None
            )
        if interruption is not None:
            raise interruption
        elapsed = time.perf_counter() - start
        if burst == left:
            return elapsed
        if burst > 1 and elapsed > max(_LONG_ENOUGH, 2.0 * beginning):
            return beginning + (left - 1) * (elapsed - beginning) / (burst - 1)
        if elapsed > _TOO_LONG:
            return left * elapsed / burst
        if burst == 1:
            beginning = elapsed
        burst = min(4 * burst, left)
