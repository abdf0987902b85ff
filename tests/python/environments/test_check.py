"""The checker: one broken environment for each finding, and healthy ones without a finding."""

import pickle

import gymnasium as gym
import numpy as np
import optpess as op
import pytest
from support.healthy import refused

from .cases import holes, newest


class Healthy(gym.Env):
    """A walk on six places that ends at either side. The tests change one thing of it."""

    observation_space = gym.spaces.Discrete(6)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 2, 0
        return self.place, {}

    def step(self, action):
        self.time += 1
        slips = self.np_random.random() < 0.1
        self.place += 1 if (action == 1) != slips else -1
        terminated = self.place in (0, 5)
        cost = float(self.place == 0)
        return self.place, float(self.place == 5), terminated, False, {"cost": cost}


def found(env, severity, *pieces, count=1, **arguments):
    """The report of an environment, which must hold this finding and no other."""
    report = op.environments.check(env, **{"horizon": 40} | arguments)
    assert [each.severity for each in report.findings] == [severity] * count, str(report)
    for piece in pieces:
        assert piece in str(report)
    assert report.is_sound == (severity == "advice")
    return report


# Nothing to find


class Lake(gym.Wrapper):
    def step(self, action):
        state = self.unwrapped.s
        following, reward, terminated, truncated, info = super().step(action)
        cost = holes(state, action, following, reward, terminated)
        return following, reward, terminated, truncated, info | {"cost": cost}


@pytest.mark.parametrize(
    ("env", "arguments"),
    [
        (Healthy(), {"horizon": 40}),
        (Healthy(), {}),
        (Lake(gym.make("FrozenLake-v1")), {"horizon": 40}),
        (op.environments.as_gymnasium(op.zoo.ring()), {"horizon": 6}),
        (
            op.environments.as_gymnasium(op.zoo.inventory_three_limits()),
            {"horizon": 7, "num_constraints": 3},
        ),
    ],
)
def test_a_healthy_environment_has_no_findings(env, arguments):
    report = op.environments.check(env, strict=True, **arguments)
    assert report.findings == ()
    assert report.episodes == 3
    assert "nothing found in 3 episodes" in str(report)


def test_the_forms_without_info_are_healthy_too():
    class Plain:
        num_states, num_actions = 3, 2

        def reset(self, seed=None):
            self.state = 0
            return 0

        def step(self, action):
            self.state = max(self.state + action, 0)
            done = self.state == 3
            return None if done else self.state, 1.0, 0.5, done

    class Six(Plain):
        def step(self, action):
            state, reward, cost, done = super().step(action)
            return state, reward, cost, done, False, {}

    for env in (Plain(), Six()):
        assert op.environments.check(env, horizon=50).findings == ()


def test_actions_are_numbered_as_the_space_says():
    class Offset(Healthy):
        action_space = gym.spaces.Discrete(2, start=5)

        def step(self, action):
            assert action in (5, 6)
            return super().step(action - 5)

    assert op.environments.check(Offset(), horizon=40).findings == ()


# Errors


def test_no_reset_or_step():
    found(object(), "error", "no method reset and no method step")


def test_a_class_and_not_an_environment():
    found(Healthy, "error", "class Healthy", "call it")


def test_spaces_that_are_not_discrete():
    found(gym.make("CartPole-v1"), "error", "observation_space is a Box", "bins")


def test_a_reset_without_a_pair():
    class Broken(Healthy):
        def reset(self, **named):
            return super().reset(**named)[0]

    found(Broken(), "advice", "returned the state alone", "(state, info)")

    class Worse(Healthy):
        def reset(self, **named):
            return *super().reset(**named), "more"

    found(Worse(), "error", "env.reset returned 3 values", "(state, info)")


def test_the_four_values_of_old_gym():
    class Broken(Healthy):
        def step(self, action):
            state, reward, terminated, _, info = super().step(action)
            return state, reward, terminated, info

    found(Broken(), "error", "Gym before 0.26")


