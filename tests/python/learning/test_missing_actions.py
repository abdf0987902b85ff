"""Learners that were told which actions exist, by the binding: what they hand out, show and refuse."""

import pickle

import numpy as np
import optpess as op
import pytest
from support.healthy import refused

from learning import cases

EPISODES = 60
MASK = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 1, 1]], dtype=bool)


def market():
    """A market in which the first action is cheap; the rows of missing actions are copied by hand."""
    generator = np.random.default_rng(5)
    transitions = generator.dirichlet(np.ones(3), size=(3, 3, 4))
    rewards, costs = generator.uniform(0.4, 1, (2, 3, 3, 4))
    rewards[..., 0] -= 0.4
    costs[..., 0] /= 10
    for state, action in np.argwhere(~MASK):
        for table in (transitions, rewards, costs):
            table[:, state, action] = table[:, state, 0]
    return op.CMDP(transitions, rewards, costs, 1.2, [0.5, 0.3, 0.2], noise=op.Bernoulli())


MARKET = market()
LEARNERS = cases.every_learner(MARKET, EPISODES, op.Scaled(0.02))


def told(name, mask=MASK):
    learner = LEARNERS[name]()
    learner._inner.restrict(mask)
    return learner


def policies(deployment):
    members = () if deployment.mixture is None else deployment.mixture.members
    return [deployment.policy, *(member.policy for member in members)]


@pytest.mark.parametrize("name", LEARNERS)
def test_nothing_that_is_handed_out_plays_a_missing_action(name):
    learner, generator = told(name), np.random.default_rng(1)
    for _ in range(EPISODES):
        deployment = learner.next_policy()
        for policy in policies(deployment):
            assert (policy[:, ~MASK] == 0).all()
            np.testing.assert_allclose(policy.sum(axis=2), 1.0, atol=1e-9)
        seed = int(generator.integers(2**32))
        states, actions, rewards, costs = op.sample(MARKET, deployment.policy, 1, seed=seed)
        learner.observe(states[0], actions[0], rewards[0], costs[0, 0])


@pytest.mark.parametrize("name", [name for name in LEARNERS if "HiGHS" not in name])
def test_no_missing_action_is_in_a_trace(name):
    trace = cases.run_of(MARKET, told(name), seed=2, trace=True, episodes=EPISODES).traces[0]
    assert MASK[trace.states, trace.actions].all()


@pytest.mark.parametrize("name", LEARNERS)
def test_estimates_show_that_missing_actions_were_not_played(name):
    learner = cases.driven(told(name), MARKET, 30)
    known, signals = learner.estimates, learner.signals
    assert (known.visits[:, ~MASK] == 0).all()
    assert (known.transition_counts[:, ~MASK] == 0).all()
    assert known.visits.sum() == 30 * MARKET.shape.horizon
    averages = [known.transitions, known.rewards, known.costs, known.bonus, signals.cost]
    for table in averages + ([] if signals.reward is None else [signals.reward]):
        for state, action in np.argwhere(~MASK):
            np.testing.assert_array_equal(table[:, state, action], table[:, state, 0])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_stored_learner_and_a_copy_keep_their_actions(name):
    learner = told(name)
    for twin in (pickle.loads(pickle.dumps(learner)), learner.__copy__()):
        deployment, states = twin.next_policy(), [0, 1, 2]
        actions = [deployment.action(step, state) for step, state in enumerate(states)]
        message = "actions[2] is 1; action 1 does not exist in state 2, where the actions are [0, 2, 3]"
        with refused("NoSuchAction", message):
            twin.observe(states, [*actions[:2], 1], [0.0] * 3, [0.0] * 3)
        twin.observe(states, actions, [0.0] * 3, [0.0] * 3)


def test_a_plan_of_highs_is_that_of_the_core():
    trace = cases.run_of(MARKET, told("OptPess-LP"), seed=3, trace=True).traces[0]
    ours, theirs = (
        cases.fed(told(name), trace, EPISODES - 1) for name in ("OptPess-LP", "OptPess-LP, HiGHS")
    )
    found, expected = theirs.next_policy(), ours.next_policy()
    assert found.source == expected.source == "PessimisticSet"
    assert found.optimistic_reward == pytest.approx(expected.optimistic_reward, abs=1e-6)


def test_the_mask_is_checked_and_comes_before_the_first_plan():
    learner = LEARNERS["OptPessMix"]()
    with refused("ShapeMismatch", "actions has shape [4, 3]; it must have shape [3, 4] (axes [S, A])"):
        learner._inner.restrict(MASK.T)
    nowhere = MASK.copy()
    nowhere[1] = False
    with refused("NoActionExists", "actions[1] is False for every action"):
        learner._inner.restrict(nowhere)
    first = MASK.copy()
    first[2, 0] = False
    message = "baseline[0, 2, 0] is 1; action 0 does not exist in state 2, where the actions are [2, 3]"
    with refused("NoSuchAction", message):
        learner._inner.restrict(first)
    learner._inner.restrict(MASK)
    with refused("OutOfTurn", "restrict was called out of turn", error=op.ProtocolError):
        learner._inner.restrict(MASK)


def test_a_policy_with_a_missing_action_is_not_certified():
    learner = told("OptPessMix")
    op.certify(cases.always_first(MARKET), learner)
    uniform = np.full(MARKET.shape, 0.25)
    message = "policy[0, 0, 2] is 0.25; action 2 does not exist in state 0, where the actions are [0, 1]"
    with refused("NoSuchAction", message):
        op.certify(uniform, learner)
    with refused("NoSuchAction", message):
        learner.worst_kernel(uniform)
