"""``optpess simulate``, ``compare`` and ``forecast``: learners against a known model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from optpess.cli.options import (
    Command,
    learner_option,
    learner_options,
    model_argument,
    number_option,
    output_option,
    page_option,
    pop_learner_options,
    safe_policy_options,
)
from optpess.cli.output import Result, writing, written
from optpess.cli.stopping import Stopped
from optpess.display import duration
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.model import CMDP
from optpess.report import write_report
from optpess.run import compare as comparisons
from optpess.run import forecast as forecasts
from optpess.run import simulate as simulations
from optpess.run.compare import Comparison
from optpess.run.forecast import Forecast
from optpess.run.record import Run
from optpess.study.learners import LearnerOptions, learners_of
from optpess.study.models import described, model_of, problem_of

__all__ = ["compare", "forecast", "simulate"]

# What a run came to in each replicate: the last points of curves, and totals.
_LAST = ("reward_regret", "gain", "weak_violation", "strong_violation", "multiplier", "weight")
_TOTALS = (
    "violating_episodes",
    "first_violation",
    "worst_violation",
    "baseline_episodes",
    "estimation_episodes",
    "first_planned",
    "mixtures",
)
_episodes = number_option("--episodes", required=True, metavar="N", help="How many to play.")
_seed = number_option("--seed", default=0, metavar="N", help="Of the random numbers (0).")
_replicates = number_option(
    "--replicates", default=1, metavar="N", help="How many independent runs (1)."
)
_threads = number_option("--threads", metavar="N", help="By default one for each core.")
_report = page_option("--report", help="Write a page in HTML about what came out, too.")
_quiet = click.option("--quiet", is_flag=True, help="Show no progress.")


@click.command(
    "simulate",
    short_help="Run a learner on a model.",
    cls=Command,
    examples="""
    optpess simulate ring --episodes 20000 --stationary
    optpess simulate ring --learner optpess-lp:sharp --episodes 1e4 --replicates 4 --output run.npz
    optpess simulate mine.npz --safe-cost 0.6 --episodes 1e4 --seed 7 --json
    optpess simulate mine.npz --baseline safe.npy --episodes 1e4 --output curves.csv
    optpess simulate ring --episodes 1e8 --checkpoint state.npz --output run.npz
    """,
)
@model_argument
@learner_option(default="optpess-mix", show_default=True)
@_episodes
@_seed
@_replicates
@safe_policy_options
@learner_options
@_threads
@click.option("--audit", is_flag=True, help="Check the events and lemmas of the paper in every episode.")
@output_option(
    "--checkpoint",
    suffixes=(".npz",),
    help="Write the state of the run to this file every ten seconds, and when it is stopped; the same "
    "command goes on from it.",
)
@output_option(
    "--output",
    suffixes=(".npz", ".csv"),
    help="Write the record to this .npz file, or its curves to this .csv file.",
)
@output_option(
    "--save-learner",
    suffixes=(".npz",),
    help="Write the learner of the first replicate, after its last episode, to this file.",
)
@_report
@_quiet
def simulate(
    model: str,
    learner: str,
    baseline: Path | None,
    safe_cost: tuple[float, ...],
    output: Path | None,
    save_learner: Path | None,
    checkpoint: Path | None,
    report: Path | None,
    quiet: bool,
    **given: Any,
) -> Result:
    """Run a learner on MODEL and judge every policy it plays exactly.

    MODEL is a name of the zoo, which has a safe policy, or a .npz or .umb file of a model.
    """
    _check_different({"--output": output, "--save-learner": save_learner, "--checkpoint": checkpoint})
    options = pop_learner_options(given, given["episodes"])
    known, made = _learners(model, [learner], baseline, safe_cost, options)
    keep = None if save_learner is None else True
    given |= {"learners": keep, "checkpoint": checkpoint, "progress": not quiet}
    try:
        with nullcontext() if checkpoint is None else writing(checkpoint):
            run = simulations.simulate(known, made[learner], **given)
    except Stopped as stopped:
        if checkpoint is not None:
            stopped.args = (f"{stopped}; the same command goes on from {checkpoint}",)
        raise
    _write(run, output, report)
    if save_learner is not None:
        with writing(save_learner):
            run.learners[0].save(save_learner)
    return Result(
        str(run) + written(output, save_learner, report),
        {"model": described(model, known), "learner": learner}
        | _run_values(run)
        | {"output": output, "saved_learner": save_learner, "report": report},
    )


@click.command(
    "compare",
    short_help="Run several learners on a model.",
    cls=Command,
    examples="""
    optpess compare ring --learner optpess-mix --learner always-baseline --episodes 20000
    optpess compare ring --learner optpess-lp --learner optpess-lp:sharp --episodes 1e4 --output ring.npz
    """,
)
@model_argument
@learner_option(multiple=True, required=True)
@_episodes
@_seed
@_replicates
@safe_policy_options
@learner_options
@_threads
@output_option(
    "--output",
    suffixes=(".npz", ".csv"),
    help="Write all records to this .npz file, or their curves to this .csv file.",
)
@_report
@_quiet
def compare(
    model: str,
    learner: tuple[str, ...],
    baseline: Path | None,
    safe_cost: tuple[float, ...],
    threads: int | None,
    output: Path | None,
    report: Path | None,
    quiet: bool,
    **given: Any,
) -> Result:
    """Run several learners on MODEL with the same seed, one after the other, and compare them.

    Give --learner once for each. MODEL is a name of the zoo, which has a safe policy, or a .npz or .umb
    file of a model.
    """
    options = pop_learner_options(given, given["episodes"])
    known, made = _learners(model, learner, baseline, safe_cost, options)
    found = comparisons.compare(known, made, threads=threads, progress=not quiet, **given)
    _write(found, output, report)
    return Result(
        str(found) + written(output, report),
        {"model": described(model, known)}
        | given
        | {"learners": found.table, "output": output, "report": report},
    )


@click.command(
    "forecast",
    short_help="Predict a run.",
    cls=Command,
    examples="""
    optpess forecast ring --learner optpess-lp --episodes 1e6
    optpess forecast pair --learner optpess-primaldual --episodes 1e8 --json
    """,
)
@model_argument
@learner_option(required=True)
@number_option("--episodes", metavar="N", help="How many would be played: K, unless it is given.")
@safe_policy_options
@learner_options
def forecast(
    model: str,
    learner: str,
    episodes: int | None,
    baseline: Path | None,
    safe_cost: tuple[float, ...],
    **given: Any,
) -> Result:
    """Predict a run: when the learner leaves the safe policy, and how long the run takes.

    MODEL is a name of the zoo, which has a safe policy, or a .npz or .umb file of a model.
    """
    options = pop_learner_options(given, episodes)
    if episodes is not None and options.num_episodes is not None and episodes > options.num_episodes:
        raise InvalidInputError(
            f"--episodes is {episodes}; it must be at most K, --num-episodes {options.num_episodes}"
        )
    known, made = _learners(model, [learner], baseline, safe_cost, options)
    found = forecasts.forecast(known, made[learner])
    return Result(
        _forecast_text(found, made[learner]),
        {"model": described(model, known), "learner": learner}
        | asdict(found)
        | {"guarantee": made[learner].guarantee},
    )


def _learners(
    model: str,
    texts: Sequence[str],
    baseline: Path | None,
    safe_cost: tuple[float, ...],
    options: LearnerOptions,
) -> tuple[CMDP, dict[str, Learner]]:
    """The model, and learners made for it."""
    problem = problem_of(model, baseline, safe_cost)
    known = model_of(model) if problem is None else problem.model
    return known, learners_of(texts, known, problem, options)


def _check_different(files: dict[str, Path | None]) -> None:
    """Refuses one file for two purposes."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        if file is not None and (other := seen.setdefault(file.absolute(), option)) != option:
            raise InvalidInputError(f"{other} and {option} are the same file, {str(file)!r}")


