"""The occupancy linear program, solved by HiGHS.

Over occupancies q[h, s, a] >= 0, maximise <q, r> subject to the flow constraints

    sum_a q[0, s, a] = mu(s),    sum_a q[h+1, s', a] = sum_{s, a} q[h, s, a] P_h(s'|s, a),

and <q, c_m> <= tau_m for every constraint m. Rewards and costs may have any sign and size: both are
scaled to unit size for the solver and its answers are scaled back.

HiGHS drops matrix entries below 1e-12 (below 1e-9 by default), accepts NaN without an error and has
known faults when it starts from an earlier basis. So callers check the numbers before, evaluate the
answer after, and solve again from scratch if the answer fails.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, IndexArray, IntArray
from optpess.exceptions import SolverError
from optpess.model import Transitions

__all__ = [
    "TOLERANCE",
    "LinearProgram",
    "Matrix",
    "OccupancyLP",
    "OccupancySolution",
    "flow_bounds",
    "largest_entry",
    "new_solver",
    "run_solver",
]

# The tightest tolerance that HiGHS accepts, and the least threshold below which it drops matrix entries.
TOLERANCE = 1e-10
_LEAST_ENTRY = 1e-12

# Programs with fewer columns take some milliseconds.
_STOPPABLE_FROM = 1000
_SECONDS_BETWEEN_LOOKS = 0.05
# How long a call that is stopped waits for HiGHS to end.
_LONGEST_WAIT = 0.1


def new_solver(**options: Any) -> tuple[Any, Any]:
    """The module highspy and a silent solver at its tightest tolerances, with further options."""
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    tolerances = {
        "small_matrix_value": _LEAST_ENTRY,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
    }
    for option, value in ({"output_flag": False} | tolerances | options).items():
        solver.setOptionValue(option, value)
    return highspy, solver


def run_solver(solver: Any) -> None:
    """Runs HiGHS; Ctrl-C stops it.

    HiGHS looks for signals nowhere, so a large program is solved on a thread of its own, which asks
    at every iteration whether to go on. Where it does not ask in time (it may factorise for a second),
    the thread is left to end at its next question.
    """
    if solver.getNumCol() < _STOPPABLE_FROM:
        solver.run()
        return
    stop, ended = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def ask(event: Any) -> None:
        if stop.is_set():
            event.interrupt()

    def work() -> None:
        try:
            solver.run()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)
        finally:
            ended.set()

    solver.cbSimplexInterrupt += ask
    solver.cbIpmInterrupt += ask
    watch = _core.SignalWatch()
    try:
        threading.Thread(target=work).start()
        while not ended.wait(_SECONDS_BETWEEN_LOOKS):
            watch.check()
    except BaseException:
        stop.set()
        ended.wait(_LONGEST_WAIT)
        raise
    solver.cbSimplexInterrupt -= ask
    solver.cbIpmInterrupt -= ask
    if errors:
        raise errors[0]


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix by columns, as HiGHS takes it."""

    starts: IndexArray  # [columns + 1]
    rows: IndexArray
    values: FloatArray


@dataclass(frozen=True)
class Optimum:
    """The solution of a linear program."""

    columns: FloatArray
    row_duals: FloatArray
    started_warm: bool


class LinearProgram:
    """Linear programs of one shape, solved one after the other, each from the basis of the last."""

    def __init__(self) -> None:
        self._highspy, self._solver = new_solver()
        self._basis: Any = None
        self.infinity: float = self._highspy.kHighsInf

    def forget(self) -> None:
        """Makes the next solve start from scratch."""
        self._basis = None

    def maximise(
        self,
        objective: FloatArray,
        matrix: Matrix,
        row_bounds: tuple[FloatArray, FloatArray],
        *,
        time_limit: float | None = None,
        feasible: bool = False,
    ) -> Optimum | None:
        """The maximum over columns that are not negative; None if there are none within the bounds.

        Row duals are those of the minimisation of the negated objective. If the caller knows that the
        program is ``feasible``, HiGHS is not believed when it says otherwise.
        """
        started_warm = self._pass_model(objective, matrix, row_bounds)
        if time_limit is not None:  # HiGHS counts over the life of the object
            self._solver.setOptionValue("time_limit", self._solver.getRunTime() + time_limit)
        statuses = self._highspy.HighsModelStatus
        infeasible = (statuses.kInfeasible, statuses.kUnboundedOrInfeasible)
        self._run()
        status = self._solver.getModelStatus()
        accepted = (statuses.kOptimal, statuses.kTimeLimit, *(() if feasible else infeasible))
        if status not in accepted:
            # Presolve may fail on coefficients of very different sizes where the simplex method does
            # not.
            status = self._run_without_presolve()
        if status in infeasible and not feasible:
            self._basis = None
            return None
        if status != statuses.kOptimal:
            self._basis = None
            name = self._solver.modelStatusToString(status)
            raise SolverError(f"HiGHS stopped with the status {name!r} instead of an optimum")
        solution = self._solver.getSolution()
        self._basis = self._solver.getBasis()
        columns = np.maximum(np.asarray(solution.col_value), 0.0)
        return Optimum(columns, np.asarray(solution.row_dual), started_warm)

    def _run(self) -> None:
        try:
            run_solver(self._solver)
        except BaseException:
            # The old one may be at work for some time. The basis stays, so nothing else is lost.
            self._highspy, self._solver = new_solver()
            raise

    def _run_without_presolve(self) -> Any:
        self._solver.clearSolver()
        self._solver.setOptionValue("presolve", "off")
        self._run()
        self._solver.setOptionValue("presolve", "choose")
        return self._solver.getModelStatus()

    def _pass_model(
        self, objective: FloatArray, matrix: Matrix, row_bounds: tuple[FloatArray, FloatArray]
    ) -> bool:
        num_columns = objective.size
        status = self._solver.passModel(
            num_columns,
            row_bounds[0].size,
            matrix.values.size,
            int(self._highspy.MatrixFormat.kColwise),
            int(self._highspy.ObjSense.kMinimize),
            0.0,
            -objective,
            np.zeros(num_columns),
            np.full(num_columns, self.infinity),
            *row_bounds,
            matrix.starts,
            matrix.rows,
            matrix.values,
            np.zeros(num_columns, dtype=np.int32),  # an empty array would be read out of bounds
        )
        if status == self._highspy.HighsStatus.kError:
            raise SolverError("HiGHS refused the linear program")
        if self._basis is None:
            return False
        return bool(self._solver.setBasis(self._basis) == self._highspy.HighsStatus.kOk)


