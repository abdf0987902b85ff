"""The problems, safe policies and learners of the experiment of docs/mixing-results.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import optpess as op

DELTA, COVERAGE_DELTA, SEED = 0.01, 0.1, 2021
SOPS_GROWTH = 0.25


@dataclass(frozen=True)
class Case:
    """One row: a problem, what is known of it, and how long it is played."""

    problem: str
    known: tuple[str, ...]
    episodes: int
    replicates: int
    bar: int | None = None
    """The largest median regret asked for."""
    sops: int = 0
    """Replicates of S-OPS."""
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The problem, its arguments, what is known, and K."""
        words = ", ".join(
            f"{key} {value}" if value is not True else key for key, value in self.arguments
        )
        title = f"{self.problem} ({words})" if words else self.problem
        return f"{title}; {' and '.join(self.known) or 'nothing'} known; K = {self.episodes:.0e}"


STATIONARY, SUPPORT = ("stationary",), ("stationary", "support")


def garnet(states: int, actions: int, horizon: int) -> tuple[tuple[str, Any], ...]:
    """The arguments of a garnet."""
    return (("num_states", states), ("num_actions", actions), ("horizon", horizon))


CASES = [
    Case("ring", STATIONARY, 10**5, 1000, 250, 3),
    Case("ring", (), 10**5, 1000, 1200, 3),
    Case("media", STATIONARY, 10**5, 200, 7000, 3),
    Case("media", SUPPORT, 10**5, 200, 6000, 3),
    Case("inventory", STATIONARY, 10**6, 20, 80_000, 3),
    Case("pair", (), 10**7, 9, 45_000, 3),
    Case("cliff_grid", STATIONARY, 10**5, 200, 90_000, 3),
    Case("cliff_grid", SUPPORT, 10**5, 200, 40_000, 3),
    Case("garnet", STATIONARY, 10**5, 9, 8000, 3, garnet(20, 4, 10)),
    Case("garnet", STATIONARY, 10**5, 5, 25_000, 3, garnet(50, 4, 10)),
    Case("garnet", STATIONARY, 10**5, 3, 75_000, 1, garnet(100, 5, 20)),
    # As little known as S-OPS knows.
    Case("media", (), 10**5, 20, None, 3),
    Case("inventory", (), 10**6, 9, None, 3),
    Case("cliff_grid", (), 10**5, 9, None, 3),
    Case("garnet", (), 10**5, 5, None, 3, garnet(20, 4, 10)),
    Case("pair", (), 10**5, 1000, None, 3),
    Case("inventory", STATIONARY, 10**5, 200, None, 3),
    Case("job_scheduling", (), 10**5, 200, None, 3),
    *(Case("random", STATIONARY, 10**5, 200, None, 3, (("seed", seed),)) for seed in range(1, 11)),
]
DRAWN = ("ring", "media", "inventory", "cliff_grid")


def random_problem(seed: int) -> op.zoo.Problem:
    """A dense random problem: 5 to 8 states, 3 actions, 4 to 6 steps, Dirichlet(1) rows, uniform
    signals. Limit and safe policy are chosen as for the zoo's garnets.
    """
    rng = np.random.default_rng(seed)
    states, horizon = int(rng.integers(5, 9)), int(rng.integers(4, 7))
    rows = rng.dirichlet(np.ones(states), size=(states, 3))
    rewards, costs = rng.random((2, states, 3))
    initial = np.eye(states)[0]

    def model(limit: float) -> op.CMDP:
        return op.CMDP.stationary(rows, rewards, costs, limit, initial, horizon=horizon)

    loose = model(float(horizon))
    least = float(op.solve_least_cost(loose).costs[0])
    limit = (least + float(op.solve_unconstrained(loose).costs[0])) / 2
    safe = least + 0.2 * (limit - least)
    found = model(limit)
    policy = op.solve(found, cost_limit=safe).policy
    cost = max(safe, op.evaluate(policy, found.costs[0], found.transitions, found.initial))
    return op.zoo.Problem("random", found, np.array(policy), np.array([cost]))


def made(case: Case) -> op.zoo.Problem:
    """The problem of a row."""
    if case.problem == "random":
        return random_problem(**dict(case.arguments))
    return op.zoo.problem(case.problem, **dict(case.arguments))


