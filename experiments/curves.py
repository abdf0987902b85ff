"""Keeps runs in small files: fewer record points, curves in single precision, compressed.

The files hold what figures are drawn from. Totals are exact. The model and the learner, with which a run
could be made again, are left out.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optpess as op
from optpess.run import files
from optpess.run.origin import Origin

# Means over the window of a record point, which ends there; least and greatest of it.
MEANS = ("deployed_value", "deployed_cost", "baseline_share")
LEAST = ("deployed_value_least", "deployed_cost_least")
GREATEST = ("deployed_value_greatest", "deployed_cost_greatest")
# What a run shows at a record point.
AT_POINTS = (*files.CURVES, "signed_violation", "gain", "weight", "certified_cost")
# The arrays of a file, and their types.
TYPES = {"curves": np.float32, "totals": np.float64, "counts": np.int64}


def thinned(run: op.Run, points: int) -> op.Run:
    """The run with at most this many record points. Windows are joined: their means are weighted by
    their episodes, least and greatest are those of all of them.
    """
    last = len(run.episodes) - 1
    kept = np.unique(np.linspace(0, last, min(points, last + 1)).round().astype(np.int64))
    first = np.concatenate(([0], kept[:-1] + 1))  # the first window of each group
    lengths = np.diff(run.episodes, prepend=0)
    changed: dict[str, Any] = {"episodes": run.episodes[kept]}

    def present(names: tuple[str, ...]) -> list[tuple[str, Any]]:
        return [(name, getattr(run, name)) for name in names if getattr(run, name) is not None]

    for name, curve in present(AT_POINTS):
        changed[name] = curve[:, kept]
    for name, curve in present(LEAST):
        changed[name] = np.minimum.reduceat(curve, first, axis=1)
    for name, curve in present(GREATEST):
        changed[name] = np.maximum.reduceat(curve, first, axis=1)
    for name, curve in present(MEANS):
        across = (slice(None),) + (np.newaxis,) * (curve.ndim - 2)
        sums = np.add.reduceat(curve * lengths[across], first, axis=1)
        changed[name] = sums / np.add.reduceat(lengths, first)[across]
    return dataclasses.replace(run, **changed, traces=None, _learners=None, _origin=None)


def with_origin(run: op.Run, model: op.CMDP, learner: op.Learner) -> op.Run:
    """The run with the model and the learner that it started from, of which a figure tells when the
    learner was expected to leave its baseline.
    """
    return dataclasses.replace(run, _origin=Origin((model, learner)))


def save(path: Path, runs: Mapping[str, op.Run], points: int = 60) -> None:
    """Writes thinned runs to one file."""
    index = []
    parts: dict[str, list[Any]] = {kind: [] for kind in TYPES}
    for name, run in runs.items():
        arrays = files.arrays_of(thinned(run, points))
        facts = json.loads(str(arrays.pop("facts")))
        index.append([name, facts, [[key, array.shape] for key, array in arrays.items()]])
        for key, array in arrays.items():
            parts[kind_of(key)].append(array.ravel())
    joined = {kind: np.concatenate(each).astype(TYPES[kind]) for kind, each in parts.items()}
    np.savez_compressed(path, index=np.array(json.dumps(index).encode()), **joined)


def load(path: Path) -> dict[str, op.Run]:
    """The runs of a file written by :func:`save`."""
    with np.load(path, allow_pickle=False) as stored:
        index = json.loads(stored["index"].item())
        rest = {kind: stored[kind] for kind in TYPES}
    rest["curves"] = rest["curves"].astype(np.float64)
    runs = {}
    for name, facts, shapes in index:
        arrays: dict[str, Any] = {"facts": np.array(json.dumps(facts))}
        for key, shape in shapes:
            kind = kind_of(key)
            values, rest[kind] = np.split(rest[kind], [math.prod(shape)])
            arrays[key] = values.reshape(shape)
        runs[name] = op.Run(**files.parts_of(arrays))
    return runs


def kind_of(key: str) -> str:
    """Where the array of this name is kept."""
    if key in (*AT_POINTS, *MEANS, *LEAST, *GREATEST):
        return "curves"
    return "totals" if (files.REQUIRED | files.OPTIONAL)[key] == "f" else "counts"
