"""Calls of every public function with one or two arguments replaced by things that do not belong there.

A call starts from healthy arguments, so that a refusal is about what was replaced. What may come back:
a result, an exception of this package, an error of the file system for a path, or whatever a hostile
object raises itself. Everything else is a fault: a raw TypeError, a panic, a call without an end, NaN or
infinity in a result.
"""

from __future__ import annotations

import mmap
import random
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optpess as op

PAIR = op.zoo.problem("pair")
MODEL, BASELINE, POLICY = PAIR.model, PAIR.baseline, PAIR.safe_policy
MARGIN = op.SafetyMargin(0.6, 0.135)
H, S, A = MODEL.shape
SIGNAL = np.array(MODEL.rewards)
TOLD = {"shape": MODEL.shape, "initial": MODEL.initial}
MASK = POLICY.max(axis=0) > 0  # the actions of the safe policy
FOLDER = Path(tempfile.mkdtemp())


class OwnError(Exception):
    """What a hostile object raises; it may come through."""


def _raises(*_: object, **__: object) -> Any:
    raise OwnError("raised by the object itself")


class Hostile:
    """An object whose conversions raise."""

    __array__ = __index__ = __float__ = __int__ = __iter__ = __len__ = __getitem__ = _raises
    __bool__ = __eq__ = __lt__ = __le__ = __fspath__ = __str__ = _raises
    __hash__ = object.__hash__


class Unprintable(Hostile):
    """The same, whose repr raises too."""

    __repr__ = _raises


