"""The record between its points: what was deployed, the gain over the baseline, units."""

import math

import numpy as np
import optpess as op
import pytest

from learning import cases

EPISODES = 700
MARKET = cases.market()
WINDOWS = ("deployed_value", "deployed_cost")


def two_limits():
    """The market with a second cost, and a learner that keeps both limits."""
    first = MARKET.costs[0]
    model = op.CMDP(
        MARKET.transitions,
        MARKET.rewards,
        np.stack([first, first / 2]),
        [1.2, 0.7],
        MARKET.initial,
    )
    policy = cases.always_first(model)
    costs = [op.evaluate(policy, cost, model.transitions, model.initial) for cost in model.costs]
    pairs = zip(model.cost_limits, costs, strict=True)
    margins = [op.SafetyMargin(float(limit), cost + 1e-9) for limit, cost in pairs]
    learner = op.OptPessMix(
        shape=model.shape,
        initial=model.initial,
        baseline=op.SafeBaseline(policy, margins),
        confidence=op.Scaled(0.05),
        knowledge=op.Knowledge(stationary=False),
    )
    return model, learner


CASES = {
    "OptPess-LP": lambda: (
        MARKET,
        cases.optpess_lp(MARKET, EPISODES, confidence=op.Scaled(0.02)),
    ),
    "OptPess-PrimalDual": lambda: (MARKET, cases.primal_dual(MARKET, EPISODES)),
    "two limits": two_limits,
}


@pytest.fixture(scope="module", params=CASES)
def run(request):
    model, learner = CASES[request.param]()
    return cases.run_of(model, learner, replicates=3, seed=2, episodes=EPISODES, trace=True)


def windows(run):
    """The episodes of each window."""
    ends = run.episodes.tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def test_every_window_has_the_mean_the_least_and_the_greatest_of_its_episodes(run):
    for row, trace in enumerate(run.traces):
        for name in WINDOWS:
            values = getattr(trace, name)
            if name == "deployed_cost":
                values = values.reshape(EPISODES, -1)  # with one constraint its axis is left out
            mean, least, greatest = (
                getattr(run, name + end)[row] for end in ("", "_least", "_greatest")
            )
            for point, window in enumerate(windows(run)):
                np.testing.assert_array_equal(least[point], values[window].min(axis=0))
                np.testing.assert_array_equal(greatest[point], values[window].max(axis=0))
                exact = np.apply_along_axis(math.fsum, 0, values[window]) / len(values[window])
                np.testing.assert_allclose(mean[point], exact, rtol=1e-14)
        shares = [trace.on_baseline[window].mean() for window in windows(run)]
        np.testing.assert_array_equal(run.baseline_share[row], shares)


def test_means_lie_between_the_least_and_the_greatest(run):
    for name in WINDOWS:
        mean, least, greatest = (getattr(run, name + end) for end in ("", "_least", "_greatest"))
        assert (least <= mean).all()
        assert (mean <= greatest).all()


def test_costs_have_an_axis_of_constraints_and_limits_beside_them(run):
    assert run.deployed_cost.shape == (*run.reward_regret.shape, len(run.cost_limits))
    assert run.deployed_cost_least.shape == run.deployed_cost_greatest.shape == run.deployed_cost.shape


def test_the_signed_violation_is_kept_and_the_weak_one_is_its_positive_part(run):
    assert (run.signed_violation < 0).any()
    np.testing.assert_array_equal(run.weak_violation, np.maximum(run.signed_violation, 0.0))
    if len(run.cost_limits) == 1:
        steps = np.diff(run.episodes, prepend=0)
        excess = np.cumsum(steps * (run.deployed_cost[..., 0] - run.cost_limits[0]), axis=1)
        np.testing.assert_allclose(run.signed_violation, excess, atol=1e-9)


def test_the_gain_is_what_was_deployed_minus_the_baseline(run):
    if run.parameters["algorithm"] == "OptPess-PrimalDual":
        assert (run.gain, run.baseline_value, run.baseline_costs) == (None, None, None)
        return
    policy = cases.always_first(MARKET)
    value = op.evaluate(policy, MARKET.rewards, MARKET.transitions, MARKET.initial)
    assert run.baseline_value == pytest.approx(value, rel=1e-14)
    assert run.baseline_costs.shape == run.cost_limits.shape
    assert (run.baseline_costs < run.cost_limits).all()
    for row, trace in enumerate(run.traces):
        gains = np.cumsum(trace.deployed_value - run.baseline_value)
        np.testing.assert_allclose(run.gain[row], gains[run.episodes - 1], atol=1e-9)
    assert (run.gain[:, -1] > 0).all()


