"""The same mathematics in plain NumPy, written for the reader and sharing nothing with the core.

All arrays are dense and per step: P [H, S, A, S], g [H, S, A], pi [H, S, A], mu [S].
"""

import numpy as np


def action_values(g, P, step, following):
    if step == len(g) - 1:
        return g[step]  # the last slice of P is never used
    return g[step] + P[step] @ following


def state_values(policy, g, P):
    values = np.zeros((g.shape[0] + 1, g.shape[1]))
    for step in reversed(range(len(g))):
        values[step] = (policy[step] * action_values(g, P, step, values[step + 1])).sum(axis=1)
    return values


def evaluate(policy, g, P, mu):
    return float(mu @ state_values(policy, g, P)[0])


def occupancy(policy, P, mu):
    visits, arriving = np.zeros_like(policy), mu
    for step in range(len(policy)):
        visits[step] = arriving[:, None] * policy[step]
        arriving = np.einsum("sa,sat->t", visits[step], P[step])
    return visits


def policy_from_occupancy(visits, completion):
    total = visits.sum(axis=2, keepdims=True)
    return np.where(total > 0, visits / np.where(total > 0, total, 1), completion)


def mix_policies(policies, weights, P, mu):
    pairs = list(zip(weights, policies, strict=True))
    visits = sum(weight * occupancy(policy, P, mu) for weight, policy in pairs)
    average = sum(weight * policy for weight, policy in pairs)
    return policy_from_occupancy(visits, average)


def value_difference(policy, g, P, g2, P2, mu):
    return evaluate(policy, g2, P2, mu) - evaluate(policy, g, P, mu)


def backward_induction(g, P):
    values, policy = np.zeros((g.shape[0] + 1, g.shape[1])), np.zeros_like(g)
    for step in reversed(range(len(g))):
        quality = action_values(g, P, step, values[step + 1])
        values[step] = quality.max(axis=1)
        policy[step, np.arange(len(quality)), quality.argmax(axis=1)] = 1
    return policy, values
