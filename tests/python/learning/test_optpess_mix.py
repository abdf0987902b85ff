"""OptPess-Mix from Python: safe on every problem tried, live and simulated, with any knowledge."""

from types import SimpleNamespace

import numpy as np
import optpess as op
import pytest

from learning import cases

STATIONARY = op.Knowledge(stationary=True)


def learner_for(problem, **changes):
    model = problem.model
    pairs = zip(model.cost_limits, problem.safe_costs, strict=True)
    margins = [op.SafetyMargin(float(limit), float(safe)) for limit, safe in pairs]
    arguments = {
        "shape": model.shape,
        "initial": model.initial,
        "baseline": op.SafeBaseline(problem.safe_policy, margins),
        "failure_probability": 0.01,
    }
    return op.OptPessMix(**arguments | changes)


def baseline_regret(problem, episodes):
    model = problem.model
    earned = op.evaluate(problem.safe_policy, model.rewards, model.transitions, model.initial)
    return episodes * (op.solve(model).value - earned)


@pytest.mark.parametrize(
    ("name", "knowledge", "part"),
    [
        ("ring", STATIONARY, 0.01),
        ("ring", op.Knowledge(), 0.05),
        ("media", STATIONARY, 0.15),
        ("inventory", STATIONARY, 0.15),
        ("pair", op.Knowledge(), 0.25),
        ("job_scheduling", op.Knowledge(), 0.5),
        ("inventory_stock_out", STATIONARY, 0.8),
        ("inventory_three_limits", STATIONARY, 0.8),
    ],
)
def test_no_episode_violates_and_the_regret_is_a_part_of_the_baselines(name, knowledge, part):
    problem, episodes = op.zoo.problem(name), 10_000
    learner = learner_for(problem, knowledge=knowledge)
    run = op.simulate(problem.model, learner, episodes=episodes, replicates=4, seed=8, progress=False)
    assert run.violating_episodes.sum() == 0
    assert np.median(run.reward_regret[:, -1]) < part * baseline_regret(problem, episodes)
    assert (run.certified_cost <= problem.model.cost_limits).all()
    assert (np.diff(run.weight[:, [0, -1]], axis=1) > 0).all()


def test_every_set_and_certificate_holds_in_an_audit():
    problem = op.zoo.problem("ring")
    learner = learner_for(problem, knowledge=STATIONARY)
    run = op.simulate(problem.model, learner, episodes=2000, replicates=5, audit=True, progress=False)
    for audit in run.audits:
        for check in ("PlausibleTransitions", "PlausibleCost", "MemberCost", "CostDominance"):
            assert audit[check].made > 10
            assert audit[check].failed == 0


def test_radii_that_are_far_too_small_fail_in_an_audit_and_carry_no_guarantee():
    problem = op.zoo.problem("media")
    learner = learner_for(problem, knowledge=STATIONARY, confidence=op.Scaled(0.2))
    assert learner.guarantee is None
    run = op.simulate(problem.model, learner, episodes=500, replicates=5, audit=True, progress=False)
    failed = [audit["PlausibleTransitions"].failed + audit["MemberCost"].failed for audit in run.audits]
    assert sum(failed) > 0


def test_a_live_learner_tosses_the_coin_of_replicate_zero():
    problem = op.zoo.problem("ring")
    run = op.simulate(
        problem.model, learner_for(problem, seed=1), episodes=300, seed=6, trace=True, progress=False
    )
    trace, learner = run.traces[0], learner_for(problem, seed=6)
    for number in range(300):
        deployment = learner.next_policy()
        chosen = deployment.policy[np.arange(6), trace.states[number], trace.actions[number]]
        assert (chosen > 0).all()
        mixture = deployment.mixture
        assert np.isclose(mixture.weights.sum(), 1)
        assert (mixture.weights @ [member.cost_bounds for member in mixture.members] <= 3).all()
        learner.observe(
            trace.states[number], trace.actions[number], trace.rewards[number], trace.costs[number]
        )
    assert learner.progress.weight == pytest.approx(run.weight[0, -1], abs=0.2)


