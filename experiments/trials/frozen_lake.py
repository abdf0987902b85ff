"""Trial 3: FrozenLake, learned on the real environment and on its tables.

The cost comes from a wrapper of four lines for the environment, and from a function for the tables.
One learner is driven on the real environment, its copies on the imported model, and their
statistics agree.
"""

import gymnasium
import numpy as np
import optpess as op


class Holes(gymnasium.Wrapper):
    """A fall into a hole costs 1."""

    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        return state, reward, terminated, truncated, {**info, "cost": float(terminated and reward == 0)}


def falls(state, action, next_state, reward, terminated):
    return float(terminated and reward == 0)


lake = Holes(gymnasium.make("FrozenLake-v1", is_slippery=True, max_episode_steps=-1))
shape = op.environments.sizes(lake, horizon=20)
print(op.environments.check(lake, horizon=20))

model = op.environments.from_gymnasium(lake, cost=falls, horizon=20, cost_limit=0.2)
best = op.solve(model)
print(best)
assert model.shape == shape and 0 < best.value < 1 and best.costs[0] <= 0.2

safe = op.solve_least_cost(model)  # away from the holes
learner = op.OptPessMix(
    shape=shape,
    initial=0,
    baseline=op.SafeBaseline(safe.policy, op.SafetyMargin(cost_limit=0.2, safe_cost=0.001)),
    knowledge=op.Knowledge(stationary=True, support=model.transitions.to_array() > 0),  # where ice leads
)
run = op.simulate(model, learner, episodes=50_000, replicates=4, seed=1)
print(run)
live = op.rollout(learner, lake, episodes=50_000, seed=1)
print(live)
print(learner.progress)
last, share = live.returns[-10_000:].mean(), live.on_baseline.mean()
shares = run.baseline_episodes / 50_000
assert run.violating_episodes.sum() == 0 and (run.deployed_value[:, -1] > 0.1).all()
assert np.nanmax(live.certified_costs) <= 0.2 and live.costs.mean() <= 0.2
assert last > 0.1 and shares.min() / 2 < share < 2 * shares.max()
print(
    f"goals: {last:.3f} of the last 10,000 live episodes, {run.deployed_value[:, -1].mean():.3f} "
    f"simulated, {best.value:.3f} possible; on the safe policy {share:.2f} live, {shares.min():.2f} to "
    f"{shares.max():.2f} simulated"
)
