"""A staged rollout: a candidate policy replaces a baseline in the share of episodes that is safe."""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, SupportsIndex

import numpy as np

from optpess import _core, storage
from optpess.arrays import ArrayLike, FloatArray
from optpess.checks import check_path, real_number, whole_number
from optpess.display import short
from optpess.exceptions import InvalidInputError
from optpess.learn.terms import SafeMixture

__all__ = ["RolloutCertificate", "StagedRollout"]

_FORMAT = "optpess-staged-rollout-1"
_BOUND = "mixture of bets"


@dataclass(frozen=True, slots=True, eq=False)
class RolloutCertificate:
    """Why the next episode is within the limits, and what that rests on.

    Example:
        >>> import optpess as op
        >>> rollout = op.StagedRollout(cost_limit=1.0, baseline_cost=0.5, max_episode_cost=4.0)
        >>> certificate = rollout.certificate
        >>> certificate.costs, certificate.candidate_costs, certificate.episodes
        (array([1.]), array([4.]), 0)
    """

    costs: FloatArray
    """Upper bounds on the expected costs of the next episode, over the coin too, ``[M]``."""
    limits: FloatArray
    """``[M]``."""
    candidate_costs: FloatArray
    """Upper bounds on the expected costs of the candidate, ``[M]``."""
    weight: float
    """The probability with which the candidate plays."""
    episodes: int
    """How many episodes of the candidate the bounds rest on."""
    level: float
    """The probability with which one of the bounds may fail, at any time."""
    bound: str
    """The name of the bound."""

    def __repr__(self) -> str:
        numbers = f"costs={short(self.costs)}, limits={short(self.limits)}"
        candidate = f"candidate_costs={short(self.candidate_costs)}, weight={self.weight:.4g}"
        rests = f"episodes={self.episodes}, level={self.level:.4g}, bound={self.bound!r}"
        return f"RolloutCertificate({numbers}, {candidate}, {rests})"


