"""Exact solutions of a known model, each certified by re-evaluation and by a bound from duality."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.columns import solve_by_columns
from optpess.exceptions import CertificateError, InfeasibleError, InvalidInputError
from optpess.highs import OccupancyLP
from optpess.model import CMDP, Shape
from optpess.plans import Certificate, Endpoint, Frontier, Plan, Problem, floats, limits_in

__all__ = [
    "Certificate",
    "Endpoint",
    "Frontier",
    "Plan",
    "frontier",
    "solve",
    "solve_least_cost",
    "solve_signals",
    "solve_unconstrained",
]

FloatArray = npt.NDArray[np.float64]
Engine = Literal["parametric", "highs", "columns"]

# A linear program with more state-action-steps than this is left to column generation by default.
_LARGE = 1_000
# How far above its limit a policy read off a linear program may cost before it is repaired, and
# before it is refused.
_COST_WIDTH = 1e-9
# HiGHS calls infeasible what it misses by its tolerance of 1e-10; by so much a limit that is known to
# be attainable is raised for it. What comes back is held to the limit itself.
_SOLVER_WIDTH = 5e-10
# Rounding of the least attainable cost, as in the parametric engine.
_FEASIBILITY_WIDTH = 1e-12


def solve(
    model: CMDP,
    engine: Engine | None = None,
    *,
    cost_limit: npt.ArrayLike | None = None,
    time_limit: float | None = None,
) -> Plan:
    """The best policy of a known model among those that meet its limits.

    Args:
        model: the model.
        engine: ``"parametric"`` (exact, one constraint), ``"highs"`` (the occupancy linear program,
            any number of constraints) or ``"columns"`` (column generation, for several constraints on
            large models). The default is the first for one constraint, else the second or, above
            1,000 state-action-steps, the third.
        cost_limit: limits to use in place of the model's own; any finite numbers.
        time_limit: seconds a linear program may take.

    Raises
    ------
        InfeasibleError: no policy meets the limits.

    Example:
        >>> import optpess as op
        >>> plan = op.solve(op.zoo.pair())
        >>> round(plan.value * 96), round(plan.multipliers[0] * 6)
        (79, 7)
    """
    limits = model.cost_limits if cost_limit is None else limits_in(cost_limit, model.num_constraints)
    if engine is None:
        engine = _default_engine(model)
    if engine == "columns":
        return _solve_columns(model, limits)
    return _solve_problem(Problem.of(model), limits, engine, time_limit)


def solve_signals(
    reward: npt.ArrayLike,
    costs: npt.ArrayLike,
    transitions: Any,
    initial: npt.ArrayLike,
    cost_limit: npt.ArrayLike,
    engine: Engine | None = None,
    *,
    time_limit: float | None = None,
) -> Plan:
    """:func:`solve` for signals of any sign and size on any kernel, which may lose mass: the problem
    that a learner poses with its biased estimates.

    Args:
        reward: ``[H, S, A]``, any finite numbers.
        costs: ``[H, S, A]``, or ``[M, H, S, A]`` for several constraints; any finite numbers.
        transitions, initial: as for :func:`evaluate`.
        cost_limit: a number, or ``[M]`` of them.
        engine: ``"parametric"`` or ``"highs"``.

    Example:
        >>> import numpy as np, optpess as op
        >>> leaking = np.full((2, 2, 2, 2), 0.25)
        >>> reward = np.array([[[0.0, 8.0], [0.0, 4.0]]] * 2)
        >>> round(op.solve_signals(reward, reward / 2, leaking, [1.0, 0.0], 3.0).value, 12)
        6.0
    """
    reward = floats("reward", reward)
    costs = floats("costs", costs)
    costs = costs[np.newaxis] if costs.ndim == reward.ndim else costs
    if reward.ndim != 3 or costs.ndim != 4 or costs.shape[1:] != reward.shape:
        raise InvalidInputError(
            f"reward has shape {reward.shape} and costs {costs.shape}; they must have the axes "
            "[H, S, A] and [M, H, S, A]"
        )
    if not isinstance(transitions, _core.Transitions):
        transitions = _core.Transitions(transitions)
    problem = Problem(Shape(*reward.shape), transitions, reward, costs, floats("initial", initial))
    if engine is None:
        engine = "parametric" if len(costs) == 1 else "highs"
    return _solve_problem(problem, limits_in(cost_limit, len(costs)), engine, time_limit)


def solve_unconstrained(model: CMDP) -> Endpoint:
    """The policy with the most reward, whatever it costs; among equals, the one that costs least.

    Example:
        >>> import optpess as op
        >>> op.solve_unconstrained(op.zoo.pair()).value
        1.48
    """
    return _endpoint(model, 0, least_cost=False)


def solve_least_cost(model: CMDP, constraint: int = 0) -> Endpoint:
    """The policy with the least cost of one constraint; among equals, the one with the most reward.

    With several constraints, the other costs are left out of account.

    Example:
        >>> import optpess as op
        >>> float(op.solve_least_cost(op.zoo.pair()).costs[0])
        0.135
    """
    return _endpoint(model, constraint, least_cost=True)


def frontier(model: CMDP, *, max_vertices: int = 1_000_000) -> Frontier:
    """The best reward for every limit, exactly, for a model with one constraint.

    The curve is concave and piecewise linear; its vertices are found by as many backward inductions as
    it has vertices and edges.

    Example:
        >>> import optpess as op
        >>> curve = op.frontier(op.zoo.pair())
        >>> len(curve), round(curve.value_at(0.6) * 96)
        (5, 79)
    """
    _check_one_constraint(model.num_constraints, "frontier")
    return Frontier(_core.frontier_vertices(model, max_vertices))


def _default_engine(model: CMDP) -> Engine:
    if model.num_constraints == 1:
        return "parametric"
    return "highs" if np.prod(model.shape) <= _LARGE else "columns"


def _solve_problem(problem: Problem, limits: FloatArray, engine: str, time_limit: float | None) -> Plan:
    if engine == "parametric":
        return _solve_parametric(problem, limits)
    if engine == "highs":
        return _solve_highs(problem, limits, time_limit)
    raise InvalidInputError(f"engine is {engine!r}; allowed are 'parametric', 'highs' and 'columns'")


def _check_one_constraint(num_constraints: int, what: str) -> None:
    if num_constraints != 1:
        raise InvalidInputError(
            f"there are {num_constraints} constraints; {what} is defined for exactly one"
        )


def _solve_parametric(problem: Problem, limits: FloatArray) -> Plan:
    _check_one_constraint(len(problem.costs), "the parametric engine")
    answer = _core.solve_parametric(
        problem.shape,
        problem.reward,
        problem.costs[0],
        problem.transitions,
        problem.initial,
        float(limits[0]),
    )
    costs = np.array([answer["cost"]])
    certificate = Certificate(answer["value"], costs, limits, answer["bound"], answer["repair"])
    return Plan(
        problem=problem,
        policy=answer["policy"],
        multipliers=np.array([answer["multiplier"]]),
        certificate=certificate,
        engine="parametric",
        inductions=answer["inductions"],
        ends=tuple(answer["ends"]),
    )


def _solve_highs(problem: Problem, limits: FloatArray, time_limit: float | None) -> Plan:
    _check_each_limit(problem, limits)
    program = OccupancyLP(*problem.shape, len(problem.costs))
    aimed_at = limits
    plan = None
    for _ in range(4):
        solution = program.solve(
            problem.transitions,
            problem.full(problem.reward),
            problem.full(problem.costs),
            aimed_at,
            problem.initial,
            time_limit=time_limit,
        )
        if solution is None:
            # With one limit, it can be met: that was checked.
            if plan is None and aimed_at is limits and len(limits) == 1:
                aimed_at = limits + _SOLVER_WIDTH * problem.cost_sizes(limits)
                continue
            break
        greedy, _ = problem.lagrangian(solution.multipliers)
        policy = _core.policy_from_occupancy(solution.occupancy, greedy)
        repair = max(float((limits - aimed_at).max()), 0.0)
        certificate = problem.certificate(policy, solution.multipliers, limits, repair)
        plan = Plan(problem, policy, solution.multipliers, certificate, "highs", 0, ())
        if (certificate.slack >= 0.0).all():
            return plan
        # The solver meets limits to its tolerance; aim lower by what it missed, from scratch.
        aimed_at = aimed_at - 1.5 * np.maximum(-certificate.slack, 0.0)
        program.forget()
    if plan is None:
        raise _infeasible(problem, limits)
    if (-plan.certificate.slack > _COST_WIDTH * problem.cost_sizes(limits)).any():
        raise CertificateError(
            f"the linear program's policy costs {plan.costs} against the limits {limits}"
        )
    return plan  # the least attainable cost is the limit, to rounding: nothing lower can be had


def _solve_columns(model: CMDP, limits: FloatArray) -> Plan:
    solution = solve_by_columns(model, limits)
    problem = Problem.of(model)
    if solution is None:
        raise _infeasible(problem, limits)
    ends = [_policy(model, actions) for actions in solution.actions]
    policy = ends[0]
    if len(ends) > 1:
        policy = _core.mix_policies(ends, solution.weights, model.transitions, model.initial)
    certificate = problem.certificate(policy, solution.multipliers, limits, 0.0)
    if (certificate.slack < -_COST_WIDTH).any():
        raise CertificateError(f"the mixture costs {certificate.costs} against the limits {limits}")
    return Plan(
        problem=problem,
        policy=policy,
        multipliers=solution.multipliers,
        certificate=certificate,
        engine="columns",
        inductions=solution.inductions,
        ends=tuple(zip(solution.weights, ends, strict=True)),
    )


def _endpoint(model: CMDP, constraint: int, *, least_cost: bool) -> Endpoint:
    policy = _policy(model, _core.extreme_actions(model, constraint, least_cost))
    value, costs = Problem.of(model).evaluated(policy)
    return Endpoint(policy, value, costs)


def _least_costs(problem: Problem) -> FloatArray:
    """The least attainable cost of each constraint, one at a time."""
    horizon = problem.shape.horizon if problem.reward.ndim == 2 else None
    inductions = (
        _core.backward_induction(-cost, problem.transitions, horizon=horizon) for cost in problem.costs
    )
    return np.array([-float(values[0] @ problem.initial) for _, values in inductions])


def _check_each_limit(problem: Problem, limits: FloatArray) -> None:
    """Refuses limits that cannot be met even one at a time; HiGHS may only say that it is lost."""
    least = _least_costs(problem)
    # Where costs of both signs cancel, only their own size tells how large a rounding error is.
    rounding = 1e-15 * (problem.shape.horizon + 8) * problem.cost_sizes(limits)
    width = np.maximum(_FEASIBILITY_WIDTH * np.maximum(np.abs(least), np.abs(limits)), rounding)
    if (least > limits + width).any():
        raise _infeasible(problem, limits)


def _infeasible(problem: Problem, limits: FloatArray) -> InfeasibleError:
    least = _least_costs(problem).tolist()
    error = InfeasibleError(
        f"no policy meets the limits {limits.tolist()}: the least attainable costs, one at a time, "
        f"are {least}"
    )
    error.kind = "Infeasible"
    error.least_cost = least[0] if len(least) == 1 else None
    return error


def _policy(model: CMDP, actions: npt.NDArray[np.uint32]) -> FloatArray:
    policy = np.zeros(model.shape)
    np.put_along_axis(policy, actions[..., np.newaxis].astype(np.int64), 1.0, axis=-1)
    return policy
