"""The record of a simulation: curves, exact totals, the guarantee and all parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from optpess import storage
from optpess.arrays import BoolArray, Columns, FloatArray, IntArray
from optpess.checks import (
    check_path,
    check_type,
    described,
    is_name,
    real_number,
    shown,
    unknown_name,
)
from optpess.display import counted, html_folded, html_paragraph, html_table
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.terms import Guarantee
from optpess.model.units import Units
from optpess.run import files, tables
from optpess.run.files import COST_CURVES, CURVES, WINDOW_CURVES, Finding
from optpess.run.origin import Origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Finding", "Run", "Trace", "load_run"]

_FIELDS = storage.Fields(files.FORMAT, files.REQUIRED, files.OPTIONAL, files.EARLIER)
# The curves of which a slope can be asked for.
_SLOPES = (*CURVES, "signed_violation", "gain")
_ALIKE = "only runs that differ in nothing but their replicates can be joined"
# The header of the table of totals.
_TOTALS = ("total", "mean", "standard error", "least", "greatest")
# What two records can differ in; the others describe the software, or are not kept in files.
_NOT_COMPARED = ("traces", "versions", "_learners", "_origin")


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Everything that happened in the K episodes of one replicate.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> op.simulate(pair.model, learner, trace=True).traces[0]
        Trace(100 episodes of 2 steps, 100.0% on the baseline)
    """

    states: IntArray
    """``[K, H]``."""
    actions: IntArray
    """``[K, H]``."""
    rewards: FloatArray
    """Observed rewards, ``[K, H]``."""
    costs: FloatArray
    """Observed costs, ``[K, H]``; ``[K, M, H]`` with M > 1 constraints."""
    deployed_value: FloatArray
    """The true value of each deployed policy or mixture, ``[K]``."""
    deployed_cost: FloatArray
    """The true cost of each deployed policy or mixture, ``[K]``; ``[K, M]`` with M > 1 constraints."""
    on_baseline: BoolArray
    """Whether the baseline was played, ``[K]``."""
    multiplier: FloatArray
    """lambda when the policy was planned, ``[K]``."""

    def __repr__(self) -> str:
        episodes, horizon = self.states.shape
        share = self.on_baseline.mean() if episodes else 0.0
        return f"Trace({counted(episodes, 'episode')} of {horizon} steps, {share:.1%} on the baseline)"


