"""Models with many states: threads, tolerances, actions kept as numbers, calls that end when told to."""

import signal
import threading
import warnings

import numpy as np
import optpess as op
import pytest
from optpess import _core, zoo


def garnet(states=3_000, actions=4, horizon=6, **arguments):
    """Steps of 60,000 entries, which threads share."""
    return zoo.garnet(states, actions, horizon, successors=5, seed=2, **arguments)


def several_limits(model, count):
    """The model with further costs, each with the same limit."""
    costs = np.random.default_rng(5).random((count, *model.shape[1:]))
    limits = np.full(count, 0.4 * model.shape.horizon)
    return op.CMDP.stationary(
        model.transitions, model.stored_rewards(), costs, limits, 0, horizon=model.shape.horizon
    )


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_no_number_depends_on_the_number_of_threads(threads):
    model = garnet()
    one, several = (op.solve(model, threads=count) for count in (1, threads))
    assert one.value == several.value
    assert one.multipliers.tobytes() == several.multipliers.tobytes()
    assert one.certificate.bound == several.certificate.bound
    assert one.policy.tobytes() == several.policy.tobytes()
    curves = [op.frontier(model, tolerance=0.05, threads=count) for count in (1, threads)]
    assert np.asarray(curves[0]).tobytes() == np.asarray(curves[1]).tobytes()
    induction = [
        op.backward_induction(
            model.stored_rewards(), model.transitions, horizon=6, threads=count, as_actions=True
        )
        for count in (1, threads)
    ]
    for first, second in zip(*induction, strict=True):
        assert first.tobytes() == second.tobytes()
    wide = several_limits(model, 2)
    plans = [op.solve(wide, threads=count) for count in (1, threads)]
    assert plans[0].policy.tobytes() == plans[1].policy.tobytes()


@pytest.mark.parametrize("constraints", [1, 2, 4, 9])
def test_a_tolerance_is_a_gap_that_is_certified(constraints):
    model = several_limits(garnet(300), constraints)
    best = op.solve(model)
    assert best.certificate.gap == pytest.approx(0.0, abs=1e-8)
    for tolerance in (1e-6, 1e-2):
        near = op.solve(model, tolerance=tolerance)
        assert near.inductions <= best.inductions
        assert near.certificate.gap <= tolerance + 1e-9
        assert best.value - tolerance - 1e-9 <= near.value <= best.value + 1e-9
        assert (near.certificate.slack >= -1e-9).all()


def test_a_tolerance_is_in_the_units_of_the_model():
    unit = garnet(300)
    rewards, costs = unit.stored_rewards(), unit.stored_costs()
    model = op.CMDP.stationary(
        unit.transitions,
        1000.0 * rewards,
        costs,
        unit.cost_limits,
        unit.initial,
        horizon=6,
        reward_range=(0, 1000),
    )
    rough, fine = op.solve(model, tolerance=1.0), op.solve(unit, tolerance=1e-3)
    assert rough.inductions == fine.inductions
    assert rough.value == pytest.approx(1000.0 * fine.value, rel=1e-12)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, "a", None])
def test_a_tolerance_that_is_none_is_refused(wrong):
    for call in (op.solve, op.frontier):
        with pytest.raises(op.InvalidInputError, match="tolerance"):
            call(zoo.pair(), tolerance=wrong)


def test_a_plan_keeps_actions_and_makes_policies_when_asked():
    model = garnet(300)
    plan = op.solve(model)
    assert [actions.dtype for _, actions in plan.actions] == [np.uint8, np.uint8]
    for (weight, actions), (same, policy) in zip(plan.actions, plan.ends, strict=True):
        assert weight == same
        assert policy.tobytes() == op.policy_from_actions(actions, 4).tobytes()
    weights, ends = zip(*plan.ends, strict=True)
    mixed = op.mix_policies(ends, weights, model.transitions, model.initial)
    np.testing.assert_allclose(plan.policy, mixed, atol=1e-12)
    known = (model.transitions, model.initial)
    assert op.evaluate(plan.policy, model.costs[0], *known) == pytest.approx(plan.costs[0], abs=1e-12)
    assert op.evaluate(plan.policy, model.rewards, *known) == pytest.approx(plan.value, abs=1e-12)


@pytest.mark.parametrize(("actions", "kind"), [(3, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_actions_have_the_smallest_type_that_holds_them(actions, kind):
    rewards = np.random.default_rng(1).random((2, actions))
    rewards[1, -1] = 2.0
    kernel = np.full((2, actions, 2), 0.5)
    found, values = op.backward_induction(rewards, kernel, horizon=3, as_actions=True)
    policy, same = op.backward_induction(rewards, kernel, horizon=3)
    assert found.dtype == kind
    assert (found[:, 1] == actions - 1).all()
    assert (policy.argmax(axis=-1) == found).all()
    assert values.tobytes() == same.tobytes()


def long_model():
    """A model whose plans take a minute."""
    return garnet(30_000, 4, 2_000)


def interrupted(call):
    """Calls with Ctrl-C after some tenths of a second."""
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        return call()
    finally:
        timer.cancel()


@pytest.mark.parametrize("constraints", [1, 2])
def test_ctrl_c_ends_a_plan(constraints):
    model = several_limits(long_model(), constraints)
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: op.solve(model))


def test_ctrl_c_ends_an_induction():
    model = long_model()
    rewards = model.stored_rewards()
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: op.backward_induction(rewards, model.transitions, horizon=2_000))


def test_ctrl_c_cuts_a_frontier_short():
    model = zoo.garnet(1_000, 5, 60, successors=5, seed=1)  # thousands of vertices
    with pytest.warns(UserWarning, match="Ctrl-C stopped the search: the curve may lie up to"):
        curve = interrupted(lambda: op.frontier(model))
    assert curve.bound > 0.0
    near = op.frontier(model, tolerance=0.01)
    for limit in np.linspace(near.costs[0], near.costs[-1], 50):
        assert curve.value_at(limit) <= near.value_at(limit) + 0.01 + 1e-9
        assert near.value_at(limit) <= curve.value_at(limit) + curve.bound + 1e-9


def test_ctrl_c_before_the_ends_of_a_frontier_are_found_ends_it():
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: op.frontier(long_model()))


