"""What is guaranteed of a learner, and on which assumptions, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optpess.display import percent
from optpess.learn.terms import BoundedViolation, Guarantee, SafeMixture, ZeroViolation
from optpess.report import page
from optpess.report.words import capitalised, joined, limits_of, limits_text, number

__all__ = ["Claim", "claim_of", "claim_section"]

_DECLARED = {
    "stationary": "Transitions, rewards and costs are the same at every step, as was declared.",
    "rewards": "The mean rewards are those that were declared to be known.",
    "costs": "The mean costs are those that were declared to be known.",
    "support": "Only the successors that were declared to be possible occur.",
}
# Learners, as records name them, whose guarantees rest on more or less than the others'.
_MIX = "OptPess-Mix"
_KNOWN_TRANSITIONS = "C-UCRL (transitions known)"
_REFERENCE = "always the baseline"


@dataclass(frozen=True, slots=True)
class Claim:
    """What is guaranteed of a learner, in words."""

    short: str
    """In a few words, for the middle of a sentence."""
    statement: str
    """In full sentences."""
    assumptions: tuple[str, ...] = ()
    """What must be true for it to hold."""
    holds: bool = True
    """Whether anything is guaranteed."""
    void: bool = False
    """Whether the model contradicts what the learner was told; the reader must not miss that."""

    @property
    def title(self) -> str:
        """As a heading."""
        return capitalised(self.short)


def claim_of(
    guarantee: Guarantee | None,
    parameters: Mapping[str, Any],
    void_because: str | None = None,
) -> Claim:
    """The guarantee of a learner with these parameters, and what it rests on."""
    if void_because is not None:
        return Claim(
            "void, no guarantee holds",
            f"The true model contradicts what the learner was told: {void_because}. Whatever the "
            "theorems say of this learner, they do not say it of this run.",
            holds=False,
            void=True,
        )
    if guarantee is None:
        return Claim(
            "none",
            f"{_reason_for_none(parameters)} What the record shows is what happened in these episodes; "
            "it is no promise for others.",
            holds=False,
        )
    assumed = _assumptions(guarantee, parameters)
    chance = f"with a probability of at least {percent(guarantee.probability)}"
    if isinstance(guarantee, BoundedViolation):
        return _bounded(guarantee, chance, assumed)
    if isinstance(guarantee, ZeroViolation):
        short = "no policy above the limit"
        text = "no policy deployed in any episode has an expected cost above the limit."
    else:
        short = "every episode within the limits"
        text = (
            "the expected cost of every episode, given the episodes before it, is within every limit. "
            "A coin chooses the policy of an episode; the expectation is over the coin too, so this is "
            "no promise for the policy that the coin chose."
        )
    if guarantee.probability == 1.0:
        return Claim(short, capitalised(text), assumed)
    return Claim(f"{short}, {chance}", f"{capitalised(chance)}, {text}", assumed)


def _bounded(guarantee: BoundedViolation, chance: str, assumed: tuple[str, ...]) -> Claim:
    """Of runs that are too short for their theorem, that it says nothing about them."""
    text = (
        f"{capitalised(chance)}, the sum over all episodes of expected cost minus limit stays below a "
        "constant that does not depend on the number of episodes. Single episodes may be above the "
        "limit."
    )
    ratio, horizon = guarantee.episodes_over_horizon, guarantee.tightening_horizon
    if ratio is not None and ratio < 1.0:
        return Claim(
            "nothing for so few episodes",
            f"{text} The constant allows each of the first {horizon:,} episodes (C'') to be above the "
            f"limit. This learner has {guarantee.num_episodes:,} episodes, so the theorem says nothing "
            "about them.",
            assumed,
            holds=False,
        )
    start = "" if horizon is None else f" Each of the first {horizon:,} episodes (C'') may be."
    return Claim(f"a bounded sum of violations, {chance}", text + start, assumed)


def _reason_for_none(parameters: Mapping[str, Any]) -> str:
    """Why a learner has no guarantee, if its parameters tell."""
    confidence, radius = str(parameters.get("confidence")), str(parameters.get("radius"))
    if confidence.startswith("Scaled"):
        return f"The bonus was scaled by hand, {confidence}, which no theorem covers."
    if "paper" in radius.lower():
        return "The radius printed in the paper's Appendix E is too small for a guarantee."
    return "No theorem that bounds the cost of every episode covers this learner with its arguments."


def _assumptions(guarantee: Guarantee, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What a guarantee rests on, most of it as in docs/guarantees.md."""
    algorithm = parameters.get("algorithm")
    if algorithm == _REFERENCE:
        return (_about_safe_policy(guarantee, parameters),)
    found = [
        "The environment is a Markov decision process with these states, actions and steps, and does "
        "not change from episode to episode.",
        _about_observations(guarantee, parameters),
        "Episodes start as the learner was told.",
        _about_safe_policy(guarantee, parameters),
        "Every episode is played to its end with the deployed policy, and observed as it was.",
    ]
    if algorithm == _KNOWN_TRANSITIONS:
        found.append("The transitions that the learner was given are the true ones.")
    if isinstance(guarantee, SafeMixture):
        found += [
            _DECLARED.get(name, f"What was declared of {name} is true.") for name in guarantee.rests_on
        ]
    episodes = parameters.get("num_episodes")
    if episodes is not None and not _is_sharp(guarantee):
        found.append(f"The number of episodes, {episodes:,}, was fixed beforehand.")
    return tuple(found)


