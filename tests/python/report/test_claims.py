"""The guarantees of all learners in words: what is claimed, and on which assumptions."""

import warnings

import optpess as op
import pytest
from optpess.report.claims import claim_of

from .records import margin_of, mix, pair, told

GIVEN = told(pair()) | {"num_episodes": 100}
NOISE = "variance proxy at most 1/2"
BASELINE = "The baseline has an expected cost of at most 0.135, below the limit 0.6"


def lp(**changes):
    return op.OptPessLP(**GIVEN | {"baseline": pair().baseline} | changes)


def estimated(**changes):
    return op.SafeBaseline.estimated(pair().safe_policy, cost_limit=0.6, **changes)


def claim(learner):
    return claim_of(learner.guarantee, learner.parameters)


def rests_on(learner):
    return " ".join(claim(learner).assumptions)


@pytest.mark.parametrize(
    ("learner", "short"),
    [
        (mix(pair()), "every episode within the limits, with a probability of at least 95 %"),
        (
            lp(failure_probability=0.001),
            "no policy above the limit, with a probability of at least 99.9 %",
        ),
        (lp(confidence=op.Scaled(0.1)), "none"),
        (op.OPDOP(margin=margin_of(pair()), **GIVEN), "none"),
        (op.AlwaysBaseline(baseline=pair().baseline, **GIVEN), "no policy above the limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_claim_in_a_few_words(learner, short):
    assert claim(learner).short == short
    assert claim(learner).holds == (learner.guarantee is not None)


def test_the_assumptions_of_the_paper():
    found = rests_on(lp())
    assert BASELINE in found
    assert NOISE in found
    assert "The number of episodes, 100, was fixed beforehand." in found
    assert "Episodes start as the learner was told." in found


def test_sharp_bounds_need_observations_in_their_ranges_and_no_number_of_episodes():
    found = rests_on(lp(confidence=op.Sharp()))
    assert "Every observed reward and cost lies in its range." in found
    assert NOISE not in found
    assert "beforehand" not in found


def test_a_mixture_needs_costs_in_their_range_or_the_noise_that_was_stated():
    assert "Every observed cost lies in its range." in rests_on(mix(pair()))
    noisy = rests_on(mix(pair(), variance_proxy=0.25))
    assert "a variance proxy of at most 0.25" in noisy
    assert "Every observed cost lies in its range." not in noisy


def test_what_was_declared_is_named():
    declared = op.Knowledge(stationary=True, support=pair().model.transitions.to_array() > 0)
    found = rests_on(mix(pair(), knowledge=declared))
    assert "are the same at every step, as was declared" in found
    assert "Only the successors that were declared to be possible occur." in found
    assert "declared" not in rests_on(mix(pair()))


def test_given_transitions_must_be_the_true_ones():
    learner = op.CUCRL(transitions=pair().model.transitions, baseline=pair().baseline, **GIVEN)
    assert "The transitions that the learner was given are the true ones." in rests_on(learner)
    assert NOISE in rests_on(op.SOPS(baseline=pair().baseline, **GIVEN))


def test_a_cost_that_was_estimated_is_not_said_to_be_known():
    found = rests_on(lp(baseline=estimated()))
    assert "The baseline has an expected cost below the limit 0.6" in found
    assert "how far below was estimated" in found


def test_the_reference_learner_rests_on_its_baseline_alone():
    learner = op.AlwaysBaseline(baseline=pair().baseline, **GIVEN)
    assert claim(learner).assumptions == (f"{BASELINE} (Assumption 2.2).",)


def test_why_there_is_no_guarantee():
    assert "scaled by hand, Scaled(factor=0.1)" in claim(lp(confidence=op.Scaled(0.1))).statement
    printed = lp(baseline=estimated(radius=op.PaperRadius()))
    assert "Appendix E is too small" in claim(printed).statement


def test_a_bounded_sum_is_claimed_of_runs_that_are_long_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", op.GuaranteeWarning)
        learner = op.OptPessPrimalDual(margin=margin_of(pair()), **GIVEN)
    horizon = learner.guarantee.tightening_horizon
    short = claim(learner)
    long = claim_of(op.BoundedViolation(0.95, horizon, 2 * horizon), learner.parameters)
    assert (short.holds, long.holds) == (False, True)
    assert "so the theorem says nothing about them" in short.statement
    assert long.short == "a bounded sum of violations, with a probability of at least 95 %"
    assert f"Each of the first {horizon:,} episodes (C'') may be." in long.statement
    assert "Some policy has an expected cost of at most 0.135" in " ".join(long.assumptions)


def test_a_contradiction_voids_whatever_was_guaranteed():
    found = claim_of(None, lp().parameters, "the baseline costs 1")
    assert found.void
    assert not found.holds
    assert "told: the baseline costs 1." in found.statement
