"""The occupancy linear program of a stationary model, by HiGHS (three methods) and by linprog."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_matrix, eye_array, kron


class OccupancyProgram:
    """max <q, r> over occupancies q[h, s, a] with <q, c_m> within the limits; built once, not timed."""

    def __init__(self, arrays: Any, horizon: int, limits: list[float]) -> None:
        (offsets, successors, probabilities), rewards, costs = arrays
        states, actions = rewards.shape
        kernel = csr_matrix((probabilities, successors, offsets), shape=(states * actions, states))
        leaving = kron(eye_array(states), np.ones((1, actions)), format="csr")
        blocks: list[list[Any]] = [[None] * horizon for _ in range(horizon)]
        for step in range(horizon):
            blocks[step][step] = leaving
            if step:
                blocks[step][step - 1] = -kernel.T
        self._flows = block_array(blocks, format="csr")
        self._start = np.zeros(horizon * states)
        self._start[0] = 1.0
        self._rewards = np.tile(rewards.ravel(), horizon)
        self._costs = csr_matrix(np.stack([np.tile(cost.ravel(), horizon) for cost in costs]))
        self._limits = np.array(limits)

    def solve(self, method: str) -> float:
        """The optimum."""
        if method == "linprog":
            found = linprog(
                -self._rewards, self._costs, self._limits, self._flows, self._start, method="highs"
            )
            return -float(found.fun)
        return self._highs(method)

    def _highs(self, method: str) -> float:
        matrix = block_array([[self._flows], [self._costs]], format="csc")
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = matrix.shape[1], matrix.shape[0]
        program.col_cost_ = -self._rewards
        program.col_lower_ = np.zeros(matrix.shape[1])
        program.col_upper_ = np.full(matrix.shape[1], highspy.kHighsInf)
        unlimited = np.full(self._limits.size, -highspy.kHighsInf)
        program.row_lower_ = np.r_[self._start, unlimited]
        program.row_upper_ = np.r_[self._start, self._limits]
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = matrix.indptr
        program.a_matrix_.index_ = matrix.indices
        program.a_matrix_.value_ = matrix.data
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("solver", method)
        solver.passModel(program)
        solver.run()
        return -float(solver.getInfo().objective_function_value)
