"""How the program ends: full disks, closed pipes and streams, signals, a terminal, missing libraries."""

import contextlib
import fcntl
import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import optpess as op
import pytest
from optpess import __main__
from optpess.cli import progress
from optpess.cli.main import optpess, run
from optpess.progress import ProgressBar, shown_by

from cli.harness import QUICK, call, contents

# Signals that the process of the tests may ignore end the program all the same. Given a terminal, it
# becomes the program that Ctrl-C is for.
LAUNCHER = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from optpess.__main__ import main
sys.exit(main())
"""
PROGRAM = [sys.executable, "-c", LAUNCHER]
LONGEST = 60  # seconds after which a test gives up
# A run that nobody waits for; it warns when it begins.
ENDLESS = ["simulate", "media", "--learner", "optpess-primaldual", "--episodes", "4e9"]
# A command of each kind that prints a result.
RESULTS = {
    "zoo": ["zoo"],
    "solve": ["solve", "ring"],
    "frontier": ["frontier", "ring"],
    "simulate": ["simulate", "ring", *QUICK],
    "compare": ["compare", "ring", "--learner", "optpess-mix", *QUICK],
    "forecast": ["forecast", "ring", "--learner", "optpess-lp", "--num-episodes", "1e6"],
    "certify": ["certify", "safe.npy", "learner.npz"],
    "sweep": ["sweep", "study.toml"],
    "report": ["report", "run.npz"],
}
needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")


def program(*arguments, **further):
    """The program in a process of its own."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*PROGRAM, *arguments], **streams | further, text=True)


def said_into(stream, *arguments):
    """The exit code and standard error of a command whose standard output is this stream."""
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    err.flush()
    return code, err.buffer.getvalue().decode()


def test_every_command_that_prints_is_tried():
    assert RESULTS.keys() == optpess.commands.keys()


@pytest.fixture
def printing(folder, monkeypatch):
    """Files for every command. Drawing the pictures of a report takes long and prints nothing."""
    monkeypatch.setattr("optpess.cli.commands.report.write_report", lambda *_, **__: None)


@needs_full_device
@pytest.mark.parametrize("name", RESULTS)
def test_a_full_disk_under_standard_output_is_a_failure(name, printing):
    with Path("/dev/full").open("w") as full:
        answer = said_into(full, *RESULTS[name])
    assert answer == (1, "optpess: the result cannot be printed: No space left on device\n")


@pytest.mark.parametrize("name", RESULTS)
def test_a_closed_pipe_ends_the_program_silently(name, printing):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        assert said_into(pipe, *RESULTS[name]) == (141, "")


@pytest.mark.parametrize("name", RESULTS)
def test_a_closed_standard_output_is_a_failure(name, printing):
    closed = (1, "optpess: the result cannot be printed: standard output is closed\n")
    assert said_into(None, *RESULTS[name]) == closed


@needs_full_device
@pytest.mark.parametrize("arguments", [["zoo"], ["--help"], ["zoo", "--json"]], ids=" ".join)
def test_a_process_on_a_full_disk_says_one_line(arguments):
    with Path("/dev/full").open("w") as full, program(*arguments, stdout=full) as process:
        _, said = process.communicate(timeout=LONGEST)
    assert process.returncode == 1
    assert len(said.splitlines()) == 1
    assert "No space left on device" in said


def test_a_process_whose_reader_has_gone_says_nothing():
    with program("zoo") as process:
        process.stdout.close()
        said = process.stderr.read()
        process.wait(LONGEST)
    assert (process.returncode, said) == (141, "")


def test_a_process_without_standard_streams_has_its_exit_code():
    closed = {"close_fds": False, "stdin": subprocess.DEVNULL}
    shell = subprocess.run(
        f"exec '{sys.executable}' -m optpess solve ring >&- 2>&-", shell=True, timeout=LONGEST, **closed
    )
    assert shell.returncode == 1


# Signals


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, 130, "optpess: interrupted\n"),
        (signal.SIGTERM, 143, "optpess: terminated\n"),
        (signal.SIGHUP, 129, "optpess: the terminal was closed\n"),
    ],
    ids=["Ctrl-C", "kill", "hang up"],
)
def test_a_signal_ends_a_run_with_its_code_and_leaves_nothing(number, code, line, tmp_path):
    with program(*ENDLESS, "--output", "run.npz", cwd=tmp_path) as process:
        assert "warning" in process.stderr.readline()  # it has begun
        process.send_signal(number)
        out, said = process.communicate(timeout=LONGEST)
    assert (process.returncode, out, said) == (code, "", line)
    assert contents(tmp_path) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_goes_on_from_its_checkpoint(number, code, tmp_path):
    episodes = 2_000_000
    some = ["simulate", "ring", "--stationary", "--episodes", str(episodes), "--quiet"]
    kept = [*some, "--checkpoint", "state.npz", "--output", "run.npz"]
    with program(*kept, cwd=tmp_path) as process:
        while not (tmp_path / "state.npz").exists():  # written before the first episode
            assert process.poll() is None
        process.send_signal(number)
        out, said = process.communicate(timeout=LONGEST)
    assert (process.returncode, out) == (code, "")
    assert said.endswith("; the same command goes on from state.npz\n")
    assert not (tmp_path / "run.npz").exists()
    with program(*kept, cwd=tmp_path) as process:
        _, said = process.communicate(timeout=LONGEST)
    assert (process.returncode, said) == (0, "")
    ring = op.zoo.problem("ring")
    known = {"shape": ring.model.shape, "initial": ring.model.initial, "baseline": ring.baseline}
    learner = op.OptPessMix(**known, knowledge=op.Knowledge(stationary=True))
    expected = op.simulate(ring.model, learner, episodes=episodes, seed=0, progress=False)
    assert op.load_run(tmp_path / "run.npz").same_as(expected)


