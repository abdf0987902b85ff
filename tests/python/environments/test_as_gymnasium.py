"""Environments that sample models: Gymnasium's own checks, statistics, noise, ends, units."""

import copy
import math
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import optpess as op
import pytest
from gymnasium.utils.env_checker import check_env
from optpess.environments import protocol
from support import healthy
from support.healthy import refused

from .cases import chain, free

EPISODES = 5_000
FALSE_ALARM = 1e-6  # for all comparisons of a test together
NOISES = [op.Bernoulli(), op.Deterministic(), op.Gaussian(math.sqrt(0.5)), op.Uniform(1.2)]


def made(**changes):
    return op.environments.as_gymnasium(healthy.model(**changes))


def play(env, policy, episodes, seed):
    """States [N, H], actions [N, H], rewards [N, H] and costs [N, H, M] of an environment."""
    generator = np.random.default_rng(seed)
    thresholds = policy.cumsum(axis=2)
    horizon, _, num_actions = policy.shape
    env.reset(seed=seed)
    records = []
    for _ in range(episodes):
        state, truncated = env.reset()[0], False
        for step in range(horizon):
            assert not truncated
            drawn = int(thresholds[step, state].searchsorted(generator.random(), "right"))
            action = min(drawn, num_actions - 1)
            following, reward, terminated, truncated, info = env.step(action)
            assert not terminated
            records.append((state, action, reward, np.atleast_1d(info.get("cost", info.get("costs")))))
            state = following
        assert truncated
    columns = [np.array(column).reshape(episodes, horizon, -1) for column in zip(*records, strict=True)]
    return *(column[..., 0] for column in columns[:3]), columns[3]


# Gymnasium's own checks


@pytest.mark.parametrize("name", [name for name in op.zoo.names() if not name.startswith("lower_bound")])
def test_the_checker_of_gymnasium_has_nothing_to_say(name):
    # Warnings are errors. The checker refuses any environment of one step, as the lower bounds are.
    check_env(op.environments.as_gymnasium(op.zoo.problem(name).model))


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_checker_of_gymnasium_accepts_every_noise(noise):
    check_env(made(noise=noise))


def test_the_spaces_and_the_limit_are_found_through_wrappers():
    env = gym.wrappers.TimeLimit(made(), 99)
    assert protocol.describe(env).cost_limit == 1.0
    assert op.environments.sizes(env, healthy.H) == (healthy.H, healthy.S + 1, healthy.A)
    costs = np.stack([healthy.COSTS, healthy.COSTS])
    assert made(costs=costs, cost_limit=[1.0, 2.0]).unwrapped.cost_limit == [1.0, 2.0]


# Statistics


@pytest.mark.parametrize("rows", ["dense", "sparse", "stationary"])
def test_frequencies_of_states_and_actions_agree_with_the_occupancy(rows):
    # Detects a discrepancy of 0.044 in a probability; an indicator has a variance proxy of 1/4.
    if rows == "stationary":
        model = healthy.stationary()
    else:
        model = healthy.model(transitions=healthy.TRANSITIONS if rows == "dense" else healthy.sparse())
    env = op.environments.as_gymnasium(model)
    states, actions, *_ = play(env, healthy.POLICY, EPISODES, seed=5)
    visits = op.occupancy(healthy.POLICY, model.transitions, model.initial)
    allowed = math.sqrt(math.log(2 * visits.size / FALSE_ALARM) / 2 / EPISODES)
    assert allowed < 0.044
    for (step, state, action), expected in np.ndenumerate(visits):
        met = (states[:, step] == state) & (actions[:, step] == action)
        assert abs(met.mean() - expected) <= allowed


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_average_returns_agree_with_exact_values(noise):
    # Detects a discrepancy of 0.17 in a value between 0 and H = 3; see statistical/test_sample.py.
    costs = np.stack([healthy.COSTS, 1 - healthy.REWARDS])
    model = healthy.model(costs=costs, cost_limit=[1.0, 2.0], noise=noise)
    env = op.environments.as_gymnasium(model)
    _, _, rewards, observed = play(env, healthy.POLICY, EPISODES, seed=6)
    proxy = healthy.H**2 / 4 + healthy.H / 2
    allowed = math.sqrt(2 * proxy * math.log(2 * 3 / FALSE_ALARM) / EPISODES)
    assert allowed < 0.17
    rest = (model.transitions, model.initial)
    value = op.evaluate(healthy.POLICY, model.rewards, *rest)
    assert abs(rewards.sum(axis=1).mean() - value) <= allowed
    for m in range(2):
        value = op.evaluate(healthy.POLICY, model.costs[m], *rest)
        assert abs(observed[:, :, m].sum(axis=1).mean() - value) <= allowed


@pytest.mark.parametrize(
    ("noise", "deviation"),
    [(op.Deterministic(), 0.0), (op.Gaussian(0.3), 0.3), (op.Uniform(0.6), 0.6 / math.sqrt(3))],
)
def test_observations_spread_around_their_means_as_the_noise_says(noise, deviation):
    # 15,000 squared deviations; their average is within 10 % of its mean with probability 1 - 1e-12.
    model = healthy.model(noise=noise)
    states, actions, rewards, costs = play(made(noise=noise), healthy.POLICY, EPISODES, seed=7)
    steps = np.arange(healthy.H)
    for seen, mean in ((rewards, model.rewards), (costs[..., 0], model.costs[0])):
        spread = seen - mean[steps, states, actions]
        assert np.sqrt((spread**2).mean()) == pytest.approx(deviation, rel=0.05, abs=1e-15)
    if isinstance(noise, op.Uniform):
        assert np.abs(spread).max() <= 0.6


