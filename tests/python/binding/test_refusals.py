"""Bad input is refused, and the message says where, what was found and what is allowed."""

from types import SimpleNamespace

import numpy as np
import optpess as op
import pytest
from scipy import sparse
from support import healthy
from support.healthy import (
    COSTS,
    INITIAL,
    POLICY,
    REWARDS,
    TRANSITIONS,
    changed,
    compressed,
    model,
    refused,
)


def values(signal):
    return op.state_values(POLICY, signal, TRANSITIONS)


def kernel(position=None, value=None, *, rows=TRANSITIONS, **sizes):
    """The healthy sparse transitions with one of the three lists replaced."""
    lists = list(compressed(rows))
    if position is not None:
        lists[position] = value
    sizes = {"num_states": 2, "num_actions": 2, "horizon": 3} | sizes
    return op.Transitions.sparse(*lists, **sizes)


# Numbers


def test_nan_is_refused_where_it_stands():
    with refused("NotFinite", "rewards[1, 0, 1] is NaN", "finite"):
        model(rewards=changed(REWARDS, (1, 0, 1), np.nan))


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_an_infinity_is_refused_where_it_stands(infinity):
    with refused("NotFinite", f"signal[2, 1, 0] is {infinity}", "finite"):
        values(changed(REWARDS, (2, 1, 0), infinity))


def test_nan_in_a_kernel_is_refused_where_it_stands():
    with refused("NotFinite", "transitions[0, 1, 0, 1] is NaN"):
        model(transitions=changed(TRANSITIONS, (0, 1, 0, 1), np.nan))


def test_a_negative_probability_is_refused_even_if_its_row_sums_to_one():
    with refused("OutOfRange", "policy[0, 1, 1] is -0.25", "[0, 1]"):
        op.occupancy(changed(POLICY, (0, 1), [1.25, -0.25]), TRANSITIONS, INITIAL)


def test_a_row_that_misses_one_by_a_millionth_is_refused():
    off = changed(TRANSITIONS, (1, 0, 0), [0.5, 0.500001])
    with refused("NotADistribution", "transitions[1, 0, 0] sums to 1.000001", "1 within 1e-9"):
        model(transitions=off)


def test_a_model_refuses_a_row_that_loses_mass():
    leaking = changed(TRANSITIONS, (1, 0, 0), [0.5, 0.25])
    with refused("NotADistribution", "transitions[1, 0, 0] sums to 0.75", "1 within 1e-9"):
        model(transitions=leaking)


def test_a_policy_that_is_no_distribution_is_refused():
    with refused("NotADistribution", "policy[2, 0] sums to 0.5"):
        op.state_values(changed(POLICY, (2, 0), 0.25), REWARDS, TRANSITIONS)


def test_a_start_that_is_no_distribution_is_refused():
    with refused("NotADistribution", "initial sums to 0.75", "1 within 1e-9"):
        model(initial=[0.5, 0.25])


@pytest.mark.parametrize("reward", [-0.5, 1.5])
def test_a_reward_outside_the_unit_interval_is_refused(reward):
    with refused("OutOfRange", f"rewards[0, 1, 1] is {reward}", "[0, 1]"):
        model(rewards=changed(REWARDS, (0, 1, 1), reward))


def test_a_cost_outside_the_unit_interval_is_refused_with_its_constraint():
    costs = changed(np.stack([COSTS, COSTS]), (1, 0, 1, 1), 1.5)
    with refused("OutOfRange", "costs[1, 0, 1, 1] is 1.5", "[0, 1]"):
        model(costs=costs, cost_limit=[1.0, 1.0])


@pytest.mark.parametrize("limit", [0.0, -1.0, 3.5])
def test_a_limit_outside_the_horizon_is_refused(limit):
    with refused("OutOfRange", f"cost_limit[0] is {limit:g}", "(0, 3]"):
        model(cost_limit=limit)


def test_a_negative_occupancy_is_refused():
    with refused("OutOfRange", "occupancy[0, 0, 0] is -0.5"):
        op.policy_from_occupancy(changed(POLICY, (0, 0, 0), -0.5), POLICY)


def test_weights_that_are_no_distribution_are_refused():
    with refused("NotADistribution", "weights sums to 1.5"):
        op.mix_policies([POLICY, POLICY], [0.75, 0.75], TRANSITIONS, INITIAL)


@pytest.mark.parametrize("integer", [np.uint64(2**64 - 1), np.int64(2**53), np.int64(-(2**53))])
def test_an_integer_that_a_float_may_round_is_refused(integer):
    signal = np.zeros((3, 2, 2), dtype=integer.dtype)
    signal[1, 0, 1] = integer
    with refused("OutOfRange", "signal[1, 0, 1] is", "9007199254740991"):
        values(signal)


# Shapes


def test_a_wrong_number_of_axes_is_refused():
    with refused("WrongRank", "rewards has shape [3, 2]", "[H, S, A]"):
        model(rewards=REWARDS[..., 0])


def test_a_wrong_axis_length_is_refused():
    with refused("ShapeMismatch", "transitions has shape [2, 2, 2, 2]", "[3, 2, 2, 2]"):
        model(transitions=TRANSITIONS[1:])


def test_an_empty_axis_is_refused():
    with refused("EmptyAxis", "policy has shape [3, 0, 2]", "axis 1"):
        op.state_values(np.zeros((3, 0, 2)), REWARDS, TRANSITIONS)


def test_costs_without_a_constraint_are_refused():
    with refused("EmptyAxis", "costs has shape [0, 3, 2, 2]"):
        model(costs=np.zeros((0, 3, 2, 2)))


def test_fewer_limits_than_costs_are_refused():
    with refused("ShapeMismatch", "cost_limit has shape [1]", "[2]"):
        model(costs=np.stack([COSTS, COSTS]), cost_limit=[1.0])


