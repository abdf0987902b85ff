"""``optpess certify``: bounds on the costs of a policy by what a learner has seen."""

from __future__ import annotations

from pathlib import Path

import click

from optpess.cli.options import Command
from optpess.cli.output import Result
from optpess.display import counted, table
from optpess.exceptions import InvalidInputError
from optpess.learn.mix import OptPessMix, PolicyBounds
from optpess.learn.mix import certify as bounds_of
from optpess.learn.stored import load_learner
from optpess.study.models import policy_of, read

__all__ = ["command"]


@click.command(
    "certify",
    short_help="Bound the costs of a policy by what a learner has seen.",
    cls=Command,
    examples="""
    optpess simulate ring --episodes 20000 --stationary --save-learner learner.npz
    optpess solve ring --cost-limit 2.5 --output new.npy
    optpess certify new.npy learner.npz
    """,
)
@click.argument("policy", type=click.Path(path_type=Path), metavar="POLICY")
@click.argument("learner", type=click.Path(path_type=Path), metavar="LEARNER")
def command(policy: Path, learner: Path) -> Result:
    """Bound the expected costs of POLICY by all that LEARNER has seen.

    POLICY is a .npy file of probabilities [H, S, A], or of action numbers [H, S] or [S]. LEARNER is a
    file that simulate --save-learner or Learner.save wrote of an optpess-mix.
    """
    seen = read(learner, load_learner)
    if not isinstance(seen, OptPessMix):
        raise InvalidInputError(
            f"{learner} holds a learner of type {type(seen).__name__}; certificates need an OptPessMix"
        )
    found = bounds_of(policy_of(policy, seen.shape), seen)
    return Result(
        _text(found, seen.episodes_observed),
        {
            "policy": policy,
            "learner": learner,
            "is_safe": found.is_safe,
            "upper": found.upper,
            "lower": found.best_case,
            "worst_case": found.worst_case,
            "own_episodes_bound": found.own_episodes_bound,
            "own_episodes": found.own_episodes,
            "limits": found.limits,
            "episodes_observed": seen.episodes_observed,
            "guarantee": seen.guarantee,
        },
    )


def _text(found: PolicyBounds, episodes: int) -> str:
    rows = (
        (str(m), *(f"{number:.6g}" for number in each))
        for m, each in enumerate(zip(found.best_case, found.upper, found.limits, strict=True))
    )
    verdict = "certified to be safe" if found.is_safe else "not certified to be safe"
    title = f"{verdict}, by {counted(episodes, 'episode')}"
    return f"{title}\n{table(('constraint', 'costs at least', 'at most', 'limit'), rows)}"
