"""Models from tables: known rows, expectations, the absorbing end, units, refusals, real episodes.

In the statistical tests all compared quantities are frequencies. The difference of two frequencies over
N and M episodes has a variance proxy of (1/N + 1/M)/4.
"""

import math

import gymnasium as gym
import numpy as np
import optpess as op
import pytest
from support.healthy import refused

from .cases import Tabular, chain, cliff, free, holes, newest

FALSE_ALARM = 1e-6  # for all comparisons of a test together


def imported(env, cost=free, **arguments):
    return op.environments.from_gymnasium(
        env, **{"cost": cost, "horizon": 5, "cost_limit": 1.0} | arguments
    )


def without_rewards(name, **arguments):
    """A real environment whose tables have no rewards, so that its model needs no units."""
    env = gym.make(name, **arguments)
    for actions in env.unwrapped.P.values():
        for action, outcomes in actions.items():
            actions[action] = [(p, int(state), 0.0, end) for p, state, _, end in outcomes]
    return env


# Rows, rewards and costs


def test_outcomes_with_the_same_next_state_are_added_up_and_terminated_leads_to_the_last_state():
    model = imported(chain(), lambda s, a, n, r, t: 0.5 if n == 1 else 0.0)
    rows = model.transitions.to_array()
    np.testing.assert_array_equal(rows[0, 1], [0.25, 0.75, 0.0, 0.0])
    np.testing.assert_array_equal(rows[1, 1], [0.0, 0.25, 0.0, 0.75])
    np.testing.assert_array_equal(rows[2:, :, 3], 1.0)
    np.testing.assert_array_equal(model.rewards[0], [[0, 0], [0, 0.75], [0, 0], [0, 0]])
    np.testing.assert_array_equal(model.costs[0, 0], [[0, 0.375], [0.5, 0.125], [0, 0], [0, 0]])
    np.testing.assert_array_equal(model.initial, [1, 0, 0, 0])


@pytest.mark.parametrize("name", ["FrozenLake-v1", "FrozenLake8x8-v1"])
def test_the_shape_is_that_of_sizes_and_terminal_states_cost_nothing(name):
    env = gym.make(name)
    model = imported(env, lambda *_: 1.0, horizon=9)
    assert model.shape == op.environments.sizes(env, 9)
    letters = env.unwrapped.desc.ravel()
    ends = np.flatnonzero((letters == b"H") | (letters == b"G"))
    np.testing.assert_array_equal(model.costs[0, 0, ends], 0.0)
    np.testing.assert_array_equal(model.costs[0, 0, -1], 0.0)
    np.testing.assert_array_equal(np.delete(model.costs[0, 0], [*ends, len(letters)], axis=0), 1.0)
    rows = model.transitions.to_array()
    np.testing.assert_array_equal(rows[..., ends], 0.0)  # an episode is never in them
    np.testing.assert_array_equal(rows[-1, :, -1], 1.0)


def test_the_goal_of_the_cliff_is_never_left_although_its_table_says_so():
    env = without_rewards(newest("CliffWalking"))
    assert not env.unwrapped.P[47][0][0][3]  # up from the goal, not terminated
    model = imported(env, lambda *_: 1.0)
    assert model.transitions.to_array()[47, :, -1].tolist() == [1.0] * 4
    np.testing.assert_array_equal(model.costs[0, 0, 47], 0.0)
    np.testing.assert_array_equal(model.costs[0, 0, 37:47], 0.0)  # nobody is ever on the cliff
    np.testing.assert_array_equal(model.costs[0, 0, :37], 1.0)


def test_the_taxi_is_sparse_and_its_ended_rides_cost_nothing():
    model = imported(without_rewards(newest("Taxi")), lambda *_: 1.0)
    assert model.shape == (5, 501, 6)
    assert model.transitions.is_sparse
    charged = model.costs[0, 0].any(axis=1)
    # 25 places, 4 destinations, the passenger at one of 4 places or on board; not at the destination.
    assert charged.sum() == 25 * 4 * (3 + 1)


