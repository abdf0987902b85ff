"""Refusal, before the work, of plans that do not fit into the memory that is left."""

from __future__ import annotations

from pathlib import Path

from optpess.exceptions import InvalidInputError
from optpess.model import Shape

__all__ = ["check_memory"]

_MEMORY_FACTS = Path("/proc/meminfo")
# Smaller plans are not looked at: the answer would take longer than they do.
_LOOKED_AT_FROM = 2**28
_GIGABYTE = 1e9


def check_memory(shape: Shape, num_ends: int) -> None:
    """Refuses a plan that mixes ``num_ends`` deterministic policies if its tables need more memory than
    is available. Where the system does not say how much that is, nothing is refused.
    """
    places = shape.horizon * shape.num_states
    kinds = ((2**8, 1), (2**16, 2))
    width = next((size for most, size in kinds if shape.num_actions <= most), 4)
    # A search keeps one policy more than the ends, and values and arrivals of two steps.
    needed = places * ((num_ends + 1) * width + 8 * (num_ends - 1)) + 64 * shape.num_states * num_ends
    if needed < _LOOKED_AT_FROM:
        return
    available = _available()
    if available is not None and needed > available:
        raise InvalidInputError(
            f"a plan for {shape.horizon} steps and {shape.num_states} states takes about "
            f"{needed / _GIGABYTE:.1f} GB; {available / _GIGABYTE:.1f} GB are available"
        )


def _available() -> int | None:
    """Bytes of memory that could be had now, or None if the system does not say."""
    try:
        lines = _MEMORY_FACTS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
