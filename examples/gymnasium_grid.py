"""Gymnasium's CliffWalking, learned live by a walker who may fall every other walk and does not.

The walker starts beside a cliff and wants to be at the other end soon: each step earns -1, a step over
the edge -100. A fall is also the cost; 0.5 an episode are allowed in expectation. The walker knows the
way along the top row, as far from the edge as possible, and nothing of the rest of the map. Needs the
extra `gym`. Run it with `python examples/gymnasium_grid.py`; takes seconds and writes a picture.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import optpess as op
from optpess.plot import Picture

try:
    import gymnasium
except ImportError:
    print('This example needs Gymnasium: pip install "optpess[gym]"')
    raise SystemExit from None

HORIZON, START, LIMIT, WALKS = 20, 36, 0.5, 20_000
UP, RIGHT, DOWN, LEFT = range(4)
REWARDS = (-100.0, 0.0)


class WithFalls(gymnasium.Wrapper):
    """Reports a fall as a cost of 1."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The step, with its cost in `info`."""
        state, reward, terminated, truncated, info = self.env.step(action)
        return state, reward, terminated, truncated, {**info, "cost": float(reward == -100)}


def along_the_top(state: int) -> int:
    """Up to the first of four rows, right to the last of twelve columns, down to the goal."""
    row, column = divmod(state, 12)
    if column == 11:
        return DOWN
    return RIGHT if row == 0 else UP


def main() -> None:
    """Checks, walks, prints, draws."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("demo-output"), help="for the picture")
    output = arguments.parse_args().output

    env = WithFalls(gymnasium.make("CliffWalking-v1", max_episode_steps=-1))
    print(op.environments.check(env, horizon=HORIZON, reward_range=REWARDS))
    shape = op.environments.sizes(env, horizon=HORIZON)
    row = [along_the_top(state) for state in range(shape.num_states)]  # the last state is the end
    baseline = op.SafeBaseline(
        op.policy_from_actions(row, num_actions=4, horizon=HORIZON),
        op.SafetyMargin(cost_limit=LIMIT, safe_cost=0.0),
    )
    learner = op.OptPessMix(
        shape=shape,
        initial=START,
        baseline=baseline,
        knowledge=op.Knowledge(stationary=True),
        reward_range=REWARDS,
    )
    walks = op.rollout(learner, env, episodes=WALKS, progress=False)
    for name, part in (("First", slice(1000)), ("Last", slice(-1000, None))):
        steps, falls = walks.lengths[part].mean(), walks.costs[part].mean()
        print(f"{name} 1,000 walks: {steps:.1f} steps, {falls:.3f} falls each.")
    print(f"{learner.progress}.")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "story-grid.svg"
    alt = "Falls stay near 0, far below the limit; the return rises from -17 to -13."
    Picture("story-grid", "Beside a cliff", caption="", alt=alt, figure=walks.plot()).save(picture)
    print(f"Picture: {picture}")


if __name__ == "__main__":
    main()
