"""A study can be stopped, resumed, extended and shared, and every cell is there once."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import optpess as op
import pytest
from optpess.study.folder import StudyFolder
from optpess.study.worker import execute

PAIR = op.zoo.problem("pair")


def mix(problem, delta):
    return op.OptPessMix(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=problem.baseline,
        failure_probability=delta,
    )


def safe(problem):
    return op.AlwaysBaseline(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=problem.baseline,
        num_episodes=5000,
    )


def study(**changes):
    healthy = {
        "problems": {"pair": PAIR, "ring": op.zoo.problem("ring")},
        "learners": {"mix": mix, "safe": safe},
        "parameters": {"delta": [0.01, 0.1]},
        "replicates": 2,
        "episodes": 200,
        "seed": 7,
    }
    return op.Study(**healthy | changes)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def swept(folder, pool, **changes):
    return op.sweep(study(**changes), folder, executor=pool, progress=False)


def test_a_study_gives_what_simulate_gives(tmp_path, pool):
    found = swept(tmp_path, pool)
    assert repr(found) == "StudyResult(2 problems, 12 of 12 cells, 12 executed, 0 failed)"
    assert list(found.comparisons["pair"].runs) == ["mix (delta=0.01)", "mix (delta=0.1)", "safe"]
    run = op.simulate(
        PAIR.model, mix(PAIR, 0.1), episodes=200, replicates=2, seed=7, threads=1, progress=False
    )
    assert found.comparisons["pair"].runs["mix (delta=0.1)"].same_as(run)
    assert [row["problem"] for row in found.table] == ["pair"] * 3 + ["ring"] * 3
    assert all(row["microseconds"] > 0 for row in found.table)


def test_the_same_problem_under_two_names_is_executed_once_and_shown_twice(tmp_path, pool):
    found = swept(tmp_path, pool, problems={"pair": PAIR, "twin": PAIR})
    assert (found.executed, found.num_cells, found.missing) == (6, 6, ())
    assert list(found.comparisons) == ["pair", "twin"]


def test_what_is_there_is_not_executed_again(tmp_path, pool):
    first = swept(tmp_path, pool)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    again = swept(tmp_path, pool)
    assert again.executed == first.executed == 12
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert list((tmp_path / "locks").iterdir()) == [tmp_path / "locks" / "manifest.lock"]


def test_a_study_can_be_extended(tmp_path, pool):
    swept(tmp_path, pool, problems={"pair": PAIR}, replicates=1)
    more = swept(tmp_path, pool, parameters={"delta": [0.5]}, replicates=3, problems={"pair": PAIR})
    # 3 cells, then 2 configurations x 3 replicates of which one was there.
    assert more.executed == 3 + 5
    assert list(more.comparisons["pair"].runs) == [
        "mix (delta=0.01)",
        "mix (delta=0.1)",
        "safe",
        "mix (delta=0.5)",
    ]
    # The first study's deltas have one of the three replicates that the folder now has.
    assert len(more.missing) == 4
    assert "pair, mix (delta=0.01), replicate 1" in more.missing
    assert op.load_study(tmp_path).missing == more.missing


def test_folders_are_merged_by_copying_their_cells(tmp_path, pool):
    first, second = tmp_path / "first", tmp_path / "second"
    swept(first, pool, problems={"pair": PAIR})
    swept(second, pool, problems={"ring": op.zoo.problem("ring")})
    for path in (second / "cells").iterdir():
        (first / "cells" / path.name).write_bytes(path.read_bytes())
    merged = swept(first, pool)
    assert (merged.executed, merged.missing) == (6, ())


class Dies(Executor):
    """Runs so many cells, then is interrupted."""

    def __init__(self, cells):
        self.left = cells

    def submit(self, function, *arguments):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_a_study_that_is_stopped_goes_on_where_it_was(tmp_path, pool):
    with pytest.raises(KeyboardInterrupt):
        op.sweep(study(), tmp_path, executor=Dies(5), progress=False)
    assert len(list((tmp_path / "cells").iterdir())) == 5
    assert len(op.load_study(tmp_path).missing) == 7
    assert swept(tmp_path, pool).executed == 12


def test_a_cell_that_fails_is_tried_again_and_listed(tmp_path, pool, monkeypatch):
    calls = []

    def fails(model, *rest, **more):
        calls.append(model.shape)
        if model.shape == PAIR.model.shape and len(calls) < 99:
            raise RuntimeError("the disk is full")
        return simulate_as(model, *rest, **more)

    simulate_as = sys.modules["optpess.study.worker"].simulate_as
    monkeypatch.setattr("optpess.study.worker.simulate_as", fails)
    found = op.sweep(study(), tmp_path, executor=pool, retries=2, progress=False)
    assert len(found.failures) == 6
    assert found.failures["pair, safe, replicate 1"] == "RuntimeError: the disk is full"
    assert calls.count(PAIR.model.shape) == 18
    assert "## Failed" in found.to_markdown()
    monkeypatch.undo()
    assert swept(tmp_path, pool).failures == {}


def test_a_cell_that_another_process_works_on_is_left_to_it(tmp_path, pool):
    study_of_one = {
        "problems": {"pair": PAIR},
        "learners": {"safe": safe},
        "parameters": {},
        "replicates": 1,
    }
    folder = StudyFolder(tmp_path)
    (cell,) = folder.add(study(**study_of_one))
    with folder.claimed(cell) as ours:
        assert ours
        assert execute(cell).state == "elsewhere"
    assert execute(cell).state == "executed"
    assert execute(cell).state == "done"


SCRIPT = """
import sys
import optpess as op
from test_sweep import study

