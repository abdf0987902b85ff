"""Runs several learners on one model and puts the results into one table."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from optpess import _core, storage
from optpess.arrays import Columns, StoredArrays
from optpess.checks import check_path, check_type, described, truth_value
from optpess.display import counted, html_folded, html_paragraph, html_table, table
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.progress import ProgressBar, showing
from optpess.run import files, tables
from optpess.run.arguments import Request, check_arguments, episodes_of
from optpess.run.interrupts import attach
from optpess.run.pool import pool_of
from optpess.run.record import Run
from optpess.run.simulate import keeps_learners, simulate_as, warn_of_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare", "table_texts"]

_COLUMNS = {
    "learner": "learner",
    "confidence": "confidence",
    "regret": "regret",
    "gain": "gain",
    "weak_violation": "weak violation",
    "strong_violation": "strong violation",
    "violating_episodes": "violating episodes",
    "worst_violation": "worst violation",
    "baseline_share": "on the baseline",
    "microseconds": "us per episode",
    "guarantee": "guarantee",
    "growth_exponent": "regret exponent",
    "weak_exponent": "weak exponent",
    "strong_exponent": "strong exponent",
}
# Those of the text, and the most learners in it.
_MAIN_COLUMNS = ("learner", "regret", "gain", "violating_episodes", "worst_violation", "baseline_share")
_MOST_SHOWN = 7
_LONGEST_NAME = 40
_SECONDS_BETWEEN = 0.1  # two looks for signals, where replicates are run in an executor
_FIELDS = storage.Fields(
    "optpess.Comparison/1",
    required={"facts": "U"},
    numbered={"format": "U"} | files.REQUIRED | files.OPTIONAL,
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of several learners on the same model with the same seed.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> found = op.compare(pair.model, {"safe": learner})
        >>> found
        Comparison(safe)
        >>> round(found.table[0]["regret"], 2)
        55.29
    """

    runs: dict[str, Run]
    """The run of each learner, by name."""
    seconds: dict[str, float]
    """Processor time of each run, on one thread, all replicates together."""

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for each learner, at the last episode.

        ``learner`` is its name, ``confidence`` its confidence rule. ``regret``, ``gain`` (None without a
        baseline), ``weak_violation``, ``strong_violation`` and ``violating_episodes`` are means over
        replicates; each has a standard error, such as ``regret_error``, which is NaN for a single
        replicate. ``worst_violation`` is the largest of any replicate, ``baseline_share`` the share of
        all episodes that played the baseline. ``microseconds`` is the processor time of an episode,
        ``guarantee`` that of the learner or None. ``growth_exponent`` (of the regret),
        ``weak_exponent`` and ``strong_exponent`` (of the violations) are :meth:`Run.growth_exponent`
        over the last decade: median, least and largest over replicates, NaN if the curve of a replicate
        is not positive.
        """
        return [self._row(name, run) for name, run in self.runs.items()]

    def _row(self, name: str, run: Run) -> dict[str, Any]:
        episodes = int(run.episodes[-1]) * len(run.replicates)
        means = {
            "regret": run.reward_regret[:, -1],
            "gain": None if run.gain is None else run.gain[:, -1],
            "weak_violation": run.weak_violation[:, -1],
            "strong_violation": run.strong_violation[:, -1],
            "violating_episodes": run.violating_episodes,
        }
        row: dict[str, Any] = {"learner": name, "confidence": run.parameters.get("confidence")}
        for key, values in means.items():
            row[key] = None if values is None else float(values.mean())
            row[f"{key}_error"] = None if values is None else tables.standard_error(values)
        return row | {
            "worst_violation": float(run.worst_violation.max()),
            "baseline_share": float(run.baseline_episodes.sum() / episodes),
            "microseconds": 1e6 * self.seconds[name] / episodes,
            "guarantee": run.guarantee,
            "growth_exponent": _spread(run, "reward_regret"),
            "weak_exponent": _spread(run, "weak_violation"),
            "strong_exponent": _spread(run, "strong_violation"),
        }

    def _table_texts(self, names: Collection[str] = _COLUMNS) -> tuple[list[str], list[list[str]]]:
        """The header and the rows of the table as texts; ``names`` are keys of its rows."""
        return table_texts(self.table, names)

    def columns(self) -> Columns:
        """:meth:`Run.columns` of all runs one below the other, with the learners' names in ``learner``.
        Curves that a run does not have are NaN in its rows.
        """
        parts = {name: run.columns() for name, run in self.runs.items()}
        lengths = {name: len(part["episodes"]) for name, part in parts.items()}
        names = dict.fromkeys(key for part in parts.values() for key in part)
        columns: Columns = {
            "learner": np.repeat(np.array(list(lengths), dtype=np.str_), list(lengths.values()))
        }
        for key in names:
            each = (part.get(key, np.full(lengths[name], np.nan)) for name, part in parts.items())
            columns[key] = np.concatenate(list(each))
        return columns

    def to_frame(self) -> Any:
        """:meth:`columns` as a pandas DataFrame."""
        return tables.to_frame(self.columns(), "Comparison.to_frame")

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Writes :meth:`columns` to a CSV file with a header; floats are read back as they were."""
        tables.write_csv(path, self.columns())

    def to_markdown(self) -> str:
        """The table in Markdown; means over several replicates have their standard errors."""
        return tables.markdown(*self._table_texts())

    def save(self, path: str | PathLike[str]) -> None:
        """Writes all runs and seconds to one ``.npz`` file, as :meth:`Run.save` does."""
        check_path(path)
        facts = {"learners": list(self.runs), "seconds": [self.seconds[name] for name in self.runs]}
        arrays: StoredArrays = {"format": np.array(_FIELDS.format), "facts": np.array(json.dumps(facts))}
        first: StoredArrays = {}
        for number, run in enumerate(self.runs.values()):
            stored = files.arrays_of(run)
            # The model is the same for all, and is written once.
            kept = {name: array for name, array in stored.items() if not _repeats(name, array, first)}
            arrays |= {f"{number}/{name}": array for name, array in kept.items()}
            first = first or stored
        storage.save_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a comparison written by :meth:`save`."""
        check_path(path)
        arrays = storage.load_arrays(path, _FIELDS)
        try:
            facts = json.loads(str(arrays["facts"]))
            names, seconds = [str(name) for name in facts["learners"]], facts["seconds"]
            runs: dict[str, Run] = {}
            models: StoredArrays = {}
            for number, name in enumerate(names):
                prefix = f"{number}/"
                own = {
                    key.removeprefix(prefix): array
                    for key, array in arrays.items()
                    if key.startswith(prefix)
                }
                models = models or {key: own[key] for key in own if key.startswith("model_")}
                shared = models if "learner_state" in own else {}
                runs[name] = Run(**files.parts_of(shared | own))
            return cls(runs, dict(zip(names, map(float, seconds), strict=True)))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InvalidInputError(f"{path} does not hold a comparison: {error!r}") from error

    def plot(self, *, multiplier: bool = False) -> Figure:
        """Costs, rewards, gains, regrets and violations of all runs as a matplotlib figure; see
        :func:`optpess.plot.plot_runs`.

        Args:
            multiplier: whether to draw the multipliers too, in units of the optimal one.
        """
        from optpess.plot import plot_runs  # lazy: plot

        return plot_runs(self.runs, multiplier=multiplier)

    def _repr_html_(self) -> str:
        """The table, and what the runs have in common, for notebooks."""
        return (
            html_paragraph(self._title())
            + html_table(*self._table_texts(), "learners")
            + html_folded("parameters of all runs", self._common_facts())
        )

    def __str__(self) -> str:
        """The main columns of the table."""
        runs = dict(list(self.runs.items())[:_MOST_SHOWN])
        header, rows = Comparison(runs, self.seconds)._table_texts(_MAIN_COLUMNS)
        short = [[_short_name(text) for text in row] for row in rows]
        left = len(self.runs) - len(runs)
        rest = f"\nand {left} more learners" if left else ""
        return f"{self._title()}\n{table(header, short)}{rest}"

    def __repr__(self) -> str:
        names = [_short_name(name) for name in self.runs]
        if len(names) > _MOST_SHOWN:
            names[3:] = [f"... {len(names)} in all"]
        return f"Comparison({', '.join(names)})"

    def _title(self) -> str:
        numbers = {(len(run.replicates), int(run.episodes[-1])) for run in self.runs.values()}
        if len(numbers) != 1:
            return counted(len(self.runs), "learner")
        replicates, episodes = numbers.pop()
        each = f"{counted(replicates, 'replicate')} of {counted(episodes, 'episode')}"
        return f"{counted(len(self.runs), 'learner')}, {each}"

    def _common_facts(self) -> dict[str, str]:
        """The parameters that all runs share, as texts."""
        first, *others = (tables.facts(run.parameters) for run in self.runs.values())
        return {
            name: fact
            for name, fact in first.items()
            if all(other.get(name) == fact for other in others)
        }


def compare(
    model: CMDP,
    learners: Mapping[str, Learner],
    *,
    replicates: int | Iterable[int] = 1,
    seed: int = 0,
    episodes: int | None = None,
    threads: int | None = None,
    executor: Executor | Any = None,
    progress: bool = True,
) -> Comparison:
    """Runs every learner on the model with the same seed, one after the other, its replicates on all
    cores. Times are processor times, of all threads together, so that they can be compared.

    Ctrl-C stops it as it stops :func:`simulate`; the exception also has an attribute ``comparison``,
    with the learners that were done.

    Args:
        model: the true model, with the learners' limits.
        learners: by their names in the table. They are copied, not changed.
        replicates: how many replicates of each learner, or their numbers.
        seed: the seed of the random numbers, the same for all.
        episodes: how many episodes each plays; None for all that it has left. It must be given if a
            learner has no ``num_episodes``.
        threads: how many threads run the replicates of a learner; None for one a core.
        executor: any ``concurrent.futures.Executor`` or a client of Dask's ``distributed``, as for
            :func:`sweep`; every replicate of every learner is then a task of its own. The records are
            the same to the bit. It is left open. In a pool of threads, times count each other's work.
        progress: whether to show progress, with the learner that is running, as :func:`simulate` does.

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
    request = Request.of(replicates, seed, threads)
    shows = truth_value("progress", progress)
    if not isinstance(learners, Mapping):
        raise InvalidInputError(
            f"learners is {described(learners)}; it must be a dictionary of learners by their names, "
            'such as {"ours": learner}; the order is compare(model, learners)'
        )
    if not learners:
        raise InvalidInputError("learners is empty; there is nothing to compare")
    counts = {}
    for name, learner in learners.items():
        place = f"learners[{check_type('a name in learners', name, str)!r}]"
        check_arguments(model, learner, "compare", place)
        counts[name] = episodes_of(learner, episodes, place)
    if executor is not None:
        with pool_of(executor) as pool, showing(shows) as bar:
            return _in_pool(pool, model, learners, counts, request, bar)
    runs: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    with showing(shows) as bar:
        for number, (name, learner) in enumerate(learners.items(), start=1):
            start = time.process_time()
            label = f"{number} of {len(learners)}: {name}"
            try:
                runs[name] = simulate_as(model, learner, counts[name], request, bar, label)
            except BaseException as error:
                if hasattr(error, "runs"):  # it was stopped
                    note = "the learners that were done are in the attribute 'comparison'"
                    attach(error, note, comparison=Comparison(runs, seconds))
                raise
            seconds[name] = time.process_time() - start
    return Comparison(runs, seconds)