def test_a_first_state_that_is_terminal_costs_nothing():
    initial = np.full(16, 1 / 16)
    model = imported(gym.make("FrozenLake-v1"), lambda *_: 1.0, initial=initial)
    np.testing.assert_array_equal(model.costs[0, 0, [5, 7, 11, 12, 15, 16]], 0.0)
    np.testing.assert_array_equal(model.initial, [*initial, 0.0])


def test_states_and_actions_keep_their_own_numbers_in_the_cost_function():
    tables = {
        7: {3: [(1.0, 8, 1.0, False)], 4: [(1.0, 7, 0.0, False)]},
        8: {3: [(1.0, 8, 0.0, True)], 4: [(1.0, 7, 0.0, True)]},
    }
    called = []

    def cost(*arguments):
        called.append(arguments)
        return 0.0

    model = imported(Tabular(tables, first_state=7, first_action=3), cost)
    assert model.shape == (5, 3, 2)
    assert called[:2] == [(7, 3, 8, 1.0, False), (7, 4, 7, 0.0, False)]
    assert [type(each) for each in called[0]] == [int, int, int, float, bool]


def test_several_cost_functions_make_several_constraints():
    env = gym.make("FrozenLake-v1")
    model = imported(env, [holes, lambda *_: 0.25], cost_limit=[0.5, 1.0])
    np.testing.assert_array_equal(model.costs[0], imported(env, holes).costs[0])
    assert model.costs[1, 0, 0, 0] == 0.25
    np.testing.assert_array_equal(model.cost_limits, [0.5, 1.0])


def test_the_noise_is_deterministic_where_nothing_depends_on_the_next_state():
    assert imported(gym.make("FrozenLake-v1", is_slippery=False), holes).noise == op.Deterministic()
    assert imported(gym.make("FrozenLake-v1"), holes).noise == op.Bernoulli()
    noise = op.Gaussian(0.1)
    assert imported(gym.make("FrozenLake-v1"), holes, noise=noise).noise == noise


def test_the_best_policy_of_the_lake_that_does_not_slip_reaches_the_goal_safely():
    model = imported(gym.make("FrozenLake-v1", is_slippery=False), holes, horizon=6, cost_limit=0.1)
    plan = op.solve(model)
    assert plan.value == pytest.approx(1.0)
    assert plan.costs[0] == pytest.approx(0.0, abs=1e-12)
    shorter = imported(gym.make("FrozenLake-v1", is_slippery=False), holes, cost_limit=0.1)
    assert op.solve(shorter).value == pytest.approx(0.0, abs=1e-12)  # the way has six steps


# Units and masks


def test_the_rewards_of_the_cliff_are_in_their_own_units():
    env = gym.make(newest("CliffWalking"))
    model = imported(env, cliff, horizon=20, cost_limit=0.5)
    assert model.units.reward_range == (-100.0, 0.0)
    assert model.noise == op.Deterministic()
    plan = op.solve(model)
    assert plan.value == pytest.approx(-13.0)  # up, eleven to the right, down
    assert plan.costs[0] == pytest.approx(0.0, abs=1e-9)


def test_the_rewards_of_the_taxi_are_in_their_own_units():
    model = imported(gym.make(newest("Taxi")), lambda s, a, n, r, t: float(r == -10), horizon=20)
    assert model.units.reward_range == (-10.0, 20.0)
    assert 0.0 < op.solve(model).value < 20.0


def test_costs_may_have_their_own_range():
    model = imported(gym.make("FrozenLake-v1"), lambda *_: 3.0, cost_range=(0, 4), cost_limit=16.0)
    assert model.units.cost_ranges == ((0.0, 4.0),)
    assert op.solve(model).costs[0] <= 15.0 + 1e-9


def test_actions_that_a_table_leaves_out_do_not_exist():
    tables = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 1, 1.0, False)]}}
    model = imported(Tabular(tables, 2))
    np.testing.assert_array_equal(model.actions, [[True, False], [True, True], [True, True]])


# Refusals


@pytest.mark.parametrize("name", ["CartPole-v1", "Blackjack-v1"])
def test_an_environment_without_tables_is_refused_in_one_sentence(name):
    with refused(None, "has no tables env.unwrapped.P", "op.rollout"):
        imported(gym.make(name))


