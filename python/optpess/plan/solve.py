"""Best policies of a known model within its limits, each evaluated again after planning."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray, TransitionsLike
from optpess.checks import real_number, unknown_name
from optpess.exceptions import CertificateError, InfeasibleError, InvalidInputError
from optpess.model import CMDP, check_model
from optpess.plan._columns import solve_by_columns
from optpess.plan._linear_program import OccupancyLP
from optpess.plan._problem import Problem, check_one_constraint, limits_of, policy_of_actions
from optpess.plan.certificate import Reevaluation
from optpess.plan.result import Plan

__all__ = ["solve", "solve_signals", "unit_optimum"]

Engine: TypeAlias = Literal["parametric", "highs", "columns"]
_ENGINES: tuple[Engine, ...] = ("parametric", "highs", "columns")

# With several constraints and more state-action-steps than this, the default is column generation.
_COLUMNS_ABOVE = 1_000
# How far above its limit, relative to the unit of cost, a policy of a linear program may cost before it
# is refused.
_COST_TOLERANCE = 1e-9
# HiGHS calls a limit infeasible that it misses by 1e-10. A limit that is known to be attainable is
# raised by this much for the solver. The policy is then compared with the limit itself.
_SOLVER_TOLERANCE = 5e-10


def solve(
    model: CMDP,
    engine: Engine | None = None,
    *,
    cost_limit: ArrayLike | None = None,
    time_limit: float | None = None,
) -> Plan:
    """The best policy of a known model among those that meet its limits.

    Args:
        model: the model.
        engine: ``"parametric"`` (exact, one constraint), ``"highs"`` (the occupancy linear program,
            any number of constraints) or ``"columns"`` (column generation, for several constraints on
            large models). The default is the first for one constraint, else the second or, above
            1,000 state-action-steps, the third.
        cost_limit: limits to use in place of the model's own, in its units; any finite numbers.
        time_limit: seconds a linear program may take.

    Everything returned is in the model's units, and no policy uses an action that does not exist.

    Raises
    ------
        InfeasibleError: no policy meets the limits.

    Example:
        >>> import optpess as op
        >>> plan = op.solve(op.zoo.pair())
        >>> round(plan.value * 96), round(plan.multipliers[0] * 6)
        (79, 7)
    """
    check_model(model)
    engine = _default_engine(model) if engine is None else _checked_engine(engine, _ENGINES)
    _check_time_limit(time_limit)
    problem = Problem.of(model)
    if cost_limit is None:
        limits, unit_limits = model.cost_limits, model.unit_cost_limits
    else:
        limits = limits_of(cost_limit, model.num_constraints)
        unit_limits = problem.limits_in(limits)
    return _handed_out(_unit_plan(model, problem, unit_limits, engine, time_limit), limits)


def unit_optimum(model: CMDP) -> float:
    """The optimum of a model's arrays as stored, in the unit interval, whatever its units."""
    check_model(model)
    problem, engine = Problem.of(model), _default_engine(model)
    return _unit_plan(model, problem, model.unit_cost_limits, engine, None).value


def _unit_plan(
    model: CMDP, problem: Problem, limits: FloatArray, engine: Engine, time_limit: float | None
) -> Plan:
    if engine == "columns":
        return _solve_columns(model, problem, limits)
    return _solve_problem(problem, limits, engine, time_limit)


def _handed_out(plan: Plan, limits: FloatArray) -> Plan:
    """A plan in the units of its model, without actions that do not exist."""
    problem = plan._problem
    return replace(
        plan,
        policy=problem.policy_out(plan.policy),
        multipliers=problem.multipliers_out(plan.multipliers),
        certificate=problem.reevaluation_out(plan.certificate, limits),
        ends=tuple((weight, problem.policy_out(end)) for weight, end in plan.ends),
    )


def _checked_engine(engine: object, allowed: tuple[Engine, ...]) -> Engine:
    for name in allowed:
        if engine == name:
            return name
    refusal = unknown_name("engine", engine, allowed)
    if isinstance(engine, int | float):
        raise InvalidInputError(f"{refusal}; for another limit, give cost_limit={engine!r}")
    raise refusal


def solve_signals(
    reward: ArrayLike,
    costs: ArrayLike,
    transitions: TransitionsLike,
    initial: ArrayLike,
    cost_limit: ArrayLike,
    engine: Engine | None = None,
    *,
    time_limit: float | None = None,
) -> Plan:
    """The best policy for a reward and costs of any sign and size, on any kernel.

    A learner's biased estimates pose such problems. Rows of the kernel may sum to less than one.

    Args:
        reward: ``[H, S, A]``, any finite numbers.
        costs: ``[H, S, A]``, or ``[M, H, S, A]`` for several constraints; any finite numbers.
        transitions, initial: as for :func:`evaluate`.
        cost_limit: a number, or ``[M]`` of them.
        engine: ``"parametric"`` (the default for one constraint) or ``"highs"``.
        time_limit: seconds a linear program may take.

    Raises
    ------
        InfeasibleError: no policy meets the limits.

    Example:
        >>> import numpy as np, optpess as op
        >>> leaking = np.full((2, 2, 2, 2), 0.25)
        >>> reward = np.array([[[0.0, 8.0], [0.0, 4.0]]] * 2)
        >>> round(op.solve_signals(reward, reward / 2, leaking, [1.0, 0.0], 3.0).value, 12)
        6.0
    """
    problem = Problem.of_signals(reward, costs, transitions, initial)
    num_constraints = len(problem.costs)
    if engine is None:
        engine = "parametric" if num_constraints == 1 else "highs"
    engine = _checked_engine(engine, ("parametric", "highs"))
    _check_time_limit(time_limit)
    return _solve_problem(problem, limits_of(cost_limit, num_constraints), engine, time_limit)