def test_a_signal_ends_a_computation_that_does_not_look_for_signals():
    slow = """
import sys, time
from optpess.plan import frontier
def slow(*_, **__):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(1000)
frontier.frontier = slow
"""
    command = [sys.executable, "-c", slow + LAUNCHER, "frontier", "ring"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LONGEST)
    assert (process.returncode, said) == (130, "optpess: interrupted\n")


def test_a_signal_that_the_parent_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert call("solve", "ring").code == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    call("solve", "ring", "--cost-limit", "-1")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# Progress


def test_a_terminal_shows_a_bar_with_rate_and_time_left_and_ctrl_c_ends_it():
    terminal, side = os.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *ENDLESS],
        **dict.fromkeys(("stdin", "stdout", "stderr"), side),
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        start_new_session=True,
    )
    os.close(side)
    shown, asked = "", False
    while select.select([terminal], [], [], LONGEST)[0]:
        try:
            shown += os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # the program has ended
            break
        if not asked and "episodes/s" in shown and " left" in shown:
            os.write(terminal, b"\x03")
            asked = True
    os.close(terminal)
    assert process.wait(LONGEST) == 130
    assert "━" in shown
    assert "optpess: interrupted" in shown
    assert "\x1b[?25h" in shown.rpartition("episodes/s")[2]  # the cursor is back


def test_without_a_terminal_a_log_gets_a_line_a_minute(capsys):
    now = [0.0]
    with shown_by(progress.display):
        bar = ProgressBar(1000, label="1 of 2: ours", clock=lambda: now[0])
        for second in range(190):
            now[0] = float(second)
            bar(second)
        bar.close()
    assert capsys.readouterr().err.splitlines() == [
        "optpess: 1 of 2: ours: 60 of 1,000 episodes, 6.0%, 1 episodes/s, 15 min 40 s left",
        "optpess: 1 of 2: ours: 120 of 1,000 episodes, 12.0%, 1 episodes/s, 14 min 40 s left",
        "optpess: 1 of 2: ours: 180 of 1,000 episodes, 18.0%, 1 episodes/s, 13 min 40 s left",
    ]


@pytest.mark.parametrize(
    ("kind", "shown"), [("xterm", progress.RichDisplay), ("dumb", progress.LogDisplay)]
)
def test_a_terminal_that_cannot_go_back_in_a_line_is_a_log(kind, shown, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", kind)
    assert isinstance(progress.display(), shown)


def test_a_closed_standard_error_is_no_reason_to_stop(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    shown = progress.display()
    assert isinstance(shown, progress.LogDisplay)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(["solve", "ring", "--json"]) == 0
        assert run(["solve", "missing.npz"]) == 2
    assert json.loads(out.getvalue())["engine"] == "parametric"


# What is installed


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_a_library_one_line_names_the_command_that_installs_it(missing, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    assert __main__.main() == 1
    said = f"optpess: the command line needs {missing}: pip install 'optpess[cli]'\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(
    "arguments",
    [["report", "run.npz"], [*RESULTS["simulate"], "--report", "new.html"]],
    ids=lambda each: each[0],
)
def test_without_matplotlib_a_report_is_refused_before_anything_runs(arguments, folder, monkeypatch):
    def never(*_, **__):
        raise AssertionError("it ran")

    monkeypatch.setattr("optpess.run.simulate.simulate", never)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    before = contents(folder)
    answer = call(*arguments)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("optpess: a report needs matplotlib: pip install ")
    assert len(answer.lines) == 1
    assert contents(folder) == before


def test_help_and_version_load_no_library_of_another_extra():
    script = """
import sys
from optpess.cli.main import run
assert run(["--version"]) == run(["simulate", "--help"]) == 0
print(sorted({"matplotlib", "pandas", "gymnasium", "rich.progress"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LONGEST
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("optpess si", ["simulate"]),
        ("optpess solve m", ["media"]),
        ("optpess forecast --learner so", ["sops"]),
    ],
)
def test_a_shell_completes_commands_and_names(words, found, monkeypatch, capsys):
    given = {
        "_OPTPESS_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="0"):
        run([])
    assert capsys.readouterr().out.split() == [f"plain,{name}" for name in found]


def test_the_module_is_a_program():
    command = [sys.executable, "-m", "optpess", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("optpess ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_study_with_its_workers_and_keeps_what_was_finished(number, code, tmp_path):
    # Workers that got the signal too wrote tracebacks; the others went on to the end of their runs.
    text = 'episodes = 100\nproblems = ["ring"]\n[learners.always-baseline]\n[learners.endless]\n'
    text += 'learner = "optpess-mix"\n'
    (tmp_path / "study.toml").write_text(text.replace("100", "4_000_000_000"))
    running = program("sweep", "study.toml", cwd=tmp_path, start_new_session=True)
    log = tmp_path / "study" / "log.jsonl"
    while not log.exists():
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, number)
    out, err = running.communicate(timeout=LONGEST)
    assert (running.returncode, out) == (code, "")
    assert err.count("\n") == 1
    assert err.endswith("what was finished is in study, and the same command goes on\n")
    for path in (tmp_path / "study" / "locks").iterdir():
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # no worker is left that holds it
