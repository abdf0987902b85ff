"""A shop with two limits: money for orders, and room in the cold store at night.

The shop has room for five crates. Each morning it orders none to three, at 6 euros a crate and 2 for the
delivery; a sold crate earns 10. In a week it may spend 46 euros and keep 8 crates over night, both in
expectation. The shop knows that ordering one crate whenever none is left keeps both limits; nobody
knows by how much. Run it with `python examples/inventory.py`; takes seconds and writes a picture.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import optpess as op
from optpess.plot import pictures

DAYS, SHELF, ORDERS = 7, 5, 4
DEMAND = (0.2, 0.35, 0.3, 0.15)
SALE, CRATE, DELIVERY = 10.0, 6.0, 2.0
LIMITS = [46.0, 8.0]
TITLES, UNITS = ("Spent on orders", "Kept over night"), ("euros a week", "crates a week")
RANGES = {
    "reward_range": (0.0, SALE * (len(DEMAND) - 1)),
    "cost_range": [(0.0, DELIVERY + CRATE * (ORDERS - 1)), (0.0, float(SHELF))],
}
WEEKS, REPLICATES = 50_000, 4


def shop() -> op.CMDP:
    """The true model. A crate for which there is no room is sent back, but paid."""
    transitions = np.zeros((SHELF + 1, ORDERS, SHELF + 1))
    sales, kept = np.zeros((SHELF + 1, ORDERS)), np.zeros((SHELF + 1, ORDERS))
    for stock in range(SHELF + 1):
        for order in range(ORDERS):
            crates = min(stock + order, SHELF)
            for wanted, chance in enumerate(DEMAND):
                left = max(crates - wanted, 0)
                transitions[stock, order, left] += chance
                sales[stock, order] += chance * SALE * min(crates, wanted)
                kept[stock, order] += chance * left
    spent = np.array([0.0] + [DELIVERY + CRATE * order for order in range(1, ORDERS)])
    costs = [np.tile(spent, (SHELF + 1, 1)), kept]
    return op.CMDP.stationary(transitions, sales, costs, LIMITS, initial=3, horizon=DAYS, **RANGES)


def main() -> None:
    """Plans, learns, prints, draws."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("demo-output"), help="for the picture")
    output = arguments.parse_args().output

    model = shop()
    plan = op.solve(model)
    binding = int(plan.binding.sum())
    print(f"Known demand: sales of {plan.value:.1f} euros a week; {binding} of 2 limits bind.")
    more_money, more_room = plan.multipliers
    print(f"A euro more to spend earns {more_money:.2f}, room for a crate more {more_room:.2f}.")

    careful = op.policy_from_actions([1, 0, 0, 0, 0, 0], num_actions=ORDERS, horizon=DAYS)
    learner = op.OptPessMix(
        shape=model.shape,
        initial=model.initial,
        baseline=op.SafeBaseline.estimated(careful, cost_limit=LIMITS),
        knowledge=op.Knowledge(stationary=True),
        **RANGES,
    )
    run = op.simulate(model, learner, episodes=WEEKS, replicates=REPLICATES, seed=11, progress=False)
    sales, (spent, kept) = run.deployed_value[:, -1].mean(), run.deployed_cost_greatest.max(axis=(0, 1))
    print(
        f"OptPess-Mix in {REPLICATES} shops, {WEEKS:,} weeks each: sales of {sales:.1f} at last;",
        end=" ",
    )
    print(f"the careful policy has {run.baseline_value:.1f}.")
    print(f"Any week: at most {spent:.1f} of {LIMITS[0]:g} euros, {kept:.2f} of {LIMITS[1]:g} crates.")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "story-inventory.svg"
    costs = pictures({"OptPess-Mix": run})[0]  # the first picture shows costs against limits
    for axis, title, unit in zip(costs.figure.axes, TITLES, UNITS, strict=True):
        axis.set_title(title, loc="left")
        axis.set(ylabel=unit, xlabel="weeks")
    costs.save(picture)
    print(f"Picture: {picture}")


if __name__ == "__main__":
    main()
