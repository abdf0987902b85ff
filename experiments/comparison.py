"""The learners of the paper's Table 1 that exist here, side by side: the tables of docs/comparison.md.

At the theorems' radii nothing but the baseline would be seen in so few episodes, so every learner runs
with its radii multiplied by the same factor. That leaves every theorem: what the tables show is
behaviour, not guarantees.
"""

import optpess as op
from optpess.learners import Learner

FACTOR, EPISODES, REPLICATES, SEED = 0.01, 100_000, 4, 1


def learners(model: op.CMDP, margin: op.SafetyMargin) -> dict[str, Learner]:
    """Every learner on the same terms; the baseline is the best policy for the safe cost."""
    told = {"shape": model.shape, "initial": model.initial, "num_episodes": EPISODES}
    safe = op.SafeBaseline(op.solve(model, cost_limit=margin.safe_cost).policy, margin)
    scaled = told | {"confidence": op.Scaled(FACTOR)}
    return {
        "OptPess-LP": op.OptPessLP(baseline=safe, **scaled),
        "OptPess-PrimalDual": op.OptPessPrimalDual(margin=margin, **scaled),
        "OptCMDP-bonus": op.OptCMDPBonus(margin=margin, **scaled),
        "OptPrimalDual-CMDP": op.OptPrimalDualCMDP(margin=margin, **scaled),
        "OPDOP": op.OPDOP(margin=margin, **scaled),
        "C-UCRL (told P)": op.CUCRL(transitions=model.transitions, baseline=safe, **scaled),
        "no constraint": op.UnconstrainedOptimistic(margin=margin, **scaled),
        "always the baseline": op.AlwaysBaseline(baseline=safe, **told),
    }


def main() -> None:
    """Prints one table a problem."""
    problems = {
        "pair": (op.zoo.pair(), op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)),
        "ring": (op.zoo.ring(), op.SafetyMargin(cost_limit=3.0, safe_cost=0.6)),
    }
    for name, (model, margin) in problems.items():
        found = op.compare(model, learners(model, margin), replicates=REPLICATES, seed=SEED)
        print(f"## {name}\n\n{found.to_markdown()}\n")


if __name__ == "__main__":
    main()
