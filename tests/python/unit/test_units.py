"""Models in the user's units: what they show, plan, sample and store."""

import pickle

import numpy as np
import optpess as op
import pytest
from support import healthy
from support.healthy import COSTS, POLICY, REWARDS, TRANSITIONS, H

RANGES = {"reward_range": (-20.0, 30.0), "cost_range": (0.0, 4.0)}
SHOWN = {"rewards": 50.0 * REWARDS - 20.0, "costs": 4.0 * COSTS, "cost_limit": 4.0}


def in_units(**changes):
    """The healthy model in other units."""
    return healthy.model(**SHOWN | RANGES | changes)


def two_limits(**changes):
    costs = np.stack([4.0 * COSTS, 10.0 * COSTS - 5.0])
    several = {"costs": costs, "cost_limit": [4.0, -4.0], "cost_range": [(0, 4), (-5, 5)]}
    return in_units(**several | changes)


def test_a_model_shows_what_it_was_given_and_stores_the_unit_interval():
    model = in_units()
    np.testing.assert_allclose(model.rewards, SHOWN["rewards"], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(model.costs[0], SHOWN["costs"], rtol=1e-14)
    assert model.cost_limits.tolist() == [4.0]
    assert model.unit_cost_limits.tolist() == [1.0]
    np.testing.assert_allclose(model.stored_rewards(), REWARDS, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(model.stored_costs()[0], COSTS, rtol=1e-14)
    assert model.units == op.Units((-20.0, 30.0), ((0.0, 4.0),))
    assert repr(model).endswith("dense, reward_range=(-20, 30), cost_range=(0, 4))")


def test_with_the_default_ranges_no_number_is_touched():
    model, named = healthy.model(), healthy.model(reward_range=(0, 1), cost_range=[(0.0, 1.0)])
    assert model.units.is_unit
    assert named.units.is_unit
    for one, other in ((model.rewards, REWARDS), (named.rewards, REWARDS), (model.costs[0], COSTS)):
        np.testing.assert_array_equal(one, other)  # exact: nothing is computed
    assert repr(named) == repr(model)


def test_each_constraint_has_its_own_range():
    model = two_limits()
    assert model.units.cost_ranges == ((0.0, 4.0), (-5.0, 5.0))
    assert repr(model).endswith("cost_range=[(0, 4), (-5, 5)])")
    np.testing.assert_allclose(model.unit_cost_limits, [1.0, 1.1], rtol=1e-15)
    np.testing.assert_allclose(model.costs[1], 10.0 * COSTS - 5.0, rtol=1e-14, atol=1e-14)
    for engine in ("highs", "columns"):
        plan, twin = op.solve(model, engine), op.solve(_twin(), engine)
        assert plan.value == pytest.approx(-20.0 * H + 50.0 * twin.value, rel=1e-9)
        np.testing.assert_allclose(plan.costs[1], -5.0 * H + 10.0 * twin.costs[1], rtol=1e-9)
        np.testing.assert_allclose(
            plan.multipliers, twin.multipliers * [50 / 4, 50 / 10], rtol=1e-6, atol=1e-9
        )


def _twin():
    return healthy.model(costs=np.stack([COSTS, COSTS]), cost_limit=[1.0, 1.1])


def test_a_plan_is_in_the_units_of_its_model():
    limit = float(op.frontier(in_units()).costs[:2].mean())
    model = in_units(cost_limit=limit)
    plan = op.solve(model)
    start = (model.transitions, model.initial)
    assert plan.value == pytest.approx(op.evaluate(plan.policy, model.rewards, *start), rel=1e-12)
    assert plan.costs[0] == pytest.approx(op.evaluate(plan.policy, model.costs[0], *start), rel=1e-12)
    assert plan.certificate.limits.tolist() == [limit]
    assert limit - 1e-9 <= plan.costs[0] <= limit
    assert plan.certificate.gap < 1e-9
    assert plan.binding.tolist() == [True]
    more = op.solve(model, cost_limit=limit + 1e-4)
    assert (more.value - plan.value) / 1e-4 == pytest.approx(plan.multipliers[0], rel=1e-6)


def test_the_ends_and_the_frontier_are_in_the_units_of_the_model():
    model = in_units()
    curve = op.frontier(model)
    least, most = op.solve_least_cost(model), op.solve_unconstrained(model)
    assert curve[0] == pytest.approx((least.costs[0], least.value), rel=1e-12)
    assert curve[-1] == pytest.approx((most.costs[0], most.value), rel=1e-12)
    start = (model.transitions, model.initial)
    assert most.value == pytest.approx(op.evaluate(most.policy, model.rewards, *start), rel=1e-12)
    plan = op.solve(model, cost_limit=float(curve.costs.mean()))
    assert curve.value_at(float(curve.costs.mean())) == pytest.approx(plan.value, rel=1e-12)
    assert np.abs(curve.slopes - plan.multipliers[0]).min() < 1e-9


@pytest.mark.parametrize("engine", ["parametric", "highs", "columns"])
def test_an_infeasible_limit_is_refused_in_the_units_of_the_model(engine):
    model = in_units()
    least = float(op.solve_least_cost(model).costs[0])
    with pytest.raises(op.InfeasibleError) as caught:
        op.solve(model, engine, cost_limit=0.9 * least)
    assert caught.value.least_cost == pytest.approx(least, rel=1e-12)
    assert caught.value.kind == "Infeasible"
    assert str(caught.value).startswith(f"no policy meets the limit {0.9 * least}")
    with pytest.raises(op.InfeasibleError, match="the least attainable cost is"):
        op.frontier(model).value_at(0.9 * least)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cost_limit": 13.0},
            "cost_limit[0] is 13; it must lie in (0, 12], as an episode has 3 steps and the cost_range "
            "is (0, 4)",
        ),
        ({"cost_limit": 0.0}, "cost_limit[0] is 0; it must lie in (0, 12]"),
        ({"cost_limit": np.nan}, "cost_limit[0] is nan; it must lie in (0, 12]"),
        (
            {"rewards": np.where(REWARDS == 1.0, 31.0, 0.0)},
            "rewards[2, 1, 1] is 31; it must lie in [-20, 30], the reward_range",
        ),
        ({"costs": -COSTS}, "costs[0, 0, 0] is -0.4090909090909091; it must lie in [0, 4]"),
        ({"rewards": np.full((H, 2, 2), np.nan)}, "rewards[0, 0, 0] is nan; it must lie in"),
        ({"reward_range": (3, 3)}, "reward_range is (3.0, 3.0); it must be two finite numbers"),
        ({"reward_range": (0, np.inf)}, "the first below the second"),
        ({"reward_range": "01"}, "reward_range is '01'; it must be (low, high)"),
        ({"reward_range": (0, 1, 2)}, "it must be two numbers (low, high)"),
        ({"cost_range": None}, "cost_range is None; it must be (low, high)"),
        ({"cost_range": [(0, 1), (0, 4)]}, "cost_range has 2 ranges"),
        ({"rewards": [[1.0], [1.0, 2.0]]}, "rewards"),
        ({"cost_limit": [4.0, 4.0]}, "cost_limit has shape [2]; it must have shape [1]"),
    ],
)
def test_what_is_outside_its_range_is_refused_in_the_users_units(changes, message):
    with pytest.raises(op.InvalidInputError) as caught:
        in_units(**changes)
    assert message in str(caught.value)


