"""The record of a rollout: return, cost, length, source and certified cost of every episode."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

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


class EpisodeList:
    """Episodes as they come, in little memory. Certified costs are in parts of the cost ranges."""

    __slots__ = ("certified", "costs", "lengths", "names", "num_constraints", "returns", "sources")

    def __init__(self, num_constraints: int) -> None:
        self.num_constraints = num_constraints
        self.returns, self.lengths = array("d"), array("q")
        self.costs, self.certified = array("d"), array("d")  # [n, M]
        self.sources = array("b")  # positions in names
        self.names: list[str] = []

    def __len__(self) -> int:
        return len(self.returns)

    def add(
        self,
        length: int,
        total_reward: float,
        total_costs: list[float],
        source: str,
        certified: list[float] | None,
    ) -> None:
        """Adds an episode, as the core tells of it."""
        if source not in self.names:
            self.names.append(source)
        self.returns.append(total_reward)
        self.costs.extend(total_costs)
        self.certified.extend([np.nan] * self.num_constraints if certified is None else certified)
        self.sources.append(self.names.index(source))
        self.lengths.append(length)  # the last: it counts the complete episodes

    def last(self, first: int) -> tuple[int, float, tuple[float, ...], int, str]:
        """The number of the last episode, its return, costs, length and source."""
        costs = tuple(self.costs[-self.num_constraints :])
        number = first + len(self.returns) - 1
        return number, self.returns[-1], costs, self.lengths[-1], self.names[self.sources[-1]]

    def to_arrays(self) -> StoredArrays:
        """All episodes as arrays for a file."""
        return {
            "returns": np.array(self.returns),
            "lengths": np.array(self.lengths, dtype=np.int64),
            "costs": np.array(self.costs).reshape(-1, self.num_constraints),
            "certified": np.array(self.certified).reshape(-1, self.num_constraints),
            "sources": np.array(self.sources, dtype=np.int64),
            "source_names": np.array(self.names or [""]),
        }

    @classmethod
    def from_arrays(cls, arrays: StoredArrays, num_constraints: int) -> Self:
        """Episodes from the arrays of a file, checked."""
        made = cls(num_constraints)
        count = len(arrays["returns"])
        table = (count, num_constraints)
        expected: dict[str, tuple[int, ...]] = {
            "returns": (count,),
            "lengths": (count,),
            "sources": (count,),
        }
        expected |= {"costs": table, "certified": table}
        for name, shape in expected.items():
            if arrays[name].shape != shape:
                raise InvalidInputError(f"stored {name} has shape {arrays[name].shape}, not {shape}")
        made.names = [str(name) for name in arrays["source_names"].ravel() if name]
        sources = arrays["sources"]
        if count and not ((sources >= 0) & (sources < len(made.names))).all():
            raise InvalidInputError("stored sources name no source")
        for name in ("returns", "lengths", "costs", "certified", "sources"):
            getattr(made, name).extend(arrays[name].ravel().tolist())
        return made


@dataclass(frozen=True, eq=False)
class Rollout:
    """What happened in n episodes of an environment, with M constraints, in the user's units.

    Sums of rewards and costs are those of single episodes, which vary. What a learner promises is about
    expected costs: compare averages with the limit, or ``certified_costs``.
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
        # An interrupt may come while an episode is added.
        count, constraints = len(record.lengths), record.num_constraints
        arrays = record.to_arrays() if len(record) == count else _complete(record)
        units = learner.units
        certified = units.cost_values_out(arrays["certified"], learner.shape.horizon)
        return cls(
            episodes=first + np.arange(count, dtype=np.int64),
            returns=arrays["returns"],
            costs=arrays["costs"].reshape(count, constraints),
            lengths=arrays["lengths"],
            sources=[record.names[source] for source in record.sources[:count]],
            certified_costs=certified,
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


def _complete(record: EpisodeList) -> StoredArrays:
    """The arrays of the episodes that were added completely."""
    count, constraints = len(record.lengths), record.num_constraints
    whole = EpisodeList(constraints)
    whole.names = record.names
    whole.returns, whole.lengths = record.returns[:count], record.lengths
    whole.costs = record.costs[: count * constraints]
    whole.certified = record.certified[: count * constraints]
    whole.sources = record.sources[:count]
    return whole.to_arrays()