if __name__ == "__main__":
    print(op.sweep(study(replicates=6, episodes=3000), sys.argv[1], progress=False).executed)
"""


def environment():
    """The variables of a process that can import this file."""
    here = Path(__file__).parent
    path = os.pathsep.join((str(here), str(here.parent), os.environ.get("PYTHONPATH", "")))
    return os.environ | {"PYTHONPATH": path}


def started(tmp_path, folder):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_two_processes_share_a_folder_and_a_third_survives_their_death(tmp_path, pool):
    folder = tmp_path / "study"
    first, second = started(tmp_path, folder), started(tmp_path, folder)
    while not any((folder / "cells").glob("*.npz")):
        assert first.poll() is None or second.poll() is None
        time.sleep(0.02)
    for process in (first, second):
        os.killpg(process.pid, signal.SIGKILL)  # with their workers
        process.communicate()
    begun = op.load_study(folder)
    assert begun.comparisons
    third = started(tmp_path, folder)
    said, _ = third.communicate(timeout=120)
    found = op.load_study(folder)
    assert (found.missing, third.returncode) == ((), 0)
    # At most the cells that four workers had begun are executed twice.
    assert int(said) == found.executed <= 36 + 4
    with ThreadPoolExecutor(2) as alone:
        other = op.sweep(
            study(replicates=6, episodes=3000), tmp_path / "alone", executor=alone, progress=False
        )
    for name, comparison in other.comparisons.items():
        for label, run in comparison.runs.items():
            assert found.comparisons[name].runs[label].same_as(run)


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "study")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert (
        done.stderr.rstrip().splitlines()[-1].startswith("optpess.OptPessError: a worker process ended")
    )


MISTAKES = {
    "problems": ({"problems": {}}, "problems is empty"),
    "problem": ({"problems": {"pair": 3}}, "problems['pair'] is 3"),
    "learner": ({"learners": {"mix": safe(PAIR)}}, "it must be a function that makes a learner"),
    "makes": ({"learners": {"mix": lambda _: 3}, "parameters": {}}, "it must be of type Learner"),
    "parameter": ({"parameters": {"delta": 0.1}}, "parameters['delta'] is 0.1"),
    "value": ({"parameters": {"delta": [np.zeros(2)]}}, "parameters['delta'][0]"),
    "unused": ({"parameters": {"delta": [0.1], "gamma": [1]}}, "'gamma'] is taken by none"),
    "replicates": ({"replicates": 0}, "replicates is 0"),
    "episodes": ({"episodes": 5001}, "5000 of its 5000 episodes left"),
    "names": ({"problems": {3: PAIR}}, "a name in problems is 3"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_study_is_named(case):
    changes, piece = MISTAKES[case]
    with pytest.raises(op.InvalidInputError) as caught:
        study(**changes)
    assert piece in str(caught.value)


def test_other_mistakes_are_named(tmp_path, pool):
    with pytest.raises(op.InvalidInputError, match="executor is 3"):
        op.sweep(study(), tmp_path, executor=3)
    with pytest.raises(op.InvalidInputError, match="holds no study"):
        op.load_study(tmp_path / "nowhere")
    swept(tmp_path, pool, problems={"pair": PAIR})
    with pytest.raises(op.InvalidInputError, match=r"seed is 8, and the study in .* has 7"):
        swept(tmp_path, pool, seed=8)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(format="optpess.Study/9"),
        lambda found: found.pop("seed"),
        lambda found: found["configurations"][0].update(identity="../../etc/passwd"),
        lambda found: found.update(configurations=3),
    ],
)
def test_a_manifest_of_somebody_else_is_refused(tmp_path, pool, change):
    swept(tmp_path, pool, problems={"pair": PAIR})
    content = json.loads((tmp_path / "manifest.json").read_text())
    change(content)
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(op.InvalidInputError, match="is not a manifest"):
        op.load_study(tmp_path)


def test_curves_of_all_runs_are_one_table(tmp_path, pool):
    found = swept(tmp_path / "study", pool)
    found.to_csv(tmp_path / "curves.csv")
    lines = (tmp_path / "curves.csv").read_text().splitlines()
    assert lines[0].startswith("problem,learner,replicate,episodes")
    assert len(lines) == 1 + sum(
        run.reward_regret.size for each in found.comparisons.values() for run in each.runs.values()
    )


def test_no_process_is_left_behind(tmp_path):
    op.sweep(study(replicates=1), tmp_path, progress=False)
    assert multiprocessing.active_children() == []


class LosesWorkers(Executor):
    """Runs tasks at once; the workers of some are lost, with an exception of the pool's own."""

    def __init__(self, lost):
        self.lost = lost

    def submit(self, function, cell):
        future = Future()
        if cell.replicate in self.lost:
            future.set_exception(RuntimeError("KilledWorker"))
        else:
            future.set_result(function(cell))
        return future


