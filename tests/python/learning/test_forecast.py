"""What is expected of a run before it is run, against what happens."""

from itertools import count

import numpy as np
import optpess as op
import pytest
from optpess.run import forecast as forecasting

from learning import cases

PAIR = op.zoo.pair()


def test_the_baseline_is_left_when_it_was_forecast_within_a_tenth():
    episodes = 200_000
    learner = cases.optpess_lp(PAIR, episodes)
    forecast = op.forecast(PAIR, learner)
    run = cases.run_of(PAIR, learner, replicates=4)
    assert 0 < forecast.leaves_baseline < episodes
    np.testing.assert_allclose(run.first_planned, forecast.leaves_baseline, rtol=0.1)
    assert forecast.tightening_horizon is None
    assert forecast.seconds is None  # the time of its plans is not known yet


def test_a_run_that_cannot_leave_the_baseline_says_so_beforehand():
    learner = cases.optpess_lp(PAIR, 1000)
    assert op.forecast(PAIR, learner).leaves_baseline is None
    expected = "expected to play the baseline in all 1000 episodes.*not within K.*optpess.forecast"
    with pytest.warns(UserWarning, match=expected):
        run = cases.run_of(PAIR, learner)
    assert run.baseline_episodes[0] == 1000


def test_a_gate_that_opens_after_the_last_episode_is_forecast_by_number():
    # Once None, however near or far it was.
    short, long = cases.optpess_lp(PAIR, 1000), cases.optpess_lp(PAIR, 200_000)
    beyond, within = op.forecast(PAIR, short), op.forecast(PAIR, long)
    assert beyond.leaves_baseline is None
    assert beyond.beyond_num_episodes
    assert not within.beyond_num_episodes
    assert within.would_leave_baseline == within.leaves_baseline
    # The counts that are needed are proportional to Z, which keeps the learner's own K.
    ratio = short._inner.log_factor / long._inner.log_factor
    expected = within.leaves_baseline * ratio
    assert beyond.would_leave_baseline == pytest.approx(expected, rel=1e-4)
    with pytest.warns(UserWarning, match=f"not within K, but at episode {beyond.would_leave_baseline};"):
        cases.run_of(PAIR, short)


def test_the_forecast_ends_at_the_last_episode_and_not_one_before_or_after():
    opens = op.forecast(PAIR, cases.optpess_lp(PAIR, 10**6)).would_leave_baseline
    for _ in range(8):  # K enters Z, so the smallest K that is enough is found by iteration
        opens = op.forecast(PAIR, cases.optpess_lp(PAIR, opens + 1)).would_leave_baseline
    enough = op.forecast(PAIR, cases.optpess_lp(PAIR, opens + 1))
    assert (enough.leaves_baseline, enough.beyond_num_episodes) == (opens, False)
    one_less = op.forecast(PAIR, cases.optpess_lp(PAIR, opens))
    assert (one_less.leaves_baseline, one_less.beyond_num_episodes) == (None, True)
    assert one_less.would_leave_baseline == opens


@pytest.mark.parametrize(("margin", "digits"), [(1e-3, range(9, 13)), (1e-6, range(15, 19))])
def test_numbers_far_beyond_any_run_are_forecast(margin, digits):
    cost = cases.safe_cost_of(PAIR)
    model = op.CMDP(PAIR.transitions, PAIR.rewards, PAIR.costs, cost + margin, PAIR.initial)
    tight = op.SafeBaseline(cases.always_first(PAIR), op.SafetyMargin(cost + margin, cost))
    found = op.forecast(model, cases.optpess_lp(model, 1000, baseline=tight)).would_leave_baseline
    assert len(str(found)) in digits


def test_a_gate_that_opens_after_10_to_the_18_episodes_has_no_number():
    cost = cases.safe_cost_of(PAIR)
    model = op.CMDP(PAIR.transitions, PAIR.rewards, PAIR.costs, cost + 1e-8, PAIR.initial)
    tight = op.SafeBaseline(cases.always_first(PAIR), op.SafetyMargin(cost + 1e-8, cost))
    learner = cases.optpess_lp(model, 1000, baseline=tight)
    forecast = op.forecast(model, learner)
    assert forecast.would_leave_baseline is None
    assert not forecast.beyond_num_episodes
    with pytest.warns(UserWarning, match="not within 10\\^18 episodes"):
        cases.run_of(model, learner)


