"""Results as columns, frames, CSV files and Markdown; comparisons in files."""

import csv
import json

import numpy as np
import optpess as op
import pytest
from optpess.run import tables

from learning import cases
from learning.test_windows import two_limits

PAIR = op.zoo.pair()
EPISODES, REPLICATES = 200, 3


def learners():
    told = {"shape": PAIR.shape, "initial": PAIR.initial}
    margin = cases.margin_of(PAIR)
    baseline = op.SafeBaseline(cases.always_first(PAIR), margin)
    return {
        "priced, with a comma": op.OptPessPrimalDual(
            **told, margin=margin, num_episodes=EPISODES, confidence=op.Scaled(0.01)
        ),
        "safe|baseline": op.AlwaysBaseline(**told, baseline=baseline, num_episodes=EPISODES),
        "mix": op.OptPessMix(**told, baseline=baseline, confidence=op.Scaled(0.1)),
    }


@pytest.fixture(scope="module")
def found():
    options = {"replicates": REPLICATES, "seed": 4, "episodes": EPISODES, "progress": False}
    return op.compare(PAIR, learners(), **options)


@pytest.fixture(scope="module")
def run(found):
    return found.runs["mix"]


CURVES = (
    *cases.CURVES,
    "weight",
    "signed_violation",
    "deployed_value",
    "deployed_value_least",
    "deployed_value_greatest",
    "baseline_share",
    "gain",
)
COSTS = ("deployed_cost", "deployed_cost_least", "deployed_cost_greatest", "certified_cost")


def test_columns_hold_every_curve_by_replicate_and_record_point(run):
    columns = run.columns()
    assert list(columns) == ["replicate", "episodes", *CURVES, *COSTS]
    assert {column.shape for column in columns.values()} == {(run.reward_regret.size,)}
    for place in (0, 7, run.reward_regret.size - 1):
        row, point = divmod(place, len(run.episodes))
        assert columns["replicate"][place] == run.replicates[row]
        assert columns["episodes"][place] == run.episodes[point]
        for name in CURVES:
            assert columns[name][place] == getattr(run, name)[row, point]
        for name in COSTS:
            assert columns[name][place] == getattr(run, name)[row, point, 0]


def test_a_run_without_baseline_or_mixtures_has_no_columns_of_them(found):
    columns = found.runs["priced, with a comma"].columns()
    assert columns.keys().isdisjoint({"gain", "weight", "certified_cost"})


def test_several_constraints_have_a_column_each():
    model, learner = two_limits()
    run = cases.run_of(model, learner, episodes=30, replicates=2)
    columns = run.columns()
    assert "deployed_cost" not in columns
    for name in COSTS:
        for m in range(2):
            np.testing.assert_array_equal(columns[f"{name}_{m}"], getattr(run, name)[..., m].ravel())
    text = run.to_markdown()
    assert "| cost 0 of an episode (limit 1.2) |" in text
    assert "| greatest cost 1 of an episode |" in text


