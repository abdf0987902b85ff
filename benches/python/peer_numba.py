"""OptPess-PrimalDual compiled by numba: the peer of one thread, as well as we can write it.

Whole runs are compiled, nothing is allocated in the loop, counts and estimates of the rows an episode
touched are updated and no others, policies are kept as integer actions, and a policy is judged exactly
only when it differs from the last one. The compiler may reorder sums and fuse multiply-adds, which we
may not; numba's generator is cheaper than ours. Dense transitions come in two layouts, of which the
faster counts at every size: `rows` keeps the successors of a pair next to each other, `columns` keeps
the pairs of a step next to each other as well, so that an induction runs along them. `lists` keeps the
successors seen so far, and is told how long a list can get, which no learner knows. All three are one
body, compiled for each (`learner_of`). Several replicates are run one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

# Lets the compiler vectorise sums; infinities keep their meaning.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}
# The cache in __pycache__ does not see changes of other files: after editing this one, delete it.
compiled = numba.njit(fastmath=RELAXED, cache=True)
# For functions made inside others: branches on constants of the function around them are cut before
# types are inferred. They are compiled in every process, because the cache would not find them again.
assembled = numba.njit(fastmath=RELAXED)


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


def learner_of(layout: str) -> Callable[..., tuple[float, float, float, float]]:
    """A run of OptPess-PrimalDual with transitions by `rows`, by `columns` as well, or in `lists`.

    It returns the last multiplier, the sums of the true rewards and costs of the deployed policies, and
    how many successors were stored, on average over the episodes, where they are in lists.
    """
    by_columns, in_lists = layout == "columns", layout == "lists"
    judged = listed_value if in_lists else value

    @assembled
    def run(truth, r, c, initial, limit, safe, K, delta, episodes, seed):
        np.random.seed(seed)  # noqa: NPY002
        H, S, A = r.shape
        Z, scale, small = constants(H, S, A, K, delta)
        sums, tilde = started(H, S, A, Z)
        actions, work = np.full((H, S), -1), np.zeros((2, S))
        if in_lists:
            _, possible, probabilities = truth
            width = possible.shape[3]
            counts, found = np.zeros((H, S, A, width)), np.zeros((H, S, A, width), np.int32)
            P_hat = (np.zeros((H, S, A), np.int32), found, np.zeros((H, S, A, width)))
        else:
            counts, P_hat = np.zeros((H, S, A, S)), np.zeros((H, S, A, S))
        if by_columns:
            flat, quality = tilde.reshape(2, H, S * A), np.zeros(S * A)
            P_columns = np.zeros((H, S, S * A))
        multiplier, true_r, true_c, total_r, total_c = 0.0, 0.0, 0.0, 0.0, 0.0
        stored, total_stored = 0, 0.0
        for k in range(1, episodes + 1):
            total_stored += stored
            price = multiplier / ((limit - safe) * H * math.sqrt(k))
            if in_lists:
                changed = greedy_lists(P_hat, tilde, price, actions, work)
            elif by_columns:
                changed = greedy_columns(P_columns, flat, price, actions, quality, work)
            else:
                changed = greedy_rows(P_hat, tilde, price, actions, work)
            optimistic = judged(P_hat, tilde[1], actions, initial, work)
            if changed:
                true_r = judged(truth, r, actions, initial, work)
                true_c = judged(truth, c, actions, initial, work)
            state = drawn(initial)
            for h in range(H):
                a = actions[h, state]
                n = learnt((h, state, a), r, c, sums, tilde, Z)
                if h + 1 < H:
                    if in_lists:
                        after = possible[h, state, a, drawn(probabilities[h, state, a])]
                        stored += counted((h, state, a), after, n, P_hat, counts)
                    else:
                        after = drawn(truth[h, state, a])
                        counts[h, state, a, after] += 1.0
                        for t in range(S):
                            P_hat[h, state, a, t] = counts[h, state, a, t] / n
                            if by_columns:
                                P_columns[h, t, state * A + a] = P_hat[h, state, a, t]
                    state = after
            multiplier = max(
                0.0, multiplier + max(optimistic, 0.0) + tightening(k, scale, small) - limit
            )
            total_r += true_r
            total_c += true_c
        return multiplier, total_r, total_c, total_stored / episodes

    return run


run_rows, run_columns, run_lists = learner_of("rows"), learner_of("columns"), learner_of("lists")


@assembled
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
