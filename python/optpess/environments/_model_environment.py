"""The Gymnasium environment that samples a known model. Importing this file needs Gymnasium."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec

from optpess.arrays import FloatArray, IntArray
from optpess.exceptions import InvalidInputError
from optpess.model import CMDP, Transitions
from optpess.model.noise import Deterministic, Gaussian, Noise, Uniform

__all__ = ["ModelEnvironment"]


class ModelEnvironment(gymnasium.Env[int, int]):
    """Episodes of a known model, in the user's units; see :func:`optpess.environments.as_gymnasium`."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, model: CMDP) -> None:
        self.model = model
        horizon, num_states, num_actions = model.shape
        self.observation_space = cast(Any, gymnasium.spaces.Discrete(num_states))
        self.action_space = cast(Any, gymnasium.spaces.Discrete(num_actions))
        # So that the environment can be made again, as tools of Gymnasium do.
        made_by = cast(Any, ModelEnvironment)
        self.spec = EnvSpec("optpess/CMDP-v0", entry_point=made_by, kwargs={"model": model})
        limits = model.cost_limits.tolist()
        self.cost_limit = limits[0] if len(limits) == 1 else limits
        self.existing_actions = model.actions
        self._horizon, self._num_actions, self._pairs = horizon, num_actions, num_states * num_actions
        self._kernel = _rows_of(model.transitions)
        self._same_at_every_step = model.transitions.horizon is None
        self._first = _Rows(np.array([0, num_states]), np.arange(num_states), model.initial)
        units = model.units
        stored = (model.stored_rewards(), *model.stored_costs())
        ranges = (units.reward_range, *units.cost_ranges)
        # For each signal: its means, whether they depend on the step, low and width of its range.
        self._signals = [
            (_packed(means), means.ndim == 3, low, high - low)
            for means, (low, high) in zip(stored, ranges, strict=True)
        ]
        self._observe = _observation_of(model.noise)
        self._exist: npt.NDArray[Any] | None = model.actions
        self._state, self._time = 0, horizon

    def __repr__(self) -> str:
        return f"<ModelEnvironment of {self.model!r}>"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Draws the first state."""
        super().reset(seed=seed, options=options)
        self._state, self._time = self._first.draw(0, self.np_random), 0
        return self._state, self._with_mask({})

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Draws reward, costs and next state; truncated at step H."""
        time, generator = self._time, self.np_random
        if time == self._horizon:
            raise gymnasium.error.ResetNeeded(
                f"an episode has {time} steps; call reset before the first and after the last one"
            )
        chosen = index(action)
        if not 0 <= chosen < self._num_actions:
            raise InvalidInputError(f"action is {chosen}; it must lie in [0, {self._num_actions - 1}]")
        pair = self._state * self._num_actions + chosen
        row = time * self._pairs + pair
        reward, *costs = [
            low + width * self._observe(means[row if by_step else pair], generator)
            for means, by_step, low, width in self._signals
        ]
        self._time = time = time + 1
        # Of the last step no transition is known, unless the transitions are the same at every step.
        if self._same_at_every_step:
            self._state = self._kernel.draw(pair, generator)
        elif time < self._horizon:
            self._state = self._kernel.draw(row, generator)
        info = {"cost": costs[0]} if len(costs) == 1 else {"costs": costs}
        return self._state, reward, False, time == self._horizon, self._with_mask(info)

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._exist is not None:
            info["action_mask"] = self._exist[self._state].astype(np.int8)
        return info


def _observation_of(noise: Noise) -> Callable[[float, np.random.Generator], float]:
    """How an observation is drawn, given its mean."""
    if isinstance(noise, Deterministic):
        return _its_mean
    if isinstance(noise, Gaussian):
        return partial(_normal, float(noise.sigma))
    if isinstance(noise, Uniform):
        return partial(_uniform, float(noise.half_width))
    return _coin


# Functions of the module, so that environments can be pickled.


def _its_mean(mean: float, _: np.random.Generator) -> float:
    return mean


def _coin(mean: float, generator: np.random.Generator) -> float:
    return 1.0 if generator.random() < mean else 0.0


def _normal(sigma: float, mean: float, generator: np.random.Generator) -> float:
    return mean + sigma * generator.standard_normal()


def _uniform(half_width: float, mean: float, generator: np.random.Generator) -> float:
    return mean + half_width * (2.0 * generator.random() - 1.0)


class _Rows:
    """Distributions over states, one a row, to draw from: the possible successors of each row and their
    cumulative probabilities. Arrays of Python, as single elements of NumPy's are slow to read.
    """

    def __init__(self, offsets: IntArray, successors: IntArray, probabilities: FloatArray) -> None:
        possible = probabilities > 0.0
        offsets = np.append(0, np.cumsum(possible))[offsets]
        cumulative = probabilities[possible]
        starts, lengths = offsets[:-1], np.diff(offsets)
        for place in range(1, int(lengths.max(initial=0))):
            here = starts[lengths > place] + place
            cumulative[here] += cumulative[here - 1]
        cumulative[offsets[1:][lengths > 0] - 1] = 1.0  # where a sum misses it by a rounding error
        self._offsets: array[int] = _packed(offsets)
        self._successors: array[int] = _packed(successors[possible])
        self._cumulative: array[float] = _packed(cumulative)

    def draw(self, row: int, generator: np.random.Generator) -> int:
        """A successor of a row."""
        start, end = self._offsets[row], self._offsets[row + 1]
        if end == start + 1:
            return self._successors[start]
        return self._successors[bisect_right(self._cumulative, generator.random(), start, end)]


def _rows_of(transitions: Transitions) -> _Rows:
    """The rows of all (h, s, a), or all (s, a) if they are the same at every step."""
    arrays, size = dict(transitions.stored()), transitions.num_states
    probabilities = arrays["probabilities"].reshape(-1)
    if transitions.is_sparse:
        offsets, successors = arrays["offsets"], arrays["successors"]
    else:
        offsets = np.arange(0, probabilities.size + 1, size)
        successors = np.tile(np.arange(size), len(offsets) - 1)
    if transitions.horizon is not None:  # the slice of the last step may hold anything
        offsets = offsets[: (transitions.horizon - 1) * size * transitions.num_actions + 1]
    return _Rows(offsets, successors[: offsets[-1]], probabilities[: offsets[-1]])


def _packed(values: npt.NDArray[Any]) -> array[Any]:
    """The elements of an array, as one of Python's."""
    floats = values.dtype.kind == "f"
    packed: array[Any] = array("d" if floats else "q")
    packed.frombytes(np.ascontiguousarray(values, np.float64 if floats else np.int64).tobytes())
    return packed
