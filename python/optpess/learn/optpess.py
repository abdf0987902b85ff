"""The paper's two algorithms, to be driven episode by episode or by :func:`optpess.simulate`."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, SupportsIndex

import numpy as np

from optpess import _core
from optpess.arrays import ArrayLike, FloatArray
from optpess.checks import is_name, real_number, unknown_name, whole_number
from optpess.exceptions import GuaranteeWarning, SolverError
from optpess.learn.base import (
    Learner,
    MarginLearner,
    check_baseline,
    states_its_arguments,
    with_last_step,
)
from optpess.learn.deployment import Deployment
from optpess.learn.given import Given
from optpess.learn.terms import (
    BoundedViolation,
    ConfidenceRule,
    SafeBaseline,
    Sharp,
    Theorem,
    factor_of,
)
from optpess.model.units import CostRange, Range
from optpess.plan._linear_program import OccupancyLP

__all__ = ["OptPessLP", "OptPessPrimalDual"]


@states_its_arguments
class OptPessLP(Learner):
    """Algorithm 1: no violation with high probability, given a safe policy.

    Plays the baseline until its own pessimistic cost is below the middle between safe cost and limit.
    From then on, plays the policy with the best optimistic reward among those whose pessimistic cost is
    within the limit.

    Args:
        shape: ...
        initial: ...
        baseline: the safe policy, with its margin or with a cost to be estimated.
        num_episodes: ...
        failure_probability: ...
        confidence: :class:`Theorem`; :class:`Sharp`, which is much tighter and keeps the guarantee if
            observed rewards and costs lie in [0, 1]; or :class:`Scaled`, which multiplies every radius
            by a factor and voids any guarantee.
        engine: ``"parametric"`` (compiled) or ``"highs"`` (each plan a linear program, for reference).
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

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
        initial: ArrayLike,
        baseline: SafeBaseline,
        num_episodes: int,
        failure_probability: float = 0.05,
        confidence: ConfidenceRule = Theorem(),  # noqa: B008 - frozen
        engine: Literal["parametric", "highs"] = "parametric",
        reward_range: Range = (0.0, 1.0),
        cost_range: CostRange = (0.0, 1.0),
        actions: ArrayLike | None = None,
        bounded_observations: bool = True,
        seed: SupportsIndex = 0,
    ) -> None:
        baseline = check_baseline(baseline, shape)
        if not is_name(engine, ("parametric", "highs")):
            raise unknown_name("engine", engine, ("parametric", "highs"))
        given = Given.of(shape, 1, reward_range, cost_range, actions, seed, bounded_observations)
        sharp = isinstance(confidence, Sharp)
        safe_costs = baseline.safe_costs
        inner = _core.Learner.optpess_lp(
            initial,
            baseline.policy,
            given.limits_in(baseline.cost_limits)[0],
            None if safe_costs is None else given.safe_costs_in(safe_costs)[0],
            baseline._radius._name(),
            whole_number("num_episodes", num_episodes, least=None),
            real_number("failure_probability", failure_probability),
            None if sharp else factor_of(confidence, "OptPess-LP"),
            sharp,
        )
        self._inner = given.settle(inner)
        self.engine = engine
        self._highs = _HighsPlanner(*self._inner.start()) if engine == "highs" else None
        self.parameters = self._parameters(
            "OptPess-LP",
            given.shape,
            baseline.cost_limit,
            baseline.safe_cost,
            num_episodes,
            radius=None if baseline.margin is not None else repr(baseline._radius),
            failure_probability=float(failure_probability),
            confidence=repr(confidence),
            engine=engine,
            **given.parameters(),
        )

    @property
    def inductions(self) -> int:
        """How many backward inductions all plans so far took."""
        return self._inner.inductions

    def next_policy(self) -> Deployment:
        """Plans the next episode from everything observed so far."""
        if self._highs is None:
            return super().next_policy()
        on_baseline = self._inner.assess()
        if on_baseline is not None:
            return self._deployment_of(on_baseline)
        return self._deployment_of(self._inner.deploy(self._highs.plan(self._inner)))

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin._highs = None if self._highs is None else self._highs.without_solver()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        highs = None if self._highs is None else self._highs.without_solver()
        return super().__getstate__() | {"_highs": highs}


class _HighsPlanner:
    """Plans line 5 of Algorithm 1 with HiGHS: what the linear program needs beside the estimates."""

    def __init__(self, initial: FloatArray, baseline: FloatArray, limit: float) -> None:
        self._initial, self._baseline, self._limit = initial, baseline, limit
        self._program: OccupancyLP | None = None

    def without_solver(self) -> Self:
        """A copy that starts from scratch; a solver can be neither copied nor pickled."""
        return type(self)(self._initial, self._baseline, self._limit)

    def plan(self, learner: _core.Learner) -> FloatArray:
        """The best policy of the pessimistic set; the baseline's rows where the policy never arrives."""
        if self._program is None:
            horizon, num_states, num_actions = self._baseline.shape
            self._program = OccupancyLP(horizon, num_states, num_actions, 1)
        reward, cost = learner.signals()
        assert reward is not None
        solution = self._program.solve(
            _core.Transitions(with_last_step(learner.estimates()["transitions"])),
            reward,
            cost[np.newaxis],
            np.array([self._limit]),
            self._initial,
        )
        if solution is None:
            raise SolverError(
                "past the gate, where the baseline is feasible, HiGHS found nothing feasible"
            )
        return _core.policy_from_occupancy(solution.occupancy, self._baseline)


@states_its_arguments
class OptPessPrimalDual(MarginLearner):
    """Algorithm 2: bounded violation with high probability, given only the cost of some safe policy.

    Plays the best policy for optimistic reward - (lambda / eta) optimistic cost, and updates the
    multiplier lambda after each plan.

    The theorem says nothing about runs of fewer than C'' episodes, and C'' is large: a
    :class:`GuaranteeWarning` says so if K is below it. ``guarantee.tightening_horizon`` is C''.

    Args:
        shape: ...
        initial: ...
        margin: ...
        num_episodes: ...
        failure_probability: ...
        confidence: ...
        reward_range: ...
        cost_range: ...
        actions: ...
        bounded_observations: ...
        seed: ...

    Example:
        >>> import optpess as op
        >>> model = op.zoo.pair()
        >>> margin = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
        >>> learner = op.OptPessPrimalDual(shape=model.shape, initial=model.initial, margin=margin,
        ...                                num_episodes=100_000_000)
        >>> learner.guarantee
        BoundedViolation(probability=0.95, tightening_horizon=3019570, num_episodes=100000000)
    """

    _algorithm = ("optpess-primaldual", "OptPess-PrimalDual")

    def _warn_caller(self) -> None:
        guarantee = self.guarantee
        if not isinstance(guarantee, BoundedViolation):
            return  # there is no guarantee to be wrong about
        share, horizon = guarantee.episodes_over_horizon, guarantee.tightening_horizon
        if share is not None and share >= 1:
            return
        number = "beyond 2^62" if share is None else f"{horizon:,} (K / C'' = {share:.2g})"
        warnings.warn(
            f"OptPess-PrimalDual guarantees nothing for K = {self.num_episodes:,} episodes: every "
            f"episode before C'' may exceed the limit, and C'' is {number}; if a safe policy is known, "
            "use OptPessMix, which keeps the limit from the first episode on",
            GuaranteeWarning,
            stacklevel=3,
        )
