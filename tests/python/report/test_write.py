"""How a report is written: all of it or nothing, and errors that name the argument."""

import subprocess
import sys

import optpess as op
import pytest
from optpess.report import page, words

from . import records


def test_the_path_is_returned(tmp_path):
    pytest.importorskip("matplotlib")
    assert op.write_report(str(tmp_path / "report.html"), records.run()) == tmp_path / "report.html"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, "run"), "path is 5, of type int"),
        (("report.html",), "records is empty; give at least one Run"),
        (("report.html", "run.npz"), r"records\[0\] is 'run.npz', of type str.*op.load_run"),
        (
            ("report.html", "run", None),
            r"records\[1\] is None.*must be a Run, a Comparison or a Rollout",
        ),
        (("report.html", op.Comparison({}, {})), r"records\[0\] is a Comparison without runs"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, monkeypatch, arguments, message):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    given = [records.run() if each == "run" else each for each in arguments]
    with pytest.raises(op.InvalidInputError, match=message):
        op.write_report(*given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("title", "message"), [(3, "title is 3"), ("  ", "title is empty")])
def test_a_wrong_title_is_refused(tmp_path, title, message):
    with pytest.raises(op.InvalidInputError, match=message):
        op.write_report(tmp_path / "report.html", records.run(), title=title)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        op.write_report(tmp_path / "missing" / "report.html", records.run())


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    file = tmp_path / "report.html"
    file.write_text("the old page")

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page, "html_table", fails)
    with pytest.raises(OSError, match="No space left"):
        op.write_report(file, records.run())
    monkeypatch.undo()
    monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(OSError, match="No space left"):
        op.write_report(file, records.run())
    assert file.read_text() == "the old page"
    assert list(tmp_path.iterdir()) == [file]


def test_without_matplotlib_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"write_report needs matplotlib.*\.\[plot\]"):
        op.write_report(tmp_path / "report.html", records.run())
    assert list(tmp_path.iterdir()) == []


def test_importing_the_package_imports_neither_pages_nor_pictures():
    code = "import sys, optpess; print(*[m for m in sys.modules if 'plot' in m or 'report' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["optpess.report", "optpess.report.write"]


# Words


def test_names_are_joined_as_in_a_sentence():
    assert words.joined(["a"]) == "a"
    assert words.joined(["a", "b", "c"]) == "a, b and c"
