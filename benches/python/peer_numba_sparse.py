"""OptPess-PrimalDual with lists of successors, compiled by numba; rules as in `peer_numba.py`."""

from __future__ import annotations

import math

import numpy as np
from peer_numba import compiled, constants, drawn, learnt, started, tightening


@compiled
def listed_value(
    lists: tuple[np.ndarray, np.ndarray, np.ndarray],
    signal: np.ndarray,
    actions: np.ndarray,
    initial: np.ndarray,
    work: np.ndarray,
) -> float:
    """V_1(mu; signal, P) for P as lists: how many successors [H, S, A], which and with what probability
    [H, S, A, width]."""
    used, successors, probabilities = lists
    H, S, _ = signal.shape
    following, here = work[0], work[1]
    for h in range(H - 1, -1, -1):
        for s in range(S):
            a = actions[h, s]
            total = signal[h, s, a]
            if h + 1 < H:
                for j in range(used[h, s, a]):
                    total += probabilities[h, s, a, j] * following[successors[h, s, a, j]]
            here[s] = total
        following, here = here, following
    result = 0.0
    for s in range(S):
        result += initial[s] * following[s]
    return result


@compiled
def greedy_lists(
    lists: tuple[np.ndarray, np.ndarray, np.ndarray],
    tilde: np.ndarray,
    price: float,
    actions: np.ndarray,
    work: np.ndarray,
) -> bool:
    """Backward induction on r tilde - price c tilde into `actions`; whether any of them changed."""
    used, successors, probabilities = lists
    _, H, S, A = tilde.shape
    following, here, changed = work[0], work[1], False
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, chosen = -math.inf, 0
            for a in range(A):
                quality = tilde[0, h, s, a] - price * tilde[1, h, s, a]
                if h + 1 < H:
                    for j in range(used[h, s, a]):
                        quality += probabilities[h, s, a, j] * following[successors[h, s, a, j]]
                if quality > best:
                    best, chosen = quality, a
            here[s] = best
            changed |= chosen != actions[h, s]
            actions[h, s] = chosen
        following, here = here, following
    return changed


@compiled
def counted(
    place: tuple[int, int, int],
    after: int,
    n: float,
    lists: tuple[np.ndarray, np.ndarray, np.ndarray],
    counts: np.ndarray,
) -> int:
    """Adds a successor to the list of its row and renews the row's averages; 1 if it is new there."""
    h, s, a = place
    used, successors, probabilities = lists
    length = used[h, s, a]
    found = length
    for j in range(length):
        if successors[h, s, a, j] == after:
            found = j
            break
    if found == length:
        successors[h, s, a, found] = after
        used[h, s, a] = length + 1
    counts[h, s, a, found] += 1.0
    for j in range(used[h, s, a]):
        probabilities[h, s, a, j] = counts[h, s, a, j] / n
    return used[h, s, a] - length


@compiled
def run_sparse(
    truth: tuple[np.ndarray, np.ndarray, np.ndarray],
    r: np.ndarray,
    c: np.ndarray,
    initial: np.ndarray,
    limit: float,
    safe: float,
    K: int,
    delta: float,
    episodes: int,
    seed: int,
) -> tuple[float, float, float, float]:
    """The last multiplier, the sums of the true rewards and costs of the deployed policies, and how many
    successors were stored, on average over the episodes."""
    np.random.seed(seed)  # noqa: NPY002
    H, S, A = r.shape
    _, possible, probabilities = truth
    width = possible.shape[3]
    Z, scale, small = constants(H, S, A, K, delta)
    sums, tilde = started(H, S, A, Z)
    counts = np.zeros((H, S, A, width))
    successors = np.zeros((H, S, A, width), np.int32)
    lists = (np.zeros((H, S, A), np.int32), successors, np.zeros((H, S, A, width)))
    actions, work = np.full((H, S), -1), np.zeros((2, S))
    multiplier, true_r, true_c, total_r, total_c = 0.0, 0.0, 0.0, 0.0, 0.0
    stored, total_stored = 0, 0.0
    for k in range(1, episodes + 1):
        total_stored += stored
        price = multiplier / ((limit - safe) * H * math.sqrt(k))
        changed = greedy_lists(lists, tilde, price, actions, work)
        optimistic = listed_value(lists, tilde[1], actions, initial, work)
        if changed:
            true_r = listed_value(truth, r, actions, initial, work)
            true_c = listed_value(truth, c, actions, initial, work)
        state = drawn(initial)
        for h in range(H):
            a = actions[h, state]
            n = learnt((h, state, a), r, c, sums, tilde, Z)
            if h + 1 < H:
                after = possible[h, state, a, drawn(probabilities[h, state, a])]
                stored += counted((h, state, a), after, n, lists, counts)
                state = after
        multiplier = max(0.0, multiplier + max(optimistic, 0.0) + tightening(k, scale, small) - limit)
        total_r += true_r
        total_c += true_c
    return multiplier, total_r, total_c, total_stored / episodes
