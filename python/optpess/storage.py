"""Writes arrays to ``.npz`` files and reads them back with checks.

Writing is atomic and reaches the disk. A file is refused if it contains pickled objects, arrays that
claim another size than their bytes have, a name twice, or a name or element type that was not expected.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import tokenize
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from optpess.arrays import StoredArrays
from optpess.exceptions import InvalidInputError

__all__ = ["Fields", "format_of", "load_arrays", "naming", "reading", "replacing", "save_arrays"]

# What zipfile and NumPy raise for malformed bytes. An OSError is about the file system and is not
# converted, with the one exception below.
_UNREADABLE = (
    zipfile.BadZipFile,
    tokenize.TokenError,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,  # with NotImplementedError and RecursionError
    SyntaxError,
    TypeError,
    ValueError,
)

# Some ten thousand arrays, with their names.
_LARGEST_DIRECTORY = 2_000_000

# What reads the files of each format, for the refusal of a file of another one.
_READERS = {
    "optpess.CMDP": "op.CMDP.load",
    "optpess.Comparison": "op.Comparison.load",
    "optpess.Learner": "op.load_learner",
    "optpess.RolloutCheckpoint": "op.rollout, as its checkpoint",
    "optpess.Run": "op.load_run",
    "optpess-staged-rollout-1": "op.StagedRollout.load",
}


@dataclass(frozen=True)
class Fields:
    """The arrays a file must contain: their names and kinds of elements ("f", "i", "U": NumPy's
    dtype.kind).
    """

    format: str
    required: dict[str, str]
    optional: dict[str, str] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()
    """Older formats that are read as well."""
    numbered: dict[str, str] = field(default_factory=dict)
    """Arrays of which a file may hold several, each with a number and a slash before its name."""

    def kinds(self) -> dict[str, str]:
        """All names, with the format tag every file has."""
        return {"format": "U"} | self.required | self.optional

    def kind_of(self, name: str) -> str | None:
        """The kind of an array; None if no such array is expected."""
        number, slash, rest = name.partition("/")
        if slash and number.isascii() and number.isdecimal():
            return self.numbered.get(rest)
        return self.kinds().get(name)


def save_arrays(path: str | PathLike[str], arrays: StoredArrays) -> None:
    """Writes the arrays to a temporary file beside the target, then renames it.

    If writing fails, the old file stays as it was. Members are not compressed, so that the size of the
    file bounds the memory that reading it takes.
    """
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` if nothing fails; else an old one stays as it was.

    What is written is on the disk before the name changes, and the name is before this ends. A link
    stays and what it points to is replaced; the permissions of an old file are kept. A device or a pipe
    is written as it is.
    """
    with naming(path):
        # What is no file is opened by its own name: /dev/stdout leads to a pipe, which has none.
        old = _status(Path(path))
        is_file = old is None or stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)
        target = Path(os.path.realpath(path)) if is_file else Path(path)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, "")
    if old is not None and not stat.S_ISREG(old.st_mode):
        with target.open("wb") as file:
            yield file
        return
    with naming(path):
        # Its length does not depend on that of the target's name, which may be the longest allowed.
        part = target.with_name(f".optpess-{os.urandom(8).hex()}.part")
        file = part.open("xb")
    try:
        with file:
            if old is not None:
                part.chmod(stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        with naming(path):
            part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _status(target: Path) -> os.stat_result | None:
    """What the file system says of a file; None if there is none."""
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _check_regular(path: str | PathLike[str], status: os.stat_result) -> None:
    """Refuses what is no regular file: a device may have no end, a pipe no writer."""
    kinds = {stat.S_ISFIFO: "a named pipe", stat.S_ISSOCK: "a socket"}
    if not stat.S_ISREG(status.st_mode):
        found = next((name for is_kind, name in kinds.items() if is_kind(status.st_mode)), "a device")
        raise InvalidInputError(f"{path} is {found}; it must be a regular file")


def _sync_folder(folder: Path) -> None:
    """Puts the names of a folder on the disk, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows: the rename is enough
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without it
            raise
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Says in the caller's words that a file or its folder is not there, or is a folder."""
    try:
        yield
    except FileNotFoundError as error:
        folder = Path(path).parent
        missing = f"file {path}" if folder.is_dir() else f"folder {folder} for {path}"
        raise _numbered(FileNotFoundError(f"there is no {missing}"), error) from None
    except IsADirectoryError as error:
        raise _numbered(IsADirectoryError(f"{path} is a folder, not a file"), error) from None


def _numbered(made: OSError, given: OSError) -> OSError:
    made.errno = given.errno
    return made


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A regular file, open for reading. Devices, pipes and sockets are refused, without waiting."""
    with naming(path), open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        _check_regular(path, status)
        yield file


def _open_at_once(path: str, flags: int) -> int:
    # Without the flag, opening a named pipe waits for somebody who writes to it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def format_of(path: str | PathLike[str]) -> str:
    """The format that a file names, such as ``"optpess.Run/2"``; ``"missing"`` if it names none."""
    with _archive(path) as archive:
        return _format_in(path, archive, _members(path, archive))


def load_arrays(path: str | PathLike[str], fields: Fields) -> StoredArrays:
    """Reads exactly the arrays that ``fields`` describes."""
    with _archive(path) as archive:
        return _read_all(path, archive, fields)


class _Bounded:
    """A file of which one call reads at most so many bytes. The directory of an archive is read by one
    call, and takes twenty times its size in memory.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.most: int | None = _LARGEST_DIRECTORY

    def read(self, size: int = -1) -> bytes:
        if self.most is not None and size > self.most:
            raise ValueError(f"its directory has {size} bytes, more than {self.most}")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _archive(path: str | PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """An open file; one that is damaged is refused."""
    try:
        with reading(path) as file:
            bounded = _Bounded(file)
            with zipfile.ZipFile(cast(BinaryIO, bounded)) as archive:
                bounded.most = None
                yield archive
    except InvalidInputError:
        raise
    except _UNREADABLE as error:
        raise InvalidInputError(f"{path} is not a readable .npz file: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a seek to before the start
            raise
        raise InvalidInputError(f"{path} is not a readable .npz file: {error}") from error


def _members(path: str | PathLike[str], archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive, by their names. None is read yet."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise InvalidInputError(f"{path}: array {name!r} stands there twice")
        if member.compress_type != zipfile.ZIP_STORED:
            raise InvalidInputError(
                f"{path}: member {member.filename!r} is compressed; files must be uncompressed "
                "(numpy.savez)"
            )
        members[name] = member
    _check_directory(path, archive)
    return members


def _check_directory(path: str | PathLike[str], archive: zipfile.ZipFile) -> None:
    """Refuses an archive whose members do not lie one after the other, up to the directory that lists
    them. The directory has no checksum: a member that damage removed from it leaves a gap. Members that
    overlap would take more memory than the file has bytes.
    """
    file, end = archive.fp, 0
    assert file is not None
    for member in sorted(archive.infolist(), key=lambda each: each.header_offset):
        if member.header_offset != end:
            break
        file.seek(
            end + 26
        )  # where a member's own header has the lengths of its name and of what follows
        name, further = struct.unpack("<HH", file.read(4))
        end += 30 + name + further + member.compress_size
    else:
        if end == archive.start_dir:
            return
    raise InvalidInputError(f"{path} is damaged: its directory does not list all of its bytes once")


def _format_in(
    path: str | PathLike[str], archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]
) -> str:
    return str(_read(path, archive, members["format"])) if "format" in members else "missing"


def _read_all(path: str | PathLike[str], archive: zipfile.ZipFile, fields: Fields) -> StoredArrays:
    """All arrays of an archive. Names and sizes are checked before the first array is read."""
    members = _members(path, archive)
    _check_format(path, _format_in(path, archive, members), fields)
    for name in members:
        if fields.kind_of(name) is None:
            raise InvalidInputError(f"{path}: no such array is expected: {name!r}")
    for name in fields.required:
        if name not in members:
            raise InvalidInputError(f"{path} has no array {name!r}; found are {sorted(members)}")
    arrays = {name: _read(path, archive, member) for name, member in members.items()}
    for name, array in arrays.items():
        if array.dtype.kind != fields.kind_of(name):
            raise InvalidInputError(
                f"{path}: array {name!r} holds {array.dtype}; allowed is kind {fields.kind_of(name)}"
            )
    return arrays


def _check_format(path: str | PathLike[str], found: str, fields: Fields) -> None:
    """Refuses a file of another format, and says what reads it."""
    if found in (fields.format, *fields.earlier):
        return
    reader = _READERS.get(found.partition("/")[0])
    advice = f"; {reader} reads it" if reader and not _same_kind(found, fields) else ""
    raise InvalidInputError(
        f"{path} has the format {found!r}; only {fields.format!r} can be read here{advice}"
    )


def _same_kind(found_format: str, fields: Fields) -> bool:
    return found_format.partition("/")[0] == fields.format.partition("/")[0]


def _read(
    path: str | PathLike[str], archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> npt.NDArray[Any]:
    """One array. Its header must describe all bytes of the member, so that the archive's checksum, which
    is compared when the last byte is read, covers what is returned.
    """
    name = member.filename.removesuffix(".npy")
    try:
        with archive.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            read_header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(stream)
            # Python's integers do not overflow, so a header with a false size is refused before
            # anything of that size is allocated.
            claimed = dtype.itemsize
            for length in shape:
                claimed *= length
            held = member.file_size - stream.tell()
            if dtype.hasobject or claimed != held:
                raise InvalidInputError(
                    f"{path}: array {name!r} claims {dtype} of shape {shape}, {claimed} bytes, in a "
                    f"member with {held} bytes; pickled objects are never read"
                )
        with archive.open(member) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
            if stream.read(1):  # reaches the checksum of an array without elements too
                raise InvalidInputError(f"{path}: array {name!r} is followed by other bytes")
            return array
    except InvalidInputError:
        raise
    except _UNREADABLE as error:
        raise InvalidInputError(f"{path}: array {member.filename!r} cannot be read: {error}") from error
