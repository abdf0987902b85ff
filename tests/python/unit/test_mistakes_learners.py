"""Typical mistakes with learners: each is refused in one sentence that names what to change.

To add one, add a row to the table of its group.
"""

import numpy as np
import optpess as op
import pytest
from support.healthy import refused_in_one_sentence

SHAPE, INITIAL = (3, 4, 2), [0.25, 0.25, 0.25, 0.25]
FIRST = np.tile([1.0, 0.0], (3, 4, 1))  # [H, S, A]
MARGIN = op.SafetyMargin(cost_limit=1.0, safe_cost=0.25)
TWO = op.SafetyMargin(cost_limit=[1.0, 2.0], safe_cost=[0.25, 0.5])
BASELINE = op.SafeBaseline(FIRST, MARGIN)
SOUND = {"states": [0, 1, 3], "actions": [0, 0, 0], "rewards": [0.0, 0.5, 1.0], "costs": [0.0, 0.5, 1.0]}

WHOLE = "it must be a whole number"
NUMBER = "it must be a number"
THE_MARGIN = "it must be of type SafetyMargin; op.SafetyMargin(cost_limit=..., safe_cost=...)"
THE_BASELINE = "it must be of type SafeBaseline; op.SafeBaseline(policy, margin)"


def lp(**changes):
    arguments = {"shape": SHAPE, "initial": INITIAL, "baseline": BASELINE, "num_episodes": 10}
    return op.OptPessLP(**arguments | changes)


def always(**changes):
    arguments = {"shape": SHAPE, "initial": INITIAL, "baseline": BASELINE, "num_episodes": 10}
    return op.AlwaysBaseline(**arguments | changes)


def primal_dual(**changes):
    arguments = {"shape": SHAPE, "initial": INITIAL, "margin": MARGIN, "num_episodes": 10}
    return op.OptPessPrimalDual(**arguments | changes)


def mix(**changes):
    arguments = {"shape": SHAPE, "initial": INITIAL, "baseline": BASELINE}
    return op.OptPessMix(**arguments | changes)


def mix_of_two():
    return mix(baseline=op.SafeBaseline(FIRST, TWO))


