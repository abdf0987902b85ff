"""Writes arrays to ``.npz`` files and reads them back with checks.

A file is refused if it contains pickled objects, a member that claims to be larger than the file, or a
name or element type that was not expected.
"""

from __future__ import annotations

import errno
import os
import struct
import tokenize
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from optpess.arrays import StoredArrays
from optpess.exceptions import InvalidInputError

__all__ = ["Fields", "load_arrays", "naming", "replacing", "save_arrays"]

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
    """A new file that takes the place of ``path`` if nothing fails; else an old one stays as it was."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.urandom(8).hex()}.part")
    try:
        with naming(path):
            file = part.open("xb")
        with file:
            yield file
        with naming(path):
            part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


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


def load_arrays(path: str | PathLike[str], fields: Fields) -> StoredArrays:
    """Reads exactly the arrays that ``fields`` describes."""
    try:
        with naming(path), zipfile.ZipFile(path) as archive:
            arrays = {
                name.removesuffix(".npy"): _read(path, archive, name) for name in archive.namelist()
            }
    except InvalidInputError:
        raise
    except _UNREADABLE as error:
        raise InvalidInputError(f"{path} is not a readable .npz file: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a seek to before the start
            raise
        raise InvalidInputError(f"{path} is not a readable .npz file: {error}") from error
    found_format = str(arrays.get("format", "missing"))
    if found_format not in (fields.format, *fields.earlier):
        reader = _READERS.get(found_format.partition("/")[0])
        advice = f"; {reader} reads it" if reader and not _same_kind(found_format, fields) else ""
        raise InvalidInputError(
            f"{path} has the format {found_format!r}; only {fields.format!r} can be read here{advice}"
        )
    for name in {"format", *fields.required} - arrays.keys():
        raise InvalidInputError(f"{path} has no array {name!r}; found are {sorted(arrays)}")
    for name, array in arrays.items():
        kind = fields.kind_of(name)
        if array.dtype.kind != kind:
            allowed = kind or "nothing: no such array is expected"
            raise InvalidInputError(
                f"{path}: array {name!r} holds {array.dtype}; allowed is kind {allowed}"
            )
    return arrays


def _same_kind(found_format: str, fields: Fields) -> bool:
    return found_format.partition("/")[0] == fields.format.partition("/")[0]


def _read(path: str | PathLike[str], archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED:
        raise InvalidInputError(
            f"{path}: member {name!r} is compressed; files must be uncompressed (numpy.savez)"
        )
    size = Path(path).stat().st_size
    if member.file_size > size:
        raise InvalidInputError(
            f"{path}: member {name!r} claims {member.file_size} bytes in a file of {size}"
        )
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
            if dtype.hasobject or claimed > member.file_size:
                raise InvalidInputError(
                    f"{path}: array {name!r} claims {dtype} of shape {shape} in a member of "
                    f"{member.file_size} bytes; pickled objects are never read"
                )
        with archive.open(member) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except InvalidInputError:
        raise
    except _UNREADABLE as error:
        raise InvalidInputError(f"{path}: array {name!r} cannot be read: {error}") from error