def _write(record: Run | Comparison, output: Path | None, report: Path | None) -> None:
    """Writes the record, or its curves, and the page about it, where they are asked for."""
    if output is not None:
        with writing(output):
            record.to_csv(output) if output.suffix.lower() == ".csv" else record.save(output)
    if report is not None:
        with writing(report):
            write_report(report, record)


def _run_values(run: Run) -> dict[str, Any]:
    """A run for programs; the names are those of :class:`Run`."""
    last = {name: None if (curve := getattr(run, name)) is None else curve[:, -1] for name in _LAST}
    return {
        "episodes": int(run.episodes[-1]),
        "seed": run.parameters["seed"],
        "replicates": run.replicates,
        "optimal_value": run.optimal_value,
        "baseline_value": run.baseline_value,
        "baseline_costs": run.baseline_costs,
        "cost_limits": run.cost_limits,
        **last,
        **{name: getattr(run, name) for name in _TOTALS},
        "plays": run.plays,
        "guarantee": run.guarantee,
        "void_because": run.void_because,
        "audits": run.audits,
        "parameters": run.parameters,
        "versions": run.versions,
    }


def _forecast_text(found: Forecast, learner: Learner) -> str:
    if found.leaves_baseline is not None:
        leaves = f"at episode {found.leaves_baseline:,}"
    elif found.would_leave_baseline is not None:
        leaves = f"not within its episodes; it would at episode {found.would_leave_baseline:,}"
    else:
        leaves = "not predicted"
    lines = {"leaves the baseline": leaves}
    if found.tightening_horizon is not None:
        lines["C'' of its theorem"] = f"{found.tightening_horizon:,} episodes"
    if found.seconds is None:
        lines["time on one core"] = "not predicted"
    else:
        lines["time on one core"] = "under 1 s" if found.seconds < 1 else duration(found.seconds)
    lines["guarantee"] = str(learner.guarantee)
    width = max(map(len, lines))
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in lines.items())
