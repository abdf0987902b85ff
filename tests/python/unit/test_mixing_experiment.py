"""The experiment of docs/mixing-results.md: every part runs in a small size, and the page shows it."""

import importlib
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"
SMALL = 500


@pytest.fixture(scope="module")
def mixing():
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        yield importlib.import_module("mixing")
    finally:
        sys.path.remove(str(EXPERIMENTS))


@pytest.fixture(scope="module")
def record(mixing):
    """Of each part a few rows that take little time."""
    rows = {"regret": "ring", "speed": "pair", "coverage": "one state"}
    return {
        part: dict(run(mixing.Setup(shrink=SMALL, rows=rows.get(part, ""))))
        for part, run in mixing.PARTS.items()
    }


def test_every_part_has_rows_and_a_section_with_each_of_them(mixing, record):
    page = mixing.page(record)
    assert record.keys() == mixing.LINES.keys()
    for part, rows in record.items():
        section = "\n".join(mixing.LINES[part](rows))
        assert rows
        assert section in page
        assert all(f"| {name} |" in section for name in rows)


def test_no_row_violates_and_regret_lies_between_its_ends(record):
    rows = [row["mix"] for part in record.values() for row in part.values() if "mix" in row]
    assert len(rows) == 2 + 2 + 6 + 4
    assert all(row["violating_episodes"] == 0 for row in rows)
    assert all(row["least"] <= row["median"] <= row["greatest"] for row in rows)


def test_halved_radii_fail_at_least_as_often(record):
    full, halved = (record["coverage"][f"one state, {rule} radii"] for rule in ("full", "halved"))
    assert full["checks"] > 0
    assert full["failing_replicates"] <= halved["failing_replicates"]


def test_a_missed_bar_and_a_violation_are_said(mixing, record):
    name, row = next(iter(record["regret"].items()))
    bad = row | {"bar": 0, "mix": row["mix"] | {"violating_episodes": 7}}
    text = "\n".join(mixing.regret_lines({name: bad}))
    assert "0 (missed)" in text
    assert "7 violating episodes" in text
    assert f"- {name}: median" in text


def test_the_figures_have_a_panel_for_each_problem_with_curves(mixing, record):
    for of in ("regret", "weight"):
        shown = [axis for axis in mixing.draw(record, of).axes if axis.get_visible()]
        assert [axis.get_title() for axis in shown] == list(mixing.panels(record))
        assert len(shown) == 1 + 2
        assert all(axis.get_ylim()[0] < 0 for axis in shown)  # a line at zero is inside


def test_random_problems_are_safe_and_have_something_to_gain(mixing):
    for seed in range(1, 11):
        problem = mixing.random_problem(seed)
        assert problem.safe_costs[0] < problem.model.cost_limits[0]
        assert mixing.gap(problem) > 0.01
        assert 5 <= problem.model.shape.num_states <= 8
