"""The formulas of the algorithms compared with, in plain NumPy, sharing nothing with the core."""

import itertools
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


def sops_log_factor(shape, num_episodes, delta):
    """u of S-OPS for one constraint. It counts a copy of every state a step, and two more states."""
    H, S, A = shape
    return math.log(8 * (S * H + 2) ** 2 * A * num_episodes / delta)


def sops_signal_width(visits, log, factor=1.0):
    """xi of S-OPS; 1 for pairs never visited."""
    width = np.minimum(1.0, factor * np.sqrt(4 * log / np.maximum(1, visits)))
    return np.where(visits == 0, 1.0, width)


def sops_successor_width(known, log, factor=1.0):
    """eps of S-OPS; 1 for pairs never visited."""
    count = np.maximum(1, known.visits - 1)[..., None]
    width = 2 * np.sqrt(known.transitions * log / count) + 14 * log / (3 * count)
    return np.where(known.visits[..., None] == 0, 1.0, np.minimum(1.0, factor * width))


def worst_of_two_states(policy, signal, centre, radius, initial):
    """The largest value of a policy over all kernels of a box, by evaluating every one of its vertices.

    Two states only: a row is then one number, between two ends.
    """
    rows = [index for index in np.ndindex(centre.shape[:3]) if index[0] + 1 < len(centre)]
    low = np.maximum(centre - radius, 0.0)
    high = np.minimum(centre + radius, 1.0)
    ends = [(max(low[row][0], 1 - high[row][1]), min(high[row][0], 1 - low[row][1])) for row in rows]
    values = []
    for chosen in itertools.product(*ends):
        kernel = np.zeros_like(centre)
        for row, first in zip(rows, chosen, strict=True):
            kernel[row] = first, 1 - first
        value = np.zeros(2)
        for h in reversed(range(len(policy))):
            value = (policy[h] * (signal[h] + kernel[h] @ value)).sum(axis=1)
        values.append(float(initial @ value))
    return max(values)
