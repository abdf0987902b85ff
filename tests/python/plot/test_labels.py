"""Names at the ends of lines: near to them, and not upon each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib", reason="plots are an optional extra")

from optpess.plot.labels import spread
from optpess.plot.numbers import number_text, power_text, tick_text
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


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (0.123456, "0.1235"),
        (-2.5, "\N{MINUS SIGN}2.5"),
        (999.96, "1,000"),
        (12_345.0, "12,345"),
        (724_219.4, "724,219"),
        (8e6, "8 × 10⁶"),
        (-2.35649e7, "\N{MINUS SIGN}2.356 × 10⁷"),
        (1e15, "10¹⁵"),
        (4.345e-9, "4.345 × 10⁻⁹"),
        (-1e-7, "\N{MINUS SIGN}10⁻⁷"),
        (np.inf, "inf"),
    ],
)
def test_numbers_beside_lines_are_plain_and_never_in_the_notation_of_computers(number, text):
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, ""),
        (0.001, "0.001"),
        (0.02, "0.02"),
        (500.0, "500"),
        (1000.0, "1,000"),
        (1e4, "10⁴"),
        (2e6, "2 × 10⁶"),
        (5e-5, "5 × 10⁻⁵"),
        (3.94e8, "3.9 × 10⁸"),
    ],
)
def test_numbers_on_logarithmic_axes(number, text):
    assert power_text(number) == text


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0.499, 0.49925, 0.4995], ["0.499", "0.49925", "0.4995"]),
        ([5e6, 1e7, 1.5e7], ["0.5 × 10⁷", "10⁷", "1.5 × 10⁷"]),
        ([250_000.0, 500_000.0, 1e6], ["0.25 × 10⁶", "0.5 × 10⁶", "10⁶"]),
        ([-2e-5, 0.0, 2e-5], ["\N{MINUS SIGN}2 × 10⁻⁵", "0", "2 × 10⁻⁵"]),
        ([1e9, 1e9 + 0.5, 1e9 + 1], ["10⁹", "1.0000000005 × 10⁹", "1.000000001 × 10⁹"]),
        ([7.0], ["7"]),
        ([0.0], ["0"]),
        ([-0.1, 3e-17, 0.1], ["\N{MINUS SIGN}0.1", "0", "0.1"]),
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(ticks, texts):
    assert [tick_text(tick, ticks) for tick in ticks] == texts


@given(
    st.floats(-1e9, 1e9),
    st.sampled_from([1.0, 2.0, 2.5, 5.0]),
    st.integers(-12, 12),
    st.integers(2, 7),
)
def test_ticks_differ_and_are_what_they_say(start, factor, power, count):
    step = factor * 10.0**power
    first = round(start) if power < 0 else float(round(start / 10.0**power))
    ticks = [(first + n) * step for n in range(count)]
    texts = [tick_text(tick, ticks) for tick in ticks]
    assert len(set(texts)) == count
    signs = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹\N{MINUS SIGN}", "-0123456789-", ",")
    for tick, text in zip(ticks, texts, strict=True):
        digits, _, exponent = (
            text.rpartition("10") if "10" in text and text[-1] in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹" else (text, "", "0")
        )
        digits = digits.translate(signs).replace("×", "").strip()
        read = float({"": "1", "-": "-1"}.get(digits, digits)) * 10.0 ** int(exponent.translate(signs))
        assert abs(read - tick) <= 1e-6 * step + 1e-15 * abs(tick)
