"""Records as arrays of a file, and back: the names, kinds and shapes of everything a record holds."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.arrays import IntArray, StoredArrays
from optpess.learn.terms import BoundedViolation, Guarantee, SafeMixture, ZeroViolation
from optpess.model.units import Units
from optpess.run.origin import KINDS as ORIGIN_KINDS
from optpess.run.origin import Origin

if TYPE_CHECKING:
    from optpess.run.record import Run

__all__ = [
    "COST_CURVES",
    "CURVES",
    "EARLIER",
    "FORMAT",
    "MIXTURE_ARRAYS",
    "OPTIONAL",
    "REQUIRED",
    "WINDOW_CURVES",
    "Finding",
    "arrays_of",
    "parts_of",
]

FORMAT = "optpess.Run/2"
# Files of these have no arrays of windows, no gain, no units and no origin.
EARLIER = ("optpess.Run/1",)

# Of shape [R, T].
CURVES = ("reward_regret", "weak_violation", "strong_violation", "multiplier")
# Of shape [R, T], of records since format 2.
WINDOW_CURVES = (
    "signed_violation",
    "deployed_value",
    "deployed_value_least",
    "deployed_value_greatest",
    "baseline_share",
)
# Of shape [R, T, M], of records since format 2.
COST_CURVES = ("deployed_cost", "deployed_cost_least", "deployed_cost_greatest")
# Of shape [R].
FLOAT_TOTALS = ("worst_violation", "least_slack", "largest_repair", "safe_cost")
COUNT_TOTALS = (
    "violating_episodes",
    "first_violation",
    "baseline_episodes",
    "estimation_episodes",
    "first_planned",
    "repairs",
)
# Of learners that deploy mixtures.
MIXTURE_ARRAYS = {"weight": "f", "certified_cost": "f", "mixtures": "i"}

# The arrays of a file and their kinds of elements.
_NUMBERS = dict.fromkeys((*CURVES, *FLOAT_TOTALS), "f") | dict.fromkeys(
    ("episodes", "replicates", *COUNT_TOTALS), "i"
)
_SINCE_2 = dict.fromkeys((*WINDOW_CURVES, *COST_CURVES, "cost_limits"), "f")
_OF_BASELINE = dict.fromkeys(("gain", "baseline_costs"), "f")
REQUIRED = {"facts": "U"} | _NUMBERS
OPTIONAL = {"plays": "i"} | MIXTURE_ARRAYS | _SINCE_2 | _OF_BASELINE | ORIGIN_KINDS


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of the audit in one replicate.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> op.simulate(pair.model, learner, audit=True).audits[0]["SafetyAssumption"]
        Finding(made=1, failed=0, first_failure=None, worst_excess=0.0)
    """

    made: int
    """How often the check was made."""
    failed: int
    """How often it failed."""
    first_failure: int | None
    """The first failing episode, from 0."""
    worst_excess: float
    """The largest amount by which it failed."""


def arrays_of(run: Run) -> StoredArrays:
    """Everything that a file keeps of a record."""
    facts = {
        "optimal_value": run.optimal_value,
        "baseline_value": run.baseline_value,
        "guarantee": _guarantee_out(run.guarantee),
        "void_because": run.void_because,
        "parameters": run.parameters,
        "audits": None if run.audits is None else [_audit_out(audit) for audit in run.audits],
        "plays": list(run.plays),
        "units": [run.units.reward_range, run.units.cost_ranges],
        "versions": run.versions,
    }
    arrays: StoredArrays = {"facts": np.array(json.dumps(facts))}
    for name in (*_NUMBERS, *MIXTURE_ARRAYS, *_SINCE_2, *_OF_BASELINE):
        if (array := getattr(run, name)) is not None:
            arrays[name] = array
    if run.plays:
        arrays["plays"] = np.stack(list(run.plays.values()))  # [sources, R]
    return arrays | ({} if run._origin is None else run._origin.arrays())


