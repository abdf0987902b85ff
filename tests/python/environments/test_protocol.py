"""How environments are read: sizes, limits, and the answers of `reset` and `step`."""

import gymnasium as gym
import numpy as np
import optpess as op
import pytest
from gymnasium import spaces
from optpess.environments import protocol
from support.healthy import refused


class Plain:
    """An own simulator: five states, two actions, no Gymnasium."""

    num_states = 5
    num_actions = 2

    def reset(self):
        return 0

    def step(self, action):
        return 1, 0.5, 0.25, False


class Spaces(gym.Env):
    """A Gymnasium environment with the given spaces."""

    def __init__(self, states=None, actions=None, **attributes):
        self.observation_space = states or spaces.Discrete(5)
        self.action_space = actions or spaces.Discrete(2)
        self.__dict__.update(attributes)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}


FACTS = protocol.describe(Plain())


# Sizes


def test_the_shape_of_a_plain_simulator_has_one_state_more():
    assert op.environments.sizes(Plain(), 7) == op.Shape(7, 6, 2)


@pytest.mark.parametrize("max_episode_steps", [-1, 30])
def test_the_shape_of_a_gymnasium_environment_does_not_depend_on_wrappers(max_episode_steps):
    env = gym.make("FrozenLake-v1", max_episode_steps=max_episode_steps)
    for each in (env, env.unwrapped, gym.wrappers.RecordEpisodeStatistics(env)):
        assert op.environments.sizes(each, horizon=20) == op.Shape(20, 17, 4)


def test_a_wrapper_that_changes_the_space_is_believed():
    env = gym.wrappers.TransformObservation(Spaces(), lambda state: state // 2, spaces.Discrete(3))
    assert op.environments.sizes(env, 4).num_states == 4


def test_states_and_actions_may_start_at_another_number():
    facts = protocol.describe(Spaces(spaces.Discrete(4, start=10), spaces.Discrete(3, start=-1)))
    assert (facts.num_states, facts.first_state_number) == (4, 10)
    assert (facts.num_actions, facts.first_action_number) == (3, -1)
    assert protocol.state_of_reset((13, {}), facts) == 3
    answer = (np.int64(10), 0.0, False, False, {"cost": 0.0})
    assert protocol.reader_of(answer, facts)(answer)[0] == 0
    with refused(None, "the state 9", "4 states, 10 to 13"):
        protocol.state_of_reset(9, facts)


@pytest.mark.parametrize(
    ("space", "name"),
    [
        (spaces.Box(0.0, 1.0, (2,)), "Box"),
        (spaces.MultiDiscrete([2, 3]), "MultiDiscrete"),
        (spaces.MultiBinary(3), "MultiBinary"),
        (spaces.Tuple([spaces.Discrete(2)]), "Tuple"),
    ],
)
def test_spaces_that_are_not_a_list_are_refused_with_the_remedy(space, name):
    with refused(None, f"env.observation_space is a {name}", "gymnasium.ObservationWrapper", "bins"):
        op.environments.sizes(Spaces(states=space), 5)
    with refused(None, f"env.action_space is a {name}", "gymnasium.ActionWrapper"):
        op.environments.sizes(Spaces(actions=space), 5)


def test_an_object_without_sizes_is_refused_with_what_is_looked_for():
    class Bare:
        reset = step = Plain.reset

    with refused(None, "Bare", "observation_space", "num_states"):
        op.environments.sizes(Bare(), 5)
    with refused(None, "int, has no method reset and no method step"):
        op.environments.sizes(3, 5)
    with refused(None, "class Plain", "call it"):
        op.environments.sizes(Plain, 5)


@pytest.mark.parametrize("horizon", [0, -3, 2.5, "7", None])
def test_a_horizon_that_is_no_number_of_steps_is_refused(horizon):
    with refused(None, "horizon is"):
        op.environments.sizes(Plain(), horizon)


# Other facts


@pytest.mark.parametrize(("limit", "read"), [(None, None), (2, 2.0), ([1, 0.5], (1.0, 0.5))])
def test_the_limit_is_that_of_the_environment_inside_the_wrappers(limit, read):
    env = gym.wrappers.TimeLimit(Spaces(cost_limit=limit), 10)
    assert protocol.describe(env).cost_limit == read


def test_a_limit_that_is_no_number_is_refused():
    with refused(None, "cost_limit is 'low'"):
        protocol.describe(Spaces(cost_limit="low"))


def test_whether_reset_takes_a_seed_is_read_from_its_signature():
    class Seeded(Plain):
        def reset(self, seed=None):
            return 0

    class Unseeded(Spaces):
        def reset(self):
            return 0, {}

    assert protocol.describe(Seeded()).accepts_seed
    assert protocol.describe(Spaces()).accepts_seed
    assert not protocol.describe(Plain()).accepts_seed
    # The wrapper takes a seed and hands it to a method that does not.
    assert not protocol.describe(gym.wrappers.TimeLimit(Unseeded(), 3)).accepts_seed


def test_the_time_limit_is_that_of_gymnasium():
    assert protocol.describe(gym.make("FrozenLake-v1")).time_limit == 100
    assert protocol.describe(gym.make("FrozenLake-v1", max_episode_steps=-1)).time_limit is None
    assert protocol.describe(Plain()).time_limit is None


# Answers


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ((1, 0.5, False, False, {"cost": 0.25}), (1, 0.5, 0.25, False, False)),
        ((1, 0.5, False, True, {"costs": [0.25]}), (1, 0.5, 0.25, False, True)),
        ((1, 0.5, False, False, {"costs": [1, 1], "cost": 0.25}), (1, 0.5, 0.25, False, False)),
        ((1, 0.5, 0.25, False, True, {}), (1, 0.5, 0.25, False, True)),
        ((1, 0.5, [0.25], False, False, {}), (1, 0.5, 0.25, False, False)),
        ((1, 0.5, 0.25, False), (1, 0.5, 0.25, False, False)),
        ([1, 0.5, np.float32(0.25), np.False_], (1, 0.5, 0.25, False, False)),
    ],
)
def test_every_form_of_an_answer_is_read(answer, read):
    assert protocol.reader_of(answer, FACTS)(answer) == read


