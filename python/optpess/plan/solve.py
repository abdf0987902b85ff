"""Best policies of a known model within its limits, each evaluated again after planning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, cast

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray, TransitionsLike
from optpess.checks import is_name, real_number, unknown_name, whole_number
from optpess.exceptions import CertificateError, InfeasibleError, InvalidInputError
from optpess.model import CMDP, check_model
from optpess.plan._columns import solve_by_columns
from optpess.plan._linear_program import OccupancyLP
from optpess.plan._memory import check_memory
from optpess.plan._mixture import ActionMixture
from optpess.plan._problem import Problem, check_one_constraint, limits_of, tolerance_of
from optpess.plan._scaling import Scaling
from optpess.plan.certificate import Reevaluation
from optpess.plan.result import Plan

if TYPE_CHECKING:
    from optpess._core import MixedActionsDict, PlanDict

__all__ = ["solve", "solve_signals", "unit_optimum"]

Engine: TypeAlias = Literal["parametric", "highs", "columns"]
_ENGINES: tuple[Engine, ...] = ("parametric", "highs", "columns")

# How often a linear program is solved again with lower limits because its policy costs too much.
_ATTEMPTS = 6
# With several constraints and more state-action-steps than this, the default is column generation.
_COLUMNS_ABOVE = 1_000
# How far above its limit, relative to the unit of cost, a policy of a linear program may cost before it
# is refused.
_COST_TOLERANCE = 1e-9
# Column generation measures in units of 1. Signals whose largest entry is below this are checked by
# that entry.
_SMALL = 1e-3
# How much of its value, relative to the size of the rewards, a policy may owe to costs above the limits.
_WORTH_TOLERANCE = 1e-7
# HiGHS calls a limit infeasible that it misses by 1e-10. A limit that is known to be attainable is
# raised by this much for the solver. The policy is then compared with the limit itself.
_SOLVER_TOLERANCE = 5e-10


def solve(
    model: CMDP,
    engine: Engine | None = None,
    *,
    cost_limit: ArrayLike | None = None,
    tolerance: float = 0.0,
    threads: int | None = None,
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
        tolerance: how far below the optimum the value may be, in the model's units; 0 for the optimum.
            The certificate says how far it is at most. A linear program is solved as exactly as it can
            be.
        threads: how many threads; None for one per core. The numbers do not depend on it.
        time_limit: seconds the search may take; SolverError if it has not ended by then.

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
    effort = Effort.of(tolerance, threads, time_limit, unit=model.units.reward_width)
    problem = Problem.of(model)
    if cost_limit is None:
        limits, unit_limits = model.cost_limits, model.unit_cost_limits
    else:
        limits = limits_of(cost_limit, model.num_constraints)
        unit_limits = problem.limits_in(limits)
    return _handed_out(_unit_plan(model, problem, unit_limits, engine, effort), limits)


def unit_optimum(model: CMDP) -> float:
    """The optimum of a model's arrays as stored, in the unit interval, whatever its units."""
    check_model(model)
    problem, engine = Problem.of(model), _default_engine(model)
    return _unit_plan(model, problem, model.unit_cost_limits, engine, Effort()).value


@dataclass(frozen=True)
class Effort:
    """How exactly, on how many threads and for how long to search."""

    tolerance: float = 0.0  # in the unit of the problem
    threads: int | None = None
    time_limit: float | None = None

    @classmethod
    def of(cls, tolerance: object, threads: object, time_limit: object, unit: float = 1.0) -> Self:
        """The arguments as a user gives them, checked."""
        seconds = None if time_limit is None else real_number("time_limit", time_limit)
        if seconds is not None and not seconds > 0.0:
            raise InvalidInputError(f"time_limit is {time_limit}; it must be above 0, in seconds")
        count = None if threads is None else whole_number("threads", threads)
        return cls(tolerance_of(tolerance) / unit, count, seconds)


def _unit_plan(
    model: CMDP, problem: Problem, limits: FloatArray, engine: Engine, effort: Effort
) -> Plan:
    if engine == "columns":
        return _solve_columns(model, problem, limits, effort)
    return _solve_problem(problem, limits, engine, effort)


