"""Runs replicates of a learner against a known model, in compiled code."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, IntArray
from optpess.checks import check_path, truth_value
from optpess.exceptions import GuaranteeWarning, InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.optpess import OptPessLP
from optpess.learn.terms import Sharp
from optpess.model import CMDP
from optpess.model.units import Units
from optpess.plan.frontier import solve_least_cost
from optpess.plan.solve import unit_optimum
from optpess.progress import ProgressBar, showing
from optpess.run.arguments import Request, about_noise, check_arguments, check_pause, episodes_of
from optpess.run.interrupts import attach, exits_on_termination
from optpess.run.origin import Origin, versions
from optpess.run.record import Finding, Run, Trace
from optpess.run.simulation_checkpoint import SimulationCheckpoint, State

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
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
) -> Run:
    """Runs replicates of a learner against a model, and evaluates every deployed policy exactly.

    Each replicate starts from a copy of the learner, which does not change. The model is used to draw
    episodes and to evaluate policies; the learner never sees it. The same seed gives the same record,
    bit for bit, for any number of threads and any choice of other replicates.

    A learner may have seen episodes before, for example in an earlier run (:attr:`Run.learners`). The
    random numbers depend on the seed and the replicate only, not on what it has seen: to go on with
    fresh episodes, give another seed than the earlier run had.

    Ctrl-C stops a simulation. What was recorded so far is in the attribute ``runs`` of the exception: a
    tuple of records, each of the replicates that had come to the same episode, the longest first. Each
    is the record of a simulation of so many episodes.

    If the model contradicts what the learner was told of a safe policy (Assumption 2.2), the record has
    no guarantee: ``Run.void_because`` says why, and a :class:`GuaranteeWarning` is shown. A true cost
    above the told one by no more than rounding (1e-9) is no contradiction.

    Args:
        model: the true model, with the learner's limits.
        learner: the learner to copy.
        replicates: how many replicates, or their numbers.
        seed: the seed of the random numbers.
        threads: how many threads, at most 1024; None for one for each core that the process may use.
        episodes: how many episodes to play; None for all that the learner has left. It must be given
            for a learner without ``num_episodes``.
        progress: whether to show progress, on a terminal or in a notebook, once it takes two seconds.
        trace: whether to keep everything that happened.
        audit: whether to check the paper's events and lemmas against the true model in every episode.
        learners: whether to keep the learners after the last episode, as :attr:`Run.learners`. None for
            yes, unless there are several replicates and replicates x H x S x A x S is above 32 million.
        checkpoint: a file that is written from time to time and at the end. If it exists, the simulation
            goes on from it; its arguments must be the same, except ``threads``, and the record is that
            of a simulation that was never stopped. The checkpoint before is kept beside it, with
            ``.previous`` after its name.
        checkpoint_every: the seconds between two checkpoints.

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
    pause = check_pause(checkpoint_every)
    path = None if checkpoint is None else Path(check_path(checkpoint, "checkpoint"))
    with showing(shows) as bar:
        return simulate_as(model, learner, count, request, bar, checkpoint=path, pause=pause)


def simulate_as(
    model: CMDP,
    learner: Learner,
    count: int,
    request: Request,
    bar: ProgressBar | None,
    label: str = "",
    *,
    warns: bool = True,
    checkpoint: Path | None = None,
    pause: float = math.inf,
) -> Run:
    """:func:`simulate` with checked arguments; the bar shows the label in front."""
    numbers = request.numbers
    request.check_length(count, model.shape.horizon, model.num_constraints)
    void_because = _broken_claim(model, learner)
    if warns:
        warn_of_run(model, learner, count, void_because)
    optimum = unit_optimum(model)
    made = _Made(model, learner, optimum, void_because)
    keep = keeps_learners(model, request)
    kept: dict[str, Any] = {}
    store = None
    if checkpoint is not None:
        store = SimulationCheckpoint(checkpoint, model, learner, count, request, keeps_learners=keep)
        kept = {"states": store.load(), "save": store.save, "seconds": pause}
        store.save(kept["states"])  # what cannot be written is found before an episode is played
    if bar is not None:
        bar.begin(count * len(numbers), label)
    facts = {"seed": request.seed, "model": repr(model), "noise": repr(model.noise)}
    with exits_on_termination() if store is not None else nullcontext():
        with _naming(model, learner, store):
            outcomes, interruption, states = _core.simulate_learner(
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
                **kept,
            )
        if interruption is not None:
            _stop(interruption, made.runs(outcomes, facts), store, states)
        if store is not None:
            store.save(states)
    return made.run(outcomes, facts)


