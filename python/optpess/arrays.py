"""The types of the arrays that functions of this package take and return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from optpess import _core

__all__ = [
    "ActionArray",
    "ArrayLike",
    "BoolArray",
    "Columns",
    "CompressedRows",
    "FloatArray",
    "IndexArray",
    "IntArray",
    "PolicyLike",
    "SparseMatrix",
    "StoredArrays",
    "TransitionsLike",
]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
# Actions [H, S], as the compiled core returns them.
ActionArray: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
# Row and column numbers, as HiGHS takes them.
IndexArray: TypeAlias = npt.NDArray[np.int32]
# The arrays of a file, by name.
StoredArrays: TypeAlias = dict[str, npt.NDArray[Any]]
# The columns of a table, by name: 1-d arrays of one length.
Columns: TypeAlias = dict[str, npt.NDArray[Any]]

ArrayLike: TypeAlias = npt.ArrayLike
# [H, S, A], each row a distribution over actions.
PolicyLike: TypeAlias = npt.ArrayLike


@runtime_checkable
class CompressedRows(Protocol):
    """Sparse rows, such as a SciPy CSR matrix of shape (rows, S)."""

    @property
    def indptr(self) -> npt.ArrayLike:
        """Where each row begins, and where the last one ends."""
        ...

    @property
    def indices(self) -> npt.ArrayLike:
        """The successors."""
        ...

    @property
    def data(self) -> npt.ArrayLike:
        """Their probabilities."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, S)."""
        ...


class SparseMatrix(Protocol):
    """A sparse matrix of any SciPy format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns)."""
        ...

    def tocsr(self) -> CompressedRows:
        """The same matrix by rows."""
        ...


# [H, S, A, S], or [S, A, S] if the same at every step; a list of A matrices [S, S]; sparse rows; or
# checked once beforehand.
TransitionsLike: TypeAlias = (
    npt.ArrayLike
    | Sequence[npt.ArrayLike | SparseMatrix]
    | CompressedRows
    | SparseMatrix
    | _core.Transitions
)
