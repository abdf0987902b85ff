from collections.abc import Callable, Sequence
from typing import (
    Any,
    Literal,
    NotRequired,
    Self,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    final,
    overload,
    type_check_only,
)

from typing_extensions import disjoint_base

from optpess.arrays import (
    ActionArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    PolicyLike,
    SparseMatrix,
    TransitionsLike,
)

__all__ = [
    "LagrangianSearch",
    "Learner",
    "Model",
    "SignalWatch",
    "StagedRollout",
    "Transitions",
    "always_baseline",
    "backward_induction",
    "baseline_values",
    "check_margin",
    "check_noise",
    "cucrl",
    "draw_action",
    "episode_seed",
    "error_kinds",
    "evaluate",
    "extended_induction",
    "extreme_actions",
    "frontier_vertices",
    "least_cost_and_rounding",
    "margin_learner",
    "mix_actions",
    "mix_policies",
    "occupancy",
    "optpess_mix",
    "plain_transitions",
    "policy_from_occupancy",
    "recorded_episodes",
    "sample",
    "simulate_learner",
    "solve_extended",
    "solve_parametric",
    "sops",
    "state_values",
    "tightening_horizon",
    "value_difference",
]

# The dictionaries that cross the border.

@type_check_only
class MemberDict(TypedDict):
    number: int
    source: str
    weight: float
    cost_bounds: list[float]
    policy: FloatArray

@type_check_only
class MixtureDict(TypedDict):
    number: int
    members: list[MemberDict]
    chosen: int
    limits: list[float]
    cost_bounds: list[float]

@type_check_only
class DeploymentDict(TypedDict):
    episode: int
    policy: FloatArray
    uniforms: FloatArray  # [H]
    source: str
    certificate: tuple[float, float, float] | None  # cost, limit, repair
    optimistic_reward: float
    biased_cost: float
    mixture: MixtureDict | None

@type_check_only
class EstimatesDict(TypedDict):
    visits: IntArray
    transition_counts: IntArray  # [H - 1, S, A, S]
    transitions: FloatArray  # [H - 1, S, A, S]
    rewards: FloatArray
    costs: FloatArray
    bonus: FloatArray

@type_check_only
class PlanDict(TypedDict):
    value: float
    cost: float
    repair: float
    multiplier: float
    bound: float
    inductions: int
    weights: list[float]
    actions: list[ActionArray]
    shares: FloatArray

@type_check_only
class MixedActionsDict(TypedDict):
    value: float
    costs: FloatArray
    weights: list[float]
    actions: list[ActionArray]
    shares: FloatArray

@type_check_only
class ExtendedPlanDict(TypedDict):
    policy: FloatArray
    flow: FloatArray
    occupancy: FloatArray
    value: float
    cost: float
    multiplier: float
    bound: float
    inductions: int

@type_check_only
class TraceDict(TypedDict):
    states: IntArray
    actions: IntArray
    rewards: FloatArray
    costs: FloatArray
    deployed_value: FloatArray
    deployed_cost: FloatArray
    on_baseline: BoolArray
    multiplier: FloatArray

@type_check_only
class ProgressDict(TypedDict):
    episodes_observed: int
    num_episodes: int | None
    on_baseline: bool
    certified_cost: float | None
    cost_limit: float
    gate_cost: float | None
    gate_threshold: float | None
    gate_open: bool | None
    tightening_horizon: int | None
    weight: float | None
    episodes_left: int | None

@type_check_only
class OutcomeDict(TypedDict):
    replicate: int
    episodes: int
    reward_regret: FloatArray
    signed_violation: FloatArray
    strong_violation: FloatArray
    multiplier: FloatArray
    deployed_value: FloatArray
    deployed_value_least: FloatArray
    deployed_value_greatest: FloatArray
    deployed_cost: FloatArray
    deployed_cost_least: FloatArray
    deployed_cost_greatest: FloatArray
    baseline_share: FloatArray
    worst_violation: float
    violating_episodes: int
    first_violation: int | None
    baseline_episodes: int
    estimation_episodes: int
    first_planned: int | None
    least_slack: float
    repairs: int
    largest_repair: float
    safe_cost: float | None
    plays: dict[str, int]
    mixtures: int
    weight: NotRequired[FloatArray]
    certified_cost: NotRequired[FloatArray]
    audit: dict[str, tuple[int, int, int | None, float]] | None
    learner: NotRequired[Learner]
    trace: NotRequired[TraceDict]