def read(path):
    """The columns of a CSV file, as texts."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_csv_file_gives_every_number_back(run, tmp_path):
    run.to_csv(tmp_path / "run.csv")
    rows, columns = read(tmp_path / "run.csv"), run.columns()
    assert list(rows[0]) == list(columns)
    assert len(rows) == run.reward_regret.size
    for name, column in columns.items():
        assert [type(column[0].item())(row[name]) for row in rows] == column.tolist()


def test_frames_are_the_columns(run, found):
    frame = pytest.importorskip("pandas", reason="an optional extra") and run.to_frame()
    assert list(frame) == list(run.columns())
    for name, column in run.columns().items():
        np.testing.assert_array_equal(frame[name], column)
    assert set(found.to_frame().learner) == set(found.runs)


def test_a_missing_pandas_is_met_with_the_command_that_installs_it(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Run\.to_frame needs pandas: pip install pandas"):
        run.to_frame()


def test_a_csv_file_is_replaced_only_when_the_new_one_is_complete(run, tmp_path, monkeypatch):
    path = tmp_path / "run.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        tables.write_csv(path, {"name": np.array(["\ud800"])})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_texts_with_commas_and_missing_numbers_survive_a_csv_file(found, tmp_path):
    found.to_csv(tmp_path / "all.csv")
    rows = read(tmp_path / "all.csv")
    assert {row["learner"] for row in rows} == set(found.runs)
    priced = [row for row in rows if row["learner"] == "priced, with a comma"]
    assert {row["gain"] for row in priced} == {""}
    assert [float(row["reward_regret"]) for row in priced] == (
        found.runs["priced, with a comma"].reward_regret.ravel().tolist()
    )


def test_the_columns_of_a_comparison_stack_those_of_its_runs(found):
    columns = found.columns()
    for name, run in found.runs.items():
        mine = columns["learner"] == name
        for key, column in run.columns().items():
            np.testing.assert_array_equal(columns[key][mine], column)
    assert np.isnan(columns["gain"][columns["learner"] == "priced, with a comma"]).all()


# Markdown


def table_of(text):
    """The rows of a Markdown table as lists of cells."""
    lines = [line.replace(r"\|", "/") for line in text.splitlines()]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (5160.2, 187.3, "5,160 ± 187"),
        (39575.0, 1873.4, "39,575 ± 1,873"),
        (12.34, 0.456, "12.34 ± 0.46"),
        (12.34, 9.96, "12.34 ± 10"),
        (1e-7, 1e-9, "1e-07 ± 1e-09"),
        (3.0, float("nan"), "3"),
    ],
)
def test_large_numbers_and_their_errors_are_written_out(value, error, text):
    # An error of 187 was shown as 1.9e+02.
    assert tables.cell(value, error) == text


def test_a_run_in_markdown_has_totals_with_standard_errors_and_all_parameters(run):
    totals, parameters = (table_of(part) for part in run.to_markdown().split("\n\n"))
    assert totals[0] == ["total", "mean", "standard error", "least", "greatest"]
    cells = {row[0]: row[1:] for row in totals[2:]}
    last = run.gain[:, -1]
    error = last.std(ddof=1) / np.sqrt(REPLICATES)
    numbers = (last.mean(), error, last.min(), last.max())
    assert cells["gain over the baseline"] == [tables.cell(float(number)) for number in numbers]
    assert float(cells["share of episodes on the baseline"][0]) == pytest.approx(
        run.baseline_episodes.mean() / EPISODES, rel=1e-3
    )
    cost = np.mean([trace_mean(run, row) for row in range(REPLICATES)])
    limit = next(name for name in cells if name.startswith("cost of an episode (limit 0.6"))
    assert float(cells[limit][0]) == pytest.approx(cost, rel=1e-3)
    facts = {row[0]: row[1] for row in parameters[2:]}
    assert facts.keys() >= {*run.parameters, "guarantee", "versions", "baseline_value"}
    assert facts["seed"] == "4"
    assert facts["replicates"] == "0 to 2"


def trace_mean(run, row):
    """The mean cost of all episodes of a replicate."""
    counts = np.diff(run.episodes, prepend=0)
    return (counts * run.deployed_cost[row, :, 0]).sum() / EPISODES


def test_a_single_replicate_has_no_standard_error():
    run = cases.run_of(PAIR, learners()["mix"], episodes=10)
    assert all(row[2] == "-" for row in table_of(run.to_markdown().split("\n\n")[0])[2:])


def test_the_table_of_a_comparison_has_gains_errors_and_shares(found):
    for row in found.table:
        run = found.runs[row["learner"]]
        regret = run.reward_regret[:, -1]
        assert row["regret_error"] == pytest.approx(regret.std(ddof=1) / np.sqrt(REPLICATES))
        assert row["baseline_share"] == run.baseline_episodes.sum() / (EPISODES * REPLICATES)
        assert row["gain"] == (None if run.gain is None else run.gain[:, -1].mean())
    rows = {row[0]: row for row in table_of(found.to_markdown())}
    header = rows["learner"]
    place = {name: header.index(name) for name in ("regret", "gain", "on the baseline")}
    assert " ± " in rows["mix"][place["regret"]]
    assert " ± " in rows["mix"][place["gain"]]
    assert rows["priced, with a comma"][place["gain"]] == "-"
    assert rows["safe/baseline"][place["on the baseline"]] == "1"
    assert len({len(row) for row in rows.values()}) == 1


# Comparisons in files


def test_a_comparison_is_read_back_as_it_was(found, tmp_path):
    path = tmp_path / "all.npz"
    found.save(path)
    again = op.Comparison.load(path)
    assert list(again.runs) == list(found.runs)
    assert again.seconds == found.seconds
    assert again.to_markdown() == found.to_markdown()
    for name, run in found.runs.items():
        assert again.runs[name].same_as(run)
        assert again.runs[name].versions == run.versions
    # Each run can be taken out and run again, although the model is in the file once.
    with np.load(path) as stored:
        assert [name for name in stored if name.endswith("model_rewards")] == ["0/model_rewards"]
    again.runs["mix"].save(tmp_path / "mix.npz")
    assert op.reproduce(tmp_path / "mix.npz", progress=False).identical


FAULTS = {
    "another format": {"format": np.array("optpess.Run/2")},
    "no JSON": {"facts": np.array("{")},
    "too many names": {"facts": np.array(json.dumps({"learners": list("abcd"), "seconds": [1] * 4}))},
    "too few seconds": {"facts": np.array(json.dumps({"learners": list("abc"), "seconds": [1]}))},
    "a curve of another length": {"1/reward_regret": np.zeros((3, 2))},
    "an unknown array": {"1/curve": np.zeros(3)},
    "an array without a number": {"reward_regret": np.zeros(3)},
    "an odd number": {"-1/reward_regret": np.zeros(3)},
    "floats for counts": {"0/repairs": np.zeros(3)},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_no_comparison_is_refused(found, tmp_path, fault):
    path = tmp_path / "all.npz"
    found.save(path)
    with np.load(path) as sound:
        arrays = dict(sound) | FAULTS[fault]
    np.savez(path, **arrays)
    with pytest.raises(op.InvalidInputError, match=r"all\.npz"):
        op.Comparison.load(path)
