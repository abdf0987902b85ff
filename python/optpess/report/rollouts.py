"""What a report says about a rollout: a learner in an environment whose true model is not known."""

from __future__ import annotations

from collections.abc import Iterable

from optpess.display import counted, html_folded, percent
from optpess.plot import Picture, plot_rollout
from optpess.report import page, words
from optpess.report.claims import Claim, claim_of, claim_section
from optpess.report.pictures import gallery
from optpess.run import tables
from optpess.run.rollout_record import Rollout

__all__ = ["RolloutPart"]

_SNIPPET = """import optpess as op

# learner and env: made as they were before the first episode
result = op.rollout(learner, env, episodes={episodes}{seed})"""


class RolloutPart:
    """A rollout."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout, self._given = rollout, rollout.parameters
        self._claim = claim_of(rollout.guarantee, rollout.parameters)
        self._environment = str(self._given.get("env", "an environment"))
        self._seeded = self._given.get("env_seed") is not None and bool(self._given.get("accepts_seed"))

    def title(self) -> str:
        """The learner and the environment."""
        return f"{self._given.get('algorithm', 'a learner')} in {self._environment}"

    def setting(self) -> list[str]:
        """Sizes, limits, episodes and seed."""
        limits = words.limits_text(self._rollout.cost_limits.tolist())
        return [
            words.sizes_text(self._given["shape"]),
            f"cost {limits.removeprefix('the ')}",
            counted(len(self._rollout), "episode"),
            f"seed {self._given['env_seed']}" if self._seeded else "no seed",
        ]

    def summary(self) -> list[str]:
        """Mean costs against the limits first, then the return, then the guarantee."""
        rollout, guarantee = self._rollout, f"Guarantee: {self._claim.short}."
        if not len(rollout):
            return ["No episode was played.", guarantee]
        found = rollout.summary()
        costs = [
            f"{tables.cell(mean, error)} (limit {words.number(limit)})"
            for mean, error, limit in zip(
                found["mean costs"],
                found["mean costs, standard error"],
                found["cost limits"],
                strict=True,
            )
        ]
        earned = tables.cell(found["mean return"], found["mean return, standard error"])
        share = percent(found["share on the baseline"])
        return [
            f"An episode cost {words.joined(costs)} on average and returned {earned}.",
            f"{share} of the episodes played the baseline. {guarantee}",
        ]

    def alarms(self) -> list[tuple[str, str]]:
        """None: the true model, which could contradict a guarantee, is not known."""
        return []

    def sections(self, prefix: str, level: int) -> Iterable[tuple[str, str]]:
        """Pictures, totals, the guarantee, what was played, how to play it again."""
        rollout = self._rollout
        if len(rollout):
            yield "Pictures", gallery([_picture(rollout)], prefix)
        found = {name: fact for name, fact in rollout.summary().items() if name != "guarantee"}
        note = (
            "Returns and costs are sums over single episodes, which vary; limits and certified costs "
            f"are about expected costs. {words.units_text(rollout.units)}"
        )
        rows = list(tables.facts(found).items())
        yield (
            "Results",
            page.wide_table("Totals", ("total", "value"), rows) + page.paragraph(note, "note"),
        )
        yield "Guarantee", claim_section({self.title(): self._claim}, {}, level) + _yours(self._claim)
        yield (
            "What was played",
            page.facts(self._facts()) + html_folded("All parameters", tables.facts(self._given)),
        )
        yield "Play it again", self._reproduction()

    def _facts(self) -> dict[str, str]:
        first = int(self._given.get("first_episode", 0))
        return {
            "Environment": self._environment,
            "Learner": str(self._given.get("algorithm", "a learner")),
            "Sizes": words.sizes_text(self._given["shape"]),
            "Episodes": f"{len(self._rollout):,}" + (f", from number {first:,} on" if first else ""),
            "Seed": str(self._given["env_seed"]) if self._seeded else "none",
        }

    def _reproduction(self) -> str:
        seed = f", seed={self._given['env_seed']}" if self._seeded else ""
        text = _SNIPPET.format(episodes=len(self._rollout), seed=seed)
        note = (
            "The environment takes a seed: if nothing else in it is random, the episodes are the same."
            if self._seeded
            else "The environment took no seed, so its episodes need not be the same."
        )
        return page.code(text, "Python that plays it again") + page.paragraph(note)


def _yours(claim: Claim) -> str:
    """Who knows whether the assumptions are true."""
    if not claim.assumptions:
        return ""
    return page.paragraph(
        "The library does not know the environment: whether all this is true of it is yours to judge."
    )


def _picture(rollout: Rollout) -> Picture:
    means = words.joined([tables.cell(float(mean)) for mean in rollout.costs.mean(axis=0)])
    return Picture(
        "rollout",
        "Costs, returns and what was played",
        "Running means over episodes: the cost against the limit and the certified cost, the return, "
        "and the share of the episodes that played a policy of each source. Bands: two standard errors.",
        f"Mean cost of an episode {means}, against {words.limits_text(rollout.cost_limits.tolist())}; "
        f"mean return {tables.cell(float(rollout.returns.mean()))}; "
        f"{percent(float(rollout.on_baseline.mean()))} of the episodes on the baseline.",
        plot_rollout(rollout),
    )
