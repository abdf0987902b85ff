"""How far a learner says it is, against what it then does."""

import numpy as np
import optpess as op
import pytest

from learning import cases

PAIR = op.zoo.pair()
EPISODES = 400


def trace_of(make, episodes=EPISODES):
    """A trace of the learner that a function makes; that of the compiled engine for HiGHS."""
    learner = make()
    if getattr(learner, "engine", "parametric") == "highs":
        learner = cases.optpess_lp(PAIR, learner.num_episodes, confidence=op.Scaled(0.05))
    return cases.run_of(PAIR, learner, trace=True, episodes=episodes).traces[0]


LEARNERS = cases.every_learner(PAIR, EPISODES, op.Scaled(0.05))


@pytest.mark.parametrize("name", LEARNERS)
def test_asking_changes_neither_the_learner_nor_any_later_plan(name):
    make = LEARNERS[name]
    trace, asked, other = trace_of(make), make(), make()
    for number in range(EPISODES):
        for each in (asked, other):
            if each is asked and number % 7 == 0:
                before = cases.stored(each)
                assert each.progress == each.progress
                assert cases.stored(each) == before
            deployment = each.next_policy()
            if each is asked:
                before = cases.stored(each)
                assert each.progress.episodes_observed == number  # while an episode is being played
                assert cases.stored(each) == before
                planned = deployment
        assert planned.policy.tobytes() == deployment.policy.tobytes()
        for each in (asked, other):
            each.observe(*cases.episode(trace, number))
    assert cases.stored(asked) == cases.stored(other)
    assert asked.progress.episodes_observed == EPISODES
    assert asked.progress.num_episodes == asked.num_episodes  # None for a learner that needs no K


@pytest.mark.parametrize(
    ("name", "factor"), [("OptPess-LP", 0.05), ("OptPess-LP, estimated", 0.05), ("CUCRL", 0.1)]
)
def test_what_is_said_is_what_is_played(name, factor):
    make = cases.every_learner(PAIR, EPISODES, op.Scaled(factor))[name]
    trace, learner, sources = trace_of(make), make(), set()
    for number in range(EPISODES):
        before = learner.progress
        deployment = learner.next_policy()
        during = learner.progress
        on_baseline = deployment.source in ("Baseline", "BaselineEstimation")
        sources.add(on_baseline)
        for progress in (before, during):
            assert progress.on_baseline == on_baseline
            assert progress.certified_cost == pytest.approx(deployment.biased_cost, rel=1e-12)
            assert (progress.cost_limit, progress.num_episodes) == (0.6, EPISODES)
            assert progress.tightening_horizon is progress.weight is None
            assert on_baseline or progress.episodes_left == 0
            assert on_baseline or progress.certified_cost <= 0.6
            assert (progress.gate_open is None) == (name == "CUCRL")
            if progress.gate_open is not None:
                assert progress.gate_open != on_baseline
        learner.observe(*cases.episode(trace, number))
    assert sources == {True, False}  # both were seen


def test_the_gate_is_the_pessimistic_cost_of_the_baseline_against_the_middle():
    learner = cases.optpess_lp(PAIR, 1000)
    cases.fed(learner, cases.run_of(PAIR, learner, trace=True, episodes=50).traces[0], 50)
    progress = learner.progress
    policy, signals = cases.always_first(PAIR), learner.signals
    cost = op.evaluate(policy, signals.cost, learner.estimates.transitions, PAIR.initial)
    assert progress.gate_cost == progress.certified_cost == pytest.approx(cost, rel=1e-12)
    assert progress.gate_threshold == pytest.approx((0.6 + cases.safe_cost_of(PAIR)) / 2)
    assert progress.gate_open is (cost < progress.gate_threshold)


def test_what_is_left_approaches_the_forecast_and_comes_true():
    learner = cases.optpess_lp(PAIR, 200_000, confidence=op.Scaled(0.1))
    forecast = op.forecast(PAIR, learner).leaves_baseline
    trace = cases.run_of(PAIR, learner, trace=True, episodes=2 * forecast).traces[0]
    leaves = int(np.argmin(trace.on_baseline))
    assert learner.progress.episodes_left is None  # nothing has been seen
    for number in range(leaves + 1):
        progress = learner.progress
        if number >= leaves // 2:
            left = leaves - number
            assert progress.episodes_left == pytest.approx(left, abs=0.2 * leaves)
        if number == leaves - 1:
            assert 1 <= progress.episodes_left <= 5
        learner.next_policy()
        learner.observe(*cases.episode(trace, number))
    assert learner.progress.episodes_left == 0


def test_an_estimate_may_lie_beyond_the_last_episode_and_says_so():
    learner = cases.optpess_lp(PAIR, 1000)
    trace = cases.run_of(PAIR, learner, trace=True).traces[0]
    cases.fed(learner, trace, 1000)
    progress = learner.progress
    expected = op.forecast(PAIR, learner).would_leave_baseline
    assert progress.episodes_left + 1000 == pytest.approx(expected, rel=0.2)
    assert "1,000 of 1,000 episodes" in str(progress)
    assert f"in about {progress.episodes_left:,} (beyond the last) episodes" in str(progress)


def test_nothing_is_estimated_while_the_safe_cost_is():
    baseline = op.SafeBaseline.estimated(cases.always_first(PAIR), 0.6)
    learner = cases.optpess_lp(PAIR, 100, baseline=baseline)
    progress = learner.progress
    assert (progress.gate_open, progress.gate_threshold, progress.episodes_left) == (False, None, None)
    assert progress.gate_cost > 0
    assert "the safe cost is being estimated" in str(progress)


def test_primal_dual_says_until_when_the_limit_may_be_exceeded():
    learner = cases.primal_dual(PAIR, 1000)
    progress, horizon = learner.progress, learner.guarantee.tightening_horizon
    assert progress.tightening_horizon == horizon
    assert progress.certified_cost is progress.gate_open is progress.episodes_left is None
    assert not progress.on_baseline
    assert f"until episode {horizon:,}" in str(progress)


def test_a_learner_that_never_leaves_the_baseline_does_not_say_when():
    progress = LEARNERS["AlwaysBaseline"]().progress
    assert progress.on_baseline
    assert progress.episodes_left is None
    assert progress.certified_cost == pytest.approx(cases.SAFE_COST)


def test_a_line_has_a_place_for_a_learner_without_a_last_episode_and_with_a_coin():
    progress = op.Progress(
        episodes_observed=1234,
        num_episodes=None,
        on_baseline=True,
        certified_cost=0.5,
        cost_limit=0.6,
        gate_cost=None,
        gate_threshold=None,
        gate_open=None,
        tightening_horizon=None,
        weight=0.25,
        episodes_left=3 * 10**12,
    )
    assert str(progress) == (
        "1,234 episodes; plays the baseline: certified cost 0.5, limit 0.6; weight 0.25; "
        "leaves the baseline in about 3e+12 episodes"
    )
    assert "\n" not in str(progress)
    with pytest.raises(AttributeError):
        progress.weight = 1.0


def test_the_weight_of_no_policy_is_zero_without_a_sign():
    # A new learner whose mixture is its baseline alone said "weight -0".
    safe = op.policy_from_actions(np.zeros((12, 8), int), num_actions=3)
    learner = op.OptPessMix(
        shape=(12, 8, 3), initial=1, baseline=op.SafeBaseline(safe, op.SafetyMargin(6.0, 1.0))
    )
    assert learner.progress.weight == 0.0
    assert str(learner.progress).endswith("; weight 0")
