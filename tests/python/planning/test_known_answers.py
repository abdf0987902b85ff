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
@pytest.mark.parametrize("name", ["pair", "inventory", "media"])
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
@pytest.mark.parametrize("name", ["ring", "inventory", "media", "two_bit"])
def test_the_baseline_is_the_optimum_for_a_fifth_of_the_limit(name, engine):
    model = getattr(zoo, name)()
    plan = op.solve(model, engine, cost_limit=model.cost_limits / 5)
    assert plan.value == pytest.approx(ANSWERS[name][3], abs=1e-10)
    assert plan.costs[0] == pytest.approx(model.cost_limits[0] / 5, abs=1e-10)


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
