"""Runs replicates of a learner against a known model, in compiled code."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, IntArray
from optpess.checks import truth_value
from optpess.exceptions import GuaranteeWarning
from optpess.learn.base import Learner
from optpess.learn.optpess import OptPessLP
from optpess.learn.terms import Sharp
from optpess.model import CMDP
from optpess.model.units import Units
from optpess.plan.frontier import solve_least_cost
from optpess.plan.solve import unit_optimum
from optpess.run.arguments import Request, about_noise, check_arguments, episodes_of
from optpess.run.origin import Origin, versions
from optpess.run.progress import ProgressBar, showing
from optpess.run.record import Finding, Run, Trace

if TYPE_CHECKING:
    from optpess._core import OutcomeDict, TraceDict

__all__ = ["simulate", "simulate_as"]

# Several learners are kept if their counts N(s, a, s') have at most so many entries in all: half a
# gigabyte for learners that hold them in full.
_MAX_KEPT = 32_000_000


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
    learners: bool | None = None,
) -> Run:
    """Runs replicates of a learner against a model, and evaluates every deployed policy exactly.

    Each replicate starts from a copy of the learner, which does not change. The model is used to draw
    episodes and to evaluate policies; the learner never sees it. The same seed gives the same record,
    bit for bit, for any number of threads and any choice of other replicates.

    A learner may have seen episodes before, for example in an earlier run (:attr:`Run.learners`). The
    random numbers depend on the seed and the replicate only, not on what it has seen: to go on with
    fresh episodes, give another seed than the earlier run had.

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
        progress: whether to show progress, on a terminal or in a notebook, once it takes two seconds.
        trace: whether to keep everything that happened.
        audit: whether to check the paper's events and lemmas against the true model in every episode.
        learners: whether to keep the learners after the last episode, as :attr:`Run.learners`. None for
            yes, unless there are several replicates and replicates x H x S x A x S is above 32 million.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OptPessPrimalDual(
        ...     shape=model.shape, initial=model.initial, num_episodes=2000,
        ...     margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> run = op.simulate(model, learner, replicates=4, seed=1, progress=False)
        >>> run.reward_regret.shape[0], round(run.optimal_value * 96)
        (4, 79)
        >>> run.learners[3].episodes_observed
        2000
    """
    request = Request.of(replicates, seed, threads, trace=trace, audit=audit, learners=learners)
    shows = truth_value("progress", progress)
    check_arguments(model, learner, "simulate")
    count = episodes_of(learner, episodes)
    with showing(shows) as bar:
        return simulate_as(model, learner, count, request, bar)


def simulate_as(
    model: CMDP,
    learner: Learner,
    count: int,
    request: Request,
    bar: ProgressBar | None,
    label: str = "",
) -> Run:
    """:func:`simulate` with checked arguments; the bar shows the label in front."""
    numbers = request.numbers
    request.check_length(count)
    void_because = _broken_claim(model, learner)
    _warn_if_gate_stays_shut(model, learner, count)
    optimum = unit_optimum(model)
    made = _Made(model, learner, numbers, count, optimum, void_because)
    keep = made.are_few() if request.learners is None else request.learners
    if bar is not None:
        bar.begin(count * len(numbers), label)
    with about_noise(model, learner):
        outcomes = _core.simulate_learner(
            model,
            learner._inner,
            optimum,
            numbers,
            request.seed,
            request.threads,
            count,
            request.trace,
            request.audit,
            keep,
            bar,
        )
    facts = {"seed": request.seed, "episodes": count, "model": repr(model), "noise": repr(model.noise)}
    return made.run(outcomes, facts)


def _broken_claim(model: CMDP, learner: Learner) -> str | None:
    """How the model contradicts what the learner was told of a safe policy; warns if it does."""
    broken = learner._inner.broken_safety_claim(model)
    if broken is not None and not model.units.is_unit:
        broken = _claim_in_units(model, learner)  # the core's numbers are parts of the ranges
    if broken is not None:
        warnings.warn(
            f"{broken} (Assumption 2.2), so no guarantee holds in this run",
            GuaranteeWarning,
            stacklevel=4,  # the line that calls simulate or compare
        )
    return broken


def _claim_in_units(model: CMDP, learner: Learner) -> str:
    """The sentence of a broken claim, in the units of the model."""
    units, told = model.units, learner.parameters
    baseline = _core.baseline_values(model, learner._inner)
    if baseline is None:
        least = float(solve_least_cost(model).costs[0])
        return (
            f"no policy costs less than {least:.12g} in this model; the learner was told that one costs "
            f"at most {told['safe_cost']:.12g}"
        )
    costs = units.cost_values_out(np.array(baseline[1]), model.shape.horizon)
    known = told.get("safe_costs", None if told["safe_cost"] is None else [told["safe_cost"]])
    bounds = np.array(learner._limits if known is None else known)
    worst = int(np.argmax((costs - bounds) / units.cost_widths))
    which = "" if len(costs) == 1 else f" (constraint {worst})"
    claim = "less than" if known is None else "at most"
    return (
        f"the baseline costs {costs[worst]:.12g} in this model{which}; the learner was told that it "
        f"costs {claim} {bounds[worst]:.12g}"
    )


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
            stacklevel=4,
        )


class _Made:
    """What a record is made of beside the outcomes of its replicates; it puts all numbers into the units
    of the model.
    """

    def __init__(
        self,
        model: CMDP,
        learner: Learner,
        numbers: list[int],
        episodes: int,
        optimum: float,
        void_because: str | None,
    ) -> None:
        self._model, self._learner, self._numbers = model, learner, numbers
        self._episodes, self._void_because = episodes, void_because
        self._units, self._horizon = model.units, model.shape.horizon
        self._unit_optimum = optimum
        self._optimum: float = self._units.values_out(optimum, self._horizon)

    def are_few(self) -> bool:
        """Whether the learners are kept unless the caller decides."""
        horizon, states, actions = self._model.shape
        entries = len(self._numbers) * horizon * states * actions * states
        return len(self._numbers) == 1 or entries <= _MAX_KEPT

    def run(self, outcomes: list[OutcomeDict], facts: dict[str, Any]) -> Run:
        """The outcomes of all replicates as one record."""
        found: list[Any] = list(outcomes)
        units, horizon, points = self._units, self._horizon, _core.recorded_episodes(self._episodes)

        def stacked(name: str) -> FloatArray:
            return np.array([outcome[name] for outcome in found], dtype=np.float64)

        def counted(name: str) -> IntArray:
            values = [outcome[name] for outcome in found]
            return np.array([-1 if value is None else value for value in values], dtype=np.int64)

        def value(name: str) -> FloatArray:
            values: FloatArray = units.values_out(stacked(name), horizon)
            return values

        def cost(name: str) -> FloatArray:
            return units.cost_values_out(stacked(name), horizon)

        def violation(name: str) -> FloatArray:
            return stacked(name) * units.violation_width

        regret, signed = stacked("reward_regret"), violation("signed_violation")
        baseline = _core.baseline_values(self._model, self._learner._inner)
        gain, baseline_value, baseline_costs = None, None, None
        if baseline is not None:
            gain = (self._unit_optimum - baseline[0]) * np.array(points, dtype=np.float64) - regret
            gain = gain * units.reward_width
            baseline_value = float(units.values_out(baseline[0], horizon))
            baseline_costs = units.cost_values_out(np.array(baseline[1]), horizon)
        audits = [
            {name: Finding(*row) for name, row in outcome["audit"].items()}
            for outcome in outcomes
            if outcome["audit"] is not None
        ]
        traces = [self._trace(outcome["trace"]) for outcome in outcomes if "trace" in outcome]
        learners = [self._with_state(each["learner"]) for each in outcomes if "learner" in each]
        mixes = all("weight" in outcome for outcome in outcomes)
        first_cost = Units(units.reward_range, units.cost_ranges[:1])
        safe_cost = stacked("safe_cost")[:, np.newaxis]
        return Run(
            episodes=np.array(points, dtype=np.int64),
            replicates=np.array(self._numbers, dtype=np.int64),
            reward_regret=regret * units.reward_width,
            weak_violation=np.maximum(signed, 0.0),
            strong_violation=violation("strong_violation"),
            multiplier=self._multipliers(stacked("multiplier")),
            worst_violation=violation("worst_violation"),
            violating_episodes=counted("violating_episodes"),
            first_violation=counted("first_violation"),
            baseline_episodes=counted("baseline_episodes"),
            estimation_episodes=counted("estimation_episodes"),
            first_planned=counted("first_planned"),
            least_slack=stacked("least_slack") * units.cost_widths[0],
            repairs=counted("repairs"),
            largest_repair=stacked("largest_repair"),
            safe_cost=first_cost.cost_values_out(safe_cost, horizon)[:, 0],
            optimal_value=self._optimum,
            guarantee=self._learner.guarantee if self._void_because is None else None,
            parameters=self._learner.parameters | facts,
            audits=tuple(audits) or None,
            traces=tuple(traces) or None,
            void_because=self._void_because,
            plays=_plays(outcomes),
            weight=stacked("weight") if mixes else None,
            certified_cost=cost("certified_cost") if mixes else None,
            mixtures=counted("mixtures") if mixes else None,
            signed_violation=signed,
            deployed_value=value("deployed_value"),
            deployed_value_least=value("deployed_value_least"),
            deployed_value_greatest=value("deployed_value_greatest"),
            deployed_cost=cost("deployed_cost"),
            deployed_cost_least=cost("deployed_cost_least"),
            deployed_cost_greatest=cost("deployed_cost_greatest"),
            baseline_share=stacked("baseline_share"),
            gain=gain,
            baseline_value=baseline_value,
            baseline_costs=baseline_costs,
            cost_limits=np.array(self._model.cost_limits, dtype=np.float64),
            units=units,
            versions=dict(versions()),
            _learners=tuple(learners) or None,
            _origin=Origin((self._model, copy.copy(self._learner))),
        )

    def _multipliers(self, multipliers: FloatArray) -> FloatArray:
        """Lambda as value for each unit of the limit; that of several limits is left as it is."""
        if len(self._units.cost_ranges) > 1:
            return multipliers
        return self._units.multipliers_out(multipliers[..., np.newaxis])[..., 0]

    def _trace(self, trace: TraceDict) -> Trace:
        """A trace in the units of the model."""
        units, several = self._units, len(self._units.cost_ranges) > 1
        # Constraints are the first axis for the units, the second here.
        costs = np.moveaxis(trace["costs"], 1, 0) if several else trace["costs"][np.newaxis]
        costs = units.costs_out(costs)
        totals = trace["deployed_cost"] if several else trace["deployed_cost"][:, np.newaxis]
        totals = units.cost_values_out(totals, self._horizon)
        return Trace(
            states=trace["states"],
            actions=trace["actions"],
            rewards=units.rewards_out(trace["rewards"]),
            costs=np.moveaxis(costs, 0, 1) if several else costs[0],
            deployed_value=units.values_out(trace["deployed_value"], self._horizon),
            deployed_cost=totals if several else totals[:, 0],
            on_baseline=trace["on_baseline"],
            multiplier=self._multipliers(trace["multiplier"]),
        )

    def _with_state(self, inner: _core.Learner) -> Learner:
        """The learner with another state."""
        made = object.__new__(type(self._learner))
        made.__dict__.update(vars(self._learner) | {"_inner": inner})
        return made


def _plays(outcomes: list[OutcomeDict]) -> dict[str, IntArray]:
    """How many episodes played a policy of each source that was played at all."""
    sources = {name: [outcome["plays"][name] for outcome in outcomes] for name in outcomes[0]["plays"]}
    return {name: np.array(counts, dtype=np.int64) for name, counts in sources.items() if any(counts)}
