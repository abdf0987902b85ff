"""Every estimate and every biased signal, against the formulas written out again."""

import numpy as np
import optpess as op
import pytest
from optpess import _core

from learning import cases, paper

EPISODES = 400
RULES = {"theorem": (op.Theorem(), 1.0), "scaled": (op.Scaled(0.02), 0.02)}
NOISES = {"whole": op.Bernoulli(), "real": op.Gaussian(0.5)}


@pytest.fixture(scope="module", params=NOISES)
def model(request):
    return cases.market(NOISES[request.param])


def optpess_lp(model, **changes):
    """With a baseline that takes every action: all pairs are visited, though it is never left."""
    baseline = cases.baseline_of(model, cases.mostly_first(model))
    return cases.optpess_lp(model, EPISODES, baseline=baseline, **changes)


def primal_dual(model, **changes):
    return cases.primal_dual(model, EPISODES, **changes)


@pytest.mark.parametrize("make", [optpess_lp, primal_dual])
@pytest.mark.parametrize("count", [0, 1, 37, EPISODES])
def test_estimates_are_plain_averages_and_zero_where_nothing_was_seen(model, make, count):
    learner = make(model)
    expected = paper.averages(model.shape, *cases.seen_by(learner, model, count))
    visits, counts, transitions, rewards, costs = expected
    found = learner.estimates
    np.testing.assert_array_equal(found.visits, visits)
    np.testing.assert_array_equal(found.transition_counts, counts)
    # Counts are whole numbers and each average is one division: the same bits.
    np.testing.assert_array_equal(found.transitions, transitions)
    np.testing.assert_allclose(found.rewards, rewards, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(found.costs, costs, rtol=1e-14, atol=1e-15)
    assert found.visits.sum() == count * model.shape.horizon
    unseen = visits == 0
    for table in (found.rewards, found.costs, found.transitions, found.transition_counts):
        assert not table[unseen].any()
    assert not found.transition_counts[-1].any()
    assert count < EPISODES or (visits > 0).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [0, 1, 37, EPISODES])
def test_the_signals_of_optpess_lp_are_the_papers(model, rule, count):
    confidence, factor = RULES[rule]
    learner = cases.driven(optpess_lp(model, confidence=confidence), model, count)
    known = learner.estimates
    terms = (known.visits, model.shape, EPISODES, cases.DELTA)
    margin = (learner.cost_limit, learner.safe_cost)
    np.testing.assert_allclose(known.bonus, paper.bonus(*terms, factor), rtol=1e-13)
    pessimistic = known.costs + paper.bonus(*terms, factor)
    np.testing.assert_allclose(learner.signals.cost, pessimistic, rtol=1e-13)
    scale = factor * paper.reward_scale(model.shape, margin)
    np.testing.assert_allclose(learner.signals.reward, known.rewards + scale * paper.beta(*terms))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [0, 1, 37, EPISODES])
def test_the_signals_of_primal_dual_are_the_papers(model, rule, count):
    confidence, factor = RULES[rule]
    learner = cases.driven(primal_dual(model, confidence=confidence), model, count)
    known = learner.estimates
    bonus = paper.bonus(known.visits, model.shape, EPISODES, cases.DELTA, factor)
    np.testing.assert_allclose(learner.signals.reward, known.rewards + bonus, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.cost, known.costs - bonus, rtol=1e-13)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 2, 2), (6, 3, 2), (10, 10, 4)])
def test_alpha_r_is_the_bonus_times_one_plus_four_horizons_over_the_margin(shape):
    H, S, _ = shape
    for limit, safe_cost in [(0.5, 0.0), (0.6, 0.135), (1.0, 0.999)]:
        product = (1 + 4 * H / (limit - safe_cost)) * (1 + H * S)
        assert paper.reward_scale(shape, (limit, safe_cost)) == pytest.approx(product, rel=1e-13)


@pytest.mark.parametrize("num_episodes", [1, 1000, 2**32, 2**53 - 1])
@pytest.mark.parametrize("delta", [1e-9, 0.05, 0.999])
def test_the_log_factor_is_the_papers(num_episodes, delta):
    model = cases.market()
    expected = paper.log_factor(model.shape, num_episodes, delta)
    for make in (cases.optpess_lp, cases.primal_dual):
        learner = make(model, num_episodes, failure_probability=delta)
        assert learner._inner.log_factor == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("delta", [0.5, 0.99])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 2), (1, 2, 1)])
def test_the_tightening_horizon_is_the_first_episode_from_which_the_tightening_is_small(shape, delta):
    limit, safe_cost = 1.0, 0.0
    found = _core.tightening_horizon(shape, limit, safe_cost, delta)
    assert found is not None
    last = 2 * found
    small = [paper.tightening(k, shape, delta) <= (limit - safe_cost) / 2 for k in range(1, last)]
    assert found == 1 + small.index(True)
    assert all(small[found - 1 :])


def test_the_state_after_the_last_step_changes_nothing():
    model = cases.market()
    learners = [optpess_lp(model) for _ in range(2)]
    for learner in learners:
        learner.next_policy()
    rest = ([0, 1, 1], [0.5, 0.25, 1.0], [0.0, 0.5, 1.0])
    learners[0].observe([0, 1, 2], *rest)
    learners[1].observe([0, 1, 2, 1], *rest)
    assert cases.stored(learners[0]) == cases.stored(learners[1])
