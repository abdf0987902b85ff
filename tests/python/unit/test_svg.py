"""The SVG of pictures: small, and still the same image."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from optpess.plot import Picture
from optpess.plot.style import drawing
from optpess.plot.svg import compact

SVG = "{http://www.w3.org/2000/svg}"
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


def points_of(path):
    """The points of a path of straight lines, as numbers x + yj."""
    points = []
    for command, x, y in re.findall(r"([Ml])(-?[\d.]+) ?(-?[\d.]+)", path):
        step = complex(float(x), float(y))
        points.append(step if command == "M" else points[-1] + step)
    return np.array(points)


def path_of(text):
    return ElementTree.fromstring(compact(text)).find(f"{SVG}path").get("d")


def test_a_line_is_hardly_moved_however_long_it_is():
    x = np.linspace(0.0, 500.0, 3000)
    y = 100.0 + 50.0 * np.sin(x / 20.0)
    pairs = [f"{a:.6f} {b:.6f}" for a, b in zip(x, y, strict=True)]
    short = path_of(f'{HEAD}<path d="M {"&#10;L ".join(pairs)} &#10;"/></svg>')
    found = points_of(short)
    above = np.abs(np.interp(x, found.real, found.imag) - y)
    assert (above / np.hypot(1.0, 2.5 * np.cos(x / 20.0))).max() < 0.13  # from the line
    assert (np.diff(found.real) > 0).all()
    assert len(short) < 0.2 * sum(map(len, pairs))
    assert found[[0, -1]] == pytest.approx([complex(x[0], y[0]), complex(x[-1], y[-1])], abs=0.08)


def test_points_on_a_straight_line_are_left_out_and_a_turn_is_not():
    corner = "M 0 0 L 10 0 L 20 0 L 30 0 L 30 10 L 30 5 L 0 5 z"
    assert path_of(f'{HEAD}<path d="{corner}"/></svg>') == "M0 0l30 0l0 10l0-5l-30 0z"


def test_curves_stay_as_they_are():
    circle = "M 0 3.5 C 0.928 3.5 1.818 3.131 2.474 2.474 z"
    assert path_of(f'{HEAD}<path d="{circle}"/></svg>') == "M 0 3.5 C 0.93 3.5 1.82 3.13 2.47 2.47 z"


def test_lines_that_look_the_same_are_joined_unless_something_is_drawn_between():
    line = '<path d="M 0 {0} L 9 {0}" style="fill: none; stroke: {1}"/>'
    text = '<text x="1" y="1">a</text>'
    shapes = [
        line.format(1, "red"),
        text,
        line.format(2, "red"),
        line.format(3, "blue"),
        line.format(4, "red"),
    ]
    found = ElementTree.fromstring(compact(f"{HEAD}<g>{''.join(shapes)}</g></svg>"))
    assert [each.get("d", "text") for each in found] == [
        "M0 1l9 0M0 2l9 0",
        "text",
        "M0 3l9 0",
        "M0 4l9 0",
    ]


def test_names_that_are_used_become_numbers_and_others_go():
    shapes = (
        '<defs><path id="dot" d="M 0 0 L 0 3 L 3 0 z" style="stroke: red"/></defs><g id="axes">'
        '<use xlink:href="#dot" x="1.2345678" style="fill: blue; stroke: red"/></g>'
    )
    found = ElementTree.fromstring(compact(f"{HEAD}{shapes}</svg>"))
    assert [each.get("id") for each in found.iter() if each.get("id")] == ["n0"]
    copy = found.find(f"{SVG}use")
    assert copy.get("{http://www.w3.org/1999/xlink}href") == "#n0"
    assert copy.get("x") == "1.23"
    assert copy.get("style") == "fill:blue"


def test_all_ticks_are_one_path_where_they_were():
    tick = (
        '<g id="tick_{0}"><use xlink:href="#m" x="{0}" y="50" style="stroke: red"/><text>{0}</text></g>'
    )
    line = '<defs><path id="m" d="M 0 0.5 L 0 3.5" style="stroke: red"/></defs>'
    found = ElementTree.fromstring(
        compact(f"{HEAD}{line}{''.join(map(tick.format, (1, 20, 35)))}</svg>")
    )
    assert found.find(f"{SVG}use") is None
    assert found.find(f"{SVG}path").get("d") == "M1 50.5l0 3M20 50.5l0 3M35 50.5l0 3"
    assert found.find(f"{SVG}path").get("style") == "stroke:red"
    assert [each.text for each in found.findall(f"{SVG}text")] == ["1", "20", "35"]


def test_a_figure_keeps_its_texts_and_gets_a_fraction_of_its_size():
    with drawing("a test") as new_figure:
        figure = new_figure()
        axis = figure.subplots()
        axis.plot(np.arange(300.0), np.sqrt(np.arange(300.0)), label="root")
        axis.set(title="a < b & c", xlabel="two  spaces")
    picture = Picture("test", "test", "", "", figure)
    text = picture.svg()
    assert text == picture.svg()
    words = ["".join(each.itertext()) for each in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert "a < b & c" in words
    assert "two  spaces" in words
    assert "sans-serif" in text
    assert len(text) < 0.6 * len(picture._drawn("svg", None))