@disjoint_base
class Model:
    def __new__(
        cls,
        transitions: TransitionsLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        cost_limit: ArrayLike,
        initial: ArrayLike,
        noise: tuple[str, float],
        horizon: SupportsIndex | None,
    ) -> Self: ...
    @property
    def sizes(self) -> tuple[int, int, int]:
        """(horizon, states, actions)."""
    @property
    def num_constraints(self) -> int:
        """M, the number of cost constraints."""
    @property
    def transitions(self) -> Transitions:
        """P, sharing the model's own storage."""
    @property
    def cost_limits(self) -> FloatArray:
        """tau, one limit a constraint, ``[M]``."""
    @property
    def initial(self) -> FloatArray:
        """mu, ``[S]``."""
    def stored_rewards(self) -> FloatArray:
        """r as stored: ``[H, S, A]``, or ``[S, A]`` if stationary."""
    def stored_costs(self) -> FloatArray:
        """c as stored: ``[M, H, S, A]``, or ``[M, S, A]`` if stationary."""

@final
class Transitions:
    """Transition probabilities P_h(s'|s,a), checked and stored once, for any number of later calls.

    Every function that takes ``transitions`` also takes a plain array; it is then copied and checked
    at each call. Rows may sum to less than one (mass that leaks), never to more. The slice of the
    last step is never used by any value: it is ignored and may hold anything.

    Args:
        transitions: array ``[H, S, A, S]``, or ``[S, A, S]`` if the same at every step; or a list of A
            matrices ``[S, S]``, dense or sparse. One sparse matrix of rows goes to :meth:`sparse`.

    Example:
        >>> import numpy as np, optpess as op
        >>> kernel = op.Transitions(np.full((2, 1, 2), 0.5))
        >>> kernel
        Transitions(states=2, actions=1, stationary, dense)
    """

    def __new__(cls, transitions: ArrayLike | Sequence[SparseMatrix | ArrayLike]) -> Self: ...
    @staticmethod
    def sparse(
        offsets: ArrayLike,
        successors: ArrayLike,
        probabilities: ArrayLike,
        *,
        num_states: SupportsIndex,
        num_actions: SupportsIndex,
        horizon: SupportsIndex | None = None,
    ) -> Transitions:
        """Transitions from compressed sparse rows over (h, s, a), or over (s, a) if ``horizon`` is None.

        Row i has the successor states ``successors[offsets[i]:offsets[i + 1]]``, strictly increasing,
        with the ``probabilities`` of the same positions: the layout of SciPy's CSR matrices
        (``indptr``, ``indices``, ``data``) of shape ``(rows, S)``.

        Example:
            >>> import optpess as op
            >>> op.Transitions.sparse([0, 1, 3], [1, 0, 1], [1.0, 0.25, 0.75], num_states=2, num_actions=1)
            Transitions(states=2, actions=1, stationary, sparse with 3 entries)
        """
    @property
    def num_states(self) -> int:
        """|S|."""
    @property
    def num_actions(self) -> int:
        """|A|."""
    @property
    def horizon(self) -> int | None:
        """The number of steps, or None if the transitions are the same at every step of any horizon."""
    @property
    def is_sparse(self) -> bool:
        """Whether the rows name their successors."""
    def stored(self) -> list[tuple[str, Any]]:
        """The stored arrays: ``{"probabilities"}`` if dense, else ``{"offsets", "successors",
        "probabilities"}``.
        """
    def to_array(self) -> FloatArray:
        """The probabilities as a new dense array, ``[H, S, A, S]`` or ``[S, A, S]``."""
    @staticmethod
    def _of(transitions: TransitionsLike, sizes: tuple[int, int, int]) -> Transitions: ...
    @staticmethod
    def _restore(
        arrays: Sequence[FloatArray | IntArray], sizes: tuple[int, int, int | None]
    ) -> Transitions: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def error_kinds() -> list[str]: ...
