"""Column generation for several constraints on models too large for one linear program.

The master problem mixes the deterministic policies found so far: weights w >= 0 that sum to one, best
reward, costs within the limits. With its multipliers l_m, backward induction on r - sum_m l_m c_m finds
the best policy to add. If that policy does not improve the master, the mixture is optimal among all
policies (Dantzig and Wolfe 1960). HiGHS solves the master, which has M + 1 rows; the compiled core does
the inductions.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpess import _core
from optpess.arrays import ActionArray, FloatArray
from optpess.exceptions import SolverError
from optpess.plan._linear_program import TOLERANCE, new_solver, run_solver

__all__ = ["ColumnSolution", "solve_by_columns"]

# The relative gap between master and bound at which the mixture counts as optimal, and the total excess
# over the limits, relative to their sum, that counts as none.
_GAP = 1e-11
_EXCESS = 1e-11


@dataclass(frozen=True)
class ColumnSolution:
    """An optimal mixture of deterministic policies."""

    weights: list[float]
    actions: list[ActionArray]  # each [H, S]
    multipliers: FloatArray  # [M]
    inductions: int


class _Master:
    """min -<w, R> + excess terms subject to <w, C_m> - excess_m <= tau_m and sum w = 1."""

    def __init__(self, limits: FloatArray) -> None:
        # Presolve would discard the basis that the next solve starts from.
        self._highspy, self._solver = new_solver(presolve="off")
        self._num_constraints = limits.size
        infinity = self._highspy.kHighsInf
        nothing: tuple[Any, Any] = (np.empty(0, dtype=np.int32), np.empty(0))
        for limit in limits:
            self._solver.addRow(-infinity, float(limit), 0, *nothing)
        self._solver.addRow(1.0, 1.0, 0, *nothing)
        for constraint in range(limits.size):
            row = np.array([constraint], dtype=np.int32)
            self._solver.addCol(1.0, 0.0, infinity, 1, row, np.array([-1.0]))
        self._rewards: list[float] = []
        self._excess = np.zeros(limits.size)
        self._seeking_feasibility = True

    def add(self, reward: float, costs: FloatArray) -> None:
        rows = np.arange(self._num_constraints + 1, dtype=np.int32)
        cost = 0.0 if self._seeking_feasibility else -reward
        infinity = self._highspy.kHighsInf
        self._solver.addCol(cost, 0.0, infinity, rows.size, rows, np.r_[costs, 1.0])
        self._rewards.append(reward)

    def forbid_excess(self) -> None:
        """Turns from feasibility to optimality: no excess is allowed but what was found, which is
        rounding, and the rewards enter the objective.
        """
        self._seeking_feasibility = False
        for constraint, rounding in enumerate(self._excess):
            self._solver.changeColBounds(constraint, 0.0, float(max(rounding, 0.0)))
            self._solver.changeColCost(constraint, 0.0)
        for index, reward in enumerate(self._rewards):
            self._solver.changeColCost(self._num_constraints + index, -reward)

    def solve(self) -> tuple[float, FloatArray, FloatArray]:
        """The objective, the weights of the policies and the multipliers of the limits."""
        run_solver(self._solver)
        statuses = self._highspy.HighsModelStatus
        status = self._solver.getModelStatus()
        if status == statuses.kInfeasible and not self._seeking_feasibility:
            # It was feasible up to rounding when excess was allowed. Allow as much as the tolerance.
            for constraint in range(self._num_constraints):
                self._solver.changeColBounds(constraint, 0.0, TOLERANCE)
            run_solver(self._solver)
            status = self._solver.getModelStatus()
        if status != statuses.kOptimal:
            name = self._solver.modelStatusToString(status)
            raise SolverError(f"HiGHS stopped with the status {name!r} on the master problem")
        solution = self._solver.getSolution()
        duals = np.asarray(solution.row_dual)
        columns = np.asarray(solution.col_value)
        self._excess, weights = np.split(columns, [self._num_constraints])
        value = float(self._solver.getInfo().objective_function_value)
        return value, weights, np.maximum(-duals[:-1], 0.0)


def solve_by_columns(
    model: _core.Model,
    limits: FloatArray,
    *,
    tolerance: float = 0.0,
    threads: int | None = None,
    time_limit: float | None = None,
    max_columns: int = 5000,
) -> ColumnSolution | None:
    """Maximises V(r) subject to V(c_m) <= limits[m] for every m, to a tolerance; None if no policy meets
    the limits.
    """
    # It shows progress, which is cleared at the end.
    with closing(_core.LagrangianSearch(model)) as search:
        return _best_mixture(search, limits, tolerance, threads, time_limit, max_columns)


def _best_mixture(
    search: _core.LagrangianSearch,
    limits: FloatArray,
    tolerance: float,
    threads: int | None,
    time_limit: float | None,
    max_columns: int,
) -> ColumnSolution | None:
    master = _Master(limits)
    actions: list[ActionArray] = []
    deadline = None if time_limit is None else time.perf_counter() + time_limit

    def time_left() -> float | None:
        if deadline is None or time_limit is None:
            return None
        left = deadline - time.perf_counter()
        if left <= 0.0:
            raise SolverError(f"column generation has found no optimum within {time_limit} s")
        return left

    def add_best(reward_weight: float, multipliers: FloatArray) -> float:
        """Adds the best policy for the Lagrangian; returns the Lagrangian's value."""
        left = time_left()
        try:
            value, reward, costs, found = search.best(reward_weight, multipliers, threads, left)
        except SolverError:
            time_left()  # which says it better, if the time is over
            raise
        master.add(reward, costs)
        actions.append(found)
        return value

    add_best(1.0, np.zeros(limits.size))
    while True:  # feasibility: the least total excess over the limits
        excess, _, multipliers = master.solve()
        if excess <= _EXCESS * limits.sum():
            break
        lower = -add_best(0.0, multipliers) - float(multipliers @ limits)
        if lower > _EXCESS * limits.sum() and excess - lower <= _GAP * max(1.0, excess):
            return None
        _check_count(actions, max_columns)
    master.forbid_excess()
    while True:  # optimality
        negative_value, weights, multipliers = master.solve()
        bound = add_best(1.0, multipliers) + float(multipliers @ limits)
        if bound + negative_value <= max(_GAP * max(1.0, abs(bound)), tolerance):
            break
        _check_count(actions, max_columns)
    used = [index for index in range(weights.size) if weights[index] > 0.0]
    total = float(sum(weights[index] for index in used))
    return ColumnSolution(
        weights=[float(weights[index]) / total for index in used],
        actions=[actions[index] for index in used],
        multipliers=multipliers,
        inductions=len(actions),
    )


def _check_count(actions: list[Any], max_columns: int) -> None:
    if len(actions) >= max_columns:
        raise SolverError(f"column generation has not ended after {max_columns} policies")
