"""Progress of long calls: where it is shown, what it says, and that no display can end a run."""

import functools
import io
import re
import sys
import types

import numpy as np
import optpess as op
import pytest
from optpess import progress
from optpess.progress import ProgressBar

PAIR = op.zoo.problem("pair")


class Terminal(io.StringIO):
    """A terminal that keeps what is written; ``broken`` is raised by the next writes."""

    broken = None

    def isatty(self):
        return True

    def write(self, text):
        if self.broken is not None:
            raise self.broken
        return super().write(text)

    @property
    def lines(self):
        """What was on the line, one after the other."""
        return [line for line in self.getvalue().split("\r") if line.strip()]


class Clock:
    """Seconds that pass only when a test says so, or a fixed number at each look."""

    def __init__(self, step=0.0):
        self.now, self.step = 100.0, step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def clock():
    return Clock()


def put_stderr(monkeypatch, stream):
    """Replaces sys.stderr for the bar alone: pytest puts its own there when a test starts."""
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=stream, modules=sys.modules))


@pytest.fixture
def terminal(monkeypatch):
    made = Terminal()
    put_stderr(monkeypatch, made)
    monkeypatch.setenv("COLUMNS", "120")
    return made


@pytest.fixture
def no_terminal(monkeypatch):
    made = io.StringIO()
    put_stderr(monkeypatch, made)
    return made


class Notebook:
    """What IPython gives in a kernel: every display, and every update of one."""

    def __init__(self, monkeypatch, *, kernel=True, broken=None):
        self.shown, self.cells, self._broken = [], 0, broken
        shell = types.SimpleNamespace(kernel=object()) if kernel else types.SimpleNamespace()
        package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        package.get_ipython, package.display = lambda: shell, module
        module.display = self._display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", module)

    def _display(self, data, *, raw, display_id):
        assert raw
        assert display_id
        self.cells += 1
        self.update(data, raw=raw)
        return self

    def update(self, data, *, raw):
        if self._broken is not None:
            raise self._broken
        self.shown.append(data["text/plain"])


def test_a_short_call_shows_nothing(terminal, clock):
    bar = ProgressBar(100, clock=clock)
    clock.now += 1.9
    bar(50)
    bar.close()
    assert terminal.getvalue() == ""


def test_a_line_says_how_much_is_done_how_fast_and_what_is_left(terminal, clock):
    bar = ProgressBar(1000, "steps", "first of all", clock=clock)
    clock.now += 4.0
    bar(250)
    filled = "#####".ljust(20)
    assert terminal.lines == [f"first of all  [{filled}]  25.0%  12 s left  62 steps/s"]


def test_nothing_done_yet_gives_no_time_that_is_left(terminal, clock):
    bar = ProgressBar(1000, clock=clock)
    clock.now += 4.0
    bar(0)
    assert terminal.lines[-1].rstrip().endswith("0.0%  0 episodes/s")


def test_the_line_is_not_written_more_often_than_it_can_be_read(terminal, clock):
    bar = ProgressBar(1000, clock=clock)
    for done in range(1000):  # ten seconds
        clock.now += 0.01
        bar(done)
    assert 35 <= len(terminal.lines) <= 41


def test_a_shorter_text_covers_a_longer_one_and_the_end_clears_it(terminal, clock):
    bar = ProgressBar(10**6, clock=clock)
    clock.now += 3.0
    bar(1)
    clock.now += 3.0
    bar(10**6)
    before, after = terminal.lines
    assert len(after) == len(before)
    bar.close()
    assert terminal.getvalue().endswith("\r" + " " * len(before) + "\r")


