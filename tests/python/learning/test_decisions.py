"""What is deployed, and why: the gate, the plan, the price."""

import numpy as np
import optpess as op
import pytest
from support import reference
from support.healthy import refused

from learning import cases, paper

EPISODES = 500


@pytest.fixture(scope="module")
def model():
    return cases.market()


@pytest.fixture(scope="module")
def trace(model):
    learner = cases.optpess_lp(model, EPISODES, confidence=op.Scaled(0.02))
    return cases.run_of(model, learner, trace=True).traces[0]


def test_the_gate_opens_when_the_pessimistic_cost_of_the_baseline_falls_below_the_midpoint(model, trace):
    learner = cases.optpess_lp(model, EPISODES, confidence=op.Scaled(0.02))
    baseline = cases.always_first(model)
    midpoint = (learner.cost_limit + learner.safe_cost) / 2
    sources = []
    for number in range(EPISODES):
        cost, transitions = learner.signals.cost, learner.estimates.transitions
        pessimistic = reference.evaluate(baseline, cost, transitions, model.initial)
        assert abs(pessimistic - midpoint) > 1e-9, "choose another seed: this gate is a coin toss"
        deployment = learner.next_policy()
        sources.append(deployment.source)
        assert deployment.episode == number
        if pessimistic >= midpoint:
            assert deployment.source == "Baseline"
            assert deployment.biased_cost == pytest.approx(pessimistic, rel=1e-12)
            np.testing.assert_array_equal(deployment.policy, baseline)
            assert deployment.certificate is None
            assert np.isnan(deployment.optimistic_reward)
        else:
            assert deployment.source == "PessimisticSet"
        learner.observe(*cases.episode(trace, number))
    assert set(sources) == {"Baseline", "PessimisticSet"}
    np.testing.assert_array_equal(trace.on_baseline, np.array(sources) == "Baseline")


def test_the_plan_is_the_best_of_the_pessimistic_set_and_its_certificate_is_true(model, trace):
    learner = cases.optpess_lp(model, EPISODES, confidence=op.Scaled(0.02))
    baseline, planned = cases.always_first(model), 0
    for number in range(EPISODES):
        signals, transitions = learner.signals, learner.estimates.transitions
        deployment = learner.next_policy()
        if deployment.source == "PessimisticSet":
            planned += 1
            rest = (transitions, model.initial)
            plan = op.solve_signals(signals.reward, signals.cost, *rest, learner.cost_limit)
            value = reference.evaluate(deployment.policy, signals.reward, *rest)
            cost = reference.evaluate(deployment.policy, signals.cost, *rest)
            assert value == pytest.approx(plan.value, rel=1e-9)
            assert deployment.optimistic_reward == pytest.approx(value, rel=1e-12)
            assert deployment.certificate.cost == pytest.approx(cost, rel=1e-12)
            assert deployment.biased_cost == deployment.certificate.cost
            assert deployment.certificate.limit == learner.cost_limit
            assert cost <= learner.cost_limit * (1 + 1e-12)
            assert deployment.certificate.least_slack == learner.cost_limit - deployment.biased_cost
            unreached = reference.occupancy(deployment.policy, *rest).sum(axis=2) == 0
            np.testing.assert_array_equal(deployment.policy[unreached], baseline[unreached])
        learner.observe(*cases.episode(trace, number))
    assert planned > 100


@pytest.mark.parametrize("confidence", [op.Theorem(), op.Scaled(1e-3)], ids=repr)
def test_the_price_and_the_policy_of_primal_dual_follow_the_algorithm_box(model, confidence):
    # With the theorem's bonus the optimistic cost is negative and truncated; with little, it is not.
    learner = cases.primal_dual(model, EPISODES, confidence=confidence)
    margin = (learner.cost_limit, learner.safe_cost)
    multiplier, signs = 0.0, set()
    for number in range(EPISODES):
        k = number + 1
        signals, transitions = learner.signals, learner.estimates.transitions
        assert learner.multiplier == pytest.approx(multiplier, rel=1e-12)
        price = learner.multiplier / paper.scaling(k, model.shape, margin)
        priced = signals.reward - price * signals.cost
        deployment = learner.next_policy()
        _, values = reference.backward_induction(priced, transitions)
        own = reference.state_values(deployment.policy, priced, transitions)
        scale = np.abs(priced).max()
        np.testing.assert_allclose(own, values, atol=1e-11 * scale)
        assert np.isin(deployment.policy, [0.0, 1.0]).all()
        assert deployment.source == "Lagrangian"
        assert deployment.certificate is None
        rest = (transitions, model.initial)
        cost = reference.evaluate(deployment.policy, signals.cost, *rest)
        reward = reference.evaluate(deployment.policy, signals.reward, *rest)
        size = np.abs(signals.cost).max()
        assert deployment.biased_cost == pytest.approx(cost, abs=1e-11 * size)
        assert deployment.optimistic_reward == pytest.approx(reward, rel=1e-11)
        # The price changes when the episode has been seen, not when it is planned.
        assert learner.multiplier == pytest.approx(multiplier, rel=1e-12)
        learner.observe(*cases.played(deployment, model, number))
        multiplier = paper.next_multiplier(
            multiplier, deployment.biased_cost, k, model.shape, margin, cases.DELTA
        )
        signs.add(deployment.biased_cost > 0)
    assert signs == ({False} if isinstance(confidence, op.Theorem) else {False, True})


def test_ties_go_to_the_lowest_action(model, trace):
    learner = cases.primal_dual(model, EPISODES)
    np.testing.assert_array_equal(learner.next_policy().policy, cases.always_first(model))
    learner.observe(*cases.episode(trace, 0))
    first_choices = learner.next_policy().policy[..., 0]
    unseen = learner.estimates.visits.sum(axis=2) == 0
    assert (first_choices[unseen] == 1.0).all()


def test_a_price_that_is_no_longer_needed_falls_to_exactly_zero_and_stays():
    # One free step: the tightening alone raises the price, and the limit takes it down again.
    shape, margin, delta, episodes = (1, 1, 2), (1.0, 0.0), 0.9, 4000
    learner = op.OptPessPrimalDual(
        shape=shape,
        initial=[1.0],
        margin=op.SafetyMargin(cost_limit=1.0, safe_cost=0.0),
        num_episodes=episodes,
        failure_probability=delta,
    )
    expected, highest = 0.0, 0.0
    for k in range(1, episodes + 1):
        assert learner.multiplier == pytest.approx(expected, rel=1e-9, abs=1e-9)
        deployment = learner.next_policy()
        learner.observe([0], [int(deployment.policy[0, 0].argmax())], [1.0], [0.0])
        expected = paper.next_multiplier(expected, deployment.biased_cost, k, shape, margin, delta)
        highest = max(highest, expected)
    assert highest > 100
    assert learner.multiplier == 0.0


@pytest.mark.parametrize("bounded", [True, False])
def test_observations_too_large_to_add_up_are_refused_and_keep_the_gate_shut(model, bounded):
    # The pessimistic cost was then not a number, and once a comparison with it opened the gate.
    learner = cases.optpess_lp(model, 10, bounded_observations=bounded)
    for _ in range(3):
        assert learner.next_policy().source == "Baseline"
        before = cases.stored(learner)
        with refused("ObservationOutOfRange", "costs[0] is 1.7e308", "cost_range"):
            learner.observe([0, 0, 0], [0, 0, 0], [0.0] * 3, [1.7e308] * 3)
        assert cases.stored(learner) == before
        learner.observe([0, 0, 0], [0, 0, 0], [0.0] * 3, [1.0] * 3)
    assert learner.next_policy().source == "Baseline"
