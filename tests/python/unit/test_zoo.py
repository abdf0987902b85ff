"""The named problems: their published facts."""

import numpy as np
import optpess as op
import pytest
from support.healthy import refused

# name: (S, A, H), limit, the best value without the limit
FACTS = {
    "pair": ((2, 2, 2), 0.6, 1.48),
    "ring": ((3, 2, 6), 3.0, 4.0),
    "inventory": ((6, 6, 7), 3.5, 7.0),
    "media": ((10, 2, 10), 5.0, 4.606862),
    "two_bit": ((6, 2, 3), 0.1, 1.0),
}


@pytest.mark.parametrize("name", FACTS)
def test_a_named_problem_has_its_published_facts(name):
    (num_states, num_actions, horizon), limit, best = FACTS[name]
    model = getattr(op.zoo, name)()
    assert model.shape == (horizon, num_states, num_actions)
    np.testing.assert_array_equal(model.cost_limits, [limit])
    _, values = op.backward_induction(model.rewards, model.transitions)
    assert model.initial @ values[0] == pytest.approx(best, abs=5e-7)


def test_the_first_action_of_the_pair_is_its_safe_policy():
    model = op.zoo.pair()
    policy = np.eye(2)[np.zeros((2, 2), int)]
    rest = (model.transitions, model.initial)
    assert op.evaluate(policy, model.costs[0], *rest) == pytest.approx(0.135, rel=1e-14)
    assert op.evaluate(policy, model.rewards, *rest) == pytest.approx(0.27, rel=1e-14)


def test_rewards_and_costs_of_the_inventory_are_scaled_to_a_maximum_of_one():
    model = op.zoo.inventory()
    assert model.rewards.max() == model.costs.max() == 1.0  # exact: a number divided by itself


def test_staying_on_the_ring_is_free():
    model = op.zoo.ring()
    stay = np.eye(2)[np.zeros((6, 3), int)]
    for signal in (model.rewards, model.costs[0]):
        assert op.evaluate(stay, signal, model.transitions, model.initial) == 0.0


def test_a_garnet_has_the_successors_that_were_asked_for():
    model = op.zoo.garnet(20, 3, 5, successors=4, seed=1)
    assert model.shape == (5, 20, 3)
    assert model.transitions.is_sparse
    rows = model.transitions.to_array().reshape(-1, 20)
    np.testing.assert_array_equal((rows > 0).sum(axis=1), 4)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.cost_limits, [5 / 3])


def test_a_garnet_may_have_every_state_as_successor():
    assert op.zoo.garnet(4, 2, 2, successors=4, seed=1).transitions.to_array().min() > 0


def test_a_garnet_depends_on_its_seed_alone():
    same = [op.zoo.garnet(6, 2, 3, successors=2, seed=5, cost_limit=1.0) for _ in range(2)]
    other = op.zoo.garnet(6, 2, 3, successors=2, seed=6, cost_limit=1.0)
    np.testing.assert_array_equal(same[0].transitions.to_array(), same[1].transitions.to_array())
    assert not np.array_equal(same[0].rewards, other.rewards)
    np.testing.assert_array_equal(other.cost_limits, [1.0])


@pytest.mark.parametrize("successors", [0, -1, 7])
def test_a_garnet_refuses_a_number_of_successors_it_cannot_have(successors):
    with refused(None, f"successors is {successors}", "[1, 6]"):
        op.zoo.garnet(6, 2, 3, successors=successors, seed=0)