# What is wrong: (the call, pieces of the message).
MARGINS = {
    "a limit as a text": (lambda: op.SafetyMargin("5", 1.0), ["cost_limit is '5', of type str", NUMBER]),
    "a safe cost as a text": (lambda: op.SafetyMargin(5, "1"), ["safe_cost is '1'", NUMBER]),
    "no safe cost": (lambda: op.SafetyMargin(1.0, None), ["safe_cost is None", NUMBER]),
    "a truth value": (lambda: op.SafetyMargin(True, 0.5), ["cost_limit is True", NUMBER]),
    "two limits, one cost": (
        lambda: op.SafetyMargin([1, 2], 0.5),
        ["cost_limit has 2 entries and safe_cost 1", "one of each for every constraint"],
    ),
    "a text among limits": (
        lambda: op.SafetyMargin([1.0, "2"], [0.5, 0.5]),
        ["cost_limit[1] is '2'", NUMBER],
    ),
    "no limits": (lambda: op.SafetyMargin([], []), ["cost_limit is empty", "one a constraint"]),
    "a table of limits": (lambda: op.SafetyMargin([[1.0]], [[0.5]]), ["cost_limit[0] is [1.0]", NUMBER]),
}
BASELINES = {
    "margin and policy swapped": (
        lambda: op.SafeBaseline(MARGIN, FIRST),
        ["policy has shape []", "[H, S, A]", "the policy comes first, then the margin"],
    ),
    "a number as the margin": (
        lambda: op.SafeBaseline(FIRST, 0.5),
        ["margin is 0.5, of type float", THE_MARGIN],
    ),
    "numbers as the margin": (
        lambda: op.SafeBaseline(FIRST, (1.0, 0.25)),
        ["margin is 1.0, of type float", THE_MARGIN],
    ),
    "no margin": (lambda: op.SafeBaseline(FIRST, None), ["needs a margin", "SafeBaseline.estimated"]),
    "no margins": (lambda: op.SafeBaseline(FIRST, []), ["margin is empty", "at least one margin"]),
    "action numbers [H, S]": (
        lambda: op.SafeBaseline(np.zeros((3, 4), int), MARGIN),
        ["policy has shape [3, 4]", "[H, S, A]", "policy_from_actions"],
    ),
    "action numbers [S]": (
        lambda: op.SafeBaseline([0, 1, 0, 0], MARGIN),
        ["policy has shape [4]", "policy_from_actions"],
    ),
    "rows of different lengths": (
        lambda: op.SafeBaseline([[1.0, 0.0], [1.0]], MARGIN),
        ["policy cannot be made an array"],
    ),
    "a limit to estimate as a text": (
        lambda: op.SafeBaseline.estimated(FIRST, "1.0"),
        ["cost_limit is '1.0'", NUMBER],
    ),
    "a margin as the limit": (
        lambda: op.SafeBaseline.estimated(FIRST, MARGIN),
        ["cost_limit is a SafetyMargin", NUMBER],
    ),
    "a number as the radius": (
        lambda: op.SafeBaseline.estimated(FIRST, 1.0, radius=0.1),
        ["radius is 0.1", "SubGaussianRadius() or PaperRadius()"],
    ),
    "a class as the radius": (
        lambda: op.SafeBaseline.estimated(FIRST, 1.0, radius=op.PaperRadius),
        ["radius is <class", "PaperRadius()"],
    ),
}
ARGUMENTS = {
    "a number as the baseline": (
        lambda: lp(baseline=0.5),
        ["baseline is 0.5, of type float", THE_BASELINE],
    ),
    "a policy as the baseline": (
        lambda: lp(baseline=FIRST),
        ["baseline is an ndarray", THE_BASELINE],
    ),
    "a margin as the baseline": (
        lambda: mix(baseline=MARGIN),
        ["baseline is a SafetyMargin", THE_BASELINE],
    ),
    "a number as the margin": (
        lambda: primal_dual(margin=0.5),
        ["margin is 0.5, of type float", THE_MARGIN],
    ),
    "numbers as the margin": (
        lambda: primal_dual(margin=(1.0, 0.25)),
        ["margin is (1.0, 0.25), of type tuple", THE_MARGIN],
    ),
    "a baseline as the margin": (
        lambda: primal_dual(margin=BASELINE),
        ["margin is a SafeBaseline", THE_MARGIN],
    ),
    "two limits where one is taken": (
        lambda: primal_dual(margin=TWO),
        ["margin has 2 limits", "takes one", "OptPessMix"],
    ),
    "a baseline of two limits where one is taken": (
        lambda: lp(baseline=op.SafeBaseline(FIRST, TWO)),
        ["baseline has 2 limits", "takes one", "OptPessMix"],
    ),
    "a baseline of another shape": (
        lambda: lp(shape=(3, 4, 3)),
        ["baseline has shape (3, 4, 2)", "the learner's is (3, 4, 3)"],
    ),
    "a number as the rule": (
        lambda: lp(confidence=0.1),
        ["confidence is 0.1", "no rule of OptPess-LP", "Theorem()", "Scaled(factor)", "Sharp()"],
    ),
    "a class as the rule": (
        lambda: primal_dual(confidence=op.Theorem),
        ["confidence is <class", "Theorem()"],
    ),
    "a rule without a proof": (
        lambda: primal_dual(confidence=op.Sharp()),
        ["confidence is Sharp()", "no proof for OptPess-PrimalDual"],
    ),
    "a factor as a text": (
        lambda: lp(confidence=op.Scaled("0.1")),
        ["factor is '0.1', of type str", NUMBER],
    ),
    "a truth value as knowledge": (
        lambda: mix(knowledge=True),
        ["knowledge is True, of type bool", "of type Knowledge; op.Knowledge(stationary=True)"],
    ),
    "a dictionary as knowledge": (
        lambda: mix(knowledge={"stationary": True}),
        ["knowledge is {'stationary': True}", "of type Knowledge"],
    ),
    "a text as a truth value of knowledge": (
        lambda: mix(knowledge=op.Knowledge(stationary="no")),
        ["stationary is 'no', of type str", "True or False"],
    ),
    "a table as the first of knowledge": (
        lambda: mix(knowledge=op.Knowledge(np.zeros((4, 2)))),
        ["stationary is an ndarray", "True or False"],
    ),
    "a number as exploration": (
        lambda: mix(exploration=0.2),
        ["exploration is 0.2, of type float", "of type Exploration; op.Exploration()"],
    ),
    "a share as a text": (
        lambda: mix(exploration=op.Exploration(share="0.2")),
        ["share is '0.2', of type str", NUMBER],
    ),
    "a model as the shape": (
        lambda: lp(shape=op.zoo.pair()),
        ["shape is a CMDP", "three whole numbers (H, S, A), as in model.shape"],
    ),
    "a shape of one number": (lambda: lp(shape=5), ["shape is 5", "three whole numbers (H, S, A)"]),
    "a shape of two numbers": (
        lambda: primal_dual(shape=(2, 3)),
        ["shape is (2, 3)", "three whole numbers (H, S, A)"],
    ),
    "a fraction in the shape": (
        lambda: mix(shape=(2, 3, 1.5)),
        ["shape: num_actions is 1.5, of type float", WHOLE],
    ),
    "a negative size": (lambda: primal_dual(shape=(2, -3, 2)), ["shape: num_states is -3"]),
    "a probability as a text": (
        lambda: lp(failure_probability="0.1"),
        ["failure_probability is '0.1', of type str", NUMBER],
    ),
    "no probability": (lambda: mix(failure_probability=None), ["failure_probability is None", NUMBER]),
    "a percentage": (
        lambda: primal_dual(failure_probability=5),
        ["failure_probability is 5", "[1e-200, 1)"],
    ),
    "a letter as the seed": (lambda: lp(seed="a"), ["seed is 'a', of type str", WHOLE]),
    "a fraction as the seed": (lambda: mix(seed=1.5), ["seed is 1.5, of type float", WHOLE]),
    "no seed": (lambda: primal_dual(seed=None), ["seed is None", WHOLE]),
    "a negative seed": (lambda: always(seed=-1), ["seed is -1", "[0, 2^64)"]),
    "a seed of 2^64": (lambda: lp(seed=2**64), ["seed is 18446744073709551616", "[0, 2^64)"]),
    "a word as the number of episodes": (
        lambda: lp(num_episodes="ten"),
        ["num_episodes is 'ten', of type str", WHOLE],
    ),
    "episodes as a float": (
        lambda: primal_dual(num_episodes=1e3),
        ["num_episodes is 1000.0, of type float", WHOLE],
    ),
    "no number of episodes": (lambda: always(num_episodes=None), ["num_episodes is None", WHOLE]),
    "a truth value as episodes": (lambda: lp(num_episodes=True), ["num_episodes is True", WHOLE]),
    "a text as a truth value": (
        lambda: lp(bounded_observations="no"),
        ["bounded_observations is 'no', of type str", "True or False"],
    ),
    "a variance as a text": (
        lambda: mix(variance_proxy="0.5"),
        ["variance_proxy is '0.5', of type str", NUMBER],
    ),
    "an engine that is nearly one": (
        lambda: lp(engine="high"),
        ["engine is 'high'", "'parametric', 'highs'", "did you mean 'highs'?"],
    ),
    "one number as a range": (lambda: lp(reward_range=5), ["reward_range is 5", "(low, high)"]),
    "texts as a range": (
        lambda: lp(cost_range=("0", "1")),
        ["cost_range is ('0', '1')", "two numbers (low, high)"],
    ),
    "a word as the start": (lambda: lp(initial="uniform"), ["initial holds elements of type", "str"]),
    "a first state that is not there": (lambda: lp(initial=9), ["initial is 9", "must lie in [0, "]),
    "a limit above all sums": (
        lambda: lp(baseline=op.SafeBaseline(FIRST, op.SafetyMargin(7.0, 1.0))),
        ["cost_limit is 7", "(0, 3]"],
    ),
    "certify with another learner": (
        lambda: op.certify(FIRST, lp()),
        ["learner is an OptPessLP", "must be of type OptPessMix"],
    ),
    "certify with swapped arguments": (
        lambda: op.certify(mix(), FIRST),
        ["learner is an ndarray", "the order is certify(policy, learner)"],
    ),
}
FILES = {
    "a number as a path": (lambda: op.load_learner(5), ["path is 5, of type int", "pathlib.Path"]),
    "no path": (lambda: op.load_learner(None), ["path is None", "pathlib.Path"]),
    "a learner as a path": (lambda: op.load_learner(lp()), ["path is an OptPessLP", "pathlib.Path"]),
    "a number as a path to write": (lambda: lp().save(5), ["path is 5, of type int", "pathlib.Path"]),
}
TABLE = {
    f"{group}: {name}": row
    for group, rows in (
        ("margin", MARGINS),
        ("baseline", BASELINES),
        ("argument", ARGUMENTS),
        ("file", FILES),
    )
    for name, row in rows.items()
}


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_is_refused_in_one_sentence(mistake):
    call, pieces = TABLE[mistake]
    refused_in_one_sentence(call, pieces)