def _in_pool(
    pool: Executor,
    model: CMDP,
    learners: Mapping[str, Learner],
    counts: Mapping[str, int],
    request: Request,
    bar: ProgressBar | None,
) -> Comparison:
    """Every replicate of every learner as a task."""
    tasks: dict[str, list[Future[tuple[Run, float]]]] = {}
    try:
        for name, learner in learners.items():
            warn_of_run(model, learner, counts[name])
            keep = keeps_learners(model, request)
            tasks[name] = [
                pool.submit(_replicate, model, learner, counts[name], number, request.seed, keep)
                for number in request.numbers
            ]
        waiting = [task for each in tasks.values() for task in each]
        if bar is not None:
            bar.begin(len(waiting), unit="runs")
        for number, task in enumerate(_as_completed(waiting), start=1):
            task.result()  # raises what the task raised
            if bar is not None:
                bar(number)
    except BaseException as error:
        done = {name: _finished(each) for name, each in tasks.items()}
        whole = {name: parts for name, parts in done.items() if len(parts) == len(request.numbers)}
        runs = tuple(run for name, parts in done.items() if name not in whole for run, _ in parts)
        note = (
            "the comparison was stopped; the learners that were done are in the attribute 'comparison' "
            "of this exception, other replicates that were done in 'runs'"
        )
        attach(error, note, comparison=_compared(whole), runs=runs)
        raise
    finally:
        for each in tasks.values():
            for task in each:
                task.cancel()
    return _compared({name: _finished(each) for name, each in tasks.items()})


