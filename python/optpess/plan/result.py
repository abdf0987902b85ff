"""What planning returns: plans, the ends of the trade-off between reward and cost, and its frontier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.arrays import ActionArray, BoolArray, FloatArray
from optpess.checks import real_number
from optpess.display import html_paragraph, html_table, short
from optpess.exceptions import InfeasibleError
from optpess.plan._mixture import ActionMixture
from optpess.plan._problem import Problem
from optpess.plan.certificate import Reevaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Endpoint", "ExtendedPlan", "Frontier", "Plan"]

# A slack this small, relative to the largest cost of a step or the limit, is a rounding error.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimal policy of a known model.

    Example:
        >>> import optpess as op
        >>> op.solve(op.zoo.pair())
        Plan(value=0.822917, costs=[0.6], limits=[0.6], binding=[0], engine='parametric')
    """

    _problem: Problem = field(repr=False)
    _found: FloatArray | ActionMixture = field(repr=False)
    multipliers: FloatArray
    """How much value one more unit of each limit would buy, ``[M]``."""
    certificate: Reevaluation
    """Value, costs and a bound on the optimum, computed again after planning."""
    engine: str
    """The engine that planned: ``"parametric"``, ``"highs"`` or ``"columns"``."""
    inductions: int
    """How many backward inductions it took; 0 for a linear program."""

    @cached_property
    def policy(self) -> FloatArray:
        """``[H, S, A]``; made when it is first asked for."""
        return self._found.policy() if isinstance(self._found, ActionMixture) else self._found

    @cached_property
    def ends(self) -> tuple[tuple[float, FloatArray], ...]:
        """Weights and deterministic policies ``[H, S, A]`` whose mixture is the policy, if the engine
        knows them; made when they are first asked for.
        """
        return self._found.ends() if isinstance(self._found, ActionMixture) else ()

    @property
    def actions(self) -> tuple[tuple[float, ActionArray], ...]:
        """Weights and deterministic policies whose mixture is the policy, as the numbers of their
        actions ``[H, S]``, if the engine knows them.
        """
        if not isinstance(self._found, ActionMixture):
            return ()
        return tuple(zip(self._found.weights, self._found.actions, strict=True))

    @property
    def value(self) -> float:
        """V(r), the optimum."""
        return self.certificate.value

    @property
    def costs(self) -> FloatArray:
        """V(c_m), ``[M]``."""
        return self.certificate.costs

    @cached_property
    def occupancy(self) -> FloatArray:
        """The probability of each (state, action) at each step, ``[H, S, A]``."""
        return _core.occupancy(self.policy, self._problem.transitions, self._problem.initial)

    @property
    def binding(self) -> BoolArray:
        """Which limits bind, ``[M]``: the policy costs as much as the limit allows, up to rounding."""
        problem, certificate = self._problem, self.certificate
        widths = 1.0 if problem.units is None else problem.units.cost_widths
        rounding = _ROUNDING * problem.cost_units(problem.limits_in(certificate.limits)) * widths
        return certificate.slack <= rounding

    def plot(self) -> Figure:
        """The actions by state and step as a matplotlib figure; see :func:`optpess.plot.plot_plan`."""
        from optpess.plot import plot_plan  # lazy: plot

        return plot_plan(self)

    def __repr__(self) -> str:
        numbers = f"costs={short(self.costs)}, limits={short(self.certificate.limits)}"
        binding = short(np.flatnonzero(self.binding)) if self.binding.any() else "none"
        return f"Plan(value={self.value:.6g}, {numbers}, binding={binding}, engine={self.engine!r})"

    def _repr_html_(self) -> str:
        """A table with a row for each limit, for notebooks."""
        columns = ("constraint", "cost", "limit", "slack", "binds", "multiplier")
        certificate = self.certificate
        numbers = (certificate.costs, certificate.limits, certificate.slack, self.multipliers)
        rows = [
            (str(m), *(f"{number:.6g}" for number in each), "yes" if binds else "no", f"{price:.6g}")
            for m, (*each, price, binds) in enumerate(zip(*numbers, self.binding, strict=True))
        ]
        title = f"Plan: value {self.value:.6g}, at most {certificate.gap:.2g} below the optimum, engine"
        return html_paragraph(f"{title} {self.engine}") + html_table(columns, rows, "constraints")


@dataclass(frozen=True, eq=False)
class Endpoint:
    """A deterministic policy at one end of the trade-off between reward and cost.

    Example:
        >>> import optpess as op
        >>> op.solve_least_cost(op.zoo.pair())
        Endpoint(value=0.27, costs=[0.135])
    """

    policy: FloatArray
    """``[H, S, A]``."""
    value: float
    """V(r)."""
    costs: FloatArray
    """V(c_m), ``[M]``."""

    def __repr__(self) -> str:
        return f"Endpoint(value={self.value:.6g}, costs={short(self.costs)})"