@dataclass(frozen=True)
class OccupancySolution:
    """An optimal occupancy and the multipliers of the limits."""

    occupancy: FloatArray  # [H, S, A]
    multipliers: FloatArray  # [M], not negative
    started_warm: bool


class OccupancyLP:
    """The linear program of one shape and number of constraints."""

    def __init__(self, horizon: int, num_states: int, num_actions: int, num_constraints: int) -> None:
        self._shape = (horizon, num_states, num_actions)
        self._num_constraints = num_constraints
        self._program = LinearProgram()

    def forget(self) -> None:
        """Makes the next solve start from scratch."""
        self._program.forget()

    def solve(
        self,
        transitions: Transitions,
        reward: FloatArray,
        costs: FloatArray,
        limits: FloatArray,
        initial: FloatArray,
        *,
        time_limit: float | None = None,
    ) -> OccupancySolution | None:
        """Solves for reward ``[H, S, A]``, costs ``[M, H, S, A]`` and limits ``[M]``, all finite; None
        if no policy meets the limits.
        """
        reward_scale = largest_entry(reward)
        cost_scales = np.array([largest_entry(cost) for cost in costs])
        unit_costs = (costs / cost_scales[:, None, None, None]).reshape(self._num_constraints, -1)
        flows = flow_bounds(self._shape, initial)
        unlimited = np.full(self._num_constraints, -self._program.infinity)
        optimum = self._program.maximise(
            (reward / reward_scale).ravel(),
            _matrix(transitions, self._shape, unit_costs),
            (np.r_[flows, unlimited], np.r_[flows, limits / cost_scales]),
            time_limit=time_limit,
        )
        if optimum is None:
            return None
        duals = optimum.row_duals[-self._num_constraints :]
        return OccupancySolution(
            occupancy=optimum.columns.reshape(self._shape),
            multipliers=np.maximum(-duals * reward_scale / cost_scales, 0.0),
            started_warm=optimum.started_warm,
        )


def flow_bounds(shape: tuple[int, int, int], initial: FloatArray) -> FloatArray:
    """The right-hand sides of the flow constraints: mu at the first step, 0 later."""
    flows = np.zeros(shape[0] * shape[1])
    flows[: shape[1]] = initial
    return flows


def largest_entry(array: FloatArray) -> float:
    """The largest absolute value, or 1 for a table of zeros."""
    return float(np.abs(array).max()) or 1.0


def _matrix(transitions: Transitions, shape: tuple[int, int, int], costs: FloatArray) -> Matrix:
    """The matrix by columns (h, s, a): +1 in the flow row of (h, s), -P_h(s'|s,a) in those of
    (h + 1, s'), and the costs in the last rows.
    """
    horizon, num_states, num_actions = shape
    num_constraints = costs.shape[0]
    num_columns = horizon * num_states * num_actions
    counts, successors, probabilities = _rows(transitions, shape)
    lengths = 1 + num_constraints + np.r_[counts, np.zeros(num_columns - counts.size, dtype=np.int64)]
    starts = np.r_[0, np.cumsum(lengths)]
    rows = np.empty(starts[-1], dtype=np.int32)
    values = np.empty(starts[-1])
    first = starts[:-1]
    columns = np.arange(num_columns)
    rows[first] = columns // num_actions
    values[first] = 1.0
    for constraint in range(num_constraints):
        rows[first + 1 + constraint] = horizon * num_states + constraint
        values[first + 1 + constraint] = costs[constraint]
    owner = np.repeat(np.arange(counts.size), counts)
    within = np.arange(successors.size) - np.repeat(np.cumsum(counts) - counts, counts)
    position = first[owner] + 1 + num_constraints + within
    step = owner // (num_states * num_actions)
    rows[position] = (step + 1) * num_states + successors
    values[position] = -probabilities
    return Matrix(starts.astype(np.int32), rows, values)


def _rows(
    transitions: Transitions, shape: tuple[int, int, int]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Successors of every (h, s, a) but those of the last step: how many each has, which, and with
    what probability.
    """
    horizon, num_states, num_actions = shape
    pairs = num_states * num_actions
    stored = dict(transitions.stored())
    probabilities = stored["probabilities"]
    if transitions.is_sparse:
        counts = np.diff(stored["offsets"])
        successors = stored["successors"]
    else:
        dense = probabilities.reshape(-1, num_states)
        if transitions.horizon is not None:
            dense = dense[: (horizon - 1) * pairs]
        owner, successors = np.nonzero(dense)
        counts = np.bincount(owner, minlength=dense.shape[0])
        probabilities = dense[owner, successors]
    if transitions.horizon is None:
        repeats = horizon - 1
        return (
            np.tile(counts, repeats),
            np.tile(successors, repeats),
            np.tile(probabilities, repeats),
        )
    kept = counts[: (horizon - 1) * pairs]
    entries = int(kept.sum())
    return kept, successors[:entries], probabilities[:entries]
