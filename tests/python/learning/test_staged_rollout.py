"""`StagedRollout`: the weight keeps the bound of the mixture within the limit, for all costs."""

import copy
import pickle
import re
import warnings

import numpy as np
import optpess as op
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def rollout(**changes):
    arguments = {
        "cost_limit": 1.0,
        "baseline_cost": 0.5,
        "max_episode_cost": 4.0,
        "failure_probability": 0.1,
        "seed": 3,
    }
    return op.StagedRollout(**arguments | changes)


def play(staged, episodes, candidate, baseline=0.4):
    """Plays episodes with these costs, numbers or functions of the episode; whose they were."""

    def cost(of, episode):
        return of(episode) if callable(of) else of

    chosen = []
    for episode in range(episodes):
        chosen.append(staged.use_candidate())
        staged.record(cost(candidate if chosen[-1] else baseline, episode))
    return chosen


def toss_until(staged, wanted):
    while staged.use_candidate() != wanted:
        staged.record(0.4)


@st.composite
def problems(draw):
    """Arguments with one to three constraints."""
    number = draw(st.integers(1, 3))
    limit = [draw(st.floats(0.1, 10)) for _ in range(number)]
    baseline = [draw(st.floats(0, 0.95)) * value for value in limit]
    largest = [draw(st.floats(0.3, 20)) * value for value in limit]
    return limit, baseline, largest


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(0, 2**32), st.sampled_from(["cheap", "costly", "any", "rare"]))
def test_the_mixture_is_within_every_limit_and_bounds_never_increase(problem, seed, kind):
    limit, baseline, largest = (np.array(each) for each in problem)
    staged = op.StagedRollout(
        cost_limit=limit, baseline_cost=baseline, max_episode_cost=largest, seed=seed
    )
    rng = np.random.default_rng(seed)
    share = {"cheap": 0.05, "costly": 0.9, "any": 0.5, "rare": 0.02}[kind]
    before = largest
    weight = staged.weight
    for episode in range(120):
        if episode == 70:
            staged.replace_candidate()
            before, weight = largest, 0.0
            np.testing.assert_array_equal(staged.certificate.candidate_costs, largest)
        drawn = rng.random(len(limit))
        if staged.use_candidate():
            staged.record(largest * (drawn < share if kind == "rare" else drawn * share))
        certificate = staged.certificate
        upper = certificate.candidate_costs
        assert (upper <= before).all()
        assert weight <= staged.weight <= 1
        assert staged.weight > 0
        np.testing.assert_array_less(certificate.costs, limit * (1 + 1e-15))
        np.testing.assert_array_equal(
            certificate.costs, staged.weight * upper + (1 - staged.weight) * baseline
        )
        before, weight = upper, staged.weight


def test_the_weight_is_the_largest_that_the_bounds_allow():
    staged = rollout(cost_limit=[1.0, 2.0], baseline_cost=[0.5, 0.0], max_episode_cost=[4.0, 10.0])
    assert staged.weight == pytest.approx(min(0.5 / 3.5, 2.0 / 10.0), rel=1e-14)
    for _ in range(400):
        if staged.use_candidate():
            staged.record([0.3, 1.9])
    upper = staged.certificate.candidate_costs
    assert upper[0] < 1.0 < 2.0 < upper[1]  # the second constraint binds
    assert staged.weight == pytest.approx(2.0 / upper[1], rel=1e-14)
    assert rollout(max_episode_cost=1.0).weight == 1.0


def test_the_bound_is_that_of_the_mixture_of_bets():
    bets = [0.999, 0.75, 0.47, 0.29, 0.18, 0.115, 0.072, 0.045, 0.028, 0.0175, 0.011, 0.0068, 0.0043]
    bets = np.array([*bets, 0.0027, 0.0017, 0.001])
    weights = np.array([0.2] + 2 * [0.07] + 5 * [0.06] + 5 * [0.05] + 2 * [0.04] + [0.03])
    rng = np.random.default_rng(5)
    staged = rollout()
    staged.replace_candidate()  # at level 0.1/6
    costs, least = [], 4.0
    for _ in range(300):
        cost = 2 * rng.random()
        if staged.use_candidate():
            costs.append(cost)
        staged.record(cost if costs and costs[-1] == cost else 0.4)
        logs = np.array([np.log1p(-bet * np.array(costs) / 4).sum() for bet in bets])
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            capital = weights @ np.exp(logs - len(costs) * np.log1p(-bets * middle))
            low, high = (low, middle) if capital >= 60 else (middle, high)
        least = min(least, 4 * high)
        assert staged.certificate.candidate_costs[0] == pytest.approx(least, rel=1e-9)
    assert len(costs) > 20
    assert staged.certificate.level == pytest.approx(0.1 / 6)


def test_a_cheap_candidate_is_deployed_in_full_and_a_costly_one_is_not():
    good, bad = rollout(), rollout()
    play(good, 1500, lambda episode: 0.6 + 0.2 * (episode % 2))
    assert good.weight == 1.0
    play(bad, 1500, lambda episode: 4.0 * (episode % 2))
    assert bad.weight < 0.4
    assert bad.weight * 2.0 + (1 - bad.weight) * 0.5 < 1.0  # its expectation is 2
    assert good.guarantee == bad.guarantee == op.SafeMixture(0.9)


