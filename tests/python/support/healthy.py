"""One healthy instance; a test changes one thing about it."""

import re
from contextlib import contextmanager

import numpy as np
import optpess as op
import pytest

H, S, A, M = 3, 2, 2, 1

TRANSITIONS = np.array(
    [
        [[[0.25, 0.75], [0.5, 0.5]], [[1.0, 0.0], [0.125, 0.875]]],
        [[[0.5, 0.5], [0.0, 1.0]], [[0.75, 0.25], [0.25, 0.75]]],
        [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]],
    ]
)  # [H, S, A, S]
REWARDS = np.linspace(0.0, 1.0, H * S * A).reshape(H, S, A)
COSTS = REWARDS[::-1, :, ::-1] / 2
POLICY = np.array([[[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]], [[0.75, 0.25], [0.5, 0.5]]])
INITIAL = np.array([0.625, 0.375])


def arguments(**changes):
    """The arguments of `op.CMDP`, fresh copies, with some of them replaced."""
    healthy = {
        "transitions": TRANSITIONS.copy(),
        "rewards": REWARDS.copy(),
        "costs": COSTS.copy(),
        "cost_limit": 1.0,
        "initial": INITIAL.copy(),
    }
    return healthy | changes


def model(**changes):
    """The healthy model, with some of its arguments replaced."""
    return op.CMDP(**arguments(**changes))


def stationary(**changes):
    """The healthy model's first step, repeated."""
    healthy = {
        "transitions": TRANSITIONS[0],
        "rewards": REWARDS[0],
        "costs": COSTS[0],
        "cost_limit": 1.0,
        "initial": INITIAL,
        "horizon": H,
    }
    return op.CMDP.stationary(**healthy | changes)


def compressed(transitions=TRANSITIONS):
    """Compressed rows of dense transitions: offsets, successors, probabilities."""
    rows = transitions.reshape(-1, transitions.shape[-1])
    present = rows != 0
    offsets = np.concatenate([[0], present.sum(axis=1).cumsum()])
    return offsets, np.nonzero(present)[1], rows[present]


def sparse(transitions=TRANSITIONS):
    """Dense transitions, with or without a step axis, as a sparse `op.Transitions`."""
    horizon = transitions.shape[0] if transitions.ndim == 4 else None
    num_states, num_actions = transitions.shape[-1], transitions.shape[-2]
    sizes = {"num_states": num_states, "num_actions": num_actions, "horizon": horizon}
    return op.Transitions.sparse(*compressed(transitions), **sizes)


def changed(array, index, value):
    """A copy of an array with one entry replaced."""
    copy = np.array(array, dtype=float)
    copy[index] = value
    return copy


@contextmanager
def refused(kind, *pieces, error=op.InvalidInputError):
    """Expects a refusal of this kind, whose message contains all the pieces."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.kind == kind
    for piece in pieces:
        assert re.search(re.escape(piece), str(caught.value)), f"{piece!r} not in: {caught.value}"


def refused_in_one_sentence(call, pieces):
    """Expects a refusal as invalid input, in one line of text that contains the pieces."""
    with pytest.raises(op.OptPessError) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is op.InvalidInputError
    for piece in pieces:
        assert piece in message, f"{piece!r} is not in: {message}"
    assert "\n" not in message
    assert not re.search(r"\bat 0x|Traceback|argument \d|next_policy was called", message)


def calls(model):
    """Every public function, as (name, function of no arguments), on a model."""
    _, num_states, num_actions = model.shape
    policy = np.full(model.shape, 1 / num_actions)
    kernel, start, reward = model.transitions, model.initial, model.rewards
    visits = np.full(model.shape, 1 / (num_states * num_actions))
    mixture = ([policy, policy], [0.5, 0.5])
    both = (reward, kernel, 1 - reward, kernel)
    return {
        "evaluate": lambda: op.evaluate(policy, reward, kernel, start),
        "state_values": lambda: op.state_values(policy, reward, kernel),
        "occupancy": lambda: op.occupancy(policy, kernel, start),
        "policy_from_occupancy": lambda: op.policy_from_occupancy(visits, policy),
        "mix_policies": lambda: op.mix_policies(*mixture, kernel, start),
        "value_difference": lambda: op.value_difference(policy, *both, start, "second"),
        "backward_induction": lambda: op.backward_induction(reward, kernel),
        "sample": lambda: op.sample(model, policy, 3),
    }