def check_noise(name: str, parameter: float) -> None: ...
def plain_transitions(transitions: TransitionsLike) -> TransitionsLike: ...
def evaluate(
    policy: PolicyLike, signal: ArrayLike, transitions: TransitionsLike, initial: ArrayLike
) -> float:
    """V_1(mu; g, P): the expected sum of a signal over an episode, exactly.

    Args:
        policy: ``[H, S, A]``, each row a distribution over actions.
        signal: ``[H, S, A]``, or ``[S, A]`` if the same at every step; any finite numbers.
        transitions: ``[H, S, A, S]`` or ``[S, A, S]``; a list of A matrices ``[S, S]``; a sparse matrix
            with the rows (h, s, a) or (s, a); or a :class:`Transitions`. Rows may sum to less than one.
            The slice of the last step is ignored.
        initial: ``[S]``, the distribution of the first state; or its number, if every episode starts
            there.

    Example:
        >>> import numpy as np, optpess as op
        >>> stay = np.eye(2).reshape(2, 1, 2)
        >>> op.evaluate(np.ones((3, 2, 1)), [[1.0], [0.5]], stay, [0.5, 0.5])
        2.25
    """

def state_values(policy: PolicyLike, signal: ArrayLike, transitions: TransitionsLike) -> FloatArray:
    """V_h(s; g, P) for every step and state, as an array ``[H + 1, S]`` whose last row is zero.

    The arguments are those of :func:`evaluate`.

    Example:
        >>> import numpy as np, optpess as op
        >>> stay = np.eye(2).reshape(2, 1, 2)
        >>> op.state_values(np.ones((2, 2, 1)), [[1.0], [0.5]], stay)
        array([[2. , 1. ],
               [1. , 0.5],
               [0. , 0. ]])
    """

def occupancy(policy: PolicyLike, transitions: TransitionsLike, initial: ArrayLike) -> FloatArray:
    """q_h(s,a): how often each (state, action) is met at each step, as an array ``[H, S, A]``.

    The arguments are those of :func:`evaluate`. The sum of ``occupancy * signal`` is the value of any
    signal.

    Example:
        >>> import numpy as np, optpess as op
        >>> op.occupancy(np.ones((2, 2, 1)), np.full((2, 1, 2), 0.5), [1.0, 0.0]).tolist()
        [[[1.0], [0.0]], [[0.5], [0.5]]]
    """

def policy_from_occupancy(occupancy: ArrayLike, completion: PolicyLike) -> FloatArray:
    """The policy that an occupancy describes; ``completion`` (a policy) decides wherever it has no mass.

    Example:
        >>> import numpy as np, optpess as op
        >>> uniform = np.full((1, 2, 2), 0.5)
        >>> op.policy_from_occupancy([[[0.25, 0.75], [0.0, 0.0]]], uniform).tolist()
        [[[0.25, 0.75], [0.5, 0.5]]]
    """

def mix_policies(
    policies: Sequence[PolicyLike] | FloatArray,
    weights: ArrayLike,
    transitions: TransitionsLike,
    initial: ArrayLike,
) -> FloatArray:
    """The Markov policy with the same start value, for every signal, as drawing one of ``policies`` with
    the probabilities ``weights`` once for the whole episode.

    Only the start value is the same, not the values from every state and step. Where no mass arrives
    the result is the weighted average of the policies.

    Args:
        policies: a sequence of policies ``[H, S, A]``.
        weights: one probability a policy.
        transitions, initial: as for :func:`evaluate`.

    Example:
        >>> import numpy as np, optpess as op
        >>> left, right = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
        >>> op.mix_policies([left, right], [0.25, 0.75], np.ones((1, 2, 1)), [1.0]).tolist()
        [[[0.25, 0.75]]]
    """

