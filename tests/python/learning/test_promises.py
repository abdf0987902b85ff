"""Do the promises hold at the theorems' own constants? The short version, on the pair.

Under a guarantee that fails with probability delta, the number of failing replicates among n is at
most binomial. A test fails when that number exceeds the binomial's 1 - 1e-6 quantile, so it fails
although all is well with probability 1e-6 at most.
"""

import numpy as np
import optpess as op
import pytest
from scipy.stats import binom

from learning import cases

PAIR = op.zoo.pair()
EPISODES, REPLICATES, FALSE_ALARM = 200_000, 20, 1e-6
ALLOWED = int(binom.ppf(1 - FALSE_ALARM, REPLICATES, cases.DELTA))


def audited(learner, **options):
    return cases.run_of(PAIR, learner, replicates=REPLICATES, seed=1, audit=True, **options)


def failing(run, *names):
    """How many replicates failed one of these checks (all, if none is named)."""
    chosen = [[audit[name] for name in names or audit] for audit in run.audits]
    return sum(any(finding.failed for finding in findings) for findings in chosen)


def test_the_statistical_tests_can_detect_what_they_say():
    # At most 8 of 20 replicates may fail. A learner that fails in 4 of 5 replicates is found out
    # with probability 0.999.
    assert ALLOWED == 8
    assert binom.sf(ALLOWED, REPLICATES, 0.8) > 0.999


@pytest.fixture(scope="module")
def zero():
    return audited(cases.optpess_lp(PAIR, EPISODES))


@pytest.fixture(scope="module")
def bounded():
    return audited(cases.primal_dual(PAIR, EPISODES))


def test_optpess_lp_leaves_the_baseline_and_violates_nothing(zero):
    assert zero.guarantee == op.ZeroViolation(0.95)
    assert (zero.first_planned > 0).all()
    assert (zero.baseline_episodes < EPISODES).all()
    # The bound is far from tight here: not one episode violates, whatever delta would allow.
    assert not zero.violating_episodes.any()
    assert not zero.strong_violation.any()


def test_the_events_and_lemmas_behind_optpess_lp_hold(zero):
    assert failing(zero) <= ALLOWED
    for audit in zero.audits:
        assert audit["CostDominance"].made == EPISODES
        assert audit["RewardDeviation"].made == 2 * EPISODES
        assert audit["TransitionDeviation"].made == audit["TransitionBernstein"].made == EPISODES
        assert audit["CostOptimism"].made == audit["MultiplierBound"].made == 0
    planned = EPISODES - zero.baseline_episodes
    assert [audit["RewardOptimism"].made for audit in zero.audits] == planned.tolist()


def test_the_events_and_lemmas_behind_primal_dual_hold(bounded):
    assert bounded.guarantee.probability == 0.95
    assert bounded.guarantee.episodes_over_horizon < 0.1  # the lemmas hold all the same
    assert failing(bounded) <= ALLOWED
    for audit in bounded.audits:
        assert audit["CostOptimism"].made == audit["Telescoping"].made == EPISODES
        assert audit["CostDominance"].made == audit["RewardOptimism"].made == 0


def test_the_audit_finds_a_bonus_that_is_too_small():
    # What the theorems forbid is found at once: nearly no bonus, and the lemmas fail in every replicate.
    tiny = op.Scaled(1e-6)
    zero = audited(cases.optpess_lp(PAIR, 3000, confidence=tiny))
    assert failing(zero, "CostDominance", "RewardOptimism") == REPLICATES
    assert (zero.violating_episodes > 0).sum() > ALLOWED
    bounded = audited(cases.primal_dual(PAIR, 3000, confidence=tiny))
    assert failing(bounded, "CostOptimism") == REPLICATES
    for audit in (*zero.audits, *bounded.audits):
        for finding in audit.values():
            assert 0 <= finding.failed <= finding.made
            assert (finding.first_failure is None) == (finding.failed == 0)
            assert (finding.worst_excess > 0) == (finding.failed > 0)


def test_the_audit_finds_estimates_that_no_noise_explains():
    # The learner is told of another world first: rewards and costs of 1, and nobody ever moves.
    learner = cases.primal_dual(PAIR, 2000, bounded_observations=False)
    for number in range(800):
        states = [number // 2 % 2] * 2
        actions = cases.actions_of(learner.next_policy(), states)
        learner.observe(states, actions, [1.0, 1.0], [1.0, 1.0])
    run = cases.run_of(PAIR, learner, audit=True, episodes=100)
    for name in ("RewardDeviation", "CostDeviation", "TransitionDeviation", "TransitionBernstein"):
        assert run.audits[0][name].failed > 0, name
        assert run.audits[0][name].first_failure >= 800


@pytest.mark.filterwarnings("ignore:no policy costs less than 2")  # the margin is wide, not true
def test_an_audit_that_begins_in_the_middle_counts_from_the_learners_first_episode():
    # The bound on lambda once counted only the tightenings the audit had seen itself. Here every
    # episode costs the whole limit, so that lambda is the sum of all tightenings.
    model = op.CMDP.stationary(
        np.full((2, 1, 2), 0.5), np.ones((2, 1)), np.ones((2, 1)), 2.0, [0.5, 0.5], horizon=2
    )
    learner = op.OptPessPrimalDual(
        shape=model.shape,
        initial=model.initial,
        margin=op.SafetyMargin(cost_limit=2.0, safe_cost=0.0),
        num_episodes=100_000,
        failure_probability=0.9,
        confidence=op.Scaled(1e-6),
    )
    horizon, before = op.forecast(model, learner).tightening_horizon, 4000
    trace = cases.run_of(model, learner, trace=True, episodes=before).traces[0]
    cases.fed(learner, trace, before)
    run = cases.run_of(model, learner, audit=True, episodes=horizon - before + 99)
    finding = run.audits[0]["MultiplierBound"]
    assert (finding.made, finding.failed) == (100, 0)
