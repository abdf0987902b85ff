"""The named problems: their published facts, and their safe policies."""

import copy
import pickle

import numpy as np
import optpess as op
import pytest
from support.healthy import refused

# name: (S, A, H), limit, the best value without the limit
FACTS = {
    "pair": ((2, 2, 2), 0.6, 1.48),
    "ring": ((3, 2, 6), 3.0, 4.0),
    "inventory": ((6, 6, 7), 3.5, 7.0),
    "media": ((10, 2, 10), 5.0, 4.606862),
    "two_bit": ((6, 2, 3), 0.1, 1.0),
    "cliff_grid": ((24, 4, 15), 1.0, 9.444444),
    "job_scheduling": ((10, 2, 10), 6.5, 10.0),
    "paradox": ((2, 2, 10), 5.0, 10.0),
    "lower_bound_a": ((1, 3, 1), 0.5, 1.0),
    "lower_bound_b": ((1, 3, 1), 0.5, 1.0),
    "inventory_stock_out": ((6, 6, 7), [2.5, 0.25], 7.0),
    "inventory_three_limits": ((6, 6, 7), [2.5, 0.25, 0.5], 7.0),
    "cliff_grid_two_hazards": ((24, 4, 15), [1.0, 1.0], 9.444444),
}
SEVERAL = ("inventory_stock_out", "inventory_three_limits", "cliff_grid_two_hazards")
# name: c0, V(pi0)
SAFE = {
    "pair": (0.135, 0.27),
    "ring": (0.6, 0.4),
    "inventory": (0.7, 1.5557105027),
    "media": (1.0, 1.0165112816),
    "two_bit": (0.02, 0.12),
    "cliff_grid": (0.0, 0.0),
    "job_scheduling": (5.500208744850 + 0.2 * (6.5 - 5.500208744850), 8.9426377759),
    "paradox": (1.0, 1.0),
    "lower_bound_a": (0.5 - 1 / 64, 0.5),
    "lower_bound_b": (0.5 - 1 / 1024, 0.0),
    "inventory_stock_out": ([38.2 / 19, 0.0], 7 * 0.7 / 1.65),
    "inventory_three_limits": ([38.2 / 19, 0.0, 0.0], 7 * 0.7 / 1.65),
    "cliff_grid_two_hazards": ([0.0, 0.0], 0.0),
    "garnet": (2.1507162525, 6.4230291680),
}
# (S, A, H): limit, V*, c0, V(pi0) of garnets with 4 successors and seed 1; multiplier, best of all
GARNETS = {
    (20, 4, 10): (2.9417329183, 7.3995500658, 2.1507162525, 6.4230291680, 0.079245, 7.463094),
    (50, 4, 10): (2.9714061803, 7.7098006189, 2.0328296408, 6.4935141524, 0.757425, 8.011751),
    (100, 5, 20): (5.6361691105, 16.5862140064, 3.3670081350, 12.8173650598, 0.613936, 17.405522),
}


def worth(problem):
    """V(pi0) and the costs of pi0."""
    model = problem.model
    value, *costs = (
        op.evaluate(problem.safe_policy, signal, model.transitions, model.initial)
        for signal in (model.rewards, *model.costs)
    )
    return value, costs


@pytest.mark.parametrize("name", FACTS)
def test_a_named_problem_has_its_published_facts(name):
    (num_states, num_actions, horizon), limit, best = FACTS[name]
    model = getattr(op.zoo, name)()
    assert model.shape == (horizon, num_states, num_actions)
    np.testing.assert_array_equal(model.cost_limits, np.atleast_1d(limit))
    _, values = op.backward_induction(model.rewards, model.transitions)
    assert model.initial @ values[0] == pytest.approx(best, abs=5e-7)


def test_the_first_action_of_the_pair_is_its_safe_policy():
    model = op.zoo.pair()
    policy = np.eye(2)[np.zeros((2, 2), int)]
    rest = (model.transitions, model.initial)
    assert op.evaluate(policy, model.costs[0], *rest) == pytest.approx(0.135, rel=1e-14)
    assert op.evaluate(policy, model.rewards, *rest) == pytest.approx(0.27, rel=1e-14)


def test_rewards_and_costs_of_the_inventory_are_scaled_to_a_maximum_of_one():
    model = op.zoo.inventory()
    assert model.rewards.max() == model.costs.max() == 1.0  # exact: a number divided by itself


