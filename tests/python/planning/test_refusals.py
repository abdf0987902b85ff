"""What planners refuse, and what the refusal says."""

import numpy as np
import optpess as op
import pytest
from hypothesis import given, settings
from optpess import zoo
from scipy import sparse
from support import healthy

from planning import linear_program
from planning.instances import instances


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(instances(limits=("least",)))
def test_an_unattainable_limit_is_refused_with_the_least_attainable_cost(instance):
    unit = instance.cost_sizes[0]
    least = linear_program.least_cost(instance)
    limit = instance.limits - 1e-3 * unit
    for engine in ("parametric", "highs"):
        with pytest.raises(op.InfeasibleError) as caught:
            instance.solve(engine, limit)
        assert abs(caught.value.least_cost - least) <= 1e-9 * max(unit, abs(least))


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(instances(limits=("least",)))
def test_a_limit_is_attainable_down_to_the_rounding_of_the_least_cost(instance):
    unit = instance.cost_sizes[0]
    for engine in ("parametric", "highs"):
        with pytest.raises(op.InfeasibleError) as caught:
            instance.solve(engine, instance.limits - unit)
        least = caught.value.least_cost
        # Nothing is rounded where nothing costs anything.
        for limit in (least, np.nextafter(least, -np.inf) if least != 0.0 else least):
            plan = instance.solve(engine, limit)
            assert plan.costs[0] - limit <= 1e-9 * max(unit, abs(least))
        with pytest.raises(op.InfeasibleError):
            instance.solve(engine, least - 1e-9 * max(unit, abs(least)))


