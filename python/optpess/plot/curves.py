"""Curves over replicates, and quantities: curves of several learners with what to compare them with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from optpess.arrays import FloatArray, IntArray
from optpess.plot.style import DASHED, SOLID, Style, wrapped
from optpess.run.record import Run

__all__ = ["Curve", "Quantity", "Reference", "nearest_constraints"]

# How lines to compare with are shown in a text.
_KEYS = {SOLID: "\N{EM DASH}", DASHED: "\N{EN DASH} \N{EN DASH}"}
# Of more constraints than this, those that come nearest to their limits are drawn.
_MOST_CONSTRAINTS = 4


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve over replicates, ``[T]`` each; NaN where there is nothing to draw."""

    episodes: IntArray
    middle: FloatArray
    """The median of the replicates."""
    low: FloatArray
    """The least of the replicates."""
    high: FloatArray
    """The greatest of the replicates."""
    least: FloatArray | None = None
    """The least of any episode since the last record point."""
    greatest: FloatArray | None = None
    """The greatest of any episode since the last record point."""

    @classmethod
    def of(
        cls,
        run: Run,
        values: FloatArray | None,
        least: FloatArray | None = None,
        greatest: FloatArray | None = None,
    ) -> Self | None:
        """The curve of values ``[R, T]``, with the least and the greatest of each window; None if the
        run has no such values.
        """
        if values is None:
            return None
        finite = np.where(np.isfinite(values), values, np.nan)
        with warnings.catch_warnings():  # a record point without a number is left out
            warnings.filterwarnings("ignore", message="All-NaN", category=RuntimeWarning)
            middle, low, high = (f(finite, axis=0) for f in (np.nanmedian, np.nanmin, np.nanmax))
        ends = (
            None if least is None else least.min(axis=0),
            None if greatest is None else greatest.max(axis=0),
        )
        return cls(run.episodes, middle, low, high, *ends)

    @property
    def end(self) -> tuple[float, float] | None:
        """The last point; None if there is none."""
        found = np.flatnonzero(np.isfinite(self.middle))
        return (float(self.episodes[found[-1]]), float(self.middle[found[-1]])) if len(found) else None

    def positive(self) -> Curve:
        """The positive part, for a logarithmic axis."""
        curves = (self.middle, self.low, self.high)
        return Curve(self.episodes, *(np.where(curve > 0.0, curve, np.nan) for curve in curves))


@dataclass(frozen=True, slots=True)
class Reference:
    """A horizontal line to compare with, and its name."""

    height: float
    text: str
    style: Style


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity of runs, drawn against the episodes."""

    title: str
    unit: str
    """The label of the vertical axis."""
    caption: str
    curves: dict[str, Curve]
    """By the names of the learners that have it."""
    references: dict[str, tuple[Reference, ...]]
    """What to compare each learner with."""
    missing: str
    """Why a learner has no curve."""
    log: bool = False
    """Whether the vertical axis is logarithmic, and only positive parts are drawn."""
    linear: bool = False
    """Whether the axis of the episodes is linear even if they span decades: a slope is then a rate."""
    probability: bool = False
    """Whether the vertical axis goes from 0 to 1."""
    root: bool = False
    """Whether the slope of a square root is drawn as a guide."""
    among_others: bool = False
    """Whether small panels show the other learners too."""
    notes: dict[str, str] = field(default_factory=dict)
    """What to say of a learner below its name."""

    @property
    def names(self) -> list[str]:
        """The learners that have a curve to draw."""
        return [name for name, curve in self.curves.items() if curve.end is not None]

    def of_those_who_have_it(self) -> Quantity:
        """The same without the learners that have no curve; all of them if none has."""
        kept = self.names or list(self.references)
        return replace(self, references={name: self.references[name] for name in kept})

    def label(self, name: str) -> str:
        """The name of a learner, with what there is to say of it."""
        note = self.notes.get(name)
        return wrapped(name) + (f"\n{note}" if note else "")

    @property
    def key(self) -> list[str]:
        """What the lines to compare with are, a text for each."""
        lines = list(dict.fromkeys(line for lines in self.references.values() for line in lines))
        words = [line.text.split()[0] for line in lines]
        numbers = len(set(words)) == len(words)  # else they differ from learner to learner
        texts = dict.fromkeys(
            f"{_KEYS[line.style]} {line.text if numbers else word}"
            for line, word in zip(lines, words, strict=True)
        )
        return [*texts, *(["··· slope of √K"] * self.root)]


def nearest_constraints(excess: FloatArray) -> list[int]:
    """The constraints that are drawn: all, or those that come nearest to their limits. The excess over
    each limit, ``[M]``, is in parts of the range of the cost.
    """
    return sorted(np.argsort(-excess, kind="stable")[:_MOST_CONSTRAINTS].tolist())
