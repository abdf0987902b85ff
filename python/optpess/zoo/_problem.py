"""Problems by name: a model, a safe policy and what the policy costs, also as a baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray
from optpess.checks import is_name, unknown_name
from optpess.display import short
from optpess.learn.terms import SafeBaseline, SafetyMargin
from optpess.model import CMDP
from optpess.plan.frontier import solve_least_cost, solve_unconstrained
from optpess.plan.solve import solve
from optpess.zoo import _literature, _lower_bounds, _several_limits
from optpess.zoo._garnet import garnet

__all__ = ["Problem", "baseline", "names", "problem"]


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A named model with a policy that is known to be safe on it.

    Example:
        >>> import optpess as op
        >>> op.zoo.problem("ring")
        Problem('ring', horizon=6, num_states=3, num_actions=2, cost_limits=[3], safe_costs=[0.6])
    """

    name: str
    """The name it was asked for by."""
    model: CMDP
    """The model."""
    safe_policy: FloatArray
    """pi0, ``[H, S, A]``, read-only; it costs less than every limit of the model."""
    safe_costs: FloatArray
    """c0, ``[M]``, read-only: at least what the safe policy costs, below the limits."""

    @property
    def baseline(self) -> SafeBaseline:
        """The safe policy as learners take it, with a margin for each limit."""
        pairs = zip(self.model.cost_limits.tolist(), self.safe_costs.tolist(), strict=True)
        margins = [SafetyMargin(cost_limit=limit, safe_cost=cost) for limit, cost in pairs]
        return SafeBaseline(self.safe_policy, margins[0] if len(margins) == 1 else margins)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.model.shape._asdict().items())
        limits, costs = short(self.model.cost_limits), short(self.safe_costs)
        return f"Problem({self.name!r}, {sizes}, cost_limits={limits}, safe_costs={costs})"


def names() -> tuple[str, ...]:
    """The names that :func:`problem` knows.

    Example:
        >>> import optpess as op
        >>> "cliff_grid" in op.zoo.names()
        True
    """
    return tuple(_RECIPES)


def problem(name: str, **arguments: float | None) -> Problem:
    """A problem with the safe policy that goes with it.

    On most problems of the literature the safe policy is the optimum for a fifth of the limit, as in
    the papers; docs/planning.md lists the others. A garnet's limit lies half-way between the least
    attainable cost and the cost of the best policy without a limit, unless ``cost_limit`` is given.

    Args:
        name: one of :func:`names`.
        arguments: those of the function of that name. Without them a garnet has 20 states, 4 actions,
            10 steps, 4 successors and seed 1.

    Example:
        >>> import optpess as op
        >>> ring = op.zoo.problem("ring")
        >>> ring.model.cost_limits, ring.safe_costs
        (array([3.]), array([0.6]))
    """
    if not is_name(name, _RECIPES):
        raise unknown_name("name", name, _RECIPES)
    make, choose = _RECIPES[name]
    model = make(**arguments)
    policy, planned = choose(model)
    found = [_core.evaluate(policy, cost, model.transitions, model.initial) for cost in model.costs]
    costs = np.maximum(planned, found)  # a plan may miss its limit by a rounding error
    for array in (policy, costs):
        array.flags.writeable = False
    return Problem(name, model, policy, costs)


def baseline(name: str, **arguments: float | None) -> SafeBaseline:
    """The safe policy of a problem, with its limits and what it costs, as learners take it.

    The arguments are those of :func:`problem`, whose ``baseline`` this is.

    Args:
        name: one of :func:`names`.
        arguments: those of :func:`problem`, whose ``baseline`` this is.

    Example:
        >>> import optpess as op
        >>> model = op.zoo.ring()
        >>> learner = op.OptPessMix(
        ...     shape=model.shape, initial=model.initial, baseline=op.zoo.baseline("ring"))
        >>> op.zoo.baseline("ring").margin
        SafetyMargin(cost_limit=3.0, safe_cost=0.6)
    """
    return problem(name, **arguments).baseline


# A policy [H, S, A], and the limits [M] it was planned for; zeros if what it costs is to be claimed.
Choice = tuple[FloatArray, FloatArray]


def _always(action: int) -> Callable[[CMDP], Choice]:
    """The same action everywhere."""

    def choose(model: CMDP) -> Choice:
        policy = np.zeros(model.shape)
        policy[..., action] = 1.0
        return policy, np.zeros(model.num_constraints)

    return choose


def _optimum_within(limits: FloatArray, model: CMDP) -> Choice:
    return solve(model, cost_limit=limits).policy.copy(), limits.copy()


def _a_fifth_of_the_limit(model: CMDP) -> Choice:
    """The optimum for a fifth of the limit."""
    return _optimum_within(model.cost_limits / 5, model)


def _a_fifth_above_the_least_cost(model: CMDP) -> Choice:
    """The optimum for the limit that lies 20 % of the way from the least cost to the model's."""
    least = solve_least_cost(model).costs
    return _optimum_within(least + 0.2 * (model.cost_limits - least), model)


def _one_unit_when_empty(model: CMDP) -> Choice:
    """Of the inventory: order one unit if the stock is empty, else nothing."""
    policy = np.zeros(model.shape)
    policy[:, 0, 1] = 1.0
    policy[:, 1:, 0] = 1.0
    return policy, np.zeros(model.num_constraints)


def _garnet(
    num_states: int = 20,
    num_actions: int = 4,
    horizon: int = 10,
    *,
    successors: int = 4,
    seed: int = 1,
    cost_limit: float | None = None,
) -> CMDP:
    """A garnet whose limit is half-way between the least cost and that of the unconstrained optimum."""
    sizes = (num_states, num_actions, horizon)
    if cost_limit is None:
        model = garnet(*sizes, successors=successors, seed=seed)
        ends = solve_least_cost(model).costs[0], solve_unconstrained(model).costs[0]
        cost_limit = float(sum(ends)) / 2
    return garnet(*sizes, successors=successors, seed=seed, cost_limit=cost_limit)


# How to make the model, and how to choose its safe policy.
_RECIPES: dict[str, tuple[Callable[..., CMDP], Callable[[CMDP], Choice]]] = {
    "pair": (_literature.pair, _always(0)),
    "ring": (_literature.ring, _a_fifth_of_the_limit),
    "inventory": (_literature.inventory, _a_fifth_of_the_limit),
    "media": (_literature.media, _a_fifth_of_the_limit),
    "two_bit": (_literature.two_bit, _a_fifth_of_the_limit),
    "cliff_grid": (_literature.cliff_grid, _always(_literature.LEFT)),
    "job_scheduling": (_literature.job_scheduling, _a_fifth_above_the_least_cost),
    "paradox": (_literature.paradox, _a_fifth_of_the_limit),
    "inventory_stock_out": (_several_limits.inventory_stock_out, _one_unit_when_empty),
    "inventory_three_limits": (_several_limits.inventory_three_limits, _one_unit_when_empty),
    "cliff_grid_two_hazards": (_several_limits.cliff_grid_two_hazards, _always(_literature.LEFT)),
    "garnet": (_garnet, _a_fifth_above_the_least_cost),
    "lower_bound_a": (_lower_bounds.lower_bound_a, _always(0)),
    "lower_bound_b": (_lower_bounds.lower_bound_b, _always(0)),
}
