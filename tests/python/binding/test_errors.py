"""Every cause of refusal has its exception. To add one, add a line to TABLE."""

import numpy as np
import optpess as op
import pytest
from optpess import _core, exceptions
from support.healthy import INITIAL, POLICY, REWARDS, TRANSITIONS, changed, model, stationary


def two_rows(successors, offsets=(0, 2, 3)):
    probabilities = np.full(len(successors), 0.5)
    return op.Transitions.sparse(offsets, successors, probabilities, num_states=2, num_actions=1)


def learner():
    margin = op.SafetyMargin(cost_limit=1.0, safe_cost=0.5)
    return op.OptPessPrimalDual(shape=POLICY.shape, initial=INITIAL, margin=margin, num_episodes=1)


def play(learner, episodes, actions=(0, 0, 0), rewards=(0.0, 0.0, 0.0)):
    for _ in range(episodes):
        learner.next_policy()
        learner.observe([0] * 3, actions, rewards, [0.0] * 3)


def contradict_the_support():
    never_zero = np.ones((2, 2, 2))
    never_zero[0, 0, 0] = 0
    learner = op.OptPessMix(
        shape=POLICY.shape,
        initial=INITIAL,
        baseline=op.SafeBaseline.estimated(POLICY, 1.0),
        knowledge=op.Knowledge(support=never_zero),
    )
    play(learner, 1)


def restricted(*mask):
    told = learner()
    told._inner.restrict(mask)
    return told


# kind: (its exception, a call that is refused, a piece of the message)
TABLE = {
    "WrongRank": (
        op.InvalidInputError,
        lambda: op.occupancy(POLICY[0], TRANSITIONS, INITIAL),
        "policy has shape [2, 2], which is 2 axes; it must have the axes [H, S, A]",
    ),
    "ShapeMismatch": (
        op.InvalidInputError,
        lambda: op.occupancy(POLICY, TRANSITIONS, [1.0]),
        "initial has shape [1]; it must have shape [2]",
    ),
    "EmptyAxis": (
        op.InvalidInputError,
        lambda: op.Transitions(np.zeros((2, 0, 2))),
        "axis 1 is empty",
    ),
    "TooLarge": (op.InvalidInputError, lambda: stationary(horizon=10**18), "[1000000000000000000,"),
    "WrongType": (
        op.InvalidInputError,
        lambda: learner().next_policy().action(0, 0.5),
        "state is of type float; it must be a whole number",
    ),
    "UnsupportedType": (op.InvalidInputError, lambda: model(rewards="high"), "<U4"),
    "NotFinite": (
        op.InvalidInputError,
        lambda: model(rewards=changed(REWARDS, (0, 0, 1), np.nan)),
        "rewards[0, 0, 1] is NaN",
    ),
    "OutOfRange": (
        op.InvalidInputError,
        lambda: model(cost_limit=4.0),
        "cost_limit[0] is 4; it must lie in (0, 3]",
    ),
    "NotADistribution": (
        op.InvalidInputError,
        lambda: model(initial=[0.5, 0.25]),
        "initial sums to 0.75",
    ),
    "KnowledgeContradicted": (
        op.InvalidInputError,
        contradict_the_support,
        "support[0, 0, 0, 0] was declared impossible, but was observed",
    ),
    "SuccessorOutOfRange": (
        op.InvalidInputError,
        lambda: two_rows([0, 2, 1]),
        "transition successors[1] is 2; a successor state must lie in [0, 2)",
    ),
    "SuccessorsNotIncreasing": (
        op.InvalidInputError,
        lambda: two_rows([1, 0, 1]),
        "transition successors[1] is 0 after 1 in the same row",
    ),
    "MalformedOffsets": (
        op.InvalidInputError,
        lambda: two_rows([0, 1, 1], offsets=(0, 2, 4)),
        "transition offsets[2] is 4",
    ),
    "NothingGiven": (
        op.InvalidInputError,
        lambda: op.mix_policies([], [], TRANSITIONS, INITIAL),
        "policies is empty",
    ),
    "NoSuchAction": (
        op.InvalidInputError,
        lambda: play(restricted([False, True], [True, True]), 1),
        "actions[0] is 0; action 0 does not exist in state 0, where the actions are [1]",
    ),
    "NoActionExists": (
        op.InvalidInputError,
        lambda: restricted([True, True], [False, False]),
        "actions[1] is False for every action; every state needs at least one action",
    ),
    "Infeasible": (
        op.InfeasibleError,
        lambda: op.solve(model(costs=np.ones((3, 2, 2)))),
        "no policy meets the limit 1: the least attainable cost is 3",
    ),
    "NoSafetyMargin": (
        op.NoSafetyMarginError,
        lambda: op.SafetyMargin(cost_limit=0.5, safe_cost=0.75),
        "the safe cost 0.75 is not below the limit 0.5",
    ),
    "OutOfTurn": (
        op.ProtocolError,
        lambda: learner().observe([0] * 3, [0] * 3, [0.0] * 3, [0.0] * 3),
        "observe was called out of turn; next_policy comes next",
    ),
    "ObservationOutOfRange": (
        op.InvalidInputError,
        lambda: play(learner(), 1, rewards=[0.0, 50.0, 0.0]),
        "rewards[1] is 50; it must lie in [0, 1], the learner's reward_range",
    ),
    "Impossible": (
        op.InvalidInputError,
        lambda: play(learner(), 1, actions=[0, 0, 1]),
        "actions[2] is 1, but the deployed policy takes it in state 0 at step 2 with probability 0",
    ),
    "EpisodesExhausted": (
        op.ProtocolError,
        lambda: play(learner(), 2),
        "all 1 episodes have been played",
    ),
}

