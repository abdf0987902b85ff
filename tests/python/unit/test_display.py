"""Numbers as texts: shares, spans of counts, times."""

import pytest
from optpess.display import duration, percent, span


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.95, "95 %"),
        (0.9564, "95.6 %"),
        (0.999, "99.9 %"),
        (0.99999, "99.999 %"),
        (1e-5, "0.001 %"),
        (1e-9, "less than 0.0001 %"),
        (1 - 1e-9, "more than 99.9999 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share, text):
    assert percent(share) == text


def test_counts_are_said_from_the_least_to_the_greatest():
    assert span([31, 40, 35]) == "31 to 40"
    assert span([1200, 1200]) == "1,200"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (185, "3 min 5 s"),
        (3600, "1 h 0 min"),
        (9e6, "2,500 h 0 min"),
    ],
)
def test_a_time_is_said_in_its_two_largest_units(seconds, text):
    assert duration(seconds) == text
