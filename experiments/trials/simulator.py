"""Trial 2: a simulator of one's own whose episodes end early.

The user writes a class with `reset` and `step`. `sizes` adds the absorbing end, and `rollout` pads,
drives, counts and reports; nothing about early ends is left to the user.
"""

import numpy as np
import optpess as op


class Battery:
    """A delivery robot with a charge of 0 to 5; an empty one has to be fetched, which ends the day."""

    num_states, num_actions = 6, 3  # charge, drive slowly, drive fast

    def reset(self, seed=None):
        self.random = np.random.default_rng(seed)
        self.charge = 4
        return self.charge

    def step(self, action):
        used = (-1, 1, 2)[action] * (self.random.random() < 0.7)
        self.charge = int(np.clip(self.charge - used, 0, 5))
        empty = self.charge == 0
        return self.charge, (0.0, 3.0, 7.0)[action], float(empty), empty


robot = Battery()
shape = op.environments.sizes(robot, horizon=12)
careful = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=3)
baseline = op.SafeBaseline(careful, op.SafetyMargin(cost_limit=0.2, safe_cost=0.0))
known = op.Knowledge(stationary=True)
learner = op.OptPessMix(shape=shape, initial=4, baseline=baseline, knowledge=known, reward_range=(0, 7))
result = op.rollout(learner, robot, episodes=20_000)
print(result)
late = result.costs[-5000:, 0]
assert result.costs.mean() <= 0.2 + 4 * late.std() / 5000**0.5
assert np.nanmax(result.certified_costs) <= 0.2
assert result.returns[-5000:].mean() > 0 and (result.lengths < 12).any()
print(
    f"the last 5,000 of 20,000 days earn {result.returns[-5000:].mean():.1f} each and "
    f"{late.mean():.3f} of them end early (limit 0.2); the careful policy earns 0"
)