@pytest.mark.parametrize(
    ("state", "piece"), [(2.0, "the state 2.0"), (6, "0 to 5"), (-1, "0 to 5"), (np.zeros(2), "(2,)")]
)
def test_a_state_that_is_none_of_the_space(state, piece):
    class Broken(Healthy):
        def step(self, action):
            return state, *super().step(action)[1:]

    found(Broken(), "error", "env.step returned the state", piece)

    class Worse(Healthy):
        def reset(self, **named):
            return state, super().reset(**named)[1]

    found(Worse(), "error", "env.reset returned the state", piece)


def test_no_cost():
    class Broken(Healthy):
        def step(self, action):
            return *super().step(action)[:4], {"safety": 1.0}

    found(Broken(), "error", "no cost", "info holds 'safety'", "wrapper may have dropped it")


def test_a_cost_only_where_it_is_not_zero():
    class Broken(Healthy):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, info if self.time < 2 else {}

    found(Broken(), "error", "no cost", "also when it is 0")


@pytest.mark.parametrize(
    ("cost", "pieces"),
    [
        (-0.5, ("the cost -0.5", "range (0, 1)", "negative reward")),
        (7, ("the cost 7", "scale it", "cost_range=(0, 7)")),
        (float("nan"), ("the cost nan", "division by zero")),
        (float("inf"), ("the cost inf",)),
        ("high", ("the cost 'high'", "number")),
    ],
)
def test_a_cost_that_cannot_be(cost, pieces):
    class Broken(Healthy):
        def step(self, action):
            return *super().step(action)[:4], {"cost": cost}

    found(Broken(), "error", *pieces)


def test_a_cost_outside_of_the_range_of_its_constraint():
    class Broken(Healthy):
        def step(self, action):
            return *super().step(action)[:4], {"costs": [0.5, 3.0]}

    found(Broken(), "error", "the cost [1] 3", num_constraints=2)
    ranges = [(0, 1), (0, 4)]
    assert op.environments.check(Broken(), horizon=40, num_constraints=2, cost_range=ranges).is_sound


@pytest.mark.parametrize(
    ("reward", "pieces"),
    [
        (-1, ("the reward -1", "range (0, 1)", "reward_range=(-1, 0)")),
        (50, ("the reward 50", "reward_range=(0, 50)")),
        (float("nan"), ("the reward nan",)),
        (None, ("the reward None", "number")),
    ],
)
def test_a_reward_that_cannot_be(reward, pieces):
    class Broken(Healthy):
        def step(self, action):
            state, _, *rest = super().step(action)
            return state, reward, *rest

    found(Broken(), "error", *pieces)


def test_numbers_that_become_something_else_later():
    class Broken(Healthy):
        def step(self, action):
            state, reward, *rest = super().step(action)
            return state, reward if self.time < 2 else "none", *rest

    found(Broken(), "error", "the reward 'none'", "at step 1")

    class Worse(Healthy):
        def step(self, action):
            *rest, _ = super().step(action)
            return *rest, {"cost": 0.0 if self.time < 2 else [0.0, 1.0]}

    found(Worse(), "error", "2 costs at step 1")


def test_the_wrong_number_of_costs_or_limits():
    found(Healthy(), "error", "1 cost a step", "2 limits", num_constraints=2)

    class Broken(Healthy):
        cost_limit = (1.0, 2.0)

    found(Broken(), "error", "cost_limit has 2 limits", "num_constraints is 1")


def test_a_time_limit_shorter_than_the_horizon():
    env = Lake(gym.make("FrozenLake-v1", max_episode_steps=1))
    found(env, "error", "truncated after 1 step", "max_episode_steps=-1", "horizon=1")
    env = op.environments.as_gymnasium(op.zoo.ring())
    found(env, "error", "truncated after 6 steps", "time limit of its own", "horizon=6")
    long = Lake(gym.make("FrozenLake-v1", max_episode_steps=40))
    assert op.environments.check(long, horizon=40).findings == ()


def test_code_that_raises():
    class Broken(Healthy):
        def step(self, action):
            raise KeyError("lost")

    found(Broken(), "error", "env.step(", "raised KeyError: 'lost'")

    class Worse(Healthy):
        def reset(self, **named):
            raise OSError("no display")

    found(Worse(), "error", "env.reset(", "raised OSError: no display")


