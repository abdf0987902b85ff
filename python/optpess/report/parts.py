"""The parts of a report: which records share pictures and a table."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from optpess.checks import described
from optpess.exceptions import InvalidInputError
from optpess.report.rollouts import RolloutPart
from optpess.report.runs import RunsPart
from optpess.run.compare import Comparison
from optpess.run.record import Run
from optpess.run.rollout_record import Rollout

__all__ = ["parts_of"]


def parts_of(records: Sequence[object]) -> list[RunsPart | RolloutPart]:
    """A part for each comparison and rollout, and one for all runs that can be compared."""
    if not records:
        raise InvalidInputError("records is empty; give at least one Run, Comparison or Rollout")
    parts: list[RunsPart | RolloutPart] = []
    for number, record in enumerate(records):
        if isinstance(record, Rollout):
            parts.append(RolloutPart(record))
        elif isinstance(record, Comparison):
            if not record.runs:
                raise InvalidInputError(f"records[{number}] is a Comparison without runs")
            parts.append(RunsPart(record.runs, record.seconds))
        elif not isinstance(record, Run):
            raise InvalidInputError(_refusal(number, record))
        elif not any(isinstance(part, RunsPart) and part.add(record) for part in parts):
            parts.append(RunsPart.of(record))
    return parts


def _refusal(number: int, record: object) -> str:
    is_path = isinstance(record, str | PathLike)
    advice = "; op.load_run and op.Comparison.load read files" if is_path else ""
    return (
        f"records[{number}] is {described(record)}; it must be a Run, a Comparison or a Rollout{advice}"
    )