def test_the_ends_of_the_ranges_are_allowed():
    # 0.1 and 0.7 are not binary fractions: the map must not leave the unit interval by a rounding error.
    ends = np.where(REWARDS > 0.5, 0.7, 0.1)
    model = healthy.model(
        rewards=ends, costs=ends, cost_limit=3 * 0.7, reward_range=(0.1, 0.7), cost_range=(0.1, 0.7)
    )
    assert set(np.unique(model.stored_costs())) == {0.0, 1.0}
    assert model.unit_cost_limits[0] <= 3.0


def test_units_that_exist_are_valid():
    assert op.Units((0, 2), [(0, 1), (2, 3)]).cost_ranges == ((0.0, 1.0), (2.0, 3.0))
    made = op.Units((0, 2), ((0, 1),))
    assert eval(repr(made), vars(op)) == made
    for wrong in (((1, 0), ((0, 1),)), ((0, 1), (0, 1)), ((0, 1), 3), (None, ((0, 1),))):
        with pytest.raises(op.InvalidInputError, match=r"(reward_range|cost_ranges)"):
            op.Units(*wrong)


def test_a_size_that_no_memory_holds_is_refused_in_other_units_too():
    giant = np.broadcast_to(1.0, (3, 10**7, 10**7))
    with pytest.raises(op.InvalidInputError):
        in_units(rewards=giant, costs=giant)


