"""What is promised, and what no longer is once an input leaves the theorems."""

import copy
import linecache
import pickle

import numpy as np
import optpess as op
import pytest
from optpess.run import files

from learning import cases

PAIR = op.zoo.pair()


def estimated(radius):
    return op.SafeBaseline.estimated(cases.always_first(PAIR), 0.6, radius=radius)


@pytest.mark.parametrize("delta", [0.05, 0.3, 1e-6])
def test_the_theorems_constants_promise_what_the_theorems_do(delta):
    zero = cases.optpess_lp(PAIR, 100, failure_probability=delta)
    assert zero.guarantee == op.ZeroViolation(1 - delta)
    bounded = cases.primal_dual(PAIR, 100, failure_probability=delta)
    horizon = op.forecast(PAIR, bounded).tightening_horizon
    assert bounded.guarantee == op.BoundedViolation(1 - delta, horizon, 100)


@pytest.mark.parametrize("make", [cases.optpess_lp, cases.primal_dual])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 2.0])
def test_a_scaled_bonus_promises_nothing_not_even_scaled_by_one(make, factor):
    assert make(PAIR, 100, confidence=op.Scaled(factor)).guarantee is None


def test_an_estimated_cost_keeps_the_promise_only_with_a_valid_radius():
    valid = cases.optpess_lp(PAIR, 100, baseline=estimated(op.SubGaussianRadius()))
    assert valid.guarantee == op.ZeroViolation(1 - cases.DELTA)
    printed = cases.optpess_lp(PAIR, 100, baseline=estimated(op.PaperRadius()))
    assert printed.guarantee is None
    default = op.SafeBaseline.estimated(cases.always_first(PAIR), 0.6)
    assert cases.optpess_lp(PAIR, 100, baseline=default).guarantee == valid.guarantee
    scaled = cases.optpess_lp(
        PAIR, 100, baseline=estimated(op.SubGaussianRadius()), confidence=op.Scaled(0.5)
    )
    assert scaled.guarantee is None


@pytest.mark.parametrize(("shape", "covered"), [((1, 2), False), ((2, 1), False), ((2, 2), True)])
def test_primal_dual_promises_nothing_for_a_single_step_or_state(shape, covered):
    # The proof of the paper's Lemma 5.5 needs at least two of each.
    horizon, num_states = shape
    learner = op.OptPessPrimalDual(
        shape=(horizon, num_states, 2),
        initial=np.full(num_states, 1 / num_states),
        margin=op.SafetyMargin(cost_limit=0.5, safe_cost=0.1),
        num_episodes=10,
    )
    assert (learner.guarantee is not None) == covered


def test_optpess_lp_keeps_its_promise_for_a_single_step_and_state():
    baseline = op.SafeBaseline(np.ones((1, 1, 1)), op.SafetyMargin(cost_limit=0.5, safe_cost=0.1))
    learner = op.OptPessLP(shape=(1, 1, 1), initial=[1.0], baseline=baseline, num_episodes=10)
    assert learner.guarantee == op.ZeroViolation(0.95)


@pytest.mark.parametrize("confidence", [op.Theorem(), op.Scaled(0.02)], ids=repr)
@pytest.mark.parametrize("make", [cases.optpess_lp, cases.primal_dual])
def test_records_keep_the_promise_and_say_which_bonus_was_used(make, confidence, tmp_path):
    learner = make(PAIR, 1500, confidence=confidence)
    if make is cases.optpess_lp and isinstance(confidence, op.Theorem):
        with pytest.warns(UserWarning, match="expected to play the baseline"):
            run = cases.run_of(PAIR, learner)
    else:
        run = cases.run_of(PAIR, learner)
    assert run.guarantee == learner.guarantee
    assert run.parameters["confidence"] == repr(confidence)
    run.save(tmp_path / "run.npz")
    assert op.load_run(tmp_path / "run.npz").guarantee == learner.guarantee


def test_what_a_promise_assumes_of_observations_is_read_back_as_it_was(tmp_path):
    # It was read as the number 1, so that a record saved twice was another file.
    run = cases.run_of(PAIR, cases.optpess_lp(PAIR, 20, confidence=op.Sharp()))
    run.save(tmp_path / "run.npz")
    op.load_run(tmp_path / "run.npz").save(tmp_path / "again.npz")
    assert op.load_run(tmp_path / "run.npz").guarantee.bounded_observations is True
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "run.npz").read_bytes()


# What the promise of OptPess-PrimalDual says, and does not say, of a run of K episodes