def test_a_narrow_terminal_gets_a_part_of_the_text_on_one_line(terminal, clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    bar = ProgressBar(10, label="a name that is longer than the terminal is wide", clock=clock)
    clock.now += 3.0
    bar(5)
    assert [len(line) for line in terminal.lines] == [39]


def test_parts_of_a_call_have_their_own_label_total_and_rate(terminal, clock):
    bar = ProgressBar(clock=clock)
    bar.begin(100, "1 of 2: ours")
    clock.now += 10.0
    bar(100)
    bar.begin(1000, "2 of 2: theirs")
    clock.now += 1.0  # the call as a whole has taken long
    bar(100)
    assert terminal.lines[0].startswith("1 of 2: ours  [####################] 100.0%")
    assert re.match(r"2 of 2: theirs  \[##\s+\]  10.0%  9 s left  100 episodes/s", terminal.lines[1])


# Where it is shown


def test_a_file_or_a_pipe_gets_nothing(no_terminal, clock):
    bar = ProgressBar(10, clock=clock)
    clock.now += 9.0
    bar(5)
    bar.close()
    assert no_terminal.getvalue() == ""


def test_a_notebook_has_one_display_that_is_updated(no_terminal, clock, monkeypatch):
    notebook = Notebook(monkeypatch)
    bar = ProgressBar(10, clock=clock)
    for done in (2, 5, 9):
        clock.now += 3.0
        bar(done)
    bar.close()
    assert [text[23:29].strip() for text in notebook.shown] == ["20.0%", "50.0%", "90.0%", ""]
    assert notebook.cells == 1
    assert no_terminal.getvalue() == ""


def test_a_short_call_leaves_no_display_in_a_notebook(no_terminal, clock, monkeypatch):
    notebook = Notebook(monkeypatch)
    bar = ProgressBar(10, clock=clock)
    bar(5)
    bar.close()
    assert notebook.cells == 0


def test_ipython_at_a_terminal_is_no_notebook(terminal, clock, monkeypatch):
    notebook = Notebook(monkeypatch, kernel=False)
    bar = ProgressBar(10, clock=clock)
    clock.now += 3.0
    bar(5)
    assert notebook.shown == []
    assert len(terminal.lines) == 1


def test_ipython_that_is_loaded_but_does_not_run_is_no_notebook(no_terminal, monkeypatch):
    Notebook(monkeypatch)
    sys.modules["IPython"].get_ipython = lambda: None
    assert progress._display() is None
    del sys.modules["IPython"].get_ipython  # half imported
    assert progress._display() is None


class Kept:
    """A display of a program of its own, which keeps the states."""

    silent_seconds, seconds_between = 60.0, 60.0

    def __init__(self):
        self.states, self.cleared = [], 0

    def show(self, state):
        self.states.append(state)

    def clear(self):
        self.cleared += 1


def test_a_program_chooses_its_display_and_how_often_it_is_shown(terminal, clock):
    kept = Kept()
    with progress.shown_by(lambda: kept):
        bar = ProgressBar(1000, label="ours", clock=clock)
        for done in range(0, 1000, 2):  # 250 seconds
            clock.now += 0.5
            bar(done)
        bar.close()
    assert [(state.done, state.label) for state in kept.states] == [
        (238, "ours"),
        (478, "ours"),
        (718, "ours"),
        (958, "ours"),
    ]
    assert kept.states[0].rate == pytest.approx(238 / 60)
    assert kept.states[0].seconds_left == pytest.approx(60 * 762 / 238)
    assert kept.cleared == 1
    assert terminal.getvalue() == ""


def test_the_display_of_a_program_holds_only_within_its_block(terminal, clock):
    with progress.shown_by(Kept):
        with progress.shown_by(lambda: None):
            assert progress._display() is None
        assert isinstance(progress._display(), Kept)
    assert isinstance(progress._display(), progress._TerminalDisplay)


# A display that fails


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("closed file")])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_terminal_that_has_gone_is_given_up(terminal, clock, error, at_once):
    bar = ProgressBar(10, clock=clock)
    clock.now += 3.0
    if not at_once:
        bar(1)
    terminal.broken = error
    clock.now += 3.0
    bar(5)
    terminal.broken = None
    before = terminal.getvalue()
    clock.now += 3.0
    bar(6)
    bar.close()
    assert terminal.getvalue() == before


def test_a_notebook_that_has_gone_is_given_up(no_terminal, clock, monkeypatch):
    notebook = Notebook(monkeypatch, broken=RuntimeError("no channel"))
    bar = ProgressBar(10, clock=clock)
    for done in (2, 5, 9):
        clock.now += 3.0
        bar(done)
    bar.close()
    assert notebook.cells == 1


def closed():
    made = Terminal()
    made.close()
    return made


@pytest.mark.parametrize("stream", [None, object(), closed()], ids=["none", "no stream", "closed"])
def test_a_program_without_a_console_shows_nothing(monkeypatch, clock, stream):
    put_stderr(monkeypatch, stream)
    bar = ProgressBar(10, clock=clock)
    clock.now += 3.0
    bar(5)
    bar.close()


# Runs


def learner(kind=op.OptPessMix):
    return kind(shape=PAIR.model.shape, initial=PAIR.model.initial, baseline=PAIR.baseline)


