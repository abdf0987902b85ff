"""The base classes of all learners, and what learners hand out: deployments, estimates, signals."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray, IntArray
from optpess.exceptions import InvalidInputError
from optpess.learn.progress import Progress
from optpess.learn.terms import (
    BoundedViolation,
    ConfidenceRule,
    Guarantee,
    SafeBaseline,
    SafeMixture,
    SafetyMargin,
    Theorem,
    ZeroViolation,
    factor_of,
)
from optpess.model import Shape
from optpess.plan.certificate import Certificate

if TYPE_CHECKING:
    from optpess._core import DeploymentDict, MixtureDict

__all__ = [
    "Deployment",
    "Estimates",
    "Learner",
    "MarginLearner",
    "Member",
    "Mixture",
    "Signals",
    "check_baseline",
    "deployment_of",
    "states_its_arguments",
]

# The arguments that several learners take. `states_its_arguments` puts them into their docstrings.
_ARGUMENTS = {
    "shape": "(H, S, A).",
    "initial": "``[S]``, the distribution of the first state.",
    "margin": "the cost limit, and a cost below it that some policy attains.",
    "num_episodes": "K. It enters every radius, and episode K + 1 is refused.",
    "failure_probability": "delta, the probability with which the confidence bounds may fail.",
    "confidence": ":class:`Theorem`, or :class:`Scaled`, which multiplies every radius by a factor and\n"
    "    voids any guarantee.",
}

_AnyLearner = TypeVar("_AnyLearner", bound="Learner")


def states_its_arguments(learner: type[_AnyLearner]) -> type[_AnyLearner]:
    """Replaces every line ``name: ...`` of a class's docstring by what the argument means."""

    def described(line: re.Match[str]) -> str:
        indent, name = line.groups()
        return f"{indent}{name}: " + _ARGUMENTS[name].replace("\n", "\n" + indent)

    if learner.__doc__ is not None:  # python -OO has no docstrings
        learner.__doc__ = re.sub(r"^( *)(\w+): \.\.\.$", described, learner.__doc__, flags=re.MULTILINE)
    return learner


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A policy of a :class:`Mixture`, with its weight and bounds on its cost."""

    number: int
    """The number of the policy within its learner: the same number is the same policy."""
    source: str
    """Where the policy comes from, as in :class:`Deployment`."""
    weight: float
    """The probability that the coin chooses it."""
    cost_bounds: FloatArray
    """Upper bounds on its expected cost, ``[M]``: its certificates."""
    policy: FloatArray
    """``[H, S, A]``."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Policies with weights, of which a coin chooses one before the episode starts.

    The expected cost of the episode, over the coin too, is the weighted sum of the members' costs, hence
    at most ``cost_bounds``, and these are within ``limits``. The member that the coin chose may cost
    more than the limit by itself.
    """

    number: int
    """Which mixture of its learner this is: the same number is the same mixture."""
    members: tuple[Member, ...]
    """The members."""
    chosen: int
    """The position of the member that the coin chose."""
    limits: FloatArray
    """The cost limits, ``[M]``."""
    cost_bounds: FloatArray
    """The weighted sums of the members' cost bounds, ``[M]``; never above the limits."""

    @property
    def chosen_member(self) -> Member:
        """The member that the coin chose."""
        return self.members[self.chosen]

    @property
    def weights(self) -> FloatArray:
        """The weights of the members."""
        return np.array([member.weight for member in self.members])


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """The policy to play in one episode."""

    episode: int
    """The number of the episode, from 0."""
    policy: FloatArray
    """``[H, S, A]``."""
    source: str
    """How the policy was chosen: ``"Baseline"``, ``"BaselineEstimation"``, ``"PessimisticSet"`` or
    ``"Lagrangian"``; other learners also have ``"Optimistic"``, ``"Plausible"``,
    ``"PlausibleLagrangian"``, ``"LeastCost"``, ``"MirrorAscent"`` and ``"KnownTransitions"``, and for
    members of mixtures ``"Explorer"``, ``"Cautious"`` and ``"Bold"``."""
    certificate: Certificate | None
    """The re-evaluated pessimistic cost of a policy of the pessimistic set; else None."""
    optimistic_reward: float
    """The policy's value for the learner's optimistic reward; NaN on the baseline."""
    biased_cost: float
    """The policy's value for the learner's pessimistic (OptPess-LP) or optimistic cost."""
    mixture: Mixture | None = None
    """The mixture of which the coin chose ``policy``, for learners that deploy mixtures; else None."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Counts and averages of everything observed. Pairs that were not visited have zeros throughout,
    also in their row of transitions.
    """

    visits: IntArray
    """How often each (step, state, action) was visited, ``[H, S, A]``."""
    transition_counts: IntArray
    """How often each next state followed, ``[H, S, A, S]``; 0 at the last step."""
    transitions: FloatArray
    """The estimated transition probabilities, ``[H, S, A, S]``; 0 at the last step."""
    rewards: FloatArray
    """The average observed rewards, ``[H, S, A]``."""
    costs: FloatArray
    """The average observed costs, ``[H, S, A]``."""
    bonus: FloatArray
    """The radius of the confidence bounds, ``[H, S, A]``."""


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """The biased reward and cost that the next plan will use."""

    reward: FloatArray | None
    """``[H, S, A]``; None while the safe cost, on which it depends, is being estimated."""
    cost: FloatArray
    """``[H, S, A]``."""


