"""The best pair of a policy and a plausible kernel: the problem OptCMDP solves before every episode.

Over extended occupancies z[h, s, a, s'] >= 0 with marginals q[h, s, a] (at the last step, which has no
successor, q alone), maximise <q, r> subject to the flow constraints

    sum_a q[0, s, a] = mu(s),    sum_a q[h+1, s', a] = sum_{s, a} z[h, s, a, s'],

to <q, c> <= tau, and to every kernel row z / q being within its box:

    lower[h, s, a, s'] q[h, s, a] <= z[h, s, a, s'] <= upper[h, s, a, s'] q[h, s, a].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray
from optpess.checks import as_array, is_name, unknown_name
from optpess.exceptions import InfeasibleError, InvalidInputError
from optpess.plan._linear_program import LinearProgram, Matrix, flow_bounds, largest_entry
from optpess.plan._problem import check_sums, finite_floats, first_state, limits_of
from optpess.plan._scaling import Scaling
from optpess.plan.result import ExtendedPlan

__all__ = ["solve_extended"]

# A least cost that is lower than the limit by this much, relatively, is within it.
_SURELY = 1e-9
# An end of a box below this is 0 to HiGHS, which drops such entries of a matrix.
_LEAST_END = 1e-12


def solve_extended(
    reward: ArrayLike,
    cost: ArrayLike,
    transitions: ArrayLike,
    radius: ArrayLike,
    initial: ArrayLike,
    cost_limit: float,
    engine: Literal["parametric", "highs"] = "parametric",
) -> ExtendedPlan:
    """The most reward within a limit over policies *and* over kernels within a radius of the given one.

    Args:
        reward, cost: ``[H, S, A]``, any finite numbers.
        transitions: ``[H, S, A, S]``, the middle of each box; the last step is ignored.
        radius: ``[H, S, A, S]``, how far each probability may be from it. Rows of plausible kernels are
            distributions; a box that holds none is refused.
        initial: ``[S]``, the distribution of the first state, or its number.
        cost_limit: any finite number.
        engine: ``"parametric"`` (the chord method over extended backward inductions) or ``"highs"`` (the
            extended occupancy linear program, to check the first).

    Raises
    ------
        InfeasibleError: no policy meets the limit on any plausible kernel.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> centre = np.stack([model.transitions.to_array()] * 2)
        >>> known = (model.rewards, model.costs[0], centre)
        >>> sure = op.solve_extended(*known, 0.0 * centre, model.initial, 0.6)
        >>> round(sure.value * 96)
        79
        >>> op.solve_extended(*known, 0.0 * centre + 0.1, model.initial, 0.6).value > sure.value
        True
    """
    limit = float(limits_of(cost_limit, 1)[0])
    if not is_name(engine, ("parametric", "highs")):
        raise unknown_name("engine", engine, ("parametric", "highs"))
    signals = {"reward": as_array("reward", reward), "cost": as_array("cost", cost)}
    for name, signal in signals.items():
        check_sums(name, signal, signal.shape[0] if signal.ndim else 1)
    scaling = None
    if signals["reward"].ndim == signals["cost"].ndim == 3:
        scaling = Scaling.of(signals["reward"], signals["cost"][np.newaxis])
    if scaling is not None:
        return _solve_scaled(scaling, signals, transitions, radius, initial, limit, engine)
    if engine == "parametric":
        answer = _core.solve_extended(reward, cost, transitions, radius, initial, limit)
        return ExtendedPlan(**answer, engine=engine)
    reward, cost = finite_floats("reward", reward), finite_floats("cost", cost)
    if reward.ndim != 3 or cost.shape != reward.shape:
        raise InvalidInputError(
            f"reward has shape {reward.shape} and cost {cost.shape}; both must have the axes [H, S, A]"
        )
    return _solve_highs(reward, cost, transitions, radius, initial, limit)


def _solve_scaled(
    scaling: Scaling,
    signals: dict[str, npt.NDArray[Any]],
    transitions: ArrayLike,
    radii: ArrayLike,
    start: ArrayLike,
    limit: float,
    engine: Literal["parametric", "highs"],
) -> ExtendedPlan:
    """A plan for signals that are multiplied by powers of two, in the unit of the given ones."""
    reward, costs = scaling.reward_in(signals["reward"]), scaling.costs_in(signals["cost"][np.newaxis])
    scaled_limit = float(scaling.costs_in(np.array([limit]))[0])
    try:
        plan = solve_extended(reward, costs[0], transitions, radii, start, scaled_limit, engine)
    except InfeasibleError as error:
        least = float(scaling.costs_out(np.array([error.least_cost]))[0])
        raise _infeasible(limit, least) from None
    return replace(
        plan,
        value=scaling.value_out(plan.value),
        bound=scaling.value_out(plan.bound),
        cost=float(scaling.costs_out(np.array([plan.cost]))[0]),
        multiplier=float(scaling.multipliers_out(np.array([plan.multiplier]))[0]),
    )


def _infeasible(limit: float, least: float) -> InfeasibleError:
    """The refusal of a limit that no policy meets on any plausible kernel."""
    error = InfeasibleError(f"no plausible pair meets the limit {limit}: the least cost is {least}")
    error.kind, error.least_cost = "Infeasible", least
    return error


def _solve_highs(
    reward: FloatArray,
    cost: FloatArray,
    transitions: ArrayLike,
    radii: ArrayLike,
    start: ArrayLike,
    limit: float,
) -> ExtendedPlan:
    # The core checks the boxes and the distribution of the first state, before HiGHS is given them.
    cheapest, _, values = _core.extended_induction(-cost, transitions, radii)
    _core.evaluate(cheapest, cost, np.zeros((*cost.shape[1:], cost.shape[1])), start)
    centre, radius = (np.asarray(array, np.float64) for array in (transitions, radii))
    initial = first_state(start, cost.shape[1]).astype(np.float64)
    least = -float(values[0] @ initial)
    # Without a doubt: the least cost is right to far less than this.
    feasible = least <= limit - _SURELY * max(abs(least), abs(limit))
    found = _optimum(reward, cost, centre[:-1], radius[:-1], initial, limit, feasible=feasible)
    if found is None:
        raise _infeasible(limit, least)
    occupancy, flow, multiplier = found
    greedy, most = _best(reward - multiplier * cost, centre, radius, initial)
    return ExtendedPlan(
        policy=_core.policy_from_occupancy(occupancy, greedy),
        value=float((occupancy * reward).sum()),
        cost=float((occupancy * cost).sum()),
        multiplier=multiplier,
        bound=most + multiplier * limit,
        occupancy=occupancy,
        flow=flow,
        engine="highs",
        inductions=0,
    )


def _best(
    signal: FloatArray, centre: FloatArray, radius: FloatArray, initial: FloatArray
) -> tuple[FloatArray, float]:
    """The best policy for a signal on its best plausible kernel, and its value there."""
    policy, _, values = _core.extended_induction(signal, centre, radius)
    return policy, float(values[0] @ initial)


def _optimum(
    reward: FloatArray,
    cost: FloatArray,
    centre: FloatArray,
    radius: FloatArray,
    initial: FloatArray,
    limit: float,
    *,
    feasible: bool,
) -> tuple[FloatArray, FloatArray, float] | None:
    """q, z and the multiplier by HiGHS, or None if nothing meets the limit."""
    program = LinearProgram()
    reward_scale, cost_scale = largest_entry(reward), largest_entry(cost)
    lower, upper = np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)
    matrix, ends = _matrix(cost / cost_scale, lower, upper)
    flows = flow_bounds(reward.shape, initial)
    zeros = np.zeros(centre[..., 0].size)
    low = np.r_[flows, zeros, np.zeros(ends[0]), np.full(ends[1] + 1, -program.infinity)]
    high = np.r_[flows, zeros, np.full(ends[0], program.infinity), np.zeros(ends[1])]
    objective = np.r_[reward.ravel() / reward_scale, np.zeros(centre.size)]
    rows = (low, np.r_[high, limit / cost_scale])
    optimum = program.maximise(objective, matrix, rows, feasible=feasible)
    if optimum is None:
        return None
    occupancy = optimum.columns[: reward.size].reshape(reward.shape)
    flow = optimum.columns[reward.size :].reshape(centre.shape)
    return occupancy, flow, max(-float(optimum.row_duals[-1]) * reward_scale / cost_scale, 0.0)


def _matrix(cost: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[Matrix, tuple[int, int]]:
    """The matrix over columns (q, z), and how many lower and upper ends bind: rows for the flows, for
    q = sum z, for those ends, and for the cost.
    """
    horizon, num_states, num_actions = cost.shape
    q = np.arange(cost.size)
    z = cost.size + np.arange(lower.size)
    owner, successor = np.divmod(np.arange(lower.size), num_states)  # (h, s, a) and s' of each z
    step = owner // (num_states * num_actions)
    parts: list[tuple[Any, Any, Any]] = [(q // num_actions, q, 1.0)]
    parts.append(((step + 1) * num_states + successor, z, -1.0))
    rows = horizon * num_states
    balanced = rows + np.arange(lower[..., 0].size)
    parts += [(balanced, q[: balanced.size], -1.0), (rows + owner, z, 1.0)]
    rows += balanced.size
    counts = []
    for ends, binding in ((lower.ravel(), lower > _LEAST_END), (upper.ravel(), upper < 1.0)):
        bound = np.flatnonzero(binding)
        own = rows + np.arange(bound.size)
        parts += [(own, z[bound], 1.0), (own, owner[bound], -ends[bound])]
        rows += bound.size
        counts.append(bound.size)
    parts.append((np.full(q.size, rows), q, cost.ravel()))
    row = np.concatenate([part[0] for part in parts])
    column = np.concatenate([part[1] for part in parts])
    entry = np.concatenate([np.broadcast_to(part[2], part[0].shape) for part in parts])
    order = np.lexsort((row, column))
    starts = np.searchsorted(column[order], np.arange(q.size + z.size + 1))
    matrix = Matrix(starts.astype(np.int32), row[order].astype(np.int32), entry[order])
    return matrix, (counts[0], counts[1])
