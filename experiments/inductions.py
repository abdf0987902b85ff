"""How many backward inductions a plan of OptPess-LP takes: started from the last plan, and from scratch.

Prints the table of docs/planning.md; about a minute.
"""

from __future__ import annotations

import numpy as np
import optpess as op
from theorem_constants import ALWAYS_FIRST, PAIR_MARGIN


def count(name: str, model: op.CMDP, baseline: op.SafeBaseline, factor: float, episodes: int) -> None:
    """Drives a learner and solves every hundredth of its problems again from scratch."""
    learner = op.OptPessLP(
        shape=model.shape,
        initial=model.initial,
        baseline=baseline,
        num_episodes=episodes,
        confidence=op.Scaled(factor),
    )
    plans, cold = 0, []
    for episode in range(episodes):
        signals, kernel = learner.signals, learner.estimates.transitions
        deployment = learner.next_policy()
        if deployment.source == "PessimisticSet":
            plans += 1
            if plans % 100 == 1:
                again = op.solve_signals(
                    signals.reward, signals.cost, kernel, model.initial, learner.cost_limit
                )
                cold.append(again.inductions)
        seen = op.sample(model, deployment.policy, 1, seed=5, replicate=episode)
        learner.observe(seen[0][0], seen[1][0], seen[2][0], seen[3][0, 0])
    print(
        f"| {name} | {plans} | {learner.inductions / plans:.2f} | {np.mean(cold):.1f} | {max(cold)} |",
        flush=True,
    )


def field_baseline(model: op.CMDP) -> op.SafeBaseline:
    """The field's convention: the best policy for a fifth of the limit."""
    limit = float(model.cost_limits[0])
    margin = op.SafetyMargin(cost_limit=limit, safe_cost=limit / 5)
    return op.SafeBaseline(op.solve(model, cost_limit=limit / 5).policy, margin)


def main() -> None:
    """Prints one row a problem."""
    print("| problem | plans | inductions a plan, warm (mean) | cold (mean) | cold (largest) |")
    print("| --- | ---: | ---: | ---: | ---: |")
    count("pair", op.zoo.pair(), op.SafeBaseline(ALWAYS_FIRST, PAIR_MARGIN), 0.02, 20_000)
    for name in ("ring", "inventory", "media"):
        model = getattr(op.zoo, name)()
        count(name, model, field_baseline(model), 0.01, 10_000)


if __name__ == "__main__":
    main()
