"""Storm, through stormpy: a model, and the queries that `op.solve` and `op.frontier` answer."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import stormpy
from stormpy import datastructures, models
from stormpy.numbers import Rational

PRECISION = "1/1000000"


class StormModel:
    """A model in Storm's sparse storage, built once; building is not timed."""

    def __init__(self, rows: tuple[Any, Any, Any], rewards: Any, costs: Any, start: int = 0) -> None:
        self._rewards, self._costs = rewards, costs
        states, actions = rewards.shape
        offsets, successors, probabilities = rows
        builder = datastructures.SparseMatrixBuilder[float](0, 0, 0, False, True)
        row_numbers = np.repeat(np.arange(states * actions), np.diff(offsets))
        groups = np.arange(states) * actions
        builder.add_next_values(
            row_numbers.tolist(), successors.tolist(), probabilities.tolist(), groups.tolist()
        )
        self._matrix = builder.build()
        self._labels = models.StateLabeling(states)
        self._labels.add_label("init")
        self._labels.add_label_to_state("init", start)
        self._start = start
        signals = {"r": rewards} | {f"c{m}": cost for m, cost in enumerate(costs)}
        self._model = self._with(signals)

    def _with(self, signals: dict[str, Any]) -> Any:
        made = {
            name: models.SparseRewardModel[float](
                optional_state_action_reward_vector=signal.ravel().tolist()
            )
            for name, signal in signals.items()
        }
        parts = models.SparseModelComponents[float](
            transition_matrix=self._matrix, state_labeling=self._labels, reward_models=made
        )
        return models.SparseMdp[float](parts)

    def best_within(self, horizon: int, limits: Any, precision: str = PRECISION) -> tuple[float, float]:
        """Seconds, and the most reward with costs within the limits."""
        wanted = [f'R{{"r"}}max=? [C<={horizon}]']
        wanted += [f'R{{"c{m}"}}<={limit!r} [C<={horizon}]' for m, limit in enumerate(limits)]
        return self._checked(self._model, f"multi({', '.join(wanted)})", precision)

    def curve(self, horizon: int, precision: str) -> tuple[float, int]:
        """Seconds, and how many points the curve of reward and cost has, to a precision."""
        query = f'multi(R{{"r"}}max=? [C<={horizon}], R{{"c0"}}min=? [C<={horizon}])'
        seconds, result = self._timed(self._model, query, precision)
        return seconds, len(result.get_under_approximation().vertices)

    def best_for(self, horizon: int, multiplier: float) -> tuple[float, float]:
        """Seconds, and max V(r) - multiplier V(c_0). Storm's rewards must not be negative."""
        shifted = self._rewards + multiplier * (1.0 - self._costs[0])
        seconds, value = self._checked(
            self._with({"l": shifted}), f'R{{"l"}}max=? [C<={horizon}]', PRECISION
        )
        return seconds, value - multiplier * horizon

    def _checked(self, model: Any, query: str, precision: str) -> tuple[float, float]:
        seconds, result = self._timed(model, query, precision)
        return seconds, float(result.get_value(self._start))

    def _timed(self, model: Any, query: str, precision: str) -> tuple[float, Any]:
        environment = stormpy.Environment()
        environment.modelchecker().multi().precision = Rational(precision)
        (formula,) = stormpy.parse_properties(query)
        start = time.perf_counter()
        result = stormpy.model_checking(model, formula, environment=environment)
        return time.perf_counter() - start, result
