"""Where runs come from: problem, learners, seed, versions, a hash of each, how to run them again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from optpess import zoo
from optpess.display import counted, html_folded, span
from optpess.exceptions import InvalidInputError
from optpess.report import page, words
from optpess.run import files, tables
from optpess.run.record import Run

__all__ = ["algorithm_of", "record_of", "reproduction_of", "setting_of", "zoo_name"]

_REPRODUCE_RUN = """import optpess as op

again = op.reproduce("run.npz")
print(again)  # "identical: ..." if every bit agrees"""
_REPRODUCE_COMPARISON = """import optpess as op

found = op.Comparison.load("comparison.npz")
for name, run in found.runs.items():
    run.save("run.npz")
    print(name, op.reproduce("run.npz"))  # "identical: ..." if every bit agrees"""


def algorithm_of(run: Run) -> str:
    """The name of the learner's algorithm."""
    return str(run.parameters.get("algorithm", "a learner"))


def zoo_name(run: Run) -> str | None:
    """The name of the problem if it is one of the zoo; None if it is not, or not known."""
    if run._origin is None:
        return None
    try:
        model, _ = run._origin.restore()
    except InvalidInputError:  # of a version that this one does not read: only the name is lost
        return None
    ours = model._arrays()
    for name in zoo.names():
        theirs = zoo.problem(name).model._arrays()
        if ours.keys() == theirs.keys() and all(np.array_equal(ours[key], theirs[key]) for key in ours):
            return name
    return None


def setting_of(runs: Collection[Run]) -> list[str]:
    """Sizes, limits, replicates, episodes, seed and version of runs of a problem, in few words."""
    parameters = next(iter(runs)).parameters
    limits = words.limits_text(words.limits_of(parameters))
    lengths = {
        f"{counted(len(run.replicates), 'replicate')} of {counted(int(run.episodes[-1]), 'episode')}"
        for run in runs
    }
    versions = (
        "made by an earlier version" if run.versions is None else f"optpess {run.versions['optpess']}"
        for run in runs
    )
    return [
        words.sizes_text(parameters["shape"]),
        f"cost {limits.removeprefix('the ')}",
        lengths.pop() if len(lengths) == 1 else f"{_episodes(runs)} episodes a replicate",
        f"seed {_seeds(runs)}",
        *dict.fromkeys(versions),
    ]


def record_of(runs: Mapping[str, Run]) -> str:
    """Problem, learners, episodes, seed and versions, and all parameters folded, as HTML."""
    every = runs.values()
    first = next(iter(every))
    limits = words.limits_of(first.parameters)
    sizes, name = words.sizes_text(first.parameters["shape"]), zoo_name(first)
    found = {
        "Problem": sizes if name is None else f"{name}, of optpess.zoo: {sizes}",
        "Limit" if len(limits) == 1 else "Limits": words.joined(
            [words.number(limit) for limit in limits]
        ),
        "Optimum": f"{tables.cell(first.optimal_value)} is the most that a policy within "
        f"{'the limit' if len(limits) == 1 else 'the limits'} earns in an episode, in expectation",
        "Baseline": _distinct(map(_baseline, every)) or "not recorded",
        "Noise": _distinct(str(run.parameters.get("noise", "unknown")) for run in every),
        "Learner" if len(runs) == 1 else "Learners": "; ".join(
            name if name == algorithm_of(run) else f"{name}: {algorithm_of(run)}"
            for name, run in runs.items()
        ),
        "Episodes": f"{_episodes(every)} a replicate",
        "Replicates": span([len(run.replicates) for run in every]),
        "Seed": _seeds(every),
        "Versions": _distinct(
            "not recorded" if run.versions is None else tables.cell(run.versions) for run in every
        ),
    }
    return page.facts(found) + "".join(
        html_folded(f"All parameters of {name}", run._facts() | {"sha256": _fingerprint(run)})
        for name, run in runs.items()
    )


def reproduction_of(runs: Iterable[Run], is_comparison: bool) -> str:
    """How to make the records and their page again, as HTML."""
    if any(run._origin is None for run in runs):
        return page.paragraph(
            "A record of an earlier version holds neither its model nor its learner, so it cannot be "
            "run again from its file alone. Its parameters are listed above."
        )
    file, method, code = (
        ("comparison.npz", "Comparison.save", _REPRODUCE_COMPARISON)
        if is_comparison
        else ("run.npz", "Run.save", _REPRODUCE_RUN)
    )
    return (
        page.paragraph(
            "A saved record holds the model, the learner as it was before the first episode, the seed "
            "and the numbers of the replicates. Run again with the same versions, it agrees in every "
            "bit."
        )
        + page.code(code, "Python that runs it again")
        + page.paragraph(f"{file} stands for the file that {method} wrote. This page again:")
        + page.code(f"optpess report {file} --output report.html", "The command for this page")
    )


def _baseline(run: Run) -> str:
    if run.baseline_value is None or run.baseline_costs is None:
        return ""
    costs = words.joined([tables.cell(cost) for cost in run.baseline_costs.tolist()])
    return f"earns {tables.cell(run.baseline_value)} and costs {costs}, in expectation"


def _episodes(runs: Iterable[Run]) -> str:
    return span([int(run.episodes[-1]) for run in runs])


def _seeds(runs: Iterable[Run]) -> str:
    return _distinct(str(run.parameters.get("seed", "unknown")) for run in runs)


def _distinct(texts: Iterable[str]) -> str:
    """Each text once; those that are empty are left out."""
    return "; ".join(text for text in dict.fromkeys(texts) if text)


def _fingerprint(run: Run) -> str:
    """A hash of everything that a file of the record holds, to match a page and a file."""
    total = hashlib.sha256()
    for name, array in sorted(files.arrays_of(run).items()):
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
