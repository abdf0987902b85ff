"""The base classes of all learners, and the arguments they share."""

from __future__ import annotations

import copy
import json
import re
import zlib
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, BoolArray, FloatArray, IntArray
from optpess.checks import check_type, real_number, whole_number
from optpess.exceptions import InvalidInputError
from optpess.learn.deployment import Deployment, Estimates, Signals, deployment_of
from optpess.learn.given import Given, shape_in
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
from optpess.model.units import CostRange, Range, Units

if TYPE_CHECKING:
    from optpess._core import DeploymentDict

__all__ = [
    "Learner",
    "MarginLearner",
    "check_baseline",
    "states_its_arguments",
    "with_last_step",
]

# The arguments that several learners take. `states_its_arguments` puts them into their docstrings.
_ARGUMENTS = {
    "shape": "(H, S, A).",
    "initial": "``[S]``, the distribution of the first state; or its number, if every episode starts\n"
    "    there.",
    "margin": "the cost limit, and a cost below it that some policy attains.",
    "num_episodes": "K. It enters every radius, and episode K + 1 is refused.",
    "failure_probability": "delta, the probability with which the confidence bounds may fail.",
    "confidence": ":class:`Theorem`, or :class:`Scaled`, which multiplies every radius by a factor and\n"
    "    voids any guarantee.",
    "reward_range": "the least and the largest reward of a step, in your units.",
    "cost_range": "the least and the largest cost of a step, in your units; with several constraints\n"
    "    one range for all, or one for each. Limits and safe costs are sums of such costs.",
    "actions": "``[S, A]``, True where an action exists in a state; None if all exist.",
    "bounded_observations": "whether observed rewards and costs lie in their ranges; others are\n"
    "    refused. False if noise (Assumption 2.1) may leave them.",
    "seed": "of the actions that deployments draw, and of the coin, if there is one. A learner that is\n"
    "    driven by hand draws what replicate 0 of a run with that seed draws.",
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


class Learner:
    """The base class of all learners.

    A learner alternates between two calls: :meth:`next_policy` plans an episode, :meth:`observe` takes
    in what was seen. Learners can be copied and pickled. Use one of the subclasses, such as
    :class:`OptPessLP`.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> deployment = learner.next_policy()
        >>> states, rewards, costs = [0, 1], [1.0, 0.0], [0.0, 1.0]  # what was seen in an episode
        >>> actions = [deployment.action(step, state) for step, state in enumerate(states)]
        >>> learner.observe(states, actions, rewards, costs)
        >>> learner.episodes_observed
        1
    """

    _inner: _core.Learner
    parameters: dict[str, Any]
    """The arguments of the learner, as kept in records."""

    def __init__(self) -> None:
        raise TypeError("Learner is a base class; make an OptPessLP or another learner")

    def next_policy(self) -> Deployment:
        """Plans the next episode from everything observed so far."""
        return self._deployment_of(self._inner.next_policy())

    @property
    def pending(self) -> Deployment | None:
        """The deployment whose episode has not been observed yet; None if it is time to plan."""
        answer = self._inner.pending()
        return None if answer is None else self._deployment_of(answer)

    def abandon(self) -> None:
        """Gives up the pending episode: nothing of it is counted.

        The next call of :meth:`next_policy` deploys the same policy again, with the same coin and the
        same actions. So a stop within an episode changes nothing. The guarantee rests on counting every
        episode that was played to its end, whatever was seen in it: do not abandon one for its result.
        """
        self._inner.abandon()

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the learner to a file, with a checksum and without pickle: what it has seen, its coin
        and stream of actions, a pending deployment. :func:`optpess.load_learner` reads it.
        """
        from optpess.learn.stored import save_learner

        save_learner(self, path)

    def observe(
        self, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, costs: ArrayLike
    ) -> None:
        """Takes in the episode that was played: arrays ``[H]`` (states may be ``[H + 1]``). A learner
        with M > 1 limits takes costs ``[M, H]``.

        Rewards and costs are in the learner's units. Refused are: numbers outside of their ranges, a
        first state and actions that have probability 0, because the guarantee rests on episodes of the
        deployed policy. If an argument is refused, the learner does not change.
        """
        self._inner.observe(states, actions, rewards, costs)

    @property
    def shape(self) -> Shape:
        """(H, S, A)."""
        return Shape(*self.parameters["shape"])

    @property
    def units(self) -> Units:
        """The ranges of rewards and costs, in the user's units."""
        if "reward_range" not in self.parameters:
            return Units(cost_ranges=((0.0, 1.0),) * len(self._limits))
        low, high = self.parameters["reward_range"]
        costs = tuple((least, most) for least, most in self.parameters["cost_ranges"])
        return Units((low, high), costs)

    @property
    def actions(self) -> BoolArray | None:
        """``[S, A]``, True where an action exists; None if all exist."""
        given = self.parameters.get("actions")
        return None if given is None else np.array(given, dtype=np.bool_)

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
        return self._cost_out(self._inner.safe_cost)

    @property
    def estimates(self) -> Estimates:
        """Counts, averages and bonuses, as copies."""
        stored, units = self._inner.estimates(), self.units
        return Estimates(
            visits=stored["visits"],
            transition_counts=with_last_step(stored["transition_counts"]),
            transitions=with_last_step(stored["transitions"]),
            rewards=units.rewards_out(stored["rewards"]),
            costs=units.first_cost_out(stored["costs"]),
            bonus=stored["bonus"],
        )

    @property
    def signals(self) -> Signals:
        """The biased reward and cost of the next plan, as copies."""
        (reward, cost), units = self._inner.signals(), self.units
        return Signals(None if reward is None else units.rewards_out(reward), units.first_cost_out(cost))

    @property
    def progress(self) -> Progress:
        """How far the learner is: certified cost, limit, gate, and what is left. The learner does not
        change; its next plan is made on a copy, by the compiled engine, if it is needed.
        """
        found = self._inner.progress()
        costs = ("certified_cost", "cost_limit", "gate_cost", "gate_threshold")
        mapped: dict[str, Any] = {name: self._cost_out(found[name]) for name in costs}  # type: ignore[literal-required]
        return Progress(**{**found, **mapped})

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

    @property
    def _limits(self) -> list[float]:
        """The cost limits, ``[M]``."""
        limits: list[float] = self.parameters.get("cost_limits", [self.parameters["cost_limit"]])
        return limits

    def _cost_out(self, cost: float | None) -> float | None:
        """A sum of costs of the first constraint, in the user's units."""
        if cost is None:
            return None
        return self.units.first_cost_value_out(cost, self.shape.horizon)

    def _deployment_of(self, answer: DeploymentDict) -> Deployment:
        """A deployment from the core's answer."""
        return deployment_of(answer, self.units, self.shape.horizon, np.array(self._limits))

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
        inner = self._inner.copy()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, parameters=copy.deepcopy(self.parameters))
        twin._inner = inner
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        stored = self._inner.to_bytes()
        checksum = _checksum(stored, self.parameters)
        return self.__dict__ | {"_inner": stored, "_checksum": checksum}

    def __setstate__(self, state: dict[str, Any]) -> None:
        stored, further = state["_inner"], state.copy()
        # Most damaged bytes are a learner too, with other counts or another baseline.
        if further.pop("_checksum", None) != _checksum(stored, state["parameters"]):
            raise ValueError("not a stored learner: the checksum does not match the bytes")
        self.__dict__.update(further)
        self._inner = _core.Learner.from_bytes(stored)
        self._check_arguments()

    def _check_arguments(self) -> None:
        """Refuses arguments that are not those of the state in the core."""
        sizes, last, limits = self._inner.told()
        ours = self.units.limits_in(np.array([self._limits]), sizes[0])[0]
        same = list(sizes) == list(self.shape) and last == self.num_episodes
        if not same or not np.allclose(ours, limits, rtol=1e-9, atol=0.0):
            raise ValueError("not a stored learner: its arguments are not those of its state")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.shape._asdict().items())
        last = "" if self.num_episodes is None else f" of {self.num_episodes}"
        played = f"episode {self.episodes_observed}{last}"
        return f"{type(self).__name__}({sizes}, {played}, guarantee={self.guarantee})"


