"""What learners hand out: deployments with their mixtures, estimates, signals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optpess import _core
from optpess.arrays import FloatArray, IntArray
from optpess.display import short
from optpess.model.units import Units
from optpess.plan.certificate import Certificate

if TYPE_CHECKING:
    from optpess._core import DeploymentDict, MixtureDict

__all__ = ["Deployment", "Estimates", "Member", "Mixture", "Signals", "deployment_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A policy of a :class:`Mixture`, with its weight and bounds on its cost.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> learner.next_policy().members[0].source
        'Baseline'
    """

    number: int
    """The number of the policy within its learner: the same number is the same policy."""
    source: str
    """Where the policy comes from, as in :class:`Deployment`."""
    weight: float
    """The probability that the coin chooses it."""
    cost_bounds: FloatArray
    """Upper bounds on its expected cost, ``[M]``: its certificates."""
    policy: FloatArray
    """``[H, S, A]``."""

    def __repr__(self) -> str:
        return f"Member({self.source}, weight={self.weight:.4g}, cost_bounds={short(self.cost_bounds)})"


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Policies with weights, of which a coin chooses one before the episode starts.

    The expected cost of the episode, over the coin too, is the weighted sum of the members' costs, hence
    at most ``cost_bounds``, and these are within ``limits``. The member that the coin chose may cost
    more than the limit by itself.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> mixture = learner.next_policy().mixture
        >>> float(mixture.weights.sum()), bool((mixture.cost_bounds <= mixture.limits).all())
        (1.0, True)
    """

    number: int
    """Which mixture of its learner this is: the same number is the same mixture."""
    members: tuple[Member, ...]
    """The members."""
    chosen: int
    """The position of the member that the coin chose."""
    limits: FloatArray
    """The cost limits, ``[M]``."""
    cost_bounds: FloatArray
    """The weighted sums of the members' cost bounds, ``[M]``; never above the limits."""

    @property
    def chosen_member(self) -> Member:
        """The member that the coin chose."""
        return self.members[self.chosen]

    @property
    def weights(self) -> FloatArray:
        """The weights of the members."""
        return np.array([member.weight for member in self.members])

    def __repr__(self) -> str:
        parts = ", ".join(f"{member.source} {member.weight:.4g}" for member in self.members)
        chosen = self.chosen_member.source
        return f"Mixture({parts}; chosen: {chosen}, cost_bounds={short(self.cost_bounds)})"


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """The policy to play in one episode.

    Example:
        >>> import numpy as np, optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...     baseline=op.SafeBaseline(pair.safe_policy, op.SafetyMargin(0.6, 0.135)))
        >>> deployment = learner.next_policy()
        >>> deployment.action(step=0, state=1)
        0
    """

    episode: int
    """The number of the episode, from 0."""
    policy: FloatArray
    """``[H, S, A]``."""
    source: str
    """How the policy was chosen: ``"Baseline"``, ``"BaselineEstimation"``, ``"PessimisticSet"`` or
    ``"Lagrangian"``; other learners also have ``"Optimistic"``, ``"Plausible"``,
    ``"PlausibleLagrangian"``, ``"LeastCost"``, ``"MirrorAscent"`` and ``"KnownTransitions"``, and for
    members of mixtures ``"Explorer"``, ``"Cautious"`` and ``"Bold"``."""
    certificate: Certificate | None
    """What is certified of the expected cost: of a policy of the pessimistic set its re-evaluated
    pessimistic cost, of a mixture its weighted cost bounds; else None."""
    optimistic_reward: float
    """The policy's value for the learner's optimistic reward; NaN on the baseline."""
    biased_cost: float
    """The policy's value for the learner's pessimistic (OptPess-LP) or optimistic cost."""
    mixture: Mixture | None = None
    """The mixture of which the coin chose ``policy``, for learners that deploy mixtures; else None."""
    _uniforms: FloatArray = field(default_factory=lambda: np.empty(0))
    # [H], the numbers of the learner's stream that draw the actions

    def action(self, step: int, state: int) -> int:
        """The action to take in a state at a step, drawn from the policy.

        The number that draws it belongs to the episode and the step: asking twice gives the same action,
        and a learner that was stored and restored gives the same actions.
        """
        return _core.draw_action(self.policy, self._uniforms, step, state)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of the mixture; none for learners that deploy one policy."""
        return () if self.mixture is None else self.mixture.members

    @property
    def weights(self) -> FloatArray:
        """The weights of the members, in their order."""
        return np.empty(0) if self.mixture is None else self.mixture.weights

    @property
    def chosen(self) -> int | None:
        """The position of the member that the coin chose; None for learners that deploy one policy."""
        return None if self.mixture is None else self.mixture.chosen

    def __repr__(self) -> str:
        bounds = "" if self.certificate is None else f", certified_cost={short(self.certificate.costs)}"
        mixture = "" if self.mixture is None else f", {len(self.members)} members"
        return f"Deployment(episode={self.episode}, source={self.source!r}{bounds}{mixture})"


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Counts and averages of everything observed. Pairs that were not visited have zeros throughout,
    also in their row of transitions. Actions that do not exist have no visits and the averages of the
    action they stand in for.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial,
        ...                         baseline=pair.baseline)
        >>> learner.estimates
        Estimates(0 of 8 (step, state, action) visited)
    """

    visits: IntArray
    """How often each (step, state, action) was visited, ``[H, S, A]``."""
    transition_counts: IntArray
    """How often each next state followed, ``[H, S, A, S]``; 0 at the last step."""
    transitions: FloatArray
    """The estimated transition probabilities, ``[H, S, A, S]``; 0 at the last step."""
    rewards: FloatArray
    """The average observed rewards, ``[H, S, A]``."""
    costs: FloatArray
    """The average observed costs, ``[H, S, A]``."""
    bonus: FloatArray
    """The radius of the confidence bounds, ``[H, S, A]``, in parts of the ranges of reward and cost."""

    def __repr__(self) -> str:
        seen = int((self.visits > 0).sum())
        return f"Estimates({seen} of {self.visits.size} (step, state, action) visited)"


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """The biased reward and cost that the next plan will use.

    Example:
        >>> import optpess as op
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.OptPessLP(shape=pair.model.shape, initial=pair.model.initial, num_episodes=100,
        ...                        baseline=pair.baseline)
        >>> learner.signals.cost.shape
        (2, 2, 2)
    """

    reward: FloatArray | None
    """``[H, S, A]``; None while the safe cost, on which it depends, is being estimated."""
    cost: FloatArray
    """``[H, S, A]``."""

    def __repr__(self) -> str:
        known = "unknown yet" if self.reward is None else "[H, S, A]"
        return f"Signals(reward {known}, cost [H, S, A], shape {self.cost.shape})"


