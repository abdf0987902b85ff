"""Rollouts that are stopped and go on: the same episodes and the same learner, bit for bit."""

import signal
import sys
import threading

import numpy as np
import optpess as op
import pytest

from .cases import Track, learner_for

EPISODES, STEPS = 200, 4
HEADER = "episode,return,cost,length,source,certified_cost\n"

KINDS = {
    "OptPessMix": {"kind": op.OptPessMix},
    "OptPessMix, estimated": {
        "kind": op.OptPessMix,
        "baseline": op.SafeBaseline.estimated(
            op.policy_from_actions(np.zeros((STEPS, 4), int), num_actions=2), 1.5
        ),
    },
    "OptPessLP": {"kind": op.OptPessLP, "confidence": op.Scaled(1e-2)},
    "OptPessPrimalDual": {"kind": op.OptPessPrimalDual, "confidence": op.Scaled(1e-3)},
    "SOPS": {"kind": op.SOPS, "confidence": op.Scaled(1e-2)},
}


def made(name, **changes):
    return learner_for(Track(), STEPS, **KINDS[name] | changes)


def played(learner, env=None, episodes=EPISODES, **options):
    env = Track() if env is None else env
    return op.rollout(learner, env, episodes=episodes, **{"progress": False, "seed": 3} | options)


def bits(result):
    """Every bit of a record, without its first number."""
    arrays = (result.returns, result.costs, result.lengths, result.certified_costs)
    return [array.tobytes() for array in arrays], result.sources


def joined(*results):
    """The bits of several records, one after the other."""
    columns = ("returns", "costs", "lengths", "certified_costs")
    arrays = [np.concatenate([getattr(each, name) for each in results]).tobytes() for name in columns]
    return arrays, [source for each in results for source in each.sources]


def stored(learner):
    return learner._inner.to_bytes()


@pytest.fixture(scope="module")
def whole():
    """By name: the bits of a rollout that was never stopped, and of its learner."""
    found = {}
    for name in KINDS:
        learner = made(name)
        found[name] = bits(played(learner)), stored(learner)
    return found


def test_every_learner_leaves_its_baseline_and_ends_some_episodes_early():
    # What is compared below is not trivial.
    for name in KINDS:
        result = played(made(name))
        assert (result.on_baseline < 1).any()
        assert (result.lengths < STEPS).any()


class Stopped(Track):
    """Raises KeyboardInterrupt in the given calls of a method, counted over all episodes."""

    def __init__(self, method, calls):
        super().__init__()
        self._method, self._calls, self._count = method, set(calls), 0

    def _called(self, method):
        if method == self._method:
            self._count += 1
            if self._count in self._calls:
                raise KeyboardInterrupt

    def reset(self, **options):
        self._called("reset")
        return super().reset(**options)

    def step(self, action):
        self._called("step")
        return super().step(action)


def until_done(learner, env, episodes=EPISODES, **options):
    """Goes on after every interrupt; returns the parts."""
    parts, left = [], episodes
    while left:
        try:
            part = played(learner, env, left, **options)
        except KeyboardInterrupt as error:
            part = error.rollout
        assert learner.pending is None
        parts.append(part)
        left -= len(part)
        assert learner.episodes_observed == episodes - left
    return parts


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("split", [1, 2, 57, 100, 199])
def test_two_rollouts_are_one(name, split, whole):
    learner = made(name)
    parts = played(learner, None, split), played(learner, None, EPISODES - split)
    assert (joined(*parts), stored(learner)) == whole[name]
    assert parts[1].episodes.tolist() == list(range(split, EPISODES))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("method", ["reset", "step"])