class StagedRollout:
    """Decides for each episode whether a candidate or the baseline plays it, so that the expected cost
    stays within a limit from the first episode.

    The share of the candidate grows with the episodes it has played: with U an upper bound on its
    expected cost, it is (limit - baseline cost)/(U - baseline cost), and 1 once U is within the limit.
    Nothing is assumed about states and actions, so the candidate may be anything, such as a neural
    network.

    Args:
        cost_limit: the largest expected cost of an episode; a number, or one for each constraint.
        baseline_cost: a cost below the limit that the baseline is known not to exceed in expectation.
        max_episode_cost: the largest possible total cost of an episode. The closer to the truth, the
            faster the share grows.
        failure_probability: the probability with which the promise may fail. Candidate j spends
            ``failure_probability/(j (j + 1))`` of it.
        seed: of the coin.

    Example:
        >>> import optpess as op
        >>> rollout = op.StagedRollout(cost_limit=1.0, baseline_cost=0.5, max_episode_cost=4.0)
        >>> round(rollout.weight, 3)
        0.143
        >>> for episode in range(3000):
        ...     cost = 0.7 if rollout.use_candidate() else 0.4  # play an episode
        ...     rollout.record(cost)
        >>> rollout.weight
        1.0
    """

    def __init__(
        self,
        *,
        cost_limit: ArrayLike,
        baseline_cost: ArrayLike,
        max_episode_cost: ArrayLike,
        failure_probability: float = 0.05,
        seed: SupportsIndex = 0,
    ) -> None:
        number = whole_number("seed", seed, least=0, most=2**64 - 1)
        level = real_number("failure_probability", failure_probability)
        self._inner = _core.StagedRollout(cost_limit, baseline_cost, max_episode_cost, level, number)

    def use_candidate(self) -> bool:
        """Tosses the coin: True if the candidate plays the next episode, False if the baseline does.

        A candidate's episode must be recorded before the next toss. That of the baseline may be.
        """
        return self._inner.use_candidate()

    def record(self, cost: ArrayLike) -> None:
        """Takes in the total cost of the episode just played, or one for each constraint.

        A cost outside of ``[0, max_episode_cost]`` is refused, and nothing changes. Costs of the
        baseline are compared with what was stated: if they contradict it, a warning is given and the
        guarantee becomes None.
        """
        before = self._inner.contradicted_baseline
        self._inner.record(cost)
        found = self._inner.contradicted_baseline
        if before is None and found is not None:
            stated = float(self._inner.constraints()[1, found])
            average, low = self._inner.baseline_costs()[:, found]
            warnings.warn(
                f"the baseline costs {average:.6g} on average over {self.baseline_episodes} episodes "
                f"and at least {low:.6g} in expectation, more than the stated {stated:.6g} "
                f"(constraint {found}): the promise of the rollout is void",
                RuntimeWarning,
                stacklevel=2,
            )

    def replace_candidate(self) -> None:
        """Starts the next candidate, about which nothing is known yet.

        Call it whenever the candidate changes, also when it was trained further.
        """
        self._inner.replace_candidate()

    @property
    def weight(self) -> float:
        """The probability with which the candidate plays the next episode. It never decreases for the
        same candidate.
        """
        return self._inner.weight

    @property
    def certificate(self) -> RolloutCertificate:
        """Bounds on the costs of the next episode, and what they rest on."""
        limits, baseline_costs, _ = self._inner.constraints()
        upper = self._inner.candidate_costs()[1]
        weight = self.weight
        return RolloutCertificate(
            costs=weight * upper + (1 - weight) * baseline_costs,
            limits=limits,
            candidate_costs=upper,
            weight=weight,
            episodes=self.candidate_episodes,
            level=self._inner.level,
            bound=_BOUND,
        )

    @property
    def guarantee(self) -> SafeMixture | None:
        """What is promised; None once the baseline's recorded costs contradict what was stated."""
        if self._inner.contradicted_baseline is not None:
            return None
        return SafeMixture(1 - self._inner.failure_probability)

    @property
    def candidate_number(self) -> int:
        """1 for the first candidate, 2 for the one that replaced it, and so on."""
        return self._inner.candidate_number

    @property
    def episodes(self) -> int:
        """How often the coin was tossed."""
        return self._inner.episodes

    @property
    def candidate_episodes(self) -> int:
        """How many episodes of the present candidate were recorded."""
        return self._inner.candidate_episodes

    @property
    def baseline_episodes(self) -> int:
        """How many episodes of the baseline were recorded."""
        return self._inner.baseline_episodes

    @property
    def candidate_average(self) -> FloatArray:
        """The average costs of the present candidate, ``[M]``; NaN before its first episode."""
        averages, _ = self._inner.candidate_costs()
        return np.array(averages)

    @property
    def baseline_average(self) -> FloatArray:
        """The average recorded costs of the baseline, ``[M]``; NaN before the first."""
        averages, _ = self._inner.baseline_costs()
        return np.array(averages)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes everything to a file, the coin included. If that fails, an old file stays as it was."""
        check_path(path)
        stored = self._inner.to_bytes()
        arrays = {
            "format": np.array(_FORMAT),
            "state": np.frombuffer(stored, np.uint8),
            "checksum": np.array(zlib.crc32(stored), np.uint32),
        }
        storage.save_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads what :meth:`save` wrote. The rollout continues with the same coin."""
        fields = storage.Fields(_FORMAT, required={"state": "u", "checksum": "u"})
        arrays = storage.load_arrays(check_path(path), fields)
        stored, checksum = arrays["state"].tobytes(), arrays["checksum"]
        if checksum.shape != () or int(checksum) != zlib.crc32(stored):
            raise InvalidInputError(f"{path}: the checksum does not match the stored rollout")
        return cls._of(_restored(stored))

    @classmethod
    def _of(cls, inner: _core.StagedRollout) -> Self:
        made = object.__new__(cls)
        made._inner = inner
        return made

    def __copy__(self) -> Self:
        return self._of(self._inner.copy())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        stored = self._inner.to_bytes()
        return {"_inner": stored, "_checksum": zlib.crc32(stored)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["_checksum"] != zlib.crc32(state["_inner"]):
            raise InvalidInputError("not a stored rollout: the checksum does not match the bytes")
        self._inner = _restored(state["_inner"])

    def __repr__(self) -> str:
        return (
            f"StagedRollout(candidate {self.candidate_number}, weight={self.weight:.4g}, "
            f"{self.candidate_episodes} candidate episodes of {self.episodes}, "
            f"guarantee={self.guarantee})"
        )


def _restored(stored: bytes) -> _core.StagedRollout:
    try:
        return _core.StagedRollout.from_bytes(stored)
    except ValueError as error:
        raise InvalidInputError(str(error)) from error
