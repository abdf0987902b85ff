"""The whole curve "best reward for a limit" against single solutions and against all policies."""

import itertools

import numpy as np
import optpess as op
import pytest
from hypothesis import given, settings
from optpess import zoo
from support import reference

from planning.instances import instances

exact = settings(max_examples=80, derandomize=True, deadline=None, database=None)
MODELS = {
    "signals": ("unit", "integers", "copies", "opposed"),
    "kernels": ("dense", "sparse", "sure", "dyadic"),
    "limits": ("between",),
    "scaled": False,
}


def model_of(instance):
    return instance.model(limits=instance.reward.shape[0] / 2)


def envelope(points):
    """The rising part of the upper concave envelope of points (cost, reward), by increasing cost."""
    hull = []
    for cost, reward in sorted(points, key=lambda point: (point[0], -point[1])):
        if hull and reward <= hull[-1][1] + 1e-12:
            continue
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (cost - x0) > (reward - y0) * (x1 - x0) + 1e-12:
                break
            hull.pop()
        hull.append((cost, reward))
    return np.array(hull)


def all_policies(instance):
    horizon, num_states, num_actions = instance.reward.shape
    for choices in itertools.product(range(num_actions), repeat=horizon * num_states):
        yield np.eye(num_actions)[np.reshape(choices, (horizon, num_states))]


@exact
@given(instances(**MODELS))
def test_vertices_rise_and_the_curve_is_concave(instance):
    curve = op.frontier(model_of(instance))
    assert (np.diff(curve.costs) > 0).all()
    assert (np.diff(curve.values) > 0).all()
    assert (np.diff(curve.slopes) < 0).all()


@exact
@given(instances(**MODELS))
def test_every_vertex_and_everything_between_is_an_optimum(instance):
    model = model_of(instance)
    curve = op.frontier(model)
    midpoints = (curve.costs[1:] + curve.costs[:-1]) / 2
    for limit in [*curve.costs, *midpoints, curve.costs[-1] + 1.0]:
        plan = op.solve(model, cost_limit=limit)
        assert abs(curve.value_at(limit) - plan.value) <= 1e-9 * max(1.0, plan.value)


@exact
@given(instances(**MODELS))
def test_the_ends_are_the_least_cost_and_the_most_reward(instance):
    model = model_of(instance)
    curve = op.frontier(model)
    least, most = op.solve_least_cost(model), op.solve_unconstrained(model)
    assert curve[0] == pytest.approx((least.costs[0], least.value), abs=1e-11)
    assert curve[-1] == pytest.approx((most.costs[0], most.value), abs=1e-11)


@pytest.mark.parametrize("horizon", [2, 3])
@pytest.mark.parametrize("signals", ["unit", "integers", "any sign"])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_envelope_of_all_deterministic_policies(horizon, signals, seed):
    from planning.instances import draw_instance

    kernel = ("dense", "dyadic", "sure", "sparse")[seed]
    generator = np.random.default_rng(seed)
    instance = draw_instance(generator, (horizon, 2, 2), kernel, signals, "between")
    points = [instance.value_and_costs(policy) for policy in all_policies(instance)]
    hull = envelope([(costs[0], value) for value, costs in points])
    for limit in np.linspace(hull[0, 0], hull[-1, 0] + 0.1, 9):
        plan = op.solve_signals(
            instance.reward, instance.costs, instance.kernel, instance.mu, limit, "parametric"
        )
        assert plan.value == pytest.approx(np.interp(limit, *hull.T), abs=1e-11)
    if signals != "any sign":
        found = np.asarray(op.frontier(model_of(instance)))
        assert found.shape == hull.shape
        assert np.abs(found - hull).max() <= 1e-11


def test_a_limit_below_the_curve_is_refused_with_its_least_cost():
    curve = op.frontier(zoo.pair())
    with pytest.raises(op.InfeasibleError) as caught:
        curve.value_at(0.1)
    assert caught.value.least_cost == pytest.approx(0.135, abs=1e-15)
    with pytest.raises(op.InfeasibleError):
        curve.value_at(np.nan)


def test_a_curve_with_too_many_vertices_is_cut_short_with_a_bound_that_holds():
    exact = op.frontier(zoo.pair())
    assert exact.bound == 0.0
    with pytest.warns(UserWarning, match="max_vertices is 3: the curve may lie up to"):
        cut = op.frontier(zoo.pair(), max_vertices=3)
    assert len(cut) == 3
    limits = np.linspace(exact.costs[0], exact.costs[-1], 500)
    distances = [exact.value_at(limit) - cut.value_at(limit) for limit in limits]
    assert 0.01 < max(distances) <= cut.bound + 1e-12
    assert min(distances) >= -1e-12


@pytest.mark.parametrize("tolerance", [1e-4, 1e-2, 0.3])
def test_a_tolerance_is_kept_with_few_vertices(tolerance):
    for seed in range(5):
        model = zoo.garnet(12, 3, 8, successors=4, seed=seed)
        exact = op.frontier(model)
        near = op.frontier(model, tolerance=tolerance)
        assert near.bound <= tolerance
        assert len(near) < len(exact) or tolerance < 1e-3
        assert {tuple(vertex) for vertex in near} <= {tuple(vertex) for vertex in exact}
        for limit in np.linspace(exact.costs[0], exact.costs[-1], 400):
            distance = exact.value_at(limit) - near.value_at(limit)
            assert -1e-12 <= distance <= near.bound + 1e-12


def test_between_leaves_out_what_lies_beyond():
    model = zoo.garnet(12, 3, 8, successors=4, seed=3)
    exact = op.frontier(model)
    low, high = exact.costs[0] + 0.3 * np.ptp(exact.costs), exact.costs[0] + 0.5 * np.ptp(exact.costs)
    part = op.frontier(model, between=(low, high))
    assert part.costs[0] <= low
    assert part.costs[-1] >= high
    assert len(part) < len(exact)
    for limit in np.linspace(low, high, 50):
        assert part.value_at(limit) == pytest.approx(exact.value_at(limit), abs=1e-12)
    for wrong in [(1.0,), (2.0, 1.0), 3.0, ("a", "b")]:
        with pytest.raises(op.InvalidInputError, match="between"):
            op.frontier(model, between=wrong)


def test_ends_are_deterministic_policies_that_attain_what_they_claim():
    model = zoo.inventory()
    for end in (op.solve_least_cost(model), op.solve_unconstrained(model)):
        dense = np.broadcast_to(model.transitions.to_array(), (*model.shape, model.shape.num_states))
        rewards = np.broadcast_to(model.rewards, model.shape)
        assert ((end.policy == 0) | (end.policy == 1)).all()
        assert end.value == pytest.approx(
            reference.evaluate(end.policy, rewards, dense, model.initial), abs=1e-12
        )
