"""Runs several learners on one model and puts the results into one table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.run.record import Run
from optpess.run.simulate import simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare"]

_COLUMNS = {
    "learner": "learner",
    "confidence": "confidence",
    "regret": "regret",
    "weak_violation": "weak violation",
    "strong_violation": "strong violation",
    "violating_episodes": "violating episodes",
    "worst_violation": "worst violation",
    "microseconds": "us per episode",
    "guarantee": "guarantee",
    "growth_exponent": "regret exponent",
    "weak_exponent": "weak exponent",
    "strong_exponent": "strong exponent",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of several learners on the same model with the same seed."""

    runs: dict[str, Run]
    """The run of each learner, by name."""
    seconds: dict[str, float]
    """Processor time of each run, on one thread, all replicates together."""

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for each learner, at the last episode.

        ``learner`` is its name, ``confidence`` its confidence rule. ``regret``, ``weak_violation``,
        ``strong_violation`` and ``violating_episodes`` are means over replicates; ``worst_violation``
        is the largest of any replicate. ``microseconds`` is the processor time of an episode,
        ``guarantee`` that of the learner or None. ``growth_exponent`` (of the regret),
        ``weak_exponent`` and ``strong_exponent`` (of the violations) are :meth:`Run.growth_exponent`
        over the last decade: median, least and largest over replicates, NaN if the curve of a replicate
        is not positive.
        """
        return [self._row(name, run) for name, run in self.runs.items()]

    def _row(self, name: str, run: Run) -> dict[str, Any]:
        episodes = int(run.episodes[-1]) * len(run.replicates)
        return {
            "learner": name,
            "confidence": run.parameters.get("confidence"),
            "regret": float(run.reward_regret[:, -1].mean()),
            "weak_violation": float(run.weak_violation[:, -1].mean()),
            "strong_violation": float(run.strong_violation[:, -1].mean()),
            "violating_episodes": float(run.violating_episodes.mean()),
            "worst_violation": float(run.worst_violation.max()),
            "microseconds": 1e6 * self.seconds[name] / episodes,
            "guarantee": run.guarantee,
            "growth_exponent": _spread(run, "reward_regret"),
            "weak_exponent": _spread(run, "weak_violation"),
            "strong_exponent": _spread(run, "strong_violation"),
        }

    def to_markdown(self) -> str:
        """The table in Markdown."""
        lines = [
            "| " + " | ".join(_COLUMNS.values()) + " |",
            "| " + " | ".join("---" for _ in _COLUMNS) + " |",
        ]
        for row in self.table:
            cells = (_shown(row[name]) for name in _COLUMNS)
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Regret, violations and multipliers of all runs in the same panels, as a matplotlib figure."""
        from optpess.plot import plot_runs  # lazy: plot

        return plot_runs(self.runs)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.runs)})"


def compare(
    model: CMDP,
    learners: Mapping[str, Learner],
    *,
    replicates: int = 1,
    seed: int = 0,
    episodes: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Runs every learner on the model, one after the other, with the same seed.

    Each runs on one thread, so that times can be compared.

    Args:
        model: the true model, with the learners' limits.
        learners: by their names in the table. They are copied, not changed.
        replicates: how many replicates of each learner.
        seed: the seed of the random numbers, the same for all.
        episodes: how many episodes each plays; None for all that it has left. It must be given if a
            learner has no ``num_episodes``.
        progress: whether to show progress bars on a terminal.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> given = dict(shape=model.shape, initial=model.initial, num_episodes=500,
        ...             margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135),
        ...             confidence=op.Scaled(0.01))
        >>> found = op.compare(model, {
        ...     "ours": op.OptPessPrimalDual(**given), "free": op.UnconstrainedOptimistic(**given)})
        >>> [row["learner"] for row in found.table]
        ['ours', 'free']
    """
    if not learners:
        raise InvalidInputError("learners is empty; there is nothing to compare")
    runs, seconds = {}, {}
    for name, learner in learners.items():
        start = time.process_time()
        runs[name] = simulate(
            model,
            learner,
            replicates=replicates,
            seed=seed,
            threads=1,
            episodes=episodes,
            progress=progress,
        )
        seconds[name] = time.process_time() - start
    return Comparison(runs, seconds)


def _spread(run: Run, curve: str) -> tuple[float, float, float]:
    """Median, least and largest exponent over replicates."""
    slopes = run.growth_exponent(of=curve)
    return float(np.median(slopes)), float(slopes.min()), float(slopes.max())


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        middle, least, most = value
        return "-" if np.isnan(middle) else f"{middle:.2f} ({least:.2f} to {most:.2f})"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "none" if value is None else str(value)
