"""The record of a rollout: return, cost, length, source and certified cost of every episode."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from optpess.arrays import Columns, FloatArray, IntArray, StoredArrays
from optpess.display import counted, html_folded, html_paragraph, html_table
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.terms import Guarantee
from optpess.model.units import Units
from optpess.run.tables import columns_of_axis, facts, markdown, to_frame, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EpisodeList", "Rollout"]

_BASELINE = ("Baseline", "BaselineEstimation")


# The sum of rewards of an episode, the sums of its costs, the source of its policy, the certified costs.
_Row: TypeAlias = tuple[float, list[float], str, list[float] | None]

# So many rows are kept as Python's objects; more of them are packed into arrays.
_ROWS_TO_PACK = 4096


class EpisodeList:
    """Episodes as they come, in little memory. Certified costs are in parts of the cost ranges.

    An episode is counted by the learner and added here in one step that no interrupt divides: the row
    goes from the core into a list, ``fresh``, without a line of Python in between. The length is added
    before, so there may be one too many. Rows are packed into arrays by a single assignment.
    """

    __slots__ = ("_kept", "lengths", "num_constraints")

    def __init__(self, num_constraints: int) -> None:
        self.num_constraints = num_constraints
        self.lengths = array("q")
        self._kept: tuple[tuple[StoredArrays, ...], list[_Row]] = ((), [])

    @property
    def fresh(self) -> list[_Row]:
        """The rows that have not been packed."""
        return self._kept[1]

    def __len__(self) -> int:
        blocks, rows = self._kept
        return sum(len(block["returns"]) for block in blocks) + len(rows)

    def pack(self) -> None:
        """Packs the rows if there are many."""
        blocks, rows = self._kept
        if len(rows) >= _ROWS_TO_PACK:
            self._kept = ((*blocks, self._packed(rows)), [])

    def last(self, number: int) -> tuple[int, float, tuple[float, ...], int, str]:
        """Of the last episode, which has this number: return, costs, length and source."""
        total_reward, total_costs, source, _ = self.fresh[-1]
        return number, total_reward, tuple(total_costs), self.lengths[-1], source

    def rows_from(self, start: int) -> Iterator[tuple[_Row, int]]:
        """The rows of the episodes from this place on, with their lengths."""
        arrays = self.to_arrays(start)
        columns = (arrays[name].tolist() for name in ("returns", "costs", "sources", "certified"))
        for *row, length in zip(*columns, arrays["lengths"].tolist(), strict=True):
            yield (row[0], row[1], row[2], row[3]), length

    def to_arrays(self, start: int = 0) -> StoredArrays:
        """The episodes from this place on, as arrays for a file."""
        blocks, rows = self._kept
        count, skipped = len(self), 0
        for block in blocks:
            if skipped + len(block["returns"]) > start:
                break
            skipped += len(block["returns"])
            blocks = blocks[1:]
        parts = [*blocks, self._packed(rows)]
        made = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        made = {name: column[start - skipped :] for name, column in made.items()}
        return made | {"lengths": np.array(self.lengths[start:count], dtype=np.int64)}

    def _packed(self, rows: list[_Row]) -> StoredArrays:
        size = (len(rows), self.num_constraints)
        nothing = [np.nan] * self.num_constraints
        return {
            "returns": np.array([row[0] for row in rows], dtype=np.float64),
            "costs": np.array([row[1] for row in rows], dtype=np.float64).reshape(size),
            "sources": np.array([row[2] for row in rows], dtype=np.str_),
            "certified": np.array([row[3] or nothing for row in rows], dtype=np.float64).reshape(size),
        }

    @classmethod
    def from_arrays(cls, arrays: StoredArrays, num_constraints: int) -> Self:
        """Episodes from the arrays of a file, checked."""
        made = cls(num_constraints)
        count = len(arrays["returns"])
        line, table = (count,), (count, num_constraints)
        shapes = {"returns": line, "lengths": line, "sources": line, "costs": table, "certified": table}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise InvalidInputError(f"stored {name} has shape {arrays[name].shape}, not {shape}")
        made.lengths.extend(arrays["lengths"].tolist())
        if count:
            kept = {name: arrays[name] for name in ("returns", "costs", "sources", "certified")}
            made._kept = ((kept,), [])
        return made


@dataclass(frozen=True, eq=False)
class Rollout:
    """What happened in n episodes of an environment, with M constraints, in the user's units.

    Sums of rewards and costs are those of single episodes, which vary. What a learner promises is about
    expected costs: compare averages with the limit, or ``certified_costs``.

    Example:
        >>> import optpess as op
        >>> class Still:  # one state; the action pays and costs its number
        ...     num_states, num_actions = 1, 2
        ...     def reset(self):
        ...         return 0
        ...     def step(self, action):
        ...         return 0, float(action), float(action), False
        >>> env = Still()
        >>> shape = op.environments.sizes(env, horizon=1)
        >>> safe = op.policy_from_actions([[0] * shape.num_states], num_actions=2)
        >>> learner = op.AlwaysBaseline(shape=shape, initial=0, num_episodes=10,
        ...     baseline=op.SafeBaseline(safe, op.SafetyMargin(cost_limit=0.5, safe_cost=0.0)))
        >>> result = op.rollout(learner, env, episodes=10)
        >>> len(result), float(result.costs.sum()), sorted(result.columns())[:3]
        (10, 0.0, ['certified_cost', 'cost', 'episode'])
    """

    episodes: IntArray
    """The numbers of the episodes, counted by the learner from 0, ``[n]``."""
    returns: FloatArray
    """The sum of the rewards of each episode, ``[n]``."""
    costs: FloatArray
    """The sums of its costs, ``[n, M]``."""
    lengths: IntArray
    """How many steps each episode took until its end, at most H, ``[n]``."""
    sources: list[str] = field(repr=False)
    """Where each policy came from, as in :class:`Deployment`, ``[n]``."""
    certified_costs: FloatArray
    """The upper bounds on the expected costs of what was deployed, ``[n, M]``; NaN for the baseline of
    OptPess-LP and for learners that certify nothing."""
    cost_limits: FloatArray
    """The learner's limits, ``[M]``."""
    units: Units
    """The ranges of the learner's rewards and costs."""
    guarantee: Guarantee | None
    """What the learner promises."""
    parameters: dict[str, Any] = field(repr=False)
    """The arguments of the learner and of the rollout."""

    @classmethod
    def of(cls, record: EpisodeList, first: int, learner: Learner, facts: dict[str, Any]) -> Self:
        """The record as arrays."""
        arrays, units = record.to_arrays(), learner.units
        count = len(arrays["returns"])
        return cls(
            episodes=first + np.arange(count, dtype=np.int64),
            returns=arrays["returns"],
            costs=arrays["costs"],
            lengths=arrays["lengths"],
            sources=arrays["sources"].tolist(),
            certified_costs=units.cost_values_out(arrays["certified"], learner.shape.horizon),
            cost_limits=np.array(learner._limits),
            units=units,
            guarantee=learner.guarantee,
            parameters=learner.parameters | facts | {"episodes": count, "first_episode": first},
        )

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def on_baseline(self) -> FloatArray:
        """Whether the baseline was played, as 0 or 1, ``[n]``."""
        return np.array([source in _BASELINE for source in self.sources], dtype=np.float64)

    def columns(self) -> Columns:
        """One row for each episode: 1-d arrays by name."""
        return {
            "episode": self.episodes,
            "return": self.returns,
            **columns_of_axis("cost", self.costs),
            "length": self.lengths,
            "source": np.array(self.sources, dtype=np.str_),
            **columns_of_axis("certified_cost", self.certified_costs),
        }

    def to_frame(self) -> Any:
        """The episodes as a pandas DataFrame."""
        return to_frame(self.columns(), "Rollout.to_frame")

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Writes the episodes to a CSV file, a line each."""
        write_csv(path, self.columns())

    def summary(self) -> dict[str, Any]:
        """Totals: mean return and costs with standard errors, limits, share on the baseline."""
        if not len(self):
            return {"episodes": 0, "guarantee": self.guarantee}
        root = np.sqrt(len(self))
        return {
            "episodes": len(self),
            "mean return": float(self.returns.mean()),
            "mean return, standard error": float(self.returns.std() / root),
            "mean costs": self.costs.mean(axis=0).tolist(),
            "mean costs, standard error": (self.costs.std(axis=0) / root).tolist(),
            "cost limits": self.cost_limits.tolist(),
            "last certified costs": self.certified_costs[-1].tolist(),
            "mean length": float(self.lengths.mean()),
            "share on the baseline": float(self.on_baseline.mean()),
            "guarantee": self.guarantee,
        }

    def to_markdown(self) -> str:
        """Totals and parameters as a table in Markdown."""
        rows = [*facts(self.summary()).items(), *facts(self.parameters).items()]
        return markdown(("", "value"), rows)

    def _repr_html_(self) -> str:
        """Totals and parameters, for notebooks."""
        algorithm = self.parameters.get("algorithm", "a learner")
        return (
            html_paragraph(f"{algorithm}: {counted(len(self), 'episode')}")
            + html_table(("total", "value"), list(facts(self.summary()).items()))
            + html_folded("parameters", facts(self.parameters))
        )

    def plot(self) -> Figure:
        """Running averages of costs, against the limits, and of returns, as a matplotlib figure."""
        from optpess.plot import plot_rollout  # lazy: plot

        return plot_rollout(self)

    def __repr__(self) -> str:
        algorithm = self.parameters.get("algorithm", "a learner")
        if not len(self):
            return f"Rollout({algorithm}, no episode)"
        costs = ", ".join(
            f"{mean:.4g} (limit {limit:.4g})"
            for mean, limit in zip(self.costs.mean(axis=0), self.cost_limits, strict=True)
        )
        return (
            f"Rollout({algorithm}, {len(self)} episodes, mean return {self.returns.mean():.4g}, "
            f"mean cost {costs}, {self.on_baseline.mean():.1%} on the baseline, "
            f"guarantee={self.guarantee})"
        )