def _as_completed(tasks: list[Future[tuple[Run, float]]]) -> Iterator[Future[tuple[Run, float]]]:
    """The tasks in the order in which they end; it looks for signals on any thread while it waits."""
    signals, left = _core.SignalWatch(), set(tasks)
    while left:
        done, left = wait(left, timeout=_SECONDS_BETWEEN, return_when=FIRST_COMPLETED)
        signals.check()
        yield from done


def _finished(tasks: list[Future[tuple[Run, float]]]) -> list[tuple[Run, float]]:
    """What came of the tasks that have ended well."""
    ended = [task for task in tasks if task.done() and not task.cancelled()]
    return [task.result() for task in ended if task.exception() is None]


def _compared(done: Mapping[str, list[tuple[Run, float]]]) -> Comparison:
    """The replicates of each learner, with the processor time of each, as one record a learner."""
    runs = {name: Run.concat([run for run, _ in parts]) for name, parts in done.items()}
    return Comparison(runs, {name: sum(taken for _, taken in parts) for name, parts in done.items()})


def _replicate(
    model: CMDP, learner: Learner, count: int, number: int, seed: int, keep: bool
) -> tuple[Run, float]:
    """One replicate, and the processor time that it took."""
    start = time.process_time()
    request = Request.of([number], seed, threads=1, learners=keep)
    run = simulate_as(model, learner, count, request, None, warns=False)
    return run, time.process_time() - start


def _spread(run: Run, curve: str) -> tuple[float, float, float]:
    """Median, least and largest exponent over replicates."""
    slopes = run.growth_exponent(of=curve)
    return float(np.median(slopes)), float(slopes.min()), float(slopes.max())


def _short_name(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _repeats(name: str, array: Any, first: StoredArrays) -> bool:
    """Whether an array is one of the model's and the same in the first run."""
    known = first.get(name)
    return name.startswith("model_") and known is not None and np.array_equal(known, array)


def table_texts(
    rows: Iterable[Mapping[str, Any]], names: Collection[str] = _COLUMNS
) -> tuple[list[str], list[list[str]]]:
    """Rows of :attr:`Comparison.table` as texts below a header; ``names`` are keys of the rows."""
    header = [_COLUMNS[name] for name in names]
    return header, [[_shown(row, name) for name in names] for row in rows]


def _shown(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if isinstance(value, tuple):
        middle, least, most = value
        return "-" if np.isnan(middle) else f"{middle:.2f} ({least:.2f} to {most:.2f})"
    if name == "gain" and value is None:
        return "-"
    return tables.cell(value, row.get(f"{name}_error"))