def test_a_cell_whose_worker_is_lost_is_listed_and_the_others_go_on(tmp_path):
    alone = {"problems": {"pair": PAIR}, "learners": {"safe": safe}, "parameters": {}, "replicates": 3}
    found = op.sweep(study(**alone), tmp_path, executor=LosesWorkers({1}), progress=False)
    assert found.failures == {"pair, safe, replicate 1": "RuntimeError: KilledWorker"}
    assert found.executed == 2
    found = op.sweep(study(**alone), tmp_path, executor=LosesWorkers(()), progress=False)
    assert (found.failures, found.missing) == ({}, ())


PARENT = """
import sys
import optpess as op

def mix(problem):
    return op.OptPessMix(shape=problem.model.shape, initial=problem.model.initial,
                         baseline=problem.baseline)

if __name__ == "__main__":
    study = op.Study({"pair": op.zoo.problem("pair")}, {"mix": mix}, replicates=2, episodes=2**31)
    op.sweep(study, sys.argv[1], progress=False)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_whatever_ended_it(tmp_path, number):
    script, folder = tmp_path / "parent.py", tmp_path / "study"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, str(script), str(folder)]) as parent:
        while not (folder / "log.jsonl").exists():
            assert parent.poll() is None
            time.sleep(0.05)
        lines = (folder / "log.jsonl").read_text().splitlines()
        workers = {json.loads(line)["process"] for line in lines}
        parent.send_signal(number)
    deadline = time.monotonic() + 10
    while alive := [each for each in workers if Path(f"/proc/{each}/exe").exists()]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)


def test_a_comparison_in_a_pool_that_is_stopped_carries_what_was_done(monkeypatch):
    def looked_at(_, done):
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("optpess.progress.ProgressBar.__call__", looked_at)
    learners = {"first": safe(op.zoo.problem("pair")), "second": safe(op.zoo.problem("pair"))}
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt) as caught:
        op.compare(PAIR.model, learners, replicates=2, episodes=200, executor=pool)
    whole = op.simulate(PAIR.model, learners["first"], replicates=2, episodes=200, progress=False)
    assert caught.value.comparison.runs["first"].same_as(whole)
    done = list(caught.value.comparison.runs)
    assert done in (["first"], ["first", "second"])  # the last task may have ended meanwhile
    assert len(caught.value.runs) == (1 if done == ["first"] else 0)
