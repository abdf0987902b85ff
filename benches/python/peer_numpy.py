"""OptPess-PrimalDual in NumPy: one matrix product a step, nothing else vectorises.

The rules are those of `peer_numba.py`: only touched rows are updated, a policy is judged only when it
changed. It is also the referee: fed the episodes of one of our runs, it says how often it would have
played a policy of the same true value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class PrimalDual:
    """The learner: `plan`, then `learn`."""

    def __init__(self, arrays: tuple, K: int, delta: float) -> None:
        _, r, _, self.initial, self.limit, self.safe = arrays
        self.K, self.delta, self.k, self.multiplier = K, delta, 0, 0.0
        H, S, A = self.shape = r.shape
        self.states = np.arange(S)
        self.Z = math.log(16.0 * S * S * A * H * K / delta)
        first = (1 + H * S) * math.sqrt(self.Z)
        self.visits, self.sums_r, self.sums_c = (np.zeros(r.shape) for _ in range(3))
        self.r_tilde, self.c_tilde = np.full(r.shape, first), np.full(r.shape, -first)
        self.counts, self.P_hat = np.zeros((H, S, A, S)), np.zeros((H, S, A, S))
        self.actions = np.zeros((H, S), np.intp)

    def plan(self) -> bool:
        """Plans the next episode into `actions` and moves the multiplier; whether any action changed."""
        H, S, A = self.shape
        self.k += 1
        price = self.multiplier / ((self.limit - self.safe) * H * math.sqrt(self.k))
        signal = self.r_tilde - price * self.c_tilde
        before = self.actions.copy()
        values, cost = np.zeros(S), np.zeros(S)
        for h in range(H - 1, -1, -1):
            quality = signal[h]
            if h + 1 < H:
                quality = quality + (self.P_hat[h].reshape(S * A, S) @ values).reshape(S, A)
            quality.argmax(axis=1, out=self.actions[h])
            chosen = self.actions[h]
            values = quality[self.states, chosen]
            cost = self.c_tilde[h, self.states, chosen] + self.P_hat[h, self.states, chosen] @ cost
        small = self.delta / (16.0 * S * S * A * H)
        log = math.log(self.k / small)
        epsilon = 5.0 * H * H * math.sqrt(S**3 * A) * (log + 1.0) / math.sqrt(self.k * log)
        optimistic = max(float(self.initial @ cost), 0.0)
        self.multiplier = max(0.0, self.multiplier + optimistic + epsilon - self.limit)
        return self.k == 1 or not np.array_equal(before, self.actions)

    def learn(self, states: Any, actions: Any, rewards: Any, costs: Any) -> None:
        """Takes one episode in."""
        H, S, _ = self.shape
        for h in range(H):
            row = (h, states[h], actions[h])
            self.visits[row] += 1.0
            self.sums_r[row] += rewards[h]
            self.sums_c[row] += costs[h]
            n = self.visits[row]
            bonus = (1 + H * S) * math.sqrt(self.Z / n)
            self.r_tilde[row] = self.sums_r[row] / n + bonus
            self.c_tilde[row] = self.sums_c[row] / n - bonus
            if h + 1 < H:
                self.counts[(*row, states[h + 1])] += 1.0
                self.P_hat[row] = self.counts[row] / n

    def judged(self, P: np.ndarray, r: np.ndarray, c: np.ndarray) -> tuple[float, float]:
        """The true values of the planned policy."""
        H, S, _ = self.shape
        both = np.zeros((S, 2))
        for h in range(H - 1, -1, -1):
            chosen = self.actions[h]
            both = P[h, self.states, chosen] @ both
            both[:, 0] += r[h, self.states, chosen]
            both[:, 1] += c[h, self.states, chosen]
        reward, cost = self.initial @ both
        return float(reward), float(cost)


def run(arrays: tuple, K: int, delta: float, episodes: int, seed: int) -> tuple[float, float, float]:
    """The last multiplier and the sums of the true rewards and costs of the deployed policies."""
    P, r, c, initial, _, _ = arrays
    learner, generator = PrimalDual(arrays, K, delta), np.random.default_rng(seed)
    H = r.shape[0]
    cumulative, start = P.cumsum(axis=-1), initial.cumsum()
    last = initial.size - 1
    true_r = true_c = total_r = total_c = 0.0
    states, actions = [0] * H, [0] * H
    for _ in range(episodes):
        if learner.plan():
            true_r, true_c = learner.judged(P, r, c)
        uniforms = generator.random(3 * H).tolist()
        state = min(int(start.searchsorted(uniforms[0], side="right")), last)
        rewards, costs = [False] * H, [False] * H
        for h in range(H):
            action = int(learner.actions[h, state])
            states[h], actions[h] = state, action
            rewards[h] = uniforms[3 * h + 1] < r[h, state, action]
            costs[h] = uniforms[3 * h + 2] < c[h, state, action]
            if h + 1 < H:
                row = cumulative[h, state, action]
                state = min(int(row.searchsorted(uniforms[3 * h + 3], side="right")), last)
        learner.learn(states, actions, rewards, costs)
        total_r += true_r
        total_c += true_c
    return learner.multiplier, total_r, total_c


def replayed(arrays: tuple, K: int, delta: float, trace: Any) -> tuple[int, float]:
    """Fed a trace of ours: in how many episodes the policy has another true value than ours, and the
    largest relative difference of the multiplier."""
    P, r, c = arrays[:3]
    learner, others, apart = PrimalDual(arrays, K, delta), 0, 0.0
    for k in range(len(trace.states)):
        before = learner.multiplier
        learner.plan()
        apart = max(apart, abs(before - trace.multiplier[k]) / max(abs(before), 1.0))
        others += abs(learner.judged(P, r, c)[0] - trace.deployed_value[k]) > 1e-9
        learner.learn(trace.states[k], trace.actions[k], trace.rewards[k], trace.costs[k])
    return others, apart
