"""What several tests of environments share."""

import gymnasium as gym
import numpy as np
import optpess as op


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


class Track:
    """Three states; action 1 goes on faster, earns more, costs more and may end the episode.

    With ``form`` it answers as Gymnasium ("gymnasium"), as Safety-Gymnasium ("safety") or as a plain
    object ("plain"). States and actions are numbered from ``first_state`` and ``first_action``.
    """

    def __init__(self, form="plain", *, first_state=0, first_action=0, costs=1, ends=True, spaces=False):
        self._form, self._first, self._first_action = form, first_state, first_action
        self._costs, self._ends = costs, ends
        self.num_states, self.num_actions = 3, 2
        self.played = []  # (state, action, reward, costs, ended) of the last episode
        if spaces:
            self.observation_space = gym.spaces.Discrete(3, start=first_state)
            self.action_space = gym.spaces.Discrete(2, start=first_action)

    def reset(self, *, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.state, self.played = int(self.random.integers(2)), []
        answer = self.state + self._first
        return answer if self._form == "plain" else (answer, {})

    def step(self, action):
        fast, before = action - self._first_action, self.state
        assert fast in (0, 1)
        self.state = (self.state + fast + int(self.random.random() < 0.5)) % 3
        reward = 0.25 + 0.5 * fast * float(self.random.random() < 0.75)
        costs = [float(fast and self.random.random() < 0.5), 0.125 * before][: self._costs]
        ended = bool(self._ends and fast and self.random.random() < 0.2)
        self.played.append((before, fast, reward, costs, ended))
        state = self.state + self._first
        cost = costs[0] if self._costs == 1 else costs
        if self._form == "plain":
            return state, reward, cost, ended
        if self._form == "safety":
            return state, reward, cost, ended, False, {}
        info = {"cost": cost} if self._costs == 1 else {"costs": cost}
        return state, reward, ended, False, info


def learner_for(env, horizon=4, *, kind=op.OptPessMix, limits=(1.5, 2.5), end=True, **changes):
    """A learner for a track, with one limit or as many as its ``_costs``."""
    shape = op.environments.sizes(env, horizon)
    if not end:
        shape = (horizon, shape.num_states - 1, shape.num_actions)
    slow = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=2)
    count = getattr(env, "_costs", 1)
    safe = (0.0, 0.25 * horizon - 1e-9)[:count]
    margin = (
        op.SafetyMargin(list(limits[:count]), list(safe))
        if count > 1
        else op.SafetyMargin(limits[0], 0.0)
    )
    arguments = {"shape": shape, "initial": [0.5, 0.5] + [0.0] * (shape[1] - 2)}
    if kind in (op.OptPessMix, op.OptPessLP, op.SOPS, op.AlwaysBaseline):
        arguments["baseline"] = op.SafeBaseline(slow, margin)
    else:
        arguments["margin"] = margin
    if kind is not op.OptPessMix:
        arguments["num_episodes"] = 1000
    return kind(**arguments | changes)
