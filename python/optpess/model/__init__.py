"""Known models: finite-horizon constrained Markov decision processes, and their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from optpess import _core, storage
from optpess._core import Transitions
from optpess.arrays import ArrayLike, BoolArray, FloatArray, StoredArrays, TransitionsLike
from optpess.checks import check_path, check_type
from optpess.exceptions import InvalidInputError
from optpess.model._inputs import Inputs
from optpess.model.missing_actions import check_mask
from optpess.model.noise import Bernoulli, Deterministic, Gaussian, Noise, Uniform
from optpess.model.umb import read_umb, write_umb
from optpess.model.units import CostRange, Range, Units

__all__ = ["CMDP", "Shape", "Transitions", "check_model"]

_NOISES: dict[str, Callable[[float], Noise]] = {
    "bernoulli": lambda _: Bernoulli(),
    "deterministic": lambda _: Deterministic(),
    "gaussian": Gaussian,
    "uniform": Uniform,
}


class Shape(NamedTuple):
    """The sizes of a problem: horizon, number of states, number of actions.

    Example:
        >>> import optpess as op
        >>> op.zoo.ring().shape
        Shape(horizon=6, num_states=3, num_actions=2)
    """

    horizon: int
    num_states: int
    num_actions: int


class CMDP(_core.Model):
    """A constrained Markov decision process: maximise the expected reward of an episode while each
    expected cost stays within its limit.

    The constructor checks every argument. A model cannot be changed afterwards.

    Args:
        transitions: ``[H, S, A, S]``, each row a distribution over successors; or, if the same at every
            step, ``[S, A, S]`` or a list of A matrices ``[S, S]``; or a sparse matrix with the rows
            (h, s, a), of any SciPy format; or a :class:`Transitions`. The slice of the last step is
            ignored.
        rewards: ``[H, S, A]``, mean rewards within ``reward_range``.
        costs: ``[H, S, A]``, or ``[M, H, S, A]`` for several constraints; mean costs within
            ``cost_range``.
        cost_limit: a number in (H low, H high] of the ``cost_range``, or ``[M]`` of them.
        initial: ``[S]``, the distribution of the first state; or its number, if every episode starts
            there.
        noise: how observations differ from their means, in parts of the ranges.
        reward_range: (low, high), the least and the largest reward of a step, in your units.
        cost_range: the same of the costs; or M such pairs, one for each constraint.
        actions: ``[S, A]``, True where the action exists in the state; None if all exist. What the other
            arguments hold for missing actions is not read.

    Example:
        >>> import numpy as np, optpess as op
        >>> half, one = np.full((3, 2, 2, 2), 0.5), np.ones((3, 2, 2))
        >>> model = op.CMDP(half, one, one / 4, 1.0, [1.0, 0.0])
        >>> model
        CMDP(horizon=3, num_states=2, num_actions=2, num_constraints=1, dense)
    """

    __slots__ = ("_actions", "_limits", "_noise", "_units")
    _actions: BoolArray | None
    _limits: FloatArray  # in the user's units
    _noise: Noise
    _units: Units

    def __new__(  # noqa: D102 - the class docstring covers the constructor
        cls,
        transitions: TransitionsLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        cost_limit: ArrayLike,
        initial: ArrayLike,
        noise: Noise = Bernoulli(),  # noqa: B008 - frozen, so sharing it is harmless
        *,
        reward_range: Range = (0, 1),
        cost_range: CostRange = (0, 1),
        actions: ArrayLike | None = None,
    ) -> Self:
        given = Inputs(transitions, rewards, costs, cost_limit, initial, None)
        return cls._make(Inputs.of(given, reward_range, cost_range, actions), noise)

    @classmethod
    def stationary(
        cls,
        transitions: TransitionsLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        cost_limit: ArrayLike,
        initial: ArrayLike,
        *,
        horizon: int,
        noise: Noise = Bernoulli(),  # noqa: B008 - frozen, so sharing it is harmless
        reward_range: Range = (0, 1),
        cost_range: CostRange = (0, 1),
        actions: ArrayLike | None = None,
    ) -> Self:
        """A model that is the same at every step. Its arrays are stored once, whatever the horizon.

        The arguments lose their step axis: transitions ``[S, A, S]`` (or a list of A matrices
        ``[S, S]``, or sparse rows over (s, a)), rewards ``[S, A]``, costs ``[S, A]`` or ``[M, S, A]``.
        """
        given = Inputs(transitions, rewards, costs, cost_limit, initial, _checked_horizon(horizon))
        return cls._make(Inputs.of(given, reward_range, cost_range, actions), noise)

    @classmethod
    def _make(cls, given: Inputs, noise: Noise) -> Self:
        """A model of arguments that are in the unit interval."""
        spec = _checked_noise(noise)._spec()
        try:
            made = cls._core_model(given, spec)
        except InvalidInputError as error:
            if given.unfolded is not None:
                cls._core_model(given.unfolded, spec)
            raise _with_hint(error, given) from None
        made._noise, made._units, made._actions = noise, given.units, given.actions
        made._limits = made.unit_cost_limits if given.limits is None else given.limits
        return made

    @classmethod
    def _core_model(cls, given: Inputs, noise: tuple[str, float]) -> Self:
        signals = (given.rewards, given.costs, given.cost_limit)
        return _core.Model.__new__(cls, given.transitions, *signals, given.initial, noise, given.horizon)

    @property
    def shape(self) -> Shape:
        """(horizon, num_states, num_actions)."""
        return Shape(*self.sizes)

    @property
    def noise(self) -> Noise:
        """How observations differ from their means."""
        return self._noise

    @property
    def units(self) -> Units:
        """The ranges of rewards and costs. Everything the model shows is in these units."""
        return self._units

    @property
    def actions(self) -> BoolArray | None:
        """``[S, A]``, read-only, True where the action exists in the state; None if all exist.

        The rows of missing actions are those of the lowest action that exists in the state.
        """
        return self._actions

    @property
    def cost_limits(self) -> FloatArray:
        """tau, one limit a constraint, ``[M]``."""
        return self._limits.copy()

    @property
    def unit_cost_limits(self) -> FloatArray:
        """The limits ``[M]`` for costs mapped to the unit interval, as ``stored_costs`` are."""
        return super().cost_limits

    @property
    def rewards(self) -> FloatArray:
        """r, ``[H, S, A]``, read-only; a stationary model's is a view of ``[S, A]``."""
        return np.broadcast_to(self.units.rewards_out(self.stored_rewards()), self.shape)

    @property
    def costs(self) -> FloatArray:
        """c, ``[M, H, S, A]``, read-only; a stationary model's is a view of ``[M, S, A]``."""
        stored = self.units.costs_out(self.stored_costs())
        if stored.ndim == 3:
            stored = stored[:, np.newaxis]
        return np.broadcast_to(stored, (self.num_constraints, *self.shape))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model to a ``.npz`` file, uncompressed and without pickle."""
        check_path(path)
        storage.save_arrays(path, self._arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a model written by :meth:`save`; everything is validated again."""
        check_path(path)
        return cls._from_arrays(storage.load_arrays(path, _FIELDS))

    @classmethod
    def from_umb(
        cls,
        path: str | PathLike[str],
        *,
        reward: str | None = None,
        costs: str | Sequence[str] | None = None,
        cost_limit: ArrayLike | None = None,
        horizon: int | None = None,
        reward_range: Range | None = None,
        cost_range: CostRange | None = None,
        noise: Noise | None = None,
    ) -> Self:
        """Reads a Markov decision process from a UMB file, as PRISM and Storm write them.

        An action is a choice of the state, numbered in the file's order; states may have different
        numbers of them. A reward of the file, on states, choices or branches, is what a step earns in
        expectation. Files of :meth:`to_umb` hold all arguments; those given here come first.

        Args:
            path: the file.
            reward: the name of the reward to be maximised.
            costs: the names of the rewards that are limited, one or several.
            cost_limit: the limits, in the order of ``costs``.
            horizon: the number of steps of an episode.
            reward_range: (low, high) of a step's reward; by default from 0 to the largest, or (0, 1).
            cost_range: the same of the costs.
            noise: how observations differ from their means; by default not at all.

        Example:
            >>> import tempfile, pathlib, optpess as op
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     op.zoo.ring().to_umb(pathlib.Path(folder) / "ring.umb")
            ...     op.CMDP.from_umb(pathlib.Path(folder) / "ring.umb").shape
            Shape(horizon=6, num_states=3, num_actions=2)
        """
        found = read_umb(path)
        if noise is None:
            noise = _noise_of(*found.facts["noise"]) if found.facts else Deterministic()
        return cls.stationary(
            **found.arguments(path, reward, costs, (reward_range, cost_range)),
            cost_limit=found.fact(path, "cost_limit", cost_limit),
            horizon=found.fact(path, "horizon", horizon),
            noise=noise,
        )

    def to_umb(self, path: str | PathLike[str]) -> None:
        """Writes a stationary model to a UMB file, which PRISM and Storm read.

        Actions become choices, ``reward`` and ``cost`` (``cost_0``, ``cost_1``, ...) rewards of choices,
        in the model's units. Horizon, limits, first states, ranges and noise stand in the file under
        ``file-data.parameters.optpess``.
        """
        write_umb(self, path)

    def _arrays(self) -> StoredArrays:
        transitions = self.transitions
        name, parameter = self.noise._spec()
        arrays = {
            "format": np.array(_FIELDS.format),
            "shape": np.array(self.shape),
            "noise": np.array(name),
            "noise_parameter": np.array(parameter),
            "rewards": self.stored_rewards(),
            "costs": self.stored_costs(),
            "cost_limits": self.cost_limits,
            "reward_range": np.array(self.units.reward_range),
            "cost_ranges": np.array(self.units.cost_ranges),
            "initial": self.initial,
            "transition_steps": np.array(transitions.horizon or 0),
        }
        if self.actions is not None:
            arrays["actions"] = self.actions
        arrays |= {f"transition_{key}": value for key, value in transitions.stored()}
        return arrays

    @classmethod
    def _from_arrays(cls, arrays: StoredArrays) -> Self:
        for name, shape in _FIXED_SHAPES.items():
            if arrays[name].shape != shape:
                raise InvalidInputError(
                    f"stored array {name!r} has shape {arrays[name].shape}; it must have {shape}"
                )
        horizon, num_states, num_actions = arrays["shape"].tolist()
        steps = arrays["transition_steps"].item()
        transitions: TransitionsLike = arrays["transition_probabilities"]
        if "transition_offsets" in arrays and "transition_successors" in arrays:
            transitions = Transitions.sparse(
                arrays["transition_offsets"],
                arrays["transition_successors"],
                arrays["transition_probabilities"],
                num_states=num_states,
                num_actions=num_actions,
                horizon=steps or None,
            )
        noise = _noise_of(arrays["noise"].item(), arrays["noise_parameter"].item())
        units = _stored_units(arrays)
        unit_limits, limits = arrays["cost_limits"], None
        if not units.is_unit:
            limits = unit_limits.astype(np.float64)
            unit_limits = units.checked_limits_in("stored cost_limits", limits, horizon)
        given = Inputs(
            transitions,
            arrays["rewards"],
            arrays["costs"],
            unit_limits,
            arrays["initial"],
            horizon if arrays["rewards"].ndim == 2 else None,
            units,
            check_mask(arrays.get("actions"), num_states, num_actions, "stored array 'actions'"),
            limits,
        )
        made = cls._make(given, noise)
        found = (*made.shape, made.transitions.horizon or 0)
        if found != (horizon, num_states, num_actions, steps):
            raise InvalidInputError(
                f"stored arrays 'shape' and 'transition_steps' are "
                f"{(horizon, num_states, num_actions)} and {steps}; the other arrays are of a "
                f"model with {found[:3]} and {found[3]}"
            )
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self)._from_arrays, (self._arrays(),))

    def __copy__(self) -> Self:
        return self  # a model cannot be changed

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.shape._asdict().items())
        rows = "sparse" if self.transitions.is_sparse else "dense"
        more = [f"num_constraints={self.num_constraints}", rows]
        if not self.units.is_unit:
            more.append(f"reward_range={_short(self.units.reward_range)}")
            more.append(f"cost_range={_short_ranges(self.units.cost_ranges)}")
        if self.actions is not None:
            more.append(f"{int((~self.actions).sum())} of {self.actions.size} actions missing")
        return f"CMDP({sizes}, {', '.join(more)})"


