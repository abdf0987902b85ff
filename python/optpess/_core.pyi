from typing import Any, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = [
    "Learner",
    "Model",
    "Transitions",
    "always_baseline",
    "backward_induction",
    "check_margin",
    "check_noise",
    "cucrl",
    "error_kinds",
    "evaluate",
    "extended_induction",
    "extreme_actions",
    "frontier_vertices",
    "lagrangian_plan",
    "least_cost_and_rounding",
    "margin_learner",
    "mix_policies",
    "occupancy",
    "policy_from_occupancy",
    "recorded_episodes",
    "sample",
    "simulate_learner",
    "solve_extended",
    "solve_parametric",
    "state_values",
    "tightening_horizon",
    "value_difference",
]

_Floats: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]

@disjoint_base
class Model:
    def __new__(
        cls,
        transitions: Any,
        rewards: Any,
        costs: Any,
        cost_limit: Any,
        initial: Any,
        noise: tuple[str, float],
        horizon: int | None,
    ) -> Self: ...
    @property
    def sizes(self) -> tuple[int, int, int]: ...
    @property
    def num_constraints(self) -> int: ...
    @property
    def transitions(self) -> Transitions: ...
    @property
    def cost_limits(self) -> _Floats: ...
    @property
    def initial(self) -> _Floats: ...
    def stored_rewards(self) -> _Floats: ...
    def stored_costs(self) -> _Floats: ...

@final
class Transitions:
    def __new__(cls, transitions: Any) -> Self: ...
    @staticmethod
    def sparse(
        offsets: Any,
        successors: Any,
        probabilities: Any,
        *,
        num_states: int,
        num_actions: int,
        horizon: int | None = None,
    ) -> Transitions: ...
    @property
    def num_states(self) -> int: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def horizon(self) -> int | None: ...
    @property
    def is_sparse(self) -> bool: ...
    def stored(self) -> list[tuple[str, npt.NDArray[Any]]]: ...
    def to_array(self) -> _Floats: ...
    @staticmethod
    def _restore(arrays: list[Any], sizes: tuple[int, int, int | None]) -> Transitions: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def error_kinds() -> list[str]: ...
def check_noise(name: str, parameter: float) -> None: ...
def evaluate(policy: Any, signal: Any, transitions: Any, initial: Any) -> float: ...
def state_values(policy: Any, signal: Any, transitions: Any) -> _Floats: ...
def occupancy(policy: Any, transitions: Any, initial: Any) -> _Floats: ...
def policy_from_occupancy(occupancy: Any, completion: Any) -> _Floats: ...
def mix_policies(policies: Any, weights: Any, transitions: Any, initial: Any) -> _Floats: ...
def value_difference(
    policy: Any, g: Any, P: Any, g2: Any, P2: Any, initial: Any, expectation: str = "first"
) -> float: ...
def backward_induction(
    signal: Any, transitions: Any, *, horizon: int | None = None
) -> tuple[_Floats, _Floats]: ...
def extended_induction(
    signal: Any, transitions: Any, radius: Any
) -> tuple[_Floats, _Floats, _Floats]: ...
def solve_extended(
    reward: Any, cost: Any, transitions: Any, radius: Any, initial: Any, limit: float
) -> dict[str, Any]: ...
def sample(
    model: Model, policy: Any, num_episodes: int, *, seed: int = 0, replicate: int = 0
) -> tuple[_Integers, _Integers, _Floats, _Floats]: ...
def least_cost_and_rounding(
    sizes: tuple[int, int, int], cost: Any, transitions: Any, initial: Any, limit: float
) -> tuple[float, float]: ...
def solve_parametric(
    sizes: tuple[int, int, int],
    reward: Any,
    cost: Any,
    transitions: Any,
    initial: Any,
    limit: float,
) -> dict[str, Any]: ...
def frontier_vertices(model: Model, max_vertices: int) -> _Floats: ...
def lagrangian_plan(
    model: Model, reward_weight: float, multipliers: Any
) -> tuple[float, float, _Floats, npt.NDArray[np.uint32]]: ...
def extreme_actions(model: Model, constraint: int, least_cost: bool) -> npt.NDArray[np.uint32]: ...

@final
class Learner:
    @staticmethod
    def optpess_lp(
        initial: Any,
        baseline: Any,
        cost_limit: float,
        safe_cost: float | None,
        radius: str,
        num_episodes: int,
        failure_probability: float,
        factor: float | None,
    ) -> Learner: ...
    def next_policy(self) -> dict[str, Any]: ...
    def assess(self) -> dict[str, Any] | None: ...
    def deploy(self, policy: Any) -> dict[str, Any]: ...
    def observe(self, states: Any, actions: Any, rewards: Any, costs: Any) -> None: ...
    def estimates(self) -> dict[str, Any]: ...
    def signals(self) -> tuple[_Floats | None, _Floats]: ...
    def gate_forecast(self, model: Model) -> int | None: ...
    def copy(self) -> Learner: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(stored: bytes) -> Learner: ...
    @property
    def multiplier(self) -> float: ...
    @property
    def episodes_observed(self) -> int: ...
    @property
    def inductions(self) -> int: ...
    @property
    def safe_cost(self) -> float | None: ...
    @property
    def log_factor(self) -> float: ...
    @property
    def guarantee(self) -> tuple[str, float] | None: ...
    @property
    def promise(self) -> str | None: ...

def margin_learner(
    algorithm: str,
    sizes: tuple[int, ...],
    initial: Any,
    cost_limit: float,
    safe_cost: float,
    num_episodes: int,
    failure_probability: float,
    factor: float | None,
) -> Learner: ...
def cucrl(
    transitions: Any,
    initial: Any,
    baseline: Any,
    cost_limit: float,
    safe_cost: float,
    num_episodes: int,
    failure_probability: float,
    factor: float | None,
) -> Learner: ...
def always_baseline(
    initial: Any,
    baseline: Any,
    cost_limit: float,
    safe_cost: float | None,
    radius: str,
    num_episodes: int,
) -> Learner: ...
def check_margin(cost_limit: float, safe_cost: float) -> None: ...
def simulate_learner(
    model: Model,
    learner: Learner,
    optimal_value: float,
    replicates: Any,
    seed: int,
    threads: int,
    episodes: int,
    trace: bool,
    audit: bool,
    progress: Any,
) -> list[dict[str, Any]]: ...
def recorded_episodes(episodes: int) -> list[int]: ...
def tightening_horizon(
    sizes: tuple[int, int, int],
    cost_limit: float,
    safe_cost: float,
    failure_probability: float,
) -> int | None: ...