def test_an_unknown_safe_cost_is_estimated_first():
    problem = op.zoo.problem("ring")
    baseline = op.SafeBaseline.estimated(problem.safe_policy, 3.0)
    learner = learner_for(problem, baseline=baseline, knowledge=STATIONARY)
    assert learner.next_policy().source == "BaselineEstimation"
    run = op.simulate(
        problem.model, learner_for(problem, baseline=baseline), episodes=5000, seed=2, progress=False
    )
    assert run.violating_episodes.sum() == 0
    assert 0 < run.estimation_episodes[0] < 2000
    assert run.reward_regret[0, -1] < 0.5 * baseline_regret(problem, 5000)


def test_knowledge_is_named_in_the_guarantee_and_narrows_the_certificates():
    # One action only, each of the two with equal chances: all learners see the same episodes.
    media = op.zoo.problem("media").model
    model = op.CMDP.stationary(
        media.transitions.to_array().mean(axis=1, keepdims=True),
        media.rewards[0].mean(axis=1, keepdims=True),
        media.costs[0][0].mean(axis=1, keepdims=True),
        8.0,
        media.initial,
        horizon=10,
    )
    policy = np.ones(model.shape)
    truth = op.evaluate(policy, model.costs[0], model.transitions, model.initial)
    problem = SimpleNamespace(model=model, safe_policy=policy, safe_costs=[truth])
    support = model.transitions.to_array() > 0
    everything = op.Knowledge(True, model.rewards[0], model.costs[0][0], support)
    learner = learner_for(problem, knowledge=everything)
    assert learner.guarantee == op.SafeMixture(0.99, ("stationary", "rewards", "costs", "support"))
    sampled = op.sample(model, policy, 200, seed=3)
    bounds = []
    for knowledge in (op.Knowledge(), STATIONARY, op.Knowledge(True, support=support), everything):
        learner = learner_for(problem, knowledge=knowledge)
        for states, actions, rewards, costs in zip(*sampled, strict=True):
            learner.next_policy()
            learner.observe(states, actions, rewards, costs[0])
        found = op.certify(policy, learner)
        assert found.best_case[0] <= truth <= found.worst_case[0]
        assert found.upper[0] <= found.worst_case[0]
        bounds.append(found.worst_case[0])
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.7 * bounds[0]
    assert found.is_safe
    assert found.upper[0] <= 8


def test_the_worst_kernel_attains_the_worst_case_over_the_boxes():
    problem = op.zoo.problem("pair")  # two states: the boxes are all the sets there are
    learner = learner_for(problem)
    cases.driven(learner, problem.model, 50)
    learner.next_policy()  # the signals are those of the last plan
    uniform = np.full(problem.model.shape, 0.5)
    cost, kernel = learner.worst_kernel(uniform)
    assert cost == pytest.approx(op.certify(uniform, learner).worst_case[0], abs=1e-11)
    assert np.allclose(kernel[:-1].sum(axis=-1), 1)
    assert op.evaluate(uniform, learner.signals.cost, kernel, problem.model.initial) >= cost - 1e-12
    truth = op.evaluate(
        uniform, problem.model.costs[0], problem.model.transitions, problem.model.initial
    )
    assert truth < cost
    with pytest.raises(op.InvalidInputError, match="constraint is 1"):
        learner.worst_kernel(uniform, 1)


def test_contradicted_knowledge_is_refused_by_name_and_changes_nothing():
    problem = op.zoo.problem("ring")
    support = problem.model.transitions.to_array() > 0
    learner = learner_for(problem, knowledge=op.Knowledge(support=support))
    deployment = learner.next_policy()
    assert deployment.policy[0, 0, 0] > 0
    states, before = [0, 2, 2, 2, 2, 2], cases.stored(learner)
    actions = [0, *cases.actions_of(deployment, states)[1:]]
    with pytest.raises(op.InvalidInputError, match=r"support\[0, 0, 0, 2\] was declared impossible"):
        learner.observe(states, actions, [0.0] * 6, [0.0] * 6)
    assert learner.episodes_observed == 0
    assert cases.stored(learner) == before
    learner.observe([0] * 6, [0] * 6, [0.0] * 6, [0.0] * 6)
    wrong = np.full((3, 2), 0.9)
    learner = learner_for(problem, knowledge=op.Knowledge(stationary=True, rewards=wrong))

    def stay(episodes):
        for _ in range(episodes):
            actions = cases.actions_of(learner.next_policy(), [0] * 6)
            learner.observe([0] * 6, actions, [0.0] * 6, [0.0] * 6)

    with pytest.raises(op.InvalidInputError, match=r"rewards\[0, 0\] was declared 0.9"):
        stay(50)


