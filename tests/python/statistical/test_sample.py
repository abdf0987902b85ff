"""Sampled episodes against exact evaluation, with fixed seeds.

An observed sum over an episode of H steps has a variance proxy of at most H^2/4 (its mean moves
within [0, H]) plus H/2 (each observation's noise has at most 1/2). A mean of N such sums leaves its
expectation by more than sqrt(2 (H^2/4 + H/2) log(2/p) / N) with probability at most p.
"""

import math

import numpy as np
import optpess as op
import pytest
from support import healthy

EPISODES = 100_000
FALSE_ALARM = 1e-6  # for all comparisons of a test together
NOISES = [op.Bernoulli(), op.Deterministic(), op.Gaussian(math.sqrt(0.5)), op.Uniform(1.2)]


def radius(proxy, comparisons):
    return math.sqrt(2 * proxy * math.log(2 * comparisons / FALSE_ALARM) / EPISODES)


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_average_returns_agree_with_exact_values(noise, rows):
    # Detects a discrepancy of 0.037 in a value between 0 and 3; at twice that size, with a
    # probability of at least 1 - 1e-6.
    costs = np.stack([healthy.COSTS, 1 - healthy.REWARDS])
    kernel = healthy.TRANSITIONS if rows == "dense" else healthy.sparse()
    changes = {"transitions": kernel, "costs": costs, "cost_limit": [1.0, 2.0]}
    model = healthy.model(**changes, noise=noise)
    _, _, rewards, observed = op.sample(model, healthy.POLICY, EPISODES, seed=20)
    allowed = radius(healthy.H**2 / 4 + healthy.H / 2, comparisons=3)
    assert allowed < 0.037
    rest = (model.transitions, model.initial)
    value = op.evaluate(healthy.POLICY, model.rewards, *rest)
    assert abs(rewards.sum(axis=1).mean() - value) <= allowed
    for constraint in range(2):
        value = op.evaluate(healthy.POLICY, model.costs[constraint], *rest)
        assert abs(observed[:, constraint].sum(axis=1).mean() - value) <= allowed


def test_frequencies_of_states_and_actions_agree_with_the_occupancy():
    # Detects a discrepancy of 0.0097 in a probability; an indicator has a variance proxy of 1/4.
    model = healthy.model()
    states, actions, *_ = op.sample(model, healthy.POLICY, EPISODES, seed=21)
    visits = op.occupancy(healthy.POLICY, model.transitions, model.initial)
    allowed = radius(1 / 4, comparisons=visits.size)
    assert allowed < 0.0097
    for (step, state, action), expected in np.ndenumerate(visits):
        met = (states[:, step] == state) & (actions[:, step] == action)
        assert abs(met.mean() - expected) <= allowed


def test_what_is_certain_happens_every_time():
    model = healthy.model(noise=op.Deterministic())
    states, actions, rewards, costs = op.sample(model, healthy.POLICY, 1000, seed=22)
    steps = np.arange(healthy.H)
    # Exact: without noise an observation is its mean.
    np.testing.assert_array_equal(rewards, model.rewards[steps, states, actions])
    np.testing.assert_array_equal(costs[:, 0], model.costs[0, steps, states, actions])
    assert np.all(healthy.POLICY[steps, states, actions] > 0)
    moves = healthy.TRANSITIONS[steps[:-1], states[:, :-1], actions[:, :-1], states[:, 1:]]
    assert np.all(moves > 0)


def test_the_same_seed_and_replicate_give_the_same_episodes():
    model = healthy.model()
    first = op.sample(model, healthy.POLICY, 50, seed=7, replicate=3)
    again = op.sample(model, healthy.POLICY, 50, seed=7, replicate=3)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("other", [{"seed": 8, "replicate": 3}, {"seed": 7, "replicate": 4}])
def test_another_seed_or_replicate_gives_other_episodes(other):
    model = healthy.model()
    states, *_ = op.sample(model, healthy.POLICY, 200, seed=7, replicate=3)
    others, *_ = op.sample(model, healthy.POLICY, 200, **other)
    assert not np.array_equal(states, others)


def test_another_noise_does_not_reshuffle_the_states():
    states, *_ = op.sample(healthy.model(), healthy.POLICY, 50, seed=7)
    others, *_ = op.sample(healthy.model(noise=op.Gaussian(0.1)), healthy.POLICY, 50, seed=7)
    np.testing.assert_array_equal(states, others)
