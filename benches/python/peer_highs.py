"""OptPess-LP past its gate with a linear program an episode: HiGHS, started from the last basis.

One `Highs` object is kept for the whole run. After an episode the objective and the coefficients of
the at most H columns it touched are changed, and the program is solved again from the basis of the last
solution, without presolve. Several ways are tried, and the fastest counts: coefficients are changed one
by one, or all arrays are passed again and the basis set; the primal simplex method without scaling, or
HiGHS's own choice, the dual one with scaling.

Everything else of an episode (reading the policy off the occupancy, its re-evaluation and, if it is
over the limit by rounding, its repair; the episode; exact judging; counts, averages, signals, the gate)
is one function compiled by numba, so that next to nothing is spent outside HiGHS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from peer_numba import compiled, constants, drawn


@dataclass
class Start:
    """What the learner knows at the first episode, and the problem."""

    P: np.ndarray  # [H, S, A, S], the truth
    r: np.ndarray  # [H, S, A]
    c: np.ndarray  # [H, S, A]
    initial: np.ndarray  # [S]
    pi0: np.ndarray  # [H, S, A]
    limit: float
    safe: float
    K: int
    delta: float
    factor: float  # of the bonus
    sums: np.ndarray  # [3, H, S, A]: visits, sums of reward and cost
    counts: np.ndarray  # [H, S, A, S]


@compiled
def value(
    P: np.ndarray, signal: np.ndarray, policy: np.ndarray, initial: np.ndarray, work: np.ndarray
) -> float:
    """V_1(mu; signal, P) of a randomised policy [H, S, A]; work is [2, S]."""
    H, S, A = signal.shape
    following, here = work[0], work[1]
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = 0.0
            for a in range(A):
                weight = policy[h, s, a]
                if weight > 0.0:
                    quality = signal[h, s, a]
                    if h + 1 < H:
                        for t in range(S):
                            quality += P[h, s, a, t] * following[t]
                    total += weight * quality
            here[s] = total
        following, here = here, following
    result = 0.0
    for s in range(S):
        result += initial[s] * following[s]
    return result


@compiled
def induced(occupancy: np.ndarray, completion: np.ndarray, policy: np.ndarray) -> None:
    """The policy of an occupancy [H, S, A]; the completion's where it has no mass."""
    H, S, A = occupancy.shape
    for h in range(H):
        for s in range(S):
            mass = 0.0
            for a in range(A):
                mass += max(occupancy[h, s, a], 0.0)
            for a in range(A):
                found = max(occupancy[h, s, a], 0.0)
                policy[h, s, a] = found / mass if mass > 0.0 else completion[h, s, a]


@compiled
def occupied(
    P: np.ndarray, policy: np.ndarray, initial: np.ndarray, weight: float, out: np.ndarray
) -> None:
    """Adds weight times the occupancy of a policy to `out`."""
    H, S, A = policy.shape
    mass = initial.copy()
    for h in range(H):
        following = np.zeros(S)
        for s in range(S):
            for a in range(A):
                here = mass[s] * policy[h, s, a]
                out[h, s, a] += weight * here
                if h + 1 < H:
                    for t in range(S):
                        following[t] += here * P[h, s, a, t]
        mass = following


@compiled
def played(
    P: np.ndarray,
    chances: np.ndarray,
    initial: np.ndarray,
    policy: np.ndarray,
    seen: np.ndarray,
    observed: np.ndarray,
) -> None:
    """One episode into `seen` [2, H] (states, actions) and `observed` [2, H] (rewards, costs)."""
    H = policy.shape[0]
    state = drawn(initial)
    for h in range(H):
        a = drawn(policy[h, state])
        seen[0, h], seen[1, h] = state, a
        observed[0, h] = np.random.random() < chances[0, h, state, a]  # noqa: NPY002
        observed[1, h] = np.random.random() < chances[1, h, state, a]  # noqa: NPY002
        if h + 1 < H:
            state = drawn(P[h, state, a])


@compiled
def learnt(
    seen: np.ndarray,
    observed: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    P_hat: np.ndarray,
    signals: np.ndarray,
    factors: np.ndarray,
) -> None:
    """Counts, averages, r bar and c underbar (signals [2, H, S, A]) of the rows of an episode."""
    _, H, S, _ = sums.shape
    scale, boost = factors[0], factors[1]
    for h in range(H):
        s, a = seen[0, h], seen[1, h]
        sums[0, h, s, a] += 1.0
        n = sums[0, h, s, a]
        bonus = scale / math.sqrt(n)
        for k in range(2):
            sums[1 + k, h, s, a] += observed[k, h]
        signals[0, h, s, a] = sums[1, h, s, a] / n + boost * bonus
        signals[1, h, s, a] = sums[2, h, s, a] / n + bonus
        if h + 1 < H:
            counts[h, s, a, seen[0, h + 1]] += 1.0
            for t in range(S):
                P_hat[h, s, a, t] = counts[h, s, a, t] / n


