"""Trial 5: a policy known to be safe, nobody knows how safe; learned live, stopped and resumed.

`SafeBaseline.estimated` needs the limit only. The learner plays the policy until its cost is known,
then improves on it. It is saved after 3,000 episodes, read again and driven on; the log is one
file.
"""

import numpy as np
import optpess as op


class Pump:
    """A tank of 0 to 3; pumping hard delivers more and wears the pump, in micrometres."""

    num_states, num_actions, cost_limit = 4, 3, 30.0

    def reset(self, seed=None):
        self.random = np.random.default_rng(seed)
        self.level = 2
        return self.level

    def step(self, action):
        inflow = self.random.integers(0, 3)
        delivered = min(self.level, action)
        self.level = int(np.clip(self.level - delivered + inflow, 0, 3))
        wear = (0.5, 2.0, 8.0)[action] * self.random.random()
        return self.level, float(delivered), wear, False


pump = Pump()
shape = op.environments.sizes(pump, horizon=10)
gentle = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=3)
learner = op.OptPessMix(
    shape=shape,
    initial=2,
    baseline=op.SafeBaseline.estimated(gentle, cost_limit=pump.cost_limit),
    knowledge=op.Knowledge(stationary=True),
    reward_range=(0, 2),
    cost_range=(0, 8),
)
print(learner.guarantee, learner.safe_cost)
first = op.rollout(learner, pump, episodes=3000, log="episodes.csv")
learner.save("pump.learner")

resumed = op.load_learner("pump.learner")
second = op.rollout(resumed, pump, episodes=7000, log="episodes.csv")
print(first)
print(second)
print(resumed.progress)
deployment = resumed.next_policy()
print(deployment, "first action:", deployment.action(0, 2))
resumed.abandon()
assert resumed.episodes_observed == 10_000
assert second.costs.mean() <= 30.0 and np.nanmax(second.certified_costs) <= 30.0
assert second.returns.mean() > first.returns.mean()
assert len(open("episodes.csv").read().splitlines()) == 10_001
print(
    f"{first.returns.mean():.2f} delivered in 3,000 episodes, then {second.returns.mean():.2f}; "
    f"mean wear {second.costs.mean():.1f} of 30 micrometres"
)