def test_masks_that_contradict_each_other():
    class Masked(Healthy):
        def masked(self, answer, mask):
            return *answer[:-1], answer[-1] | {"action_mask": mask}

        def reset(self, **named):
            return self.masked(super().reset(**named), [1, 1])

    class Sound(Masked):
        def step(self, action):
            return self.masked(super().step(action), [1, 1])

    class Late(Masked):
        """Tells the actions of the state before the step."""

        def step(self, action):
            mask = [0, 1] if self.place == 1 else [1, 1]
            return self.masked(super().step(action), mask)

    class Empty(Masked):
        def step(self, action):
            return self.masked(super().step(action), [0, 0])

    class Long(Masked):
        def step(self, action):
            return self.masked(super().step(action), [1, 1, 1])

    assert op.environments.check(Sound(), horizon=40).findings == ()
    report = op.environments.check(Late(), horizon=40, episodes=50)
    assert "in state 2 was [1, 1] and later [0, 1]" in str(report)
    assert "state before the step" in str(report)
    found(Empty(), "error", "allows no action in state")
    found(Long(), "error", "info['action_mask'] has shape (3,)", "2 actions")


def test_the_actions_are_those_of_the_mask():
    class Masked(Healthy):
        def reset(self, **named):
            state, _ = super().reset(**named)
            return state, {"action_mask": np.array([0, 1], np.int8)}

        def step(self, action):
            assert action == 1
            *rest, info = super().step(action)
            return *rest, info | {"action_mask": np.array([0, 1], np.int8)}

    assert op.environments.check(Masked(), horizon=40, episodes=10).findings == ()


# Advice


def test_an_environment_without_a_seed():
    class Broken(Healthy):
        def reset(self):
            return super().reset()

    found(Broken(), "advice", "takes no argument seed", "stopped and resumed")


def test_a_seed_that_does_nothing():
    class Broken(Healthy):
        generator = np.random.default_rng(5)

        def step(self, action):
            self.np_random = self.generator
            return super().step(action)

    found(Broken(), "advice", "same seed", "other episodes", "stopped and resumed", episodes=10)


def test_a_time_limit_that_is_called_an_end():
    class Broken(Healthy):
        def step(self, action):
            state, *_ = super().step(action)
            return min(max(state, 1), 4), 0.0, self.time == 3, False, {"cost": 0.0}

    found(Broken(), "advice", "terminated after 3 steps", "horizon=3")
    assert op.environments.check(Broken(), horizon=3).findings == ()


def test_an_episode_without_an_end():
    class Broken(Healthy):
        def step(self, action):
            return 2, 0.0, False, False, {"cost": 0.0}

    found(Broken(), "advice", "no end within 1000 steps", horizon=None)


# The report


class Twice(Healthy):
    """Has two faults and one oddity."""

    def reset(self):
        return super().reset()

    def step(self, action):
        state, _, *rest, _ = super().step(action)
        return state, 7.0, *rest, {"cost": -2.0}


def test_a_report_names_every_kind_of_finding_once_with_errors_first():
    report = op.environments.check(Twice(), horizon=40)
    assert [each.severity for each in report.findings] == ["error", "error", "advice"]
    assert len(report.errors) == 2
    lines = str(report).splitlines()
    assert lines[0] == f"Twice: 2 errors in 3 episodes, {report.steps} steps"
    assert [line.strip().partition(":")[0] for line in lines[1:]] == ["error", "error", "advice"]
    assert pickle.loads(pickle.dumps(report)) == report
    assert type(report).__module__ == "optpess.environments"


def test_errors_are_raised_if_one_asks_for_it():
    with refused(None, "Twice: 2 errors", "the reward 7", "the cost -2"):
        op.environments.check(Twice(), horizon=40, strict=True)

    class Odd(Healthy):
        def reset(self):
            return super().reset()

    assert not op.environments.check(Odd(), horizon=40, strict=True).errors


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"episodes": 0}, "episodes is 0"),
        ({"num_constraints": 0}, "num_constraints is 0"),
        ({"reward_range": 1}, "reward_range is 1"),
        ({"cost_range": [(0, 1), (0, 1)]}, "cost_range has 2 ranges"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments, piece):
    with refused(None, piece):
        op.environments.check(Healthy(), **arguments)


def test_a_real_environment_lacks_a_cost_only():
    found(gym.make(newest("CliffWalking")), "error", "no cost", "info holds 'prob'")