def test_the_baseline_itself_gains_nothing():
    learner = op.AlwaysBaseline(
        shape=MARKET.shape,
        initial=MARKET.initial,
        baseline=op.SafeBaseline(cases.always_first(MARKET), cases.margin_of(MARKET)),
        num_episodes=100_000,
    )
    run = cases.run_of(MARKET, learner)
    assert abs(run.gain).max() < 1e-9
    assert (run.baseline_share == 1.0).all()
    assert run.baseline_costs[0] == pytest.approx(cases.safe_cost_of(MARKET), abs=2e-9)
    for name in WINDOWS:
        assert (getattr(run, f"{name}_least") == getattr(run, f"{name}_greatest")).all()
        assert (getattr(run, name) == getattr(run, f"{name}_least")).all()


UNITS = {"reward_range": (-2.0, 6.0), "cost_range": (1.0, 5.0)}
# The market in other units.
PRICED = op.CMDP(
    MARKET.transitions,
    8.0 * MARKET.rewards - 2.0,
    4.0 * MARKET.costs[0] + 1.0,
    3 * 1.0 + 4.0 * 1.2,
    MARKET.initial,
    **UNITS,
)


def test_all_numbers_of_a_run_are_in_the_units_of_its_model():
    plain = cases.run_of(
        MARKET, cases.optpess_lp(MARKET, EPISODES, confidence=op.Scaled(0.02)), trace=True
    )
    run = cases.run_of(
        PRICED, cases.optpess_lp(PRICED, EPISODES, confidence=op.Scaled(0.02), **UNITS), trace=True
    )

    def check(name, slope, offset=0.0):
        expected = offset + slope * np.asarray(getattr(plain, name))
        np.testing.assert_allclose(getattr(run, name), expected, rtol=1e-9, atol=1e-9, err_msg=name)

    for name in ("reward_regret", "gain"):
        check(name, 8.0)
    ends = ("", "_least", "_greatest")
    for name in ("baseline_value", "optimal_value", *(f"deployed_value{end}" for end in ends)):
        check(name, 8.0, 3 * -2.0)
    for name in ("signed_violation", "weak_violation", "strong_violation", "worst_violation"):
        check(name, 4.0)
    check("least_slack", 4.0)
    for name in ("safe_cost", "baseline_costs", *(f"deployed_cost{end}" for end in ends)):
        check(name, 4.0, 3 * 1.0)
    for name in ("baseline_share", "violating_episodes", "largest_repair", "baseline_episodes"):
        check(name, 1.0)
    ours, theirs = run.traces[0], plain.traces[0]
    np.testing.assert_allclose(ours.rewards, 8.0 * theirs.rewards - 2.0)
    np.testing.assert_allclose(ours.costs, 4.0 * theirs.costs + 1.0)
    np.testing.assert_allclose(ours.deployed_value, 8.0 * theirs.deployed_value - 6.0)
    np.testing.assert_allclose(ours.deployed_cost, 4.0 * theirs.deployed_cost + 3.0)


def test_multipliers_are_value_for_a_unit_of_the_limit():
    plain = cases.run_of(MARKET, cases.primal_dual(MARKET, EPISODES), trace=True)
    run = cases.run_of(PRICED, cases.primal_dual(PRICED, EPISODES, **UNITS), trace=True)
    np.testing.assert_allclose(run.multiplier, plain.multiplier * 2.0)
    np.testing.assert_allclose(run.traces[0].multiplier, plain.traces[0].multiplier * 2.0)


def test_the_units_of_a_run_are_kept_in_its_file(tmp_path):
    run = cases.run_of(PRICED, cases.primal_dual(PRICED, 10, **UNITS))
    run.save(tmp_path / "run.npz")
    again = op.load_run(tmp_path / "run.npz")
    assert again.units == PRICED.units
    assert again.same_as(run)
