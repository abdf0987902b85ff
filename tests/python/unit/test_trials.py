"""The trials of a new user: their lines are counted as said, and mistakes are met with a sentence."""

import ast
import importlib.util
from pathlib import Path

import pytest

TRIALS = Path(__file__).parents[3] / "experiments" / "trials"


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"trial_{name}", TRIALS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_of_a_script_are_those_a_user_writes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        '"""Words.\n\nMore words."""\n\nimport os  # not counted\n\n\nclass Walk:\n    """Words."""\n\n'
        "    size = 3\n\n\n# a comment\ncall(\n    1,\n)\nassert call\nprint(\n    call\n)\nlast = 2\n"
    )
    lines = loaded("run").count_lines(script)
    assert (lines.own, lines.classes) == (4, 2)  # the call has three lines


def test_an_own_simulator_takes_at_most_eight_lines_beside_its_class():
    assert loaded("run").count_lines(TRIALS / "simulator.py").own <= 8


def test_every_trial_says_in_its_first_words_what_it_is():
    for number, name in enumerate(loaded("run").TRIALS, 1):
        words = ast.get_docstring(ast.parse((TRIALS / f"{name}.py").read_text()))
        assert words.startswith(f"Trial {number}: ")


def test_no_typical_mistake_ends_in_a_raw_error(tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    mistakes = loaded("mistakes")
    rows = [row for group in mistakes.MISTAKES.values() for row in group]
    assert len(rows) == 96
    assert [name for name, _, call in rows if mistakes.tried(call)[0] == "raw"] == []