@pytest.mark.parametrize("state", [1, None, -1, 99, np.zeros(2)])
def test_the_state_of_a_terminated_episode_is_the_absorbing_end_whatever_is_returned(state):
    for answer in (
        (state, 0.5, True, False, {"cost": 0.25}),
        (state, 0.5, 0.25, True, False, {}),
        (state, 0.5, 0.25, True),
    ):
        assert protocol.reader_of(answer, FACTS)(answer) == (5, 0.5, 0.25, True, False)


@pytest.mark.parametrize(
    "answer",
    [
        (1, 0.5, False, False, {"costs": [0.25, 1.0]}),
        (1, 0.5, False, False, {"costs": [0.25, 1.0], "cost": 1.25}),
        (1, 0.5, False, False, {"cost": [0.25, 1.0]}),
        (1, 0.5, [0.25, 1.0], False, False, {}),
        (1, 0.5, [0.25, 1.0], False),
    ],
)
def test_several_costs_are_read_as_they_are(answer):
    assert protocol.reader_of(answer, FACTS, 2)(answer) == (1, 0.5, [0.25, 1.0], False, False)


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        (3, ("returned 3", "must return")),
        ((1, 0.5, True, {}), ("Gym before 0.26",)),
        ((1, 0.5, True, False, {}), ("no cost", "info holds nothing", "dropped")),
        ((1, 0.5, True, False, {"c": 1}), ("no cost", "info holds 'c'")),
        ((1, 0.5, True, False, 0.25), ("5 values, the last 0.25", "must return")),
        ((), ("0 values",)),
        ((1, "a", True, False, {"cost": 0}), ("the reward 'a'", "number")),
        ((1, 0.5, True, False, {"cost": "a"}), ("the cost 'a'", "number")),
        ((1, 0.5, True, False, {"cost": [0.1, None]}), ("the cost [1] None", "number")),
        ((1, 0.5, True, False, {"cost": [0.1, 0.2]}), ("2 costs", "1 limit")),
        ((5, 0.5, 0.0, False), ("the state 5", "0 to 4")),
        ((-1, 0.5, 0.0, False), ("the state -1",)),
        ((np.zeros(3), 0.5, 0.0, False), ("array of shape (3,)", "integer", "number the states")),
        ((1.0, 0.5, 0.0, False), ("the state 1.0", "integer")),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_with_the_likely_cause(answer, pieces):
    with refused(None, *pieces):
        protocol.reader_of(answer, FACTS)


def test_the_number_of_costs_must_be_that_of_the_limits():
    with refused(None, "1 cost a step", "2 limits"):
        protocol.reader_of((1, 0.5, 0.25, False), FACTS, 2)


@pytest.mark.parametrize(
    ("later", "pieces"),
    [
        ((1, 0.5, False, False, {}), ("no cost",)),
        ((1, 0.5, False, False, {"costs": [0.0]}), ("another form",)),
        ((1, 0.5, 0.0, False), ("another form",)),
        ((1, 0.5, False, {}), ("Gym before 0.26",)),
        (None, ("returned None",)),
        ((5, 0.5, False, False, {"cost": 0}), ("the state 5",)),
        ((float("nan"), 0.5, False, False, {"cost": 0}), ("the state nan",)),
        ((None, 0.5, False, False, {"cost": 0}), ("the state None", "integer")),
        ((np.zeros(2), 0.5, False, False, {"cost": 0}), ("array of shape (2,)",)),
    ],
)
def test_a_later_answer_of_another_form_is_refused(later, pieces):
    read = protocol.reader_of((1, 0.5, False, False, {"cost": 0.0}), FACTS)
    with refused(None, *pieces):
        read(later)


@pytest.mark.parametrize(
    ("first", "later"),
    [((1, 0.5, 0.0, False), (1, 0.5, 0.0)), ((1, 0.5, 0.0, False, False, {}), (1, 0.5, 0.0, False))],
)
def test_forms_without_info_are_guarded_too(first, later):
    read = protocol.reader_of(first, FACTS)
    with refused(None, "env.step returned"):
        read(later)
    with refused(None, "the state 5"):
        read((5, *first[1:]))


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        ((0, 1), ("2 values", "(state, info)")),
        ((0, {}, {}), ("3 values", "(state, info)")),
        ((9, {}), ("env.reset returned the state 9",)),
        ("a", ("env.reset returned the state 'a'", "integer")),
        (None, ("env.reset returned the state None",)),
    ],
)
def test_a_first_state_that_cannot_be_read_is_refused(answer, pieces):
    with refused(None, *pieces):
        protocol.state_of_reset(answer, FACTS)


def test_an_action_mask_is_one_number_for_each_action():
    assert protocol.action_mask_in({}, FACTS) is None
    assert protocol.action_mask_in({"action_mask": np.array([1, 0], np.int8)}, FACTS).tolist() == [
        True,
        False,
    ]
    for wrong in ([1], [1, 2], [[1, 0]]):
        with refused(None, "info['action_mask']", "2 actions"):
            protocol.action_mask_in({"action_mask": wrong}, FACTS)