def test_the_coin_has_the_weight_and_is_the_same_for_the_same_seed():
    def tosses(seed):
        staged = rollout(seed=seed)
        return play(staged, 1000, 4.0)

    first = tosses(3)
    assert first == tosses(3) != tosses(4)
    assert 90 < sum(first) < 200  # the weight stays at 1/7


@pytest.mark.parametrize("played", [0, 1, 57])
@pytest.mark.parametrize("tossed", [False, True])
def test_a_stored_rollout_continues_with_the_same_coin(played, tossed, tmp_path):
    staged = rollout()
    play(staged, played, 0.7)
    if tossed:
        toss_until(staged, True)
    staged.save(tmp_path / "rollout.npz")
    copies = [
        op.StagedRollout.load(tmp_path / "rollout.npz"),
        pickle.loads(pickle.dumps(staged)),
        copy.copy(staged),
        copy.deepcopy(staged),
    ]
    if tossed:
        for each in [staged, *copies]:
            each.record(0.9)
    expected = play(staged, 200, 0.7)
    for each in copies:
        assert play(each, 200, 0.7) == expected
        assert each.weight == staged.weight
        assert repr(each) == repr(staged)
    assert [path.name for path in tmp_path.iterdir()] == ["rollout.npz"]


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "rollout.npz"
    staged = rollout()
    staged.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["state"][3] ^= 1
    np.savez(path, **arrays)
    with pytest.raises(op.InvalidInputError, match=r"not match|cannot be read|not a readable"):
        op.StagedRollout.load(path)
    op.zoo.pair().save(path)
    with pytest.raises(op.InvalidInputError, match="format"):
        op.StagedRollout.load(path)
    state = staged.__getstate__()
    with pytest.raises(op.InvalidInputError, match="checksum"):
        rollout().__setstate__(state | {"_checksum": 1})


def test_calls_out_of_turn_are_refused():
    staged = rollout()
    with pytest.raises(op.ProtocolError, match="record was called out of turn; use_candidate"):
        staged.record(0.5)
    toss_until(staged, True)
    for call in (staged.use_candidate, staged.replace_candidate):
        with pytest.raises(op.ProtocolError, match="record comes next"):
            call()
    staged.record(0.5)
    staged.replace_candidate()
    assert staged.candidate_number == 2
    toss_until(staged, False)
    staged.use_candidate()  # the baseline's episode need not be recorded


@pytest.mark.parametrize(
    ("cost", "found"),
    [
        (-0.1, "cost[0] is -0.1; it must lie in [0, 4]"),
        (4.1, "cost[0] is 4.1"),
        (float("nan"), "cost[0] is NaN"),
        ([0.5, 0.5], "cost has shape [2]"),
        ([[0.5]], "cost has shape [1, 1]"),
        ("much", "cost"),
    ],
)
@pytest.mark.parametrize("by", [True, False])
def test_a_refused_cost_changes_nothing(cost, found, by):
    staged = rollout()
    play(staged, 20, 0.7)
    toss_until(staged, by)
    before = staged._inner.to_bytes()
    with pytest.raises(op.InvalidInputError, match=re.escape(found)):
        staged.record(cost)
    assert staged._inner.to_bytes() == before
    staged.record(0.5)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"cost_limit": 0.0}, "cost_limit[0] is 0"),
        ({"cost_limit": []}, "cost_limit has shape [0]: axis 0 is empty"),
        ({"baseline_cost": -1.0}, "baseline_cost[0] is -1"),
        ({"baseline_cost": [0.1, 0.1]}, "baseline_cost has shape [2]"),
        ({"max_episode_cost": np.inf}, "max_episode_cost[0] is inf"),
        ({"failure_probability": 0.0}, "failure_probability is 0"),
        ({"failure_probability": 1e-308}, "failure_probability is 1e-308; it must lie in [1e-200, 1)"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, found):
    with pytest.raises(op.InvalidInputError, match=re.escape(found)):
        rollout(**changes)


def test_a_baseline_without_a_margin_is_refused():
    with pytest.raises(op.NoSafetyMarginError, match="not below the limit"):
        rollout(baseline_cost=1.0)


def test_a_baseline_above_its_stated_cost_voids_the_guarantee_with_one_warning():
    staged = rollout()
    with pytest.warns(RuntimeWarning, match=r"the baseline costs 0\.9 on average") as caught:
        play(staged, 600, 0.7, baseline=0.9)
    assert len(caught) == 1
    assert staged.guarantee is None
    assert staged.baseline_average[0] == pytest.approx(0.9)
    honest = rollout()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(honest, 600, 0.7, baseline=lambda episode: episode % 2)
    assert honest.guarantee == op.SafeMixture(0.9)
    assert honest.baseline_episodes + honest.candidate_episodes == honest.episodes == 600


def test_the_certificate_says_what_it_rests_on_and_the_repr_is_one_line():
    staged = rollout()
    chosen = play(staged, 50, 0.7)
    certificate = staged.certificate
    assert (certificate.episodes, certificate.level) == (sum(chosen), 0.05)
    assert certificate.bound == "mixture of bets"
    assert staged.candidate_average[0] == pytest.approx(0.7)
    assert repr(staged).startswith("StagedRollout(candidate 1, weight=")
    assert "\n" not in repr(staged)
    assert np.isnan(rollout().candidate_average).all()
