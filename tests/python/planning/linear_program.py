"""The occupancy linear program by SciPy, built here and nowhere else: a third opinion.

SciPy ships its own copy of HiGHS; only the formulation, not the solver, is independent of the library's
second engine.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass
class Answer:
    value: float
    multipliers: np.ndarray  # [M]


def flows(P, mu):
    """Matrix and right-hand side of the flow constraints on q[h, s, a]."""
    horizon, num_states, num_actions, _ = P.shape
    pairs = num_states * num_actions
    leave = sparse.kron(sparse.eye_array(num_states), np.ones((1, num_actions)))
    blocks = [[None] * horizon for _ in range(horizon)]
    for step in range(horizon):
        blocks[step][step] = leave
        if step > 0:
            blocks[step][step - 1] = sparse.csr_array(-P[step - 1].reshape(pairs, num_states).T)
    right = np.zeros(horizon * num_states)
    right[:num_states] = mu
    return sparse.block_array(blocks, format="csr"), right


def solve(instance):
    """The optimum, or None if the limits cannot be met."""
    matrix, right = flows(instance.P, instance.mu)
    reward_size, cost_sizes = instance.reward_size, instance.cost_sizes
    answer = linprog(
        -instance.reward.ravel() / reward_size,
        A_ub=instance.costs.reshape(len(cost_sizes), -1) / cost_sizes[:, None],
        b_ub=instance.limits / cost_sizes,
        A_eq=matrix,
        b_eq=right,
        method="highs",
        options=OPTIONS,
    )
    if answer.status == 2:
        return None
    assert answer.status == 0, answer.message
    return Answer(-answer.fun * reward_size, -answer.ineqlin.marginals * reward_size / cost_sizes)


def least_cost(instance):
    """The least attainable cost of the first constraint."""
    matrix, right = flows(instance.P, instance.mu)
    size = instance.cost_sizes[0]
    signal = instance.costs[0].ravel() / size
    answer = linprog(signal, A_eq=matrix, b_eq=right, method="highs", options=OPTIONS)
    assert answer.status == 0, answer.message
    return answer.fun * size