def _handed_out(plan: Plan, limits: FloatArray) -> Plan:
    """A plan in the units of its model, without actions that do not exist."""
    problem = plan._problem
    found = plan._found
    if isinstance(found, ActionMixture):
        found = found.folded(problem.actions)
    else:
        found = problem.policy_out(found)
    return replace(
        plan,
        _found=found,
        multipliers=problem.multipliers_out(plan.multipliers),
        certificate=problem.reevaluation_out(plan.certificate, limits),
    )


def _checked_engine(engine: object, allowed: tuple[Engine, ...]) -> Engine:
    if is_name(engine, allowed):
        return cast(Engine, engine)
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
    horizon: int | None = None,
    tolerance: float = 0.0,
    threads: int | None = None,
    time_limit: float | None = None,
) -> Plan:
    """The best policy for a reward and costs of any sign and size, on any kernel.

    A learner's biased estimates pose such problems. Rows of the kernel may sum to less than one.

    Args:
        reward: ``[H, S, A]``, any finite numbers; ``[S, A]`` if ``horizon`` is given.
        costs: ``[H, S, A]``, or ``[M, H, S, A]`` for several constraints; any finite numbers. Without
            the step axis if ``horizon`` is given.
        transitions, initial: as for :func:`evaluate`.
        cost_limit: a number, or ``[M]`` of them.
        engine: ``"parametric"`` (the default for one constraint) or ``"highs"``.
        horizon: H, if the signals are the same at every step.
        tolerance, threads, time_limit: as for :func:`solve`.

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
    steps = None if horizon is None else whole_number("horizon", horizon)
    problem = Problem.of_signals(reward, costs, transitions, initial, steps)
    num_constraints = len(problem.costs)
    if engine is None:
        engine = "parametric" if num_constraints == 1 else "highs"
    engine = _checked_engine(engine, ("parametric", "highs"))
    effort = Effort.of(tolerance, threads, time_limit)
    return _solve_problem(problem, limits_of(cost_limit, num_constraints), engine, effort)


def _default_engine(model: CMDP) -> Engine:
    if model.num_constraints == 1:
        return "parametric"
    return "highs" if np.prod(model.shape) <= _COLUMNS_ABOVE else "columns"


def _solve_problem(problem: Problem, limits: FloatArray, engine: Engine, effort: Effort) -> Plan:
    """A plan by the chord method or a linear program, in the unit of the problem."""
    scaling = Scaling.of(problem.reward, problem.costs)
    if scaling is None:
        return _solve_scaled(problem, limits, engine, effort)
    tolerance = float(scaling.reward_in(effort.tolerance))
    effort = replace(effort, tolerance=tolerance)
    plan = _solve_scaled(problem.scaled(scaling), scaling.costs_in(limits), engine, effort)
    found = plan.certificate
    certificate = Reevaluation(
        costs=scaling.costs_out(found.costs),
        limits=limits,
        repair=found.repair,
        value=scaling.value_out(found.value),
        bound=scaling.value_out(found.bound),
    )
    multipliers = scaling.multipliers_out(plan.multipliers)
    return replace(plan, _problem=problem, multipliers=multipliers, certificate=certificate)


def _solve_scaled(problem: Problem, limits: FloatArray, engine: Engine, effort: Effort) -> Plan:
    if engine == "parametric":
        return _solve_parametric(problem, limits, effort)
    return _solve_highs(problem, limits, effort.time_limit)


def _solve_parametric(problem: Problem, limits: FloatArray, effort: Effort) -> Plan:
    check_one_constraint(len(problem.costs), "the parametric engine")
    check_memory(problem.shape, num_ends=2)
    signals = (problem.reward, problem.costs[0], problem.transitions, problem.initial)
    try:
        answer = _core.solve_parametric(
            problem.shape,
            *signals,
            float(limits[0]),
            effort.tolerance,
            effort.threads,
            effort.time_limit,
        )
    except InfeasibleError:
        if problem.scaling is None and (problem.units is None or problem.units.is_unit):
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
        _found=_mixture(answer, problem.shape.num_actions),
        multipliers=np.array([answer["multiplier"]]),
        certificate=certificate,
        engine="parametric",
        inductions=answer["inductions"],
    )


def _mixture(answer: PlanDict | MixedActionsDict, num_actions: int) -> ActionMixture:
    weights, actions = tuple(answer["weights"]), tuple(answer["actions"])
    return ActionMixture(weights, actions, answer["shares"], num_actions)


def _solve_highs(problem: Problem, limits: FloatArray, time_limit: float | None) -> Plan:
    problem = problem.checked()
    _check_each_limit(problem, limits)
    program = OccupancyLP(*problem.shape, len(problem.costs))
    aimed_at = limits
    plan = None
    for attempt in range(_ATTEMPTS):
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
        plan = Plan(problem, policy, solution.multipliers, certificate, "highs", 0)
        if (certificate.slack >= 0.0).all():
            return plan
        # The solver meets limits up to its tolerance. Lower the limits by the excess, and by more each
        # time, and start anew.
        aimed_at = aimed_at - 1.5 * 2.0**attempt * np.maximum(-certificate.slack, 0.0)
        program.forget()
    if plan is None:
        raise problem.infeasible(limits)
    _check_worth_of_excess(problem, plan)
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


def _check_worth_of_excess(problem: Problem, plan: Plan) -> None:
    """Refuses a plan that owes its value to costs above the limits: an excess of 1e-10 is worth 0.1
    where one unit of cost is worth 1e9.
    """
    excess = np.maximum(-plan.certificate.slack, 0.0)
    worth = float(plan.multipliers @ excess)
    size = problem.reward_size(plan.policy)
    if worth > _WORTH_TOLERANCE * size:
        costs, given = problem.costs_out(plan.costs), problem.costs_out(plan.certificate.limits)
        hint = 'engine="parametric"' if len(excess) == 1 else 'engine="columns" or higher limits'
        raise CertificateError(
            f"the linear program's policy costs {costs} against the limits {given}; the excess is "
            f"worth {worth:.3g} of its value {plan.value:.6g}: try {hint}"
        )


def _solve_columns(model: CMDP, problem: Problem, limits: FloatArray, effort: Effort) -> Plan:
    check_memory(problem.shape, num_ends=len(limits) + 1)
    solution = solve_by_columns(
        model,
        limits,
        tolerance=effort.tolerance,
        threads=effort.threads,
        time_limit=effort.time_limit,
    )
    if solution is None:
        raise problem.infeasible(limits)
    found = _core.mix_actions(model, solution.actions, solution.weights, effort.threads)
    certificate = Reevaluation(
        costs=found["costs"],
        limits=limits,
        repair=0.0,
        value=found["value"],
        bound=problem.bound(solution.multipliers, limits),
    )
    units = problem.cost_units(limits)
    # The master problem measures in units of 1; where costs and limits are far smaller, excess counts.
    if (certificate.slack < -_COST_TOLERANCE * np.where(units < _SMALL, units, 1.0)).any():
        costs, given = problem.costs_out(certificate.costs), problem.costs_out(limits)
        hint = '; try engine="highs"' if (units < _SMALL).any() else ""
        raise CertificateError(f"the mixture costs {costs} against the limits {given}{hint}")
    largest = float(np.abs(problem.reward).max())
    if largest < _SMALL and certificate.gap > max(_COST_TOLERANCE * largest, effort.tolerance):
        value, bound = problem.value_out(certificate.value), problem.value_out(certificate.bound)
        raise CertificateError(
            f"the mixture earns {value:.6g} and the optimum may be {bound:.6g}: rewards are too "
            'small for engine="columns"; try engine="highs"'
        )
    return Plan(
        _problem=problem,
        _found=_mixture(found, model.shape.num_actions),
        multipliers=solution.multipliers,
        certificate=certificate,
        engine="columns",
        inductions=solution.inductions,
    )


def _check_each_limit(problem: Problem, limits: FloatArray) -> None:
    """Refuses limits that no policy meets even one at a time. HiGHS need not recognise such limits."""
    for cost, limit in zip(problem.costs, limits.tolist(), strict=True):
        least, rounding = _core.least_cost_and_rounding(
            problem.shape, cost, problem.transitions, problem.initial, limit
        )
        if least > limit + rounding:
            raise problem.infeasible(limits)
