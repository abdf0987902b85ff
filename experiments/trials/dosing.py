"""Trial 1: a dosing problem of one's own, in hours and milligrams.

The user writes tables in natural units with their ranges. The plan, the frontier, the run and its
table come back in hours and milligrams, and so does every refusal.
"""

import numpy as np
import optpess as op

# Five levels of a marker, from low to very high; doses of 0, 20 and 50 mg a day, 14 days.
doses = np.array([0.0, 20.0, 50.0])
hours_well = np.array([6.0, 20.0, 16.0, 9.0, 3.0])
drift = [(0.05, 0.45, 0.5), (0.25, 0.5, 0.25), (0.6, 0.35, 0.05)]  # down, same, up, by dose
transitions = np.zeros((5, 3, 5))
for level in range(5):
    for dose, chances in enumerate(drift):
        for move, chance in zip((-1, 0, 1), chances, strict=True):
            transitions[level, dose, np.clip(level + move, 0, 4)] += chance
hours = np.tile(hours_well[:, None], (1, 3)) - 0.04 * doses  # a dose is unpleasant
milligrams = np.tile(doses, (5, 1))
patient = op.CMDP.stationary(
    transitions,
    hours,
    milligrams,
    cost_limit=300.0,
    initial=3,
    horizon=14,
    reward_range=(0, 24),
    cost_range=(0, 50),
)

plan = op.solve(patient)
curve = op.frontier(patient)
print(plan)
print(f"100 mg more are worth {curve.value_at(400.0) - plan.value:.1f} hours")
assert 14 * 3 < plan.value < 14 * 20 and plan.costs[0] <= 300.0
assert curve.value_at(300.0) >= curve.value_at(100.0)

careful = op.policy_from_actions(np.full((14, 5), 0), num_actions=3)
careful[:, 4] = [0.5, 0.5, 0.0]  # 20 mg every other day when very high: at most 140 mg
learner = op.OptPessMix(
    shape=patient.shape,
    initial=patient.initial,
    baseline=op.SafeBaseline(careful, op.SafetyMargin(cost_limit=300.0, safe_cost=140.0)),
    knowledge=op.Knowledge(stationary=True),
    reward_range=(0, 24),
    cost_range=(0, 50),
)
run = op.simulate(patient, learner, episodes=50_000, seed=1)
print(run)
print(run.to_markdown().partition("\n\n")[0])
assert run.violating_episodes.sum() == 0
assert (run.deployed_cost_greatest <= 300.0).all()
assert run.baseline_value < run.deployed_value[0, -1] <= run.optimal_value
print(
    f"{run.deployed_value[0, -1]:.0f} of at most {plan.value:.0f} hours; the careful policy has "
    f"{run.baseline_value:.0f}; never above {run.deployed_cost_greatest.max():.0f} of 300 mg"
)
