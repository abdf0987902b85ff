"""Simulations that are stopped and go on from a checkpoint, and what their exceptions carry."""

import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import optpess as op
import pytest
from optpess.run import simulation_checkpoint

PAIR = op.zoo.problem("pair")
MODEL = PAIR.model


def primal_dual(num_episodes=400, **given):
    return op.OptPessPrimalDual(
        shape=MODEL.shape,
        initial=MODEL.initial,
        num_episodes=num_episodes,
        margin=op.SafetyMargin(0.6, 0.135),
        confidence=op.Scaled(0.01),
        **given,
    )


def mix(seed=0):
    return op.OptPessMix(shape=MODEL.shape, initial=MODEL.initial, baseline=PAIR.baseline, seed=seed)


class StopError(Exception):
    """Stops a simulation from within its progress."""


@pytest.fixture
def stops(monkeypatch):
    """A simulation that is stopped when it is looked at for the first time."""

    def raises(*_):
        raise StopError

    monkeypatch.setattr("optpess.progress.ProgressBar.__call__", raises)


def stopped(path, learner, episodes, **given):
    """A simulation that is stopped within; the exception."""
    with pytest.raises(StopError) as caught:
        op.simulate(MODEL, learner, episodes=episodes, seed=3, checkpoint=path, **given)
    return caught.value


LONG = 40_000_000  # far more than are played between two looks


def test_a_stopped_simulation_carries_what_it_recorded(tmp_path, stops):
    error = stopped(tmp_path / "checkpoint", primal_dual(LONG), None, replicates=2, threads=2)
    (note,) = error.__notes__
    assert "attribute 'runs'" in note
    assert {number for run in error.runs for number in run.replicates.tolist()} <= {0, 1}
    for run in error.runs:
        played = int(run.episodes[-1])
        assert 0 < played < LONG
        shorter = op.simulate(
            MODEL, primal_dual(LONG), replicates=run.replicates, seed=3, episodes=played, progress=False
        )
        assert run.same_as(shorter)
        assert run.learners[0].episodes_observed == played


def test_a_stopped_comparison_has_the_learners_that_were_done(monkeypatch):
    def looked_at(_, done):
        if done > 100:
            raise StopError

    monkeypatch.setattr("optpess.progress.ProgressBar.__call__", looked_at)
    learners = {"short": primal_dual(100), "long": primal_dual(LONG), "never": primal_dual(100)}
    with pytest.raises(StopError) as caught:
        op.compare(MODEL, learners, seed=3)
    alone = op.simulate(MODEL, primal_dual(100), seed=3, progress=False)
    assert list(caught.value.comparison.runs) == ["short"]
    assert caught.value.comparison.runs["short"].same_as(alone)
    assert [len(run.replicates) for run in caught.value.runs] == [1]


def test_a_simulation_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    """The states in the file are used, not played again."""
    path = tmp_path / "checkpoint.npz"
    given = {"replicates": [4, 1], "seed": 3, "episodes": 300, "progress": False}
    whole = op.simulate(MODEL, mix(), **given)
    assert op.simulate(MODEL, mix(), **given, checkpoint=path).same_as(whole)
    played = []

    def run(*arguments, run=op._core.simulate_learner, **kept):
        played.extend(state[0] for state in kept["states"])
        return run(*arguments, **kept)

    monkeypatch.setattr("optpess._core.simulate_learner", run)
    again = op.simulate(MODEL, mix(), **given, checkpoint=path)
    assert played == [300, 300]
    assert again.same_as(whole)
    assert [learner.episodes_observed for learner in again.learners] == [300, 300]


@pytest.mark.parametrize("kept", [{"trace": True}, {"audit": True}, {"learners": False}])
def test_a_simulation_that_ended_has_everything_in_its_checkpoint(tmp_path, kept):
    path = tmp_path / "checkpoint"
    given = {"replicates": 2, "episodes": 200, "progress": False}
    first = op.simulate(MODEL, mix(), **given, **kept, checkpoint=path)
    again = op.simulate(MODEL, mix(), **given, **kept, checkpoint=path)
    assert again.same_as(first)
    assert (again.traces is None) == ("trace" not in kept)
    for ours, theirs in zip(again.traces or (), first.traces or (), strict=True):
        np.testing.assert_array_equal(ours.rewards, theirs.rewards)


