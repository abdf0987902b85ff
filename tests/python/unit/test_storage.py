"""Files are not trusted: whatever they hold, the answer is a valid model or a refusal."""

import errno
import io
import random
import warnings
import zipfile
from pathlib import Path

import numpy as np
import optpess as op
import pytest
from optpess import storage
from support import healthy
from support.healthy import COSTS, REWARDS, refused


@pytest.fixture
def path(tmp_path):
    """The healthy model in a file."""
    target = tmp_path / "model.npz"
    healthy.model().save(target)
    return target


def members(path):
    with np.load(path) as stored:
        return dict(stored)


def rewritten(path, **changes):
    """The file with some arrays replaced; None leaves an array out."""
    arrays = {name: array for name, array in (members(path) | changes).items() if array is not None}
    np.savez(path, **arrays)
    return path


def header(shape, descr="<f8"):
    """A .npy file that claims this shape and holds eight bytes."""
    stream = io.BytesIO()
    claim = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, claim)
    return stream.getvalue() + bytes(8)


def with_member(path, name, content):
    """The file with the raw bytes of one member replaced."""
    with zipfile.ZipFile(path) as archive:
        kept = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for entry, old in kept.items():
            archive.writestr(entry, content if entry == name else old)
    return path


FILES = Path(__file__).parent / "files"


def test_a_model_and_a_run_written_by_an_earlier_version_are_read(tmp_path):
    # Both files were written before the modules were moved; a file must not name them.
    made, expected = op.CMDP.load(FILES / "model-1.npz"), op.zoo.pair()
    np.testing.assert_array_equal(made.rewards, expected.rewards)
    np.testing.assert_array_equal(made.transitions.to_array(), expected.transitions.to_array())
    run = op.load_run(FILES / "run-1.npz")
    assert repr(run) == "Run(OptPess-LP, 2 replicate(s) of 20 episodes, 0 violating, guarantee=None)"
    assert run.parameters["seed"] == 3
    assert run.reward_regret[:, -1].tolist() == [11.058333333333334] * 2
    assert run.audits[0]["CostDominance"] == op.Finding(20, 0, None, 0.0)
    assert (run.plays, run.weight, run.certified_cost, run.mixtures) == ({}, None, None, None)
    since = ("signed_violation", "deployed_value", "deployed_cost", "baseline_share", "gain", "versions")
    assert {getattr(run, name) for name in since} == {None}
    assert run.units.is_unit
    run.save(tmp_path / "again.npz")  # in the format of today, without what it lacks
    assert op.load_run(tmp_path / "again.npz").same_as(run)
    assert run.to_markdown().count("\n") > 20
    with pytest.raises(op.InvalidInputError, match="holds no model and no learner"):
        op.reproduce(FILES / "run-1.npz")
    with pytest.raises(op.InvalidInputError, match="which this run does not have"):
        run.growth_exponent(of="gain")


def test_a_missing_file_is_the_file_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^there is no file .*nothing\.npz$") as caught:
        op.CMDP.load(tmp_path / "nothing.npz")
    assert caught.value.errno == errno.ENOENT