def test_bounded_violation_carries_the_episode_until_which_the_limit_may_be_exceeded():
    guarantee = cases.primal_dual(PAIR, 1000).guarantee
    assert guarantee.tightening_horizon > 100_000
    assert guarantee.num_episodes == 1000
    assert guarantee.episodes_over_horizon == 1000 / guarantee.tightening_horizon
    wide = cases.primal_dual(PAIR, 1000, margin=op.SafetyMargin(0.6, 0.0)).guarantee
    assert wide.tightening_horizon < guarantee.tightening_horizon
    assert op.BoundedViolation(0.95).episodes_over_horizon is None


def test_a_run_of_which_the_theorem_says_nothing_is_warned_about_at_the_callers_line():
    horizon = cases.primal_dual(PAIR, 1000).guarantee.tightening_horizon
    given = {"shape": PAIR.shape, "initial": PAIR.initial, "margin": cases.margin_of(PAIR)}
    with pytest.warns(op.GuaranteeWarning) as caught:
        op.OptPessPrimalDual(num_episodes=1000, **given)  # the line that is shown
    assert len(caught) == 1
    message = str(caught[0].message)
    for piece in ("K = 1,000", f"{horizon:,}", f"{1000 / horizon:.2g}", "OptPessMix"):
        assert piece in message
    shown = linecache.getline(caught[0].filename, caught[0].lineno)
    assert "the line that is shown" in shown


@pytest.mark.filterwarnings("error")
def test_only_runs_of_which_the_theorem_says_nothing_are_warned_about():
    small = cases.primal_dual(PAIR, 10, confidence=op.Scaled(0.1))  # has no guarantee
    assert small.guarantee is None
    given = {"shape": (2, 2, 2), "initial": [1.0, 0.0], "margin": op.SafetyMargin(2.0, 0.0)}
    horizon = op.forecast(  # does not warn either
        op.CMDP(np.full((2, 2, 2, 2), 0.5), np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), 2.0, [1, 0]),
        op.OptPessPrimalDual(num_episodes=10, confidence=op.Scaled(1.0), **given),
    ).tightening_horizon
    enough = op.OptPessPrimalDual(num_episodes=horizon, **given)
    assert enough.guarantee.episodes_over_horizon == 1
    with pytest.raises(op.GuaranteeWarning, match="guarantees nothing"):
        op.OptPessPrimalDual(num_episodes=horizon - 1, **given)
    for twin in (copy.copy(enough), pickle.loads(pickle.dumps(enough))):
        assert twin.guarantee == enough.guarantee


def test_a_margin_so_small_that_the_number_is_beyond_2_to_the_62_is_warned_about():
    given = {"shape": (2, 2, 2), "initial": [1.0, 0.0], "num_episodes": 10**9}
    with pytest.warns(op.GuaranteeWarning, match="beyond 2\\^62"):
        learner = op.OptPessPrimalDual(margin=op.SafetyMargin(1.0, 1.0 - 1e-9), **given)
    assert learner.guarantee == op.BoundedViolation(0.95, None, 10**9)
    assert learner.guarantee.episodes_over_horizon is None


def test_copies_are_not_warned_about_again(recwarn):
    learner = cases.primal_dual(PAIR, 1000)
    recwarn.clear()
    pickle.loads(pickle.dumps(copy.copy(learner))).next_policy()
    assert not recwarn.list


def test_a_saved_guarantee_without_the_numbers_is_still_read(tmp_path, monkeypatch):
    run = cases.run_of(PAIR, cases.primal_dual(PAIR, 10))
    run.save(tmp_path / "new.npz")
    assert op.load_run(tmp_path / "new.npz").guarantee == run.guarantee
    monkeypatch.setattr(files, "_guarantee_out", lambda _: ["BoundedViolation", 0.95])
    run.save(tmp_path / "old.npz")
    assert op.load_run(tmp_path / "old.npz").guarantee == op.BoundedViolation(0.95)
    monkeypatch.setattr(files, "_guarantee_out", lambda _: ["BoundedViolation", 0.95, "many", 10])
    run.save(tmp_path / "wrong.npz")
    with pytest.raises(op.InvalidInputError, match="does not hold a run"):
        op.load_run(tmp_path / "wrong.npz")


def test_a_learner_shows_what_it_promises():
    assert "ZeroViolation(probability=0.95)" in repr(cases.optpess_lp(PAIR, 100))
    assert "guarantee=None" in repr(cases.primal_dual(PAIR, 100, confidence=op.Scaled(0.1)))