@compiled
def certified(
    P_hat: np.ndarray,
    cost: np.ndarray,
    pi0: np.ndarray,
    initial: np.ndarray,
    limit: float,
    policy: np.ndarray,
    work: np.ndarray,
) -> bool:
    """Re-evaluates the policy; mixes it with pi0 in occupancy space if it is over the limit."""
    found = value(P_hat, cost, policy, initial, work)
    if found <= limit:
        return False
    least = value(P_hat, cost, pi0, initial, work)
    weight = min(1.0, 2.0 * (found - limit) / (found - least))
    mixed = np.zeros(policy.shape)
    occupied(P_hat, policy, initial, 1.0 - weight, mixed)
    occupied(P_hat, pi0, initial, weight, mixed)
    induced(mixed, pi0, policy)
    return True


@dataclass(frozen=True)
class Way:
    """How HiGHS is used."""

    in_place: bool
    primal: bool


WAYS = {
    "in place, primal": Way(in_place=True, primal=True),
    "in place, dual": Way(in_place=True, primal=False),
    "whole model, primal": Way(in_place=False, primal=True),
}


class Program:
    """The occupancy linear program of the estimates, kept inside one `Highs`."""

    def __init__(self, P_hat: np.ndarray, signals: np.ndarray, start: Start, way: Way) -> None:
        H, S, A = start.r.shape
        self.shape, self.in_place = (H, S, A), way.in_place
        self.limit, self.initial = start.limit, start.initial
        self.solver: Any = highspy.Highs()
        options = {"output_flag": False, "presolve": "off", "threads": 1, "solver": "simplex"}
        options |= {"parallel": "off", "small_matrix_value": 1e-12}
        if way.primal:
            options |= {"simplex_strategy": 4, "simplex_scale_strategy": 0}
        for option, setting in options.items():
            self.solver.setOptionValue(option, setting)
        columns = H * S * A
        # By columns: the flow row of (h, s), the cost row, then every (h + 1, s'); zeros are allowed.
        lengths = np.full(columns, 2 + S)
        lengths[(H - 1) * S * A :] = 2
        self.starts = np.r_[0, np.cumsum(lengths)].astype(np.int32)
        self.rows = np.empty(self.starts[-1], dtype=np.int32)
        self.values = np.ones(self.starts[-1])
        self.rows[self.starts[:-1]] = np.arange(columns) // A
        self.rows[self.starts[:-1] + 1] = H * S
        for column in range((H - 1) * S * A):
            first = self.starts[column] + 2
            self.rows[first : first + S] = (column // (S * A) + 1) * S + np.arange(S)
        self.objective = np.empty(columns)
        for column in range(columns):
            self._store(column, P_hat, signals)
        self.basis: Any = None
        self._pass()

    def _store(self, column: int, P_hat: np.ndarray, signals: np.ndarray) -> None:
        _, S, _ = self.shape
        first, end = self.starts[column], self.starts[column + 1]
        self.objective[column] = -signals[0].flat[column]
        self.values[first + 1] = signals[1].flat[column]
        if end - first > 2:
            self.values[first + 2 : end] = -P_hat.reshape(-1, S)[column]

    def _pass(self) -> None:
        H, S, _ = self.shape
        infinity, columns = highspy.kHighsInf, self.objective.size
        flows = np.zeros(H * S)
        flows[:S] = self.initial
        self.solver.passModel(
            columns,
            H * S + 1,
            self.values.size,
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            self.objective,
            np.zeros(columns),
            np.full(columns, infinity),
            np.r_[flows, -infinity],
            np.r_[flows, self.limit],
            self.starts,
            self.rows,
            self.values,
            np.zeros(columns, dtype=np.int32),
        )

    def change(self, seen: np.ndarray, P_hat: np.ndarray, signals: np.ndarray) -> None:
        """Tells HiGHS of the rows an episode has changed."""
        H, S, A = self.shape
        solver = self.solver
        for h in range(H):
            s, a = int(seen[0, h]), int(seen[1, h])
            column = (h * S + s) * A + a
            if not self.in_place:
                self._store(column, P_hat, signals)
                continue
            solver.changeColCost(column, -float(signals[0, h, s, a]))
            solver.changeCoeff(H * S, column, float(signals[1, h, s, a]))
            if h + 1 < H:
                row = P_hat[h, s, a]
                for t in row.nonzero()[0].tolist():
                    solver.changeCoeff((h + 1) * S + t, column, -float(row[t]))
        if not self.in_place:
            self._pass()
            if self.basis is not None:
                solver.setBasis(self.basis)

    def solve(self) -> np.ndarray:
        """An optimal occupancy [H, S, A]."""
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.solver.clearSolver()
            self.solver.run()
            status = self.solver.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal:
                raise SystemExit(f"HiGHS: {self.solver.modelStatusToString(status)}")
        if not self.in_place:
            self.basis = self.solver.getBasis()
        return np.array(self.solver.getSolution().col_value).reshape(self.shape)


@dataclass
class Outcome:
    """What a run came to."""

    rewards: np.ndarray  # [episodes], true values of the deployed policies
    costs: np.ndarray  # [episodes]
    on_baseline: int
    repairs: int


@compiled
def seeded(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002


@compiled
def episode(
    occupancy: np.ndarray,
    truth: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    margin: tuple[float, float],
    drawing: bool,
    seen: np.ndarray,
    observed: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    P_hat: np.ndarray,
    signals: np.ndarray,
    factors: np.ndarray,
    policy: np.ndarray,
    work: np.ndarray,
) -> tuple[float, float, bool, bool]:
    """Everything but the solver: the policy of the occupancy (pi0 if it is empty), certified, judged,
    played unless `seen` and `observed` are given, and learnt from. True reward and cost of the policy,
    whether it was repaired, whether the gate is open for the next one.
    """
    P, chances, initial, pi0 = truth
    limit, safe = margin
    repaired = False
    if occupancy.size > 0:
        induced(occupancy, pi0, policy)
        repaired = certified(P_hat, signals[1], pi0, initial, limit, policy, work)
    else:
        policy[:] = pi0
    true_r = value(P, chances[0], policy, initial, work)
    true_c = value(P, chances[1], policy, initial, work)
    if drawing:
        played(P, chances, initial, policy, seen, observed)
    learnt(seen, observed, sums, counts, P_hat, signals, factors)
    is_open = value(P_hat, signals[1], pi0, initial, work) < (limit + safe) / 2
    return true_r, true_c, repaired, is_open


def run(
    start: Start, episodes: int, seed: int, way: Way, replay: tuple[np.ndarray, ...] | None = None
) -> Outcome:
    """`episodes` episodes; with a replay (states, actions, rewards, costs, each [episodes, H]), what is
    observed is taken from it instead of being drawn."""
    seeded(seed)
    H, S, A = start.r.shape
    Z = constants(H, S, A, start.K, start.delta)[0]
    scale = start.factor * (1 + H * S) * math.sqrt(Z)
    factors = np.array([scale, 1.0 + 4.0 * H / (start.limit - start.safe)])
    sums, counts = start.sums.copy(), start.counts.copy()
    visits = np.maximum(sums[0], 1.0)
    P_hat = counts / visits[..., None]
    bonus = scale / np.sqrt(visits)
    signals = np.stack([sums[1] / visits + factors[1] * bonus, sums[2] / visits + bonus])
    program = Program(P_hat, signals, start, way)
    truth = (start.P, np.stack([start.r, start.c]), start.initial, start.pi0)
    margin, nothing = (start.limit, start.safe), np.empty((0, S, A))
    policy, work = np.empty((H, S, A)), np.zeros((2, S))
    seen, observed = np.zeros((2, H), np.int64), np.zeros((2, H))
    outcome = Outcome(np.empty(episodes), np.empty(episodes), 0, 0)
    is_open = value(P_hat, signals[1], start.pi0, start.initial, work) < sum(margin) / 2
    for k in range(episodes):
        occupancy = program.solve() if is_open else nothing
        outcome.on_baseline += not is_open
        if replay is not None:
            seen[0], seen[1], observed[0], observed[1] = (table[k] for table in replay)
        outcome.rewards[k], outcome.costs[k], repaired, is_open = episode(
            occupancy,
            truth,
            margin,
            replay is None,
            seen,
            observed,
            sums,
            counts,
            P_hat,
            signals,
            factors,
            policy,
            work,
        )
        outcome.repairs += repaired
        program.change(seen, P_hat, signals)
    return outcome
