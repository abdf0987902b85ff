"""The paper's two algorithms, to be driven episode by episode or handed to :func:`optpess.simulate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from optpess import _core
from optpess.exceptions import InvalidInputError, SolverError
from optpess.highs import OccupancyLP
from optpess.model import Shape
from optpess.terms import (
    BoundedViolation,
    ConfidenceRule,
    Guarantee,
    SafeBaseline,
    SafetyMargin,
    Theorem,
    ZeroViolation,
)

__all__ = [
    "Deployment",
    "DeploymentCertificate",
    "Estimates",
    "Learner",
    "MarginLearner",
    "OptPessLP",
    "OptPessPrimalDual",
    "Signals",
    "check_baseline",
    "input_line",
    "terms_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DeploymentCertificate:
    """The pessimistic cost of a deployed policy, re-evaluated by code that did not plan it."""

    cost: float
    limit: float
    repair: float
    """The weight of the baseline mixed in to make up for rounding; 0 in the usual case."""

    @property
    def slack(self) -> float:
        """Limit - cost, not negative."""
        return self.limit - self.cost


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """The policy to play in one episode."""

    episode: int
    """From 0."""
    policy: FloatArray
    """``[H, S, A]``."""
    source: str
    """``"Baseline"``, ``"BaselineEstimation"``, ``"PessimisticSet"``, ``"Lagrangian"``; and, of the
    learners compared with, ``"Optimistic"``, ``"Plausible"``, ``"PlausibleLagrangian"``,
    ``"LeastCost"``, ``"MirrorAscent"`` or ``"KnownTransitions"``."""
    certificate: DeploymentCertificate | None
    """For policies of the pessimistic set."""
    optimistic_reward: float
    """The policy's value for the learner's optimistic reward; NaN on the baseline."""
    biased_cost: float
    """The policy's value for the learner's pessimistic (OptPess-LP) or optimistic cost."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Counts and averages; unvisited pairs have zeros throughout, also in their row of transitions."""

    visits: IntArray  # [H, S, A]
    transition_counts: IntArray  # [H, S, A, S]; the last step is never observed and stays 0
    transitions: FloatArray  # [H, S, A, S]
    rewards: FloatArray  # [H, S, A]
    costs: FloatArray  # [H, S, A]
    bonus: FloatArray  # [H, S, A]


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """The biased arrays the next plan will use."""

    reward: FloatArray | None
    """``[H, S, A]``; None while the safe cost, which it depends on, is being estimated."""
    cost: FloatArray
    """``[H, S, A]``."""


class Learner:
    """What both algorithms share: two verbs that take turns, and what has been learnt."""

    _inner: _core.Learner
    parameters: dict[str, Any]
    """The Input line, as given; kept in records."""

    def next_policy(self) -> Deployment:
        """Plans the next episode from everything seen so far."""
        return _deployment(self._inner.next_policy())

    def observe(
        self,
        states: npt.ArrayLike,
        actions: npt.ArrayLike,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike,
    ) -> None:
        """Takes in the episode that was played: arrays ``[H]`` (states may be ``[H + 1]``).

        Refused input leaves the learner as it was.
        """
        self._inner.observe(states, actions, rewards, costs)

    @property
    def shape(self) -> Shape:
        """H, S, A."""
        return Shape(*self.parameters["shape"])

    @property
    def num_episodes(self) -> int:
        """K."""
        return int(self.parameters["num_episodes"])

    @property
    def episodes_observed(self) -> int:
        """How many episodes have been taken in."""
        return self._inner.episodes_observed

    @property
    def cost_limit(self) -> float:
        """The limit."""
        return float(self.parameters["cost_limit"])

    @property
    def safe_cost(self) -> float | None:
        """The safe cost in use; None while it is being estimated."""
        return self._inner.safe_cost

    @property
    def estimates(self) -> Estimates:
        """Counts, averages and bonuses, as copies."""
        stored = self._inner.estimates()
        _, num_states, num_actions = self.shape
        missing = np.zeros((1, num_states, num_actions, num_states))
        for name in ("transition_counts", "transitions"):
            stored[name] = np.concatenate([stored[name], missing.astype(stored[name].dtype)])
        return Estimates(**stored)

    @property
    def signals(self) -> Signals:
        """The biased reward and cost of the next plan, as copies."""
        return Signals(*self._inner.signals())

    @property
    def guarantee(self) -> Guarantee | None:
        """What this learner promises; None as soon as an input leaves the theorems."""
        promise = self._inner.guarantee
        if promise is None:
            return None
        kind, probability = promise
        return ZeroViolation(probability) if kind == "zero" else BoundedViolation(probability)

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._inner = self._inner.copy()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_inner": self._inner.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._inner = _core.Learner.from_bytes(state["_inner"])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.shape._asdict().items())
        played = f"episode {self.episodes_observed} of {self.num_episodes}"
        return f"{type(self).__name__}({sizes}, {played}, guarantee={self.guarantee})"