def deployment_of(answer: DeploymentDict, units: Units, horizon: int, limits: FloatArray) -> Deployment:
    """A deployment from the core's answer, in the user's units."""
    mixture = None
    if answer["mixture"] is not None:
        mixture = _mixture_of(answer["mixture"], units, horizon, limits)
    certificate = None
    if mixture is not None:
        certificate = Certificate(mixture.cost_bounds, mixture.limits)
    elif answer["certificate"] is not None:
        cost, _, repair = answer["certificate"]
        # In the core it is within the limit; the map's rounding must not put it above.
        cost = min(units.first_cost_value_out(cost, horizon), float(limits[0]))
        certificate = Certificate([cost], limits, repair)
    return Deployment(
        episode=answer["episode"],
        policy=answer["policy"],
        source=answer["source"],
        certificate=certificate,
        optimistic_reward=units.values_out(answer["optimistic_reward"], horizon),
        biased_cost=units.first_cost_value_out(answer["biased_cost"], horizon),
        mixture=mixture,
        _uniforms=answer["uniforms"],
    )


def _mixture_of(answer: MixtureDict, units: Units, horizon: int, limits: FloatArray) -> Mixture:
    """A mixture from the core's answer."""
    members = (
        Member(
            number=member["number"],
            source=member["source"],
            weight=member["weight"],
            cost_bounds=units.cost_values_out(np.array(member["cost_bounds"]), horizon),
            policy=member["policy"],
        )
        for member in answer["members"]
    )
    return Mixture(
        number=answer["number"],
        members=tuple(members),
        chosen=answer["chosen"],
        limits=limits,
        # In the core they are within the limits; the map's rounding must not put them above.
        cost_bounds=np.minimum(units.cost_values_out(np.array(answer["cost_bounds"]), horizon), limits),
    )
