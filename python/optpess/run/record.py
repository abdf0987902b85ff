"""The record of a simulation: curves, exact totals, the guarantee and all parameters; and its file."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess import storage
from optpess.arrays import BoolArray, FloatArray, IntArray
from optpess.exceptions import InvalidInputError
from optpess.learn.terms import BoundedViolation, Guarantee, SafeMixture, ZeroViolation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Finding", "Run", "Trace", "load_run"]

_FORMAT = "optpess.Run/1"
_CURVES = ("reward_regret", "weak_violation", "strong_violation", "multiplier")
_FLOAT_TOTALS = ("worst_violation", "least_slack", "largest_repair", "safe_cost")
_COUNT_TOTALS = (
    "violating_episodes",
    "first_violation",
    "baseline_episodes",
    "estimation_episodes",
    "first_planned",
    "repairs",
)
# Of learners that deploy mixtures.
_MIXTURE_ARRAYS = {"weight": "f", "certified_cost": "f", "mixtures": "i"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of the audit in one replicate."""

    made: int
    """How often the check was made."""
    failed: int
    """How often it failed."""
    first_failure: int | None
    """The first failing episode, from 0."""
    worst_excess: float
    """The largest amount by which it failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Everything that happened in the K episodes of one replicate."""

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


@dataclass(frozen=True, eq=False)
class Run:
    """The record of R replicates at T record points. Values and costs of policies are exact.

    V(r) and V(c) are those of the deployed policy. A learner may deploy a mixture, of which a coin
    chooses a policy for each episode; V(r) and V(c) are then the weighted sums over its members,
    whichever of them the coin chose. With several constraints, V(c) - limit stands for the largest
    excess over any of the limits.
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

    def growth_exponent(self, decades: float = 1.0, of: str = "reward_regret") -> FloatArray:
        """The slope of log(curve) against log(episodes) over the last decades, ``[R]``; NaN if the
        curve is not positive throughout.

        Args:
            decades: how many factors of ten before the end to fit.
            of: ``"reward_regret"`` or the name of another curve.
        """
        if of not in _CURVES:
            raise InvalidInputError(f"of is {of!r}; allowed are {', '.join(_CURVES)}")
        last = self.episodes >= self.episodes[-1] / 10**decades
        logs = np.log(self.episodes[last])
        centred = logs - logs.mean()
        curves = getattr(self, of)[:, last]
        # With a single record point the slope is 0/0: NaN.
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = (np.log(curves) @ centred) / (centred @ centred)
        return np.where((curves > 0).all(axis=1), slopes, np.nan)

    def to_frame(self) -> Any:
        """The curves as a pandas DataFrame, one row for each replicate and record point."""
        try:
            pd: Any = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError("Run.to_frame needs pandas: pip install optpess[frame]") from error
        num_replicates, num_points = self.reward_regret.shape
        columns: dict[str, Any] = {
            "replicate": np.repeat(self.replicates, num_points),
            "episodes": np.tile(self.episodes, num_replicates),
        }
        columns |= {name: getattr(self, name).ravel() for name in _CURVES}
        if self.weight is not None:
            columns["weight"] = self.weight.ravel()
        return pd.DataFrame(columns)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the record to a ``.npz`` file, without pickle; traces are left out."""
        facts = {
            "optimal_value": self.optimal_value,
            "guarantee": _guarantee_out(self.guarantee),
            "void_because": self.void_because,
            "parameters": self.parameters,
            "audits": None if self.audits is None else [_audit_out(audit) for audit in self.audits],
            "plays": list(self.plays),
        }
        arrays = {name: getattr(self, name) for name in _array_kinds()}
        arrays |= {name: getattr(self, name) for name in _MIXTURE_ARRAYS if self.mixtures is not None}
        if self.plays:
            arrays["plays"] = np.stack(list(self.plays.values()))  # [sources, R]
        tags = {"format": np.array(_FORMAT), "facts": np.array(json.dumps(facts))}
        storage.save_arrays(path, tags | arrays)

    def plot(self) -> Figure:
        """Regret, violations and multiplier against episodes, as a matplotlib figure."""
        from optpess.plot import plot_run  # lazy: plot

        return plot_run(self)

    def __repr__(self) -> str:
        algorithm = self.parameters.get("algorithm", "a learner")
        void = "" if self.void_because is None else f", void_because={self.void_because!r}"
        return (
            f"Run({algorithm}, {len(self.replicates)} replicate(s) of {self.episodes[-1]} episodes, "
            f"{self._mixture_text()}"
            f"{int(self.violating_episodes.sum())} violating, guarantee={self.guarantee}{void})"
        )

    def _mixture_text(self) -> str:
        """Over all replicates: the share of each source, and the mean of the last weights."""
        if self.weight is None:
            return ""
        total = sum(int(counts.sum()) for counts in self.plays.values())
        shares = (f"{name} {counts.sum() / total:.1%}" for name, counts in self.plays.items())
        return f"played {', '.join(shares)}, last weight {self.weight[:, -1].mean():.3g}, "


