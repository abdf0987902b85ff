"""What a report says about runs of one problem: result, pictures, table, guarantees, the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from optpess.plot import pictures
from optpess.report import page, words
from optpess.report.claims import Claim, claim_of, claim_section
from optpess.report.pictures import gallery
from optpess.report.provenance import algorithm_of, record_of, reproduction_of, setting_of, zoo_name
from optpess.report.sentences import summary_of_run, summary_of_runs
from optpess.run import tables
from optpess.run.compare import Comparison
from optpess.run.record import Run
from optpess.run.violations import above_text

__all__ = ["RunsPart"]

# The columns of the table of several runs; the guarantees have a section of their own.
_COLUMNS = (
    "learner",
    "worst_violation",
    "gain",
    "regret",
    "baseline_share",
    "weak_violation",
    "strong_violation",
    "growth_exponent",
    "confidence",
    "microseconds",
)
_MOST_NAMES = 3  # in a title


class RunsPart:
    """Runs by their names.

    Args:
        runs: the runs; those of a comparison are of one problem.
        seconds: the processor time of each, as a comparison knows it; None if it is not known.
    """

    def __init__(self, runs: Mapping[str, Run], seconds: Mapping[str, float] | None = None) -> None:
        self._runs, self._seconds = dict(runs), seconds

    @classmethod
    def of(cls, run: Run) -> RunsPart:
        """One run, to which others may be added."""
        return cls({algorithm_of(run): run})

    def add(self, run: Run) -> bool:
        """Takes the run in if it is of the same problem and as many episodes; else False."""
        if self._seconds is not None or _problem(run) != _problem(self._first):
            return False
        name, number = algorithm_of(run), 1
        while name in self._runs:
            number += 1
            name = f"{algorithm_of(run)} ({number})"
        self._runs[name] = run
        return True

    @property
    def _claims(self) -> dict[str, Claim]:
        return {name: _claim(run) for name, run in self._runs.items()}

    @property
    def _first(self) -> Run:
        return next(iter(self._runs.values()))

    def title(self) -> str:
        """The learners, and the problem if it has a name."""
        names, problem = list(self._runs), zoo_name(self._first)
        who = words.joined(names) if len(names) <= _MOST_NAMES else f"{len(names)} learners"
        return who if problem is None else f"{who} on {problem}"

    def setting(self) -> list[str]:
        """Sizes, limits, episodes, replicates, seed and version."""
        return setting_of(self._runs.values())

    def summary(self) -> list[str]:
        """Violations first, then what was earned, then the guarantee."""
        if len(self._runs) > 1:
            return summary_of_runs(self._runs, self._claims)
        return summary_of_run(self._first, _claim(self._first))

    def alarms(self) -> list[tuple[str, str]]:
        """The guarantees that are void."""
        several = len(self._runs) > 1
        return [
            (f"{name}: {claim.short}" if several else claim.title, claim.statement)
            for name, claim in self._claims.items()
            if claim.void
        ]

    def sections(self, prefix: str, level: int) -> Iterable[tuple[str, str]]:
        """Pictures, table, guarantees, what was run, how to run it again."""
        # Of a single run, the first sentence says how many episodes were above the limit.
        drawn = pictures(self._runs)
        shown = [each for each in drawn if len(self._runs) > 1 or each.name != "violations"]
        yield "Pictures", gallery(shown, prefix)
        yield "Results", self._table()
        yield (
            ("Guarantee" if len(self._runs) == 1 else "Guarantees"),
            claim_section(self._claims, self._checks(), level),
        )
        yield "What was run", record_of(self._runs)
        yield "Run it again", reproduction_of(self._runs.values(), self._seconds is not None)

    def _table(self) -> str:
        note = page.paragraph(
            "An episode is above the limit if the expected cost of what was deployed in it, computed "
            f"exactly from the true model, is. {words.units_text(self._first.units)}",
            "note",
        )
        if len(self._runs) == 1:
            return page.wide_table("Totals", *self._first._total_texts()) + note
        unknown = dict.fromkeys(self._runs, float("nan"))
        comparison = Comparison(self._runs, dict(self._seconds or unknown))
        columns = [name for name in _COLUMNS if self._seconds or name != "microseconds"]
        header, rows = comparison._table_texts(columns)
        header.insert(1, "above the limit")
        for row, run in zip(rows, self._runs.values(), strict=True):
            row.insert(1, above_text(run))
        spread = (
            "Means over replicates, with standard errors; worst violation: the largest of any "
            "replicate; exponents: the median over replicates, and the least and the largest."
        )
        return (
            page.wide_table("Results of each learner", header, rows)
            + page.paragraph(spread, "note")
            + note
        )

    def _checks(self) -> dict[str, list[str]]:
        """What the simulation, which knows the true model, says about the assumptions."""
        found = {name: _checks_of(run) for name, run in self._runs.items()}
        return {name: checks for name, checks in found.items() if checks}


def _problem(run: Run) -> tuple[object, ...]:
    """What must be the same for runs to be compared."""
    limits, shape = words.limits_of(run.parameters), run.parameters["shape"]
    kept = (run.parameters.get("model"), run.parameters.get("noise"))
    return (run.optimal_value, tuple(limits), tuple(shape), run.units, kept, int(run.episodes[-1]))


def _claim(run: Run) -> Claim:
    return claim_of(run.guarantee, run.parameters, run.void_because)


def _checks_of(run: Run) -> list[str]:
    found = []
    if run.guarantee is not None and run.baseline_costs is not None:
        costs = words.joined([tables.cell(cost) for cost in run.baseline_costs.tolist()])
        found.append(f"The baseline costs {costs}, as safe as was stated.")
    if run.audits is not None:
        findings = [finding for audit in run.audits for finding in audit.values()]
        made, failed = (sum(getattr(each, key) for each in findings) for key in ("made", "failed"))
        found.append(f"Of {made:,} checks of the audit {failed:,} failed.")
    return found
