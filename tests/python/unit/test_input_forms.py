"""The forms in which transitions, policies and first states are accepted."""

import numpy as np
import optpess as op
import pytest
from scipy import sparse
from support import healthy
from support.healthy import COSTS, INITIAL, POLICY, REWARDS, TRANSITIONS, H, refused, stationary

RNG = np.random.default_rng(5)
KERNEL = RNG.dirichlet(np.ones(3), (3, 2))  # [S, A, S]
SIGNAL = RNG.random((3, 2))
PLAYED = RNG.dirichlet(np.ones(2), (4, 3))
ROWS = KERNEL.reshape(-1, 3)
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"]


def value(transitions, initial=0):
    return op.evaluate(PLAYED, SIGNAL, transitions, initial)


EXPECTED = value(KERNEL)


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_matrices_is_a_stationary_kernel(kind):
    matrices = kind(KERNEL[:, action] for action in range(2))
    assert value(matrices) == EXPECTED
    np.testing.assert_array_equal(op.Transitions(matrices).to_array(), KERNEL)
    made = op.CMDP.stationary(matrices, SIGNAL, SIGNAL, 2.0, 0, horizon=4)
    np.testing.assert_array_equal(made.transitions.to_array(), KERNEL)


def test_square_matrices_in_a_list_are_those_of_actions_also_if_there_are_as_many_as_states():
    matrices = [TRANSITIONS[0, :, action] for action in range(2)]
    np.testing.assert_array_equal(op.Transitions(matrices).to_array(), TRANSITIONS[0])
    nested = TRANSITIONS[0].tolist()  # lists of numbers are read as an array is
    np.testing.assert_array_equal(op.Transitions(nested).to_array(), TRANSITIONS[0])
    by_state = list(KERNEL)  # not square
    np.testing.assert_array_equal(op.Transitions(by_state).to_array(), KERNEL)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_every_sparse_format_is_read_by_rows(form, kind):
    convert = getattr(sparse, f"{form}_{kind}")
    assert value(convert(ROWS)) == pytest.approx(EXPECTED, rel=1e-15)
    matrices = [convert(KERNEL[:, action]) for action in range(2)]
    assert value(matrices) == pytest.approx(EXPECTED, rel=1e-15)
    made = op.CMDP.stationary(convert(ROWS), SIGNAL, SIGNAL, 2.0, 0, horizon=4)
    assert made.transitions.is_sparse
    np.testing.assert_array_equal(made.transitions.to_array(), KERNEL)
    kernel = op.Transitions(matrices)
    assert kernel.is_sparse
    np.testing.assert_array_equal(kernel.to_array(), KERNEL)
    found = op.solve_signals(np.stack([SIGNAL] * 4), np.stack([SIGNAL] * 4), convert(ROWS), 0, 2.5)
    assert found.costs[0] <= 2.5


def test_duplicates_of_a_coordinate_matrix_are_added_up():
    rows, columns = np.nonzero(ROWS)
    twice = (np.tile(ROWS[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2)))
    given = sparse.coo_matrix(twice, shape=ROWS.shape)
    assert value(given) == pytest.approx(EXPECTED, rel=1e-15)
    assert given.nnz == 2 * rows.size  # the caller's matrix is as it was


def test_dense_and_sparse_matrices_may_stand_side_by_side():
    assert value([sparse.coo_array(KERNEL[:, 0]), KERNEL[:, 1]]) == pytest.approx(EXPECTED, rel=1e-15)


def test_rows_of_steps_may_be_sparse_of_any_format():
    made = healthy.model(transitions=sparse.coo_array(TRANSITIONS.reshape(-1, 2)))
    assert made.transitions.horizon == H
    np.testing.assert_array_equal(made.transitions.to_array(), TRANSITIONS)


def test_matrices_of_different_sizes_are_refused():
    given = [sparse.eye_array(3).tocsr(), sparse.eye_array(2).tocsr()]
    with refused("ShapeMismatch", "transitions has shape [2, 2]", "action 1"):
        value(given)
    with refused("UnsupportedType", "matrices [S, S], one an action"):
        value([sparse.eye_array(3).tocsr(), "matrix"])


@pytest.mark.parametrize("given", [np.moveaxis(KERNEL, 1, 0), np.moveaxis(KERNEL, 1, 0).tolist()])
def test_actions_in_front_are_met_with_a_hint(given):
    for call in (
        lambda: value(given),
        lambda: op.Transitions(given),
        lambda: op.CMDP.stationary(given, SIGNAL, SIGNAL, 2.0, 0, horizon=4),
        lambda: op.CMDP(given, np.stack([SIGNAL] * 4), np.stack([SIGNAL] * 4), 2.0, 0),
    ):
        with refused("ShapeMismatch", "[2, 3, 3]", "must have shape [3, 2, 3]", "looks like [A, S, S]"):
            call()
    assert value(np.moveaxis(np.asarray(given), 0, 1)) == EXPECTED
    stacked = np.stack([np.asarray(given)] * 4)
    with refused("ShapeMismatch", "looks like [H, A, S, S]", "np.moveaxis(P, 1, 2)"):
        value(stacked)
    assert value(np.moveaxis(stacked, 1, 2)) == EXPECTED