def test_unbounded_noise_needs_a_variance_proxy():
    ring = op.zoo.ring()
    model = op.CMDP.stationary(
        ring.transitions.to_array(),
        ring.rewards[0],
        ring.costs[0][0],
        3.0,
        ring.initial,
        horizon=6,
        noise=op.Gaussian(0.5),
    )
    problem = op.zoo.problem("ring")
    with pytest.raises(op.InvalidInputError, match=r"costs\[0, \d\] is .*must lie in \[0, 1\]"):
        op.simulate(model, learner_for(problem), episodes=50, progress=False)
    learner = learner_for(problem, variance_proxy=0.25, knowledge=STATIONARY)
    run = op.simulate(model, learner, episodes=5000, replicates=2, progress=False)
    assert run.violating_episodes.sum() == 0
    assert np.median(run.reward_regret[:, -1]) < 0.5 * baseline_regret(problem, 5000)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replan_growth": -1}, "replan_growth is -1"),
        ({"failure_probability": 1.0}, "failure_probability is 1"),
        (
            {"failure_probability": 1e-308},
            r"failure_probability is 1e-308; it must lie in \[1e-200, 1\)",
        ),
        ({"exploration": op.Exploration(share=2)}, "exploration share is 2"),
        ({"seed": -1}, "seed is -1"),
        ({"variance_proxy": 0.0}, "variance_proxy is 0"),
        ({"knowledge": op.Knowledge(support=np.zeros((3, 2, 3)))}, r"support\[0, 0\]"),
        ({"knowledge": op.Knowledge(rewards=np.zeros((2, 2)))}, "rewards has shape"),
        ({"confidence": op.Sharp()}, "no proof for OptPess-Mix"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(changes, message):
    with pytest.raises(op.InvalidInputError, match=message):
        learner_for(op.zoo.problem("ring"), **changes)


def test_a_model_with_other_limits_is_refused():
    problem = op.zoo.problem("inventory_stock_out")
    one = learner_for(op.zoo.problem("inventory"))
    with pytest.raises(op.InvalidInputError, match="model has 2 limits and learner 1"):
        op.simulate(problem.model, one, episodes=10, progress=False)
    with pytest.raises(op.InvalidInputError, match="2 limits"):
        op.OptPessLP(
            shape=problem.model.shape,
            initial=problem.model.initial,
            num_episodes=10,
            baseline=op.SafeBaseline(
                problem.safe_policy, [op.SafetyMargin(2.5, 2.1), op.SafetyMargin(0.25, 0.0)]
            ),
        )
    learner = learner_for(problem)
    actions = cases.actions_of(learner.next_policy(), [0] * 7)
    with pytest.raises(op.InvalidInputError, match=r"costs has shape \[7\]"):
        learner.observe([0] * 7, actions, [0.0] * 7, [0.0] * 7)
    learner.observe([0] * 7, actions, [0.0] * 7, np.zeros((2, 7)))
    assert learner.episodes_observed == 1


def test_the_estimates_of_the_mix_learner_are_those_of_what_it_has_seen():
    # Its transitions were once all zero: no plan of it uses them, so nothing refreshed them.
    model = cases.market()
    known = cases.driven(
        cases.every_learner(model, 60, op.Theorem())["OptPessMix"](), model, 60
    ).estimates
    visited = known.visits[:-1] > 0
    np.testing.assert_allclose(known.transitions[:-1].sum(axis=-1), visited, atol=1e-12)
    counts = known.transition_counts[:-1][visited]
    np.testing.assert_allclose(
        known.transitions[:-1][visited], counts / counts.sum(axis=-1, keepdims=True), atol=1e-12
    )