def test_staying_on_the_ring_is_free():
    model = op.zoo.ring()
    stay = np.eye(2)[np.zeros((6, 3), int)]
    for signal in (model.rewards, model.costs[0]):
        assert op.evaluate(stay, signal, model.transitions, model.initial) == 0.0


def test_every_problem_has_a_name_and_every_name_an_entry_in_these_tables():
    made = set(op.zoo.__all__) - {"Problem", "baseline", "names", "problem"}
    assert set(op.zoo.names()) == made == set(SAFE) == set(FACTS) | {"garnet"}
    assert len(op.zoo.names()) == len(made)


@pytest.mark.parametrize("name", op.zoo.names())
def test_the_rows_of_a_named_problem_are_distributions(name):
    model = op.zoo.problem(name).model
    rows = model.transitions.to_array()
    assert rows.min() >= 0.0
    np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=0, atol=1e-15 * rows.shape[-1])


# Safe policies


@pytest.mark.parametrize("name", op.zoo.names())
def test_a_safe_policy_costs_at_most_what_is_claimed_and_less_than_the_limits(name):
    problem = op.zoo.problem(name)
    _, costs = worth(problem)
    assert problem.name == name
    assert problem.safe_costs.shape == (problem.model.num_constraints,)
    assert (costs <= problem.safe_costs).all()  # exact: the claim is the larger of plan and evaluation
    assert (problem.safe_costs < problem.model.cost_limits).all()
    assert problem.safe_policy.shape == problem.model.shape
    assert problem.safe_policy.min() >= 0.0
    np.testing.assert_allclose(problem.safe_policy.sum(axis=-1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", op.zoo.names())
def test_a_safe_policy_has_its_published_value_and_cost(name):
    problem = op.zoo.problem(name)
    value, costs = worth(problem)
    claimed, expected = SAFE[name]
    assert value == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(problem.safe_costs, np.atleast_1d(claimed), rtol=0, atol=1e-10)
    np.testing.assert_allclose(costs, problem.safe_costs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["ring", "inventory", "media", "two_bit", "paradox"])
def test_the_safe_cost_of_a_published_problem_is_a_fifth_of_its_limit(name):
    problem = op.zoo.problem(name)
    np.testing.assert_array_equal(problem.safe_costs, problem.model.cost_limits / 5)  # exact by intent


@pytest.mark.parametrize("sizes", GARNETS)
def test_a_garnet_has_the_published_limit_optimum_and_safe_policy(sizes):
    num_states, num_actions, horizon = sizes
    problem = op.zoo.problem(
        "garnet", num_states=num_states, num_actions=num_actions, horizon=horizon, successors=4, seed=1
    )
    value, _ = worth(problem)
    plan, best = op.solve(problem.model), op.solve_unconstrained(problem.model).value
    found = (problem.model.cost_limits[0], plan.value, problem.safe_costs[0], value)
    assert found == pytest.approx(GARNETS[sizes][:4], abs=1e-9)
    assert (plan.multipliers[0], best) == pytest.approx(GARNETS[sizes][4:], abs=5e-7)


def test_arguments_of_a_problem_go_to_its_model():
    problem = op.zoo.problem(
        "garnet", num_states=6, num_actions=2, horizon=3, successors=2, cost_limit=1.5
    )
    np.testing.assert_array_equal(problem.model.cost_limits, [1.5])
    assert problem.model.shape == (3, 6, 2)
    swapped = op.zoo.problem("lower_bound_b", swapped=True)
    np.testing.assert_array_equal(swapped.model.costs, op.zoo.lower_bound_b(swapped=True).costs)
    with pytest.raises(TypeError, match="colour"):
        op.zoo.problem("ring", colour=1)


@pytest.mark.parametrize(
    ("name", "nearest"), [("cliff", "cliff_grid"), ("Ring", "ring"), ("twobit", "two_bit")]
)
def test_an_unknown_name_is_refused_with_a_suggestion(name, nearest):
    for make in (op.zoo.problem, op.zoo.baseline):
        with refused(None, f"name is {name!r}", *op.zoo.names(), f"did you mean {nearest!r}?"):
            make(name)


# Baselines


@pytest.mark.parametrize("name", op.zoo.names())
def test_every_problem_has_a_baseline_that_learners_take(name):
    problem, baseline = op.zoo.problem(name), op.zoo.baseline(name)
    np.testing.assert_array_equal(baseline.policy, problem.safe_policy)
    np.testing.assert_array_equal(baseline.cost_limits, problem.model.cost_limits)
    np.testing.assert_array_equal(baseline.safe_costs, problem.safe_costs)
    learner = op.OptPessMix(
        shape=problem.model.shape, initial=problem.model.initial, baseline=problem.baseline
    )
    assert learner.next_policy().episode == 0


def test_a_baseline_has_one_margin_or_one_for_each_limit():
    assert op.zoo.baseline("ring").margin == op.SafetyMargin(cost_limit=3.0, safe_cost=0.6)
    several = op.zoo.baseline("inventory_three_limits").margin
    assert [margin.cost_limit for margin in several] == [2.5, 0.25, 0.5]


def test_arguments_of_a_baseline_go_to_its_problem():
    baseline = op.zoo.baseline("garnet", num_states=6, num_actions=2, horizon=3, successors=2)
    assert baseline.policy.shape == (3, 6, 2)


@pytest.mark.parametrize("name", op.zoo.names())
def test_a_problem_is_shown_on_one_line_without_arrays(name):
    shown = repr(op.zoo.problem(name))
    assert shown.startswith(f"Problem({name!r}, horizon=")
    assert "array" not in shown
    assert len(shown) < 160
    assert "\n" not in shown


def test_a_problem_cannot_be_changed_and_survives_pickling():
    problem = op.zoo.problem("ring")
    for array in (problem.safe_policy, problem.safe_costs):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(AttributeError):
        problem.name = "other"
    assert type(problem).__module__ == "optpess.zoo"
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        np.testing.assert_array_equal(twin.safe_policy, problem.safe_policy)
        np.testing.assert_array_equal(twin.model.rewards, problem.model.rewards)


@pytest.mark.parametrize("name", [name for name in SAFE if name not in ("garnet", *SEVERAL)])
def test_playing_the_safe_policy_never_violates_and_has_the_known_regret(name):
    problem = op.zoo.problem(name)
    margin = op.SafetyMargin(problem.model.cost_limits[0], problem.safe_costs[0])
    learner = op.AlwaysBaseline(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=op.SafeBaseline(problem.safe_policy, margin),
        num_episodes=20,
    )
    run = op.simulate(problem.model, learner, progress=False, threads=1)
    value, _ = worth(problem)
    assert run.violating_episodes.sum() == 0
    assert run.reward_regret[0, -1] == pytest.approx(
        20 * (op.solve(problem.model).value - value), abs=1e-9
    )


# What single problems are made of


def test_the_cost_of_a_job_is_one_minus_half_of_the_jobs_done():
    model = op.zoo.job_scheduling()
    jobs = np.arange(10)
    done = jobs[:, np.newaxis] - model.transitions.to_array() @ jobs  # [S, A]
    for step in range(10):
        np.testing.assert_allclose(model.costs[0, step], 1 - done / 2, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(model.rewards[:, 4, 0], 1.0)
    np.testing.assert_array_equal(model.rewards[:, 4, 1], [0.8] * 2 + [0.1] * 4 + [0.8] * 4)


def test_the_cliff_grid_charges_for_the_cell_an_action_aims_at():
    model = op.zoo.cliff_grid()
    costs, rows = model.costs[0, 0], model.transitions.to_array()
    start, goal = 18, 23
    np.testing.assert_array_equal(costs[start], [0.0, 1.0, 0.0, 0.0])  # right leads along the cliff
    np.testing.assert_array_equal(rows[start, 1, [start, start + 1]], [0.1, 0.9])
    np.testing.assert_array_equal(rows[start, 3, start], 1.0)  # off the edge
    np.testing.assert_allclose(costs[19], [4 / 9, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(costs[:6, 0], 0.0)  # along the top
    np.testing.assert_array_equal(rows[goal, :, goal], 1.0)
    np.testing.assert_array_equal(costs[goal], 0.0)
    np.testing.assert_array_equal(np.nonzero(model.rewards[0].any(axis=1))[0], [goal])
    assert op.solve_unconstrained(model).costs[0] == pytest.approx(4.444444, abs=5e-7)


def test_the_two_hazards_of_the_grid_charge_for_the_same_cells():
    model, grid = op.zoo.cliff_grid_two_hazards(), op.zoo.cliff_grid()
    cliff, rocks = model.costs[:, 0]
    np.testing.assert_array_equal(cliff, grid.costs[0, 0])
    charged = (cliff > 0) | (rocks > 0)
    np.testing.assert_allclose((np.sqrt(cliff) + np.sqrt(rocks))[charged], 1.0)
    assert charged[:, 1].sum() == 4 * 4  # moves to the right into columns 1 to 4


def test_the_further_costs_of_the_inventory_say_when_the_shelf_is_empty_or_crowded():
    model, plain = op.zoo.inventory_three_limits(), op.zoo.inventory()
    np.testing.assert_array_equal(model.costs[0], plain.costs[0])
    np.testing.assert_array_equal(np.argwhere(model.costs[1, 0]), [[0, 0]])
    after = np.add.outer(np.arange(6), np.arange(6))
    np.testing.assert_array_equal(model.costs[2, 0], np.where(after >= 4, 1.0, 0.0))
    np.testing.assert_array_equal(model.costs[:2], op.zoo.inventory_stock_out().costs)


def test_reward_and_cost_of_the_paradox_are_the_same():
    model = op.zoo.paradox()
    np.testing.assert_array_equal(model.rewards, model.costs[0])


def test_the_lower_bound_pairs_have_their_published_means():
    same = {"margin": 1 / 64, "best_margin": 1 / 16}
    first = op.zoo.lower_bound_a(num_episodes=100, **same)
    shifted = op.zoo.lower_bound_a(num_episodes=100, shifted=True, **same)
    np.testing.assert_array_equal(first.rewards, [[[0.5, 1.0, 0.5]]])
    np.testing.assert_array_equal(first.costs, [[[[0.484375, 0.5, 0.4375]]]])
    np.testing.assert_allclose(shifted.costs - first.costs, [[[[0.0, 1 / 80, 0.0]]]], atol=1e-16)
    plain, swapped = op.zoo.lower_bound_b(**same), op.zoo.lower_bound_b(swapped=True, **same)
    np.testing.assert_array_equal(plain.rewards, [[[0.0, 1.0, 1.0]]])
    np.testing.assert_array_equal(plain.costs, [[[[0.484375, 0.4375, 0.625]]]])
    np.testing.assert_array_equal(swapped.costs, plain.costs[..., [0, 2, 1]])


@pytest.mark.parametrize(
    ("make", "arguments", "named"),
    [
        ("lower_bound_a", {"num_episodes": 0}, "num_episodes is 0"),
        ("lower_bound_a", {"best_margin": 0.2}, "best_margin is 0.2"),
        ("lower_bound_a", {"margin": 0.1, "best_margin": 0.05}, "margin is 0.1"),
        ("lower_bound_a", {"margin": 0.0}, "margin is 0.0"),
        ("lower_bound_a", {"margin": float("nan")}, "margin is nan"),
        ("lower_bound_b", {"best_margin": 0.3}, "best_margin is 0.3"),
        ("lower_bound_b", {"margin": 0.03, "best_margin": 0.1}, "margin is 0.03"),
    ],
)
def test_a_lower_bound_pair_refuses_margins_outside_its_theorem(make, arguments, named):
    with refused(None, named):
        getattr(op.zoo, make)(**arguments)


def test_a_garnet_has_the_successors_that_were_asked_for():
    model = op.zoo.garnet(20, 3, 5, successors=4, seed=1)
    assert model.shape == (5, 20, 3)
    assert model.transitions.is_sparse
    rows = model.transitions.to_array().reshape(-1, 20)
    np.testing.assert_array_equal((rows > 0).sum(axis=1), 4)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.cost_limits, [5 / 3])


def test_a_garnet_may_have_every_state_as_successor():
    assert op.zoo.garnet(4, 2, 2, successors=4, seed=1).transitions.to_array().min() > 0


def test_a_garnet_depends_on_its_seed_alone():
    same = [op.zoo.garnet(6, 2, 3, successors=2, seed=5, cost_limit=1.0) for _ in range(2)]
    other = op.zoo.garnet(6, 2, 3, successors=2, seed=6, cost_limit=1.0)
    np.testing.assert_array_equal(same[0].transitions.to_array(), same[1].transitions.to_array())
    assert not np.array_equal(same[0].rewards, other.rewards)
    np.testing.assert_array_equal(other.cost_limits, [1.0])


@pytest.mark.parametrize("successors", [0, -1, 7])
def test_a_garnet_refuses_a_number_of_successors_it_cannot_have(successors):
    with refused(None, f"successors is {successors}", "[1, 6]"):
        op.zoo.garnet(6, 2, 3, successors=successors, seed=0)


def test_only_the_public_names_are_listed():
    # Completion offered "annotations".
    assert dir(op.zoo) == sorted(op.zoo.__all__)