# Kinds that no input can provoke: only a fault of the library or of a solver does, or Ctrl-C, which is a
# KeyboardInterrupt as everywhere in Python.
UNPROVOKED = {
    "NumericalTrouble",
    "CertificateFailed",
    "Interrupted",
    "NoSuchEngine",
    "RuleWithoutProof",
    "StoredState",
}

NOT_DERIVED = ("OptPessError", "GuaranteeWarning")
CLASSES = {name: getattr(exceptions, name) for name in exceptions.__all__ if name not in NOT_DERIVED}
ALSO = {
    "InvalidInputError": ValueError,
    "NoSafetyMarginError": ValueError,
    "SolverError": ArithmeticError,
    "ProtocolError": RuntimeError,
}


@pytest.mark.parametrize("kind", TABLE)
def test_a_cause_raises_its_exception_with_its_kind_and_message(kind):
    error, refused_call, piece = TABLE[kind]
    with pytest.raises(op.OptPessError) as caught:
        refused_call()
    assert type(caught.value) is error
    assert caught.value.kind == kind
    assert piece in str(caught.value)


def test_the_table_lists_every_cause():
    assert TABLE.keys() | UNPROVOKED == set(_core.error_kinds())
    assert not TABLE.keys() & UNPROVOKED


@pytest.mark.parametrize("name", CLASSES)
def test_every_exception_descends_from_the_common_ancestor(name):
    assert issubclass(CLASSES[name], op.OptPessError)
    assert issubclass(CLASSES[name], ALSO.get(name, op.OptPessError))


def test_the_warning_can_be_silenced_with_those_of_users_and_is_no_exception_of_the_package():
    assert issubclass(op.GuaranteeWarning, UserWarning)
    assert not issubclass(op.GuaranteeWarning, op.OptPessError)


def test_every_exception_is_public():
    for name in exceptions.__all__:
        assert getattr(op, name) is getattr(exceptions, name)
        assert name in op.__all__


def test_infeasibility_carries_the_least_cost():
    with pytest.raises(op.InfeasibleError) as caught:
        op.solve(model(costs=np.ones((3, 2, 2))))
    assert caught.value.least_cost == pytest.approx(3.0)


def test_an_exception_made_by_hand_has_no_kind():
    assert op.InvalidInputError("something").kind is None