def _check_time_limit(time_limit: object) -> None:
    if time_limit is not None and not real_number("time_limit", time_limit) > 0.0:
        raise InvalidInputError(f"time_limit is {time_limit}; it must be above 0, in seconds")


def _default_engine(model: CMDP) -> Engine:
    if model.num_constraints == 1:
        return "parametric"
    return "highs" if np.prod(model.shape) <= _COLUMNS_ABOVE else "columns"


def _solve_problem(
    problem: Problem, limits: FloatArray, engine: Engine, time_limit: float | None
) -> Plan:
    if engine == "parametric":
        return _solve_parametric(problem, limits)
    return _solve_highs(problem, limits, time_limit)


def _solve_parametric(problem: Problem, limits: FloatArray) -> Plan:
    check_one_constraint(len(problem.costs), "the parametric engine")
    signals = (problem.reward, problem.costs[0], problem.transitions, problem.initial)
    try:
        answer = _core.solve_parametric(problem.shape, *signals, float(limits[0]))
    except InfeasibleError:
        if problem.units is None or problem.units.is_unit:
            raise
        raise problem.infeasible(limits) from None  # in the units of the model
    certificate = Reevaluation(
        costs=np.array([answer["cost"]]),
        limits=limits,
        repair=answer["repair"],
        value=answer["value"],
        bound=answer["bound"],
    )
    return Plan(
        _problem=problem,
        policy=answer["policy"],
        multipliers=np.array([answer["multiplier"]]),
        certificate=certificate,
        engine="parametric",
        inductions=answer["inductions"],
        ends=tuple(answer["ends"]),
    )


def _solve_highs(problem: Problem, limits: FloatArray, time_limit: float | None) -> Plan:
    problem = problem.checked()
    _check_each_limit(problem, limits)
    program = OccupancyLP(*problem.shape, len(problem.costs))
    aimed_at = limits
    plan = None
    for _ in range(4):
        solution = program.solve(
            problem.transitions,
            problem.with_steps(problem.reward),
            problem.with_steps(problem.costs),
            aimed_at,
            problem.initial,
            time_limit=time_limit,
        )
        if solution is None:
            # A single limit was checked to be attainable.
            if plan is None and aimed_at is limits and len(limits) == 1:
                aimed_at = limits + _SOLVER_TOLERANCE * problem.cost_units(limits)
                continue
            break
        greedy, _ = problem.lagrangian(solution.multipliers)
        policy = _core.policy_from_occupancy(solution.occupancy, greedy)
        repair = max(float((limits - aimed_at).max()), 0.0)
        certificate = problem.reevaluated(policy, solution.multipliers, limits, repair)
        plan = Plan(problem, policy, solution.multipliers, certificate, "highs", 0, ())
        if (certificate.slack >= 0.0).all():
            return plan
        # The solver meets limits up to its tolerance. Lower the limits by the excess and start anew.
        aimed_at = aimed_at - 1.5 * np.maximum(-certificate.slack, 0.0)
        program.forget()
    if plan is None:
        raise problem.infeasible(limits)
    magnitudes = np.maximum(problem.cost_magnitudes(plan.policy), np.abs(limits))
    if (-plan.certificate.slack > _COST_TOLERANCE * magnitudes).any():
        costs, given = problem.costs_out(plan.costs), problem.costs_out(limits)
        message = f"the linear program's policy costs {costs} against the limits {given}"
        if (problem.cost_units(limits) > magnitudes / _COST_TOLERANCE).any():
            message += (
                "; the costs of single steps reach so far above the limits that the solver cannot tell"
                ' small ones apart: engine="parametric" can, for one limit'
            )
        raise CertificateError(message)
    return plan  # the least attainable cost equals the limit up to rounding


def _solve_columns(model: CMDP, problem: Problem, limits: FloatArray) -> Plan:
    solution = solve_by_columns(model, limits)
    if solution is None:
        raise problem.infeasible(limits)
    ends = [policy_of_actions(model, actions) for actions in solution.actions]
    policy = ends[0]
    if len(ends) > 1:
        policy = _core.mix_policies(ends, solution.weights, model.transitions, model.initial)
    certificate = problem.reevaluated(policy, solution.multipliers, limits, 0.0)
    if (certificate.slack < -_COST_TOLERANCE).any():
        costs, given = problem.costs_out(certificate.costs), problem.costs_out(limits)
        raise CertificateError(f"the mixture costs {costs} against the limits {given}")
    return Plan(
        _problem=problem,
        policy=policy,
        multipliers=solution.multipliers,
        certificate=certificate,
        engine="columns",
        inductions=solution.inductions,
        ends=tuple(zip(solution.weights, ends, strict=True)),
    )


def _check_each_limit(problem: Problem, limits: FloatArray) -> None:
    """Refuses limits that no policy meets even one at a time. HiGHS need not recognise such limits."""
    for cost, limit in zip(problem.costs, limits.tolist(), strict=True):
        least, rounding = _core.least_cost_and_rounding(
            problem.shape, cost, problem.transitions, problem.initial, limit
        )
        if least > limit + rounding:
            raise problem.infeasible(limits)
