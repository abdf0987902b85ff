"""Models that are the same at every step of a long horizon: the search begins at a guessed multiplier,
and ends where it would end without the guess.
"""

import numpy as np
import optpess as op
import pytest

HORIZON = 60


def random_model(seed, share=0.5, horizon=HORIZON, states=12, actions=5, mixing=True):
    """A model, and the same with its signals stored for every step, for which nothing is guessed."""
    random = np.random.default_rng(seed)
    transitions = random.dirichlet(np.full(states, 0.3), (states, actions))
    if not mixing:  # the first half of the states is never left, and an episode begins there
        half = states // 2
        transitions[:half, :, half:] = 0.0
        transitions[:half] += 1e-9
        transitions[:half, :, half:] = 0.0
        transitions /= transitions.sum(axis=-1, keepdims=True)
    rewards, costs = random.random((2, states, actions))
    costs[states // 2 :] *= 0.01 if not mixing else 1.0
    given = {"cost_limit": 1.0, "initial": 0}
    short = op.CMDP.stationary(transitions, rewards, costs, horizon=horizon, **given)
    each_step = (
        np.broadcast_to(table, (horizon, *table.shape)) for table in (transitions, rewards, costs)
    )
    long = op.CMDP(*each_step, **given)
    least, most = op.solve_least_cost(short).costs[0], op.solve_unconstrained(short).costs[0]
    return short, long, float(least + share * (most - least))


@pytest.mark.parametrize("mixing", [True, False])
@pytest.mark.parametrize("share", [1e-6, 0.05, 0.5, 0.95, 1 - 1e-6])
@pytest.mark.parametrize("seed", range(4))
def test_a_guess_changes_no_answer(seed, share, mixing):
    guessed, plain, limit = random_model(seed, share, mixing=mixing)
    found, expected = (op.solve(model, cost_limit=limit) for model in (guessed, plain))
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.costs[0] == pytest.approx(limit, rel=1e-12)
    assert found.costs[0] <= limit
    assert found.multipliers == pytest.approx(expected.multipliers, rel=1e-9)
    assert found.certificate.gap == pytest.approx(0.0, abs=1e-11)
    near = op.solve(guessed, cost_limit=limit, tolerance=1e-3)
    assert expected.value - 1e-3 - 1e-12 <= near.value <= expected.value + 1e-12
    assert near.costs[0] <= limit
    assert near.certificate.gap <= 1e-3 + 1e-12


def test_limits_outside_of_the_curve():
    guessed, plain, limit = random_model(1, share=1.5)
    found, expected = (op.solve(model, cost_limit=limit) for model in (guessed, plain))
    assert found.value == expected.value
    assert found.multipliers[0] == expected.multipliers[0] == 0.0
    too_low = random_model(1, share=-1e-6)[2]
    for model in (guessed, plain):
        with pytest.raises(op.InfeasibleError) as refused:
            op.solve(model, cost_limit=too_low)
        assert refused.value.least_cost == pytest.approx(op.solve_least_cost(model).costs[0], rel=1e-12)


def test_a_start_far_from_everything_else():
    """A chain of 80 steps to the states in which costs arise: a tenth of the steps sees none of them."""
    states, horizon = 41, 80
    transitions = np.zeros((states, 2, states))
    for state in range(states - 1):
        transitions[state, :, state + 1] = 1.0
    transitions[-1, :, -1] = 1.0
    rewards, costs = np.zeros((2, states, 2))
    rewards[-1, 1], costs[-1, 1] = 1.0, 1.0
    rewards[-1, 0] = 0.25
    model = op.CMDP.stationary(transitions, rewards, costs, 10.0, 0, horizon=horizon)
    plan = op.solve(model)
    steps = horizon - (states - 1)
    assert plan.value == pytest.approx(10.0 + 0.25 * (steps - 10), rel=1e-12)
    assert plan.multipliers[0] == pytest.approx(0.75, rel=1e-12)


def test_a_guess_saves_inductions():
    model = op.zoo.garnet(200, 6, 100, successors=5, seed=3)
    limit = 0.9 * op.solve_least_cost(model).costs[0] + 0.1 * op.solve_unconstrained(model).costs[0]
    near = {"cost_limit": limit, "tolerance": 1e-6}
    rewards = np.broadcast_to(model.stored_rewards(), model.shape)
    costs = np.broadcast_to(model.costs[0][:1], model.shape)
    rest = (model.transitions, model.initial, limit)
    plain = op.solve_signals(
        np.ascontiguousarray(rewards), np.ascontiguousarray(costs), *rest, tolerance=1e-6
    )
    found = op.solve(model, **near)
    assert found.value == pytest.approx(plain.value, abs=2e-6)
    assert found.inductions < plain.inductions
