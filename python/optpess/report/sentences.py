"""What came of runs, in a few sentences."""

from __future__ import annotations

from collections.abc import Mapping

from optpess.display import percent
from optpess.report.claims import Claim
from optpess.report.words import capitalised, joined, limits_of
from optpess.run.record import Run
from optpess.run.tables import cell
from optpess.run.violations import above_text, episodes_played, share_above

__all__ = ["summary_of_run", "summary_of_runs"]


def summary_of_run(run: Run, claim: Claim) -> list[str]:
    """How often a limit was exceeded, what an episode earned, and what had been guaranteed."""
    return [f"{_violations(run)} {_earned(run)}", f"Guarantee: {claim.short}."]


def summary_of_runs(runs: Mapping[str, Run], claims: Mapping[str, Claim]) -> list[str]:
    """Who kept the limits, who of those earned most, and what had been guaranteed."""
    safe = [name for name, run in runs.items() if not share_above(run)]
    limits = "the limit" if all(_has_one_limit(run) for run in runs.values()) else "the limits"
    if len(safe) == len(runs):
        first = f"None of {len(runs)} learners had an episode above {limits}."
    elif safe:
        first = f"{len(safe)} of {len(runs)} learners had no episode above {limits}: {joined(safe)}."
    else:
        first = f"Each of {len(runs)} learners had episodes above {limits}."
    best = max(safe or runs, key=lambda name: _value(runs[name]))
    among = "Of these, " if 0 < len(safe) < len(runs) else ""
    second = (
        f"{among}{best} earned most: {cell(_value(runs[best]))} an episode on average. "
        f"{_to_compare_with(runs[best])}"
    )
    often = max(runs, key=lambda name: share_above(runs[name]))
    if share_above(runs[often]):
        worst = cell(float(runs[often].worst_violation.max()))
        second += (
            f" {often} was above {limits} most often: in {above_text(runs[often])}, by up to {worst}."
        )
    promised = [name for name, claim in claims.items() if claim.holds]
    third = f"With a guarantee: {joined(promised)}." if promised else "No learner has a guarantee."
    return [first, second, third]


def _violations(run: Run) -> str:
    limit = "the limit" if _has_one_limit(run) else "a limit"
    if not share_above(run):
        return f"No episode above {limit} in {episodes_played(run):,}."
    worst = cell(float(run.worst_violation.max()))
    return f"{capitalised(above_text(run))} above {limit}, by up to {worst}."


def _earned(run: Run) -> str:
    """The gain over the baseline, or the value of an episode if there is none."""
    if run.gain is None or run.baseline_value is None:
        return f"An episode earned {cell(_value(run))} on average. {_to_compare_with(run)}"
    each = float(run.gain[:, -1].mean()) / int(run.episodes[-1])
    if each == 0.0:
        return "An episode earned as much as the baseline on average."
    possible = run.optimal_value - run.baseline_value
    share = f", {percent(each / possible)} of what is possible" if 0.0 < each <= possible else ""
    more = "more" if each > 0.0 else "less"
    return f"An episode earned {cell(abs(each))} {more} than the baseline on average{share}."


def _to_compare_with(run: Run) -> str:
    baseline = "" if run.baseline_value is None else f", the baseline {cell(run.baseline_value)}"
    return f"The optimum is {cell(run.optimal_value)}{baseline}."


def _value(run: Run) -> float:
    """The mean value of an episode."""
    return run.optimal_value - float(run.reward_regret[:, -1].mean()) / int(run.episodes[-1])


def _has_one_limit(run: Run) -> bool:
    return len(limits_of(run.parameters)) == 1
