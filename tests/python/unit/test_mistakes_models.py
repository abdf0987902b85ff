"""Typical mistakes with models and planning: each is refused in a sentence that says what was meant."""

import numpy as np
import optpess as op
import pytest
from optpess.checks import optional_module
from scipy import sparse
from support.healthy import refused_in_one_sentence

H, S, A = 4, 3, 2
RNG = np.random.default_rng(11)
P = RNG.dirichlet(np.ones(S), (S, A))  # [S, A, S]
R, C = RNG.random((S, A)), RNG.random((S, A))
START = [1.0, 0.0, 0.0]


def model(**changes):
    given = {
        "transitions": P,
        "rewards": R,
        "costs": C,
        "cost_limit": 2.0,
        "initial": START,
        "horizon": H,
    }
    return op.CMDP.stationary(**given | changes)


MODEL = model()
PLAN = op.solve(MODEL)
LEARNER = op.OptPessPrimalDual(
    shape=MODEL.shape, initial=START, margin=op.SafetyMargin(2.0, 1.0), num_episodes=3
)
UNIFORM = np.full((H, S, A), 0.5)

# what was done: (the call, pieces of the message)
MISTAKES = {
    "rewards of another shape": (
        lambda: model(rewards=R[:2]),
        ["rewards has shape [2, 2]; it must have shape [3, 2]", "[S, A]"],
    ),
    "rewards transposed": (lambda: model(rewards=R.T), ["rewards has shape [2, 3]"]),
    "costs of another shape": (lambda: model(costs=C.T), ["costs has shape [2, 3]"]),
    "rewards without a step axis": (
        lambda: op.CMDP(P, R, C, 2.0, START),
        ["rewards has shape [3, 2]", "[H, S, A]", "CMDP.stationary(..., horizon=H)"],
    ),
    "rewards with a step axis in a stationary model": (
        lambda: model(rewards=np.stack([R] * H)),
        ["rewards has shape [4, 3, 2]", "[S, A]", "CMDP(...)"],
    ),
    "transitions with the actions in front": (
        lambda: model(transitions=np.moveaxis(P, 1, 0)),
        ["transitions has shape [2, 3, 3]", "[A, S, S]", "np.moveaxis(P, 0, 1)", "list of A matrices"],
    ),
    "transitions for other states than rewards and costs": (
        lambda: model(transitions=np.full((2, A, 2), 0.5)),
        ["transitions has shape [2, 2, 2]; it must have shape [3, 2, 3]"],
    ),
    "transitions that are no matrix": (lambda: model(transitions=None), ["transitions", "NoneType"]),
    "transitions as a dictionary": (lambda: model(transitions={0: P}), ["transitions", "dict"]),
    "a row that does not sum to one": (
        lambda: model(transitions=P * 0.9),
        ["transitions[0, 0] sums to 0.9", "must sum to 1"],
    ),
    "too few sparse rows": (
        lambda: model(transitions=sparse.csr_matrix(P.reshape(-1, S)[:-1])),
        ["rows of the sparse transitions is 5; it must be 6", "3 states x 2 actions"],
    ),
    "sparse rows given to Transitions": (
        lambda: op.Transitions(sparse.csr_matrix(P.reshape(-1, S))),
        ["transitions", "op.Transitions.sparse"],
    ),
    "matrices of different sizes": (
        lambda: model(transitions=[sparse.eye_array(3), sparse.eye_array(2)]),
        ["transitions has shape [2, 2]; it must have shape [3, 3]", "action 1"],
    ),
    "rewards and transitions swapped": (
        lambda: model(transitions=np.zeros((S, A)), rewards=P),
        ["rewards has shape", "the order is transitions, rewards, costs"],
    ),
    "rewards of 50": (
        lambda: model(rewards=50 * np.ones((S, A))),
        ["rewards[0, 0] is 50; it must lie in [0, 1]; for other units say reward_range=(low, high)"],
    ),
    "rewards outside of their range": (
        lambda: model(rewards=50 * np.ones((S, A)), reward_range=(0, 10)),
        ["rewards[0, 0] is 50; it must lie in [0, 10], the reward_range"],
    ),
    "a range as one number": (
        lambda: model(reward_range=10),
        ["reward_range is 10; it must be (low, high)"],
    ),
    "a range the wrong way round": (
        lambda: model(cost_range=(4, 0)),
        ["cost_range is (4.0, 0.0)", "the first below the second"],
    ),
    "a limit above what an episode can cost": (
        lambda: model(cost_limit=35.0, cost_range=(0, 5), costs=5 * C),
        ["cost_limit[0] is 35; it must lie in (0, 20]"],
    ),
    "a limit below zero": (
        lambda: model(cost_limit=-1.0),
        ["cost_limit[0] is -1; it must lie in (0, 4]"],
    ),
    "one limit for two constraints": (
        lambda: model(costs=[C, C]),
        ["cost_limit has shape []; it must have shape [2]", "each constraint has one limit"],
    ),
    "two limits for one constraint": (
        lambda: model(cost_limit=[1.0, 2.0]),
        ["cost_limit has shape [2]; it must have shape [1]"],
    ),
    "constraints of different shapes": (
        lambda: model(costs=[C, C[:2]], cost_limit=[1.0, 2.0]),
        ["costs", "list", "its parts have different shapes"],
    ),
    "an array of objects": (
        lambda: model(rewards=R.astype(object)),
        ["rewards holds elements of type object", "dtype=float"],
    ),
    "a first state that does not exist": (
        lambda: model(initial=3),
        ["initial is 3; it must lie in [0, 2]"],
    ),
    "a first state as a fraction": (
        lambda: model(initial=0.5),
        ["initial has shape []", "or be the number of a state"],
    ),
    "a distribution that does not sum to one": (
        lambda: model(initial=[0.5, 0.0, 0.0]),
        ["initial sums to 0.5"],
    ),
    "noise by its name": (
        lambda: model(noise="gaussian"),
        ["noise is 'gaussian'", "op.Gaussian(sigma)"],
    ),
    "a class of noise": (
        lambda: model(noise=op.Bernoulli),
        ["noise is", "did you mean an instance, with parentheses?"],
    ),
    "a number as noise": (lambda: model(noise=0.1), ["noise is 0.1", "op.Bernoulli()"]),
    "noise of no number": (lambda: op.Gaussian("loud"), ["sigma is 'loud'", "it must be a number"]),
    "a fractional horizon": (lambda: model(horizon=2.5), ["horizon", "float", "integers"]),
    "no horizon": (lambda: model(horizon=None), ["horizon is None"]),
    "a mask of another shape": (
        lambda: model(actions=np.ones((A, S))),
        ["actions has shape [2, 3]; it must have shape [3, 2]", "True where the action exists"],
    ),
    "a state without actions": (
        lambda: model(actions=[[1, 1], [0, 0], [1, 1]]),
        ["actions[1] is False for every action"],
    ),
    "a policy that uses a missing action": (
        lambda: op.sample(model(actions=[[1, 0], [1, 1], [1, 1]]), UNIFORM, 3),
        ["policy[0, 0, 1] is 0.5", "action 1 does not exist in state 0", "[0]"],
    ),
    "actions for a policy": (
        lambda: op.evaluate(np.zeros((H, S), dtype=int), R, P, START),
        ["policy has shape [4, 3]", "[H, S, A]", "op.policy_from_actions"],
    ),
    "actions of one step for a policy": (
        lambda: op.sample(MODEL, [0, 1, 0], 3),
        ["policy has shape [3], which is 1 axis", "op.policy_from_actions"],
    ),
    "an action that does not exist": (
        lambda: op.policy_from_actions([[0, 2, 0]], A),
        ["actions[0, 1] is 2; it must lie in [0, 1]"],
    ),
    "actions of a step without the horizon": (
        lambda: op.policy_from_actions([0, 1, 0], A),
        ["actions has shape [3]", "horizon is None"],
    ),
    "a policy for actions": (
        lambda: op.policy_from_actions(UNIFORM, A),
        ["actions holds elements of type float64", "integers"],
    ),
    "a learner to solve": (
        lambda: op.solve(LEARNER),
        ["model", "OptPessPrimalDual", "it must be of type CMDP"],
    ),
    "a plan for a frontier": (lambda: op.frontier(PLAN), ["model", "Plan", "it must be of type CMDP"]),
    "a named problem for its model": (
        lambda: op.solve(op.zoo.problem("pair")),
        ["model", "Problem", "its attribute model is one"],
    ),
    "a number to sample": (lambda: op.sample(3.0, UNIFORM, 3), ["model is 3.0", "CMDP"]),
    "arguments of sample swapped": (lambda: op.sample(UNIFORM, MODEL, 3), ["model", "ndarray", "CMDP"]),
    "an engine misspelt": (
        lambda: op.solve(MODEL, "parametrc"),
        ["engine is 'parametrc'", "did you mean 'parametric'?"],
    ),
    "an engine by its number": (lambda: op.solve(MODEL, 1), ["engine is 1; allowed are 'parametric'"]),
    "an engine that solve_signals has not": (
        lambda: op.solve_signals(UNIFORM, UNIFORM, P, START, 2.0, "columns"),
        ["engine is 'columns'; allowed are 'parametric', 'highs'"],
    ),
    "a limit as text": (
        lambda: op.solve(MODEL, cost_limit="2"),
        ["cost_limit is '2'", "1 finite number"],
    ),
    "a time limit as text": (
        lambda: op.solve(MODEL, "highs", time_limit="soon"),
        ["time_limit is 'soon'", "it must be a number"],
    ),
    "a time limit of nothing": (
        lambda: op.solve(MODEL, time_limit=0),
        ["time_limit is 0; it must be above 0"],
    ),
    "a constraint that does not exist": (
        lambda: op.solve_least_cost(MODEL, 1),
        ["constraint is 1; it must be 0"],
    ),
    "a fractional constraint": (
        lambda: op.solve_least_cost(MODEL, 0.5),
        ["constraint is 0.5, of type float; it must be a whole number"],
    ),
    "a limit of a frontier as text": (
        lambda: op.frontier(MODEL).value_at("2"),
        ["limit is '2'", "it must be a number"],
    ),
    "a model for a path": (lambda: op.CMDP.load(MODEL), ["path is a CMDP", "a text or a pathlib.Path"]),
    "a number for a path": (
        lambda: MODEL.save(3),
        ["path is 3, of type int", "a text or a pathlib.Path"],
    ),
    "a negative seed": (
        lambda: op.sample(MODEL, UNIFORM, 3, seed=-1),
        ["seed is -1; it must lie in [0, "],
    ),
    "one policy for several": (
        lambda: op.mix_policies(3, [1.0], P, START),
        ["policies", "int", "several in a list"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_in_the_callers_words(mistake):
    refused_in_one_sentence(*MISTAKES[mistake])


def test_an_equality_is_worded_as_one():
    # "It must lie in [1, 1]" was the message.
    learner = op.OptPessPrimalDual(
        shape=MODEL.shape, initial=START, margin=op.SafetyMargin(1.0, 0.5), num_episodes=3
    )
    with pytest.raises(op.InvalidInputError, match=r"it must be \d") as caught:
        op._core.baseline_values(MODEL, learner._inner)  # simulate has words of its own
    assert "lie in" not in str(caught.value)


def test_a_missing_library_is_refused_with_a_command_that_works():
    with pytest.raises(ImportError, match=r"a figure needs nothing_such: pip install .*\[plot\]"):
        optional_module("nothing_such", "plot", "a figure")
