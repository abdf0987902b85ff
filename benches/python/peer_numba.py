"""OptPess-PrimalDual compiled by numba: the peer of one thread, as well as we can write it.

Whole runs are compiled, nothing is allocated in the loop, counts and estimates of the rows an episode
touched are updated and no others, policies are kept as integer actions, and a policy is judged exactly
only when it differs from the last one. The compiler may reorder sums and fuse multiply-adds, which we
may not; numba's generator is cheaper than ours. Dense transitions come in two layouts, of which the
faster counts at every size: `rows` keeps the successors of a pair next to each other, `columns` keeps
the pairs of a step next to each other as well, so that an induction runs along them. The sparse one
(`peer_numba_sparse.py`) keeps lists of the successors seen so far, and is told how long a list can get,
which no learner knows. Several replicates are run one after the other.
"""

from __future__ import annotations

import math

import numba
import numpy as np

# Lets the compiler vectorise sums; infinities keep their meaning.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}
# The cache in __pycache__ does not see changes of other files: after editing this one, delete it.
compiled = numba.njit(fastmath=RELAXED, cache=True)


@compiled
def drawn(row: np.ndarray) -> int:
    uniform = np.random.random()  # noqa: NPY002 - the only generator numba seeds cheaply
    total = 0.0
    for outcome in range(row.size - 1):
        total += row[outcome]
        if uniform < total:
            return outcome
    return row.size - 1


@compiled
def value(
    P: np.ndarray, signal: np.ndarray, actions: np.ndarray, initial: np.ndarray, work: np.ndarray
) -> float:
    """V_1(mu; signal, P) of integer actions [H, S]; P is [H, S, A, S], work [2, S]."""
    H, S, _ = signal.shape
    following, here = work[0], work[1]
    for h in range(H - 1, -1, -1):
        for s in range(S):
            a = actions[h, s]
            total = signal[h, s, a]
            if h + 1 < H:
                for t in range(S):
                    total += P[h, s, a, t] * following[t]
            here[s] = total
        following, here = here, following
    result = 0.0
    for s in range(S):
        result += initial[s] * following[s]
    return result


@compiled
def constants(H: int, S: int, A: int, K: int, delta: float) -> tuple[float, float, float]:
    """Z, the constant part of eps_k and delta'."""
    Z = math.log(16.0 * S * S * A * H * K / delta)
    return Z, 5.0 * H * H * math.sqrt(S**3 * A), delta / (16.0 * S * S * A * H)


@compiled
def tightening(k: int, scale: float, small: float) -> float:
    log = math.log(k / small)
    return scale * (log + 1.0) / math.sqrt(k * log)


@compiled
def learnt(
    place: tuple[int, int, int],
    r: np.ndarray,
    c: np.ndarray,
    sums: np.ndarray,
    tilde: np.ndarray,
    Z: float,
) -> float:
    """Observes a reward and a cost of 0 or 1, updates both signals; the number of visits."""
    h, s, a = place
    H, S, _ = r.shape
    sums[0, h, s, a] += 1.0
    sums[1, h, s, a] += np.random.random() < r[h, s, a]  # noqa: NPY002
    sums[2, h, s, a] += np.random.random() < c[h, s, a]  # noqa: NPY002
    n = sums[0, h, s, a]
    bonus = (1 + H * S) * math.sqrt(Z / n)
    tilde[0, h, s, a] = sums[1, h, s, a] / n + bonus
    tilde[1, h, s, a] = sums[2, h, s, a] / n - bonus
    return n


@compiled
def started(H: int, S: int, A: int, Z: float) -> tuple[np.ndarray, np.ndarray]:
    """Visits and sums of reward and cost [3, H, S, A]; r tilde and c tilde [2, H, S, A]."""
    first = (1 + H * S) * math.sqrt(Z)
    tilde = np.empty((2, H, S, A))
    tilde[0], tilde[1] = first, -first
    return np.zeros((3, H, S, A)), tilde


@compiled
def greedy_rows(
    P_hat: np.ndarray, tilde: np.ndarray, price: float, actions: np.ndarray, work: np.ndarray
) -> bool:
    """Backward induction on r tilde - price c tilde into `actions`; whether any of them changed."""
    _, H, S, A = tilde.shape
    following, here, changed = work[0], work[1], False
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, chosen = -math.inf, 0
            for a in range(A):
                quality = tilde[0, h, s, a] - price * tilde[1, h, s, a]
                if h + 1 < H:
                    for t in range(S):
                        quality += P_hat[h, s, a, t] * following[t]
                if quality > best:
                    best, chosen = quality, a
            here[s] = best
            changed |= chosen != actions[h, s]
            actions[h, s] = chosen
        following, here = here, following
    return changed


