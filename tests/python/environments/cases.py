"""What several tests of environments share."""

import gymnasium as gym


def newest(name):
    """The id of the newest version of an environment; versions differ between releases of Gymnasium."""
    versions = [int(each.rpartition("-v")[2]) for each in gym.registry if each.startswith(f"{name}-v")]
    return f"{name}-v{max(versions)}"


def holes(state, action, next_state, reward, terminated):
    """Of FrozenLake: 1 for falling into a hole."""
    return float(terminated and reward == 0)


def cliff(state, action, next_state, reward, terminated):
    """Of CliffWalking: 1 for falling off the cliff."""
    return float(reward == -100)


def free(state, action, next_state, reward, terminated):
    return 0.0


class Tabular(gym.Env):
    """A Gymnasium environment made from tables; it starts in its first state."""

    def __init__(self, tables, num_actions=None, *, first_state=0, first_action=0, **attributes):
        num_actions = num_actions or len(next(iter(tables.values())))
        self.P = tables
        self.observation_space = gym.spaces.Discrete(len(tables), start=first_state)
        self.action_space = gym.spaces.Discrete(num_actions, start=first_action)
        self.initial_state_distrib = [1.0] + [0.0] * (len(tables) - 1)
        self.__dict__.update(attributes)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        raise NotImplementedError


def chain(**attributes):
    """Two states and an end: action 0 stays, action 1 goes on with probability 3/4; the end pays 1."""
    stay = {state: [(1.0, state, 0.0, False)] for state in range(2)}
    tables = {
        0: {0: stay[0], 1: [(0.5, 1, 0.0, False), (0.25, 0, 0.0, False), (0.25, 1, 0.0, False)]},
        1: {0: stay[1], 1: [(0.75, 2, 1.0, True), (0.25, 1, 0.0, False)]},
        2: {0: [(1.0, 2, 0.0, True)], 1: [(1.0, 2, 0.0, True)]},
    }
    return Tabular(tables, **attributes)