def test_there_are_many_mistakes():
    assert len(TABLE) + len(OBSERVED) + len(ASKED) >= 80


def test_a_folder_and_a_missing_file_are_the_file_systems_errors(tmp_path):
    with pytest.raises(IsADirectoryError):
        op.load_learner(tmp_path)
    with pytest.raises(FileNotFoundError):
        op.load_learner(tmp_path / "nothing")


# What is observed: (a way to make the learner, what is changed in a sound episode, pieces).
OBSERVED = {
    "too few states": (lp, {"states": [0, 1]}, ["states has shape [2]", "[3]"]),
    "too many states": (lp, {"states": [0, 1, 2, 3, 3]}, ["states has shape [5]", "[3]"]),
    "too few actions": (lp, {"actions": [0]}, ["actions has shape [1]", "[3]"]),
    "a state after the last action": (lp, {"actions": [0] * 4}, ["actions has shape [4]", "[3]"]),
    "too few rewards": (lp, {"rewards": [0.5]}, ["rewards has shape [1]", "[3]"]),
    "too many costs": (lp, {"costs": [0.0] * 5}, ["costs has shape [5]", "[3]"]),
    "the sum of the rewards": (lp, {"rewards": 1.5}, ["rewards has shape []", "[H]"]),
    "states and actions swapped": (
        lp,
        {"states": [0, 0, 0], "actions": [0, 1, 3]},
        ["actions[2] is 3", "[0, 1]"],
    ),
    "states and rewards swapped": (
        lp,
        {"states": [0.0, 0.5, 1.0], "rewards": [0, 1, 3]},
        ["states holds elements of type float64", "integers"],
    ),
    "a table of one cost": (lp, {"costs": [[0.0, 0.5, 1.0]]}, ["costs has shape [1, 3]", "[H]"]),
    "one cost of two": (mix_of_two, {}, ["costs has shape [3]", "[M, H]"]),
    "costs transposed": (
        mix_of_two,
        {"costs": np.zeros((3, 2))},
        ["costs has shape [3, 2]", "shape [2, 3] (axes [M, H])"],
    ),
    "no costs": (lp, {"costs": None}, ["costs holds elements of type object (NoneType)"]),
    "rewards as a text": (lp, {"rewards": "low"}, ["rewards holds elements of type", "str"]),
    "a policy as actions": (lp, {"actions": FIRST[:, 0]}, ["actions", "[3, 2]"]),
    "rewards in other units": (lp, {"rewards": [0.0, 50.0, 0.0]}, ["rewards[1] is 50", "reward_range"]),
    "costs that are gains": (lp, {"costs": [0.0, -3.0, 0.0]}, ["costs[1] is -3", "cost_range"]),
    "actions of another policy": (
        lp,
        {"actions": [0, 1, 0]},
        ["actions[1] is 1", "state 1 at step 1 with probability 0", "the deployed policy"],
    ),
}


