"""What is drawn of runs against the episodes: costs, rewards, gains, regrets, mixtures, multipliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from optpess.arrays import FloatArray
from optpess.display import span
from optpess.exceptions import OptPessError
from optpess.plan.solve import solve
from optpess.plot.curves import Curve, Quantity, Reference, nearest_constraints
from optpess.plot.numbers import number_text
from optpess.plot.style import DASHED, SOLID
from optpess.run.record import Run

__all__ = ["quantities"]

# A multiplier that is further above the price than this is drawn on a logarithmic axis.
_FAR_ABOVE_PRICE = 100.0
_NOT_RECORDED = "not in this record:\nit was made by an\nearlier version"
# What lines and bands are: of sums, and of means since the record point before.
_BANDS = "Lines are medians of the replicates; bands go from the least to the greatest."
_WINDOWS = (
    "Lines are medians of the replicates, of means since the record point before; inner bands go from "
    "the least replicate to the greatest, outer ones from the least to the greatest episode in between."
)


def quantities(runs: Mapping[str, Run], *, multiplier: bool = False) -> dict[str, list[Quantity]]:
    """The quantities to draw, in their order, in groups that belong together. Those of mixtures are left
    out if no run has them; the others say why they are missing.
    """
    common = _Common.of(runs)
    found = {
        "cost": _costs(runs, common),
        "reward": [_reward(runs, common)],
        "gain": [_gain(runs, common)],
        "regret": [_regret(runs)],
    }
    if any(run.weight is not None for run in runs.values()):
        mixing = [_weight(runs), *_certified(runs, common)]
        found["mixture"] = [quantity.of_those_who_have_it() for quantity in mixing]
    if multiplier:
        found["multiplier"] = [_multiplier(runs).of_those_who_have_it()]
    return found


@dataclass(frozen=True, slots=True)
class _Common:
    """The safe policy that all runs can be compared with: that of the runs which have one, if it is the
    same and all runs have the same optimum.
    """

    value: float | None
    costs: FloatArray | None

    @classmethod
    def of(cls, runs: Mapping[str, Run]) -> Self:
        values = {run.baseline_value for run in runs.values() if run.baseline_value is not None}
        costs = [run.baseline_costs for run in runs.values() if run.baseline_costs is not None]
        optima = {run.optimal_value for run in runs.values()}
        alike = len(optima) == len(values) == 1 and all(np.array_equal(costs[0], each) for each in costs)
        return cls(values.pop(), costs[0]) if alike and costs else cls(None, None)

    def value_for(self, run: Run) -> float | None:
        return self.value if run.baseline_value is None else run.baseline_value

    def costs_for(self, run: Run) -> FloatArray | None:
        return self.costs if run.baseline_costs is None else run.baseline_costs


def _each(runs: Mapping[str, Run], make: Callable[[Run], Curve | None]) -> dict[str, Curve]:
    made = {name: make(run) for name, run in runs.items()}
    return {name: curve for name, curve in made.items() if curve is not None}


def _positive(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    return {name: curve.positive() for name, curve in curves.items()}


def _drawn_constraints(runs: Mapping[str, Run]) -> list[int]:
    """The constraints that are drawn, by the greatest expected cost that any run deployed."""
    excess = np.full(_num_constraints(runs), -np.inf)
    for run in runs.values():
        if run.deployed_cost_greatest is not None and run.cost_limits is not None:
            own = (run.deployed_cost_greatest - run.cost_limits).max(axis=(0, 1)) / run.units.cost_widths
            excess[: len(own)] = np.maximum(excess[: len(own)], own)
    return nearest_constraints(excess)


def _num_constraints(runs: Mapping[str, Run]) -> int:
    return max(len(run.units.cost_ranges) for run in runs.values())


def _which(m: int, runs: Mapping[str, Run]) -> str:
    """The number of a constraint in a title; nothing if there is only one."""
    count = _num_constraints(runs)
    if count == 1:
        return ""
    return f" {m}" if len(_drawn_constraints(runs)) == count else f" {m} (of {count})"


def _cost_references(
    runs: Mapping[str, Run], common: _Common, m: int
) -> dict[str, tuple[Reference, ...]]:
    found = {}
    for name, run in runs.items():
        lines = []
        if run.cost_limits is not None and m < len(run.cost_limits):
            limit = float(run.cost_limits[m])
            lines.append(Reference(limit, f"limit {number_text(limit)}", SOLID))
        costs = common.costs_for(run)
        if costs is not None and m < len(costs):
            lines.append(Reference(float(costs[m]), f"baseline {number_text(costs[m])}", DASHED))
        found[name] = tuple(lines)
    return found


def _costs(runs: Mapping[str, Run], common: _Common) -> list[Quantity]:
    """(a) Expected costs against their limits."""

    def quantity(m: int) -> Quantity:
        def curve(run: Run) -> Curve | None:
            windows = (run.deployed_cost, run.deployed_cost_least, run.deployed_cost_greatest)
            return Curve.of(run, *(_of_constraint(each, m) for each in windows))

        return Quantity(
            title=f"Cost{_which(m, runs)} of what was deployed",
            unit="expected cost\nan episode",
            caption="Expected cost of the deployed policy or mixture, exact, against the limit. "
            + _WINDOWS,
            curves=_each(runs, curve),
            references=_cost_references(runs, common, m),
            missing=_NOT_RECORDED,
        )

    return [quantity(m) for m in _drawn_constraints(runs)]


def _of_constraint(costs: FloatArray | None, m: int) -> FloatArray | None:
    """``[R, T]`` of ``[R, T, M]``; None if there is no such constraint."""
    return None if costs is None or m >= costs.shape[-1] else costs[..., m]


def _reward(runs: Mapping[str, Run], common: _Common) -> Quantity:
    """(b) Expected reward against the optimum and the baseline."""

    def curve(run: Run) -> Curve | None:
        return Curve.of(run, run.deployed_value, run.deployed_value_least, run.deployed_value_greatest)

    references = {}
    for name, run in runs.items():
        lines = [Reference(run.optimal_value, f"optimum {number_text(run.optimal_value)}", SOLID)]
        if (value := common.value_for(run)) is not None:
            lines.append(Reference(value, f"baseline {number_text(value)}", DASHED))
        references[name] = tuple(lines)
    return Quantity(
        title="Reward of what was deployed",
        unit="expected reward\nan episode",
        caption="Expected reward of the deployed policy or mixture, exact, against the best reward "
        "within the limit and that of the baseline. " + _WINDOWS,
        curves=_each(runs, curve),
        references=references,
        missing=_NOT_RECORDED,
    )


def _gain(runs: Mapping[str, Run], common: _Common) -> Quantity:
    """(c) Summed gain over the baseline; over that of the others for learners which were told none."""

    def curve(run: Run) -> Curve | None:
        if run.gain is not None:
            return Curve.of(run, run.gain)
        if (value := common.value_for(run)) is None:
            return None
        return Curve.of(run, (run.optimal_value - value) * run.episodes - run.reward_regret)

    return Quantity(
        title="Summed gain over the baseline",
        unit="reward, summed",
        caption="What the deployed policies earned beyond the baseline, summed over episodes; learners "
        "that were told no baseline are compared with that of the others. " + _BANDS,
        curves=_each(runs, curve),
        references=dict.fromkeys(runs, (Reference(0.0, "baseline", DASHED),)),
        missing="no baseline\nto compare with",
        linear=True,
        among_others=True,
    )


def _regret(runs: Mapping[str, Run]) -> Quantity:
    """(d) The positive part of the regret, on logarithmic axes."""
    return Quantity(
        title="Regret of reward (positive part)",
        unit="reward, summed",
        caption="Optimal minus earned reward, summed over episodes, where it is positive; a policy that "
        "breaks the limit can earn more than the optimum. The guide has the slope of a square root. "
        + _BANDS,
        curves=_positive(_each(runs, lambda run: Curve.of(run, run.reward_regret))),
        references=dict.fromkeys(runs, ()),
        missing="never above 0",
        log=True,
        root=True,
        among_others=True,
    )


def _weight(runs: Mapping[str, Run]) -> Quantity:
    return Quantity(
        title="Weight of the mixture",
        unit="probability of not\nplaying the baseline",
        caption="The probability that an episode does not play the baseline. " + _BANDS,
        curves=_each(runs, lambda run: Curve.of(run, run.weight)),
        references=dict.fromkeys(runs, ()),
        missing="no mixtures",
        probability=True,
        notes={
            name: f"{span(run.mixtures)} mixture{'' if (run.mixtures == 1).all() else 's'}"
            for name, run in runs.items()
            if run.mixtures is not None
        },
    )


def _certified(runs: Mapping[str, Run], common: _Common) -> list[Quantity]:
    """The certified cost of mixtures against the limit."""

    def quantity(m: int) -> Quantity:
        return Quantity(
            title=f"Certified cost{_which(m, runs)} of the mixture",
            unit="bound on the cost\nof an episode",
            caption="The upper bound on the expected cost that was proved from the data before the "
            "mixture was deployed. " + _BANDS,
            curves=_each(runs, lambda run: Curve.of(run, _of_constraint(run.certified_cost, m))),
            references=_cost_references(runs, common, m),
            missing="no mixtures",
        )

    return [quantity(m) for m in _drawn_constraints(runs)]


def _multiplier(runs: Mapping[str, Run]) -> Quantity:
    """Multipliers in units of the plan's price, if the models are known and their limits have one."""
    used = {name: run for name, run in runs.items() if np.nan_to_num(run.multiplier).any()}
    found = {name: _price(run) for name, run in used.items()}
    prices = {name: price for name, price in found.items() if price}
    unpriced = "does not bind" if 0.0 in found.values() else "has no known price"
    priced = all(price for price in found.values())
    units = prices if priced else dict.fromkeys(used, 1.0)
    made = {name: Curve.of(run, run.multiplier / units[name]) for name, run in used.items()}
    curves = {name: curve for name, curve in made.items() if curve is not None}
    tops = [float(np.nanmax(curve.high)) for curve in curves.values() if curve.end is not None]
    log = max(tops, default=0.0) > _FAR_ABOVE_PRICE
    price = Reference(1.0, "price of the plan", SOLID)
    return Quantity(
        title="Multiplier" + " (positive part)" * log,
        unit="in prices of the plan" if priced else f"raw: the limit\n{unpriced}",
        caption="The weight that a learner gives to the cost"
        + (", as a multiple of the optimal one. " if priced else ", as it is. ")
        + _BANDS,
        curves=_positive(curves) if log else curves,
        references=dict.fromkeys(runs, (price,) if priced else ()),
        missing="no multiplier",
        log=log,
    )


def _price(run: Run) -> float | None:
    """What one more unit of the limit would buy in the true model, 0 if the limit does not bind; None if
    it is not known, or if there are several limits.
    """
    if run._origin is None or len(run.units.cost_ranges) != 1:
        return None
    try:
        price = float(solve(run._origin.restore()[0]).multipliers[0])
    except OptPessError:  # a file whose model this version cannot restore
        return None
    return max(price, 0.0) if np.isfinite(price) else None