@pytest.mark.parametrize("constraints", [1, 2])
def test_a_time_limit_ends_a_plan(constraints):
    model = several_limits(long_model(), constraints)
    with pytest.raises(op.SolverError, match=r"within .*0\.2 s"):
        op.solve(model, time_limit=0.2)


def test_transposed_rows_are_made_when_first_needed():
    model = garnet(300)
    before = op.occupancy(np.full(model.shape, 0.25), model.transitions, model.initial)
    op.solve(model)
    after = op.occupancy(np.full(model.shape, 0.25), model.transitions, model.initial)
    assert before.tobytes() == after.tobytes()


@pytest.mark.parametrize("tiny", [1e-310, 5e-324, 1e-200])
def test_costs_whose_slopes_overflow_are_planned(tiny):
    rewards = np.array([[0.0, 0.5, 1.0], [0.1, 0.4, 0.9]])
    costs = tiny * np.array([[0.0, 1.0, 4.0], [0.0, 2.0, 3.0]])
    kernel = np.full((2, 3, 2), 0.5)
    model = op.CMDP.stationary(kernel, rewards, costs, 1.0, 0, horizon=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curve = op.frontier(model)
        assert curve.values[-1] == pytest.approx(op.solve_unconstrained(model).value)
        assert curve.costs[0] == 0.0
    plan = op.solve_signals(np.stack([rewards] * 3), np.stack([costs] * 3), kernel, 0, 4.0 * tiny)
    assert plan.costs[0] <= 4.0 * tiny
    assert plan.inductions < 50


def test_a_mixture_of_actions_refuses_what_is_no_action():
    model = garnet(300)
    actions = np.zeros((6, 300), np.int64)
    actions[2, 5] = 4
    with pytest.raises(op.InvalidInputError, match=r"actions\[605\] is 4"):
        _core.mix_actions(model, [actions], [1.0], None)


def test_a_plan_that_does_not_fit_is_refused_before_the_work(monkeypatch, tmp_path):
    model = zoo.garnet(1_000, 2, 10**6, successors=2, seed=1, cost_limit=3e5)
    facts = tmp_path / "meminfo"
    facts.write_text("MemTotal: 16000000 kB\nMemAvailable: 2000000 kB\n")
    monkeypatch.setattr("optpess.plan._memory._MEMORY_FACTS", facts)
    with pytest.raises(op.InvalidInputError, match=r"takes about 11\.0 GB; 2\.0 GB are available"):
        op.solve(model)


def test_more_triples_than_a_table_may_have_are_planned_if_nothing_changes_with_the_step():
    states, actions, horizon = 2, 40_000, 30_000  # H S A = 2.4e9
    random = np.random.default_rng(3)
    successors = random.integers(0, states, states * actions)
    kernel = op.Transitions.sparse(
        np.arange(states * actions + 1),
        successors,
        np.ones(successors.size),
        num_states=states,
        num_actions=actions,
    )
    rewards, costs = random.random((2, states, actions))
    model = op.CMDP.stationary(kernel, rewards, costs, 0.3 * horizon, 0, horizon=horizon)
    assert np.prod(model.shape, dtype=float) > 2**31
    with pytest.raises(op.SolverError, match="time limit"):  # begun, not refused
        op.solve(model, time_limit=0.3)


def test_signals_without_steps_are_solved_as_those_with():
    model = garnet(70)
    rewards, costs = model.stored_rewards(), model.stored_costs()
    known = (model.transitions, model.initial, model.cost_limits)
    steps = model.shape.horizon
    once = op.solve_signals(rewards, costs, *known, horizon=steps)
    each = op.solve_signals(np.stack([rewards] * steps), np.stack([costs[0]] * steps), *known)
    assert once.value == each.value
    assert once.policy.tobytes() == each.policy.tobytes()
    with pytest.raises(op.InvalidInputError, match=r"\[S, A\]"):
        op.solve_signals(np.stack([rewards] * steps), costs, *known, horizon=steps)


def test_full_rows_that_are_mostly_zeros_are_planned_as_lists():
    model = garnet(300)
    full = op.CMDP.stationary(
        model.transitions.to_array(),
        model.stored_rewards(),
        model.stored_costs(),
        model.cost_limits,
        model.initial,
        horizon=model.shape.horizon,
    )
    assert not full.transitions.is_sparse
    assert op.solve(full).value == op.solve(model).value
