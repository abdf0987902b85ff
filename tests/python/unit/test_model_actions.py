"""Models in which some actions do not exist in some states."""

import pickle

import numpy as np
import optpess as op
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

H, S, A = 4, 3, 3
MASK = np.array([[False, True, True], [True, False, True], [True, True, True]])
RNG = np.random.default_rng(7)
TRANSITIONS = RNG.dirichlet(np.ones(S), (S, A))
REWARDS, COSTS = RNG.random((S, A)), RNG.random((S, A))


def spoilt(array):
    """The array with NaN in the rows of missing actions."""
    return np.where(MASK.reshape(S, A, *(1,) * (array.ndim - 2)), array, np.nan)


def holes():
    """Transitions with rows of zeros for missing actions."""
    return np.nan_to_num(spoilt(TRANSITIONS))


FORMS = {
    "dense with NaN": lambda: spoilt(TRANSITIONS),
    "dense with zeros": holes,
    "Transitions": lambda: op.Transitions(holes()),
    "matrices": lambda: [spoilt(TRANSITIONS)[:, a] for a in range(A)],
    "CSR": lambda: sparse.csr_matrix(holes().reshape(-1, S)),
    "COO": lambda: sparse.coo_array(holes().reshape(-1, S)),
    "sparse matrices": lambda: [sparse.csc_matrix(holes()[:, a]) for a in range(A)],
    "sparse Transitions": lambda: op.Transitions.sparse(
        *(
            getattr(sparse.csr_matrix(holes().reshape(-1, S)), name)
            for name in ("indptr", "indices", "data")
        ),
        num_states=S,
        num_actions=A,
    ),
}


def model(transitions=None, **changes):
    given = {
        "transitions": spoilt(TRANSITIONS) if transitions is None else transitions,
        "rewards": spoilt(REWARDS),
        "costs": spoilt(COSTS),
        "cost_limit": 1.2,
        "initial": 0,
        "horizon": H,
        "actions": MASK,
    }
    return op.CMDP.stationary(**given | changes)


def by_steps(**changes):
    """The same model with a step axis."""
    stacked = {
        "transitions": np.stack([spoilt(TRANSITIONS)] * H),
        "rewards": np.stack([spoilt(REWARDS)] * H),
        "costs": np.stack([spoilt(COSTS)] * H),
    }
    return op.CMDP(**stacked | {"cost_limit": 1.2, "initial": 0, "actions": MASK} | changes)


def penalised_optimum(cost_limits, costs=(COSTS,)):
    """The optimum where using a missing action costs more than any policy may."""
    reward = np.stack([np.where(MASK, REWARDS, -100.0)] * H)
    dear = np.stack([[np.where(MASK, cost, 100.0)] * H for cost in costs])
    return op.solve_signals(reward, dear, TRANSITIONS, 0, cost_limits, engine="highs").value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ["parametric", "highs", "columns"])
def test_every_engine_plans_with_the_actions_that_exist(form, engine):
    made = model(FORMS[form]())
    plan = op.solve(made, engine)
    assert plan.value == pytest.approx(penalised_optimum(1.2), abs=1e-8)
    for policy in (plan.policy, *(end for _, end in plan.ends)):
        assert not policy[:, ~MASK].any()
        np.testing.assert_allclose(policy.sum(axis=-1), 1.0, rtol=1e-14)
    assert not plan.occupancy[:, ~MASK].any()
    found = op.evaluate(plan.policy, made.costs[0], made.transitions, made.initial)
    assert plan.costs[0] == pytest.approx(found, rel=1e-13)


def test_several_constraints_and_steps():
    made = by_steps(
        costs=np.stack([[spoilt(COSTS)] * H, [spoilt(1 - COSTS)] * H]), cost_limit=[1.9, 2.3]
    )
    for engine in ("highs", "columns"):
        plan = op.solve(made, engine)
        expected = penalised_optimum([1.9, 2.3], (COSTS, 1 - COSTS))
        assert plan.value == pytest.approx(expected, abs=1e-8)
        assert not plan.policy[:, ~MASK].any()


