"""OptPess-Mix on FrozenLake and CliffWalking: rollouts in the environments, simulations on their tables.

Writes experiments/record/gymnasium.json, the tables of docs/gymnasium.md and its picture. Run by
`make gymnasium`; takes about six minutes on two cores. `--draw` runs nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import optpess as op
from figures import save_figure
from gymnasium_page import WINDOWS, draw, tables, write_page
from pages import RECORD
from scipy.stats import mannwhitneyu

FOUND = RECORD / "gymnasium.json"
LEFT, DOWN, RIGHT, UP = range(4)  # of FrozenLake
NORTH, EAST, SOUTH, WEST = range(4)  # of CliffWalking


# Costs are functions of (state, action, next state, reward, terminated).


def falls_into_a_hole(*outcome: Any) -> float:
    """The cost of FrozenLake."""
    *_, reward, terminated = outcome
    return float(terminated and reward == 0)


def steps_into_the_cliff(*outcome: Any) -> float:
    """The cost of CliffWalking."""
    *_, reward, _ = outcome
    return float(reward == -100)


@dataclass(frozen=True)
class Problem:
    """An environment, what costs in it, and what the learner is told."""

    name: str
    environment: str
    cost: Callable[..., float]
    horizon: int
    cost_limit: float
    safe_cost: float
    reward_range: tuple[float, float]
    start: int
    actions: Callable[[int], int]
    """The action of the safe baseline in a state."""
    episodes: int
    seeds: int

    def env(self) -> gymnasium.Env:
        """The real environment, without a time limit and with the cost in `info`."""
        return WithCost(gymnasium.make(self.environment, max_episode_steps=-1), self.cost)

    def model(self, noise: op.Noise | None = None) -> op.CMDP:
        """The tables."""
        return op.environments.from_gymnasium(
            gymnasium.make(self.environment),
            cost=self.cost,
            horizon=self.horizon,
            cost_limit=self.cost_limit,
            reward_range=self.reward_range,
            noise=noise,
        )

    def baseline(self) -> np.ndarray:
        """The policy of the baseline, [H, S, A]; in the absorbing end any action will do."""
        num_states = op.environments.sizes(self.env(), self.horizon).num_states
        row = [self.actions(state) for state in range(num_states - 1)] + [0]
        return op.policy_from_actions(np.tile(row, (self.horizon, 1)), num_actions=4)

    def learner(self, seed: int) -> op.OptPessMix:
        """It knows sizes, start, limit, the baseline with its cost, and that steps are alike."""
        margin = op.SafetyMargin(cost_limit=self.cost_limit, safe_cost=self.safe_cost)
        return op.OptPessMix(
            shape=op.environments.sizes(self.env(), self.horizon),
            initial=self.start,
            baseline=op.SafeBaseline(self.baseline(), margin),
            knowledge=op.Knowledge(stationary=True),
            reward_range=self.reward_range,
            seed=seed,
        )


class WithCost(gymnasium.Wrapper):
    """Puts the cost of a step into `info`."""

    def __init__(self, env: gymnasium.Env, cost: Callable[..., float]) -> None:
        super().__init__(env)
        self._cost = cost

    def step(self, action: int) -> tuple[Any, ...]:
        """The step, with its cost."""
        state, reward, terminated, truncated, info = self.env.step(action)
        info["cost"] = self._cost(-1, action, state, reward, terminated)
        return state, reward, terminated, truncated, info


class Judged(gymnasium.Wrapper):
    """Evaluates what is deployed, exactly on the tables, in the first step of every episode."""

    def __init__(self, env: gymnasium.Env, learner: op.OptPessMix, model: op.CMDP) -> None:
        super().__init__(env)
        self._learner, self._model = learner, model
        self._members: dict[int, tuple[float, float]] = {}
        self._mixtures: dict[int, tuple[float, float]] = {}
        self._first = False
        self.values: list[float] = []
        self.costs: list[float] = []

    def reset(self, **options: Any) -> tuple[Any, ...]:
        """The first state."""
        self._first = True
        return self.env.reset(**options)

    def step(self, action: int) -> tuple[Any, ...]:
        """The step; the first one of an episode is judged."""
        if self._first:
            self._first = False
            value, cost = self._judge()
            self.values.append(value)
            self.costs.append(cost)
        return self.env.step(action)

    def _judge(self) -> tuple[float, float]:
        mixture = self._learner.pending.mixture
        if mixture.number not in self._mixtures:
            totals = np.zeros(2)
            for member in mixture.members:
                if member.number not in self._members:
                    self._members[member.number] = exact(self._model, member.policy)
                totals += member.weight * np.array(self._members[member.number])
            self._mixtures[mixture.number] = (float(totals[0]), float(totals[1]))
        return self._mixtures[mixture.number]


def exact(model: op.CMDP, policy: np.ndarray) -> tuple[float, float]:
    """The expected return and cost of a policy on the tables."""
    signals = (model.rewards, model.costs[0])
    value, cost = (op.evaluate(policy, each, model.transitions, model.initial) for each in signals)
    return float(value), float(cost)


def careful_on_ice(state: int) -> int:
    """Where one of two moves is less likely to end in a hole in the next step, that one; else down."""
    rows = [
        [DOWN, UP, DOWN, UP],
        [LEFT, DOWN, RIGHT, DOWN],
        [UP, DOWN, LEFT, DOWN],
        [DOWN, RIGHT, DOWN, DOWN],
    ]
    return rows[state // 4][state % 4]


def far_from_the_cliff(state: int) -> int:
    """Up to the top row, along it, and down the last column."""
    row, column = divmod(state, 12)
    return SOUTH if column == 11 else NORTH if row > 0 else EAST


def far_from_the_cliff_on_ice(state: int) -> int:
    """The same; it leaves the start to the west, where a slip leads up or nowhere."""
    return WEST if state == 36 else far_from_the_cliff(state)


PROBLEMS = [
    Problem(
        "FrozenLake, slippery",
        "FrozenLake-v1",
        falls_into_a_hole,
        horizon=20,
        cost_limit=0.5,
        safe_cost=0.21,
        reward_range=(0, 1),
        start=0,
        actions=careful_on_ice,
        episodes=300_000,
        seeds=10,
    ),
    Problem(
        "CliffWalking",
        "CliffWalking-v1",
        steps_into_the_cliff,
        horizon=20,
        cost_limit=1.0,
        safe_cost=0.0,
        reward_range=(-100, 0),
        start=36,
        actions=far_from_the_cliff,
        episodes=20_000,
        seeds=10,
    ),
    Problem(
        "CliffWalking, slippery",
        "CliffWalkingSlippery-v1",
        steps_into_the_cliff,
        horizon=60,
        cost_limit=2.0,
        safe_cost=0.0,
        reward_range=(-100, 0),
        start=36,
        actions=far_from_the_cliff_on_ice,
        episodes=60_000,
        seeds=4,
    ),
]


def windows(values: np.ndarray) -> list[float]:
    """The mean of each window."""
    return [float(part.mean()) for part in np.array_split(values, WINDOWS)]


def rolled(task: tuple[int, int]) -> dict[str, Any]:
    """One rollout in a real environment."""
    problem, seed = PROBLEMS[task[0]], task[1]
    learner = problem.learner(seed)
    env = Judged(problem.env(), learner, problem.model())
    start = time.process_time()
    result = op.rollout(learner, env, episodes=problem.episodes, seed=seed, progress=False)
    return {
        "return": windows(result.returns),
        "cost": windows(result.costs[:, 0]),
        "on baseline": windows(result.on_baseline),
        "expected return": windows(np.array(env.values)),
        "expected cost": windows(np.array(env.costs)),
        "largest expected cost": max(env.costs),
        "us an episode": (time.process_time() - start) / problem.episodes * 1e6,
    }


def simulated(task: tuple[int, int, str]) -> dict[str, Any]:
    """One simulation on the tables, with the noise of this name."""
    problem, seed = PROBLEMS[task[0]], task[1]
    model = problem.model(noise={"default": None, "means": op.Deterministic()}[task[2]])
    start = time.process_time()
    run = op.simulate(
        model,
        problem.learner(0),
        episodes=problem.episodes,
        replicates=[seed],
        seed=1,
        trace=True,
        progress=False,
    )
    seconds = time.process_time() - start
    trace = run.traces[0]
    return {
        "return": windows(trace.rewards.sum(axis=1)),
        "cost": windows(trace.costs.sum(axis=1)),
        "on baseline": windows(trace.on_baseline),
        "expected return": windows(trace.deployed_value),
        "expected cost": windows(trace.deployed_cost),
        "largest expected cost": float(trace.deployed_cost.max()),
        "us an episode": seconds / problem.episodes * 1e6,
        "noise": repr(model.noise),
    }


# What is compared between rollouts and simulations, each as the mean over all episodes of a run.
COMPARED = ("return", "cost", "on baseline", "expected return", "expected cost")
SIMULATIONS = 12


def of_problem(number: int, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """All runs of a problem, and what is known of it."""
    problem = PROBLEMS[number]
    model = problem.model()
    value, cost = exact(model, problem.baseline())
    plan = op.solve(model)
    assert cost <= problem.safe_cost
    groups = {"rollout": list(pool.map(rolled, [(number, seed) for seed in range(problem.seeds)]))}
    # Bernoulli draws in [-100, 0] are far from what the environment shows; the means are too.
    bernoulli = isinstance(model.noise, op.Bernoulli)
    for noise in ("default", "means") if bernoulli and problem.reward_range != (0, 1) else ("default",):
        tasks = [(number, seed, noise) for seed in range(SIMULATIONS)]
        runs = list(pool.map(simulated, tasks))
        groups[f"simulate, {runs[0]['noise']}"] = runs
    return {
        "environment": problem.environment,
        "horizon": problem.horizon,
        "cost limit": problem.cost_limit,
        "safe cost": problem.safe_cost,
        "reward range": problem.reward_range,
        "episodes": problem.episodes,
        "baseline": {"return": value, "cost": cost},
        "optimum": {"return": float(plan.value), "cost": float(plan.costs[0])},
        "groups": groups,
        "p": {
            name: {each: p_value(groups["rollout"], runs, each) for each in COMPARED}
            for name, runs in groups.items()
            if name != "rollout"
        },
    }


def p_value(first: list[dict[str, Any]], second: list[dict[str, Any]], what: str) -> float:
    """Of the test of Mann and Whitney, two-sided, that the means of the runs have one distribution."""
    means = [[float(np.mean(run[what])) for run in runs] for runs in (first, second)]
    return float(mannwhitneyu(*means, alternative="two-sided").pvalue)


def found() -> dict[str, Any]:
    """The record of all problems. No run may have deployed anything above the limit."""
    with ProcessPoolExecutor() as pool:
        problems = {each.name: of_problem(number, pool) for number, each in enumerate(PROBLEMS)}
    for name, each in problems.items():
        for group, runs in each["groups"].items():
            largest = max(run["largest expected cost"] for run in runs)
            assert largest <= each["cost limit"] + 1e-9, f"{name}, {group}: {largest} is above the limit"
    return {"versions": {"gymnasium": gymnasium.__version__}, "problems": problems}


def main() -> None:
    """Runs everything and writes what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="only write page and picture")
    if not parser.parse_args().draw:
        FOUND.write_text(json.dumps(found(), indent=1) + "\n", encoding="utf-8")
    record = json.loads(FOUND.read_text(encoding="utf-8"))
    write_page(record)
    save_figure(draw(record), "gymnasium")
    print(tables(record))


if __name__ == "__main__":
    main()