def parts_of(arrays: StoredArrays) -> dict[str, Any]:
    """The fields of the record that a file holds. What does not fit raises one of Python's errors."""
    facts = json.loads(str(arrays["facts"]))
    audits, names = facts["audits"], [*_NUMBERS]
    for group in (MIXTURE_ARRAYS, _SINCE_2, _OF_BASELINE):
        if not arrays.keys().isdisjoint(group):
            names += group
    parts: dict[str, Any] = {name: arrays[name] for name in names}
    _check_shapes(parts)
    plays = _plays_in(facts.get("plays", []), arrays.get("plays"), parts["replicates"].shape)
    baseline_value = facts.get("baseline_value")
    return parts | {
        "plays": plays,
        "optimal_value": float(facts["optimal_value"]),
        "baseline_value": None if baseline_value is None else float(baseline_value),
        "guarantee": _guarantee_in(facts["guarantee"]),
        "void_because": _text_in(facts.get("void_because")),
        "parameters": dict(facts["parameters"]),
        "audits": None if audits is None else tuple(_audit_in(audit) for audit in audits),
        "units": _units_in(facts.get("units")),
        "versions": _versions_in(facts.get("versions")),
        "_origin": Origin.of(arrays),
    }


def _check_shapes(parts: dict[str, Any]) -> None:
    """Curves are ``[R, T]``, curves of costs ``[R, T, M]``, totals ``[R]``."""
    points, replicates = parts["episodes"].shape, parts["replicates"].shape
    if len(points) != 1 or len(replicates) != 1 or 0 in points + replicates:
        raise ValueError(f"episodes and replicates have shapes {points} and {replicates}")
    curve = replicates + points
    expected = dict.fromkeys((*CURVES, *WINDOW_CURVES, "weight", "gain"), curve)
    expected |= dict.fromkeys((*FLOAT_TOTALS, *COUNT_TOTALS, "mixtures"), replicates)
    for name in ("certified_cost", "cost_limits"):
        if name in parts and 0 in parts[name].shape[-1:]:
            raise ValueError(f"{name} has no constraint")
    limits = parts["cost_limits"].shape[:1] if "cost_limits" in parts else ()
    expected |= dict.fromkeys(COST_CURVES, curve + limits)
    expected |= dict.fromkeys(("cost_limits", "baseline_costs"), limits)
    if "certified_cost" in parts:
        expected["certified_cost"] = curve + parts["certified_cost"].shape[2:3]
    for name, shape in expected.items():
        if name in parts and parts[name].shape != shape:
            raise ValueError(f"{name} has shape {parts[name].shape}; it must have {shape}")


def _plays_in(names: list[str], counts: Any, replicates: tuple[int, ...]) -> dict[str, IntArray]:
    """The counts ``[sources, R]`` by the names of the sources; older files have none."""
    rows = [] if counts is None else list(counts)
    if any(row.shape != replicates for row in rows):
        raise ValueError(f"plays must have {replicates} counts a source")
    return {str(name): row for name, row in zip(names, rows, strict=True)}


def _units_in(stored: list[Any] | None) -> Units:
    if stored is None:
        return Units()
    rewards, costs = stored
    return Units.of(rewards, costs, len(costs))


def _versions_in(stored: dict[str, Any] | None) -> dict[str, str] | None:
    return None if stored is None else {str(name): str(found) for name, found in stored.items()}


def _guarantee_out(guarantee: Guarantee | None) -> list[Any] | None:
    return None if guarantee is None else [type(guarantee).__name__, *astuple(guarantee)]


def _guarantee_in(stored: list[Any] | None) -> Guarantee | None:
    if stored is None:
        return None
    kind, probability, *further = stored
    if kind == "SafeMixture":
        (known,) = further
        return SafeMixture(float(probability), tuple(str(name) for name in known))
    # Older files have nothing beside the probability.
    if kind == "ZeroViolation":
        return ZeroViolation(float(probability), *map(bool, further))
    if kind != "BoundedViolation":
        raise ValueError(f"{kind!r} is no guarantee")
    numbers = [None if number is None else int(number) for number in further]
    return BoundedViolation(float(probability), *numbers)


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