def keeps_learners(model: CMDP, request: Request) -> bool:
    """Whether the learners are kept: as the caller decides, else if they are few."""
    horizon, states, actions = model.shape
    entries = len(request.numbers) * horizon * states * actions * states
    few = len(request.numbers) == 1 or entries <= _MAX_KEPT
    return few if request.learners is None else request.learners


def warn_of_run(model: CMDP, learner: Learner, count: int, void_because: str | None = None) -> None:
    """Warns of a guarantee that does not hold, and of a gate that stays shut."""
    _warn_of_guarantee(void_because or _broken_claim(model, learner))
    _warn_if_gate_stays_shut(model, learner, count)


@contextmanager
def _naming(model: CMDP, learner: Learner, store: SimulationCheckpoint | None) -> Iterator[None]:
    """Names the noise or the checkpoint in refusals of the core."""
    try:
        with about_noise(model, learner):
            yield
    except InvalidInputError as error:
        if store is None or error.kind != "StoredState":
            raise
        raise store.refused(error) from error


def _stop(
    interruption: BaseException,
    runs: tuple[Run, ...],
    store: SimulationCheckpoint | None,
    states: list[State],
) -> NoReturn:
    """Writes the last checkpoint of a simulation that was stopped, and raises what stopped it."""
    note = "the simulation was stopped; what was recorded is in the attribute 'runs' of this exception"
    attach(interruption, note, runs=runs)
    if store is not None:
        try:
            store.save(states)
        except Exception as second:  # noqa: BLE001 - the first error is the one to show
            attach(interruption, f"then the checkpoint could not be written: {second!r}")
    raise interruption


def _broken_claim(model: CMDP, learner: Learner) -> str | None:
    """How the model contradicts what the learner was told of a safe policy."""
    broken = learner._inner.broken_safety_claim(model)
    if broken is not None and not model.units.is_unit:
        broken = _claim_in_units(model, learner)  # the core's numbers are parts of the ranges
    return broken


def _warn_of_guarantee(void_because: str | None) -> None:
    if void_because is not None:
        warnings.warn(
            f"{void_because} (Assumption 2.2), so no guarantee holds in this run",
            GuaranteeWarning,
            stacklevel=5,  # the line that calls simulate or compare
        )


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
            stacklevel=5,
        )


class _Made:
    """What a record is made of beside the outcomes of its replicates; it puts all numbers into the units
    of the model.
    """

    def __init__(
        self,
        model: CMDP,
        learner: Learner,
        optimum: float,
        void_because: str | None,
    ) -> None:
        self._model, self._learner, self._void_because = model, learner, void_because
        self._units, self._horizon = model.units, model.shape.horizon
        self._unit_optimum = optimum
        self._optimum: float = self._units.values_out(optimum, self._horizon)

    def runs(self, outcomes: list[OutcomeDict], facts: dict[str, Any]) -> tuple[Run, ...]:
        """A record of all outcomes with the same number of episodes, the longest first."""
        lengths = sorted({outcome["episodes"] for outcome in outcomes}, reverse=True)
        same = ([each for each in outcomes if each["episodes"] == length] for length in lengths)
        return tuple(self.run(each, facts) for each in same)

    def run(self, outcomes: list[OutcomeDict], facts: dict[str, Any]) -> Run:
        """Outcomes of replicates that have played as many episodes as one record."""
        found: list[Any] = list(outcomes)
        numbers, episodes = [each["replicate"] for each in found], found[0]["episodes"]
        units, horizon, points = self._units, self._horizon, _core.recorded_episodes(episodes)

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
            replicates=np.array(numbers, dtype=np.int64),
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
            parameters=self._learner.parameters | {"seed": facts["seed"], "episodes": episodes} | facts,
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
            _learners=tuple(learners) if len(learners) == len(found) else None,
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
