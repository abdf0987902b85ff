"""The formulas of the algorithms compared with, in plain NumPy, sharing nothing with the core."""

import math

import numpy as np


def log_factor(shape, num_episodes, delta):
    H, S, A = shape
    return math.log(6 * S**2 * A * H * num_episodes / delta)


def observation_radius(known, shape, num_episodes, delta):
    return np.sqrt(log_factor(shape, num_episodes, delta) / np.maximum(known.visits, 1))


def bernstein(known, shape, num_episodes, delta):
    """b_p."""
    log = log_factor(shape, num_episodes, delta)
    count = np.maximum(known.visits, 1)[..., None]
    p = known.transitions
    return np.sqrt(4 * p * (1 - p) * log / count) + 14 * log / (3 * count)


def successor_radius(known, shape, num_episodes, delta, factor=1.0):
    """b_p, and at least 1 for pairs never visited, of which nothing is known."""
    radius = factor * bernstein(known, shape, num_episodes, delta)
    return np.where(known.visits[..., None] == 0, np.maximum(radius, 1), radius)


def bonus(known, shape, num_episodes, delta, factor=1.0):
    """b_o + H sum b_p; at the last step, which nothing follows, b_o."""
    successors = bernstein(known, shape, num_episodes, delta)
    total = observation_radius(known, shape, num_episodes, delta)
    total[:-1] += shape[0] * successors.sum(axis=-1)[:-1]
    return factor * total


def clipped(policy, signal, kernel):
    """Q and V of a policy, with Q kept in [0, what is left of the episode]."""
    H, S, _ = policy.shape
    actions, values = np.zeros_like(signal), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        following = kernel[h] @ values[h + 1] if h + 1 < H else 0.0
        actions[h] = np.clip(signal[h] + following, 0, H - h)
        values[h] = (policy[h] * actions[h]).sum(axis=1)
    return actions, values
