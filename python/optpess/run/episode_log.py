"""The log of a rollout: a CSV file with a line for each episode, written while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from optpess.arrays import FloatArray
from optpess.exceptions import InvalidInputError
from optpess.run.rollout_record import EpisodeList
from optpess.storage import naming

__all__ = ["EpisodeLog"]


class EpisodeLog:
    """Writes the episodes of a record to a file, each once.

    A file that exists must be the log of the episodes before. After a stop it may miss some of the
    record, which are then written, or be ahead of it, if the process was killed: what is ahead is played
    again. Making this object reads the file; only :meth:`open` changes it.

    Args:
        path: the file.
        record: the episodes, to which more will be added.
        first: the number of the first episode of the record.
        cost_out: from certified costs ``[n, M]`` in parts of the ranges to the user's units.
        resumed: whether the record comes from a checkpoint.
    """

    def __init__(
        self,
        path: Path,
        record: EpisodeList,
        first: int,
        cost_out: Callable[[FloatArray], FloatArray],
        *,
        resumed: bool,
    ) -> None:
        self._path, self._record, self._first, self._cost_out = path, record, first, cost_out
        many = record.num_constraints > 1
        ends = [f"_{m}" if many else "" for m in range(record.num_constraints)]
        costs, certified = ([f"{name}{end}" for end in ends] for name in ("cost", "certified_cost"))
        self._header = ",".join(["episode", "return", *costs, "length", "source", *certified]) + "\n"
        # How many episodes of the record are in the file, and where they end: one object, so that an
        # interrupt finds both of before or both of after.
        self._place = self._kept(resumed)
        self._file: BinaryIO | None = None

    def open(self) -> None:
        """Opens the file and removes what is not kept of it."""
        size = self._place[1]
        with naming(self._path):
            self._file = self._path.open("r+b" if self._path.exists() else "w+b")
        self._file.truncate(size)
        if size == 0:
            self._file.write(self._header.encode())
            self._file.flush()
            self._place = (self._place[0], len(self._header))

    def write(self) -> None:
        """Writes the episodes that have been added since the last time."""
        if self._file is None:
            return
        written, size = self._place
        lines = list(self._lines(written))
        if lines:
            data = "".join(lines).encode()
            self._file.seek(size)  # an interrupted call is repeated at the same place
            self._file.write(data)
            self._file.flush()
            self._place = (written + len(lines), size + len(data))

    def close(self) -> None:
        """Writes what is left. May be called again."""
        try:
            self.write()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _lines(self, start: int) -> Iterator[str]:
        """The lines of the episodes of the record from this place on."""
        rows = list(self._record.rows_from(start))
        certified = np.array([row[3] for row, _ in rows]).reshape(-1, self._record.num_constraints)
        bounds = self._cost_out(certified).tolist()
        for place, ((row, length), bound) in enumerate(zip(rows, bounds, strict=True), start):
            total_reward, total_costs, source, _ = row
            ends = ("" if each != each else each for each in bound)
            cells = (self._first + place, total_reward, *total_costs, length, source, *ends)
            yield ",".join(map(str, cells)) + "\n"

    def _kept(self, resumed: bool) -> tuple[int, int]:
        """How many episodes of the record the file has, and its size up to there."""
        with naming(self._path):
            self._path.parent.stat()
        if not self._path.exists() or self._path.stat().st_size == 0:
            return 0, 0
        own = self._lines(0) if resumed else iter(())
        size, place, last = 0, 0, None
        with naming(self._path), self._path.open("rb") as file:
            for number, raw in enumerate(file):
                text = raw.decode("utf-8", errors="replace")
                if number == 0:
                    if text != self._header:
                        raise self._refused("is no log of such a rollout")
                elif not text.endswith("\n") or not (episode := text.partition(",")[0]).isdecimal():
                    break  # a line that was cut off
                else:
                    last = int(episode)
                    if resumed and last >= self._first:
                        expected = next(own, None)
                        if expected is None:
                            break  # ahead of the checkpoint
                        if text != expected:
                            raise self._refused(f"tells of another episode {last} than the checkpoint")
                        place += 1
                size += len(raw)
        if place == 0 and last is not None and last != self._first - 1:
            raise self._refused(
                f"ends with episode {last}; this rollout begins with episode {self._first}"
            )
        return place, size

    def _refused(self, reason: str) -> InvalidInputError:
        return InvalidInputError(
            f"log is {str(self._path)!r}, which exists and {reason}: choose another name, or remove it"
        )