@pytest.mark.parametrize("mistake", OBSERVED)
def test_a_mistake_in_an_episode_is_refused_and_changes_nothing(mistake):
    make, changes, pieces = OBSERVED[mistake]
    learner = make()
    deployment = learner.next_policy()
    actions = [deployment.action(step, state) for step, state in enumerate(SOUND["states"])]
    before = learner._inner.to_bytes()
    refused_in_one_sentence(lambda: learner.observe(**SOUND | {"actions": actions} | changes), pieces)
    assert learner._inner.to_bytes() == before


# Where an action is asked for: (step, state, pieces).
ASKED = {
    "a step as a float": (0.0, 0, ["step", "float", "a whole number"]),
    "a step before the first": (-1, 0, ["step is -1", "[0, 2]"]),
    "a step after the last": (3, 0, ["step is 3", "[0, 2]"]),
    "a state as a float": (0, 1.5, ["state", "float", "a whole number"]),
    "a negative state": (0, -1, ["state is -1", "[0, 3]"]),
    "a state that does not exist": (0, 4, ["state is 4", "[0, 3]"]),
    "a state as a text": (0, "1", ["state", "str", "a whole number"]),
    "no state": (0, None, ["state", "NoneType", "a whole number"]),
    "an array of states": (0, np.array([1, 2]), ["state", "ndarray", "a whole number"]),
}


@pytest.mark.parametrize("mistake", ASKED)
def test_a_place_that_does_not_exist_has_no_action(mistake):
    step, state, pieces = ASKED[mistake]
    deployment = lp().next_policy()
    refused_in_one_sentence(lambda: deployment.action(step, state), pieces)
