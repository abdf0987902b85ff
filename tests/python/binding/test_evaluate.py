"""Exact evaluation through the border: small answers by hand, and what the answers look like."""

import numpy as np
import optpess as op
import pytest
from support import healthy, reference
from support.healthy import INITIAL, POLICY, REWARDS, TRANSITIONS, A, H, S, refused


@pytest.mark.parametrize("make", [np.asarray, op.Transitions, healthy.sparse])
def test_a_hand_made_chain_has_its_hand_made_value(make):
    # State 0 pays 1/2 and moves to state 1 with probability 1/4; state 1 pays 1 and is left never.
    moves = make(np.array([[[0.75, 0.25]], [[0.0, 1.0]]]))
    policy, pay = np.ones((2, 2, 1)), [[0.5], [1.0]]
    assert op.evaluate(policy, pay, moves, [1.0, 0.0]) == 0.5 + 0.75 * 0.5 + 0.25  # exact in binary
    expected = [[1.125, 2.0], [0.5, 1.0], [0.0, 0.0]]
    np.testing.assert_array_equal(op.state_values(policy, pay, moves), expected)
    visits = op.occupancy(policy, moves, [1.0, 0.0])
    np.testing.assert_array_equal(visits[..., 0], [[1.0, 0.0], [0.75, 0.25]])


def test_mass_that_leaks_earns_nothing_more():
    policy, nothing = np.ones((3, 1, 1)), np.zeros((1, 1, 1))
    assert op.evaluate(policy, [[1.0]], nothing, [1.0]) == 1.0  # exact: one step, then gone


def test_a_single_step_never_looks_at_the_transitions():
    policy = POLICY[:1]
    expected = reference.evaluate(policy, REWARDS[:1], TRANSITIONS[:1], INITIAL)
    anything = np.full((1, S, A, S), np.nan)
    assert op.evaluate(policy, REWARDS[:1], anything, INITIAL) == pytest.approx(expected)


def test_answers_have_the_documented_shapes_and_types():
    model = healthy.model()
    found = {name: call() for name, call in healthy.calls(model).items()}
    assert type(found["evaluate"]) is type(found["value_difference"]) is float
    shapes = {"state_values": (H + 1, S), "occupancy": (H, S, A)}
    shapes |= {"policy_from_occupancy": (H, S, A), "mix_policies": (H, S, A)}
    for name, shape in shapes.items():
        assert (found[name].shape, found[name].dtype) == (shape, np.float64), name
    policy, values = found["backward_induction"]
    assert (policy.shape, values.shape) == ((H, S, A), (H + 1, S))
    states, actions, rewards, costs = found["sample"]
    assert states.shape == actions.shape == rewards.shape == (3, H)
    assert (states.dtype, actions.dtype, costs.shape) == (np.int64, np.int64, (3, 1, H))


def test_backward_induction_takes_the_horizon_from_whatever_has_one():
    once, rewards = TRANSITIONS[0], REWARDS[0]
    _, expected = op.backward_induction(np.stack([rewards] * H), np.stack([once] * H))
    for signal, kernel, horizon in (
        (rewards, once, H),
        (rewards, np.stack([once] * H), None),
        (np.stack([rewards] * H), once, None),
        (rewards, op.Transitions(np.stack([once] * H)), H),
    ):
        _, values = op.backward_induction(signal, kernel, horizon=horizon)
        np.testing.assert_array_equal(values, expected)  # exact: the same operations


def test_backward_induction_asks_for_a_horizon_nothing_has():
    with refused("WrongRank", "signal has shape [2, 2]", "with the horizon given"):
        op.backward_induction(REWARDS[0], TRANSITIONS[0])


def test_where_no_mass_arrives_a_mixture_is_the_average():
    nothing = np.zeros((S, A, S))
    always = [np.eye(A)[np.full((H, S), action)] for action in range(A)]
    mixed = op.mix_policies(always, [0.25, 0.75], nothing, [1.0, 0.0])
    np.testing.assert_array_equal(mixed[1:], np.broadcast_to([0.25, 0.75], (H - 1, S, A)))


def test_only_the_start_value_of_a_mixture_is_the_average():
    # The paper states the average for every state and step. Here only the first policy reaches
    # state 1, so there the mixture is that policy and not an average.
    moves = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    first, second = np.eye(2)[np.zeros((2, 2), int)], np.eye(2)[np.ones((2, 2), int)]
    pay = np.zeros((2, 2, 2))
    pay[1, 1, 0] = 1.0
    rest = (pay, moves)
    mixed = op.mix_policies([first, second], [0.5, 0.5], moves, [1.0, 0.0])
    assert op.evaluate(mixed, *rest, [1.0, 0.0]) == 0.5  # exact in binary
    each = [op.state_values(policy, *rest)[1, 1] for policy in (first, second, mixed)]
    assert each == [1.0, 0.0, 1.0]


def test_transitions_describe_themselves():
    assert repr(op.Transitions(TRANSITIONS)) == "Transitions(states=2, actions=2, horizon=3, dense)"
    assert "stationary, sparse with 7 entries" in repr(healthy.sparse(TRANSITIONS[0]))
    kernel = healthy.sparse()
    assert (kernel.num_states, kernel.num_actions, kernel.horizon) == (S, A, H)
    assert kernel.is_sparse
    assert op.Transitions(TRANSITIONS[0]).horizon is None


def test_sparse_rows_are_handed_out_as_they_were_given():
    stored = dict(healthy.sparse().stored())
    for found, given in zip(stored.values(), healthy.compressed(), strict=True):
        np.testing.assert_array_equal(found, given)
    assert list(stored) == ["offsets", "successors", "probabilities"]