def test_a_wrapper_that_changes_the_states_is_refused():
    spaces = gym.spaces.Discrete(4)
    env = gym.wrappers.TransformObservation(gym.make("FrozenLake-v1"), lambda state: state // 4, spaces)
    with refused(None, "wrappers of env", "env.unwrapped"):
        imported(env)
    imported(env.unwrapped)


def test_a_fickle_passenger_is_refused():
    with refused(None, "fickle", "op.rollout"):
        imported(gym.make(newest("Taxi"), fickle_passenger=True))


def test_a_cost_function_that_raises_is_refused_with_its_place():
    def cost(state, action, next_state, reward, terminated):
        return [][state]

    with refused(
        None, "cost(state=0, action=0, next_state=0) raised IndexError", "terminated"
    ) as caught:
        imported(chain(), cost)
    assert isinstance(caught.value.__cause__, IndexError)
    with refused(None, "raised TypeError", "(state, action, next_state, reward, terminated)"):
        imported(chain(), lambda state, action: 0.0)


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        (None, ("returned None", "must return a number")),
        ("0.5", ("returned '0.5'", "must return a number")),
        (-1.0, ("returned -1", "[0, 1]", "cost_range")),
        (1.5, ("returned 1.5", "[0, 1]")),
        (float("nan"), ("returned nan", "[0, 1]")),
    ],
)
def test_a_cost_that_cannot_be_is_refused_with_its_place(answer, pieces):
    place = "cost(state=1, action=1, next_state=2)"
    with refused(None, place, *pieces):
        imported(chain(), lambda s, a, n, r, t: answer if t else 0.0)
    with refused(None, place.replace("cost", "cost[1]"), *pieces):
        imported(chain(), [free, lambda s, a, n, r, t: answer if t else 0.0], cost_limit=[1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        ({"cost": 0.5}, ("cost is 0.5", "function of (state, action")),
        ({"cost": [free, None]}, ("cost[1] is None",)),
        ({"cost": []}, ("cost is empty",)),
        ({"horizon": 0}, ("horizon is 0",)),
        ({"horizon": 2.5}, ("horizon is 2.5",)),
        ({"initial": [1.0]}, ("initial has shape (1,)", "3 states")),
        ({"reward_range": (1, 2)}, ("reward_range is (1, 2)", "contain 0")),
        ({"reward_range": (2, 1)}, ("reward_range is (2.0, 1.0)",)),
        ({"cost_range": (0.5, 1)}, ("cost_range is (0.5, 1)", "contain 0")),
        ({"cost_range": [(0, 1), (0, 1)]}, ("cost_range has 2 ranges",)),
    ],
)
def test_an_argument_that_cannot_be_is_refused(arguments, pieces):
    with refused(None, *pieces):
        imported(chain(), **arguments)


@pytest.mark.parametrize("reward_range", [(0, 0.5), (-5, 0.5)])
def test_a_reward_outside_of_the_range_is_refused(reward_range):
    with refused(None, "reward", "0.5"):
        imported(chain(), reward_range=reward_range)


def test_an_unknown_first_state_is_refused():
    env = chain()
    del env.initial_state_distrib
    with refused(None, "initial is None", "initial_state_distrib", "3 states"):
        imported(env)
    np.testing.assert_array_equal(imported(env, initial=[0, 1, 0]).initial, [0, 1, 0, 0])


@pytest.mark.parametrize(
    ("row", "pieces"),
    [
        ([(0.5, 0, 0.0, False)], ("P[1][1] sums to 0.5", "sum to 1")),
        ([(1.5, 0, 0.0, False)], ("P[1][1] holds the probability 1.5", "[0, 1]")),
        ([(1.0, 3, 0.0, False)], ("P[1][1] leads to the state 3", "3 states")),
        ([(1.0, 0, 0.0)], ("P[1][1] holds (1.0, 0, 0.0)", "(probability, next_state, reward,")),
        (7, ("P[1][1] is not there",)),
    ],
)
def test_a_broken_table_is_refused_with_its_place(row, pieces):
    env = chain()
    env.P[1][1] = row
    with refused(None, *pieces):
        imported(env)


def test_a_table_without_a_state_is_refused():
    env = chain()
    del env.P[2]
    with refused(None, "P[2][0] is not there"):
        imported(env)


# Real episodes


