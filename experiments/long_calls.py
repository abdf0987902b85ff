"""Calls that take from seconds to hours: each is prepared, then made by the function returned."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optpess as op

Call = Callable[[], object]
SILENT: dict[str, Any] = {"progress": False}


def dense(states: int, actions: int, horizon: int, constraints: int = 1) -> op.CMDP:
    """A stationary model whose rows have no zeros."""
    source = np.random.default_rng(0)
    kernel = source.random((states, actions, states))
    kernel /= kernel.sum(axis=2, keepdims=True)
    reward, costs = source.random((states, actions)), source.random((constraints, states, actions))
    limits = np.full(constraints, 0.4 * horizon)
    return op.CMDP.stationary(kernel, reward, costs, limits, 0, horizon=horizon)


def sparse(states: int, horizon: int, constraints: int = 1) -> op.CMDP:
    """A stationary model with four actions and five successors a row."""
    model = op.zoo.garnet(states, 4, horizon, successors=5, seed=1)
    if constraints == 1:
        return model
    costs = np.random.default_rng(5).random((constraints, states, 4))
    limits = np.full(constraints, 0.4 * horizon)
    return op.CMDP.stationary(
        model.transitions, model.stored_rewards(), costs, limits, 0, horizon=horizon
    )


def baseline(model: op.CMDP) -> op.SafeBaseline:
    """The policy of the least cost, as a baseline."""
    least = op.solve_least_cost(model)
    return op.SafeBaseline(least.policy, op.SafetyMargin(model.cost_limits[0], least.costs[0]))


def primal_dual(model: op.CMDP) -> op.OptPessPrimalDual:
    """OptPess-PrimalDual with as many episodes as there can be."""
    margin = op.SafetyMargin(model.cost_limits[0], op.solve_least_cost(model).costs[0])
    return op.OptPessPrimalDual(
        shape=model.shape,
        initial=model.initial,
        num_episodes=2**32 - 1,
        margin=margin,
        confidence=op.Scaled(0.01),
    )


def mix(model: op.CMDP) -> op.OptPessMix:
    """OptPess-Mix, told that the problem is stationary."""
    return op.OptPessMix(
        shape=model.shape,
        initial=model.initial,
        baseline=baseline(model),
        knowledge=op.Knowledge(stationary=True),
    )


def simulation(model: op.CMDP, learner: op.Learner, **given: Any) -> Call:
    """A simulation of more episodes than anybody waits for."""
    return lambda: op.simulate(model, learner, episodes=2**31, **given, **SILENT)


def simulate_pair() -> Call:
    """Many short episodes."""
    model = op.zoo.pair()
    return simulation(model, primal_dual(model))


def simulate_lanes() -> Call:
    """Eight replicates of it at once."""
    model = op.zoo.pair()
    return simulation(model, primal_dual(model), replicates=8)


def simulate_checkpoint() -> Call:
    """The same with a checkpoint, which is written when it is stopped."""
    model = op.zoo.pair()
    path = Path(tempfile.mkdtemp()) / "checkpoint"
    return simulation(model, primal_dual(model), replicates=8, checkpoint=path)


def simulate_long() -> Call:
    """Episodes of 500 steps."""
    model = sparse(200, 500)
    return simulation(model, primal_dual(model))


def simulate_mix() -> Call:
    """Plans of OptPess-Mix with 1,000 states."""
    model = sparse(1000, 10)
    return simulation(model, mix(model))


def simulate_dense() -> Call:
    """Judging and plans of OptPess-PrimalDual on a dense model of 1,000 states and 100 steps."""
    model = dense(1000, 4, 100)
    return simulation(model, primal_dual(model))


def simulate_audit() -> Call:
    """A run that is audited."""
    model = sparse(200, 20)
    return simulation(model, mix(model), audit=True)


def compare() -> Call:
    """Two learners, one after the other."""
    model = op.zoo.pair()
    learners = {"first": primal_dual(model), "second": primal_dual(model)}
    return lambda: op.compare(model, learners, episodes=2**31, **SILENT)


def rollout_pair() -> Call:
    """An environment in Python with many short episodes."""
    pair = op.zoo.problem("pair")
    learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial, baseline=pair.baseline)
    env = op.environments.as_gymnasium(pair.model)
    return lambda: op.rollout(learner, env, episodes=2**31, **SILENT)


def rollout_mix() -> Call:
    """Plans of OptPess-Mix with 1,000 states, live."""
    model = sparse(1000, 10)
    learner, env = mix(model), op.environments.as_gymnasium(model)
    return lambda: op.rollout(learner, env, episodes=2**31, **SILENT)


def live_mix() -> Call:
    """The same, driven by hand."""
    model = sparse(1000, 10)
    return lambda: by_hand(mix(model), model)


def by_hand(learner: op.Learner, model: op.CMDP) -> None:
    """Episodes that stay in the first state and earn nothing."""
    source = np.random.default_rng(0)
    states, actions, rewards, costs = op.sample(model, learner.next_policy().policy, 1, seed=1)
    while True:
        learner.observe(states[0], actions[0], rewards[0], costs[0, 0])
        policy = learner.next_policy().policy
        seed = int(source.integers(2**31))
        states, actions, rewards, costs = op.sample(model, policy, 1, seed=seed)


def solve_wide() -> Call:
    """100,000 states."""
    model = sparse(100_000, 100)
    return lambda: op.solve(model)


def solve_dense() -> Call:
    """Dense, 3,000 states, 400 steps."""
    model = dense(3000, 4, 400)
    return lambda: op.solve(model)


def solve_columns() -> Call:
    """Column generation with three limits and 10,000 states."""
    model = sparse(10_000, 50, 3)
    return lambda: op.solve(model, engine="columns")


def solve_highs() -> Call:
    """The occupancy linear program with two limits and 300 states."""
    model = sparse(300, 30, 2)
    return lambda: op.solve(model, engine="highs")


def solve_signals() -> Call:
    """Signals on a kernel of 100,000 states."""
    model = sparse(100_000, 100)
    reward, costs = model.stored_rewards(), model.stored_costs()
    return lambda: op.solve_signals(
        reward, costs, model.transitions, model.initial, model.cost_limits, horizon=100
    )


def frontier() -> Call:
    """All vertices of 1,000 states and 60 steps."""
    model = op.zoo.garnet(1_000, 5, 60, successors=5, seed=1)
    return lambda: op.frontier(model)


def backward_induction() -> Call:
    """100,000 states and 2,000 steps."""
    model = sparse(100_000, 2_000)
    reward = model.stored_rewards()
    return lambda: op.backward_induction(reward, model.transitions, horizon=2_000, as_actions=True)


def boxes(states: int, horizon: int) -> tuple[Any, ...]:
    """Signals and a box of kernels."""
    source = np.random.default_rng(0)
    shape = (horizon, states, 3)
    kernel = source.dirichlet(np.ones(states), size=shape)
    radius = np.full((*shape, states), 0.5 / states)
    initial = np.full(states, 1.0 / states)
    return source.random(shape), source.random(shape), kernel, radius, initial, 0.45 * horizon


def solve_extended() -> Call:
    """Extended inductions over boxes with 300 states."""
    given = boxes(300, 20)
    return lambda: op.solve_extended(*given)


def solve_extended_highs() -> Call:
    """The extended linear program with 25 states."""
    given = boxes(25, 8)
    return lambda: op.solve_extended(*given, engine="highs")


def sample() -> Call:
    """Many episodes of a known model."""
    model = sparse(1000, 100)
    policy = op.solve_least_cost(model).policy
    return lambda: op.sample(model, policy, 2_000_000)


def evaluate() -> Call:
    """A policy on a dense model of 3,000 states and 400 steps."""
    model = dense(3000, 4, 400)
    policy = np.full(model.shape, 0.25)
    return lambda: op.evaluate(policy, model.stored_rewards(), model.transitions, model.initial)


def forecast() -> Call:
    """The gate and the timing of OptPess-LP with 1,000 states."""
    model = sparse(1000, 50)
    learner = op.OptPessLP(
        shape=model.shape, initial=model.initial, num_episodes=2**32 - 1, baseline=baseline(model)
    )
    return lambda: op.forecast(model, learner)


def forecast_primal_dual() -> Call:
    """The timing of OptPess-PrimalDual with 1,000 dense states."""
    model = dense(1000, 4, 100)
    learner = primal_dual(model)
    return lambda: op.forecast(model, learner)


def study(problem: op.zoo.Problem) -> op.Learner:
    """The learner of a study."""
    return op.OptPessMix(
        shape=problem.model.shape, initial=problem.model.initial, baseline=problem.baseline
    )


def sweep() -> Call:
    """A study in a pool of processes of its own."""
    cells = op.Study({"ring": op.zoo.problem("ring")}, {"mix": study}, replicates=4, episodes=2**31)
    folder = tempfile.mkdtemp()
    return lambda: op.sweep(cells, folder, **SILENT)


CALLS: dict[str, Callable[[], Call]] = {
    "simulate, 2 states": simulate_pair,
    "simulate, 8 replicates": simulate_lanes,
    "simulate, with a checkpoint": simulate_checkpoint,
    "simulate, H = 500": simulate_long,
    "simulate, OptPess-Mix, 1,000 states": simulate_mix,
    "simulate, dense, 1,000 states, H = 100": simulate_dense,
    "simulate, audited": simulate_audit,
    "compare": compare,
    "rollout": rollout_pair,
    "rollout, OptPess-Mix, 1,000 states": rollout_mix,
    "next_policy and observe by hand, 1,000 states": live_mix,
    "solve, 100,000 states": solve_wide,
    "solve, dense, 3,000 states, H = 400": solve_dense,
    "solve, columns": solve_columns,
    "solve, highs": solve_highs,
    "solve_signals": solve_signals,
    "frontier": frontier,
    "backward_induction": backward_induction,
    "solve_extended": solve_extended,
    "solve_extended, highs": solve_extended_highs,
    "sample": sample,
    "evaluate, dense, 3,000 states, H = 400": evaluate,
    "forecast, OptPess-LP, 1,000 states": forecast,
    "forecast, OptPess-PrimalDual, dense, 1,000 states": forecast_primal_dual,
    "sweep": sweep,
}
