"""The problems of the speed table, and how many episodes each side plays of them: all in one place.

Learners have the theorem's constants and are measured from their first episode on, except past the
gate of OptPess-LP: there the bonus is scaled, so that the gate opens within a hundred to a few thousand
episodes, and both sides start from what a run has learnt by then. With the theorem's bonus the gate
opens 10^4 times later, and consecutive programs differ 10^4 times less, which makes a warm start easier.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import optpess as op

DELTA = 0.05
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]
# A bench measures time at the theorem's constants; its runs are short on purpose.
warnings.filterwarnings("ignore", message="this run is expected to play the baseline")
warnings.filterwarnings("ignore", category=op.GuaranteeWarning)


@dataclass(frozen=True)
class Size:
    states: int
    actions: int
    horizon: int
    successors: int | None = None  # None: every state follows every state

    def __str__(self) -> str:
        kind = "" if self.successors is None else f", {self.successors} successors"
        return f"{self.states},{self.actions},{self.horizon}{kind}"

    @property
    def multiply_adds(self) -> int:
        """Those of an episode of OptPess-PrimalDual that cannot be avoided; see `roof.py`."""
        wide = self.states if self.successors is None else self.successors
        return (self.horizon - 1) * self.states * (self.actions + 1) * wide


@dataclass(frozen=True)
class Episodes:
    """How many episodes each side plays in one turn; K, which enters the bonus, is ours."""

    ours: int
    numba: int
    numpy: int = 0
    jax: int = 0


TINY = Size(3, 2, 3)
SPARSE = Size(100, 5, 20, 4)
EPISODES = {
    TINY: Episodes(200_000, 200_000, numpy=500, jax=20_000),
    Size(10, 4, 10): Episodes(20_000, 20_000, numpy=200, jax=2_000),
    Size(20, 4, 10): Episodes(8_000, 8_000, numpy=200, jax=1_000),
    SPARSE: Episodes(5_000, 5_000, numpy=20),
}
DENSE_NUMBA_OF_SPARSE = 100  # episodes of the dense peer at the sparse size, where it takes long
REPLICATES = 16
REPLICATE_EPISODES = 20_000
THREADS_EPISODES = 200_000  # of each replicate: long enough that starting a thread does not count
BASELINE = Size(10, 2, 10)
BASELINE_EPISODES = 200_000  # pi0 is played for 10^6 and more, and at first the gate is looked at often
LP_WARM_UP = 3_000  # episodes before the first that is timed
LP_EPISODES = 20_000  # ours
HIGHS_EPISODES = 300
REPLAYED = 200  # episodes of ours that a peer is fed to compare answers
LP_FACTORS = {"3,2,3": 0.01, "media 10,2,10": 0.01}


def scaling_episodes(size: Size) -> int:
    """For the plots: some tenths of a second a turn at every size."""
    if size.successors is not None:
        return 1_000  # the same for all, since lists grow with the episodes
    return max(100, min(100_000, 200_000_000 // (size.multiply_adds + 2_000)))


@dataclass(frozen=True)
class Problem:
    """A model with the numbers a peer needs."""

    size: Size
    model: op.CMDP
    margin: op.SafetyMargin
    arrays: Arrays  # P [H, S, A, S], r, c [H, S, A], mu [S], tau, c0

    def primal_dual(self, episodes: int) -> op.OptPessPrimalDual:
        return op.OptPessPrimalDual(
            shape=self.model.shape,
            initial=self.model.initial,
            margin=self.margin,
            num_episodes=episodes,
            failure_probability=DELTA,
        )

    def lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The transitions as lists: lengths [H, S, A], successors and probabilities [H, S, A, width]."""
        P = self.arrays[0]
        width = int((P > 0).sum(axis=-1).max())
        order = np.argsort(P == 0, axis=-1, kind="stable")[..., :width]
        used = (P > 0).sum(axis=-1).astype(np.int32)
        return used, order.astype(np.int32), np.take_along_axis(P, order, axis=-1)


def problem(size: Size, seed: int = 0) -> Problem:
    """Random: dense and different at every step, or a garnet. The limit allows half the cost there could
    be (garnet: a third); the safe cost is half the limit."""
    if size.successors is not None:
        model = op.zoo.garnet(
            size.states, size.actions, size.horizon, successors=size.successors, seed=seed
        )
    else:
        generator = np.random.default_rng(seed)
        shape = (size.horizon, size.states, size.actions)
        P = generator.dirichlet(np.ones(size.states), size=shape)
        r, c = generator.random(shape), generator.random(shape)
        initial = np.full(size.states, 1.0 / size.states)
        model = op.CMDP(P, r, c, 0.5 * size.horizon, initial)
    limit = float(model.cost_limits[0])
    margin = op.SafetyMargin(cost_limit=limit, safe_cost=limit / 2)
    return Problem(size, model, margin, (*arrays_of(model), limit, limit / 2))


def arrays_of(model: op.CMDP) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """P, r, c and mu with all their steps."""
    H, S, A = model.shape
    P = np.ascontiguousarray(np.broadcast_to(model.transitions.to_array(), (H, S, A, S)))
    r = np.ascontiguousarray(np.broadcast_to(model.rewards, (H, S, A)))
    c = np.ascontiguousarray(np.broadcast_to(model.costs, (1, H, S, A))[0])
    return P, r, c, np.array(model.initial)


def safest(model: op.CMDP) -> tuple[np.ndarray, float]:
    """The actions [H, S] of the policy of least cost, and that cost."""
    plan = op.solve_least_cost(model)
    return np.asarray(plan.policy).argmax(axis=2), float(plan.costs[0])


def lp_problems() -> dict[str, tuple[op.CMDP, op.SafetyMargin, np.ndarray]]:
    """Model, margin and pi0 of the two rows past the gate."""
    tiny = problem(TINY).model
    actions, least = safest(tiny)
    limit = (least + float(op.solve_unconstrained(tiny).costs[0])) / 2
    tiny = op.CMDP(tiny.transitions, tiny.rewards, tiny.costs, limit, tiny.initial)
    media = op.zoo.media()
    safe = op.solve(media, cost_limit=1.0)
    return {
        "3,2,3": (tiny, op.SafetyMargin(limit, least), np.eye(2)[actions]),
        "media 10,2,10": (media, op.SafetyMargin(5.0, 1.0), np.asarray(safe.policy)),
    }


def lp_learner(
    model: op.CMDP, margin: op.SafetyMargin, pi0: np.ndarray, episodes: int, confidence: Any
) -> op.OptPessLP:
    return op.OptPessLP(
        shape=model.shape,
        initial=model.initial,
        baseline=op.SafeBaseline(pi0, margin),
        num_episodes=episodes,
        failure_probability=DELTA,
        confidence=confidence,
    )


def advanced(model: op.CMDP, learner: Any, episodes: int) -> Any:
    """The learner after some episodes."""
    trace = op.simulate(model, learner, episodes=episodes, trace=True, progress=False).traces[0]
    for k in range(episodes):
        learner.next_policy()
        learner.observe(trace.states[k], trace.actions[k], trace.rewards[k], trace.costs[k])
    return learner
