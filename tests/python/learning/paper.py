"""The formulas of the two algorithms in plain NumPy, written from the paper and sharing nothing with
the core. Episodes are counted k = 1, 2, ... as there; a margin is (tau, c0).
"""

import math

import numpy as np


def averages(shape, states, actions, rewards, costs):
    """N(h,s,a), N(h,s,a,s'), and the averages of transitions, rewards and costs, of episodes [K, H]."""
    H, S, _ = shape
    visits, counts = np.zeros(shape, dtype=int), np.zeros((*shape, S), dtype=int)
    sums = np.zeros((2, *shape))
    for h in range(H):
        at = (h, states[:, h], actions[:, h])
        np.add.at(visits, at, 1)
        np.add.at(sums[0], at, rewards[:, h])
        np.add.at(sums[1], at, costs[:, h])
        if h + 1 < H:
            np.add.at(counts, (*at, states[:, h + 1]), 1)
    divisor = np.maximum(visits, 1)
    return visits, counts, counts / divisor[..., None], sums[0] / divisor, sums[1] / divisor


def log_factor(shape, num_episodes, delta):
    H, S, A = shape
    return math.log(16 * S**2 * A * H * num_episodes / delta)


def beta(visits, shape, num_episodes, delta):
    return np.sqrt(log_factor(shape, num_episodes, delta) / np.maximum(visits, 1))


def bonus(visits, shape, num_episodes, delta, factor=1.0):
    H, S, _ = shape
    return factor * (1 + H * S) * beta(visits, shape, num_episodes, delta)


def reward_scale(shape, margin):
    """alpha_r, as printed."""
    H, S, _ = shape
    limit, safe_cost = margin
    return 1 + S * H + 4 * H * (1 + S * H) / (limit - safe_cost)


def tightening(k, shape, delta):
    H, S, A = shape
    log = math.log(k / (delta / (16 * S**2 * A * H)))
    return 5 * H**2 * math.sqrt(S**3 * A) * (log + 1) / math.sqrt(k * log)


def scaling(k, shape, margin):
    limit, safe_cost = margin
    return (limit - safe_cost) * shape[0] * math.sqrt(k)


def next_multiplier(multiplier, optimistic_cost, k, shape, margin, delta):
    limit, _ = margin
    raised = multiplier + max(0.0, optimistic_cost) + tightening(k, shape, delta) - limit
    return max(0.0, raised)


def valid_radius(k, horizon, num_episodes, delta):
    """For the mean cost of k episodes; half of the learner's delta goes in."""
    return math.sqrt((horizon**2 / 2 + horizon) * math.log(2 * num_episodes / delta) / k)


def printed_radius(k, horizon, num_episodes, delta):
    """The one of Appendix E."""
    return math.sqrt(math.log(2 * num_episodes / delta) / (k * horizon))
