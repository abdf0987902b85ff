"""A problem small enough to do by hand, computed exactly and checked against the fractions.

Run it with `python examples/by_hand.py`.
"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import optpess as op

WIDTH = 78


def title(text: str) -> None:
    """Starts a section."""
    print(f"\n{text}\n{'-' * min(len(text), WIDTH)}")


def check(what: str, found: float, expected: float | Fraction, source: str) -> None:
    """Prints a computed number beside what it must be; stops if they differ."""
    good = abs(found - float(expected)) < 1e-12
    print(f"  {what:<36} {found:>9.6f}   {'=' if good else '!='} {float(expected):.6f}   {source}")
    if not good:
        raise SystemExit(f"{what}: {found} is not {expected}")


def always(action: int, model: op.CMDP) -> np.ndarray:
    """The policy that takes one action everywhere, [H, S, A]."""
    policy = np.zeros(model.shape)
    policy[..., action] = 1.0
    return policy


def value(policy: np.ndarray, signal: np.ndarray, model: op.CMDP) -> float:
    """The expected sum of a signal over an episode."""
    return op.evaluate(policy, signal, model.transitions, model.initial)


def introduce(model: op.CMDP) -> None:
    """Shows the model."""
    title("The problem")
    horizon, states, actions = model.shape
    print(f"  {states} states, {actions} actions, {horizon} steps; start uniform.")
    print(f"  Maximise the expected reward; expected cost at most {model.cost_limits[0]:g}.")
    kernel = model.transitions.to_array()
    print("  state  action   to state 1   reward   cost")
    for state in range(states):
        for action in range(actions):
            print(
                f"  {state:>5}  {action:>6}   {kernel[state, action, 1]:>10.2f}"
                f"   {model.rewards[0, state, action]:>6.2f}   {model.costs[0, 0, state, action]:>4.2f}"
            )


def evaluate_by_hand(model: op.CMDP) -> None:
    """Compares values with fractions."""
    title("Exact values, against fractions worked out by hand")
    safe, bold = always(0, model), always(1, model)
    costs = model.costs[0]
    # First action: half of the mass moves 0 -> 1 with 1/10, the other half stays in 1 with 3/10.
    in_second = Fraction(1, 2) * Fraction(1, 10) + Fraction(1, 2) * Fraction(3, 10)
    reward = Fraction(3, 20) + (1 - in_second) * Fraction(1, 10) + in_second * Fraction(1, 5)
    cost = Fraction(3, 40) + (1 - in_second) * Fraction(1, 20) + in_second * Fraction(1, 10)
    check("always the first action: reward", value(safe, model.rewards, model), reward, f"{reward}")
    check("always the first action: cost", value(safe, costs, model), cost, f"{cost}")
    in_second = Fraction(1, 2) * Fraction(6, 10) + Fraction(1, 2) * Fraction(8, 10)
    reward = Fraction(7, 10) + (1 - in_second) * Fraction(1, 2) + in_second * Fraction(9, 10)
    check("always the second: reward", value(bold, model.rewards, model), reward, f"{reward}")
    _, values = op.backward_induction(model.rewards, model.transitions)
    best = float(model.initial @ values[0])
    check("best reward without the limit", best, 1.48, "the second is best ...")
    print(f"  ... but it costs {value(bold, costs, model):.3f}, more than twice what is allowed.")


def show_occupancy(model: op.CMDP) -> None:
    """Shows where a policy spends its time."""
    title("Occupancy: where 'always the second action' spends its time")
    bold = always(1, model)
    visits = op.occupancy(bold, model.transitions, model.initial)
    for step, masses in enumerate(visits):
        bars = "   ".join(
            f"state {state} {'#' * round(20 * mass):<20} {mass:.2f}"
            for state, mass in enumerate(masses.sum(axis=1))
        )
        print(f"  step {step}:  {bars}")
    total = float((visits * model.rewards).sum())
    check("occupancy times reward", total, value(bold, model.rewards, model), "the value, again")


def mix(model: op.CMDP) -> None:
    """Meets the limit exactly by mixing two policies."""
    title("Between the two: one policy drawn per episode, as one Markov policy")
    safe, bold = always(0, model), always(1, model)
    costs = model.costs[0]
    low, high = value(safe, costs, model), value(bold, costs, model)
    weight = (model.cost_limits[0] - low) / (high - low)
    mixed = op.mix_policies([safe, bold], [1 - weight, weight], model.transitions, model.initial)
    rewards = [value(policy, model.rewards, model) for policy in (safe, bold)]
    print(f"  With weight {weight:.4f} on the second policy the limit is met exactly:")
    check("cost of the Markov policy", value(mixed, costs, model), 0.6, "the limit")
    drawn = (1 - weight) * rewards[0] + weight * rewards[1]
    check("its reward", value(mixed, model.rewards, model), drawn, "the average of the two")
    print("  It randomises differently at each step and state, since who is where differs:")
    for step, rows in enumerate(mixed):
        chances = ", ".join(f"{row[1]:.4f} in state {state}" for state, row in enumerate(rows))
        print(f"    step {step}: second action with probability {chances}")


def compare_models(model: op.CMDP) -> None:
    """Explains a change of value by the change of the model."""
    title("Two models, one policy: the value-difference identity")
    policy = np.full(model.shape, 0.5)
    kernel = model.transitions.to_array()
    other = 0.8 * kernel + 0.1  # every row pulled towards the middle
    direct = op.evaluate(policy, model.rewards, other, model.initial) - value(
        policy, model.rewards, model
    )
    for form in ("first", "second"):
        change = op.value_difference(
            policy, model.rewards, kernel, model.rewards, other, model.initial, expectation=form
        )
        check(f"expectation under the {form} model", change, direct, "difference of the values")


def main() -> None:
    """Runs everything."""
    start = time.perf_counter()
    model = op.zoo.pair()
    introduce(model)
    evaluate_by_hand(model)
    show_occupancy(model)
    mix(model)
    compare_models(model)
    print(f"\nAll checks passed in {time.perf_counter() - start:.2f} s.")


if __name__ == "__main__":
    main()
