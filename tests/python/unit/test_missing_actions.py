"""The folding of actions that do not exist: rows, compressed rows, policies, action numbers."""

import numpy as np
import optpess as op
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optpess.model import missing_actions as missing

MASK = np.array([[True, True, False], [False, True, True], [False, False, True]])


@st.composite
def masks(draw):
    """A mask with an action in every state."""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    mask = np.array(draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=16)))
    mask = np.resize(mask, shape)
    mask[np.arange(shape[0]), draw(st.integers(0, shape[1] - 1))] |= ~mask.any(axis=1)
    return mask


def test_a_missing_action_stands_in_for_the_lowest_that_exists():
    assert missing.stand_ins(MASK).tolist() == [[0, 1, 0], [1, 1, 2], [2, 2, 2]]


def test_a_mask_is_checked_and_copied():
    assert missing.check_mask(None, 3, 3) is None
    assert missing.check_mask(np.ones((3, 3)), 3, 3) is None
    given = MASK.astype(int)
    made = missing.check_mask(given, 3, 3)
    given[:] = 1
    assert made.dtype == np.bool_
    assert (made == MASK).all()
    assert not made.flags.writeable


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (MASK[:2], "actions has shape [2, 3]; it must have shape [3, 3]"),
        (MASK * 0.5, "must be True where the action exists"),
        (MASK.astype(str), "must be True where the action exists"),
        (MASK & np.array([[1], [0], [1]], dtype=bool), "actions[1] is False for every action"),
        ([[True], [True, False]], "actions cannot be made an array"),
    ],
)
def test_a_mask_that_cannot_be_meant_is_refused(mask, words):
    with pytest.raises(op.InvalidInputError) as refused:
        missing.check_mask(mask, 3, 3)
    assert words in str(refused.value)


@given(masks(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_dense_and_compressed_rows_fold_alike(mask, steps, random):
    num_states, num_actions = mask.shape
    rng = np.random.default_rng(random.randrange(2**32))
    rows = np.where(rng.random((steps, *mask.shape, num_states)) < 0.6, rng.random(), 0.0)
    flat = rows.reshape(-1, num_states)
    owner, successors = np.nonzero(flat)
    offsets = np.searchsorted(owner, np.arange(len(flat) + 1))
    made = missing.fold_compressed(offsets, successors, flat[owner, successors], mask)
    dense = np.zeros_like(flat)
    dense[np.repeat(np.arange(len(flat)), np.diff(made[0])), made[1]] = made[2]
    expected = missing.fold_rows(rows, mask, trailing=1)
    assert (dense.reshape(rows.shape) == expected).all()
    for state in range(num_states):
        lowest = np.flatnonzero(mask[state])[0]
        for action in range(num_actions):
            source = action if mask[state, action] else lowest
            assert (expected[:, state, action] == rows[:, state, source]).all()


@given(masks(), st.randoms(use_true_random=False))
def test_a_folded_policy_uses_what_exists_and_keeps_its_values(mask, random):
    rng = np.random.default_rng(random.randrange(2**32))
    policy = rng.dirichlet(np.ones(mask.shape[1]), (2, mask.shape[0]))
    folded = missing.fold_policy(policy, mask)
    assert not folded[:, ~mask].any()
    assert np.allclose(folded.sum(axis=-1), 1.0, atol=1e-15)
    signal = missing.fold_rows(rng.random((2, *mask.shape)), mask)
    assert np.allclose((folded * signal).sum(axis=-1), (policy * signal).sum(axis=-1), atol=1e-14)
    assert missing.fold_policy(folded, mask) is folded
    missing.check_actions_exist(folded, mask)


def test_actions_fold_as_policies_do():
    actions = np.array([[2, 0, 1]], dtype=np.uint32)
    assert missing.fold_actions(actions, MASK).tolist() == [[0, 1, 2]]
    assert missing.fold_actions(actions, None) is actions


def test_the_use_of_a_missing_action_is_refused_with_its_place():
    policy = np.full((2, 3, 3), 1 / 3)
    policy[0] = np.eye(3)[[0, 1, 2]]
    with pytest.raises(op.InvalidInputError) as refused:
        missing.check_actions_exist(policy, MASK)
    assert str(refused.value) == (
        "policy[1, 0, 2] is 0.333333; action 2 does not exist in state 0, where the actions are [0, 1]"
    )
