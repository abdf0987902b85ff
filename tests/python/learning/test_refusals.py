"""Bad terms, verbs out of turn and malformed episodes are refused; a refusal changes nothing."""

import numpy as np
import optpess as op
import pytest
from support.healthy import refused

from learning import cases

MAKERS = {"OptPess-LP": cases.optpess_lp, "OptPess-PrimalDual": cases.primal_dual}
SOUND = {
    "states": [0, 1, 2],
    "actions": [0, 1, 1],
    "rewards": [0.5, 0.25, 1.0],
    "costs": [0.0, 0.5, 1.0],
}


def sound_for(deployment):
    """A sound episode of what was deployed."""
    return SOUND | {"actions": cases.actions_of(deployment, SOUND["states"])}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def margin_with(make, limit, safe_cost):
    """What names the margin in a constructor."""
    margin = op.SafetyMargin(cost_limit=limit, safe_cost=safe_cost)
    if make is cases.primal_dual:
        return {"margin": margin}
    return {"baseline": op.SafeBaseline(cases.always_first(cases.market()), margin)}


# The Input line


@pytest.mark.parametrize("num_episodes", [0, 2**53, 2**53 + 1, -1, 2**64, 10**30])
def test_a_number_of_episodes_outside_one_to_the_largest_count_is_refused(make, num_episodes):
    with refused("OutOfRange", "num_episodes is", "it must lie in [1, 9007199254740991]"):
        make(cases.market(), num_episodes)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, np.nan, np.inf])
def test_a_failure_probability_outside_zero_to_one_is_refused(make, delta):
    with refused("OutOfRange", "failure_probability is", "it must lie in [1e-200, 1)"):
        make(cases.market(), 10, failure_probability=delta)


# A failure probability of 1e-308 was told that "signal[0, 0, 0] is inf".
@pytest.mark.parametrize("delta", [1e-310, 1e-308, 9e-201])
def test_a_failure_probability_that_logarithms_cannot_take_is_refused(make, delta):
    with refused("OutOfRange", f"failure_probability is {delta:g}; it must lie in [1e-200, 1)"):
        make(cases.market(), 10, failure_probability=delta)
    assert make(cases.market(), 10, failure_probability=1e-200).next_policy() is not None


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_that_is_not_positive_and_finite_is_refused(make, factor):
    with refused("OutOfRange", "factor is"):
        make(cases.market(), 10, confidence=op.Scaled(factor))


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, np.inf])
def test_a_limit_that_is_not_positive_and_finite_is_refused(limit):
    with refused("OutOfRange", "cost_limit is"):
        op.SafetyMargin(cost_limit=limit, safe_cost=0.0)


def test_a_limit_above_the_horizon_is_refused(make):
    with refused("OutOfRange", "cost_limit is 3.5; it must lie in (0, 3]"):
        make(cases.market(), 10, **margin_with(make, 3.5, 0.1))
    make(cases.market(), 10, **margin_with(make, 3.0, 0.1))


@pytest.mark.parametrize("limit", [0.0, 3.5, np.nan])
def test_a_limit_for_an_estimated_cost_outside_zero_to_the_horizon_is_refused(limit):
    baseline = op.SafeBaseline.estimated(cases.always_first(cases.market()), limit)
    with refused("OutOfRange", "cost_limit is", "it must lie in (0, 3]"):
        cases.optpess_lp(cases.market(), 10, baseline=baseline)


@pytest.mark.parametrize("safe_cost", [1.0, 1.5])
def test_a_safe_cost_that_is_not_below_the_limit_is_refused(safe_cost):
    with refused("NoSafetyMargin", f"the safe cost {safe_cost:g}", error=op.NoSafetyMarginError):
        op.SafetyMargin(cost_limit=1.0, safe_cost=safe_cost)


@pytest.mark.parametrize("safe_cost", [-1e-9, -1.0, np.nan])
def test_a_negative_safe_cost_is_refused(safe_cost):
    with refused("OutOfRange", "safe_cost is"):
        op.SafetyMargin(cost_limit=1.0, safe_cost=safe_cost)


def test_a_start_that_is_not_a_distribution_over_the_states_is_refused(make):
    with refused("NotADistribution", "initial sums to 0.75"):
        make(cases.market(), 10, initial=[0.5, 0.25, 0.0])
    with refused("ShapeMismatch", "initial has shape [2]"):
        make(cases.market(), 10, initial=[0.5, 0.5])


def test_a_baseline_of_another_shape_is_refused():
    with pytest.raises(op.InvalidInputError, match=r"baseline has shape \(3, 3, 2\)"):
        cases.optpess_lp(cases.market(), 10, shape=(3, 3, 3))


def test_a_baseline_that_is_no_policy_is_refused():
    spoilt = cases.always_first(cases.market())
    spoilt[1, 2] = [0.5, 0.25]
    baseline = op.SafeBaseline(spoilt, cases.margin_of(cases.market()))
    with refused("NotADistribution", "baseline[1, 2] sums to 0.75"):
        cases.optpess_lp(cases.market(), 10, baseline=baseline)


def test_a_baseline_with_neither_margin_nor_limit_is_refused():
    with pytest.raises(op.InvalidInputError, match=r"SafeBaseline\.estimated"):
        op.SafeBaseline(cases.always_first(cases.market()), None)