def check_model(value: object) -> CMDP:
    """The value, if it is a model. A problem of the zoo is not, but has one."""
    inside = isinstance(getattr(value, "model", None), CMDP)
    return check_type("model", value, CMDP, "its attribute model is one" if inside else "")


def _short(pair: Range) -> str:
    return f"({pair[0]:g}, {pair[1]:g})"


def _short_ranges(ranges: tuple[Range, ...]) -> str:
    if len(set(ranges)) == 1:
        return _short(ranges[0])
    shown = ", ".join(_short(pair) for pair in ranges[:3])
    return f"[{shown}{', ...' if len(ranges) > 3 else ''}]"


def _checked_noise(noise: object) -> Noise:
    if isinstance(noise, Noise):
        return noise
    called = isinstance(noise, type) and issubclass(noise, Noise)
    meant = "; did you mean an instance, with parentheses?" if called else ""
    raise InvalidInputError(
        f"noise is {noise!r}; allowed are op.Bernoulli(), op.Deterministic(), op.Gaussian(sigma) and "
        f"op.Uniform(half_width){meant}"
    )


def _noise_of(name: str, parameter: float) -> Noise:
    """The noise of a file."""
    if name not in _NOISES:
        # A damaged file may hold text that cannot be compared with names, so there is no suggestion.
        raise InvalidInputError(f"stored noise is {name!r}; allowed are {', '.join(_NOISES)}")
    return _NOISES[name](parameter)


