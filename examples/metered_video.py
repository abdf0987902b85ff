"""A metered video link: what a cent buys, and a policy learned without overdrawing the account.

A clip lasts ten seconds. A buffer holds up to nine packets; while it is empty, the picture stands still.
In each second the slow link is free and the fast link costs 2 cents. The clip may cost 10 cents in
expectation. First the exact answer for those who know the link, then OptPess-Mix, which does not.
Run it with `python examples/metered_video.py`; takes seconds and writes a picture.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import optpess as op
from optpess.plot import Picture

SECONDS, BUFFER, BUDGET, PRICE = 10, 10, 10.0, 2.0
ARRIVAL = {"slow": 0.1, "fast": 0.9}  # the chance that a packet is on its way
CLIPS, REPLICATES = 50_000, 8


def link() -> op.CMDP:
    """The true model. The reward is 1 for a second in which the picture moves, the cost is in cents."""
    transitions = np.zeros((BUFFER, 2, BUFFER))
    for packets in range(BUFFER):
        for action, arrival in enumerate(ARRIVAL.values()):
            more, fewer = 0.2 * arrival, 0.8 * (1 - arrival)
            transitions[packets, action, min(packets + 1, BUFFER - 1)] += more
            transitions[packets, action, max(packets - 1, 0)] += fewer
            transitions[packets, action, packets] += 1 - more - fewer
    moving = np.tile((np.arange(BUFFER) > 0).astype(float)[:, np.newaxis], (1, 2))
    cents = np.tile([0.0, PRICE], (BUFFER, 1))
    return op.CMDP.stationary(
        transitions, moving, cents, BUDGET, initial=0, horizon=SECONDS, cost_range=(0, PRICE)
    )


def main() -> None:
    """Plans, learns, prints, draws."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("demo-output"), help="for the picture")
    output = arguments.parse_args().output
    warnings.simplefilter("ignore", op.GuaranteeWarning)  # one learner ignores the budget on purpose

    model = link()
    curve, plan = op.frontier(model), op.solve(model)
    print(f"Known link: {plan.value:.2f} s of moving picture for {BUDGET:g} cents;", end=" ")
    print(f"a cent more buys {plan.multipliers[0]:.2f} s.")

    slow = op.policy_from_actions(np.zeros(model.shape[:2], int), num_actions=2)
    margin = op.SafetyMargin(cost_limit=BUDGET, safe_cost=0.0)  # the slow link is free
    sizes = {"shape": model.shape, "initial": model.initial, "cost_range": (0, PRICE)}
    found = op.compare(
        model,
        {
            "OptPess-Mix": op.OptPessMix(
                **sizes,
                baseline=op.SafeBaseline(slow, margin),
                knowledge=op.Knowledge(stationary=True),
            ),
            "no budget": op.UnconstrainedOptimistic(**sizes, margin=margin, num_episodes=CLIPS),
        },
        episodes=CLIPS,
        replicates=REPLICATES,
        seed=7,
        progress=False,
    )
    for name, run in found.runs.items():
        seconds, cents = run.deployed_value[:, -1].mean(), run.deployed_cost[:, -1].mean()
        over = run.violating_episodes.mean() / CLIPS
        print(f"{name}: {seconds:.2f} s for {cents:.2f} cents at last;", end=" ")
        print(f"{over:.0%} of {REPLICATES * CLIPS:,} clips were over the budget.")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "story-video.svg"
    figure = curve.plot(path=found.runs)
    figure.axes[0].set(xlabel="cents a clip", ylabel="seconds of moving picture a clip")
    alt = "OptPess-Mix climbs to the optimum at 10 cents; without a budget, clips cost 16 cents."
    Picture("story-video", "What a cent buys", caption="", alt=alt, figure=figure).save(picture)
    print(f"Picture: {picture}")


if __name__ == "__main__":
    main()
