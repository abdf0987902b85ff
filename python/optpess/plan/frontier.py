"""The trade-off between reward and cost of a known model: its ends, and the frontier between them."""

from __future__ import annotations

import numpy as np

from optpess import _core
from optpess.checks import whole_number
from optpess.model import CMDP, check_model
from optpess.plan._problem import Problem, check_one_constraint, policy_of_actions
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


def frontier(model: CMDP, *, max_vertices: int = 1_000_000) -> Frontier:
    """The best reward for every limit, exactly, for a model with one constraint.

    The curve is concave and piecewise linear. Finding its vertices takes one backward induction for each
    vertex and one for each edge.

    Args:
        model: the model, with one constraint.
        max_vertices: a curve with more of them is refused.

    Example:
        >>> import optpess as op
        >>> curve = op.frontier(op.zoo.pair())
        >>> len(curve), round(curve.value_at(0.6) * 96)
        (5, 79)
    """
    check_model(model)
    check_one_constraint(model.num_constraints, "frontier")
    most = whole_number("max_vertices", max_vertices)
    vertices = _core.frontier_vertices(model, most)
    if not model.units.is_unit:
        problem = Problem.of(model)
        values = model.units.values_out(vertices[:, 1:], model.shape.horizon)
        vertices = np.hstack([problem.costs_out(vertices[:, :1]), values])
    return Frontier(vertices)


def _endpoint(model: CMDP, constraint: int, *, least_cost: bool) -> Endpoint:
    policy = policy_of_actions(model, _core.extreme_actions(model, constraint, least_cost))
    problem = Problem.of(model)
    value, costs = problem.evaluated(policy)
    return Endpoint(policy, problem.value_out(value), problem.costs_out(costs))