def test_a_shape_with_an_empty_axis_is_refused():
    with refused("EmptyAxis", "axis 0 is empty"):
        cases.primal_dual(cases.market(), 10, shape=(0, 3, 2))


def test_an_unknown_engine_is_refused():
    with pytest.raises(op.InvalidInputError, match="engine is 'simplex'"):
        cases.optpess_lp(cases.market(), 10, engine="simplex")


# Turns


def test_verbs_out_of_turn_are_refused_and_change_nothing(make):
    learner = make(cases.market(), 10)
    before = cases.stored(learner)
    message = "observe was called out of turn; next_policy comes next"
    with refused("OutOfTurn", message, error=op.ProtocolError):
        learner.observe(**SOUND)
    assert cases.stored(learner) == before
    learner.next_policy()
    before = cases.stored(learner)
    message = "next_policy was called out of turn; observe comes next"
    with refused("OutOfTurn", message, error=op.ProtocolError):
        learner.next_policy()
    assert cases.stored(learner) == before


def test_the_episode_after_the_last_is_refused(make):
    learner = make(cases.market(), 2)
    for _ in range(2):
        learner.observe(**sound_for(learner.next_policy()))
    before = cases.stored(learner)
    with refused("EpisodesExhausted", "all 2 episodes", error=op.ProtocolError):
        learner.next_policy()
    with refused("OutOfTurn", error=op.ProtocolError):
        learner.observe(**SOUND)
    assert cases.stored(learner) == before
    assert learner.episodes_observed == 2


def test_a_plan_that_was_interrupted_can_be_asked_for_again(monkeypatch):
    # An interrupted linear program once left the learner waiting for a plan that never came.
    learner = cases.optpess_lp(cases.market(), 10, confidence=op.Scaled(1e-9), engine="highs")
    learner.observe(**sound_for(learner.next_policy()) | {"costs": [0.0] * 3})  # the gate opens
    with monkeypatch.context() as patch:
        patch.setattr(learner._highs, "plan", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            learner.next_policy()
    assert learner.next_policy().source == "PessimisticSet"


def _interrupt(learner):
    raise KeyboardInterrupt


# Episodes


MALFORMED = {
    "short states": ({"states": [0, 1]}, "ShapeMismatch", "states has shape [2]"),
    "long states": ({"states": [0, 1, 2, 0, 0]}, "ShapeMismatch", "states has shape [5]"),
    "long actions": ({"actions": [0, 1, 1, 0]}, "ShapeMismatch", "actions has shape [4]"),
    "short rewards": ({"rewards": [0.0]}, "ShapeMismatch", "rewards has shape [1]"),
    "no costs": ({"costs": []}, None, "costs"),
    "table of costs": ({"costs": [[0.0] * 3]}, "WrongRank", "costs has shape [1, 3]"),
    "one number": ({"rewards": 0.5}, "WrongRank", "rewards has shape []"),
    "state above": ({"states": [0, 3, 1]}, "OutOfRange", "states[1] is 3; it must lie in [0, 2]"),
    "last state above": ({"states": [0, 1, 1, 3]}, "OutOfRange", "states[3] is 3"),
    "state below": ({"states": [0, 1, -1]}, "OutOfRange", "states[2] is -1"),
    "huge state": ({"states": [2**32, 1, 1]}, "OutOfRange", "states[0] is 4294967296"),
    "action above": ({"actions": [2, 0, 0]}, "OutOfRange", "actions[0] is 2; it must lie in [0, 1]"),
    "action below": ({"actions": [-1, 0, 0]}, "OutOfRange", "actions[0] is -1"),
    "NaN": ({"rewards": [0.0, np.nan, 0.0]}, "NotFinite", "rewards[1] is NaN"),
    "infinity": ({"costs": [0.0, 0.0, -np.inf]}, "NotFinite", "costs[2] is -inf"),
    "float states": ({"states": [0.0, 1.0, 2.0]}, "UnsupportedType", "states"),
    "float actions": ({"actions": np.zeros(3)}, "UnsupportedType", "actions"),
    "words": ({"rewards": ["low", "low", "high"]}, "UnsupportedType", "rewards"),
    "complex": ({"costs": np.zeros(3, dtype=complex)}, "UnsupportedType", "complex128"),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_episode_is_refused_and_changes_nothing(make, fault):
    changes, kind, piece = MALFORMED[fault]
    learner = make(cases.market(), 10)
    learner.observe(**sound_for(learner.next_policy()))
    sound = sound_for(learner.next_policy())
    before = cases.stored(learner)
    with pytest.raises(op.InvalidInputError) as caught:
        learner.observe(**sound | changes)
    assert piece in str(caught.value)
    assert kind in (None, caught.value.kind)
    assert cases.stored(learner) == before
    learner.observe(**sound)  # it still goes on
    assert learner.episodes_observed == 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint32])
def test_whole_numbers_of_any_width_are_states(make, dtype):
    learners = [make(cases.market(), 10) for _ in range(2)]
    for learner, kind in zip(learners, (np.int64, dtype), strict=True):
        sound = sound_for(learner.next_policy())
        learner.observe(**sound | {"states": np.array(sound["states"], dtype=kind)})
    assert cases.stored(learners[0]) == cases.stored(learners[1])
