"""Runs a saved record again, and compares the two."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from optpess.exceptions import InvalidInputError
from optpess.run.origin import versions
from optpess.run.record import Run, load_run
from optpess.run.simulate import simulate

__all__ = ["Reproduction", "reproduce"]


@dataclass(frozen=True, slots=True, eq=False)
class Reproduction:
    """A saved record, the same run made again, and whether they agree. It has the attributes of the run
    made again, too.

    Example:
        >>> import tempfile, pathlib, optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     op.simulate(pair.model, learner).save(pathlib.Path(folder) / "run.npz")
        ...     again = op.reproduce(pathlib.Path(folder) / "run.npz")
        >>> again.identical, again.differences, again.reward_regret is again.run.reward_regret
        (True, (), True)
    """

    run: Run
    """The run made again."""
    stored: Run
    """The record of the file."""
    differences: tuple[str, ...]
    """The fields in which they differ in some bit; those that the file lacks are left out."""

    @property
    def identical(self) -> bool:
        """Whether they agree in every bit."""
        return not self.differences

    def __getattr__(self, name: str) -> Any:
        """An attribute of the run made again."""
        if name.startswith("_") or name in self.__slots__:  # not there yet, while it is unpickled
            raise AttributeError(name)
        return getattr(self.run, name)

    def __str__(self) -> str:
        algorithm = self.stored.parameters.get("algorithm", "a learner")
        what = (
            f"{algorithm}, {len(self.stored.replicates)} replicate(s) of {self.stored.episodes[-1]} "
            "episodes"
        )
        if self.identical:
            return f"identical: {what}"
        return (
            f"different in {', '.join(self.differences)}: {what}; recorded with "
            f"{_versions_text(self.stored.versions)}, run again with {_versions_text(versions())}"
        )

    def __repr__(self) -> str:
        return f"Reproduction({self})"


def reproduce(
    path: str | PathLike[str], *, threads: int | None = None, progress: bool = True
) -> Reproduction:
    """Runs a record written by :meth:`Run.save` again: same model, learner, seed and replicates.

    Args:
        path: the file.
        threads: how many threads; None for one per core. The numbers do not depend on it.
        progress: whether to show a progress bar, as :func:`simulate` does.

    Example:
        >>> import tempfile, pathlib, optpess as op
        >>> model = op.zoo.pair()
        >>> learner = op.OPDOP(shape=model.shape, initial=model.initial, num_episodes=100,
        ...                    margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "run.npz"
        ...     op.simulate(model, learner, replicates=2, progress=False).save(file)
        ...     again = op.reproduce(file, progress=False)
        >>> print(again)
        identical: OPDOP, 2 replicate(s) of 100 episodes
    """
    stored = load_run(path)
    if stored._origin is None:
        raise InvalidInputError(
            f"{path} holds no model and no learner, as files of earlier versions do not: "
            "it cannot be run again from the file alone"
        )
    try:
        model, learner = stored._origin.restore()
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{path}: the model or the learner cannot be restored: {error}; it was written with "
            f"{_versions_text(stored.versions)}, this is {_versions_text(versions())}"
        ) from error
    run = simulate(
        model,
        learner,
        replicates=stored.replicates.tolist(),
        seed=stored.parameters["seed"],
        threads=threads,
        episodes=stored.parameters["episodes"],
        progress=progress,
        audit=stored.audits is not None,
    )
    found = (name for name in stored._differences(run) if getattr(stored, name) is not None)
    return Reproduction(run, stored, tuple(found))


def _versions_text(found: dict[str, str] | None) -> str:
    if found is None:
        return "unknown versions"
    return ", ".join(f"{name} {version}" for name, version in found.items())