class OptPessLP(Learner):
    """Algorithm 1: no violation with high probability, from a known safe policy.

    Plays the baseline until even its pessimistic cost is comfortably within the limit, then the policy
    with the best optimistic reward among those whose pessimistic cost is within the limit.

    Args:
        shape: (H, S, A).
        initial: ``[S]``, the distribution of the first state.
        baseline: the safe policy, with its margin or with a cost to be estimated.
        num_episodes: K; it enters every bonus, and episode K + 1 is refused.
        failure_probability: delta.
        confidence: :class:`Theorem`, or :class:`Scaled` without a guarantee.
        engine: ``"parametric"`` (compiled) or ``"highs"`` (each plan a linear program, for reference).

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.zoo.pair()
        >>> always_first = np.tile([1.0, 0.0], (2, 2, 1))
        >>> margin = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
        >>> learner = op.OptPessLP(shape=model.shape, initial=model.initial, num_episodes=1000,
        ...                        baseline=op.SafeBaseline(always_first, margin))
        >>> learner.guarantee
        ZeroViolation(probability=0.95)
        >>> learner.next_policy().source
        'Baseline'
        >>> learner.observe(states=[0, 1], actions=[0, 0], rewards=[0, 1], costs=[0, 0])
    """

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: npt.ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
        engine: Literal["parametric", "highs"] = "parametric",
    ) -> None:
        check_baseline(baseline, shape)
        if engine not in ("parametric", "highs"):
            raise InvalidInputError(f"engine is {engine!r}; allowed are 'parametric' and 'highs'")
        safe_cost = None if baseline.margin is None else float(baseline.margin.safe_cost)
        self._inner = _core.Learner.optpess_lp(
            initial,
            baseline.policy,
            baseline.cost_limit,
            safe_cost,
            baseline._radius._name(),
            num_episodes,
            failure_probability,
            confidence._factor(),
        )
        self.engine = engine
        self._initial = np.array(initial, dtype=np.float64)
        self._baseline = np.array(baseline.policy, dtype=np.float64)
        self._program: OccupancyLP | None = None
        self.parameters = (
            input_line("OptPess-LP", shape, baseline.cost_limit, safe_cost, num_episodes)
            | {"radius": None if baseline.margin is not None else repr(baseline._radius)}
            | terms_of(failure_probability, confidence)
            | {"engine": engine}
        )

    @property
    def inductions(self) -> int:
        """How many backward inductions all plans so far took."""
        return self._inner.inductions

    def next_policy(self) -> Deployment:
        """Plans the next episode from everything seen so far."""
        if self.engine == "parametric":
            return super().next_policy()
        on_baseline = self._inner.assess()
        if on_baseline is not None:
            return _deployment(on_baseline)
        return _deployment(self._inner.deploy(self._planned_by_highs()))

    def _planned_by_highs(self) -> FloatArray:
        """The best policy of the pessimistic set by the linear program, completed with the baseline."""
        if self._program is None:
            self._program = OccupancyLP(*self.shape, 1)
        signals = self.signals
        assert signals.reward is not None
        kernel = _core.Transitions(self.estimates.transitions)
        limits = np.array([self.cost_limit])
        costs = signals.cost[np.newaxis]
        solution = self._program.solve(kernel, signals.reward, costs, limits, self._initial)
        if solution is None:
            raise SolverError(
                "past the gate, where the baseline is feasible, HiGHS found nothing feasible"
            )
        return _core.policy_from_occupancy(solution.occupancy, self._baseline)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_program": None}

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin._program = None
        return twin


class MarginLearner(Learner):
    """An algorithm that is told of no safe policy, only of a cost that some policy attains."""

    _algorithm: tuple[str, str]  # in the core, in records

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        initial: npt.ArrayLike,
        margin: SafetyMargin,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
    ) -> None:
        name, shown = self._algorithm
        self._inner = _core.margin_learner(
            name,
            tuple(shape),
            initial,
            float(margin.cost_limit),
            float(margin.safe_cost),
            num_episodes,
            failure_probability,
            confidence._factor(),
        )
        self.parameters = input_line(
            shown, shape, margin.cost_limit, margin.safe_cost, num_episodes
        ) | terms_of(failure_probability, confidence)

    @property
    def multiplier(self) -> float:
        """lambda, the dual variable the next plan will use; 0 for algorithms without one."""
        return self._inner.multiplier


class OptPessPrimalDual(MarginLearner):
    """Algorithm 2: bounded violation with high probability, when only the cost of some safe policy is
    known.

    Plays the best policy for optimistic reward minus priced optimistic cost, and adapts the price.

    Args:
        shape: (H, S, A).
        initial: ``[S]``, the distribution of the first state.
        margin: the limit, and a cost below it that some policy attains.
        num_episodes, failure_probability, confidence: as for :class:`OptPessLP`.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> margin = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
        >>> learner = op.OptPessPrimalDual(shape=model.shape, initial=model.initial, margin=margin,
        ...                                num_episodes=1000)
        >>> learner.guarantee
        BoundedViolation(probability=0.95)
    """

    _algorithm = ("optpess-primaldual", "OptPess-PrimalDual")


def check_baseline(baseline: SafeBaseline, shape: tuple[int, int, int]) -> None:
    """Refuses a baseline of another shape than the learner's."""
    if np.shape(baseline.policy) != tuple(shape):
        raise InvalidInputError(
            f"baseline has shape {np.shape(baseline.policy)}; the learner's is {tuple(shape)}"
        )


def input_line(
    algorithm: str,
    shape: tuple[int, int, int],
    cost_limit: float,
    safe_cost: float | None,
    num_episodes: int,
) -> dict[str, Any]:
    """What records keep of every learner."""
    return {
        "algorithm": algorithm,
        "shape": [int(size) for size in shape],
        "cost_limit": float(cost_limit),
        "safe_cost": None if safe_cost is None else float(safe_cost),
        "num_episodes": int(num_episodes),
    }


def terms_of(failure_probability: float, confidence: ConfidenceRule) -> dict[str, Any]:
    """What records keep of a learner with radii."""
    return {"failure_probability": float(failure_probability), "confidence": repr(confidence)}


def _deployment(stored: dict[str, Any]) -> Deployment:
    certificate = stored.pop("certificate")
    made = None if certificate is None else DeploymentCertificate(*certificate)
    return Deployment(certificate=made, **stored)