def test_the_checkpoint_before_is_kept(tmp_path):
    path = tmp_path / "checkpoint"
    op.simulate(MODEL, mix(), episodes=50, progress=False, checkpoint=path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["checkpoint", "checkpoint.previous"]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(op.CheckpointError, match=r"cannot be read: .*; the checkpoint before it is "):
        op.simulate(MODEL, mix(), episodes=50, progress=False, checkpoint=path)
    (tmp_path / "checkpoint.previous").replace(path)
    op.simulate(MODEL, mix(), episodes=50, progress=False, checkpoint=path)


OTHERS = {
    "seed": ({"seed": 1}, {}, "seed is 0 there and 1 here"),
    "replicates": ({"replicates": 3}, {}, r"replicates is \[0, 1\] there and \[0, 1, 2\] here"),
    "episodes": ({"episodes": 51}, {}, "episodes is 50 there and 51 here"),
    "trace": ({"trace": True}, {}, "trace is False there and True here"),
    "audit": ({"audit": True}, {}, "audit is False there and True here"),
    "learners": ({"learners": False}, {}, "learners is True there and False here"),
    "argument": ({}, {"seed": 8}, "the learner's seed is 0 there and 8 here"),
}


@pytest.mark.parametrize(("call", "made", "message"), OTHERS.values(), ids=OTHERS)
def test_other_arguments_are_named(tmp_path, call, made, message):
    given = {"replicates": 2, "episodes": 50, "progress": False, "checkpoint": tmp_path / "file"}
    op.simulate(MODEL, mix(), **given)
    with pytest.raises(op.CheckpointError, match=message):
        op.simulate(MODEL, mix(**made), **(given | call))


def test_another_model_class_or_version_is_named(tmp_path, monkeypatch):
    given = {"episodes": 50, "progress": False, "checkpoint": tmp_path / "file"}
    op.simulate(MODEL, mix(), **given)
    other = op.CMDP(
        MODEL.transitions, MODEL.rewards * 0.5, MODEL.costs, MODEL.cost_limits, MODEL.initial
    )
    with pytest.raises(op.CheckpointError, match="the hash of the model is '"):
        op.simulate(other, mix(), **given)
    with pytest.raises(op.CheckpointError, match="the class of the learner is 'OptPessMix' there"):
        op.simulate(MODEL, primal_dual(50), **given)
    older = {"optpess": "0.0.1"}
    monkeypatch.setattr("optpess.run.checkpoint.versions", lambda: older)
    with pytest.raises(op.CheckpointError, match=r"the version of optpess is '.*' there and '0.0.1'"):
        op.simulate(MODEL, mix(), **given)


def test_a_learner_that_has_seen_other_episodes_is_named(tmp_path):
    given = {"episodes": 50, "progress": False, "checkpoint": tmp_path / "file"}
    op.simulate(MODEL, mix(), **given)
    moved = op.simulate(MODEL, mix(), seed=7, episodes=10, progress=False).learners[0]
    with pytest.raises(op.CheckpointError, match="the hash of the learner is"):
        op.simulate(MODEL, moved, **given)


def test_every_flipped_byte_of_a_checkpoint_is_found_or_harmless(tmp_path):
    path = tmp_path / "file"
    given = {"episodes": 5, "progress": False, "learners": False}
    whole = op.simulate(MODEL, primal_dual(5), **given, checkpoint=path)
    good = path.read_bytes()
    random = np.random.default_rng(0)
    for place in random.choice(len(good), size=400, replace=False).tolist():
        damaged = bytearray(good)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            again = op.simulate(MODEL, primal_dual(5), **given, checkpoint=path)
        except op.CheckpointError:
            continue
        assert again.same_as(whole), place
    for length in range(0, len(good), 97):
        path.write_bytes(good[:length])
        with pytest.raises(op.CheckpointError, match="cannot be read"):
            op.simulate(MODEL, primal_dual(5), **given, checkpoint=path)


def test_states_that_are_not_of_this_run_are_refused(tmp_path):
    """A file whose checksum is right and whose states are not."""
    path = tmp_path / "file"
    given = {"episodes": 50, "progress": False, "checkpoint": path}
    op.simulate(MODEL, mix(), **given)
    request = simulation_checkpoint.Request.of(1, 0, 1)
    store = simulation_checkpoint.SimulationCheckpoint(
        path, MODEL, mix(), 50, request, keeps_learners=True
    )
    [(episodes, state)] = store.load()
    store.save([(episodes - 1, state)])
    with pytest.raises(op.CheckpointError, match="the number of episodes of a replicate does not fit"):
        op.simulate(MODEL, mix(), **given)
    store.save([(episodes, state[: len(state) // 2])])
    with pytest.raises(op.CheckpointError, match="the state of a replicate does not fit"):
        op.simulate(MODEL, mix(), **given)


def test_a_folder_that_is_not_there_and_bad_pauses_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        op.simulate(MODEL, mix(), episodes=5, progress=False, checkpoint=tmp_path / "no" / "file")
    for pause in (0, -1, float("nan"), "10"):
        with pytest.raises(op.InvalidInputError, match="checkpoint_every is"):
            op.simulate(MODEL, mix(), episodes=5, progress=False, checkpoint_every=pause)


PROGRAM = textwrap.dedent(
    """
    import sys
    import optpess as op
    from optpess.run.simulation_checkpoint import SimulationCheckpoint

    pair = op.zoo.problem("pair")
    learner = op.OptPessPrimalDual(
        shape=pair.model.shape, initial=pair.model.initial, num_episodes=int(sys.argv[2]),
        margin=op.SafetyMargin(0.6, 0.135), confidence=op.Scaled(0.01))
    save = SimulationCheckpoint.save
    def tell(self, states):
        save(self, states)
        print("saved", flush=True)
    SimulationCheckpoint.save = tell
    try:
        op.simulate(pair.model, learner, replicates=2, checkpoint=sys.argv[1], checkpoint_every=0.05)
    except BaseException as error:
        print(type(error).__name__, len(error.runs), flush=True)
        raise
    """
)


@pytest.mark.parametrize(
    ("number", "name", "status"),
    [(signal.SIGINT, "KeyboardInterrupt", -signal.SIGINT), (signal.SIGTERM, "SystemExit", 143)],
)
def test_signals_stop_a_simulation_and_it_goes_on(tmp_path, number, name, status):
    path = tmp_path / "checkpoint"
    command = [sys.executable, "-c", PROGRAM, str(path), str(LONG)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_default_handlers
    ) as process:
        for _ in range(3):
            assert process.stdout.readline() == "saved\n"
        process.send_signal(number)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == status
    assert told.splitlines()[-1].split()[0] == name
    request = simulation_checkpoint.Request.of(2, 0, 1)
    store = simulation_checkpoint.SimulationCheckpoint(
        path, MODEL, primal_dual(LONG), LONG, request, keeps_learners=True
    )
    states = store.load()
    assert all(state is not None and 0 < state[0] < LONG for state in states)


def _default_handlers():
    # A test runner may have been started with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_a_handler_of_the_caller_stays(tmp_path):
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        mine = signal.getsignal(signal.SIGTERM)
        op.simulate(MODEL, mix(), episodes=5, progress=False, checkpoint=tmp_path / "file")
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, handler)


def test_a_checkpoint_works_on_another_thread(tmp_path):
    found = []
    given = {"episodes": 50, "progress": False}

    def work():
        found.append(op.simulate(MODEL, mix(), **given, checkpoint=tmp_path / "file"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].same_as(op.simulate(MODEL, mix(), **given))


def test_no_part_of_a_checkpoint_is_left_behind(tmp_path):
    op.simulate(MODEL, mix(), episodes=50, progress=False, checkpoint=tmp_path / "file")
    assert not list(tmp_path.glob(".*.part"))


def test_a_link_to_a_checkpoint_stays_and_the_one_before_is_kept(tmp_path):
    """The second name was once one of the link, and led to the new checkpoint."""
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "checkpoint", tmp_path / "link"
    link.symlink_to(target)
    given = {"episodes": 50, "progress": False}
    op.simulate(MODEL, mix(), **given, checkpoint=link)
    previous = tmp_path / "link.previous"
    assert link.is_symlink()
    assert target.is_file()
    assert not previous.is_symlink()
    assert previous.read_bytes() != target.read_bytes()


def test_a_name_without_room_for_the_checkpoint_before_is_refused_before_anything_runs(tmp_path):
    most = 255 - len(".previous")
    for path in (tmp_path / (most * "n"), tmp_path / ("n" * (most % 2) + most // 2 * "ä")):
        op.simulate(MODEL, mix(), episodes=50, progress=False, checkpoint=path)
        assert path.with_name(f"{path.name}.previous").exists()
    with pytest.raises(op.InvalidInputError, match=r"has 247 bytes; allowed are at most 246"):
        op.simulate(MODEL, mix(), episodes=50, progress=False, checkpoint=tmp_path / ("n" * 247))
