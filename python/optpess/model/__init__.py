"""Known models: finite-horizon constrained Markov decision processes, and their files."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from optpess import _core, storage
from optpess._core import Transitions
from optpess.arrays import ArrayLike, FloatArray, StoredArrays, TransitionsLike
from optpess.exceptions import InvalidInputError
from optpess.model.noise import Bernoulli, Deterministic, Gaussian, Noise, Uniform

__all__ = ["CMDP", "Shape", "Transitions"]

_NOISES: dict[str, Callable[[float], Noise]] = {
    "bernoulli": lambda _: Bernoulli(),
    "deterministic": lambda _: Deterministic(),
    "gaussian": Gaussian,
    "uniform": Uniform,
}


class Shape(NamedTuple):
    """The sizes of a problem: horizon, number of states, number of actions."""

    horizon: int
    num_states: int
    num_actions: int


class CMDP(_core.Model):
    """A constrained Markov decision process: maximise the expected reward of an episode while each
    expected cost stays within its limit.

    The constructor checks every argument. A model cannot be changed afterwards.

    Args:
        transitions: ``[H, S, A, S]``, each row a distribution over successors; or sparse rows over
            (h, s, a), as a SciPy CSR matrix or an :class:`optpess.Transitions`. The slice of the
            last step is ignored.
        rewards: ``[H, S, A]``, mean rewards in [0, 1].
        costs: ``[H, S, A]``, or ``[M, H, S, A]`` for several constraints; mean costs in [0, 1].
        cost_limit: a number in (0, H], or ``[M]`` of them.
        initial: ``[S]``, the distribution of the first state.
        noise: how observations differ from their means.

    Example:
        >>> import numpy as np, optpess as op
        >>> half, one = np.full((3, 2, 2, 2), 0.5), np.ones((3, 2, 2))
        >>> model = op.CMDP(half, one, one / 4, 1.0, [1.0, 0.0])
        >>> model
        CMDP(horizon=3, num_states=2, num_actions=2, num_constraints=1, dense)
    """

    __slots__ = ("_noise",)
    _noise: Noise

    def __new__(  # noqa: D102 - the class docstring covers the constructor
        cls,
        transitions: TransitionsLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        cost_limit: ArrayLike,
        initial: ArrayLike,
        noise: Noise = Bernoulli(),  # noqa: B008 - frozen, so sharing it is harmless
    ) -> Self:
        return cls._make(transitions, rewards, costs, cost_limit, initial, noise, None)

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
    ) -> Self:
        """A model that is the same at every step. Its arrays are stored once, whatever the horizon.

        The arguments lose their step axis: transitions ``[S, A, S]`` (or sparse rows over (s, a)),
        rewards ``[S, A]``, costs ``[S, A]`` or ``[M, S, A]``.
        """
        return cls._make(transitions, rewards, costs, cost_limit, initial, noise, horizon)

    @classmethod
    def _make(
        cls,
        transitions: TransitionsLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        cost_limit: ArrayLike,
        initial: ArrayLike,
        noise: Noise,
        horizon: int | None,
    ) -> Self:
        if not isinstance(noise, Noise):
            raise InvalidInputError(f"noise is {noise!r}; allowed are {', '.join(_NOISES)}")
        made = _core.Model.__new__(
            cls, transitions, rewards, costs, cost_limit, initial, noise._spec(), horizon
        )
        made._noise = noise
        return made

    @property
    def shape(self) -> Shape:
        """(horizon, num_states, num_actions)."""
        return Shape(*self.sizes)

    @property
    def noise(self) -> Noise:
        """How observations differ from their means."""
        return self._noise

    @property
    def rewards(self) -> FloatArray:
        """r, ``[H, S, A]``, read-only; a stationary model's is a view of ``[S, A]``."""
        return np.broadcast_to(self.stored_rewards(), self.shape)

    @property
    def costs(self) -> FloatArray:
        """c, ``[M, H, S, A]``, read-only; a stationary model's is a view of ``[M, S, A]``."""
        stored = self.stored_costs()
        if stored.ndim == 3:
            stored = stored[:, np.newaxis]
        return np.broadcast_to(stored, (self.num_constraints, *self.shape))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model to a ``.npz`` file, uncompressed and without pickle."""
        storage.save_arrays(path, self._arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a model written by :meth:`save`; everything is validated again."""
        return cls._from_arrays(storage.load_arrays(path, _FIELDS))

    def _arrays(self) -> StoredArrays:
        transitions = self.transitions
        name, parameter = self.noise._spec()
        arrays = {
            "format": np.array("optpess.CMDP/1"),
            "shape": np.array(self.shape),
            "noise": np.array(name),
            "noise_parameter": np.array(parameter),
            "rewards": self.stored_rewards(),
            "costs": self.stored_costs(),
            "cost_limits": self.cost_limits,
            "initial": self.initial,
            "transition_steps": np.array(transitions.horizon or 0),
        }
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
        noise = arrays["noise"].item()
        if noise not in _NOISES:
            raise InvalidInputError(f"stored noise is {noise!r}; allowed are {', '.join(_NOISES)}")
        made = cls._make(
            transitions,
            arrays["rewards"],
            arrays["costs"],
            arrays["cost_limits"],
            arrays["initial"],
            _NOISES[noise](arrays["noise_parameter"].item()),
            horizon if arrays["rewards"].ndim == 2 else None,
        )
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
        return f"CMDP({sizes}, num_constraints={self.num_constraints}, {rows})"


_FIELDS = storage.Fields(
    format="optpess.CMDP/1",
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
    optional={"transition_offsets": "i", "transition_successors": "i"},
)
_FIXED_SHAPES = {"shape": (3,), "noise": (), "noise_parameter": (), "transition_steps": ()}
