"""A model: what it shows, that nothing can change it, that it survives being copied and stored."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import optpess as op
import pytest
from support import healthy
from support.healthy import COSTS, INITIAL, REWARDS, TRANSITIONS, H, model, stationary

NOISES = [op.Bernoulli(), op.Deterministic(), op.Gaussian(0.5), op.Uniform(0.75)]
THREE = {"costs": np.stack([COSTS, COSTS / 2, 1 - COSTS]), "cost_limit": [1.0, 0.5, 3.0]}
MODELS = {
    "dense": model,
    "stationary": stationary,
    "sparse": lambda: model(transitions=healthy.sparse()),
    "stationary and sparse": lambda: stationary(transitions=healthy.sparse(TRANSITIONS[0])),
    "stationary signals": lambda: stationary(transitions=TRANSITIONS),
    "three constraints": lambda: model(**THREE),
    **{repr(noise): lambda noise=noise: model(noise=noise) for noise in NOISES},
}


@pytest.fixture(params=MODELS)
def any_model(request):
    return MODELS[request.param]()


def same(found, expected):
    """Exact: a stored model is the model."""
    assert type(found) is type(expected)
    assert (found.shape, found.noise) == (expected.shape, expected.noise)
    assert repr(found.transitions) == repr(expected.transitions)
    for name in ("rewards", "costs", "cost_limits", "initial"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    both = (found.transitions.stored(), expected.transitions.stored())
    for (_, one), (_, other) in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


def parts(answer):
    """An answer as a tuple, also if it has one part only."""
    return answer if isinstance(answer, tuple) else (answer,)


def test_a_model_shows_what_it_was_made_of():
    made = model()
    assert made.shape == op.Shape(horizon=3, num_states=2, num_actions=2)
    assert (made.num_constraints, made.noise) == (1, op.Bernoulli())
    np.testing.assert_array_equal(made.rewards, REWARDS)
    np.testing.assert_array_equal(made.costs, COSTS[np.newaxis])
    np.testing.assert_array_equal(made.cost_limits, [1.0])
    np.testing.assert_array_equal(made.initial, INITIAL)
    np.testing.assert_array_equal(made.transitions.to_array(), TRANSITIONS)


def test_a_model_describes_itself_in_a_line():
    sizes = "horizon=3, num_states=2, num_actions=2, num_constraints=1"
    assert repr(model()) == f"CMDP({sizes}, dense)"
    assert repr(model(transitions=healthy.sparse())) == f"CMDP({sizes}, sparse)"


def test_a_stationary_model_is_the_same_at_every_step():
    made = stationary()
    np.testing.assert_array_equal(made.rewards, np.stack([REWARDS[0]] * H))
    np.testing.assert_array_equal(made.costs[0], np.stack([COSTS[0]] * H))
    repeated = model(
        transitions=np.stack([TRANSITIONS[0]] * H),
        rewards=np.stack([REWARDS[0]] * H),
        costs=np.stack([COSTS[0]] * H),
    )
    for name, call in healthy.calls(made).items():
        for one, other in zip(parts(call()), parts(healthy.calls(repeated)[name]()), strict=True):
            np.testing.assert_array_equal(one, other)  # exact: the same operations


def test_a_long_horizon_of_a_stationary_model_is_stored_once():
    made = stationary(horizon=10**6)
    assert made.rewards.shape == (10**6, 2, 2)
    assert made.rewards.strides[0] == 0


def test_the_last_slice_of_the_transitions_may_hold_anything():
    assert model(transitions=healthy.changed(TRANSITIONS, -1, np.nan)).shape == (3, 2, 2)


def test_several_constraints_keep_their_order():
    made = model(**THREE)
    assert made.num_constraints == 3
    np.testing.assert_array_equal(made.costs, THREE["costs"])
    np.testing.assert_array_equal(made.cost_limits, THREE["cost_limit"])


def test_something_that_is_no_noise_is_refused():
    with healthy.refused(None, "noise is None", "op.Bernoulli()"):
        model(noise=None)


def test_writing_to_what_a_model_hands_out_does_not_change_it(any_model):
    before = copy.deepcopy(any_model._arrays())
    any_model.cost_limits[...] = 0
    any_model.initial[...] = 0
    any_model.stored_rewards()[...] = 0
    any_model.stored_costs()[...] = 0
    any_model.transitions.to_array()[...] = 0
    for _, array in any_model.transitions.stored():
        array[...] = 0
    for name, array in any_model._arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("name", ["rewards", "costs"])
def test_views_of_a_model_cannot_be_written_to(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(model(), name)[...] = 0


@pytest.mark.parametrize("name", ["rewards", "initial", "shape", "noise", "anything"])
def test_no_attribute_of_a_model_can_be_set(name):
    with pytest.raises(AttributeError):
        setattr(model(), name, None)


def test_changing_the_arrays_a_model_was_made_of_does_not_change_it():
    given = healthy.arguments()
    made = op.CMDP(**given)
    for name in ("transitions", "rewards", "costs", "initial"):
        given[name][...] = 0
    same(made, model())


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_model_survives_pickling(any_model, protocol):
    same(pickle.loads(pickle.dumps(any_model, protocol)), any_model)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_model_survives_copying(any_model, duplicate):
    same(duplicate(any_model), any_model)


def test_a_subclass_survives_pickling_and_storing(tmp_path):
    made = Named(**healthy.arguments())
    made.save(tmp_path / "model.npz")
    same(Named.load(tmp_path / "model.npz"), made)
    same(copy.deepcopy(made), made)


class Named(op.CMDP):
    """A model of a user's own class."""

    __slots__ = ()


def test_a_model_survives_being_saved_and_loaded(any_model, tmp_path):
    any_model.save(tmp_path / "model.npz")
    same(op.CMDP.load(tmp_path / "model.npz"), any_model)


def test_every_function_takes_a_model_with_sparse_rows():
    dense, sparse = healthy.calls(model()), healthy.calls(model(transitions=healthy.sparse()))
    for name, call in dense.items():
        for one, other in zip(parts(call()), parts(sparse[name]()), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


LARGE = """
import resource
import numpy as np, optpess as op
from support import healthy

S, A, k = 10_000, 8, 5
firsts = np.arange(S * A)[:, None]
successors = np.sort((firsts + np.arange(k) * 1999) % S, axis=1).ravel()
arguments = (np.arange(0, S * A * k + 1, k), successors, np.full(S * A * k, 1 / k))
signal = np.random.default_rng(0).random((S, A))
start = np.full(S, 1 / S)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
kernel = op.Transitions.sparse(*arguments, num_states=S, num_actions=A)
model = op.CMDP.stationary(kernel, signal, 1 - signal, 1.0, start, horizon=3)
constructed = peak()
for call in healthy.calls(model).values():
    call()
print(constructed - before, peak() - before)
"""


def test_ten_thousand_states_with_sparse_rows_take_little_memory():
    # Dense rows would take 6.4 GB. Measured in a process of its own, since a peak never goes down.
    support = Path(healthy.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(support)}
    command = [sys.executable, "-P", "-c", LARGE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    constructed, used = (int(kib) / 1024 for kib in done.stdout.split())
    assert constructed < 50
    assert used < 200