def value_difference(
    policy: PolicyLike,
    g: ArrayLike,
    P: TransitionsLike,
    g2: ArrayLike,
    P2: TransitionsLike,
    initial: ArrayLike,
    expectation: str = "first",
) -> float:
    """V_1(mu; g2, P2) - V_1(mu; g, P), computed by one of the two forms of the value-difference lemma.

    With ``expectation="first"`` the expectation is taken under ``P`` with the values of ``(g2, P2)``;
    with ``"second"``, under ``P2`` with the values of ``(g, P)``. Both are exact and equal the
    difference of two calls of :func:`evaluate` up to rounding.

    Example:
        >>> import numpy as np, optpess as op
        >>> policy, stay, mu = np.ones((2, 1, 1)), np.ones((1, 1, 1)), [1.0]
        >>> op.value_difference(policy, [[0.25]], stay, [[1.0]], stay, mu, expectation="first")
        1.5
    """

@overload
def backward_induction(
    signal: ArrayLike,
    transitions: TransitionsLike,
    *,
    horizon: SupportsIndex | None = None,
    as_actions: Literal[False] = False,
    threads: SupportsIndex | None = None,
) -> tuple[FloatArray, FloatArray]: ...
@overload
def backward_induction(
    signal: ArrayLike,
    transitions: TransitionsLike,
    *,
    horizon: SupportsIndex | None = None,
    as_actions: Literal[True],
    threads: SupportsIndex | None = None,
) -> tuple[ActionArray, FloatArray]:
    """The best policy for one signal, without any constraint: ``(policy [H, S, A], values [H + 1, S])``.

    Ties go to the lowest action.

    Args:
        signal: ``[H, S, A]``; or ``[S, A]``, and then the horizon comes from the transitions or from
            ``horizon``.
        transitions: as for :func:`evaluate`.
        horizon: needed only if both signal and transitions are the same at every step.
        as_actions: True gives the numbers of the actions, ``[H, S]``, in the smallest unsigned type that holds
            them, in place of the policy ``[H, S, A]``.
        threads: how many threads; None for one per core. The numbers do not depend on it.

    Example:
        >>> import numpy as np, optpess as op
        >>> policy, values = op.backward_induction([[0.25, 1.0]], np.ones((1, 2, 1)), horizon=2)
        >>> policy[:, 0].tolist(), values[:, 0].tolist()
        ([[0.0, 1.0], [0.0, 1.0]], [2.0, 1.0, 0.0])
    """

