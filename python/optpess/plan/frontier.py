"""The trade-off between reward and cost of a known model: its ends, and the frontier between them."""

from __future__ import annotations

import warnings

import numpy as np

from optpess import _core
from optpess.checks import real_number, whole_number
from optpess.exceptions import InvalidInputError
from optpess.model import CMDP, check_model
from optpess.plan._problem import Problem, check_one_constraint, policy_of_actions, tolerance_of
from optpess.plan.result import Endpoint, Frontier

__all__ = ["frontier", "solve_least_cost", "solve_unconstrained"]


def solve_unconstrained(model: CMDP) -> Endpoint:
    """The policy with the most reward, whatever it costs; among equals, the one that costs least.

    Args:
        model: the model.

    Example:
        >>> import optpess as op
        >>> op.solve_unconstrained(op.zoo.pair()).value
        1.48
    """
    check_model(model)
    return _endpoint(model, 0, least_cost=False)


def solve_least_cost(model: CMDP, constraint: int = 0) -> Endpoint:
    """The policy with the least cost of one constraint; among equals, the one with the most reward.

    With several constraints, the other costs are ignored.

    Args:
        model: the model.
        constraint: the number of the constraint, from 0.

    Example:
        >>> import optpess as op
        >>> float(op.solve_least_cost(op.zoo.pair()).costs[0])
        0.135
    """
    check_model(model)
    last = model.num_constraints - 1
    number = whole_number(
        "constraint", constraint, least=0, most=last, what=", the number of a constraint"
    )
    return _endpoint(model, number, least_cost=True)


def frontier(
    model: CMDP,
    *,
    tolerance: float = 0.0,
    between: tuple[float, float] | None = None,
    max_vertices: int = 1_000_000,
    threads: int | None = None,
) -> Frontier:
    """The best reward for every limit, for a model with one constraint: exactly, or to a tolerance.

    The curve is concave and piecewise linear. Finding all of its vertices takes one backward induction
    for each vertex and one for each edge, and there can be very many. With a tolerance, only as many are
    found as are needed for lines between them that lie nowhere more than that below the curve.

    A search that comes to ``max_vertices``, or is stopped by Ctrl-C, returns what it has, with a
    warning; ``bound`` of the result says how far the curve may lie above it.

    Args:
        model: the model, with one constraint.
        tolerance: how far below the curve the result may lie, at the same limit and in the model's
            units; 0 for all vertices.
        between: the lowest and the highest limit that matter; None for all.
        max_vertices: at most so many are found, at least 2.
        threads: how many threads; None for one per core. The numbers do not depend on it.

    Example:
        >>> import optpess as op
        >>> curve = op.frontier(op.zoo.pair())
        >>> len(curve), round(curve.value_at(0.6) * 96)
        (5, 79)
        >>> op.frontier(op.zoo.pair(), tolerance=0.1)
        Frontier(3 vertices, cost 0.135..1.24, value 0.27..1.48, within 0.0521)
    """
    check_model(model)
    check_one_constraint(model.num_constraints, "frontier")
    most = whole_number("max_vertices", max_vertices, least=2, most=2**63 - 1)
    problem = Problem.of(model)
    width = model.units.reward_width
    limits = _ordered_limits(problem, between)
    allowed = tolerance_of(tolerance) / width
    vertices, bound, stopped = _core.frontier_vertices(model, most, allowed, limits, threads)
    bound *= width
    if stopped or bound > tolerance:
        cause = "Ctrl-C stopped the search" if stopped else f"max_vertices is {most}"
        warnings.warn(f"{cause}: the curve may lie up to {bound:.3g} above the result", stacklevel=2)
    if not model.units.is_unit:
        values = model.units.values_out(vertices[:, 1:], model.shape.horizon)
        vertices = np.hstack([problem.costs_out(vertices[:, :1]), values])
    return Frontier(vertices, float(model.cost_limits[0]), bound)


def _ordered_limits(problem: Problem, between: object) -> tuple[float, float]:
    """The limits between which a curve is asked for, in the problem's own units."""
    if between is None:
        return -np.inf, np.inf
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise InvalidInputError(f"between is {between!r}; it must be two limits, the lower first")
    low, high = (real_number("between", limit) for limit in between)
    if not low <= high:
        raise InvalidInputError(f"between is {between!r}; the first limit must not be above the second")
    made = problem.limits_in(np.array([low])), problem.limits_in(np.array([high]))
    return float(made[0][0]), float(made[1][0])


def _endpoint(model: CMDP, constraint: int, *, least_cost: bool) -> Endpoint:
    actions = _core.extreme_actions(model, constraint, least_cost, None)
    found = _core.mix_actions(model, [actions], [1.0], None)
    problem = Problem.of(model)
    policy = policy_of_actions(model, actions)
    return Endpoint(policy, problem.value_out(found["value"]), problem.costs_out(found["costs"]))