@compiled
def run_rows(
    P: np.ndarray,
    r: np.ndarray,
    c: np.ndarray,
    initial: np.ndarray,
    limit: float,
    safe: float,
    K: int,
    delta: float,
    episodes: int,
    seed: int,
) -> tuple[float, float, float]:
    """The last multiplier and the sums of the true rewards and costs of the deployed policies."""
    np.random.seed(seed)  # noqa: NPY002
    H, S, A = r.shape
    Z, scale, small = constants(H, S, A, K, delta)
    sums, tilde = started(H, S, A, Z)
    counts, P_hat, work = np.zeros((H, S, A, S)), np.zeros((H, S, A, S)), np.zeros((2, S))
    actions = np.full((H, S), -1)
    multiplier, true_r, true_c, total_r, total_c = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(1, episodes + 1):
        price = multiplier / ((limit - safe) * H * math.sqrt(k))
        changed = greedy_rows(P_hat, tilde, price, actions, work)
        optimistic = value(P_hat, tilde[1], actions, initial, work)
        if changed:
            true_r = value(P, r, actions, initial, work)
            true_c = value(P, c, actions, initial, work)
        state = drawn(initial)
        for h in range(H):
            a = actions[h, state]
            n = learnt((h, state, a), r, c, sums, tilde, Z)
            if h + 1 < H:
                after = drawn(P[h, state, a])
                counts[h, state, a, after] += 1.0
                for t in range(S):
                    P_hat[h, state, a, t] = counts[h, state, a, t] / n
                state = after
        multiplier = max(0.0, multiplier + max(optimistic, 0.0) + tightening(k, scale, small) - limit)
        total_r += true_r
        total_c += true_c
    return multiplier, total_r, total_c


@compiled
def greedy_columns(
    P_hat: np.ndarray,
    tilde: np.ndarray,
    price: float,
    actions: np.ndarray,
    quality: np.ndarray,
    work: np.ndarray,
) -> bool:
    """As `greedy_rows`, for P_hat [H, S', S A]: sums over successors run along the pairs."""
    _, H, pairs = tilde.shape
    S, A = work.shape[1], pairs // work.shape[1]
    following, here, changed = work[0], work[1], False
    for h in range(H - 1, -1, -1):
        for pair in range(pairs):
            quality[pair] = tilde[0, h, pair] - price * tilde[1, h, pair]
        if h + 1 < H:
            for t in range(S):
                weight = following[t]
                for pair in range(pairs):
                    quality[pair] += P_hat[h, t, pair] * weight
        for s in range(S):
            best, chosen = quality[s * A], 0
            for a in range(1, A):
                if quality[s * A + a] > best:
                    best, chosen = quality[s * A + a], a
            here[s] = best
            changed |= chosen != actions[h, s]
            actions[h, s] = chosen
        following, here = here, following
    return changed


@compiled
def run_columns(
    P: np.ndarray,
    r: np.ndarray,
    c: np.ndarray,
    initial: np.ndarray,
    limit: float,
    safe: float,
    K: int,
    delta: float,
    episodes: int,
    seed: int,
) -> tuple[float, float, float]:
    """As `run_rows`, with estimates in both layouts: by columns to plan, by rows to evaluate."""
    np.random.seed(seed)  # noqa: NPY002
    H, S, A = r.shape
    Z, scale, small = constants(H, S, A, K, delta)
    sums, tilde = started(H, S, A, Z)
    flat = tilde.reshape(2, H, S * A)
    counts, P_hat, P_columns = np.zeros((H, S, A, S)), np.zeros((H, S, A, S)), np.zeros((H, S, S * A))
    actions, quality, work = np.full((H, S), -1), np.zeros(S * A), np.zeros((2, S))
    multiplier, true_r, true_c, total_r, total_c = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(1, episodes + 1):
        price = multiplier / ((limit - safe) * H * math.sqrt(k))
        changed = greedy_columns(P_columns, flat, price, actions, quality, work)
        optimistic = value(P_hat, tilde[1], actions, initial, work)
        if changed:
            true_r = value(P, r, actions, initial, work)
            true_c = value(P, c, actions, initial, work)
        state = drawn(initial)
        for h in range(H):
            a = actions[h, state]
            n = learnt((h, state, a), r, c, sums, tilde, Z)
            if h + 1 < H:
                after = drawn(P[h, state, a])
                counts[h, state, a, after] += 1.0
                for t in range(S):
                    P_hat[h, state, a, t] = counts[h, state, a, t] / n
                    P_columns[h, t, state * A + a] = P_hat[h, state, a, t]
                state = after
        multiplier = max(0.0, multiplier + max(optimistic, 0.0) + tightening(k, scale, small) - limit)
        total_r += true_r
        total_c += true_c
    return multiplier, total_r, total_c


@compiled
def replicated(
    P: np.ndarray,
    r: np.ndarray,
    c: np.ndarray,
    initial: np.ndarray,
    limit: float,
    safe: float,
    K: int,
    delta: float,
    episodes: int,
    seed: int,
    replicates: int,
) -> tuple[float, float, float]:
    """`run_rows` again and again, one seed after the other; the means."""
    first, second, third = 0.0, 0.0, 0.0
    for replicate in range(replicates):
        one = run_rows(P, r, c, initial, limit, safe, K, delta, episodes, seed + replicate)
        first, second, third = first + one[0], second + one[1], third + one[2]
    return first / replicates, second / replicates, third / replicates