@pytest.mark.parametrize("seed", range(3))
def test_interrupts_in_the_environment_change_nothing(name, method, seed, whole):
    random = np.random.default_rng(seed)
    calls = random.choice(EPISODES * (STEPS // 2 if method == "step" else 1), 8, replace=False) + 1
    learner = made(name)
    parts = until_done(learner, Stopped(method, calls.tolist()))
    assert len(parts) == 9
    assert (joined(*parts), stored(learner)) == whole[name]


@pytest.mark.parametrize("name", KINDS)
def test_interrupts_in_a_callback_change_nothing(name, whole):
    stops = {3, 4, 50, 150}

    def callback(episode):
        if episode.number in stops:
            raise KeyboardInterrupt

    learner = made(name)
    parts = until_done(learner, Track(), callback=callback)
    assert [len(part) for part in parts] == [4, 1, 46, 100, 49]
    assert (joined(*parts), stored(learner)) == whole[name]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("split", [0, 1, 77, 199])
def test_a_stored_learner_goes_on_in_a_fresh_environment(name, split, whole, tmp_path):
    learner, parts = made(name), []
    if split:
        parts.append(played(learner, None, split))
    with pytest.raises(KeyboardInterrupt):  # it is stored within an episode that was given up
        played(learner, Stopped("step", [2]))
    learner.save(tmp_path / "learner.npz")
    again = op.load_learner(tmp_path / "learner.npz")
    parts.append(played(again, Track(), EPISODES - split))
    assert (joined(*parts), stored(again)) == whole[name]
    assert learner.episodes_observed == split


# Interrupts at any instruction


class Opcodes:
    """Raises KeyboardInterrupt at the n-th instruction that the files of rollouts execute."""

    FILES = ("rollout.py", "rollout_record.py", "rollout_checkpoint.py", "episode_log.py")

    def __init__(self, number, function="play"):
        self._left, self._function, self._on = number, function, False
        self.place = None

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _call(self, frame, event, _):
        name = frame.f_code.co_filename
        if "optpess/run/" not in name or not name.endswith(self.FILES):
            return None
        if frame.f_code.co_name == self._function:
            self._on = True
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._opcode if self._on else None

    def _opcode(self, frame, event, _):
        if event == "opcode" and self.place is None:
            self._left -= 1
            if self._left == 0:
                self.place = f"{frame.f_code.co_name}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self._opcode


def test_an_interrupt_at_any_instruction_loses_no_episode_and_counts_none_twice(monkeypatch, tmp_path):
    # Went wrong: between the learner's count and the record's line, an interrupt lost the line.
    monkeypatch.setattr("optpess.run.rollout._SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr("optpess.run.rollout_record._ROWS_TO_PACK", 2)
    count, learner = 4, made("OptPessMix")
    expected = bits(played(learner, None, count)), stored(learner)
    places, number = set(), 0
    while True:
        number += 3  # not every one, to be quick
        learner, log = made("OptPessMix"), tmp_path / f"{number}.csv"
        parts, stop = [], Opcodes(number)
        try:
            with stop:
                parts.append(played(learner, None, count, log=log))
        except KeyboardInterrupt as error:
            if not hasattr(error, "rollout"):  # while the last lines of the call were executed
                assert learner.episodes_observed == count
                assert learner.pending is None
                continue
            parts.append(error.rollout)
        if stop.place is None:
            break
        places.add(stop.place)
        assert learner.pending is None, stop.place
        assert learner.episodes_observed == len(parts[0]), stop.place
        if len(parts[0]) < count:
            parts.append(played(learner, None, count - len(parts[0]), log=log))
        assert (joined(*parts), stored(learner)) == expected, stop.place
        episodes = [line.split(",")[0] for line in log.read_text().splitlines()[1:]]
        assert episodes == [str(episode) for episode in range(count)], stop.place
    assert len(places) > 40


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of the system")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
@pytest.mark.parametrize("delay", [0.002, 0.004, 0.007, 0.011, 0.016])
def test_a_signal_at_any_time_changes_nothing(delay, whole):
    learner, parts, left = made("OptPessMix"), [], EPISODES

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            parts.append(played(learner, None, left))
        except KeyboardInterrupt as error:
            if not hasattr(error, "rollout"):  # before the first episode, or while the call returned
                assert learner.episodes_observed in (0, EPISODES)
                pytest.skip(f"the signal came outside of the episodes, at {learner.episodes_observed}")
            parts.append(error.rollout)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    left -= sum(map(len, parts))
    assert learner.episodes_observed == EPISODES - left
    if left:
        parts.append(played(learner, None, left))
    assert (joined(*parts), stored(learner)) == whole["OptPessMix"]


# Checkpoints


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_checkpoint_goes_on_with_a_new_learner(name, seed, whole, tmp_path):
    path, random = tmp_path / "rollout.npz", np.random.default_rng(seed)
    for call in random.integers(1, 60, 3).tolist():
        with pytest.raises(KeyboardInterrupt) as caught:
            played(made(name), Stopped("step", [call]), checkpoint=path)
        assert caught.value.rollout.episodes[:1].tolist() in ([], [0])
    learner = made(name)
    result = played(learner, Track(), checkpoint=path)
    assert (bits(result), stored(learner)) == whole[name]
    assert result.episodes.tolist() == list(range(EPISODES))
    # Once more: there is nothing left to play.
    learner = made(name)
    again = played(learner, Stopped("reset", [1]), checkpoint=path)
    assert (bits(again), stored(learner)) == whole[name]
    # More episodes than before.
    assert len(played(learner, Track(), EPISODES + 10, checkpoint=path)) == EPISODES + 10


def test_a_checkpoint_goes_on_with_the_learner_that_was_stopped_also_if_it_was_looked_at(
    tmp_path, whole
):
    path, learner = tmp_path / "rollout.npz", made("OptPessMix")
    with pytest.raises(KeyboardInterrupt):
        played(learner, Stopped("step", [99]), checkpoint=path)
    assert learner.estimates.visits.sum() > 0
    assert learner.progress is not None
    assert bits(played(learner, Track(), checkpoint=path)) == whole["OptPessMix"][0]


def test_a_checkpoint_may_begin_after_other_episodes(tmp_path, whole):
    path, learner = tmp_path / "rollout.npz", made("OptPessMix")
    before = played(learner, None, 30)
    start = op.load_learner(_saved(learner, tmp_path))
    with pytest.raises(KeyboardInterrupt):
        played(learner, Stopped("step", [50]), EPISODES - 30, checkpoint=path)
    result = played(start, Track(), EPISODES - 30, checkpoint=path)
    assert result.episodes.tolist() == list(range(30, EPISODES))
    assert (joined(before, result), stored(start)) == whole["OptPessMix"]


def _saved(learner, folder):
    learner.save(folder / "learner.npz")
    return folder / "learner.npz"


def test_a_process_that_was_killed_goes_on_from_its_last_checkpoint(monkeypatch, tmp_path, whole):
    monkeypatch.setattr("optpess.run.rollout._SECONDS_BETWEEN_REPORTS", 0.0)
    path, log, copies = tmp_path / "rollout.npz", tmp_path / "log.csv", {}

    def callback(episode):  # what would be left on the disk
        if episode.number in (1, 40, 150):
            copies[episode.number] = path.read_bytes(), log.read_bytes()

    given = {"checkpoint": path, "checkpoint_every": 1e-9, "log": log, "callback": callback}
    played(made("OptPessMix"), None, **given)
    final = log.read_bytes()
    for checkpoint, _ in copies.values():
        for lines in (
            final,
            final[:-7],
            final[: len(final) // 2],
            b"",
            *(log for _, log in copies.values()),
        ):
            path.write_bytes(checkpoint)
            log.write_bytes(lines)
            learner = made("OptPessMix")
            result = played(learner, None, checkpoint=path, log=log)
            assert (bits(result), stored(learner)) == whole["OptPessMix"]
            assert log.read_bytes() == final


def test_a_kill_before_the_first_episode_leaves_a_checkpoint_of_none(tmp_path):
    path, found = tmp_path / "rollout.npz", []
    played(made("OptPessMix"), None, 3, checkpoint=path, callback=lambda _: found.append(path.exists()))
    assert all(found)


OTHERS = {
    "seed of the learner": ({"seed": 8}, {}, "the learner's seed is 0 there and 8 here"),
    "delta": ({"failure_probability": 0.1}, {}, "the learner's failure_probability is 0.05"),
    "limit": ({"limits": (1.25,)}, {}, "the learner's cost_limit is 1.5 there and 1.25 here"),
    "units": ({"cost_range": (0, 2)}, {}, "the learner's cost_ranges"),
    "class": ({"kind": op.SOPS}, {}, "the class of the learner is 'OptPessMix' there and 'SOPS' here"),
    "knowledge": ({"knowledge": op.Knowledge(stationary=True)}, {}, "the learner's knowledge"),
    "initial": ({"initial": [0.25, 0.75, 0, 0]}, {}, "another initial, baseline or knowledge"),
    "seed of the rollout": ({}, {"seed": 4}, "env_seed is 3 there and 4 here"),
    "no seed": ({}, {"seed": None}, "env_seed is 3 there and None here"),
    "range": ({}, {"reward_range": (-1, 1)}, "env_reward_range is [0.0, 1.0] there and [-1.0, 1.0]"),
    "fewer episodes": ({}, {"episodes": 9}, "holds 40 episodes; episodes is 9"),
}


@pytest.fixture
def checkpoint(tmp_path):
    """The checkpoint of 40 episodes."""
    played(made("OptPessMix"), None, 40, checkpoint=tmp_path / "rollout.npz")
    return tmp_path / "rollout.npz"


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_something_else_is_refused_by_what_differs(name, checkpoint):
    changes, options, piece = OTHERS[name]
    learner, before = made("OptPessMix", **changes), checkpoint.read_bytes()
    state = stored(learner)
    with pytest.raises(op.CheckpointError) as caught:
        played(learner, None, **{"episodes": 60, "checkpoint": checkpoint} | options)
    assert piece in str(caught.value)
    assert stored(learner) == state
    assert checkpoint.read_bytes() == before


def test_a_checkpoint_is_not_replaced_by_one_of_a_learner_that_was_moved(tmp_path):
    path, learner = tmp_path / "rollout.npz", made("OptPessMix")
    with pytest.raises(op.InvalidInputError, match="the callback moved the learner"):
        played(learner, None, checkpoint=path, callback=lambda _: played(learner, None, 1))
    assert len(played(made("OptPessMix"), Track(), 5, checkpoint=path)) == 5


def test_progress_of_a_resumed_rollout_counts_what_this_call_plays(checkpoint, monkeypatch):
    said = []

    class Bar:
        def __init__(self, total, unit):
            said.append(total)

        def __call__(self, done):
            said.append(done)

        def close(self):
            said.append("closed")

    monkeypatch.setattr("optpess.run.rollout.ProgressBar", Bar)
    monkeypatch.setattr("optpess.run.rollout._SECONDS_BETWEEN_REPORTS", 0.0)
    played(made("OptPessMix"), None, 45, checkpoint=checkpoint, progress=True)
    assert said == [5, 1, 2, 3, 4, 5, "closed"]


def test_a_learner_that_is_somewhere_else_is_refused(checkpoint):
    learner = made("OptPessMix")
    played(learner, None, 7)
    with pytest.raises(
        op.CheckpointError, match="began after 0 episodes and has come to 40; the learner has "
    ):
        played(learner, None, 60, checkpoint=checkpoint)
    played(learner, None, 33, seed=99)
    with pytest.raises(op.CheckpointError, match="or saw other episodes"):
        played(learner, None, 60, checkpoint=checkpoint)
    assert learner.episodes_observed == 40


def test_a_checkpoint_that_is_damaged_or_foreign_is_refused_and_untouched(checkpoint, tmp_path):
    whole, learner = checkpoint.read_bytes(), made("OptPessMix")
    state = stored(learner)
    files = [b"", b"no archive", whole[: len(whole) // 2], _saved(learner, tmp_path).read_bytes()]
    middle = whole.index(b"learner_state.npy") + 400
    files.append(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    for content in files:
        checkpoint.write_bytes(content)
        with pytest.raises(op.CheckpointError, match="cannot be read"):
            played(learner, None, 60, checkpoint=checkpoint)
        assert stored(learner) == state
        assert checkpoint.read_bytes() == content


def test_a_checkpoint_counts_the_episodes_that_a_learner_has(checkpoint):
    path = checkpoint.with_name("lp.npz")
    learner = made("OptPessLP")
    played(learner, None, 20, checkpoint=path)
    with pytest.raises(op.InvalidInputError, match="episodes is 1001; the learner has 1000 of its 1000"):
        played(made("OptPessLP"), None, 1001, checkpoint=path)


def test_a_refused_log_leaves_the_learner_where_it_was(checkpoint):
    # Went wrong: the learner was moved to the checkpoint before the log was looked at.
    log, learner = checkpoint.with_name("log.csv"), made("OptPessMix")
    log.write_text("my diary\n")
    with pytest.raises(op.InvalidInputError, match="no log of such a rollout"):
        played(learner, None, 60, checkpoint=checkpoint, log=log)
    assert learner.episodes_observed == 0
    assert log.read_text() == "my diary\n"


def test_an_error_while_saving_does_not_hide_the_first_one(tmp_path):
    folder = tmp_path / "away"
    folder.mkdir()
    path = folder / "rollout.npz"

    class Broken(Track):
        def step(self, action):
            path.unlink()
            folder.rmdir()
            raise ZeroDivisionError("the first error")

    learner = made("OptPessMix")
    with pytest.raises(ZeroDivisionError, match="the first error") as caught:
        played(learner, Broken(), checkpoint=path)
    assert any("could not be written" in note for note in caught.value.__notes__)
    assert learner.pending is None
    assert len(played(learner, Track(), 5)) == 5


def test_an_error_of_saving_alone_is_raised(tmp_path):
    folder = tmp_path / "away"
    folder.mkdir()
    path = folder / "rollout.npz"

    def callback(episode):
        if episode.number == 3:
            path.unlink()
            folder.rmdir()

    learner = made("OptPessMix")
    with pytest.raises(FileNotFoundError) as caught:
        played(learner, None, 10, checkpoint=path, callback=callback)
    assert len(caught.value.rollout) == learner.episodes_observed == 10


# Logs


@pytest.mark.parametrize("costs", [1, 2])
def test_a_log_has_the_table_of_the_rollout(costs, tmp_path):
    log, env = tmp_path / "log.csv", Track(costs=costs)
    result = played(learner_for(env), env, log=log)
    result.to_csv(tmp_path / "table.csv")
    assert log.read_text() == (tmp_path / "table.csv").read_text()


@pytest.mark.parametrize("name", ["OptPessMix", "OptPessLP"])
def test_a_log_has_every_episode_once_whatever_happens(name, tmp_path, monkeypatch):
    log, expected = tmp_path / "log.csv", tmp_path / "expected.csv"
    played(made(name), log=expected)
    calls = np.random.default_rng(1).choice(300, 10, replace=False) + 1
    until_done(made(name), Stopped("step", calls.tolist()), log=log)
    assert log.read_text() == expected.read_text()
    log.unlink()
    monkeypatch.setattr("optpess.run.rollout._SECONDS_BETWEEN_REPORTS", 0.0)
    until_done(made(name), Stopped("reset", [9, 10, 11, 70]), log=log)
    assert log.read_text() == expected.read_text()


def test_a_log_is_written_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("optpess.run.rollout._SECONDS_BETWEEN_REPORTS", 0.0)
    log, lengths = tmp_path / "log.csv", []
    played(
        made("OptPessMix"),
        None,
        20,
        log=log,
        callback=lambda _: lengths.append(len(log.read_text().splitlines())),
    )
    assert lengths == list(range(1, 21))


@pytest.mark.parametrize(
    ("content", "piece"),
    [
        ("episode,return\n", "is no log of such a rollout"),
        ("a letter", "is no log of such a rollout"),
        (
            "episode,return,cost,length,source,certified_cost\n0,1,0,4,Baseline,0\n",
            "ends with episode 0",
        ),
    ],
)
def test_a_foreign_log_is_refused_and_untouched(content, piece, tmp_path):
    log, learner = tmp_path / "log.csv", made("OptPessMix")
    log.write_text(content)
    with pytest.raises(op.InvalidInputError) as caught:
        played(learner, log=log)
    assert piece in str(caught.value)
    assert "choose another name, or remove it" in str(caught.value)
    assert learner.episodes_observed == 0
    assert log.read_text() == content


def test_a_log_of_other_episodes_than_the_checkpoint_is_refused_and_untouched(checkpoint):
    log = checkpoint.with_name("log.csv")
    played(made("OptPessMix"), None, 40, log=log, seed=77)
    before, learner = log.read_bytes(), made("OptPessMix")
    with pytest.raises(op.InvalidInputError, match=r"tells of another episode \d+ than the checkpoint"):
        played(learner, None, 60, checkpoint=checkpoint, log=log)
    assert log.read_bytes() == before
    assert learner.episodes_observed == 0


def test_a_new_log_of_a_resumed_rollout_has_the_episodes_of_the_checkpoint(checkpoint):
    log = checkpoint.with_name("log.csv")
    result = played(made("OptPessMix"), None, 60, checkpoint=checkpoint, log=log)
    result.to_csv(checkpoint.with_name("table.csv"))
    assert log.read_bytes() == checkpoint.with_name("table.csv").read_bytes()


def test_the_file_of_a_log_is_closed_on_every_path(tmp_path, recwarn):
    # Warnings are errors: a file that is left open is one, when it is collected.
    import gc

    played(made("OptPessMix"), None, 5, log=tmp_path / "a.csv")
    with pytest.raises(KeyboardInterrupt):
        played(made("OptPessMix"), Stopped("step", [9]), log=tmp_path / "b.csv")
    with pytest.raises(KeyboardInterrupt):
        played(made("OptPessMix"), Stopped("reset", [1]), log=tmp_path / "c.csv")
    gc.collect()
    assert not [each for each in recwarn if issubclass(each.category, ResourceWarning)]
