"""Makes learners from their names and options, as the command line and files of studies give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from optpess.checks import unknown_name
from optpess.exceptions import InvalidInputError
from optpess.learn.base import Learner
from optpess.learn.mix import Knowledge, OptPessMix
from optpess.learn.optpess import OptPessLP, OptPessPrimalDual
from optpess.learn.peers import (
    CUCRL,
    OPDOP,
    SOPS,
    AlwaysBaseline,
    OptCMDP,
    OptCMDPBonus,
    OptDualCMDP,
    OptPrimalDualCMDP,
    UnconstrainedOptimistic,
)
from optpess.learn.terms import ConfidenceRule, SafeBaseline, SafetyMargin, Scaled, Sharp, Theorem
from optpess.model import CMDP
from optpess.zoo import Problem

__all__ = ["LEARNERS", "LearnerOptions", "Word", "flag", "learners_of"]

LEARNERS: dict[str, type[Learner]] = {
    "optpess-mix": OptPessMix,
    "optpess-lp": OptPessLP,
    "optpess-primaldual": OptPessPrimalDual,
    "optcmdp": OptCMDP,
    "optcmdp-bonus": OptCMDPBonus,
    "optdual-cmdp": OptDualCMDP,
    "optprimaldual-cmdp": OptPrimalDualCMDP,
    "opdop": OPDOP,
    "cucrl": CUCRL,
    "sops": SOPS,
    "always-baseline": AlwaysBaseline,
    "unconstrained-optimistic": UnconstrainedOptimistic,
}
_RULES = ("theorem", "sharp", "scaled:F")
# The argument of a learner that each option becomes.
_ARGUMENT_OF = {
    "confidence": "confidence",
    "delta": "failure_probability",
    "stationary": "knowledge",
    "replan_growth": "replan_growth",
    "variance_proxy": "variance_proxy",
    "estimate_safe_cost": "baseline",
    "num_episodes": "num_episodes",
}


@dataclass(frozen=True, slots=True)
class LearnerOptions:
    """Options of learners; None and False if they were not given."""

    confidence: str | None = None
    delta: float | None = None
    stationary: bool = False
    replan_growth: float | None = None
    variance_proxy: float | None = None
    estimate_safe_cost: bool = False
    num_episodes: int | None = None
    episodes: int | None = None
    """How many will be played: K, unless that is given."""

    def given(self) -> dict[str, Any]:
        """The options that were given."""
        found = {name: getattr(self, name) for name in _ARGUMENT_OF}
        return {name: value for name, value in found.items() if value is not None and value is not False}


# Gives an option as the user wrote it.
Word = Callable[[str], str]


def flag(option: str) -> str:
    """An option as the command line writes it."""
    return f"--{option.replace('_', '-')}"


def learners_of(
    texts: Sequence[str],
    model: CMDP,
    problem: Problem | None,
    options: LearnerOptions,
    word: Word = flag,
) -> dict[str, Learner]:
    """A learner for each text, ``NAME`` or ``NAME:CONFIDENCE``. An option holds for every learner that
    takes it, and is refused if none does. ``word`` gives an option as the user wrote it.
    """
    chosen = {text: _class_of(text, word) for text in texts}
    if len(chosen) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InvalidInputError(f"{word('learner')} {twice} is given twice; each must be there once")
    for option in options.given():
        _check_taken(option, chosen, word)
    return {text: _make(text, kind, model, problem, options, word) for text, kind in chosen.items()}


def _class_of(text: str, word: Word) -> type[Learner]:
    """The learner of that name; case, dashes and underscores do not matter."""
    name = text.partition(":")[0]
    plain = {_letters(known): known for known in LEARNERS}
    if _letters(name) not in plain:
        raise unknown_name(word("learner"), name, LEARNERS)
    return LEARNERS[plain[_letters(name)]]


def _letters(name: str) -> str:
    return re.sub("[-_ ]", "", name.lower())


def _check_taken(option: str, chosen: Mapping[str, type[Learner]], word: Word) -> None:
    argument = _ARGUMENT_OF[option]
    if any(argument in signature(kind).parameters for kind in chosen.values()):
        return
    takers = [name for name, kind in LEARNERS.items() if argument in signature(kind).parameters]
    raise InvalidInputError(
        f"{word(option)} is given, but {', '.join(chosen)} does not take it; it is for "
        f"{', '.join(takers)}"
    )


def _make(
    text: str,
    kind: type[Learner],
    model: CMDP,
    problem: Problem | None,
    options: LearnerOptions,
    word: Word,
) -> Learner:
    takes, given = signature(kind).parameters, options.given()
    arguments: dict[str, Any] = {
        "shape": model.shape,
        "initial": model.initial,
        "reward_range": model.units.reward_range,
        "cost_range": model.units.cost_ranges,
        "actions": model.actions,
        "transitions": model.transitions,
        "num_episodes": given.get("num_episodes", options.episodes),
        "knowledge": Knowledge(stationary=options.stationary),
    }
    if "num_episodes" in takes and arguments["num_episodes"] is None:
        raise InvalidInputError(
            f"{text} needs to know K, its number of episodes: give {word('num_episodes')}"
        )
    if "baseline" in takes:
        arguments["baseline"] = _baseline(text, problem, word, estimated=options.estimate_safe_cost)
    if "margin" in takes:
        arguments["margin"] = _margin(text, problem, word)
    for option, argument in _ARGUMENT_OF.items():
        if argument not in arguments and option in given:
            arguments[argument] = _rule(given[option]) if option == "confidence" else given[option]
    if rule := text.partition(":")[2]:
        arguments["confidence"] = _rule(rule)
        if "confidence" not in takes:
            raise InvalidInputError(
                f"{word('learner')} is {text!r}, but this learner has no confidence rule"
            )
    return kind(**{name: value for name, value in arguments.items() if name in takes})


def _baseline(text: str, problem: Problem | None, word: Word, *, estimated: bool) -> SafeBaseline:
    if problem is None:
        raise InvalidInputError(
            f"{text} needs a safe policy, which a file of a model does not have: give "
            f"{word('safe_cost')} C for the best policy of cost C, or {word('baseline')} FILE"
        )
    if estimated:
        limits = problem.model.cost_limits.tolist()
        return SafeBaseline.estimated(problem.safe_policy, limits[0] if len(limits) == 1 else limits)
    return problem.baseline


def _margin(text: str, problem: Problem | None, word: Word) -> SafetyMargin:
    if problem is None:
        raise InvalidInputError(
            f"{text} needs a cost that some policy attains, which a file of a model does not have: give "
            f"{word('safe_cost')} C"
        )
    limits, costs = problem.model.cost_limits.tolist(), problem.safe_costs.tolist()
    return SafetyMargin(limits, costs) if len(limits) > 1 else SafetyMargin(limits[0], costs[0])


def _rule(text: str) -> ConfidenceRule:
    """A confidence rule from its name."""
    name, _, factor = text.partition(":")
    if name == "theorem" and not factor:
        return Theorem()
    if name == "sharp" and not factor:
        return Sharp()
    if name == "scaled" and factor:
        try:
            return Scaled(float(factor))
        except ValueError:
            raise InvalidInputError(
                f"the confidence is {text!r}; the factor after the colon must be a number"
            ) from None
    raise unknown_name("the confidence", text, _RULES)