def baseline_of(problem: op.zoo.Problem) -> op.SafeBaseline:
    """The safe policy with one margin for each constraint."""
    margins = [
        op.SafetyMargin(float(limit), float(cost))
        for limit, cost in zip(problem.model.cost_limits, problem.safe_costs, strict=True)
    ]
    return op.SafeBaseline(problem.safe_policy, margins if len(margins) > 1 else margins[0])


def mix(problem: op.zoo.Problem, known: tuple[str, ...] = (), **more: Any) -> op.OptPessMix:
    """OptPess-Mix in its default settings, apart from the failure probability."""
    model = problem.model
    support = model.transitions.to_array() > 0 if "support" in known else None
    arguments: dict[str, Any] = {
        "baseline": baseline_of(problem),
        "failure_probability": DELTA,
        "knowledge": op.Knowledge(stationary="stationary" in known, support=support),
    }
    return op.OptPessMix(shape=model.shape, initial=model.initial, **(arguments | more))


def sops(problem: op.zoo.Problem, num_episodes: int) -> op.SOPS:
    """S-OPS at its own constants. It takes no knowledge."""
    return op.SOPS(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=baseline_of(problem),
        num_episodes=num_episodes,
        failure_probability=DELTA,
        replan_growth=SOPS_GROWTH,
    )


def gap(problem: op.zoo.Problem) -> float:
    """The regret of one episode of the safe policy."""
    model = problem.model
    value = op.evaluate(problem.safe_policy, model.rewards, model.transitions, model.initial)
    return float(op.solve(model).value - value)


@dataclass(frozen=True)
class Adversary:
    """A small problem on which confidence sets are put to the test."""

    model: op.CMDP
    known: tuple[str, ...] = ()
    variance_proxy: float | None = None
    episodes: int = 500

    def learner(self, delta: float, confidence: Any) -> op.OptPessMix:
        """From the policy that always takes action 0; its cost is told exactly."""
        policy = np.zeros(self.model.shape)
        policy[..., 0] = 1.0
        model = self.model
        cost = op.evaluate(policy, model.costs[0], model.transitions, model.initial)
        problem = op.zoo.Problem("adversary", model, policy, np.array([cost]))
        return mix(
            problem,
            self.known,
            failure_probability=delta,
            confidence=confidence,
            variance_proxy=self.variance_proxy,
        )


def small(
    rows: Any, rewards: Any, costs: Any, limit: float, initial: Any, horizon: int, **more: Any
) -> op.CMDP:
    """A stationary model with one limit."""
    return op.CMDP.stationary(rows, rewards, costs, limit, initial, horizon=horizon, **more)


def adversaries() -> dict[str, Adversary]:
    """The problems by name."""
    stay, move = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    mixed = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]])
    rewards, costs = [[0.1, 0.6], [0.2, 0.9]], [[0.1, 0.5], [0.2, 0.7]]
    rare = np.array(
        [
            [[0.99, 0.005, 0.005], [0.98, 0.01, 0.01]],
            [[0.995, 0.0, 0.005], [0.97, 0.02, 0.01]],
            [[1.0, 0.0, 0.0], [0.95, 0.0, 0.05]],
        ]
    )
    return {
        "rare successors": Adversary(
            small(rare, [[0.1, 0.5]] * 3, [[0.05, 0.2], [0.3, 0.5], [0.9, 1.0]], 0.6, [1, 0, 0], 3)
        ),
        "deterministic rows": Adversary(
            small(np.stack([stay, move], axis=1), rewards, [[0.0, 1.0], [0.0, 1.0]], 1.5, [1, 0], 3)
        ),
        "two absorbing starts": Adversary(
            small(np.stack([stay, stay], axis=1), rewards, costs, 0.9, [0.5, 0.5], 2)
        ),
        "ties": Adversary(small(mixed, [[0.5, 0.5]] * 2, [[0.4, 0.4]] * 2, 1.0, [1, 0], 2)),
        "heavy noise": Adversary(
            small(mixed, rewards, costs, 0.9, [1, 0], 2, noise=op.Gaussian(0.5**0.5 - 1e-12)),
            variance_proxy=0.5,
        ),
        "long horizon": Adversary(small(mixed, rewards, costs, 12.0, [1, 0], 30), STATIONARY),
        "one state": Adversary(
            small(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.3, 0.5]], 0.5, [1], 1), episodes=2000
        ),
    }