class Learner:
    """The base class of all learners.

    A learner alternates between two calls: :meth:`next_policy` plans an episode, :meth:`observe` takes
    in what was seen. Learners can be copied and pickled. Use one of the subclasses, such as
    :class:`OptPessLP`.
    """

    _inner: _core.Learner
    parameters: dict[str, Any]
    """The arguments of the learner, as kept in records."""

    def __init__(self) -> None:
        raise TypeError("Learner is a base class; make an OptPessLP or another learner")

    def next_policy(self) -> Deployment:
        """Plans the next episode from everything observed so far."""
        return deployment_of(self._inner.next_policy())

    def observe(
        self, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, costs: ArrayLike
    ) -> None:
        """Takes in the episode that was played: arrays ``[H]`` (states may be ``[H + 1]``). A learner
        with M > 1 limits takes costs ``[M, H]``.

        If an argument is refused, the learner does not change.
        """
        self._inner.observe(states, actions, rewards, costs)

    @property
    def shape(self) -> Shape:
        """(H, S, A)."""
        return Shape(*self.parameters["shape"])

    @property
    def num_episodes(self) -> int | None:
        """K; None for a learner that needs none."""
        given = self.parameters["num_episodes"]
        return None if given is None else int(given)

    @property
    def episodes_observed(self) -> int:
        """The number of episodes observed so far."""
        return self._inner.episodes_observed

    @property
    def cost_limit(self) -> float:
        """The cost limit tau."""
        return float(self.parameters["cost_limit"])

    @property
    def safe_cost(self) -> float | None:
        """The safe cost in use; None while it is being estimated."""
        return self._inner.safe_cost

    @property
    def estimates(self) -> Estimates:
        """Counts, averages and bonuses, as copies."""
        stored = self._inner.estimates()
        return Estimates(
            visits=stored["visits"],
            transition_counts=_with_last_step(stored["transition_counts"]),
            transitions=_with_last_step(stored["transitions"]),
            rewards=stored["rewards"],
            costs=stored["costs"],
            bonus=stored["bonus"],
        )

    @property
    def signals(self) -> Signals:
        """The biased reward and cost of the next plan, as copies."""
        return Signals(*self._inner.signals())

    @property
    def progress(self) -> Progress:
        """How far the learner is: certified cost, limit, gate, and what is left. The learner does not
        change; its next plan is made on a copy, by the compiled engine, if it is needed.
        """
        return Progress(**self._inner.progress())

    @property
    def guarantee(self) -> Guarantee | None:
        """What the theorems guarantee for this learner; None if an argument is outside of them."""
        guarantee = self._inner.guarantee
        if guarantee is None:
            return None
        if guarantee[0] == "zero":
            return ZeroViolation(*guarantee[1:])
        if guarantee[0] == "mixture":
            return SafeMixture(guarantee[1], tuple(guarantee[2]))
        return BoundedViolation(*guarantee[1:])

    @staticmethod
    def _parameters(
        algorithm: str,
        shape: tuple[int, int, int],
        cost_limit: float,
        safe_cost: float | None,
        num_episodes: int | None,
        **further: Any,
    ) -> dict[str, Any]:
        """What records keep of a learner's arguments, as plain numbers and words."""
        return {
            "algorithm": algorithm,
            "shape": [int(size) for size in shape],
            "cost_limit": float(cost_limit),
            "safe_cost": None if safe_cost is None else float(safe_cost),
            "num_episodes": None if num_episodes is None else int(num_episodes),
        } | further

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._inner = self._inner.copy()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        stored = self._inner.to_bytes()
        return self.__dict__ | {"_inner": stored, "_checksum": zlib.crc32(stored)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        stored, further = state["_inner"], state.copy()
        # Most damaged bytes are a learner too, with other counts or another baseline.
        if further.pop("_checksum", None) != zlib.crc32(stored):
            raise ValueError("not a stored learner: the checksum does not match the bytes")
        self.__dict__.update(further)
        self._inner = _core.Learner.from_bytes(stored)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.shape._asdict().items())
        last = "" if self.num_episodes is None else f" of {self.num_episodes}"
        played = f"episode {self.episodes_observed}{last}"
        return f"{type(self).__name__}({sizes}, {played}, guarantee={self.guarantee})"