def _with_hint(error: InvalidInputError, given: Inputs) -> InvalidInputError:
    """A refusal by the core, with what the caller probably meant."""
    message, hint = str(error), ""
    signal = message.partition("[")[0]
    if given.units.is_unit and signal in ("rewards", "costs") and message.endswith("must lie in [0, 1]"):
        hint = f"; for other units say {signal.removesuffix('s')}_range=(low, high)"
    elif message.startswith("rewards has shape") and _has_fewer_axes(given.transitions, given.rewards):
        hint = "; transitions has fewer axes: the order is transitions, rewards, costs"
    if not hint:
        return error
    made = InvalidInputError(message + hint)
    made.kind = error.kind
    return made


def _has_fewer_axes(transitions: TransitionsLike, rewards: ArrayLike) -> bool:
    return isinstance(transitions, np.ndarray) and transitions.ndim < np.ndim(rewards)


def _checked_horizon(horizon: int) -> int:
    """The core checks the number; None would mean that the signals have a step axis."""
    if horizon is None:
        raise InvalidInputError("horizon is None; it must be a whole number, the steps of an episode")
    return horizon


def _stored_units(arrays: StoredArrays) -> Units:
    """The units of a file; those of an earlier format are the unit interval."""
    num_constraints = arrays["cost_limits"].size
    rewards = arrays.get("reward_range", np.array((0.0, 1.0)))
    costs = arrays.get("cost_ranges", np.array([(0.0, 1.0)] * num_constraints))
    for name, found, shape in (
        ("reward_range", rewards, (2,)),
        ("cost_ranges", costs, (num_constraints, 2)),
    ):
        if found.shape != shape:
            raise InvalidInputError(
                f"stored array {name!r} has shape {found.shape}; it must have {shape}"
            )
    return Units.of(rewards.tolist(), costs.tolist(), num_constraints)


_FIELDS = storage.Fields(
    format="optpess.CMDP/2",
    required={
        "shape": "i",
        "noise": "U",
        "noise_parameter": "f",
        "rewards": "f",
        "costs": "f",
        "cost_limits": "f",
        "initial": "f",
        "transition_steps": "i",
        "transition_probabilities": "f",
    },
    optional={
        "reward_range": "f",
        "cost_ranges": "f",
        "actions": "b",
        "transition_offsets": "i",
        "transition_successors": "i",
    },
    earlier=("optpess.CMDP/1",),
)
_FIXED_SHAPES = {"shape": (3,), "noise": (), "noise_parameter": (), "transition_steps": ()}
