"""How many episodes of a run were above a limit, as a share and in words."""

from __future__ import annotations

from optpess.display import counted
from optpess.run.record import Run

__all__ = ["above_text", "episodes_played", "share_above"]

# Shares nearer to nothing or to everything than this are said as numbers.
_LEAST_SHARE = 0.005


def episodes_played(run: Run) -> int:
    """The episodes of all replicates."""
    return int(run.episodes[-1]) * len(run.replicates)


def share_above(run: Run) -> float:
    """The share of the episodes whose expected cost was above a limit."""
    return float(run.violating_episodes.sum()) / episodes_played(run)


def above_text(run: Run) -> str:
    """The same in words: none, 54 % of episodes, 12 of 80,000 episodes, all episodes."""
    played, count = episodes_played(run), int(run.violating_episodes.sum())
    if count in (0, played):
        return "all episodes" if count else "none"
    if count < _LEAST_SHARE * played:
        return f"{count:,} of {counted(played, 'episode')}"
    if played - count < _LEAST_SHARE * played:
        return f"all but {played - count:,} of {counted(played, 'episode')}"
    return f"{100.0 * count / played:.0f} % of episodes"
