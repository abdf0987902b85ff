"""Files are not trusted: whatever they hold, the answer is a valid model or a refusal."""

import errno
import io
import os
import random
import stat
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


@pytest.mark.parametrize(
    ("shape", "descr"), [((3, 2, 2), "<f4"), ((3, 2, 1), "<f8"), ((0,), "<f8"), ((3, 2), "<i8")]
)
def test_a_header_that_claims_less_than_the_member_holds_is_refused(path, shape, descr):
    # The rest was left unread, and with it the checksum: costs of 2^-8 became 0.9375.
    with zipfile.ZipFile(path) as archive:
        content = archive.read("rewards.npy")
    changed = header(shape, descr)[:-8] + content[-REWARDS.nbytes :]
    with refused(None, "rewards", str(shape), f"{REWARDS.nbytes} bytes"):
        op.CMDP.load(with_member(path, "rewards.npy", changed))


def test_an_array_that_stands_there_twice_is_refused_before_it_is_read(path):
    # One member named 2,000 times was read 2,000 times.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the second name
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("rewards.npy", b"never read")
    with refused(None, "'rewards' stands there twice"):
        op.CMDP.load(path)


def test_members_that_share_their_bytes_are_refused(path):
    with zipfile.ZipFile(path, "a") as archive:
        archive.filelist += [copied(archive.getinfo("rewards.npy"), f"{i}/x.npy") for i in range(50)]
        archive._didModify = True
    with refused(None, "does not list all of its bytes once"):
        op.CMDP.load(path)


def copied(member, name):
    """The directory's entry of a member under another name."""
    made = zipfile.ZipInfo(name)
    for part in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
        setattr(made, part, getattr(member, part))
    return made


def test_a_device_is_refused_and_a_pipe_is_not_waited_for(tmp_path):
    # A link to an endless device filled the memory; a named pipe was waited for without end.
    link, pipe = tmp_path / "link.npz", tmp_path / "pipe.npz"
    link.symlink_to("/dev/zero")
    os.mkfifo(pipe)
    for found, what in ((link, "a device"), (pipe, "a named pipe")):
        for read in (op.CMDP.load, op.load_run, op.load_learner, op.Comparison.load):
            with refused(None, str(found), what, "must be a regular file"):
                read(found)


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


def test_the_format_of_a_file_is_what_it_names(path, tmp_path):
    assert storage.format_of(path) == "optpess.CMDP/2"
    assert storage.format_of(rewritten(path, format=None)) == "missing"
    path.write_text("states, actions")
    with refused(None, "is not a readable .npz file"):
        storage.format_of(path)


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


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="there are no names of open files")
def test_a_pipe_without_a_name_of_its_own_is_written(tmp_path):
    # The link /dev/stdout leads to "pipe:[1234]", of which no file can be made.
    read, write = os.pipe()
    try:
        with storage.replacing(f"/dev/fd/{write}") as file:
            file.write(b"a few words")
        assert os.read(read, 100) == b"a few words"
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no such device")
def test_a_device_is_written_and_not_replaced(tmp_path):
    # A rename onto a device put a plain file in its place, if the user was allowed to.
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        op.zoo.ring().save(full)
    assert Path("/dev/full").is_char_device()
    assert list(tmp_path.iterdir()) == [full]


def test_a_link_stays_a_link_and_its_target_is_replaced(path, tmp_path):
    # The link was replaced by a file, and what it pointed to stayed as it was.
    link = tmp_path / "link.npz"
    link.symlink_to(path)
    healthy.stationary(horizon=9).save(link)
    assert link.is_symlink()
    assert op.CMDP.load(path).shape.horizon == 9


def test_the_permissions_of_a_file_are_kept(path):
    # They were reset to those of a new file.
    path.chmod(0o640)
    healthy.stationary().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_longest_name_that_the_system_allows_can_be_saved(tmp_path):
    # The name of the temporary file was longer than that of the target.
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    target = tmp_path / ("m" * (longest - 4) + ".npz")
    healthy.model().save(target)
    assert op.CMDP.load(target).shape == (3, 2, 2)


def test_a_file_is_on_the_disk_before_its_name_and_the_name_before_save_returns(path, monkeypatch):
    # Nothing was written through; after a loss of power the file could be empty.
    happened = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(descriptor):
        happened.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def note_replace(part, target):
        happened.append("rename")
        return replace(part, target)

    monkeypatch.setattr(storage.os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    healthy.model().save(path)
    assert happened == ["file", "rename", "folder"]


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


def test_a_directory_of_many_members_is_refused_before_it_is_read(tmp_path):
    # An archive of a million empty members took a gigabyte.
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(25_000):
            archive.writestr(f"{number:040d}.npy", b"")
    with pytest.raises(op.InvalidInputError, match=r"its directory has 2\d+ bytes, more than 2000000"):
        op.CMDP.load(path)


@pytest.mark.parametrize(
    "name", ["../outside.npy", "/outside.npy", "C:\\outside.npy", "a/../../outside.npy"]
)
def test_no_path_in_an_archive_is_followed(tmp_path, name):
    path = tmp_path / "folder" / "model.npz"
    path.parent.mkdir()
    healthy.model().save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"escaped")
    with pytest.raises(op.InvalidInputError, match="no such array is expected"):
        op.CMDP.load(path)
    assert [each.name for each in tmp_path.rglob("*")] == ["folder", "model.npz"]


def test_a_compressed_member_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rewards.npy", bytes(10_000_000))
    with pytest.raises(op.InvalidInputError, match=r"'rewards\.npy' is compressed"):
        op.CMDP.load(path)


def test_a_loop_of_links_is_an_error_of_the_file_system(tmp_path):
    path, other = tmp_path / "a.npz", tmp_path / "b.npz"
    path.symlink_to(other)
    other.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        op.CMDP.load(path)
    with pytest.raises(OSError, match="symbolic links"):
        healthy.model().save(path)
    assert path.is_symlink()
    assert other.is_symlink()
