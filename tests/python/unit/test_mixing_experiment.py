"""The experiment of docs/mixing-results.md: every part runs in a small size, and the page shows it."""

import pytest
from support.experiments import experiment

SMALL = 500


@pytest.fixture(scope="module")
def mixing():
    return experiment("mixing")


@pytest.fixture(scope="module")
def pages():
    return experiment("mixing_page")


@pytest.fixture(scope="module")
def figures():
    return experiment("mixing_figures")


@pytest.fixture(scope="module")
def problems():
    return experiment("mixing_problems")


@pytest.fixture(scope="module")
def record(mixing):
    """Of each part a few rows that take little time."""
    rows = {"regret": "ring", "speed": "pair", "coverage": "one state"}
    return {
        part: dict(run(mixing.Setup(shrink=SMALL, rows=rows.get(part, ""))))
        for part, run in mixing.PARTS.items()
    }


def test_every_part_has_rows_and_a_section_with_each_of_them(pages, record):
    page = pages.page(record)
    assert record.keys() == pages.LINES.keys()
    for part, rows in record.items():
        section = "\n".join(pages.LINES[part](rows))
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


def test_a_missed_bar_and_a_violation_are_said(pages, record):
    name, row = next(iter(record["regret"].items()))
    bad = row | {"bar": 0, "mix": row["mix"] | {"violating_episodes": 7}}
    text = "\n".join(pages.regret_lines({name: bad}))
    assert "0 (missed)" in text
    assert "7 violating episodes" in text
    assert f"- {name}: median" in text


def test_the_figures_have_a_panel_for_each_problem_with_curves(figures, record):
    for of in figures.DRAWN_OF:
        shown = [axis for axis in figures.draw(record, of).axes if axis.get_visible()]
        assert [axis.get_title(loc="left") for axis in shown] == list(figures.panels(record))
        assert len(shown) == 1 + 2


def test_what_is_drawn_lies_between_its_ends_and_within_the_limit(figures, record):
    for row, _ in figures.panels(record).values():
        for found in row["curves"].values():
            assert len(found["episodes"]) <= 60
            for of in ("regret", "weight", "cost", "certified"):
                ends = zip(
                    *(found[f"{of}_{end}"] for end in ("least", "median", "greatest")), strict=True
                )
                assert all(least <= middle <= greatest for least, middle, greatest in ends)
            assert max(found["cost_greatest"]) <= 1.0
            assert max(found["certified_greatest"]) <= 1.0
            assert 0.0 <= found["cost_of_pi0"] < 1.0


def test_random_problems_are_safe_and_have_something_to_gain(problems):
    for seed in range(1, 11):
        problem = problems.random_problem(seed)
        assert problem.safe_costs[0] < problem.model.cost_limits[0]
        assert problems.gap(problem) > 0.01
        assert 5 <= problem.model.shape.num_states <= 8