def test_a_folder_is_the_file_systems_error(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder, not a file$") as caught:
        op.CMDP.load(tmp_path)
    assert caught.value.errno == errno.EISDIR


def test_a_file_in_a_missing_folder_is_refused_by_the_name_that_was_given(tmp_path):
    # The message named the temporary file.
    target = tmp_path / "nowhere" / "model.npz"
    with pytest.raises(FileNotFoundError, match=r"^there is no folder .*nowhere for .*model\.npz$"):
        op.zoo.pair().save(target)
    with pytest.raises(IsADirectoryError, match=r"is a folder, not a file$"):
        op.zoo.pair().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_refused_with_what_reads_it(tmp_path):
    op.zoo.pair().save(tmp_path / "model.npz")
    with pytest.raises(op.InvalidInputError, match=r"'optpess\.CMDP/2'.*op\.CMDP\.load reads it$"):
        op.load_run(tmp_path / "model.npz")


def test_a_path_may_be_a_string(path):
    assert op.CMDP.load(str(path)).shape == (3, 2, 2)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(path, kept):
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with refused(None, str(path), "not a readable .npz file"):
        op.CMDP.load(path)


def test_text_is_refused(path):
    path.write_text("rewards = 1")
    with refused(None, "not a readable .npz file"):
        op.CMDP.load(path)


def test_pickled_objects_are_refused(path):
    with refused(None, "rewards", "pickled objects are never read"):
        op.CMDP.load(rewritten(path, rewards=REWARDS.astype(object)))


def test_a_compressed_file_is_refused(path):
    np.savez_compressed(path, **members(path))
    with refused(None, "is compressed", "uncompressed"):
        op.CMDP.load(path)


@pytest.mark.parametrize("shape", [(10**15,), (2**62, 4), (10**9, 10**9, 10**9)])
def test_a_header_that_claims_a_giant_is_refused(path, shape):
    with refused(None, "rewards", str(shape), "bytes"):
        op.CMDP.load(with_member(path, "rewards.npy", header(shape)))


@pytest.mark.parametrize("shape", [(-1,), (-2, -3), ("x",)])
def test_a_header_with_a_senseless_shape_is_refused(path, shape):
    with refused(None, "rewards"):
        op.CMDP.load(with_member(path, "rewards.npy", header(shape)))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", b"[1, 2]"])
def test_a_member_that_is_no_array_is_refused(path, content):
    with refused(None, "rewards.npy", "cannot be read"):
        op.CMDP.load(with_member(path, "rewards.npy", content))


def test_another_format_is_refused(path):
    with refused(None, "'optpess.CMDP/3'", "'optpess.CMDP/2'"):
        op.CMDP.load(rewritten(path, format=np.array("optpess.CMDP/3")))


def test_a_file_without_a_format_is_refused(path):
    with refused(None, "missing", "'optpess.CMDP/2'"):
        op.CMDP.load(rewritten(path, format=None))


@pytest.mark.parametrize("name", ["shape", "rewards", "noise", "transition_probabilities"])
def test_a_missing_array_is_refused(path, name):
    with refused(None, f"no array {name!r}"):
        op.CMDP.load(rewritten(path, **{name: None}))


def test_an_array_nobody_expects_is_refused(path):
    with refused(None, "'extra'", "no such array is expected"):
        op.CMDP.load(rewritten(path, extra=np.zeros(3)))


def test_an_array_of_the_wrong_type_is_refused(path):
    with refused(None, "'rewards'", "int64"):
        op.CMDP.load(rewritten(path, rewards=REWARDS.astype(int)))


def test_an_unknown_noise_is_refused(path):
    with refused(None, "'cauchy'", "bernoulli, deterministic, gaussian, uniform"):
        op.CMDP.load(rewritten(path, noise=np.array("cauchy")))


def test_a_stored_noise_outside_the_assumption_is_refused(path):
    wide = {"noise": np.array("gaussian"), "noise_parameter": np.array(2.0)}
    with refused("OutOfRange", "sigma is 2"):
        op.CMDP.load(rewritten(path, **wide))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("shape", np.array([3, 2])),
        ("shape", np.array(3)),
        ("noise", np.array(["bernoulli", "bernoulli"])),
        ("noise_parameter", np.zeros(2)),
        ("transition_steps", np.array([3, 3])),
    ],
)
def test_a_stored_fact_of_the_wrong_size_is_refused(path, name, array):
    with refused(None, repr(name), str(array.shape)):
        op.CMDP.load(rewritten(path, **{name: array}))


@pytest.mark.parametrize(("name", "array"), [("shape", [4, 2, 2]), ("transition_steps", 0)])
def test_stored_sizes_that_contradict_the_arrays_are_refused(path, name, array):
    with refused(None, "(3, 2, 2)"):
        op.CMDP.load(rewritten(path, **{name: np.array(array)}))


@pytest.mark.parametrize("name", ["transition_offsets", "transition_successors"])
def test_half_of_a_sparse_kernel_is_refused(path, name):
    healthy.model(transitions=healthy.sparse()).save(path)
    with refused("WrongRank", "transitions"):
        op.CMDP.load(rewritten(path, **{name: None}))


def test_a_stored_model_is_validated_again(path):
    with refused("OutOfRange", "costs[0, 1, 0, 0] is 7"):
        op.CMDP.load(rewritten(path, costs=healthy.changed(COSTS, (1, 0, 0), 7.0)[np.newaxis]))


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    before = path.read_bytes()

    def fails(file, **_):
        file.write(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr(storage.np, "savez", fails)
    with pytest.raises(OSError, match="no space left"):
        healthy.stationary().save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_saving_replaces_what_was_there(path):
    healthy.stationary(horizon=9).save(path)
    assert op.CMDP.load(path).shape.horizon == 9
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_file_with_damaged_bytes_gives_a_valid_model_or_a_refusal(path, kind):
    if kind == "sparse":
        healthy.model(transitions=healthy.sparse()).save(path)
    intact, source, loaded = path.read_bytes(), random.Random(31), 0
    for _ in range(600):
        damaged = bytearray(intact)
        for _ in range(source.choice([1, 1, 2, 8])):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        loaded += survives(path, damaged)
    assert 0 < loaded < 600


@pytest.mark.parametrize("name", ["rewards.npy", "shape.npy", "noise.npy", "transition_steps.npy"])
def test_a_member_with_damaged_bytes_and_a_right_checksum_is_survived(path, name):
    with zipfile.ZipFile(path) as archive:
        intact = archive.read(name)
    source = random.Random(32)
    for _ in range(150):
        damaged = bytearray(intact)
        for _ in range(source.choice([1, 2, 8])):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        survives(path, with_member(path, name, bytes(damaged)).read_bytes())


def survives(path: Path, content: bytes) -> bool:
    """Whether the content loads; anything but a model or a refusal is an error."""
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the readers of other people's formats may warn
        try:
            made = op.CMDP.load(path)
        except op.InvalidInputError:
            return False
    assert isinstance(made, op.CMDP)
    return True
