"""The optima of the named problems, to the digits in which they are known."""

import numpy as np
import optpess as op
import pytest
from optpess import zoo
from scipy import sparse

# name: V*, multiplier at the limit, best without the limit, V(pi0); as many digits as are published.
ANSWERS = {
    "pair": (79 / 96, 7 / 6, 1.48, 0.27),
    "ring": (2.0, 2 / 3, 4.0, 0.4),
    "inventory": (6.6653215273, 0.921212, 7.0, 1.5557105027),
    "media": (3.2532957884, 0.495190, 4.606862, 1.0165112816),
    "two_bit": (0.2, 1.0, 1.0, 0.12),
    "cliff_grid": (5.7597127806, 1.4999077671, 9.444444, 0.0),
    "job_scheduling": (9.1764705882, 4 / 17, 10.0, 8.9426377759),
    "paradox": (5.0, 1.0, 10.0, 1.0),
}
# The same for several limits: V*, multipliers.
SEVERAL = {
    "inventory_stock_out": (5.2824760791, [2.4532279315, 0.4795783926]),
    "inventory_three_limits": (5.2666186970, [1.9191919192, 0.2828282828, 0.0200267273]),
    "cliff_grid_two_hazards": (5.1354382520, [2.9521372158, 1.4605655182]),
}
ENGINES = ("parametric", "highs", "columns")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ANSWERS)
def test_the_optimum_within_the_limit_is_the_published_one(name, engine):
    plan = op.solve(getattr(zoo, name)(), engine)
    assert plan.value == pytest.approx(ANSWERS[name][0], abs=1e-10)
    assert (plan.certificate.slack >= -1e-12).all()
    assert abs(plan.certificate.gap) <= 1e-9


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["pair", "inventory", "media", "cliff_grid", "job_scheduling"])
def test_the_multiplier_is_the_published_one(name, engine):
    assert op.solve(getattr(zoo, name)(), engine).multipliers[0] == pytest.approx(
        ANSWERS[name][1], abs=1e-6
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_the_parametric_multiplier_is_the_published_one_everywhere(name):
    plan = op.solve(getattr(zoo, name)())
    assert plan.multipliers[0] == pytest.approx(ANSWERS[name][1], abs=1e-6)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_best_without_the_limit_is_the_published_one(name):
    found = op.solve_unconstrained(getattr(zoo, name)())
    assert found.value == pytest.approx(ANSWERS[name][2], abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["ring", "inventory", "media", "two_bit", "paradox"])
def test_the_baseline_is_the_optimum_for_a_fifth_of_the_limit(name, engine):
    model = getattr(zoo, name)()
    plan = op.solve(model, engine, cost_limit=model.cost_limits / 5)
    assert plan.value == pytest.approx(ANSWERS[name][3], abs=1e-10)
    assert plan.costs[0] == pytest.approx(model.cost_limits[0] / 5, abs=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_baseline_of_job_scheduling_is_the_optimum_a_fifth_above_the_least_cost(engine):
    model = zoo.job_scheduling()
    least = op.solve_least_cost(model).costs[0]
    assert least == pytest.approx(5.500209, abs=5e-7)
    plan = op.solve(model, engine, cost_limit=least + 0.2 * (6.5 - least))
    assert plan.costs[0] == pytest.approx(5.700167, abs=5e-7)
    assert plan.value == pytest.approx(ANSWERS["job_scheduling"][3], abs=1e-10)


@pytest.mark.parametrize("engine", ["highs", "columns"])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_limits_all_bind_at_the_known_optimum(name, engine):
    model = getattr(zoo, name)()
    plan = op.solve(model, engine)
    value, multipliers = SEVERAL[name]
    assert plan.value == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(plan.multipliers, multipliers, rtol=0, atol=1e-9)
    np.testing.assert_allclose(plan.costs, model.cost_limits, rtol=0, atol=1e-10)
    assert (plan.certificate.slack >= -1e-12).all()
    assert abs(plan.certificate.gap) <= 1e-9


@pytest.mark.parametrize("name", SEVERAL)
def test_a_multiplier_of_several_is_what_a_little_more_of_its_limit_earns(name):
    model = getattr(zoo, name)()
    best, more = op.solve(model), 1e-4
    for constraint, multiplier in enumerate(best.multipliers):
        raised = model.cost_limits + more * np.eye(model.num_constraints)[constraint]
        gained = op.solve(model, cost_limit=raised).value - best.value
        assert gained / more == pytest.approx(multiplier, abs=1e-6)


@pytest.mark.parametrize(("shifted", "value"), [(False, 1.0), (True, 0.5 + 0.5 / (1 + 0.25))])
def test_the_optimum_of_lower_bound_a_is_that_of_the_formula(shifted, value):
    # Shifted, action 1 exceeds the limit by 1/(8 * 16) and is mixed with action 2, which is 1/32 below.
    model = zoo.lower_bound_a(num_episodes=256, margin=1 / 64, best_margin=1 / 32, shifted=shifted)
    for engine in ENGINES:
        assert op.solve(model, engine).value == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_optimum_of_lower_bound_b_takes_the_cheap_good_action(swapped):
    model = zoo.lower_bound_b(margin=1 / 64, best_margin=1 / 16, swapped=swapped)
    plan = op.solve(model)
    assert (plan.value, plan.costs[0], plan.multipliers[0]) == (1.0, 0.4375, 0.0)
    np.testing.assert_array_equal(plan.policy, [[[0, 0, 1] if swapped else [0, 1, 0]]])


def test_the_baseline_of_pair_always_takes_the_first_action():
    model = zoo.pair()
    policy = np.zeros(model.shape)
    policy[..., 0] = 1.0
    value, cost = (
        op.evaluate(policy, signal, model.transitions, model.initial)
        for signal in (model.rewards, model.costs[0])
    )
    assert (value, cost) == pytest.approx((0.27, 0.135), abs=1e-15)
    assert op.solve_least_cost(model).value == pytest.approx(0.27, abs=1e-15)


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_signals_may_come_with_rows_compressed_by_scipy(engine):
    # They were once refused, although every other function takes them.
    model = zoo.pair()
    once = sparse.csr_matrix(model.transitions.to_array().reshape(-1, 2))
    for rows in (once, sparse.vstack([once] * 2, format="csr")):
        plan = op.solve_signals(model.rewards, model.costs, rows, model.initial, 0.6, engine)
        assert plan.value == pytest.approx(79 / 96, abs=1e-12)
        assert plan.occupancy.sum() == pytest.approx(2.0, abs=1e-12)