@pytest.mark.parametrize("engine", ["parametric", "highs"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_costs_that_cancel_have_the_rounding_of_their_terms(engine, scale):
    # 0.1 + 0.2 - 0.3 is 5.6e-17, not 0: the least cost is above a limit of 0 by rounding alone.
    costs = scale * np.array([0.1, 0.2, -0.3]).reshape(3, 1, 1)
    arguments = (np.ones((3, 1, 1)), costs, np.ones((3, 1, 1, 1)), [1.0])
    assert op.solve_signals(*arguments, 0.0, engine).value == 3.0
    with pytest.raises(op.InfeasibleError):
        op.solve_signals(*arguments, -1e-9 * scale, engine)


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_a_least_cost_without_rounding_has_no_tolerance(engine):
    # The first action costs nothing, which is exact, so that no limit below 0 is attainable.
    costs = np.array([[[0.0, 1.0]]] * 2)
    arguments = (costs, costs, np.ones((2, 1, 2, 1)), [1.0])
    assert op.solve_signals(*arguments, 0.0, engine).value == 0.0
    with pytest.raises(op.InfeasibleError):
        op.solve_signals(*arguments, -1e-15, engine)


@pytest.mark.parametrize("which", [0, 1])
def test_each_of_several_limits_is_held_against_its_own_least_cost(which):
    model = zoo.pair()
    costs = np.stack([model.costs[0], 0.5 * model.costs[0][::-1]])
    arguments = (model.rewards, costs, model.transitions, model.initial)
    ample = np.array([2.0, 2.0])
    with pytest.raises(op.InfeasibleError) as caught:
        op.solve_signals(*arguments[:1], costs[which], *arguments[2:], -1.0)
    least = caught.value.least_cost
    for below, attainable in ((0.0, True), (np.spacing(least), True), (1e-9, False)):
        limits = ample.copy()
        limits[which] = least - below
        if attainable:
            plan = op.solve_signals(*arguments, limits, "highs")
            assert plan.costs[which] <= least + 1e-9
        else:
            with pytest.raises(op.InfeasibleError, match=r"one at a time, are \[(?!.*-0\.0)"):
                op.solve_signals(*arguments, limits, "highs")


def test_limits_that_exclude_each_other_are_refused_by_both_engines():
    # One state, two actions: each action has one of the costs, so both costs cannot be below 1/2.
    costs = np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    model = op.CMDP(np.ones((1, 1, 2, 1)), np.ones((1, 1, 2)), costs, [0.4, 0.4], [1.0])
    for engine in ("highs", "columns"):
        with pytest.raises(op.InfeasibleError) as caught:
            op.solve(model, engine)
        assert caught.value.least_cost is None  # 0 for each alone, which would mislead


def test_a_time_limit_that_is_too_short_stops_the_linear_program_by_name():
    model = zoo.garnet(60, 5, 20, successors=5, seed=0)
    with pytest.raises(op.SolverError, match="Time limit"):
        op.solve(model, "highs", time_limit=1e-6)


def test_a_time_limit_counts_for_each_solve():
    model = zoo.media()
    first = op.solve(model, "highs", time_limit=60.0)
    assert op.solve(model, "highs", time_limit=60.0).value == pytest.approx(first.value, abs=1e-12)


def test_an_unknown_engine_is_refused_by_name():
    with pytest.raises(op.InvalidInputError, match="'simplex'"):
        op.solve(zoo.pair(), "simplex")


def test_column_generation_is_not_offered_for_bare_signals():
    model = zoo.pair()
    arguments = (model.rewards, model.costs, model.transitions, model.initial, 0.6)
    with pytest.raises(op.InvalidInputError, match="'columns'"):
        op.solve_signals(*arguments, "columns")


def test_the_parametric_engine_and_the_frontier_refuse_two_constraints():
    model = healthy.model(costs=np.stack([healthy.COSTS] * 2), cost_limit=[1.0, 1.0])
    with pytest.raises(op.InvalidInputError, match="2 constraints"):
        op.solve(model, "parametric")
    with pytest.raises(op.InvalidInputError, match="2 constraints"):
        op.frontier(model)


@pytest.mark.parametrize("limit", [np.nan, np.inf, [0.5, 0.5], []])
@pytest.mark.parametrize("engine", [None, "parametric", "highs", "columns"])
def test_a_limit_that_is_no_finite_number_is_refused(limit, engine):
    with pytest.raises(op.InvalidInputError, match="cost_limit"):
        op.solve(zoo.pair(), engine, cost_limit=limit)


@pytest.mark.parametrize("engine", ["parametric", "highs"])
@pytest.mark.parametrize("which", ["reward", "costs"])
def test_signals_that_are_not_finite_are_refused(engine, which):
    model = zoo.pair()
    signals = {"reward": model.rewards.copy(), "costs": model.costs.copy()}
    signals[which].flat[3] = np.nan
    with pytest.raises(op.InvalidInputError):
        op.solve_signals(
            signals["reward"], signals["costs"], model.transitions, model.initial, 0.6, engine
        )


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_signals_that_are_no_numbers_are_refused(engine):
    model = zoo.pair()
    for which in ("reward", "costs"):
        signals = {"reward": model.rewards, "costs": model.costs}
        for spoilt in (signals[which].astype(complex), np.ma.array(signals[which], mask=False)):
            given = signals | {which: spoilt}
            with pytest.raises(op.InvalidInputError, match=r"^(reward|costs?) holds elements of type"):
                op.solve_signals(
                    given["reward"], given["costs"], model.transitions, model.initial, 0.6, engine
                )
    with pytest.raises(op.InvalidInputError, match="reward cannot be made an array"):
        op.solve_signals([[1.0], [1.0, 2.0]], model.costs, model.transitions, model.initial, 0.6, engine)


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_a_start_that_is_no_distribution_over_the_states_is_refused(engine):
    # With HiGHS, these once ended in an error of NumPy, or in a plan.
    model = zoo.pair()
    signals = (model.rewards, model.costs, model.transitions)
    centre = np.stack([model.transitions.to_array()] * 2)
    extended = (model.rewards, model.costs[0], centre, 0.1 + 0 * centre)
    for spoilt, kind in (
        (0.5, "WrongRank"),
        ([1.0], "ShapeMismatch"),
        ([0.5, 0.25], "NotADistribution"),
    ):
        with healthy.refused(kind, "initial"):
            op.solve_signals(*signals, spoilt, 0.6, engine)
        with healthy.refused(kind, "initial"):
            op.solve_extended(*extended, spoilt, 0.6, engine)


def test_compressed_columns_are_read_as_the_matrix_they_are():
    model = zoo.pair()
    columns = sparse.csc_matrix(model.transitions.to_array().reshape(-1, 2))
    found = op.solve_signals(model.rewards, model.costs, columns, model.initial, 0.6)
    assert found.value == pytest.approx(op.solve(model).value, rel=1e-14)


def test_signals_of_different_shapes_are_refused():
    model = zoo.pair()
    with pytest.raises(op.InvalidInputError, match="shape"):
        op.solve_signals(model.rewards, model.costs[:, :1], model.transitions, model.initial, 0.6)


def test_costs_too_far_apart_for_the_linear_program_are_refused_not_exceeded():
    # HiGHS drops entries below 1e-9 of the largest; a plan of cost 1.697 was returned at limit 1.
    reward = np.array([[[0.0, 0.423, 4.14]]])
    costs = np.array([[[[0.05, 1.697, 1e11]]]])
    stay = np.ones((1, 3, 1))
    exact = op.solve_signals(reward, costs, stay, [1.0], [1.0], engine="parametric")
    assert exact.costs[0] <= 1.0
    with pytest.raises(op.CertificateError, match='engine="parametric" can'):
        op.solve_signals(reward, costs, stay, [1.0], [1.0], engine="highs")