# The first state


@pytest.mark.parametrize("state", [1, np.int64(1), np.array(1, dtype=np.uint8)])
def test_a_first_state_may_be_given_by_its_number(state):
    assert value(KERNEL, state) == value(KERNEL, [0.0, 1.0, 0.0])
    made = op.CMDP.stationary(KERNEL, SIGNAL, SIGNAL, 2.0, state, horizon=4)
    assert made.initial.tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_array_equal(
        op.occupancy(PLAYED, KERNEL, state), op.occupancy(PLAYED, KERNEL, [0, 1, 0])
    )
    reward = np.stack([SIGNAL] * 4)
    for engine in ("parametric", "highs"):
        found = op.solve_signals(reward, reward, KERNEL, state, 2.2, engine)
        same = op.solve_signals(reward, reward, KERNEL, [0.0, 1.0, 0.0], 2.2, engine)
        assert found.value == same.value
        centre = np.stack([KERNEL] * 4)
        pair = op.solve_extended(reward, reward, centre, 0.1 * centre, state, 2.2, engine)
        assert pair.value == pytest.approx(2.2, rel=1e-9)


def test_a_learner_accepts_the_number_of_its_first_state():
    baseline = op.SafeBaseline(POLICY, op.SafetyMargin(cost_limit=1.5, safe_cost=1.0))
    for engine in ("parametric", "highs"):
        made = op.OptPessLP(
            shape=POLICY.shape, initial=1, baseline=baseline, num_episodes=10, engine=engine
        )
        made.next_policy()


@pytest.mark.parametrize("state", [3, -1, 2**40])
def test_a_first_state_that_does_not_exist_is_refused(state):
    with refused("OutOfRange", f"initial is {state}; it must lie in [0, 2]"):
        value(KERNEL, state)
    for engine in ("parametric", "highs"):
        with refused("OutOfRange", f"initial is {state}"):
            op.solve_signals(np.stack([SIGNAL] * 4), np.stack([SIGNAL] * 4), KERNEL, state, 2.2, engine)


@pytest.mark.parametrize("state", [1.0, True])
def test_a_first_state_that_is_no_whole_number_is_refused(state):
    with refused("WrongRank", "initial has shape []", "or be the number of a state"):
        value(KERNEL, state)


# Policies


def test_actions_become_a_policy():
    policy = op.policy_from_actions([[1, 0], [0, 1], [1, 1]], 2)
    assert policy.shape == (3, 2, 2)
    assert policy[:, :, 1].tolist() == [[1, 0], [0, 1], [1, 1]]
    assert (policy.sum(axis=-1) == 1.0).all()
    np.testing.assert_array_equal(
        op.policy_from_actions(np.array([2, 0], dtype=np.uint8), 3, horizon=4),
        op.policy_from_actions([[2, 0]] * 4, 3),
    )
    np.testing.assert_array_equal(policy, op.policy_from_actions([[1, 0], [0, 1], [1, 1]], 2, horizon=3))


@pytest.mark.parametrize("actions", [[[1, 0]] * 3, [1, 0], np.zeros((3, 2), dtype=np.uint32)])
def test_actions_in_place_of_a_policy_are_met_with_a_hint(actions):
    model = healthy.model()
    for call in (
        lambda: op.evaluate(actions, REWARDS, TRANSITIONS, INITIAL),
        lambda: op.occupancy(actions, TRANSITIONS, INITIAL),
        lambda: op.sample(model, actions, 3),
        lambda: op.mix_policies([POLICY, actions], [0.5, 0.5], TRANSITIONS, INITIAL),
        lambda: op.policy_from_occupancy(POLICY / 2, actions),
    ):
        with refused("WrongRank", "op.policy_from_actions makes it a policy"):
            call()


def test_constraints_may_be_given_as_lists():
    made = stationary(costs=[COSTS[0], COSTS[0] / 2], cost_limit=[1, 2])
    assert made.num_constraints == 2
    assert made.cost_limits.tolist() == [1.0, 2.0]
    named = stationary(costs=[COSTS[0], COSTS[0] / 2], cost_limit=[1, 2], cost_range=(0, 2))
    assert named.cost_limits.tolist() == [1.0, 2.0]