def played(env, policy, episodes, cost, seed):
    """States, rewards and costs ``[N, H]`` of the real environment; it ends in state S."""
    horizon, num_states, _ = policy.shape
    states = np.full((episodes, horizon), num_states - 1)
    rewards, costs = np.zeros((2, episodes, horizon))
    thresholds = policy.cumsum(axis=2)
    generator, core = np.random.default_rng(seed), env.unwrapped
    core.reset(seed=seed)
    for episode in range(episodes):
        state, _ = core.reset()
        for step in range(horizon):
            states[episode, step] = state
            action = min(int(thresholds[step, state].searchsorted(generator.random(), "right")), 3)
            following, reward, terminated, _, _ = core.step(action)
            rewards[episode, step] = reward
            costs[episode, step] = cost(state, action, following, reward, terminated)
            if terminated:
                break
            state = following
    return states, rewards, costs


def assert_same_frequencies(model, real, sampled):
    """Compares how often each state is met at each step, and how often each step costs or earns."""
    num_comparisons = model.shape.horizon * (model.shape.num_states + 2)
    counts = len(real[0]), len(sampled[0])
    proxy = sum(1 / count for count in counts) / 4
    allowed = math.sqrt(2 * proxy * math.log(2 * num_comparisons / FALSE_ALARM))
    assert allowed < 0.035  # the deviation that is detected
    for state in range(model.shape.num_states):
        found = [(each[0] == state).mean(axis=0) for each in (real, sampled)]
        assert np.abs(found[0] - found[1]).max() <= allowed, state
    for place in (1, 2):
        found = [(each[place] != 0).mean(axis=0) for each in (real, sampled)]
        assert np.abs(found[0] - found[1]).max() <= allowed, place


def random_policy(shape, seed):
    return np.random.default_rng(seed).dirichlet(np.full(shape[2], 0.5), size=tuple(shape[:2]))


def agrees_with_its_model(env, cost, horizon, seed, **arguments):
    model = imported(env, cost, horizon=horizon, **arguments)
    policy = random_policy(model.shape, seed)
    real = played(env, policy, 10_000, cost, seed)
    states, _, rewards, costs = op.sample(model, policy, 100_000, seed=seed)
    assert_same_frequencies(model, real, (states, rewards, costs[:, 0]))


def test_the_imported_lake_is_the_real_one():
    agrees_with_its_model(gym.make("FrozenLake-v1"), holes, horizon=20, seed=31)


def test_the_imported_cliff_is_the_real_one():
    def climbs(state, action, next_state, reward, terminated):
        return float(next_state < state)

    env = without_rewards(newest("CliffWalking"), is_slippery=True)
    agrees_with_its_model(env, climbs, horizon=15, seed=32)


@pytest.mark.parametrize("is_slippery", [False, True])
def test_the_imported_cliff_has_the_costs_of_the_real_one(is_slippery):
    # Its rewards are -1 or -100; with Bernoulli noise those of the model have the same means only.
    env = gym.make(newest("CliffWalking"), is_slippery=is_slippery)
    model = imported(env, cliff, horizon=15)
    policy = random_policy(model.shape, 33)
    states, rewards, costs = played(env, policy, 10_000, cliff, 33)
    seen, _, _, charged = op.sample(model, policy, 100_000, seed=33)
    nothing = np.zeros((1, 15))
    assert_same_frequencies(model, (states, nothing, costs), (seen, nothing, charged[:, 0]))
    value = op.solve(model, cost_limit=15.0).value
    assert rewards.sum(axis=1).mean() <= value  # no policy earns more than the best one


def test_a_limit_that_the_environment_states_is_used_if_none_is_given():
    told = Tabular({0: {0: [(1.0, 0, 0.5, False)]}}, cost_limit=2.5)
    assert op.environments.from_gymnasium(told, cost=free, horizon=4).cost_limits.tolist() == [2.5]
    given = op.environments.from_gymnasium(told, cost=free, horizon=4, cost_limit=1.5)
    assert given.cost_limits.tolist() == [1.5]
    silent = Tabular({0: {0: [(1.0, 0, 0.5, False)]}})
    with pytest.raises(op.InvalidInputError, match="cost_limit is None, and env states no limit"):
        op.environments.from_gymnasium(silent, cost=free, horizon=4)
