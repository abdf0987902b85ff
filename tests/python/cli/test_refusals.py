"""Every mistake ends with the right exit code and one line, and leaves nothing behind."""

import pytest

from cli.harness import call, contents
from cli.mistakes import MISTAKES, PAGE, page


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.typed)
def test_a_mistake_has_its_exit_code_one_line_and_leaves_nothing(mistake, folder):
    before = contents(folder)
    answer = call(*mistake.arguments)
    assert (answer.code, answer.out) == (mistake.code, "")
    assert len(answer.lines) == 1
    assert answer.err.startswith("optpess: ")
    assert contents(folder) == before


def test_the_page_of_refusals_is_what_happens(folder):
    """``python tests/python/cli/mistakes.py`` writes the page."""
    assert PAGE.read_text(encoding="utf-8") == page([call(*each.arguments) for each in MISTAKES])


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_traceback_is_shown_on_request(place):
    arguments = ["solve", "ring", "--cost-limit", "-1"]
    answer = call(*(["--debug", *arguments] if place == "before" else [*arguments, "--debug"]))
    assert answer.code == 3
    assert answer.lines[0].startswith("Traceback")
    assert answer.lines[-1].startswith("optpess.InfeasibleError: no policy meets the limit -1")


def test_an_error_nobody_thought_of_asks_to_be_reported(monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError("a line\nand another")

    monkeypatch.setattr("optpess.plan.solve.solve", fails)
    answer = call("solve", "ring")
    assert answer.code == 1
    assert answer.err == (
        "optpess: unexpected ZeroDivisionError: a line and another; please report it with what --debug "
        "shows\n"
    )


def test_too_little_memory_is_a_failure(monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr("optpess.plan.solve.solve", fails)
    answer = call("solve", "ring")
    assert (answer.code, answer.err) == (1, "optpess: there is not enough memory\n")


def test_a_file_name_with_control_characters_stays_on_one_line():
    answer = call("solve", "new\nline\x1b[31m.npz")
    assert answer.code == 2
    assert len(answer.lines) == 1
    assert "\x1b" not in answer.err


LONG = "a" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", LONG),
        ("solve", f"{LONG}.npz"),
        ("certify", f"{LONG}.npy", "learner.npz"),
        ("report", f"{LONG}.npz"),
        ("sweep", f"{LONG}.toml"),
        ("simulate", "ring", "--episodes", "9", "--baseline", f"{LONG}.npy"),
        ("simulate", "ring", "--episodes", "9", "--output", f"{LONG}.npz"),
        ("report", "run.npz", "--output", f"{LONG}.html"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_name_that_is_too_long_for_a_file_is_bad_input(arguments, folder, monkeypatch):
    def never(*_, **__):
        raise AssertionError("it ran")

    monkeypatch.setattr("optpess.run.simulate.simulate", never)
    before = contents(folder)
    answer = call(*arguments)
    assert (answer.code, answer.out, len(answer.lines)) == (2, "", 1)
    assert "File name too long" in answer.err
    assert contents(folder) == before


def test_an_empty_name_of_a_model_is_an_unknown_name():
    answer = call("solve", "")
    assert answer.code == 2
    assert answer.err.startswith(
        "optpess: there is no such file, and the model is ''; allowed are 'pair'"
    )


def test_an_output_that_cannot_be_written_is_refused_before_the_run(folder, monkeypatch):
    def never(*_, **__):
        raise AssertionError("it ran")

    monkeypatch.setattr("optpess.run.simulate.simulate", never)
    assert call("simulate", "ring", "--episodes", "9", "--output", "nowhere/new.npz").code == 2


def test_a_failed_write_leaves_the_old_file(folder, monkeypatch):
    before = contents(folder), (folder / "run.npz").read_bytes()

    def fails(file, **_):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("optpess.storage.np.savez", fails)
    answer = call("simulate", "ring", "--episodes", "9", "--output", "run.npz")
    assert answer.code == 1
    assert answer.err == "optpess: run.npz cannot be written: No space left on device\n"
    assert (contents(folder), (folder / "run.npz").read_bytes()) == before


def test_an_output_may_be_a_link_which_stays(folder):
    assert call("zoo", "pair", "--output", "link.npz").code == 0
    assert (folder / "link.npz").is_symlink()
    assert call("solve", "mine.npz", "--json").out == call("solve", "link.npz", "--json").out.replace(
        "link.npz", "mine.npz"
    )