def extended_induction(
    signal: ArrayLike, transitions: ArrayLike, radius: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best policy for one signal on the best plausible kernel: ``(policy [H, S, A], rows [H - 1, S, S],
    values [H + 1, S])``.

    Plausible are the kernels whose rows are distributions with every probability within its radius. ``rows``
    are those of the best one under the policy. Ties go to the lowest action.

    Args:
        signal: ``[H, S, A]``, any finite numbers.
        transitions: ``[H, S, A, S]``, the middle of each box; rows need not sum to one. The last step of
            this and of the radii is not read.
        radius: ``[H, S, A, S]``, not negative. A box without a distribution is refused.

    Example:
        >>> import numpy as np, optpess as op
        >>> signal = np.array([[[0.0], [0.0]], [[0.0], [1.0]]])
        >>> even = np.full((2, 2, 1, 2), 0.5)
        >>> policy, rows, values = op.extended_induction(signal, even, 0.5 * even)
        >>> rows[0, 0].tolist(), values[0].tolist()
        ([0.25, 0.75], [0.75, 0.75])
    """

def sample(
    model: Model,
    policy: PolicyLike,
    num_episodes: SupportsIndex,
    *,
    seed: SupportsIndex = 0,
    replicate: SupportsIndex = 0,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Plays episodes of a known model with one policy.

    Returns ``(states [N, H], actions [N, H], rewards [N, H], costs [N, M, H])`` as observed, noise
    included. The same seed and replicate give the same episodes on every machine.

    Example:
        >>> import numpy as np, optpess as op
        >>> model = op.CMDP.stationary(np.ones((1, 1, 1)), [[0.5]], [[1.0]], 2.0, [1.0], horizon=3)
        >>> states, actions, rewards, costs = op.sample(model, np.ones((3, 1, 1)), 100, seed=1)
        >>> costs.shape, float(costs.mean())
        ((100, 1, 3), 1.0)
    """

def solve_extended(
    reward: ArrayLike,
    cost: ArrayLike,
    transitions: ArrayLike,
    radius: ArrayLike,
    initial: ArrayLike,
    limit: float,
) -> ExtendedPlanDict: ...
def solve_parametric(
    sizes: tuple[int, int, int],
    reward: ArrayLike,
    cost: ArrayLike,
    transitions: TransitionsLike,
    initial: ArrayLike,
    limit: float,
    tolerance: float,
    threads: SupportsIndex | None,
    time_limit: float | None,
) -> PlanDict: ...
def mix_actions(
    model: Model, actions: Sequence[ActionArray], weights: Sequence[float], threads: SupportsIndex | None
) -> MixedActionsDict: ...
def frontier_vertices(
    model: Model,
    max_vertices: SupportsIndex,
    tolerance: float,
    between: tuple[float, float],
    threads: SupportsIndex | None,
) -> tuple[FloatArray, float, bool]: ...

@final
class LagrangianSearch:
    def __new__(cls, model: Model) -> Self: ...
    def best(
        self,
        reward_weight: float,
        multipliers: ArrayLike,
        threads: SupportsIndex | None,
        time_limit: float | None,
    ) -> tuple[float, float, FloatArray, ActionArray]: ...
    def close(self) -> None: ...

def extreme_actions(
    model: Model, constraint: SupportsIndex, least_cost: bool, threads: SupportsIndex | None
) -> ActionArray: ...

@final
class Learner:
    @staticmethod
    def optpess_lp(
        initial: ArrayLike,
        baseline: PolicyLike,
        cost_limit: float,
        safe_cost: float | None,
        radius: str,
        num_episodes: SupportsIndex,
        failure_probability: float,
        factor: float | None,
        sharp: bool,
    ) -> Learner: ...
    def next_policy(self) -> DeploymentDict: ...
    def assess(self) -> DeploymentDict | None: ...
    def deploy(self, policy: PolicyLike) -> DeploymentDict: ...
    def settle(
        self,
        reward_range: tuple[float, float],
        cost_ranges: Sequence[tuple[float, float]],
        variance_proxy: float | None,
        seed: int,
    ) -> None: ...
    def restrict(self, actions: ArrayLike) -> None: ...
    def drive(self, reward_range: tuple[float, float] | None) -> None: ...
    def pending(self) -> DeploymentDict | None: ...
    def abandon(self) -> None: ...
    def begin_episode(self, state: SupportsIndex) -> int: ...
    def take_step(
        self, reward: SupportsFloat, cost: SupportsFloat | Sequence[float], state: SupportsIndex
    ) -> int | None: ...
    def end_early(self, reward: SupportsFloat, cost: SupportsFloat | Sequence[float]) -> None: ...
    def finish_episode(self) -> tuple[float, list[float], str, list[float] | None]: ...
    def start(self) -> tuple[FloatArray, FloatArray, float]: ...
    def observe(
        self, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, costs: ArrayLike
    ) -> None: ...
    def estimates(self) -> EstimatesDict: ...
    def signals(self) -> tuple[FloatArray | None, FloatArray]: ...
    def progress(self) -> ProgressDict: ...
    def gate_extrapolation(self, model: Model) -> int | None: ...
    def broken_safety_claim(self, model: Model) -> str | None: ...
    def certify(self, policy: PolicyLike) -> tuple[list[float], list[float], list[float], list[int]]: ...
    def worst_kernel(self, policy: PolicyLike, constraint: int) -> tuple[float, FloatArray]: ...
    @property
    def is_pending(self) -> bool: ...
    def told(self) -> tuple[tuple[int, int, int], int | None, list[float]]: ...
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
    def guarantee(
        self,
    ) -> (
        tuple[Literal["zero"], float, bool]
        | tuple[Literal["bounded"], float, int | None, int]
        | tuple[Literal["mixture"], float, list[str]]
        | None
    ): ...
    @property
    def promise(self) -> str | None: ...

@final
class StagedRollout:
    def __new__(
        cls,
        cost_limit: ArrayLike,
        baseline_cost: ArrayLike,
        max_episode_cost: ArrayLike,
        failure_probability: float,
        seed: int,
    ) -> StagedRollout: ...
    def use_candidate(self) -> bool: ...
    def record(self, cost: ArrayLike) -> None: ...
    def replace_candidate(self) -> None: ...
    def constraints(self) -> FloatArray: ...
    def candidate_costs(self) -> FloatArray: ...
    def baseline_costs(self) -> FloatArray: ...
    def copy(self) -> StagedRollout: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(stored: bytes) -> StagedRollout: ...
    @property
    def weight(self) -> float: ...
    @property
    def candidate_number(self) -> int: ...
    @property
    def episodes(self) -> int: ...
    @property
    def candidate_episodes(self) -> int: ...
    @property
    def baseline_episodes(self) -> int: ...
    @property
    def level(self) -> float: ...
    @property
    def failure_probability(self) -> float: ...
    @property
    def contradicted_baseline(self) -> int | None: ...

def margin_learner(
    algorithm: str,
    sizes: tuple[int, int, int],
    initial: ArrayLike,
    cost_limit: float,
    safe_cost: float,
    num_episodes: SupportsIndex,
    failure_probability: float,
    factor: float | None,
) -> Learner: ...
def cucrl(
    transitions: TransitionsLike,
    initial: ArrayLike,
    baseline: PolicyLike,
    cost_limit: float,
    safe_cost: float,
    num_episodes: SupportsIndex,
    failure_probability: float,
    factor: float | None,
) -> Learner: ...
def sops(
    initial: ArrayLike,
    baseline: PolicyLike,
    cost_limit: float,
    safe_cost: float,
    num_episodes: SupportsIndex,
    failure_probability: float,
    factor: float | None,
    replan_growth: float,
    seed: int,
) -> Learner: ...
def optpess_mix(
    initial: ArrayLike,
    baseline: PolicyLike,
    cost_limits: list[float],
    safe_costs: list[float] | None,
    settings: dict[str, object],
) -> Learner: ...
def always_baseline(
    initial: ArrayLike,
    baseline: PolicyLike,
    cost_limit: float,
    safe_cost: float | None,
    radius: str,
    num_episodes: SupportsIndex,
) -> Learner: ...
def draw_action(
    policy: FloatArray, uniforms: FloatArray, step: SupportsIndex, state: SupportsIndex
) -> int: ...
def episode_seed(seed: int, episode: int) -> int: ...
def check_margin(cost_limit: float, safe_cost: float) -> None: ...
def simulate_learner(
    model: Model,
    learner: Learner,
    optimal_value: float,
    replicates: Sequence[int],
    seed: SupportsIndex,
    threads: SupportsIndex,
    episodes: SupportsIndex,
    trace: bool,
    audit: bool,
    learners: bool,
    progress: Callable[[int], object] | None,
    states: Sequence[tuple[int, bytes] | None] | None = None,
    save: Callable[[list[tuple[int, bytes] | None]], object] | None = None,
    seconds: float = ...,
) -> tuple[list[OutcomeDict], BaseException | None, list[tuple[int, bytes] | None]]: ...
def baseline_values(model: Model, learner: Learner) -> tuple[float, list[float]] | None: ...

@final
class SignalWatch:
    def __new__(cls, delays: bool = False) -> Self: ...
    def check(self) -> None: ...
    def end(self) -> None: ...

def recorded_episodes(episodes: SupportsIndex) -> list[int]: ...
def tightening_horizon(
    sizes: tuple[int, int, int],
    cost_limit: float,
    safe_cost: float,
    failure_probability: float,
) -> int | None: ...
def least_cost_and_rounding(
    sizes: tuple[int, int, int],
    cost: ArrayLike,
    transitions: TransitionsLike,
    initial: ArrayLike,
    limit: float,
) -> tuple[float, float]: ...