def _checksum(stored: bytes, parameters: dict[str, Any]) -> int:
    return zlib.crc32(stored, zlib.crc32(json.dumps(parameters).encode()))


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
        reward_range: Range = (0.0, 1.0),
        cost_range: CostRange = (0.0, 1.0),
        actions: ArrayLike | None = None,
        bounded_observations: bool = True,
        seed: SupportsIndex = 0,
    ) -> None:
        name, shown = self._algorithm
        limits, costs = _one_margin(margin)
        given = Given.of(shape, 1, reward_range, cost_range, actions, seed, bounded_observations)
        inner = _core.margin_learner(
            name,
            given.shape,
            initial,
            given.limits_in(limits)[0],
            given.safe_costs_in(costs)[0],
            whole_number("num_episodes", num_episodes, least=None),
            real_number("failure_probability", failure_probability),
            factor_of(confidence, shown),
        )
        self._inner = given.settle(inner)
        self.parameters = self._parameters(
            shown,
            given.shape,
            float(limits[0]),
            float(costs[0]),
            num_episodes,
            failure_probability=float(failure_probability),
            confidence=repr(confidence),
            **given.parameters(),
        )
        self._warn_caller()

    def _warn_caller(self) -> None:
        """Warns, at the line that makes the learner, of arguments that do little for the caller."""

    @property
    def multiplier(self) -> float:
        """lambda, the dual variable the next plan will use; 0 for algorithms without one."""
        return self._inner.multiplier


def _one_margin(margin: object) -> tuple[FloatArray, FloatArray]:
    """The limit and the safe cost of a margin with one constraint, each ``[1]``."""
    hint = "op.SafetyMargin(cost_limit=..., safe_cost=...)"
    checked = check_type("margin", margin, SafetyMargin, hint)
    limits, costs = np.array(checked._limits), np.array(checked._safe_costs)
    if len(limits) > 1:
        raise InvalidInputError(
            f"margin has {len(limits)} limits; this learner takes one; see OptPessMix"
        )
    return limits, costs


def check_baseline(baseline: object, shape: object, *, several: bool = False) -> SafeBaseline:
    """The baseline; refused if it has another shape than the learner, or too many limits."""
    hint = "op.SafeBaseline(policy, margin)"
    baseline, shape = check_type("baseline", baseline, SafeBaseline, hint), shape_in(shape)
    if not several and len(baseline.cost_limits) > 1:
        raise InvalidInputError(
            f"baseline has {len(baseline.cost_limits)} limits; this learner takes one; see OptPessMix"
        )
    if np.shape(baseline.policy) != tuple(shape):
        raise InvalidInputError(
            f"baseline has shape {np.shape(baseline.policy)}; the learner's is {tuple(shape)}"
        )
    return baseline


_Array = TypeVar("_Array", FloatArray, IntArray)


def with_last_step(rows: _Array) -> _Array:
    """The array with zeros for the last step, of which no transition is observed."""
    return np.concatenate([rows, np.zeros((1, *rows.shape[1:]), dtype=rows.dtype)])