def test_fewer_weights_than_policies_are_refused():
    with refused("ShapeMismatch", "weights has shape [1]", "[2]"):
        op.mix_policies([POLICY, POLICY], [1.0], TRANSITIONS, INITIAL)


def test_no_policies_at_all_are_refused():
    with refused("NothingGiven", "policies is empty"):
        op.mix_policies([], [], TRANSITIONS, INITIAL)


# Sparse rows


@pytest.mark.parametrize("successor", [2, -1])
def test_a_successor_that_does_not_exist_is_refused(successor):
    successors = compressed()[1]
    successors[3] = successor
    with refused("SuccessorOutOfRange", f"transition successors[3] is {successor}", "[0, 2)"):
        kernel(1, successors)


@pytest.mark.parametrize("pair", [[0, 0], [1, 0]], ids=["twice", "unsorted"])
def test_successors_that_do_not_increase_are_refused(pair):
    successors = compressed()[1]
    successors[:2] = pair
    with refused("SuccessorsNotIncreasing", f"[1] is {pair[1]} after {pair[0]}", "increasing"):
        kernel(1, successors)


@pytest.mark.parametrize(("position", "offset"), [(0, 1), (4, 1), (4, 99), (12, 7), (2, -1)])
def test_malformed_offsets_are_refused(position, offset):
    offsets = compressed()[0]
    offsets[position] = offset
    with refused("MalformedOffsets", f"transition offsets[{position}] is {offset}"):
        kernel(0, offsets)


def test_a_wrong_number_of_offsets_is_refused():
    with refused("ShapeMismatch", "transition offsets has shape [12]", "[13]"):
        kernel(0, compressed()[0][:-1])


def test_fractional_successors_are_refused():
    with refused("UnsupportedType", "transition successors", "float64", "integers"):
        kernel(1, compressed()[1].astype(float))


def test_compressed_columns_that_cannot_be_converted_are_refused():
    # Compressed columns were once read as if they were rows: the transpose, without a word.
    columns = sparse.csc_matrix(TRANSITIONS.reshape(-1, 2))
    names = ("indptr", "indices", "data", "shape", "format")
    foreign = SimpleNamespace(**{name: getattr(columns, name) for name in names})
    with refused("UnsupportedType", "transitions", "csc", "CSR"):
        model(transitions=foreign)


def test_a_sparse_matrix_with_a_wrong_number_of_rows_is_refused():
    stored = sparse.csr_matrix(TRANSITIONS.reshape(-1, 2)[:-1])
    with refused("OutOfRange", "number of rows of the sparse transitions is 11"):
        model(transitions=stored)


# Sizes


@pytest.mark.parametrize(("horizon", "shown"), [(0, "0"), (-1, "-1"), (10**30, "1e30")])
def test_a_horizon_that_is_no_count_is_refused(horizon, shown):
    with refused("OutOfRange", f"horizon is {shown};", "[1, "):
        healthy.stationary(horizon=horizon)


@pytest.mark.parametrize("horizon", [2.0, "3"])
def test_a_horizon_that_is_no_integer_is_refused(horizon):
    with refused("UnsupportedType", "horizon", type(horizon).__name__, "integers"):
        healthy.stationary(horizon=horizon)


def test_a_numpy_integer_is_a_horizon():
    assert healthy.stationary(horizon=np.int16(3)).shape.horizon == 3


@pytest.mark.parametrize("size", ["num_states", "num_actions", "horizon"])
def test_a_negative_size_of_sparse_rows_is_refused(size):
    with refused("OutOfRange", f"{size} is -2"):
        kernel(**{size: -2})


@pytest.mark.parametrize("episodes", [0, -1])
def test_a_number_of_episodes_below_one_is_refused(episodes):
    with refused("OutOfRange", f"num_episodes is {episodes}", "[1, "):
        op.sample(model(), POLICY, episodes)


def test_a_seed_below_zero_is_refused():
    with refused(None, "seed is -1"):
        op.sample(model(), POLICY, 1, seed=-1)


def test_an_unknown_form_of_the_lemma_is_refused():
    arguments = (POLICY, REWARDS, TRANSITIONS, REWARDS, TRANSITIONS, INITIAL)
    with pytest.raises(ValueError, match=r'"third".*"first" or "second"'):
        op.value_difference(*arguments, expectation="third")


# Types

TYPES = {
    "objects": (REWARDS.astype(object), "object"),
    "strings": (REWARDS.astype(str), "<U"),
    "complex numbers": (REWARDS.astype(complex), "complex128"),
    "masked arrays": (np.ma.masked_array(REWARDS, mask=REWARDS > 0.5), "MaskedArray"),
    "long doubles": (REWARDS.astype(np.longdouble), str(np.dtype(np.longdouble))),
    "dates": (np.zeros((3, 2, 2), dtype="M8[s]"), "datetime64"),
    "records": (np.zeros((3, 2, 2), dtype="u1,f8"), "f0"),
    "ragged lists": ([[1.0], [1.0, 2.0]], "list"),
    "nothing": (None, "NoneType"),
    "sparse matrices": (sparse.csr_matrix(REWARDS[0]), "csr_matrix"),
}


@pytest.mark.parametrize("what", TYPES)
def test_elements_without_a_faithful_conversion_are_refused(what):
    given, found = TYPES[what]
    with refused("UnsupportedType", "rewards", found, "float64, float32, float16"):
        model(rewards=given)


@pytest.mark.parametrize("what", TYPES)
def test_a_signal_of_such_elements_is_refused_too(what):
    with refused("UnsupportedType", "signal", TYPES[what][1]):
        values(TYPES[what][0])