def test_other_learners_have_no_baseline_to_leave():
    forecast = op.forecast(PAIR, cases.primal_dual(PAIR, 100))
    assert (forecast.would_leave_baseline, forecast.beyond_num_episodes) == (None, False)
    assert op.Forecast(None, None, 1.0) == op.Forecast(None, None, 1.0, None, False)


def test_a_part_of_a_run_that_ends_before_the_gate_opens_says_so():
    learner = cases.optpess_lp(PAIR, 200_000)
    leaves = op.forecast(PAIR, learner).leaves_baseline
    with pytest.warns(UserWarning, match=f"at episode {leaves}"):
        cases.run_of(PAIR, learner, episodes=100)


def test_what_has_been_played_already_counts_towards_the_forecast():
    # The warning once compared the gate's episode with the episodes still to come.
    learner = cases.optpess_lp(PAIR, 2000, confidence=op.Scaled(0.1))
    leaves = op.forecast(PAIR, learner).leaves_baseline
    assert 200 < leaves < 1500
    trace = cases.run_of(PAIR, learner, trace=True).traces[0]
    cases.fed(learner, trace, leaves - 50)
    run = cases.run_of(PAIR, learner, episodes=200)  # a warning would be an error
    assert run.baseline_episodes[0] < 200


def test_the_forecast_of_primal_dual_is_its_tightening_horizon():
    forecast = op.forecast(PAIR, cases.primal_dual(PAIR, 10_000))
    assert forecast.leaves_baseline is None
    assert forecast.tightening_horizon > 100_000


@pytest.fixture
def a_second_a_burst(monkeypatch):
    seconds = count()
    monkeypatch.setattr(forecasting.time, "perf_counter", lambda: float(next(seconds)))


@pytest.mark.usefixtures("a_second_a_burst")
def test_the_time_is_that_of_a_burst_times_the_episodes_that_are_left():
    learner = cases.primal_dual(PAIR, 10_000)
    assert op.forecast(PAIR, learner).seconds == 10_000  # a second for the first one
    trace = cases.run_of(PAIR, learner, trace=True, episodes=9999).traces[0]
    assert op.forecast(PAIR, cases.fed(learner, trace, 9999)).seconds == 1.0


@pytest.mark.usefixtures("a_second_a_burst")
def test_a_learner_past_its_gate_is_timed_while_it_plans():
    learner = cases.optpess_lp(PAIR, 2000, confidence=op.Scaled(0.01))
    leaves = op.forecast(PAIR, learner).leaves_baseline
    trace = cases.run_of(PAIR, learner, trace=True).traces[0]
    later = cases.fed(learner, trace, 2 * leaves + 1)
    deployment = later.next_policy()
    assert deployment.source == "PessimisticSet"
    later.observe(*cases.played(deployment, PAIR, 0))
    assert op.forecast(PAIR, later).seconds == 2000 - later.episodes_observed


def test_nothing_is_left_to_time_at_the_end():
    learner = cases.primal_dual(PAIR, 5)
    trace = cases.run_of(PAIR, learner, trace=True).traces[0]
    assert op.forecast(PAIR, cases.fed(learner, trace, 5)).seconds == 0.0


def test_an_estimated_safe_cost_is_not_forecast_and_not_warned_about():
    baseline = op.SafeBaseline.estimated(cases.always_first(PAIR), 0.6)
    learner = cases.optpess_lp(PAIR, 100, baseline=baseline)
    assert op.forecast(PAIR, learner).leaves_baseline is None
    assert cases.run_of(PAIR, learner).baseline_episodes[0] == 100


def test_the_tightening_horizon_does_not_depend_on_the_unit_of_cost():
    # The margin was taken in the user's units.
    pair = op.zoo.pair()
    model = op.CMDP.stationary(
        pair.transitions,
        pair.stored_rewards(),
        8 * pair.stored_costs() + 2,
        8 * 0.6 + 4,
        pair.initial,
        horizon=2,
        cost_range=(2, 10),
    )
    given = {"shape": pair.shape, "initial": pair.initial, "num_episodes": 10**9}
    plain = op.OptPessPrimalDual(margin=op.SafetyMargin(0.6, 0.135), **given)
    margin = op.SafetyMargin(8 * 0.6 + 4, 8 * 0.135 + 4)
    mapped = op.OptPessPrimalDual(margin=margin, cost_range=(2, 10), **given)
    expected = op.forecast(pair, plain).tightening_horizon
    assert expected == plain.guarantee.tightening_horizon
    assert op.forecast(model, mapped).tightening_horizon == pytest.approx(expected, rel=1e-9)
