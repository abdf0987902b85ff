"""Trial 6: a queue of 500 states with sparse rows; an empty queue cannot be served.

The rows are a COO matrix, the missing actions a mask, rewards are negative. The learner that
`simulate` leaves goes on in the model as a Gymnasium environment. Waiting, energy and possible
successors are declared to be known: with nothing but stationarity, 1,000 episodes of this queue earn 198
euros less than the careful policy does.
"""

import numpy as np
import optpess as op
from scipy import sparse

# At most 499 jobs wait. Actions: rest, serve slowly, serve fast. A job arrives with probability 0.5.
size, arrival = 500, 0.5
served = np.array([0.0, 0.5, 0.8])
length = np.arange(size)
up = arrival * (1 - served)[None, :] * (length < size - 1)[:, None]
down = (1 - arrival) * served[None, :] * (length > 0)[:, None]
rows = np.arange(size * 3)
here = np.repeat(length, 3)
stay = 1 - up.ravel() - down.ravel()
transitions = sparse.coo_array(
    (
        np.concatenate([up.ravel(), down.ravel(), stay]),
        (
            np.tile(rows, 3),
            np.concatenate([np.minimum(here + 1, size - 1), np.maximum(here - 1, 0), here]),
        ),
    ),
    shape=(size * 3, size),
)
waiting = -np.tile(length[:, None] / 10.0, (1, 3))  # euros a step
energy = np.tile([0.0, 1.0, 4.0], (size, 1))  # kilowatt hours a step
possible = np.ones((size, 3), bool)
possible[0, 1:] = False
queue = op.CMDP.stationary(
    transitions,
    waiting,
    energy,
    cost_limit=28.0,
    initial=20,
    horizon=20,
    reward_range=(-49.9, 0),
    cost_range=(0, 4),
    actions=possible,
)
print(queue)
plan = op.solve(queue)
curve = op.frontier(queue)
print(plan)
print(curve)
assert (plan.policy[:, 0, 1:] == 0).all() and plan.costs[0] <= 28.0 + 1e-9
assert abs(curve.value_at(28.0) - plan.value) < 1e-6

slow = op.policy_from_actions(np.minimum(length, 1), num_actions=3, horizon=20)
costs = op.evaluate(slow, queue.costs[0], queue.transitions, queue.initial)
print(f"always slow: {costs:.2f} kWh")
known = op.Knowledge(
    stationary=True,
    rewards=queue.rewards[0],
    costs=queue.costs[0, 0],
    support=queue.transitions.to_array() > 0,
)
learner = op.OptPessMix(
    shape=queue.shape,
    initial=queue.initial,
    baseline=op.SafeBaseline(slow, op.SafetyMargin(cost_limit=28.0, safe_cost=20.0)),
    knowledge=known,
    reward_range=(-49.9, 0),
    cost_range=(0, 4),
    actions=possible,
)
run = op.simulate(queue, learner, episodes=300, seed=1)
print(run)
assert run.violating_episodes.sum() == 0
assert run.gain[0, -1] > 0 and run.baseline_value < run.deployed_value[0, -1] <= plan.value
live = op.rollout(run.learners[0], op.environments.as_gymnasium(queue), episodes=20, seed=5)
print(live)
assert run.learners[0].episodes_observed == 320
print(
    f"{run.deployed_value[0, -1]:.1f} euros, best {plan.value:.1f}, the careful policy "
    f"{run.baseline_value:.1f}; at most {run.deployed_cost_greatest.max():.1f} of 28 kWh"
)