@pytest.fixture
def looked_at_often(monkeypatch):
    """Every run tells its bar of half of its episodes, three seconds after the last look."""
    made = functools.partial(ProgressBar, clock=Clock(step=3.0))
    monkeypatch.setattr("optpess.progress.ProgressBar", made)

    def simulate(*arguments, run=op._core.simulate_learner):
        *_, count, _trace, _audit, _keep, bar = arguments
        if bar is not None:
            bar(count * len(arguments[3]) // 2)
        return run(*arguments[:-1], None)  # a slow machine must not add a look

    monkeypatch.setattr("optpess._core.simulate_learner", simulate)


def test_a_run_shows_its_progress_and_clears_it(terminal, looked_at_often):
    op.simulate(PAIR.model, learner(), episodes=10, replicates=2)
    assert len(terminal.lines) == 1
    assert " 50.0% " in terminal.lines[0]
    assert terminal.getvalue().endswith("\r")


def test_a_run_without_progress_shows_none(terminal, looked_at_often):
    op.simulate(PAIR.model, learner(), episodes=10, progress=False)
    op.compare(PAIR.model, {"a": learner()}, episodes=10, progress=False)
    assert terminal.getvalue() == ""


def test_the_progress_of_a_comparison_says_which_learner_is_running(terminal, looked_at_often):
    op.compare(PAIR.model, {"ours": learner(), "theirs": learner()}, episodes=10)
    first, second = terminal.lines
    assert first.startswith("1 of 2: ours  [##########  ")
    assert second.startswith("2 of 2: theirs  [##########  ")
    assert terminal.getvalue().endswith("\r")


def test_a_comparison_in_a_notebook_has_one_display(no_terminal, looked_at_often, monkeypatch):
    notebook = Notebook(monkeypatch)
    op.compare(PAIR.model, {"ours": learner(), "theirs": learner()}, episodes=10)
    assert notebook.cells == 1
    assert [text[:14].strip() for text in notebook.shown] == ["1 of 2: ours", "2 of 2: theirs", ""]


def test_a_run_outlives_its_terminal(terminal, looked_at_often):
    calm = op.simulate(PAIR.model, learner(), episodes=10, progress=False)
    terminal.broken = OSError(5, "Input/output error")
    assert op.simulate(PAIR.model, learner(), episodes=10).same_as(calm)
    assert op.compare(PAIR.model, {"a": learner()}, episodes=10).runs["a"].same_as(calm)


def test_a_run_that_fails_clears_its_line(terminal, looked_at_often, monkeypatch):
    def fails(*arguments):
        arguments[-1](5)
        raise KeyboardInterrupt

    monkeypatch.setattr("optpess._core.simulate_learner", fails)
    with pytest.raises(KeyboardInterrupt):
        op.simulate(PAIR.model, learner(), episodes=10)
    assert len(terminal.lines) == 1
    assert terminal.getvalue().endswith("\r")


class Told:
    """A display that keeps every state and says when it was cleared."""

    silent_seconds = seconds_between = 0.0

    def __init__(self):
        self.states, self.cleared = [], 0

    def show(self, state):
        self.states.append(state)

    def clear(self):
        self.cleared += 1


def test_a_plan_says_which_sweep_it_is_at():
    told = Told()
    with progress.shown_by(lambda: told):
        bar = progress.SweepBar(10)
        for steps in (3, 9, 10, 25):
            bar(steps)
        bar.close()
    assert [(state.label, state.done) for state in told.states] == [
        ("planning, sweep 1", 3),
        ("planning, sweep 1", 9),
        ("planning, sweep 2", 0),
        ("planning, sweep 3", 5),
    ]
    assert all((state.total, state.unit) == (10, "steps") for state in told.states)
    assert told.cleared == 1


@pytest.mark.parametrize("constraints", [1, 2])
def test_long_plans_show_progress_and_clear_it(constraints):
    model = op.zoo.garnet(4000, 5, 40, successors=5, seed=1)
    costs = np.random.default_rng(0).random((constraints, 4000, 5))
    model = op.CMDP.stationary(
        model.transitions, model.stored_rewards(), costs, [16.0] * constraints, 0, horizon=40
    )
    told = Told()
    with progress.shown_by(lambda: told):
        op.solve(model, threads=1)
    assert {state.label.split(",")[0] for state in told.states} == {"planning"}
    assert told.cleared >= 1
    told = Told()
    with progress.shown_by(lambda: told):
        op.frontier(op.zoo.garnet(4000, 5, 40, successors=5, seed=1), tolerance=0.01)
    assert told.states
    assert told.cleared == 1


def test_short_plans_show_nothing():
    told = Told()
    with progress.shown_by(lambda: told):
        op.solve(op.zoo.ring())
        op.solve(op.zoo.inventory_stock_out())
    assert not told.states
