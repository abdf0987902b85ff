"""Arrays on their way across the border: any layout and type, never modified, never shared."""

import sys
import threading
import time

import numpy as np
import optpess as op
import pytest
from scipy import sparse
from support import healthy
from support.healthy import INITIAL, POLICY, TRANSITIONS, compressed

SIGNAL = np.array([[[1, 0], [3, 2]], [[0, 5], [7, 1]], [[2, 2], [0, 4]]])  # whole numbers


def packed(array):
    """A view whose elements do not stand at multiples of their size."""
    records = np.zeros(array.shape, dtype=[("pad", "u1"), ("value", array.dtype)])
    records["value"] = array
    return records["value"]


def spread(array):
    """A view of every second element of a larger array, along each axis."""
    large = np.full([2 * size for size in array.shape], 99, dtype=array.dtype)
    view = large[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def backwards(array):
    """The same elements with a negative stride along each axis."""
    everywhere = tuple(slice(None, None, -1) for _ in array.shape)
    return array[everywhere].copy()[everywhere]


def locked(array):
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every second element": spread,
    "negative strides": backwards,
    "unaligned": packed,
    "read-only": locked,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "nested lists": np.ndarray.tolist,
    "first axis fastest": lambda array: np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0),
}
NUMBERS = ["f4", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f4", ">i4"]


def answers(policy, signal, transitions, initial):
    """Every answer about one policy, as a flat list of arrays."""
    return [
        np.array(op.evaluate(policy, signal, transitions, initial)),
        op.state_values(policy, signal, transitions),
        op.occupancy(policy, transitions, initial),
        op.policy_from_occupancy(signal, policy),
        op.mix_policies([policy, policy], [0.5, 0.5], transitions, initial),
        *op.backward_induction(signal, transitions),
    ]


def same(found, expected):
    """Exact: the same numbers must go through the same operations."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


EXPECTED = answers(POLICY, SIGNAL.astype(float), TRANSITIONS, INITIAL)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_an_array_changes_nothing(layout):
    # Arrays in Fortran order were once read as if they were transposed.
    lay = LAYOUTS[layout]
    same(answers(lay(POLICY), lay(SIGNAL.astype(float)), lay(TRANSITIONS), lay(INITIAL)), EXPECTED)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_type_of_the_numbers_changes_nothing(number):
    same(answers(POLICY, SIGNAL.astype(number), TRANSITIONS, INITIAL), EXPECTED)


@pytest.mark.parametrize("number", ["f4", "f2"])
def test_probabilities_that_shorter_floats_hold_exactly_are_taken_from_them(number):
    given = (array.astype(number) for array in (TRANSITIONS, INITIAL))
    same(answers(POLICY.astype(number), SIGNAL, *given), EXPECTED)


def test_truth_values_are_zeros_and_ones():
    taken = POLICY > 0
    signal = taken.astype(float)
    same(answers(POLICY, taken, TRANSITIONS, INITIAL), answers(POLICY, signal, TRANSITIONS, INITIAL))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_model_is_the_same_whatever_the_layout_of_its_arrays(layout):
    arrays = healthy.arguments(cost_limit=np.array([1.0]))
    given = {name: LAYOUTS[layout](array) for name, array in arrays.items()}
    made, expected = healthy.model(**given), healthy.model()
    same([made.rewards, made.costs, made.initial], [expected.rewards, expected.costs, INITIAL])
    np.testing.assert_array_equal(made.transitions.to_array(), TRANSITIONS)


@pytest.mark.parametrize("integer", ["i2", "i4", "i8", "u1", "u4", ">i4"])
def test_sparse_rows_take_any_integers(integer):
    offsets, successors, probabilities = compressed()
    sizes = {"num_states": 2, "num_actions": 2, "horizon": 3}
    lists = (offsets.astype(integer), successors.astype(integer), probabilities)
    same([op.Transitions.sparse(*lists, **sizes).to_array()], [TRANSITIONS])


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
def test_rows_compressed_by_scipy_are_taken(make):
    same(answers(POLICY, SIGNAL, make(TRANSITIONS.reshape(-1, 2)), INITIAL), EXPECTED)


def test_rows_without_any_successor_are_taken_from_empty_lists():
    empty = op.Transitions.sparse([0] * 5, [], [], num_states=2, num_actions=2)
    np.testing.assert_array_equal(empty.to_array(), np.zeros((2, 2, 2)))


def test_no_input_is_ever_modified():
    given = [POLICY.copy(), SIGNAL.astype(float), TRANSITIONS.copy(), INITIAL.copy()]
    answers(*given)
    op.value_difference(given[0], given[1], given[2], given[1], given[2], given[3])
    healthy.model(transitions=given[2], initial=given[3])
    op.Transitions(given[2])
    same(given, [POLICY, SIGNAL.astype(float), TRANSITIONS, INITIAL])


def test_no_part_of_a_sparse_input_is_ever_modified():
    given, kept = compressed(), compressed()
    op.Transitions.sparse(*given, num_states=2, num_actions=2, horizon=3)
    matrix = sparse.csr_matrix(TRANSITIONS.reshape(-1, 2))
    before = matrix.copy()
    op.evaluate(POLICY, SIGNAL, matrix, INITIAL)
    same([*given, matrix.data, matrix.indices], [*kept, before.data, before.indices])


def test_transitions_do_not_change_with_the_array_they_were_made_of():
    source = TRANSITIONS.copy()
    kernel = op.Transitions(source)
    source[...] = 0
    np.testing.assert_array_equal(kernel.to_array(), TRANSITIONS)


def test_results_can_be_written_to_without_changing_anything():
    kernel = op.Transitions(TRANSITIONS)
    for array in (kernel.to_array(), dict(kernel.stored())["probabilities"]):
        array[...] = 0
    np.testing.assert_array_equal(kernel.to_array(), TRANSITIONS)


def test_other_threads_run_during_a_long_call():
    # No thread is made to give way for 1000 s: the counter moves only if the call itself lets go.
    generator = np.random.default_rng(0)
    kernel = op.Transitions(generator.dirichlet(np.ones(300), size=(300, 4)))
    policy, signal = np.full((200, 300, 4), 0.25), np.ones((300, 4))
    start = np.full(300, 1 / 300)
    count, done = [0], threading.Event()

    def counting():
        while not done.is_set():
            count[0] += 1
            time.sleep(1e-4)

    interval = sys.getswitchinterval()
    counter = threading.Thread(target=counting)
    counter.start()
    try:
        sys.setswitchinterval(1000)
        before = count[0]
        op.evaluate(policy, signal, kernel, start)
        after = count[0]
    finally:
        sys.setswitchinterval(interval)
        done.set()
        counter.join()
    assert after > before


def test_a_view_that_repeats_one_step_is_read_as_the_array_it_stands_for():
    model = op.zoo.media()
    policy = np.full(model.shape, 0.5)
    repeated = model.rewards
    assert repeated.strides[0] == 0
    written_out = np.ascontiguousarray(repeated)
    expected = op.state_values(policy, written_out, model.transitions)
    assert np.array_equal(op.state_values(policy, repeated, model.transitions), expected)
    with pytest.raises(op.InvalidInputError, match=r"signal has shape \[10, 10, 2\]"):
        op.state_values(policy[:5], repeated, model.transitions)


# An interrupt within an argument's own conversion became "policy holds elements of type K".
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_errors_that_say_nothing_about_an_argument_come_through(error):
    class Argument:
        def __array__(self, dtype=None, copy=None):
            raise error("from within")

    with pytest.raises(error, match="from within"):
        op.occupancy(Argument(), TRANSITIONS, INITIAL)


def test_an_argument_that_cannot_be_converted_is_refused_by_name():
    class Argument:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("from within")

    with healthy.refused("UnsupportedType", "policy"):
        op.occupancy(Argument(), TRANSITIONS, INITIAL)