def test_single_precision_is_mapped_in_double_precision():
    model = in_units(rewards=SHOWN["rewards"].astype(np.float32))
    expected = (SHOWN["rewards"].astype(np.float32).astype(float) + 20.0) / 50.0
    np.testing.assert_array_equal(model.stored_rewards(), expected)


@pytest.mark.parametrize("make", [in_units, two_limits])
def test_files_and_pickles_keep_the_units(make, tmp_path):
    model = make()
    model.save(tmp_path / "model.npz")
    for again in (op.CMDP.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again.units == model.units
        assert again.cost_limits.tolist() == model.cost_limits.tolist()
        assert again.unit_cost_limits.tolist() == model.unit_cost_limits.tolist()
        np.testing.assert_array_equal(again.stored_rewards(), model.stored_rewards())
        np.testing.assert_array_equal(again.stored_costs(), model.stored_costs())


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("reward_range", np.zeros(3), "'reward_range' has shape (3,)"),
        ("cost_ranges", np.zeros(2), "'cost_ranges' has shape (2,)"),
        ("reward_range", np.array([1.0, 0.0]), "the first below the second"),
        ("cost_limits", np.array([40.0]), "stored cost_limits[0] is 40"),
    ],
)
def test_a_file_with_impossible_units_is_refused(name, array, message, tmp_path):
    in_units().save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as stored:
        np.savez(tmp_path / "model.npz", **dict(stored) | {name: array})
    with pytest.raises(op.InvalidInputError) as caught:
        op.CMDP.load(tmp_path / "model.npz")
    assert message in str(caught.value)


def test_samples_are_in_the_units_of_the_model_and_noise_acts_in_the_unit_interval():
    changes = {"transitions": TRANSITIONS}
    *indices, rewards, costs = op.sample(two_limits(**changes), POLICY, 50, seed=3)
    assert set(np.unique(rewards)) == {-20.0, 30.0}
    assert set(np.unique(costs[:, 0])) == {0.0, 4.0}
    assert set(np.unique(costs[:, 1])) == {-5.0, 5.0}
    *same, unit_rewards, unit_costs = op.sample(_twin(), POLICY, 50, seed=3)
    for one, other in zip(indices, same, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(rewards, -20.0 + 50.0 * unit_rewards)
    np.testing.assert_array_equal(costs[:, 1], -5.0 + 10.0 * unit_costs[:, 1])
    states, actions, rewards, costs = op.sample(two_limits(noise=op.Deterministic()), POLICY, 5, seed=3)
    means = two_limits().rewards[np.arange(H), states, actions]
    np.testing.assert_allclose(rewards, means, rtol=1e-14, atol=1e-13)
    assert costs.flags.c_contiguous


def test_a_run_on_a_model_in_units_plays_the_episodes_of_its_twin():
    # The simulator and the learner work in the unit interval.
    margins = {4.0: op.SafetyMargin(4.0, 3.0), 1.0: op.SafetyMargin(1.0, 0.75)}
    traces = []
    for model, units in ((in_units(), RANGES), (healthy.model(), {})):
        learner = op.OptPessPrimalDual(
            shape=POLICY.shape,
            initial=healthy.INITIAL,
            margin=margins[float(model.cost_limits[0])],
            num_episodes=50,
            **units,
        )
        traces.append(op.simulate(model, learner, seed=2, progress=False, trace=True).traces[0])
    np.testing.assert_array_equal(traces[0].states, traces[1].states)
    np.testing.assert_array_equal(traces[0].actions, traces[1].actions)


@pytest.mark.parametrize("sizes", [(2**40,), (2, 2**40), (10**6, 10**6, 10**3)])
def test_a_view_that_claims_any_length_is_no_range(sizes):
    # A list of its entries was made first.
    claimed = np.broadcast_to(0.5, sizes)
    for given in ((claimed, ((0, 1),)), ((0, 1), claimed)):
        with pytest.raises(op.InvalidInputError, match="it must be"):
            op.Units(*given)
