"""Every flipped bit and every truncation of a file is seen, or changes nothing that is read."""

import warnings
import zipfile

import numpy as np
import optpess as op
import pytest
from support import healthy

PAIR = op.zoo.problem("pair")
TOLD = {"shape": PAIR.model.shape, "initial": PAIR.model.initial, "baseline": PAIR.baseline}


def mix():
    return op.OptPessMix(**TOLD)


def run():
    return op.simulate(PAIR.model, mix(), episodes=3, replicates=2, seed=1, progress=False)


def learner():
    return run().learners[0]


def comparison():
    learners = {"mix": mix(), "safe": op.AlwaysBaseline(**TOLD, num_episodes=3)}
    return op.compare(PAIR.model, learners, episodes=3, progress=False)


def staged():
    made = op.StagedRollout(cost_limit=0.6, baseline_cost=0.135, max_episode_cost=2.0, seed=1)
    made.use_candidate()
    made.record(0.1)
    return made


KINDS = {
    "staged rollout": (staged, op.StagedRollout.load),
    "model": (healthy.model, op.CMDP.load),
    "run": (run, op.load_run),
    "learner": (learner, op.load_learner),
    "comparison": (comparison, op.Comparison.load),
}


def members(path):
    with np.load(path) as stored:
        return {name: (stored[name].dtype, stored[name].tobytes()) for name in stored.files}


def reads_the_same_or_refuses(path, load, expected):
    """Whether a file is refused, or what it holds is, saved again, what was expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the readers of other people's formats may warn
        try:
            found = load(path)
        except op.InvalidInputError:
            return True
    found.save(path)
    return members(path) == expected


def check_damages(tmp_path, kind, places, bits):
    """Damages at most ``places`` places of a file, evenly spread."""
    make, load = KINDS[kind]
    path = tmp_path / "file.npz"
    make().save(path)
    content = path.read_bytes()
    load(path).save(path)  # numbers within JSON may be written in another way the second time
    expected = members(path)
    for place in range(0, len(content), len(content) // places + 1):
        path.write_bytes(content[:place])
        with pytest.raises(op.InvalidInputError):
            load(path)
        for bit in bits(place):
            changed = bytes([content[place] ^ (1 << bit)])
            path.write_bytes(content[:place] + changed + content[place + 1 :])
            assert reads_the_same_or_refuses(path, load, expected), f"bit {bit} of byte {place}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_or_a_truncation_is_seen_or_changes_nothing(tmp_path, kind):
    # A flipped bit in a header's element type or length gave other numbers.
    check_damages(tmp_path, kind, 120, lambda place: [place % 8])


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)


def test_a_member_that_damage_removes_from_the_directory_is_missed(tmp_path):
    # One flipped bit in the length of an entry hid all that follow: a run without its learner.
    path = tmp_path / "run.npz"
    run().save(path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    load, path_expected = op.load_run, members(path)
    for place in range(start, len(content)):
        if content[place - 32 : place - 28] == b"PK\x01\x02":  # two bytes later: the comment's length
            path.write_bytes(content[: place + 1] + b"\x01" + content[place + 2 :])
            assert reads_the_same_or_refuses(path, load, path_expected), place


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_a_flip_in_every_byte_and_a_truncation_at_every_byte(tmp_path, kind):
    check_damages(tmp_path, kind, 10**9, lambda place: [place % 8, (place + 5) % 8])
