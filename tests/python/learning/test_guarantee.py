"""What is promised, and what no longer is once an input leaves the theorems."""

import numpy as np
import optpess as op
import pytest

from learning import cases

PAIR = op.zoo.pair()


def estimated(radius):
    return op.SafeBaseline.estimated(cases.always_first(PAIR), 0.6, radius=radius)


@pytest.mark.parametrize("delta", [0.05, 0.3, 1e-6])
def test_the_theorems_constants_promise_what_the_theorems_do(delta):
    zero = cases.optpess_lp(PAIR, 100, failure_probability=delta)
    assert zero.guarantee == op.ZeroViolation(1 - delta)
    bounded = cases.primal_dual(PAIR, 100, failure_probability=delta)
    assert bounded.guarantee == op.BoundedViolation(1 - delta)


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


def test_a_learner_shows_what_it_promises():
    assert "ZeroViolation(probability=0.95)" in repr(cases.optpess_lp(PAIR, 100))
    assert "guarantee=None" in repr(cases.primal_dual(PAIR, 100, confidence=op.Scaled(0.1)))
