"""A model in the user's units and its hand-scaled twin have the same plans, with mapped values."""

import numpy as np
import optpess as op
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st


@st.composite
def problems(draw):
    """Arguments of `CMDP.stationary` in the unit interval, a range of rewards and one of each cost."""
    num_states, num_actions = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    horizon, num_constraints = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = st.tuples(st.integers(-50, 50), st.integers(1, 100))
    ranges = [draw(ends) for _ in range(1 + num_constraints)]
    reward_range, *cost_ranges = [(low / 4, low / 4 + width / 8) for low, width in ranges]
    pairs = (num_states, num_actions)
    unit = {
        "transitions": rng.dirichlet(np.ones(num_states), pairs),
        "rewards": rng.random(pairs),
        "costs": rng.random((num_constraints, *pairs)),
        "cost_limit": rng.uniform(0.2, 0.9, num_constraints) * horizon,
        "initial": rng.dirichlet(np.ones(num_states)),
        "horizon": horizon,
    }
    return unit, reward_range, cost_ranges


def scaled(unit, reward_range, cost_ranges):
    """The model in units whose core is `unit`, up to rounding."""
    lows, highs = np.array(cost_ranges).T
    axes = (slice(None), None, None)
    changes = {
        "rewards": reward_range[0] + (reward_range[1] - reward_range[0]) * unit["rewards"],
        "costs": (lows[axes] + (highs - lows)[axes] * unit["costs"]).clip(lows[axes], highs[axes]),
        "cost_limit": unit["horizon"] * lows + (highs - lows) * unit["cost_limit"],
    }
    changes["rewards"] = changes["rewards"].clip(*reward_range)
    return op.CMDP.stationary(**unit | changes, reward_range=reward_range, cost_range=cost_ranges)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([None, "highs", "columns"]))
def test_plans_agree_and_values_are_mapped(problem, engine):
    unit, reward_range, cost_ranges = problem
    model, twin = scaled(*problem), op.CMDP.stationary(**unit)
    horizon, width = unit["horizon"], reward_range[1] - reward_range[0]
    lows, highs = np.array(cost_ranges).T
    try:
        expected = op.solve(twin, engine)
    except op.InfeasibleError:
        with pytest.raises(op.InfeasibleError):
            op.solve(model, engine, cost_limit=model.cost_limits - 1e-9 * (highs - lows))
        return
    slack = twin.cost_limits - [op.solve_least_cost(twin, m).costs[m] for m in range(len(lows))]
    assume((slack > 1e-9).all())  # at the least attainable cost, rounding decides feasibility
    plan = op.solve(model, engine)
    value = horizon * reward_range[0] + width * expected.value
    assert plan.value == pytest.approx(value, rel=1e-9, abs=1e-9 * width)
    start = (model.transitions, model.initial)
    assert plan.value == pytest.approx(
        op.evaluate(plan.policy, model.rewards, *start), rel=1e-9, abs=1e-9 * width
    )
    found = [op.evaluate(plan.policy, cost, *start) for cost in model.costs]
    np.testing.assert_allclose(plan.costs, found, rtol=1e-9, atol=1e-8)
    assert (plan.costs <= model.cost_limits + 1e-9 * (highs - lows) * horizon).all()
    assert -1e-9 * width <= plan.certificate.gap <= 1e-6 * width * horizon
    # The Lagrangian bound, in the user's units: the multipliers are prices in them.
    prices = plan.multipliers
    signal = model.rewards - np.tensordot(prices, model.costs, axes=1)
    _, values = op.backward_induction(signal, model.transitions)
    bound = float(values[0] @ model.initial + prices @ model.cost_limits)
    assert plan.certificate.bound == pytest.approx(bound, rel=1e-7, abs=1e-7 * width)
