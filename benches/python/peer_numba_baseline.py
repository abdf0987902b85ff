"""OptPess-LP while it plays pi0, compiled by numba; the rules are those of `peer_numba.py`.

Such a peer needs the rows of pi0 alone: it keeps no others, and judges pi0 once. `run` follows the
algorithm box and evaluates pi0 at every episode. `run_watched`, the same body compiled again, is given
the bounds that ours uses: it evaluates, and renews averages, only when the gate can have opened. The
promise is about the first; the second tells how much of the ratio is the bound and how much the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from peer_numba import assembled, compiled, constants, drawn, value


@compiled
def looked(
    P_hat: np.ndarray,
    signal: np.ndarray,
    visits: np.ndarray,
    initial: np.ndarray,
    values: np.ndarray,
    highest: np.ndarray,
) -> float:
    """The pessimistic cost of pi0; its values [H + 1, S] and the highest of those seen, by step."""
    H, S = visits.shape
    for h in range(H - 1, -1, -1):
        highest[h] = 0.0
        for s in range(S):
            total = signal[h, s, 0]
            for t in range(S):
                total += P_hat[h, s, 0, t] * values[h + 1, t]
            values[h, s] = total
            if visits[h, s] > 0.0:
                highest[h] = max(highest[h], total)
    result = 0.0
    for s in range(S):
        result += initial[s] * values[0, s]
    return result


@compiled
def renewed(
    visits: np.ndarray,
    costs: np.ndarray,
    counts: np.ndarray,
    P_hat: np.ndarray,
    signal: np.ndarray,
    scale: float,
) -> None:
    """Averages and pessimistic costs of all rows, from visits and sums of costs [H, S]."""
    H, S = visits.shape
    for h in range(H):
        for s in range(S):
            n = max(visits[h, s], 1.0)
            signal[h, s, 0] = costs[h, s] / n + scale / math.sqrt(n)
            for t in range(S):
                P_hat[h, s, 0, t] = counts[h, s, t] / n


def baseline_of(watched: bool) -> Callable[..., tuple[float, float, float]]:
    """A run on pi0 that evaluates it at every episode, or only when the gate can have opened.

    It returns the last pessimistic cost of pi0 and the sums of its true rewards and costs; it stops at
    the gate. The sums of rewards are kept, since planning will want them; the rest of r bar can wait.
    """

    @assembled
    def run(P, r, c, initial, limit, safe, K, delta, episodes, seed, actions):
        np.random.seed(seed)  # noqa: NPY002
        H, S, A = r.shape
        Z = constants(H, S, A, K, delta)[0]
        scale, gate, work = (1 + H * S) * math.sqrt(Z), (limit + safe) / 2, np.zeros((2, S))
        visits, sums_r, sums_c = np.zeros((H, S)), np.zeros((H, S)), np.zeros((H, S))
        counts, P_hat = np.zeros((H, S, S)), np.zeros((H, S, 1, S))
        signal = np.full((H, S, 1), scale)
        always, chance_r, chance_c = np.zeros((H, S), np.int64), np.empty((H, S)), np.empty((H, S))
        rows = np.empty((H, S, S))
        for h in range(H):
            for s in range(S):
                chance_r[h, s], chance_c[h, s] = r[h, s, actions[h, s]], c[h, s, actions[h, s]]
                rows[h, s] = P[h, s, actions[h, s]]
        true_r, true_c = value(P, r, actions, initial, work), value(P, c, actions, initial, work)
        pessimistic, total_r, total_c = 0.0, 0.0, 0.0
        if watched:
            values, highest, slack, moved = np.zeros((H + 1, S)), np.zeros(H + 1), 0.0, 0.0
            # Costs are 0 or 1.
            shut_before = min(episodes - 1, int((H * scale / gate) ** 2 * (1.0 - 1e-8)))
        for k in range(episodes):
            if watched:
                if k >= shut_before and slack <= 0.0:
                    renewed(visits, sums_c, counts, P_hat, signal, scale)
                    pessimistic = looked(P_hat, signal, visits, initial, values, highest)
                    if pessimistic < gate:
                        break
                    slack, moved = pessimistic - gate - 1e-9 * (1.0 + pessimistic), 0.0
                change, fixed = 0.0, 3.0 + 2.0 * moved
            else:
                pessimistic = value(P_hat, signal, always, initial, work)
                if pessimistic < gate:
                    break
            state = drawn(initial)
            for h in range(H):
                visits[h, state] += 1.0
                n = visits[h, state]
                sums_r[h, state] += np.random.random() < chance_r[h, state]  # noqa: NPY002
                sums_c[h, state] += np.random.random() < chance_c[h, state]  # noqa: NPY002
                if watched:
                    if k >= shut_before:
                        range_h = fixed + signal[h, state, 0] + highest[h + 1]
                        change += range_h / (n - 1.0) if n > 1.0 else math.inf
                else:
                    signal[h, state, 0] = sums_c[h, state] / n + (1 + H * S) * math.sqrt(Z / n)
                if h + 1 < H:
                    after = drawn(rows[h, state])
                    counts[h, state, after] += 1.0
                    if not watched:
                        for t in range(S):
                            P_hat[h, state, 0, t] = counts[h, state, t] / n
                    state = after
            if watched:
                moved, slack = moved + change, slack - change
            total_r += true_r
            total_c += true_c
        return pessimistic, total_r, total_c

    return run


run, run_watched = baseline_of(watched=False), baseline_of(watched=True)