def load_run(path: str | PathLike[str]) -> Run:
    """Reads a record written by :meth:`Run.save`."""
    # Older files have no plays and no arrays of mixtures.
    optional = {"plays": "i"} | _MIXTURE_ARRAYS
    fields = storage.Fields(_FORMAT, required={"facts": "U"} | _array_kinds(), optional=optional)
    arrays = storage.load_arrays(path, fields)
    try:
        facts = json.loads(str(arrays["facts"]))
        audits = facts["audits"]
        stored: dict[str, Any] = {name: arrays[name] for name in _array_kinds()}
        if not arrays.keys().isdisjoint(_MIXTURE_ARRAYS):
            stored |= {name: arrays[name] for name in _MIXTURE_ARRAYS}
        _check_shapes(stored)
        return Run(
            **stored,
            plays=_plays_in(facts.get("plays", []), arrays.get("plays"), stored["replicates"].shape),
            optimal_value=float(facts["optimal_value"]),
            guarantee=_guarantee_in(facts["guarantee"]),
            void_because=_text_in(facts.get("void_because")),  # older files have none
            parameters=dict(facts["parameters"]),
            audits=None if audits is None else tuple(_audit_in(audit) for audit in audits),
        )
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInputError(f"{path} does not hold a run: {error!r}") from error


def _check_shapes(stored: dict[str, Any]) -> None:
    """Curves are ``[R, T]``, totals ``[R]``."""
    points, replicates = stored["episodes"].shape, stored["replicates"].shape
    expected = dict.fromkeys(_CURVES, replicates + points)
    expected |= dict.fromkeys((*_FLOAT_TOTALS, *_COUNT_TOTALS), replicates)
    if "mixtures" in stored:
        constraints = stored["certified_cost"].shape[2:]
        if len(constraints) != 1 or 0 in constraints:
            raise ValueError(f"certified_cost has shape {stored['certified_cost'].shape}")
        expected |= {"weight": replicates + points, "mixtures": replicates}
        expected["certified_cost"] = replicates + points + constraints
    if len(points) != 1 or len(replicates) != 1 or 0 in points + replicates:
        raise ValueError(f"episodes and replicates have shapes {points} and {replicates}")
    for name, shape in expected.items():
        if stored[name].shape != shape:
            raise ValueError(f"{name} has shape {stored[name].shape}; it must have {shape}")


def _plays_in(names: list[str], counts: Any, replicates: tuple[int, ...]) -> dict[str, IntArray]:
    """The counts ``[sources, R]`` by the names of the sources."""
    rows = [] if counts is None else list(counts)
    if any(row.shape != replicates for row in rows):
        raise ValueError(f"plays must have {replicates} counts a source")
    return {str(name): row for name, row in zip(names, rows, strict=True)}


def _array_kinds() -> dict[str, str]:
    counts = ("episodes", "replicates", *_COUNT_TOTALS)
    return dict.fromkeys((*_CURVES, *_FLOAT_TOTALS), "f") | dict.fromkeys(counts, "i")


def _guarantee_out(guarantee: Guarantee | None) -> list[Any] | None:
    return None if guarantee is None else [type(guarantee).__name__, *astuple(guarantee)]


def _guarantee_in(stored: list[Any] | None) -> Guarantee | None:
    if stored is None:
        return None
    kind, probability, *further = stored
    if kind == "SafeMixture":
        (known,) = further
        return SafeMixture(float(probability), tuple(str(name) for name in known))
    # Older files have no numbers beside the probability.
    numbers = [None if number is None else int(number) for number in further]
    kinds: dict[str, Callable[..., Guarantee]] = {
        "ZeroViolation": ZeroViolation,
        "BoundedViolation": BoundedViolation,
    }
    return kinds[kind](float(probability), *numbers)


def _text_in(stored: object) -> str | None:
    if stored is None or isinstance(stored, str):
        return stored
    raise TypeError(f"{stored!r} is not a text")


def _audit_out(audit: dict[str, Finding]) -> dict[str, list[Any]]:
    return {
        name: [found.made, found.failed, found.first_failure, found.worst_excess]
        for name, found in audit.items()
    }


def _audit_in(stored: dict[str, list[Any]]) -> dict[str, Finding]:
    return {name: Finding(*row) for name, row in stored.items()}