def test_bernoulli_observations_are_zero_or_one():
    _, _, rewards, costs = play(made(), healthy.POLICY, 50, seed=8)
    assert set(np.unique(rewards)) == set(np.unique(costs)) == {0.0, 1.0}


def test_an_imported_chain_ends_in_its_last_state():
    arguments = {"cost": free, "horizon": 4, "cost_limit": 1.0}
    model = op.environments.from_gymnasium(chain(), **arguments)
    policy = np.zeros(model.shape)
    policy[..., 1] = 1.0
    states, _, rewards, _ = play(op.environments.as_gymnasium(model), policy, 200, seed=9)
    ended = states == 3
    assert ended.any()
    assert (np.diff(ended.astype(int), axis=1) >= 0).all()  # it is never left
    np.testing.assert_array_equal(rewards[ended], 0.0)


# Episodes


def test_the_same_seed_gives_the_same_episodes():
    first, again = (play(made(), healthy.POLICY, 20, seed=3) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], play(made(), healthy.POLICY, 20, seed=4)[0])


def test_a_copy_goes_on_as_the_original():
    env = made()
    env.reset(seed=1)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = [env.step(1) for _ in range(healthy.H)]
    for twin in twins:
        assert [twin.step(1) for _ in range(healthy.H)] == expected


def test_the_last_transition_of_a_model_that_changes_is_not_read():
    # The slice of the last step may hold anything, here nothing at all.
    kernel = healthy.TRANSITIONS.copy()
    kernel[-1] = 0.0
    env = made(transitions=kernel)
    env.reset(seed=2)
    for _ in range(healthy.H - 1):
        state = env.step(0)[0]
    assert env.step(0)[0] == state


def test_a_model_of_one_step_can_be_played():
    env = op.environments.as_gymnasium(op.zoo.lower_bound_b())
    assert env.reset(seed=0) == (0, {})
    state, _, terminated, truncated, _ = env.step(2)
    assert (state, terminated, truncated) == (0, False, True)


def test_a_step_without_reset_is_refused():
    env = made()
    with pytest.raises(gym.error.ResetNeeded, match="3 steps"):
        env.step(0)
    env.reset(seed=0)
    for _ in range(healthy.H):
        env.step(0)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("action", [-1, healthy.A, 7])
def test_an_action_that_does_not_exist_is_refused_and_changes_nothing(action):
    env, other = made(), made()
    for each in (env, other):
        each.reset(seed=0)
    with refused(None, f"action is {action}", f"[0, {healthy.A - 1}]"):
        env.step(action)
    assert env.step(1) == other.step(1)


def test_sparse_models_stay_sparse():
    # Dense rows of this model would take 20 GB.
    model = op.zoo.garnet(50_000, 1, 3, successors=2, seed=1)
    env = op.environments.as_gymnasium(model)
    env.reset(seed=1)
    assert env.step(0)[0] in range(50_000)


def test_what_is_no_model_is_refused():
    with refused(None, "model is 3", "CMDP"):
        op.environments.as_gymnasium(3)


# Units and masks


def test_rewards_costs_and_limits_are_in_the_units_of_the_model():
    model = op.CMDP.stationary(
        [[[1.0]]], [[-30.0]], [[2.0]], 7.0, [1.0], horizon=4,
        reward_range=(-100, 0), cost_range=(0, 4), noise=op.Deterministic(),
    )  # fmt: skip
    env = op.environments.as_gymnasium(model)
    assert env.cost_limit == 7.0
    env.reset(seed=0)
    _, reward, _, _, info = env.step(0)
    assert (reward, info["cost"]) == (pytest.approx(-30.0), pytest.approx(2.0))
    check_env(env)


def test_the_mask_of_actions_is_in_info():
    mask = np.array([[True, False], [True, True]])
    half = np.full((2, 2, 2), 0.5)
    ones = np.ones((2, 2))
    model = op.CMDP.stationary(half, ones, ones, 3.0, [1.0, 0.0], horizon=4, actions=mask)
    env = op.environments.as_gymnasium(model)
    state, info = env.reset(seed=0)
    for _ in range(3):
        np.testing.assert_array_equal(info["action_mask"], mask[state])
        assert env.action_space.sample(mask=info["action_mask"]) in (0, 1)
        state, _, _, _, info = env.step(0)
    check_env(env)


# Without Gymnasium


def test_only_as_gymnasium_needs_gymnasium():
    program = """
import sys
sys.modules["gymnasium"] = None  # an import of it fails
import optpess as op

class Walk:
    num_states, num_actions = 2, 1
    P = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 1.0, True)]}}
    def reset(self): return 0
    def step(self, action): return 1, 0.0, 0.0, True

assert op.environments.sizes(Walk(), 3) == (3, 3, 1)
arguments = {"cost": lambda *_: 0.0, "horizon": 3, "cost_limit": 1.0, "initial": [1, 0]}
model = op.environments.from_gymnasium(Walk(), **arguments)
try:
    op.environments.as_gymnasium(model)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "as_gymnasium needs gymnasium: pip install gymnasium" in done.stdout


def test_importing_the_package_does_not_import_gymnasium():
    program = "import sys, optpess; print('gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
