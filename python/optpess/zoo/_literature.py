"""Problems of the field's papers with one limit, restated as "maximise reward, cost at most a limit"."""

from __future__ import annotations

import numpy as np

from optpess.arrays import FloatArray
from optpess.model import CMDP

__all__ = [
    "cliff_grid",
    "inventory",
    "job_scheduling",
    "media",
    "pair",
    "paradox",
    "ring",
    "two_bit",
]

# Of the inventory: P(demand = d), d = 0..5.
DEMAND = np.array([0.3, 0.2, 0.2, 0.2, 0.05, 0.05])
# Of the cliff grid: (row, column) steps of up, right, down, left; row 0 is on top.
ROWS, COLUMNS = 4, 6
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
LEFT = 3


def pair() -> CMDP:
    """Two states, two actions, two steps: small enough to solve by hand (V* = 79/96).

    The second action earns more and costs more; "always the first action" costs 0.135.

    Example:
        >>> import optpess as op
        >>> op.zoo.pair()
        CMDP(horizon=2, num_states=2, num_actions=2, num_constraints=1, dense)
    """
    to_second = np.array([[0.1, 0.6], [0.3, 0.8]])
    transitions = np.stack([1 - to_second, to_second], axis=-1)
    rewards = [[0.1, 0.5], [0.2, 0.9]]
    costs = [[0.05, 0.5], [0.1, 0.7]]
    return CMDP.stationary(transitions, rewards, costs, 0.6, [0.5, 0.5], horizon=2)


def ring() -> CMDP:
    """Three states on a ring, six steps (V* = 2).

    Moving on pays (s + 1)/3 and costs 1, staying is free.

    Example:
        >>> import optpess as op
        >>> op.zoo.ring()
        CMDP(horizon=6, num_states=3, num_actions=2, num_constraints=1, dense)
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

    Example:
        >>> import optpess as op
        >>> op.zoo.inventory()
        CMDP(horizon=7, num_states=6, num_actions=6, num_constraints=1, dense)
    """
    size = len(DEMAND)
    transitions = np.zeros((size, size, size))
    rewards = np.zeros((size, size))
    costs = np.zeros((size, size))
    for stock in range(size):
        for order in range(size):
            bought = min(order, size - 1 - stock)
            held = stock + bought
            for wanted, probability in enumerate(DEMAND):
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

    Example:
        >>> import optpess as op
        >>> op.zoo.media()
        CMDP(horizon=10, num_states=10, num_actions=2, num_constraints=1, dense)
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

    Example:
        >>> import optpess as op
        >>> op.zoo.two_bit()
        CMDP(horizon=3, num_states=6, num_actions=2, num_constraints=1, dense)
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


def cliff_grid() -> CMDP:
    """A grid of 4 rows and 6 columns, fifteen steps, from the bottom left to the bottom right.

    Actions are up, right, down and left; a move succeeds with probability 0.9, else one stays, as at
    an edge. A step that begins at the goal pays 1, and the goal is never left. An action whose target
    lies in columns 1 to 4 costs (row of the target / 3) squared: the short way runs along the cliff,
    the free way along the top.

    Example:
        >>> import optpess as op
        >>> op.zoo.cliff_grid()
        CMDP(horizon=15, num_states=24, num_actions=4, num_constraints=1, dense)
    """
    transitions, rewards = grid_dynamics()
    rows, columns = grid_targets()
    costs = np.where((columns >= 1) & (columns <= 4), (rows / 3) ** 2, 0.0)
    return CMDP.stationary(transitions, rewards, costs, 1.0, grid_start(), horizon=15)


def grid_targets() -> tuple[FloatArray, FloatArray]:
    """Row and column, ``[S, A]``, of the cell each action of the cliff grid aims at."""
    goal = ROWS * COLUMNS - 1
    rows = np.zeros((goal + 1, len(MOVES)))
    columns = np.zeros((goal + 1, len(MOVES)))
    for cell in range(goal + 1):
        row, column = divmod(cell, COLUMNS)
        for action, (down, right) in enumerate(MOVES):
            inside = 0 <= row + down < ROWS and 0 <= column + right < COLUMNS
            moves = inside and cell != goal
            rows[cell, action] = row + down if moves else row
            columns[cell, action] = column + right if moves else column
    return rows, columns


def grid_dynamics() -> tuple[FloatArray, FloatArray]:
    """Transitions ``[S, A, S]`` and rewards ``[S, A]`` of the cliff grid."""
    rows, columns = grid_targets()
    targets = (rows * COLUMNS + columns).astype(int)
    size, actions = targets.shape
    transitions = np.zeros((size, actions, size))
    for cell in range(size):
        for action, target in enumerate(targets[cell]):
            if target == cell:
                transitions[cell, action, cell] = 1.0
            else:
                transitions[cell, action, [cell, target]] = 0.1, 0.9
    rewards = np.zeros((size, actions))
    rewards[-1] = 1.0
    return transitions, rewards


def grid_start() -> FloatArray:
    """The bottom left of the cliff grid, as a distribution ``[S]``."""
    initial = np.zeros(ROWS * COLUMNS)
    initial[(ROWS - 1) * COLUMNS] = 1.0
    return initial


def job_scheduling() -> CMDP:
    """Nine jobs, ten steps; working pays less than waiting, and least at steps 3 to 6 (from 1).

    Action 1 works: two jobs are done with probability 0.8, one with 0.1, none with 0.1. The papers ask
    for a utility, half the number of jobs done, of at least 3.5 in total. The cost is 1 minus the
    expected utility of (state, action), and the limit 10 - 3.5.

    Example:
        >>> import optpess as op
        >>> op.zoo.job_scheduling()
        CMDP(horizon=10, num_states=10, num_actions=2, num_constraints=1, dense)
    """
    size, horizon = 10, 10
    transitions = np.zeros((size, 2, size))
    costs = np.ones((size, 2))
    for jobs in range(size):
        transitions[jobs, 0, jobs] = 1.0
        for done, probability in ((2, 0.8), (1, 0.1), (0, 0.1)):
            left = max(jobs - done, 0)
            transitions[jobs, 1, left] += probability
            costs[jobs, 1] -= probability * (jobs - left) / 2
    rewards = np.ones((horizon, size, 2))
    rewards[:, :, 1] = 0.8
    rewards[2:6, :, 1] = 0.1
    initial = np.eye(size)[size - 1]
    return CMDP(transitions, rewards, np.broadcast_to(costs, rewards.shape), 6.5, initial)


def paradox() -> CMDP:
    """Two states, ten steps; reward and cost are the same signal (V* = 5, the limit).

    In state 0, action 0 stays with reward and cost 1, action 1 leads to state 1 with 0. In state 1,
    action 1 leads back with reward and cost 1, action 0 stays with 0.

    Example:
        >>> import optpess as op
        >>> op.zoo.paradox()
        CMDP(horizon=10, num_states=2, num_actions=2, num_constraints=1, dense)
    """
    transitions = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    signal = np.array([[1.0, 0.0], [0.0, 1.0]])
    return CMDP.stationary(transitions, signal, signal, 5.0, [1.0, 0.0], horizon=10)