@dataclass(frozen=True, eq=False)
class Run:
    """The record of R replicates at T record points, with M constraints. Values and costs of policies
    are exact, and in the units of the model.

    V(r) and V(c) are those of the deployed policy. A learner may deploy a mixture, of which a coin
    chooses a policy for each episode; V(r) and V(c) are then the weighted sums over its members,
    whichever of them the coin chose. With several constraints, V(c) - limit stands for the largest
    excess over any of the limits.

    The window of a record point is made of the episodes since the record point before. Fields that
    records of earlier versions lack are None in them.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> run = op.simulate(pair.model, learner, replicates=2)
        >>> print(run)
        always the baseline: 2 replicates of 100 episodes
          violations              none in 200 episodes
          gain over the baseline  0 ± 0, 0 an episode
          regret of reward        55.29 ± 0
          on the baseline         100.0% of the episodes
          guarantee: ZeroViolation(probability=1.0)
    """

    episodes: IntArray
    """The numbers of episodes after which curves are recorded, ``[T]``."""
    replicates: IntArray
    """The numbers of the replicates, ``[R]``."""
    reward_regret: FloatArray
    """Sum of V* - V(r) of the deployed policies, signed, ``[R, T]``."""
    weak_violation: FloatArray
    """max(0, sum over episodes of V(c) - limit), ``[R, T]``. Safe episodes offset unsafe ones."""
    strong_violation: FloatArray
    """Sum over episodes of max(0, V(c) - limit), ``[R, T]``. Safe episodes do not offset unsafe ones."""
    multiplier: FloatArray
    """lambda after that many episodes, ``[R, T]``; 0 for algorithms without one."""
    worst_violation: FloatArray
    """The largest V(c) - limit of any episode, or 0, ``[R]``."""
    violating_episodes: IntArray
    """How many episodes had V(c) > limit, ``[R]``."""
    first_violation: IntArray
    """The first of them, from 0; -1 if there is none, ``[R]``."""
    baseline_episodes: IntArray
    """How many episodes played the baseline, ``[R]``."""
    estimation_episodes: IntArray
    """How many of those served to estimate its cost, ``[R]``."""
    first_planned: IntArray
    """The first episode that did not play the baseline, from 0; -1 if there is none, ``[R]``."""
    least_slack: FloatArray
    """The least slack of any certificate; infinite if there was none, ``[R]``."""
    repairs: IntArray
    """How many deployed policies were repaired for rounding, ``[R]``."""
    largest_repair: FloatArray
    """The largest weight of the baseline in such a repair, ``[R]``."""
    safe_cost: FloatArray
    """The safe cost in use at the end; NaN if there was none yet, ``[R]``."""
    optimal_value: float
    """V*, from the exact planner."""
    guarantee: Guarantee | None
    """What the theorems guarantee for the learner; None if an argument is outside of them, or if the
    model contradicts what the learner was told (``void_because``)."""
    parameters: dict[str, Any]
    """The arguments of the learner and of the run."""
    audits: tuple[dict[str, Finding], ...] | None = field(default=None, repr=False)
    """The findings of each replicate by the name of the check, if an audit was asked for."""
    traces: tuple[Trace, ...] | None = field(default=None, repr=False)
    """The trace of each replicate, if it was asked for. Not saved."""
    void_because: str | None = None
    """How the model contradicts what the learner was told of a safe policy (Assumption 2.2), so that no
    guarantee holds; None if it does not."""
    plays: dict[str, IntArray] = field(default_factory=dict, repr=False)
    """How many episodes played a policy of each source (see :class:`Deployment`), ``[R]``; sources that
    no replicate played are left out. Empty for records of earlier versions."""
    weight: FloatArray | None = field(default=None, repr=False)
    """The probability that an episode does not play the baseline, of the mixture deployed last,
    ``[R, T]``; None for learners that deploy no mixtures."""
    certified_cost: FloatArray | None = field(default=None, repr=False)
    """The upper bounds on the expected costs of that mixture, one for each of M constraints,
    ``[R, T, M]``; None for learners that deploy no mixtures."""
    mixtures: IntArray | None = field(default=None, repr=False)
    """How many different mixtures were deployed, ``[R]``; None for learners that deploy none."""
    signed_violation: FloatArray | None = field(default=None, repr=False)
    """Sum over episodes of V(c) - limit, signed, ``[R, T]``; ``weak_violation`` is its positive part."""
    deployed_value: FloatArray | None = field(default=None, repr=False)
    """The mean V(r) of each window, ``[R, T]``."""
    deployed_value_least: FloatArray | None = field(default=None, repr=False)
    """The least V(r) of any episode of the window, ``[R, T]``."""
    deployed_value_greatest: FloatArray | None = field(default=None, repr=False)
    """The greatest V(r) of any episode of the window, ``[R, T]``."""
    deployed_cost: FloatArray | None = field(default=None, repr=False)
    """The mean V(c) of each window, ``[R, T, M]``."""
    deployed_cost_least: FloatArray | None = field(default=None, repr=False)
    """The least V(c) of any episode of the window, ``[R, T, M]``."""
    deployed_cost_greatest: FloatArray | None = field(default=None, repr=False)
    """The greatest V(c) of any episode of the window, ``[R, T, M]``."""
    baseline_share: FloatArray | None = field(default=None, repr=False)
    """The share of the episodes of the window that played the baseline, ``[R, T]``."""
    gain: FloatArray | None = field(default=None, repr=False)
    """Sum over episodes of V(r) minus that of the baseline, ``[R, T]``; None without a baseline."""
    baseline_value: float | None = None
    """V(r) of the baseline in the true model; None for learners without a baseline."""
    baseline_costs: FloatArray | None = field(default=None, repr=False)
    """V(c) of the baseline in the true model, ``[M]``; None for learners without a baseline."""
    cost_limits: FloatArray | None = field(default=None, repr=False)
    """The limits, ``[M]``."""
    units: Units = field(default=Units(), repr=False)
    """The units of the model. V(c) - limit is in the unit of the costs if all have ranges of one width;
    else in parts of their ranges, so that an excess over one limit can be compared with another."""
    versions: dict[str, str] | None = field(default=None, repr=False)
    """The versions of optpess, NumPy and Python that made the record."""
    _learners: tuple[Learner, ...] | None = field(default=None, repr=False)
    _origin: Origin | None = field(default=None, repr=False)

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners after the last episode, one for each replicate, in the order of ``replicates``.

        They are live: each goes on where its replicate stopped, its coin too, by ``next_policy`` and
        ``observe`` or in another :func:`simulate`. That one starts from a copy, and draws episodes and
        coins anew from its seed and the number of the replicate: give it another seed than this run had,
        or it meets the random numbers of this run a second time. Learners are not saved with the run;
        see :meth:`Learner.save`.
        """
        if self._learners is None:
            raise InvalidInputError(
                "this run has kept no learners: they are not saved with a run, and runs of many "
                "replicates keep them only if asked; pass learners=True to simulate"
            )
        return self._learners

    def growth_exponent(self, decades: float = 1.0, of: str = "reward_regret") -> FloatArray:
        """The slope of log(curve) against log(episodes) over the last decades, ``[R]``; NaN if the
        curve is not positive throughout.

        Args:
            decades: how many factors of ten before the end to fit.
            of: ``"reward_regret"`` or the name of another curve that sums episodes.
        """
        factors = real_number("decades", decades)
        if not factors > 0.0:
            raise InvalidInputError(f"decades is {decades!r}; it must be above 0")
        if not is_name(of, _SLOPES):
            raise unknown_name("of", of, _SLOPES)
        if getattr(self, of) is None:
            raise InvalidInputError(f"of is {of!r}, which this run does not have")
        last = self.episodes >= self.episodes[-1] / 10.0 ** min(factors, 300.0)
        logs = np.log(self.episodes[last])
        centred = logs - logs.mean()
        curves = getattr(self, of)[:, last]
        # With a single record point the slope is 0/0: NaN.
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = (np.log(curves) @ centred) / (centred @ centred)
        return np.where((curves > 0).all(axis=1), slopes, np.nan)

    def columns(self) -> Columns:
        """Every curve as a 1-d array, one row for each replicate and record point.

        With M > 1 constraints, costs have a column for each: ``deployed_cost_0``, ``deployed_cost_1``.

        Example:
            >>> import optpess as op
            >>> pair = op.zoo.problem("pair")
            >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
            ...     baseline=op.SafeBaseline(pair.safe_policy, op.SafetyMargin(0.6, 0.135)))
            >>> run = op.simulate(pair.model, learner, episodes=3, replicates=2, progress=False)
            >>> columns = run.columns()
            >>> columns["replicate"], columns["episodes"]
            (array([0, 0, 0, 1, 1, 1]), array([1, 2, 3, 1, 2, 3]))
            >>> columns["baseline_share"]
            array([1., 1., 1., 1., 1., 1.])
        """
        num_replicates, num_points = self.reward_regret.shape
        columns: Columns = {
            "replicate": np.repeat(self.replicates, num_points),
            "episodes": np.tile(self.episodes, num_replicates),
        }
        for name in (*CURVES, "weight", *WINDOW_CURVES, "gain"):
            if (curve := getattr(self, name)) is not None:
                columns[name] = curve.ravel()
        for name in (*COST_CURVES, "certified_cost"):
            if (curve := getattr(self, name)) is not None:
                columns |= tables.columns_of_axis(name, curve)
        return columns

    def to_frame(self) -> Any:
        """:meth:`columns` as a pandas DataFrame."""
        return tables.to_frame(self.columns(), "Run.to_frame")

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Writes :meth:`columns` to a CSV file with a header; floats are read back as they were."""
        tables.write_csv(path, self.columns())

    def to_markdown(self) -> str:
        """The totals at the last episode, over replicates, and all parameters, in Markdown."""
        return "\n\n".join(
            (
                tables.markdown(*self._total_texts()),
                tables.markdown(("parameter", "value"), self._facts().items()),
            )
        )

    def _repr_html_(self) -> str:
        """Totals, the guarantee and the parameters, for notebooks."""
        return (
            html_paragraph(self._title())
            + html_table(*self._total_texts())
            + html_paragraph(self._guarantee_text())
            + html_folded("parameters", self._facts())
        )

    def _total_texts(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The header and the rows of the table of totals over replicates, as texts."""
        totals = self._totals().items()
        return _TOTALS, [(name, *map(tables.cell, _spread(values))) for name, values in totals]

    def _facts(self) -> dict[str, str]:
        """All parameters, as texts."""
        parameters = self.parameters | {
            "replicates": _numbers_text(self.replicates),
            "optimal_value": self.optimal_value,
            "baseline_value": self.baseline_value,
            "baseline_costs": None if self.baseline_costs is None else self.baseline_costs.tolist(),
            "guarantee": self.guarantee,
            "void_because": self.void_because,
            "versions": self.versions,
        }
        return tables.facts(parameters)

    def _totals(self) -> dict[str, FloatArray | IntArray]:
        """What the run came to in each replicate, ``[R]``, by its name in a table."""
        played = float(self.episodes[-1])
        totals: dict[str, FloatArray | IntArray] = {"regret of reward": self.reward_regret[:, -1]}
        if self.gain is not None:
            totals["gain over the baseline"] = self.gain[:, -1]
        totals["value of an episode"] = self.optimal_value - self.reward_regret[:, -1] / played
        if self.deployed_cost is not None and self.cost_limits is not None:
            weights = np.diff(self.episodes, prepend=0) / played
            costs = np.einsum("t,rtm->rm", weights, self.deployed_cost)
            assert self.deployed_cost_greatest is not None
            most = self.deployed_cost_greatest.max(axis=1)
            for m, limit in enumerate(self.cost_limits.tolist()):
                which = "" if len(self.cost_limits) == 1 else f" {m}"
                totals[f"cost{which} of an episode (limit {limit:g})"] = costs[:, m]
                totals[f"greatest cost{which} of an episode"] = most[:, m]
        if self.signed_violation is not None:
            totals["signed violation"] = self.signed_violation[:, -1]
        return totals | {
            "weak violation": self.weak_violation[:, -1],
            "strong violation": self.strong_violation[:, -1],
            "violating episodes": self.violating_episodes,
            "worst violation": self.worst_violation,
            "share of episodes on the baseline": self.baseline_episodes / played,
        }

    @classmethod
    def concat(cls, runs: Iterable[Run]) -> Self:
        """One run of the replicates of several, in the order given.

        The runs must have the same model, learner, seed and episodes, and different replicates: then the
        result is the run that one :func:`simulate` of all replicates gives.

        Example:
            >>> import optpess as op
            >>> model = op.zoo.pair()
            >>> learner = op.OPDOP(shape=model.shape, initial=model.initial, num_episodes=100,
            ...                    margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
            >>> first = op.simulate(model, learner, replicates=[0, 1], progress=False)
            >>> second = op.simulate(model, learner, replicates=[2], progress=False)
            >>> op.Run.concat([first, second]).replicates
            array([0, 1, 2])
        """
        found_runs: object = runs
        if isinstance(found_runs, Run):
            raise InvalidInputError("runs is a single Run; it must be a sequence of runs")
        if isinstance(found_runs, str | np.ndarray) or not isinstance(found_runs, Iterable):
            raise InvalidInputError(f"runs is {described(runs)}; it must be a sequence of runs")
        given = [check_type(f"runs[{i}]", run, Run) for i, run in enumerate(runs)]
        if not given:
            raise InvalidInputError("runs is empty; there is nothing to join")
        for number, run in enumerate(given[1:], start=1):
            _check_joinable(given[0], run, number)
        numbers = np.concatenate([run.replicates for run in given])
        found, counts = np.unique(numbers, return_counts=True)
        if (counts > 1).any():
            raise InvalidInputError(
                f"replicate {found[counts > 1][0]} is in several runs; each must be there once: run "
                "others, such as simulate(..., replicates=range(10, 20))"
            )
        return cls(**_joined(given))

    def same_as(self, other: Run) -> bool:
        """Whether both records agree in every bit. Traces, learners and versions are left out."""
        return not self._differences(check_type("other", other, Run))

    def _differences(self, other: Run) -> tuple[str, ...]:
        """The fields in which the records differ."""
        names = (each.name for each in fields(self) if each.name not in _NOT_COMPARED)
        return tuple(name for name in names if _differ(getattr(self, name), getattr(other, name)))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the record to a ``.npz`` file, without pickle.

        The file also holds the model and the learner as it was before the first episode, so that
        :func:`optpess.reproduce` can run it again. Traces and :attr:`learners` are left out.
        """
        check_path(path)
        storage.save_arrays(path, {"format": np.array(files.FORMAT)} | files.arrays_of(self))

    def plot(self, *, multiplier: bool = False) -> Figure:
        """Costs, rewards, gain, regret and violations as a matplotlib figure; see
        :func:`optpess.plot.plot_runs`.

        Args:
            multiplier: whether to draw the multiplier too, in units of the optimal one.
        """
        from optpess.plot import plot_run  # lazy: plot

        return plot_run(self, multiplier=multiplier)

    def __repr__(self) -> str:
        algorithm = self.parameters.get("algorithm", "a learner")
        gain = "" if self.gain is None else f"gain {tables.cell(float(self.gain[:, -1].mean()))}, "
        void = "" if self.void_because is None else f", void_because={self.void_because!r}"
        return (
            f"Run({algorithm}, {len(self.replicates)} replicate(s) of {self.episodes[-1]} episodes, "
            f"{self._mixture_text()}{int(self.violating_episodes.sum())} violating, {gain}"
            f"guarantee={self.guarantee}{void})"
        )

    def __str__(self) -> str:
        """What the run came to, in a few lines."""
        played = int(self.episodes[-1]) * len(self.replicates)
        lines = {"violations": self._violation_text(played)}
        if self.gain is not None:
            gain, each = self.gain[:, -1], self.gain[:, -1] / self.episodes[-1]
            mean = tables.cell(float(gain.mean()), tables.standard_error(gain))
            lines["gain over the baseline"] = f"{mean}, {tables.cell(float(each.mean()))} an episode"
        regret = self.reward_regret[:, -1]
        lines["regret of reward"] = tables.cell(float(regret.mean()), tables.standard_error(regret))
        lines["on the baseline"] = f"{self.baseline_episodes.sum() / played:.1%} of the episodes"
        width = max(map(len, lines))
        shown = [f"  {name.ljust(width)}  {text}" for name, text in lines.items()]
        return "\n".join((self._title(), *shown, f"  {self._guarantee_text()}"))

    def _title(self) -> str:
        algorithm = self.parameters.get("algorithm", "a learner")
        replicates = counted(len(self.replicates), "replicate")
        return f"{algorithm}: {replicates} of {counted(int(self.episodes[-1]), 'episode')}"

    def _violation_text(self, played: int) -> str:
        count = int(self.violating_episodes.sum())
        if not count:
            return f"none in {counted(played, 'episode')}"
        worst = tables.cell(float(self.worst_violation.max()))
        return f"{count:,} of {counted(played, 'episode')} above the limit, by at most {worst}"

    def _guarantee_text(self) -> str:
        if self.void_because is not None:
            return f"no guarantee: {self.void_because}"
        if self.guarantee is None:
            return "no guarantee: none of the theorems covers the learner's arguments"
        return f"guarantee: {self.guarantee}"

    def _mixture_text(self) -> str:
        """Over all replicates: the share of each source, and the mean of the last weights."""
        if self.weight is None:
            return ""
        total = sum(int(counts.sum()) for counts in self.plays.values())
        shares = (f"{name} {counts.sum() / total:.1%}" for name, counts in self.plays.items())
        return f"played {', '.join(shares)}, last weight {self.weight[:, -1].mean():.3g}, "


def load_run(path: str | PathLike[str]) -> Run:
    """Reads a record written by :meth:`Run.save`.

    Args:
        path: the file.

    Example:
        >>> import tempfile, pathlib, optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     op.simulate(pair.model, learner).save(pathlib.Path(folder) / "run.npz")
        ...     op.load_run(pathlib.Path(folder) / "run.npz").violating_episodes
        array([0])
    """
    arrays = storage.load_arrays(check_path(path), _FIELDS)
    try:
        return Run(**files.parts_of(arrays))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInputError(f"{path} does not hold a run: {error!r}") from error


def _check_joinable(first: Run, other: Run, number: int) -> None:
    """Refuses a run that differs from the first in more than its replicates."""
    ours, theirs = first.parameters, other.parameters
    for name in ours | theirs:
        if ours.get(name) != theirs.get(name):
            raise InvalidInputError(
                f"runs[{number}] has {name} = {shown(theirs.get(name))}; runs[0] has "
                f"{shown(ours.get(name))}; {_ALIKE}"
            )
    for name in ("episodes", "optimal_value", "cost_limits", "baseline_value", "units", "guarantee"):
        if _differ(getattr(first, name), getattr(other, name)):
            raise InvalidInputError(f"runs[{number}] has another {name} than runs[0]; {_ALIKE}")
    if first._origin and other._origin and not first._origin.same_as(other._origin):
        raise InvalidInputError(
            f"runs[{number}] has another model than runs[0], or its learner had seen other episodes "
            f"before the run; {_ALIKE}"
        )


def _joined(runs: list[Run]) -> dict[str, Any]:
    """The fields of the run of all replicates. What one of the runs lacks, the result lacks."""
    parts: dict[str, Any] = {}
    for each in fields(Run):
        values = [getattr(run, each.name) for run in runs]
        first = values[0]
        if each.name == "plays":
            parts["plays"] = _joined_plays(runs)
        elif any(value is None for value in values):
            parts[each.name] = None
        elif isinstance(first, np.ndarray) and each.name not in _SHARED:
            parts[each.name] = np.concatenate(values)
        elif each.name in ("audits", "traces", "_learners"):
            parts[each.name] = sum(values, ())
        else:
            parts[each.name] = first
    return parts


# The arrays that are not one for each replicate.
_SHARED = ("episodes", "cost_limits", "baseline_costs")


def _joined_plays(runs: list[Run]) -> dict[str, IntArray]:
    """The plays of all replicates; none if one of the runs does not know its own."""
    if not all(run.plays for run in runs):
        return {}
    names = dict.fromkeys(name for run in runs for name in run.plays)
    none = [np.zeros(len(run.replicates), dtype=np.int64) for run in runs]
    return {
        name: np.concatenate([run.plays.get(name, zeros) for run, zeros in zip(runs, none, strict=True)])
        for name in names
    }


def _differ(ours: Any, theirs: Any) -> bool:
    """Whether two values of a record differ, arrays in any bit."""
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes()
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() != theirs.keys() or any(_differ(ours[key], theirs[key]) for key in ours)
    return type(ours) is not type(theirs) or bool(ours != theirs)


def _spread(values: FloatArray | IntArray) -> tuple[float | str, ...]:
    """Mean, standard error, least and greatest over replicates."""
    error = tables.standard_error(values)
    return float(values.mean()), "-" if np.isnan(error) else error, *map(float, _ends(values))


def _ends(values: FloatArray | IntArray) -> tuple[Any, Any]:
    return values.min(), values.max()


def _numbers_text(numbers: IntArray) -> str:
    """Numbers of replicates in few words."""
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) > 2 and (np.diff(numbers) == 1).all():
        return f"{first} to {last}"
    return ", ".join(map(str, numbers.tolist()))
