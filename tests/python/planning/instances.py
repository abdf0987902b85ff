"""Random constrained problems, of the kinds that break planners."""

from dataclasses import dataclass

import numpy as np
import optpess as op
from hypothesis import strategies as st
from support import healthy, reference

SHAPES = {
    "small": ((1, 5), (1, 4), (1, 3)),
    "medium": ((3, 8), (3, 8), (2, 4)),
    "one step": ((1, 1), (1, 8), (1, 4)),
    "one state": ((1, 8), (1, 1), (1, 4)),
    "one action": ((1, 8), (1, 8), (1, 1)),
}
KERNELS = ("dense", "sparse", "sure", "dyadic", "leaking")
# "integers" have many ties; "copies" have actions that differ in nothing; "no cost" costs nothing.
SIGNALS = ("unit", "integers", "copies", "any sign", "no cost", "opposed")
# Where the limit stands, from the least attainable cost to the cost of the most reward.
LIMITS = ("between", "slack", "at a policy", "least", "least + 1e-12", "least + 1e-6")


@dataclass
class Instance:
    """Signals on a kernel with limits; `kernel` is `P` in the form handed to the library."""

    reward: np.ndarray  # [H, S, A]
    costs: np.ndarray  # [M, H, S, A]
    P: np.ndarray  # [H, S, A, S]
    kernel: op.Transitions
    mu: np.ndarray  # [S]
    limits: np.ndarray  # [M]

    @property
    def reward_size(self):
        """The unit in which rewards are measured."""
        return float(np.abs(self.reward).max()) or 1.0

    @property
    def cost_sizes(self):
        """The units in which costs are measured, [M]."""
        return np.array([float(np.abs(cost).max()) or 1.0 for cost in self.costs])

    def solve(self, engine, limits=None):
        """The library's answer."""
        limits = self.limits if limits is None else limits
        return op.solve_signals(self.reward, self.costs, self.kernel, self.mu, limits, engine)

    def bound(self, multipliers):
        """An upper bound on the optimum, by weak duality, in plain NumPy."""
        priced = self.reward - np.tensordot(multipliers, self.costs, axes=1)
        _, values = reference.backward_induction(priced, self.P)
        return float(self.mu @ values[0] + multipliers @ self.limits)

    def value_and_costs(self, policy):
        """Reward and costs of a policy, in plain NumPy."""
        costs = [reference.evaluate(policy, cost, self.P, self.mu) for cost in self.costs]
        return reference.evaluate(policy, self.reward, self.P, self.mu), np.array(costs)

    def model(self, limits=None):
        """The instance as a model; its signals must lie in [0, 1] and its rows keep their mass."""
        limits = self.limits if limits is None else limits
        return op.CMDP(self.kernel, self.reward, self.costs, limits, self.mu)


def least_cost(cost, P, mu):
    """The least attainable cost, in plain NumPy."""
    _, values = reference.backward_induction(-cost, P)
    return -float(mu @ values[0])


def _rows(generator, shape, kind):
    successors = shape[-1]
    sure = np.eye(successors)[generator.integers(successors, size=shape[:-1])]
    if kind == "sure":
        return sure
    if kind == "dyadic":  # halves and quarters: sums without rounding, so that ties are exact
        others = [np.eye(successors)[generator.integers(successors, size=shape[:-1])] for _ in range(2)]
        return sure / 2 + sum(others) / 4
    drawn = generator.dirichlet(np.ones(successors), size=shape[:-1])
    if kind == "dense":
        return drawn
    drawn = drawn * (generator.random(shape) < 0.4) + 1e-3 * sure
    drawn /= drawn.sum(axis=-1, keepdims=True)
    if kind == "leaking":
        drawn *= generator.random((*shape[:-1], 1)) * (generator.random((*shape[:-1], 1)) < 0.8)
    return drawn


def _signal(generator, shape, kind):
    if kind == "integers":
        return generator.integers(3, size=shape) / 2
    if kind == "any sign":
        return generator.normal(size=shape)
    drawn = generator.random(shape)
    if kind == "copies":
        return drawn[..., generator.integers(shape[-1], size=shape[-1])]
    return drawn


def _limit(generator, kind, cost, P, mu, dearest):
    """A limit for one cost; `dearest` is the cost of a policy with the most reward."""
    size = float(np.abs(cost).max()) or 1.0
    least = least_cost(cost, P, mu)
    if kind == "slack":
        return max(dearest, least) + size * generator.random()
    if kind == "at a policy":
        choices = generator.integers(cost.shape[2], size=cost.shape[:2])
        policy = np.eye(cost.shape[2])[choices]
        return reference.evaluate(policy, cost, P, mu)
    if kind == "between":
        return least + (max(dearest, least) - least) * generator.uniform(0.02, 0.98)
    margin = {"least": 0.0, "least + 1e-12": 1e-12, "least + 1e-6": 1e-6}[kind]
    return least + margin * size


def draw_instance(generator, shape, kernel, signals, limit, *, num_constraints=1, scales=(1.0, 1.0)):
    """An instance of the given kinds. With several constraints, some policy meets all limits."""
    P = _rows(generator, (*shape, shape[1]), kernel)
    reward = _signal(generator, shape, signals) * scales[0]
    costs = np.stack([_signal(generator, shape, signals) for _ in range(num_constraints)]) * scales[1]
    if signals == "no cost":
        costs[:] = 0.0
    if signals == "copies":  # the same actions are copies in reward, cost and kernel
        copied = generator.integers(shape[2], size=shape[2])
        reward, costs, P = reward[..., copied], costs[..., copied], P[:, :, copied]
    if signals == "opposed":  # every reward has its price
        costs[0] = reward / scales[0] * scales[1]
    mu = generator.dirichlet(np.ones(shape[1]))
    best, _ = reference.backward_induction(reward, P)
    if num_constraints == 1:
        dearest = reference.evaluate(best, costs[0], P, mu)
        limits = [_limit(generator, limit, costs[0], P, mu, dearest)]
    else:
        policy = generator.dirichlet(np.ones(shape[2]) / 2, size=shape[:2])
        slack = {"slack": 1.0, "between": 0.05, "at a policy": 0.0}[limit]
        units = [np.abs(cost).max() for cost in costs]
        limits = [
            reference.evaluate(policy, cost, P, mu) + slack * unit
            for cost, unit in zip(costs, units, strict=True)
        ]
    form = healthy.sparse(P) if kernel in ("sparse", "sure") else op.Transitions(P)
    return Instance(reward, costs, P, form, mu, np.array(limits))


@st.composite
def instances(
    draw,
    *,
    kernels=KERNELS,
    signals=SIGNALS,
    limits=LIMITS,
    shapes=tuple(SHAPES),
    scaled=True,
    num_constraints=1,
):
    """Instances of every combination of kinds."""
    bounds = SHAPES[draw(st.sampled_from(shapes))]
    kinds = [draw(st.sampled_from(choices)) for choices in (kernels, signals, limits)]
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(int(generator.integers(low, high + 1)) for low, high in bounds)
    scales = 10.0 ** generator.integers(-3, 7, size=2) if scaled else np.ones(2)
    return draw_instance(generator, shape, *kinds, num_constraints=num_constraints, scales=scales)