class MarginLearner(Learner):
    """The base class of learners that are given no safe policy, only a cost that some policy attains."""

    _algorithm: tuple[str, str]  # in the core, in records

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: ArrayLike,
        margin: SafetyMargin,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
    ) -> None:
        name, shown = self._algorithm
        horizon, num_states, num_actions = shape
        self._inner = _core.margin_learner(
            name,
            (horizon, num_states, num_actions),
            initial,
            float(margin.cost_limit),
            float(margin.safe_cost),
            num_episodes,
            failure_probability,
            factor_of(confidence, shown),
        )
        self.parameters = self._parameters(
            shown,
            shape,
            margin.cost_limit,
            margin.safe_cost,
            num_episodes,
            failure_probability=float(failure_probability),
            confidence=repr(confidence),
        )
        self._warn_caller()

    def _warn_caller(self) -> None:
        """Warns, at the line that makes the learner, of arguments that do little for the caller."""

    @property
    def multiplier(self) -> float:
        """lambda, the dual variable the next plan will use; 0 for algorithms without one."""
        return self._inner.multiplier


def check_baseline(
    baseline: SafeBaseline, shape: tuple[int, int, int], *, several: bool = False
) -> None:
    """Refuses a baseline of another shape than the learner's, and several limits unless allowed."""
    if not several and len(baseline.cost_limits) > 1:
        raise InvalidInputError(
            f"baseline has {len(baseline.cost_limits)} limits; this learner takes one; see OptPessMix"
        )
    if np.shape(baseline.policy) != tuple(shape):
        raise InvalidInputError(
            f"baseline has shape {np.shape(baseline.policy)}; the learner's is {tuple(shape)}"
        )


def deployment_of(answer: DeploymentDict) -> Deployment:
    """A deployment from the core's answer."""
    certificate = None
    if answer["certificate"] is not None:
        cost, limit, repair = answer["certificate"]
        certificate = Certificate([cost], [limit], repair)
    return Deployment(
        episode=answer["episode"],
        policy=answer["policy"],
        source=answer["source"],
        certificate=certificate,
        optimistic_reward=answer["optimistic_reward"],
        biased_cost=answer["biased_cost"],
        mixture=None if answer["mixture"] is None else _mixture_of(answer["mixture"]),
    )


def _mixture_of(answer: MixtureDict) -> Mixture:
    """A mixture from the core's answer."""
    members = (
        Member(
            number=member["number"],
            source=member["source"],
            weight=member["weight"],
            cost_bounds=np.array(member["cost_bounds"]),
            policy=member["policy"],
        )
        for member in answer["members"]
    )
    return Mixture(
        number=answer["number"],
        members=tuple(members),
        chosen=answer["chosen"],
        limits=np.array(answer["limits"]),
        cost_bounds=np.array(answer["cost_bounds"]),
    )


_Array = TypeVar("_Array", FloatArray, IntArray)


def _with_last_step(rows: _Array) -> _Array:
    """The array with zeros for the last step, of which no transition is observed."""
    return np.concatenate([rows, np.zeros((1, *rows.shape[1:]), dtype=rows.dtype)])