class Lying:
    """A sequence whose length is not that of its contents."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: int) -> float:
        if place > 0:
            raise IndexError
        return 0.5


def _mapped() -> Any:
    area = mmap.mmap(-1, 8 * H * S * A)
    return np.frombuffer(area, dtype=np.float64).reshape(H, S, A)


def _read_only() -> Any:
    made = np.full((H, S, A), 0.5)
    made.flags.writeable = False
    return made


def _matrix() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix([[0.5, 0.5]])


GARBAGE: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: np.True_,
    lambda: 0,
    lambda: -1,
    lambda: 2**31,
    lambda: 2**63,
    lambda: 2**64,
    lambda: 10**30,
    lambda: -(10**400),
    lambda: 0.0,
    lambda: -0.0,
    lambda: 0.5,
    lambda: 5e-324,
    lambda: 1e-310,
    lambda: 1e308,
    lambda: -1e308,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: -float("inf"),
    lambda: 1 + 2j,
    lambda: np.float32(0.5),
    lambda: np.float64("nan"),
    lambda: np.int8(-3),
    lambda: "",
    lambda: "0.5",
    lambda: "ring\0",
    lambda: "x" * 10_000,
    lambda: b"bytes",
    lambda: bytearray(3),
    list,
    lambda: (),
    dict,
    lambda: set(),
    lambda: {"a": 1},
    lambda: [0.5],
    lambda: [0.5, 0.5],
    lambda: [[0.5], [0.5, 0.5]],
    lambda: ["a", "b"],
    lambda: [None, None],
    lambda: (0, 1),
    lambda: (1, 0),
    lambda: range(3),
    lambda: iter([1, 2]),
    lambda: (x for x in (0.5, 0.5)),
    lambda: object(),
    lambda: object,
    lambda: int,
    lambda: lambda: None,
    lambda: Exception("no"),
    lambda: NotImplemented,
    lambda: ...,
    Hostile,
    Unprintable,
    Lying,
    lambda: op,
    lambda: MODEL,
    lambda: PAIR,
    lambda: BASELINE,
    lambda: MARGIN,
    lambda: op.OptPessMix,
    lambda: op.Bernoulli(),
    lambda: op.Theorem(),
    lambda: MODEL.transitions,
    lambda: np.zeros(0),
    lambda: np.zeros((0, 0, 0)),
    lambda: np.array(0.5),
    lambda: np.zeros((H, S, A)),
    lambda: np.zeros((A, S, H, 1)),
    lambda: np.full((H, S, A), np.nan),
    lambda: np.full((H, S, A), np.inf),
    lambda: np.full((H, S, A), 1e308),
    lambda: np.full((H, S, A), 5e-324),
    lambda: np.full((H, S, A), -1.0),
    lambda: np.full((H, S, A), 0.5, dtype=np.float32),
    lambda: np.full((H, S, A), 0.5, dtype=np.float16),
    lambda: np.full((H, S, A), 0.5, dtype=np.longdouble),
    lambda: np.full((H, S, A), 0.5, dtype=">f8"),
    lambda: np.full((H, S, A), 1, dtype=np.uint64),
    lambda: np.full((H, S, A), 0.5j),
    lambda: np.full((H, S, A), None),
    lambda: np.full((H, S, A), "x"),
    lambda: np.full((H, S, A), "2020-01-01", dtype="M8[D]"),
    lambda: np.zeros((H, S, A), dtype=[("a", "f8")]),
    lambda: np.asfortranarray(np.full((H, S, A), 0.5)),
    lambda: np.full((H, S, 2 * A), 0.5)[..., ::2],
    lambda: np.full((H, S, A), 0.5)[::-1, ::-1, ::-1],
    lambda: np.ma.masked_array(np.full((H, S, A), 0.5), mask=True),
    _matrix,
    lambda: np.broadcast_to(0.5, (10**6, 10**6, 10**3)),
    lambda: np.broadcast_to(0.5, (H, S, 2**40)),
    _mapped,
    _read_only,
    lambda: FOLDER,
    lambda: FOLDER / "nothing",
    lambda: FOLDER / "no" / "folder",
    lambda: "/dev/null",
)


def mix(**changes: Any) -> op.OptPessMix:
    return op.OptPessMix(**TOLD | {"baseline": BASELINE} | changes)


def _run() -> op.Run:
    return op.simulate(MODEL, mix(), episodes=20, replicates=2, progress=False)


def _waiting(**changes: Any) -> op.OptPessMix:
    learner = mix(**changes)
    learner.next_policy()
    return learner


class Machine:
    """A healthy simulator of two states and two actions."""

    num_states, num_actions = S, A

    def reset(self, seed: object = None) -> int:
        self.rng = random.Random(seed)  # type: ignore[arg-type]
        return 0

    def step(self, action: int) -> tuple[int, float, float, bool]:
        return self.rng.randrange(S), 0.5, 0.1 * action, False


def _staged(arguments: dict[str, Any]) -> op.StagedRollout:
    made = op.StagedRollout(**arguments)
    made.use_candidate()
    return made


@dataclass(frozen=True)
class Call:
    """A public function with healthy arguments."""

    function: Callable[..., Any]
    positional: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()


def call(function: Callable[..., Any], *positional: Any, **named: Any) -> Call:
    return Call(function, positional, tuple(named.items()))


def _learner_calls() -> dict[str, Call]:
    calls = {}
    common = TOLD | {"num_episodes": 50, "failure_probability": 0.05, "seed": 1}
    ranges = {"reward_range": (0, 1), "cost_range": (0, 1), "actions": None}
    for kind in (op.OptCMDP, op.OptCMDPBonus, op.OptDualCMDP, op.OptPrimalDualCMDP, op.OPDOP):
        calls[kind.__name__] = call(kind, **common, **ranges, margin=MARGIN, confidence=op.Theorem())
    calls["UnconstrainedOptimistic"] = call(
        op.UnconstrainedOptimistic, **common, **ranges, margin=MARGIN
    )
    calls["OptPessPrimalDual"] = call(
        op.OptPessPrimalDual, **common, **ranges, margin=MARGIN, confidence=op.Scaled(0.1)
    )
    calls["OptPessLP"] = call(
        op.OptPessLP, **common, **ranges, baseline=BASELINE, confidence=op.Sharp(), engine="parametric"
    )
    calls["CUCRL"] = call(op.CUCRL, **common, baseline=BASELINE, transitions=MODEL.transitions)
    calls["SOPS"] = call(op.SOPS, **common, baseline=BASELINE, replan_growth=0.25)
    calls["AlwaysBaseline"] = call(op.AlwaysBaseline, **TOLD, num_episodes=50, baseline=BASELINE)
    calls["OptPessMix"] = call(
        op.OptPessMix,
        **TOLD,
        **ranges,
        baseline=BASELINE,
        failure_probability=0.05,
        knowledge=op.Knowledge(stationary=True),
        exploration=op.Exploration(),
        seed=1,
    )
    return calls


def calls() -> dict[str, Call]:
    """Every public function and constructor, and the methods that take arguments."""
    plan, run = op.solve(MODEL), _run()
    centre = np.broadcast_to(MODEL.transitions.to_array(), (H, S, A, S))
    rows = MODEL.transitions.to_array().reshape(-1, S)
    steps = np.zeros(H, dtype=np.int64)
    zeros = np.zeros(H)
    path = FOLDER / "healthy.npz"
    run.save(path)
    comparison = op.compare(MODEL, {"mix": mix()}, episodes=20, progress=False)
    staged = {"cost_limit": 0.6, "baseline_cost": 0.135, "max_episode_cost": 2.0, "seed": 1}
    found = {
        "CMDP": call(
            op.CMDP,
            centre,
            SIGNAL,
            np.array(MODEL.costs[0]),
            0.6,
            MODEL.initial,
            noise=op.Bernoulli(),
            reward_range=(0, 1),
            cost_range=(0, 1),
            actions=None,
        ),
        "CMDP.stationary": call(
            op.CMDP.stationary,
            np.full((S, A, S), 1 / S),
            np.full((S, A), 0.5),
            np.full((S, A), 0.2),
            0.6,
            MODEL.initial,
            horizon=H,
            noise=op.Gaussian(0.3),
            reward_range=(0, 1),
            cost_range=(0, 1),
            actions=None,
        ),
        "CMDP.load": call(op.CMDP.load, path),
        "CMDP.save": call(MODEL.save, FOLDER / "model.npz"),
        "CMDP.from_umb": call(op.CMDP.from_umb, path, reward="reward", costs="cost", horizon=3)
        if hasattr(op.CMDP, "from_umb")
        else call(op.CMDP.load, path),
        "Transitions": call(op.Transitions, np.full((S, A, S), 1 / S)),
        "Transitions.sparse": call(
            op.Transitions.sparse,
            np.arange(0, len(rows) * S + 1, S),
            np.tile(np.arange(S), len(rows)),
            np.full(len(rows) * S, 1 / S),
            num_states=S,
            num_actions=A,
            horizon=None if len(rows) == S * A else H,
        ),
        "Units": call(op.Units, (0, 1), ((0, 1),)),
        # A plain tuple, which holds what it is given.
        "Shape": Call(lambda *sizes: repr(op.Shape(*sizes)), (H, S, A)),
        "Gaussian": call(op.Gaussian, 0.3),
        "Uniform": call(op.Uniform, 0.3),
        "evaluate": call(op.evaluate, POLICY, SIGNAL, MODEL.transitions, MODEL.initial),
        "state_values": call(op.state_values, POLICY, SIGNAL, MODEL.transitions),
        "occupancy": call(op.occupancy, POLICY, MODEL.transitions, MODEL.initial),
        "policy_from_actions": call(op.policy_from_actions, np.zeros((H, S), int), num_actions=A),
        "policy_from_occupancy": call(
            op.policy_from_occupancy, op.occupancy(POLICY, MODEL.transitions, MODEL.initial), POLICY
        ),
        "mix_policies": call(
            op.mix_policies, [POLICY, POLICY], [0.5, 0.5], MODEL.transitions, MODEL.initial
        ),
        "value_difference": call(
            op.value_difference,
            POLICY,
            SIGNAL,
            MODEL.transitions,
            SIGNAL,
            MODEL.transitions,
            MODEL.initial,
        ),
        "sample": call(op.sample, MODEL, POLICY, 3, seed=1, replicate=0),
        "backward_induction": call(op.backward_induction, SIGNAL, MODEL.transitions, horizon=H),
        "solve": call(op.solve, MODEL, engine="parametric", cost_limit=0.6, time_limit=10.0),
        "solve_signals": call(
            op.solve_signals, SIGNAL, SIGNAL, MODEL.transitions, MODEL.initial, 0.9, engine="parametric"
        ),
        "solve_unconstrained": call(op.solve_unconstrained, MODEL),
        "solve_least_cost": call(op.solve_least_cost, MODEL, constraint=0),
        "frontier": call(op.frontier, MODEL, max_vertices=100),
        "extended_induction": call(op.extended_induction, SIGNAL, centre, np.full((H, S, A, S), 0.1)),
        "solve_extended": call(
            op.solve_extended,
            SIGNAL,
            SIGNAL,
            centre,
            np.full((H, S, A, S), 0.1),
            MODEL.initial,
            0.9,
        ),
        "SafetyMargin": call(op.SafetyMargin, cost_limit=0.6, safe_cost=0.135),
        # What these hold is checked when a learner is made.
        "SafeBaseline": Call(lambda *given: mix(baseline=op.SafeBaseline(*given)), (POLICY, MARGIN)),
        "SafeBaseline.estimated": Call(
            lambda *given, **named: mix(baseline=op.SafeBaseline.estimated(*given, **named)),
            (POLICY, 0.6),
            (("radius", op.SubGaussianRadius()),),
        ),
        "Scaled": Call(
            lambda factor: op.OPDOP(
                **TOLD, num_episodes=50, margin=MARGIN, confidence=op.Scaled(factor)
            ),
            (0.5,),
        ),
        "Knowledge": Call(
            lambda **given: mix(knowledge=op.Knowledge(**given)),
            (),
            (("stationary", True), ("support", None), ("rewards", None), ("costs", None)),
        ),
        "Knowledge with missing actions": Call(
            lambda **given: mix(actions=MASK, knowledge=op.Knowledge(**given)),
            (),
            (("rewards", SIGNAL), ("costs", SIGNAL), ("support", np.ones((S, A, S)))),
        ),
        "CMDP with missing actions": Call(
            lambda *given: op.CMDP(*given, 0.6, MODEL.initial, actions=MASK),
            (centre, SIGNAL, np.array(MODEL.costs[0])),
        ),
        "sample with missing actions": Call(
            lambda *given: op.sample(
                op.CMDP(centre, SIGNAL, MODEL.costs[0], 0.6, MODEL.initial, actions=MASK), *given
            ),
            (POLICY, 3),
        ),
        "Exploration": Call(
            lambda **given: mix(exploration=op.Exploration(**given)),
            (),
            (("share", 0.1), ("least_share", 0.05), ("threshold", 1.0)),
        ),
        "certify": call(op.certify, POLICY, learner=mix()),
        "forecast": call(op.forecast, MODEL, mix()),
        "simulate": call(
            op.simulate,
            MODEL,
            mix(),
            replicates=2,
            seed=1,
            threads=1,
            episodes=5,
            progress=False,
            trace=False,
            audit=False,
            learners=True,
        ),
        "compare": call(
            op.compare, MODEL, {"mix": mix()}, replicates=1, seed=0, episodes=5, progress=False
        ),
        "rollout": call(op.rollout, mix(), Machine(), episodes=3, seed=1, progress=False),
        "load_run": call(op.load_run, path),
        "reproduce": call(op.reproduce, path, threads=1),
        "load_learner": call(op.load_learner, path),
        "load_study": call(op.load_study, FOLDER),
        "Comparison.load": call(op.Comparison.load, path),
        "Comparison.save": call(comparison.save, FOLDER / "comparison.npz"),
        "Comparison.to_csv": call(comparison.to_csv, FOLDER / "comparison.csv"),
        "Run.save": call(run.save, FOLDER / "run.npz"),
        "Run.to_csv": call(run.to_csv, FOLDER / "run.csv"),
        # NaN where a curve is not positive.
        "Run.growth_exponent": Call(
            lambda *given, **named: repr(run.growth_exponent(*given, **named)), (1.0,), (("of", "gain"),)
        ),
        "Run.concat": call(op.Run.concat, [run]),
        "Run.same_as": call(run.same_as, run),
        "Study": call(
            op.Study, {"pair": PAIR}, {"mix": lambda _: mix()}, {}, replicates=1, episodes=5, seed=1
        ),
        "StagedRollout": call(op.StagedRollout, **staged, failure_probability=0.05),
        "zoo.problem": call(op.zoo.problem, "garnet", num_states=5, horizon=2, seed=1),
        "zoo.garnet": call(op.zoo.garnet, 3, 2, 2, successors=2, seed=1),
        "environments.sizes": call(op.environments.sizes, Machine(), horizon=H),
        "environments.check": call(op.environments.check, Machine(), horizon=H),
        "Learner.save": call(mix().save, FOLDER / "learner.npz"),
        "Learner.observe": Call(
            lambda *p, **n: _waiting().observe(*p, **n),
            (),
            (("states", steps), ("actions", steps), ("rewards", zeros), ("costs", zeros)),
        ),
        "Deployment.action": Call(lambda *p: mix().next_policy().action(*p), (0, 0)),
        "StagedRollout.record": Call(lambda cost: _staged(staged).record(cost), (0.1,)),
        "Plan": call(plan.save, FOLDER / "plan.npz") if hasattr(plan, "save") else call(repr, plan),
    }
    return found | _learner_calls()


class Hang(BaseException):
    """A call that takes too long."""


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raises Hang in a call that takes longer."""

    def give_up(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Fault:
    """Something that must not come out of a public function."""

    function: str
    argument: str
    value: str
    error: str


LONGEST = 10  # seconds a call may take
ALLOWED = (op.OptPessError, OwnError, OSError, MemoryError)


def outcome(name: str, healthy: Call, source: random.Random) -> Fault | None:
    """Replaces one or two arguments and calls; the fault, if there is one."""
    positional, named = list(healthy.positional), dict(healthy.named)
    places: list[Any] = [*range(len(positional)), *named]
    chosen = source.sample(places, min(len(places), source.choice((1, 1, 1, 2))))
    shown = []
    for place in chosen:
        made = source.choice(GARBAGE)()
        if place in ("episodes", "horizon", "replicates", "num_states") and _is_large(made):
            made = 7  # large numbers of them are a long computation, no mistake
        shown.append(f"{place}={_text(made)}")
        if isinstance(place, int):
            positional[place] = made
        else:
            named[place] = made

    def fault(error: str) -> Fault:
        return Fault(name, ", ".join(map(str, chosen)), "; ".join(shown), error)

    try:
        # Texts are names of files to some functions.
        with warnings.catch_warnings(), chdir(FOLDER), _at_most(LONGEST):
            warnings.simplefilter("ignore")
            result = healthy.function(*positional, **named)
    except ALLOWED:
        return None
    except BaseException as error:  # noqa: BLE001 - a panic is no Exception
        return fault(f"{type(error).__name__}: {error}"[:160])
    place = None if name in UNBOUNDED else not_finite(result)
    return None if place is None else fault(f"not finite: {place}")


# Functions of the compiled core whose sums of numbers near 1e308 are infinite.
UNBOUNDED = frozenset(
    {"backward_induction", "evaluate", "extended_induction", "state_values", "value_difference"}
)
# The least slack of no certificate is infinite.
OPEN = frozenset({"least_slack"})


def not_finite(result: object, place: str = "the result") -> str | None:
    """Where a result holds NaN or infinity, if it does."""
    inside: Iterable[tuple[str, object]] = ()
    if isinstance(result, float | np.ndarray | np.generic):
        numbers = np.asarray(result)
        return None if numbers.dtype.kind not in "fc" or np.isfinite(numbers).all() else place
    if isinstance(result, Mapping):
        inside = ((f"{place}[{key!r}]", each) for key, each in result.items())
    elif isinstance(result, tuple | list):
        inside = ((f"{place}[{i}]", each) for i, each in enumerate(result))
    elif is_dataclass(result):
        names = (each.name for each in fields(result) if each.name not in OPEN)
        inside = ((f"{place}.{name}", getattr(result, name)) for name in names)
    return next(filter(None, (not_finite(each, where) for where, each in inside)), None)


def _is_large(value: object) -> bool:
    return isinstance(value, int) and 1000 < value < 2**64


def _text(value: object) -> str:
    try:
        return repr(value)[:60].replace("\n", " ")
    except Exception:  # noqa: BLE001 - some are made to raise
        return f"a {type(value).__name__}"
