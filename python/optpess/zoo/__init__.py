"""Named constrained MDPs from the literature, with known answers.

Each is restated as "maximise reward, cost at most a limit". All are stationary.
"""

from __future__ import annotations

import numpy as np

from optpess.model import CMDP
from optpess.zoo._garnet import garnet

__all__ = ["garnet", "inventory", "media", "pair", "ring", "two_bit"]


def pair() -> CMDP:
    """Two states, two actions, two steps: small enough to solve by hand (V* = 79/96).

    The second action earns more and costs more; "always the first action" costs 0.135.
    """
    to_second = np.array([[0.1, 0.6], [0.3, 0.8]])
    transitions = np.stack([1 - to_second, to_second], axis=-1)
    rewards = [[0.1, 0.5], [0.2, 0.9]]
    costs = [[0.05, 0.5], [0.1, 0.7]]
    return CMDP.stationary(transitions, rewards, costs, 0.6, [0.5, 0.5], horizon=2)


def ring() -> CMDP:
    """Three states on a ring, six steps (V* = 2).

    Moving on pays (s + 1)/3 and costs 1, staying is free.
    """
    transitions = np.zeros((3, 2, 3))
    rewards = np.zeros((3, 2))
    for state in range(3):
        transitions[state, 0, state] = 1.0
        transitions[state, 1, (state + 1) % 3] = 1.0
        rewards[state, 1] = (state + 1) / 3
    costs = np.tile([0.0, 1.0], (3, 1))
    return CMDP.stationary(transitions, rewards, costs, 3.0, [1.0, 0.0, 0.0], horizon=6)


def inventory() -> CMDP:
    """Stock of 0 to 5 units, orders of 0 to 5, random demand, seven steps.

    Ordering and holding cost, selling pays. The reward weighs sales with the transition
    probability, as the published code this problem comes from does.
    """
    size = 6
    demand = np.array([0.3, 0.2, 0.2, 0.2, 0.05, 0.05])
    transitions = np.zeros((size, size, size))
    rewards = np.zeros((size, size))
    costs = np.zeros((size, size))
    for stock in range(size):
        for order in range(size):
            bought = min(order, size - 1 - stock)
            held = stock + bought
            for wanted, probability in enumerate(demand):
                transitions[stock, order, max(held - wanted, 0)] += probability
            rewards[stock, order] = sum(
                transitions[stock, order, held - wanted] * 0.08 * wanted
                for wanted in range(min(held, size - 1) + 1)
            )
            costs[stock, order] = (4 + 2 * bought if bought > 0 else 0) + stock + bought
    rewards /= rewards.max()
    costs /= costs.max()
    return CMDP.stationary(transitions, rewards, costs, 3.5, np.eye(size)[0], horizon=7)


def media() -> CMDP:
    """A playback buffer of 0 to 9 packets, ten steps.

    The fast link costs 1, an empty buffer earns nothing.
    """
    size = 10
    transitions = np.zeros((size, 2, size))
    for buffer in range(size):
        for action, arrival in enumerate((0.9, 0.1)):
            up, down = arrival * 0.2, (1 - arrival) * 0.8
            transitions[buffer, action, min(buffer + 1, size - 1)] += up
            transitions[buffer, action, max(buffer - 1, 0)] += down
            transitions[buffer, action, buffer] += 1 - up - down
    rewards = np.ones((size, 2))
    rewards[0] = 0.0
    costs = np.tile([1.0, 0.0], (size, 1))
    return CMDP.stationary(transitions, rewards, costs, 5.0, np.eye(size)[0], horizon=10)


def two_bit() -> CMDP:
    """Three stages and a bit, three steps (V* = 0.2).

    At the second stage the first action costs 1, and which action pays depends on the bit.
    """
    transitions = np.zeros((6, 2, 6))  # state 2 x + y
    rewards = np.zeros((6, 2))
    costs = np.zeros((6, 2))
    for bit in range(2):
        transitions[bit, :, 2] = 0.1
        transitions[bit, :, 3] = 0.9
        transitions[2 + bit, :, 4 + bit] = 1.0
        transitions[4 + bit, :, 4 + bit] = 1.0
        costs[2 + bit, 0] = 1.0
    rewards[2, 1] = 1.0
    rewards[3, 0] = 1.0
    initial = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    return CMDP.stationary(transitions, rewards, costs, 0.1, initial, horizon=3)