def test_the_ends_and_the_frontier_use_what_exists():
    made = model()
    for end in (op.solve_unconstrained(made), op.solve_least_cost(made)):
        assert not end.policy[:, ~MASK].any()
    costs = np.stack([np.where(MASK, -COSTS, -100.0)] * H)
    _, values = op.backward_induction(costs, TRANSITIONS)
    assert op.solve_least_cost(made).costs[0] == pytest.approx(-values[0, 0], rel=1e-13)
    curve = op.frontier(made)
    assert curve.value_at(1.2) == pytest.approx(op.solve(made).value, rel=1e-12)
    assert curve.costs[0] == pytest.approx(-values[0, 0], rel=1e-13)


def test_a_model_shows_its_mask_and_the_rows_of_the_stand_ins():
    made = model()
    np.testing.assert_array_equal(made.actions, MASK)
    assert not made.actions.flags.writeable
    assert repr(made).endswith("dense, 2 of 9 actions missing)")
    np.testing.assert_array_equal(made.rewards[0, 0, 0], REWARDS[0, 1])
    np.testing.assert_array_equal(made.transitions.to_array()[1, 1], TRANSITIONS[1, 0])
    every = op.CMDP.stationary(TRANSITIONS, REWARDS, COSTS, 1.2, 0, horizon=H, actions=np.ones((S, A)))
    assert every.actions is None
    assert "missing" not in repr(every)


@pytest.mark.parametrize("form", FORMS)
def test_files_and_pickles_keep_the_mask(form, tmp_path):
    made = model(FORMS[form](), reward_range=(-1, 2))
    made.save(tmp_path / "model.npz")
    for again in (op.CMDP.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(made))):
        np.testing.assert_array_equal(again.actions, MASK)
        np.testing.assert_array_equal(again.rewards, made.rewards)
        assert op.solve(again).value == op.solve(made).value  # exact: the same arrays
        np.testing.assert_array_equal(op.solve(again).policy, op.solve(made).policy)


def test_a_sample_of_a_policy_that_uses_a_missing_action_is_refused():
    made = model()
    policy = np.full((H, S, A), 1 / 3)
    with pytest.raises(op.InvalidInputError, match=r"action 0 does not exist in state 0"):
        op.sample(made, policy, 3)
    states, actions, _, _ = op.sample(made, op.solve(made).policy, 200, seed=1)
    assert MASK[states, actions].all()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (MASK[:, :2], "actions has shape [3, 2]; it must have shape [3, 3]"),
        (MASK.T[:2], "actions has shape [2, 3]"),
        (np.zeros((S, A)), "actions[0] is False for every action"),
        ("all", "actions has shape []"),
        ([0, 1, 2], "actions has shape [3]"),
    ],
)
@pytest.mark.parametrize("form", ["dense with NaN", "Transitions", "CSR"])
def test_a_mask_of_another_shape_is_refused(form, mask, message):
    with pytest.raises(op.InvalidInputError) as caught:
        model(FORMS[form](), actions=mask)
    if form != "CSR":  # the number of actions cannot be read off sparse rows
        assert message in str(caught.value)


def test_a_fault_in_the_row_of_an_action_that_exists_is_refused_by_its_own_number():
    # Action 0 of state 0 has the rows of action 1; it was blamed for them.
    faulty = np.where(np.arange(A) == 1, np.nan, REWARDS)
    with pytest.raises(op.InvalidInputError, match=r"rewards\[0, 1\] is NaN"):
        model(rewards=faulty)
    with pytest.raises(op.InvalidInputError, match=r"rewards\[0, 1\] is nan; it must lie in \[0, 2\]"):
        model(rewards=faulty, reward_range=(0, 2))
    with pytest.raises(op.InvalidInputError, match=r"transitions\[0, 1\] sums to"):
        model(spoilt(TRANSITIONS) * 0.5)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_masks_keep_the_optimum_of_what_exists(seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((S, A)) < 0.6
    mask[np.arange(S), rng.integers(A, size=S)] = True
    made = op.CMDP.stationary(
        TRANSITIONS, REWARDS, COSTS, H, 0, horizon=H, actions=mask, noise=op.Deterministic()
    )
    policy, values = op.backward_induction(np.stack([np.where(mask, REWARDS, -100.0)] * H), TRANSITIONS)
    plan = op.solve(made)
    assert plan.value == pytest.approx(values[0, 0], rel=1e-13)
    assert not plan.policy[:, ~mask].any()
    found = op.solve_unconstrained(made)
    assert found.value == pytest.approx(op.evaluate(policy, REWARDS, TRANSITIONS, 0), rel=1e-13)
