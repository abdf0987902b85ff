"""Learners as arrays of a file: they come back as they were, and damaged arrays are refused."""

import numpy as np
import optpess as op
import pytest
from optpess import storage
from optpess.learn.stored import REQUIRED, arrays_of, learner_of
from optpess.model.units import Units

from learning import cases

MARKET = cases.market()
LEARNERS = cases.every_learner(MARKET, 600, op.Scaled(0.02))
HIGHS = "OptPess-LP, HiGHS"
FIELDS = storage.Fields("test", REQUIRED)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("middle", [0, 450])
def test_a_learner_comes_back_from_a_file_and_goes_on(name, middle, tmp_path):
    learner = cases.driven(LEARNERS[name](), MARKET, middle)
    storage.save_arrays(tmp_path / "a.npz", {"format": np.array("test")} | arrays_of(learner))
    other = learner_of(storage.load_arrays(tmp_path / "a.npz", FIELDS))
    assert type(other) is type(learner)
    assert other.parameters == learner.parameters
    assert vars(other).keys() == vars(learner).keys()
    assert cases.stored(other) == cases.stored(learner)
    for number in range(middle, middle + 20):
        first, second = (each.next_policy() for each in (learner, other))
        close = np.allclose if name == HIGHS else np.array_equal
        assert close(first.policy, second.policy)
        for each in (learner, other):
            each.observe(*cases.played(first, MARKET, number))
    assert name == HIGHS or cases.stored(other) == cases.stored(learner)


def test_a_learner_with_several_limits_comes_back():
    policy = np.tile([1.0, 0.0], (2, 2, 1))
    margins = [op.SafetyMargin(0.6, 0.135), op.SafetyMargin(1.0, 0.5)]
    learner = op.OptPessMix(
        shape=(2, 2, 2),
        initial=[0.5, 0.5],
        baseline=op.SafeBaseline(policy, margins),
        knowledge=op.Knowledge(stationary=True),
    )
    other = learner_of(arrays_of(learner))
    assert other.cost_limits.tolist() == [0.6, 1.0]
    assert other.guarantee == learner.guarantee


@pytest.mark.parametrize("name", [*REQUIRED])
def test_a_change_of_any_array_is_refused(name):
    arrays = arrays_of(LEARNERS["OptPess-LP"]())
    before = arrays[name]
    if before.dtype.kind == "U":
        changed = np.array(str(before).replace("P", "Q", 1))
    elif before.ndim:
        changed = before.copy()
        changed[len(changed) // 2] ^= 1
    else:
        changed = before + 1
    with pytest.raises(op.InvalidInputError, match="not a stored learner"):
        learner_of(arrays | {name: changed})


def test_an_unknown_class_is_refused_with_a_hint():
    from optpess.learn import stored

    arrays = arrays_of(LEARNERS["OPDOP"]())
    state, facts = arrays["learner_state"].tobytes(), str(arrays["learner_facts"])
    arrays["learner_class"] = np.array("OPDOPP")
    arrays["learner_checksum"] = np.array(stored._checksum("OPDOPP", facts, state))
    with pytest.raises(op.InvalidInputError, match="did you mean 'OPDOP'"):
        learner_of(arrays)


def test_the_units_and_the_seed_are_kept():
    margins = [op.SafetyMargin(0.6, 0.135), op.SafetyMargin(1.5, 1.25)]
    learner = op.OptPessMix(
        shape=(2, 2, 2),
        initial=[0.5, 0.5],
        baseline=op.SafeBaseline(np.tile([1.0, 0.0], (2, 2, 1)), margins),
        reward_range=(-1.0, 4.0),
        cost_range=[(0.0, 2.0), (0.5, 1.0)],
        seed=11,
    )
    other = learner_of(arrays_of(learner))
    assert other.units == learner.units == Units((-1.0, 4.0), ((0.0, 2.0), (0.5, 1.0)))
    assert other.parameters == learner.parameters
    assert other.parameters["seed"] == 11
