"""Trial 4: two constraints, a shop with a budget for orders and little room at night.

Costs, ranges, limits and margins are lists of two. The plan says that both limits bind and what
each is worth; the run keeps both costs.
"""

import numpy as np
import optpess as op

# Stock of 0 to 4, orders and demand of 0 to 2 units; a sale earns 9, an ordered unit costs 4.
states, orders = np.arange(5), np.arange(3)
demand = {0: 0.3, 1: 0.4, 2: 0.3}
transitions = np.zeros((5, 3, 5))
sales = np.zeros((5, 3))
stored = np.zeros((5, 3))
for stock in states:
    for order in orders:
        level = min(stock + order, 4)
        for wanted, chance in demand.items():
            transitions[stock, order, max(level - wanted, 0)] += chance
            sales[stock, order] += 9.0 * min(level, wanted) * chance
            stored[stock, order] += max(level - wanted, 0) * chance
spent = np.tile(4.0 * orders, (5, 1))
shop = op.CMDP.stationary(
    transitions,
    sales,
    [spent, stored],
    cost_limit=[28.0, 8.0],
    initial=2,
    horizon=10,
    reward_range=(0, 18),
    cost_range=[(0, 8), (0, 4)],
)

plan = op.solve(shop)
print(plan)
print("one more unit of each limit earns", plan.multipliers.round(2))
assert plan.binding.all() and (plan.multipliers > 0).all()
assert (plan.costs <= shop.cost_limits + 1e-9).all()

one_if_empty = op.policy_from_actions([1, 0, 0, 0, 0], num_actions=3, horizon=10)
safe_costs = [op.evaluate(one_if_empty, cost, shop.transitions, shop.initial) for cost in shop.costs]
print("the careful policy costs", np.round(safe_costs, 2))
margins = [
    op.SafetyMargin(limit, safe + 0.01) for limit, safe in zip(shop.cost_limits, safe_costs, strict=True)
]
learner = op.OptPessMix(
    shape=shop.shape,
    initial=shop.initial,
    baseline=op.SafeBaseline(one_if_empty, margins),
    knowledge=op.Knowledge(stationary=True),
    reward_range=(0, 18),
    cost_range=[(0, 8), (0, 4)],
)
run = op.simulate(shop, learner, episodes=50_000, replicates=2, seed=3)
print(run)
print(run.to_markdown().partition("\n\n")[0])
assert run.violating_episodes.sum() == 0
assert (run.deployed_cost_greatest <= run.cost_limits).all()
assert (run.gain[:, -1] > 0).all()
print(
    f"{run.deployed_value[:, -1].mean():.1f} of at most {plan.value:.1f} earned; costs at most "
    f"{run.deployed_cost_greatest.max(axis=(0, 1)).round(2).tolist()}, limits {run.cost_limits.tolist()}"
)
