"""The log of a rollout: a CSV file with a line for each episode, written while it runs."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from optpess.arrays import FloatArray
from optpess.exceptions import InvalidInputError
from optpess.run.rollout_record import EpisodeList
from optpess.storage import naming

__all__ = ["EpisodeLog"]


class EpisodeLog:
    """Appends the episodes of a record to a file. A file that exists must end where they begin."""

    def __init__(
        self, path: Path, record: EpisodeList, first: int, cost_out: Callable[[FloatArray], FloatArray]
    ) -> None:
        self._record, self._first, self._cost_out = record, first, cost_out
        many = range(record.num_constraints) if record.num_constraints > 1 else [""]
        ends = [f"_{m}" if m != "" else "" for m in many]
        costs, certified = ([f"{name}{end}" for end in ends] for name in ("cost", "certified_cost"))
        header = ["episode", "return", *costs, "length", "source", *certified]
        self._written = len(record)  # episodes of a checkpoint
        kept = _lines_before(path, header, first + len(record), may_go_back=len(record) > 0)
        with naming(path):
            self._file: IO[str] = path.open("a", newline="", encoding="utf-8")
        if kept is not None:
            self._file.truncate(kept)
        self._writer = csv.writer(self._file, lineterminator="\n")
        if self._file.tell() == 0:
            self._writer.writerow(header)

    def write(self) -> None:
        """Writes the episodes that have been added since the last time."""
        record, m = self._record, self._record.num_constraints
        start, end = self._written, len(record.lengths)
        certified = np.array(record.certified[start * m : end * m]).reshape(-1, m)
        for place, bounds in zip(range(start, end), self._cost_out(certified).tolist(), strict=True):
            costs = record.costs[place * m : (place + 1) * m]
            source = record.names[record.sources[place]]
            facts = (self._first + place, record.returns[place], *costs, record.lengths[place], source)
            self._writer.writerow((*facts, *("" if bound != bound else bound for bound in bounds)))
        self._written = end
        self._file.flush()

    def close(self) -> None:
        """Writes what is left."""
        try:
            self.write()
        finally:
            self._file.close()


def _lines_before(path: Path, header: list[str], episode: int, *, may_go_back: bool) -> int | None:
    """The size of a log up to an episode, which must be the next; None if there is no log.

    A log may be ahead of the checkpoint that a rollout goes on from: what is beyond is played again.
    """
    if not path.exists() or path.stat().st_size == 0:
        return None
    size, last = 0, None
    with path.open("rb") as file:
        for number, raw in enumerate(file):
            fields = raw.decode("utf-8", errors="replace").rstrip("\n").split(",")
            if number == 0:
                if fields != header:
                    raise InvalidInputError(
                        f"log is {str(path)!r}, which exists and is no log of such a rollout; choose "
                        "another name, or remove it"
                    )
            elif not raw.endswith(b"\n") or not fields[0].isdigit():
                break  # a line that was cut off
            elif may_go_back and int(fields[0]) >= episode:
                break
            else:
                last = int(fields[0])
            size += len(raw)
    if last is not None and last != episode - 1:
        raise InvalidInputError(
            f"log is {str(path)!r}, which exists and ends with episode {last}; this rollout begins with "
            f"episode {episode}: choose another name, or remove it"
        )
    return size