class Frontier:
    """Vertices (cost, value) of the curve "best reward for a limit", by increasing cost: all of them, or
    as many as were asked for.

    Iterating gives pairs; ``numpy.asarray`` gives an array ``[V, 2]``.

    Example:
        >>> import optpess as op
        >>> op.frontier(op.zoo.pair())
        Frontier(5 vertices, cost 0.135..1.24, value 0.27..1.48)
    """

    def __init__(self, vertices: FloatArray, limit: float | None = None, bound: float = 0.0) -> None:
        self._vertices = vertices
        self._vertices.setflags(write=False)
        self._limit, self._bound = limit, bound

    @property
    def bound(self) -> float:
        """How far the curve may lie above the lines between the vertices, at the same limit; 0 if they
        are the curve.
        """
        return self._bound

    @property
    def costs(self) -> FloatArray:
        """The limits at which the slope changes, ``[V]``; the first is the least attainable cost."""
        return self._vertices[:, 0]

    @property
    def values(self) -> FloatArray:
        """The best reward at those limits, ``[V]``."""
        return self._vertices[:, 1]

    @property
    def slopes(self) -> FloatArray:
        """The multiplier along each edge, ``[V - 1]``, decreasing."""
        return np.diff(self.values) / np.diff(self.costs)

    @property
    def limit(self) -> float | None:
        """The limit of the model; None if the frontier was made from vertices alone."""
        return self._limit

    def value_at(self, limit: float) -> float:
        """The best reward for a limit, to ``bound``; InfeasibleError below the first cost."""
        limit = real_number("limit", limit)
        if not limit >= self.costs[0]:
            error = InfeasibleError(
                f"no policy meets the limit {limit}: the least attainable cost is {self.costs[0]}"
            )
            error.kind, error.least_cost = "Infeasible", float(self.costs[0])
            raise error
        with np.errstate(over="ignore"):
            found = float(np.interp(limit, self.costs, self.values))
        if np.isfinite(found):
            return found
        # The slope between two vertices overflows: weigh their values instead.
        place = int(np.searchsorted(self.costs, limit, side="right"))
        low, high = self.costs[place - 1 : place + 1].tolist()
        share = (limit - low) / (high - low)
        return float((1.0 - share) * self.values[place - 1] + share * self.values[place])

    def plot(self, *, path: Any = None, limit: float | None = None) -> Figure:
        """The curve, the limit and the optimum as a matplotlib figure; see
        :func:`optpess.plot.plot_frontier`.

        Args:
            path: a :class:`Run` on the same model, or several by name, to draw what was deployed.
            limit: the limit to mark, if not that of the model.
        """
        from optpess.plot import plot_frontier  # lazy: plot

        return plot_frontier(self, path=path, limit=limit)

    def __len__(self) -> int:
        return len(self._vertices)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return ((float(cost), float(value)) for cost, value in self._vertices)

    def __getitem__(self, index: int) -> tuple[float, float]:
        cost, value = self._vertices[index]
        return float(cost), float(value)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        return np.array(self._vertices, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        (low, worst), (high, best) = self[0], self[-1]
        ends = f"cost {low:.6g}..{high:.6g}, value {worst:.6g}..{best:.6g}"
        known = f", within {self.bound:.3g}" if self.bound else ""
        return f"Frontier({len(self)} vertices, {ends}{known})"


@dataclass(frozen=True, eq=False)
class ExtendedPlan:
    """The best pair of a policy and a plausible kernel within a limit.

    Example:
        >>> import optpess as op
        >>> import numpy as np
        >>> model = op.zoo.pair()
        >>> centre = np.stack([model.transitions.to_array()] * 2)
        >>> plan = op.solve_extended(model.rewards, model.costs[0], centre, np.zeros_like(centre),
        ...                          model.initial, 0.6)  # the only plausible kernel is the model's
        >>> round(plan.value * 96)
        79
    """

    policy: FloatArray
    """``[H, S, A]``, read off the occupancy."""
    value: float
    """V(r) of the policy on the chosen kernel: the optimum."""
    cost: float
    """V(c) of the policy on the chosen kernel."""
    multiplier: float
    """How much value one more unit of the limit would buy."""
    bound: float
    """An upper bound on the value of every pair within the limit: the Lagrangian at the multiplier."""
    occupancy: FloatArray
    """q, ``[H, S, A]``: the probability of each (state, action) at each step."""
    flow: FloatArray
    """z, ``[H - 1, S, A, S]``: the probability of each (state, action, next state) at each step."""
    engine: str
    """The engine that planned: ``"parametric"`` or ``"highs"``."""
    inductions: int
    """How many extended backward inductions it took; 0 for the linear program."""

    @property
    def transitions(self) -> FloatArray:
        """The chosen kernel, ``[H, S, A, S]``; rows are zero where the plan never arrives, and at the
        last step.
        """
        kernel = np.zeros((*self.policy.shape, self.policy.shape[1]))
        masses = self.flow.sum(axis=-1, keepdims=True)
        np.divide(self.flow, masses, out=kernel[:-1], where=masses > 0.0)
        return kernel

    def __repr__(self) -> str:
        return (
            f"ExtendedPlan(value={self.value:.6g}, cost={self.cost:.6g}, "
            f"multiplier={self.multiplier:.6g}, bound={self.bound:.6g}, engine={self.engine!r})"
        )