def _about_observations(guarantee: Guarantee, parameters: Mapping[str, Any]) -> str:
    proxy = parameters.get("variance_proxy")
    if proxy is not None:
        return (
            "Mean costs lie in their ranges; observed costs deviate from their means with a variance "
            f"proxy of at most {proxy:g}, in parts of the range."
        )
    if parameters.get("algorithm") == _MIX:
        return "Every observed cost lies in its range."
    if _is_sharp(guarantee):
        return "Every observed reward and cost lies in its range."
    return (
        "Mean rewards and costs lie in their ranges; the noise of observations is independent, of mean "
        "zero, and of variance proxy at most 1/2 in parts of the range (Assumption 2.1)."
    )


def _is_sharp(guarantee: Guarantee) -> bool:
    return isinstance(guarantee, ZeroViolation) and guarantee.bounded_observations


def _about_safe_policy(guarantee: Guarantee, parameters: Mapping[str, Any]) -> str:
    """Assumption 2.2."""
    who = "Some policy has" if isinstance(guarantee, BoundedViolation) else "The baseline has"
    costs = parameters.get("safe_costs") or [parameters.get("safe_cost")]
    limits = limits_text(limits_of(parameters))
    if any(cost is None for cost in costs):
        return f"{who} an expected cost below {limits} (Assumption 2.2); how far below was estimated."
    most = joined([number(cost) for cost in costs])
    costs_text = "an expected cost" if len(costs) == 1 else "expected costs"
    return f"{who} {costs_text} of at most {most}, below {limits} (Assumption 2.2)."


def claim_section(claims: Mapping[str, Claim], checks: Mapping[str, Sequence[str]], level: int) -> str:
    """The claims of learners by their names, what they rest on and what is known of that, as HTML."""
    groups: dict[Claim, list[str]] = {}
    for name, claim in claims.items():
        groups.setdefault(claim, []).append(name)
    parts = []
    for claim, names in groups.items():
        title = claim.title if len(claims) == 1 else f"{joined(names)}: {claim.short}"
        parts += [page.heading(level, title), page.paragraph(claim.statement)]
    assumed = {name: claim.assumptions for name, claim in claims.items() if claim.assumptions}
    if assumed:
        title = "What it rests on" if len(assumed) == 1 else "What they rest on"
        parts += [page.heading(level, title), page.items(_with_names(assumed))]
    if checks:
        title = "What was checked against the true model"
        parts += [page.heading(level, title), page.items(_with_names(checks))]
    return "".join(parts)


def _with_names(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """Each text once, with the names of those it is about unless it is about all of them."""
    about: dict[str, list[str]] = {}
    for name, found in texts.items():
        for text in found:
            about.setdefault(text, []).append(name)
    return [
        text if len(names) == len(texts) else f"{text} (For {joined(names)}.)"
        for text, names in about.items()
    ]
