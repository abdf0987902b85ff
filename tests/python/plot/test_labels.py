"""Names at the ends of lines: near to them, and not upon each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib", reason="plots are an optional extra")

from optpess.plot.labels import spread
from optpess.plot.style import drawing, tidy

places = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8)


def test_names_with_room_stay_where_they_are():
    wanted = np.array([0.9, 0.1, 0.5])
    np.testing.assert_allclose(spread(wanted, np.full(3, 0.1)), wanted)


def test_two_names_at_one_place_move_by_half_a_height_each():
    found = spread(np.array([0.5, 0.5]), np.array([0.1, 0.1]))
    np.testing.assert_allclose(np.sort(found), [0.45, 0.55])


def test_names_at_the_edge_stay_inside():
    found = spread(np.array([1.0, 1.0, 0.0]), np.full(3, 0.2))
    np.testing.assert_allclose(found, [0.8, 1.0, 0.0])


@given(places, st.floats(0.01, 0.1))
def test_names_never_overlap_and_keep_their_order(wanted, height):
    heights = np.full(len(wanted), height)
    found = spread(np.array(wanted), heights)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(found[order]) >= height - 1e-9).all()
    assert found.min() >= -1e-9
    assert found.max() <= 1.0 + 1e-9


@given(places)
def test_tall_names_have_room_for_all_their_lines(wanted):
    heights = np.linspace(0.02, 0.12, len(wanted))
    found = spread(np.array(wanted), heights)
    order = np.argsort(found)
    needed = 0.5 * (heights[order][1:] + heights[order][:-1])
    assert (np.diff(found[order]) >= needed - 1e-9).all()


def test_names_without_room_stick_out_equally_at_both_ends():
    found = spread(np.array([0.2, 0.3, 0.4]), np.full(3, 0.8))
    np.testing.assert_allclose(np.sort(found), [-0.3, 0.5, 1.3])


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (0.25, "0.25"),
        (-3.5, "\N{MINUS SIGN}3.5"),
        (750_000.0, "750,000"),
        (1e6, "10⁶"),
        (2.5e6, "2.5 × 10⁶"),
        (-4e8, "\N{MINUS SIGN}4 × 10⁸"),
    ],
)
def test_ticks_of_linear_axes_are_plain_numbers(number, text):
    with drawing("a test") as new_figure:
        axis = new_figure().subplots()
        axis.set_ylim(min(0.0, number), max(1.0, number))
        tidy(axis)
        assert axis.yaxis.get_major_formatter()(number) == text
