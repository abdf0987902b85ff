"""A learner in a user's units beside its twin in [0, 1]: the same policies, and every number mapped."""

import numpy as np
import optpess as op
import pytest
from optpess.model.units import Units
from support.healthy import refused

from learning import cases

MARKET = cases.market()
HORIZON = MARKET.shape.horizon
EPISODES = 60
# The widths are powers of two and all numbers below have few digits, so that no map rounds.
RANGES = {
    "costs from 0": {"reward_range": (-128.0, 0.0), "cost_range": (0.0, 4.0)},
    "costs from 1": {"reward_range": (-128.0, 0.0), "cost_range": (1.0, 5.0)},
    "small": {"reward_range": (0.25, 0.5), "cost_range": (0.0, 2.0**-10)},
}
LIMIT, SAFE = 1.25, 0.375
KINDS = {
    "LP": op.OptPessLP,
    "LP, HiGHS": op.OptPessLP,
    "LP, estimated": op.OptPessLP,
    "CUCRL": op.CUCRL,
    "SOPS": op.SOPS,
    "AlwaysBaseline": op.AlwaysBaseline,
    "Mix": op.OptPessMix,
    "Mix, estimated": op.OptPessMix,
    "Mix, known": op.OptPessMix,
} | {
    kind.__name__: kind
    for kind in (
        op.OptPessPrimalDual,
        op.UnconstrainedOptimistic,
        op.OptCMDP,
        op.OptCMDPBonus,
        op.OptDualCMDP,
        op.OptPrimalDualCMDP,
        op.OPDOP,
    )
}
KNOWN_REWARDS = np.array([[0.25, 0.5], [0.5, 0.75], [0.0, 1.0]])
KNOWN_COSTS = np.array([[0.0, 0.5], [0.25, 0.75], [0.125, 1.0]])


def out(units, reward=None, cost=None, value=None, total=None):
    """A reward or a cost of a step, or a sum V(r) or V(c) of H of them, in the user's units."""
    (low, high), (least, most) = units.reward_range, units.cost_ranges[0]
    if reward is not None:
        return low + (high - low) * reward
    if cost is not None:
        return least + (most - least) * cost
    if value is not None:
        return HORIZON * low + (high - low) * value
    return None if total is None else HORIZON * least + (most - least) * total


def made(name, ranges):
    """A learner whose limits and tables are in its units."""
    units = Units.of(ranges["reward_range"], ranges["cost_range"], 1)
    policy = cases.always_first(MARKET)
    margin = op.SafetyMargin(out(units, total=LIMIT), out(units, total=SAFE))
    arguments = {"shape": MARKET.shape, "initial": MARKET.initial, "seed": 4} | ranges
    if name.split(",")[0] in ("LP", "CUCRL", "SOPS", "AlwaysBaseline", "Mix"):
        arguments["baseline"] = op.SafeBaseline(policy, margin)
    else:
        arguments["margin"] = margin
    if name.endswith("estimated"):
        limit = out(units, total=LIMIT)
        arguments["baseline"] = op.SafeBaseline.estimated(policy, limit, radius=op.PaperRadius())
    if not name.startswith("Mix"):
        arguments["num_episodes"] = EPISODES
    if name != "AlwaysBaseline":
        arguments["confidence"] = op.Scaled(2.0**-10 if name != "Mix, known" else 1.0)
    if name == "CUCRL":
        arguments["transitions"] = MARKET.transitions
    if name == "LP, HiGHS":
        arguments["engine"] = "highs"
    if name == "Mix, known":
        arguments["knowledge"] = op.Knowledge(
            stationary=True, rewards=out(units, reward=KNOWN_REWARDS), costs=out(units, cost=KNOWN_COSTS)
        )
    return KINDS[name](**arguments)


def episodes():
    """States, and two tables of what the actions earn and cost there, with eight binary digits: the
    second action earns and costs more.
    """
    generator = np.random.default_rng(9)
    for _ in range(EPISODES):
        tables = generator.integers(65, size=(2, HORIZON, 1)) / 256 + [0.0, 0.5]
        yield generator.integers(3, size=HORIZON), *tables


def check_deployment(own, twin, units):
    assert own.policy.tobytes() == twin.policy.tobytes()
    assert own._uniforms.tobytes() == twin._uniforms.tobytes()
    assert (own.episode, own.source) == (twin.episode, twin.source)
    np.testing.assert_array_equal(own.optimistic_reward, out(units, value=twin.optimistic_reward))
    np.testing.assert_array_equal(own.biased_cost, out(units, total=twin.biased_cost))
    assert (own.certificate is None) == (twin.certificate is None)
    if own.certificate is not None:
        np.testing.assert_array_equal(own.certificate.costs, out(units, total=twin.certificate.costs))
        np.testing.assert_array_equal(own.certificate.limits, [out(units, total=LIMIT)])
        assert own.certificate.repair == twin.certificate.repair
    assert (own.mixture is None) == (twin.mixture is None)
    if own.mixture is not None:
        assert own.mixture.weights.tobytes() == twin.mixture.weights.tobytes()
        assert (own.mixture.number, own.mixture.chosen) == (twin.mixture.number, twin.mixture.chosen)
        np.testing.assert_array_equal(own.mixture.limits, [out(units, total=LIMIT)])
        for mine, theirs in zip((own.mixture, *own.members), (twin.mixture, *twin.members), strict=True):
            np.testing.assert_array_equal(mine.cost_bounds, out(units, total=theirs.cost_bounds))


def check_knowledge(own, twin, units):
    first, second = own.estimates, twin.estimates
    for table in ("visits", "transition_counts", "transitions", "bonus"):
        np.testing.assert_array_equal(getattr(first, table), getattr(second, table))
    np.testing.assert_array_equal(first.rewards, out(units, reward=second.rewards))
    np.testing.assert_array_equal(first.costs, out(units, cost=second.costs))
    np.testing.assert_array_equal(own.signals.cost, out(units, cost=twin.signals.cost))
    assert (own.signals.reward is None) == (twin.signals.reward is None)
    if own.signals.reward is not None:
        np.testing.assert_array_equal(own.signals.reward, out(units, reward=twin.signals.reward))
    assert own.safe_cost == out(units, total=twin.safe_cost)
    assert own.cost_limit == out(units, total=twin.cost_limit)
    assert own.guarantee == twin.guarantee
    for name in own.progress.__slots__:
        mine, theirs = getattr(own.progress, name), getattr(twin.progress, name)
        if name in ("certified_cost", "cost_limit", "gate_cost", "gate_threshold"):
            theirs = out(units, total=theirs)
        assert mine == theirs, name


@pytest.mark.parametrize("ranges", RANGES)
@pytest.mark.parametrize("name", KINDS)
def test_a_learner_in_other_units_deploys_what_its_twin_deploys_and_shows_it_mapped(name, ranges):
    unit = {"reward_range": (0.0, 1.0), "cost_range": (0.0, 1.0)}
    own, twin = made(name, RANGES[ranges]), made(name, unit)
    units, sources = own.units, set()
    assert (twin.units.is_unit, units.is_unit) == (True, False)
    for number, (states, rewards, costs) in enumerate(episodes()):
        if number % 10 == 0:
            check_knowledge(own, twin, units)
        first, second = own.next_policy(), twin.next_policy()
        check_deployment(first, second, units)
        check_deployment(own.pending, second, units)
        sources.add(first.source)
        actions = cases.actions_of(first, states)
        if name == "Mix, known":
            rewards, costs = (table[states, actions] for table in (KNOWN_REWARDS, KNOWN_COSTS))
        else:
            rewards, costs = (table[range(HORIZON), actions] for table in (rewards, costs))
        own.observe(states, actions, out(units, reward=rewards), out(units, cost=costs))
        twin.observe(states, actions, rewards, costs)
    check_knowledge(own, twin, units)
    assert not name.startswith("LP") or "PessimisticSet" in sources
    if name.startswith("Mix"):
        for policy in (cases.always_first(MARKET), np.full(MARKET.shape, 0.5)):
            mine, theirs = op.certify(policy, own), op.certify(policy, twin)
            for bound in ("worst_case", "best_case", "upper"):
                expected = out(units, total=getattr(theirs, bound))
                np.testing.assert_array_equal(getattr(mine, bound), expected)
            np.testing.assert_array_equal(mine.own_episodes, theirs.own_episodes)
            np.testing.assert_array_equal(mine.limits, [out(units, total=LIMIT)])
            assert mine.is_safe == theirs.is_safe
            (cost, kernel), (other, same) = own.worst_kernel(policy), twin.worst_kernel(policy)
            np.testing.assert_array_equal(kernel, same)
            assert cost == out(units, total=other)


def test_ranges_that_round_give_nearly_the_same():
    ranges = {"reward_range": (-100.0, 0.0), "cost_range": (0.0, 5.0)}
    own = made("Mix", ranges)
    twin = made("Mix", {"reward_range": (0.0, 1.0), "cost_range": (0.0, 1.0)})
    for states, *tables in episodes():
        first, second = own.next_policy(), twin.next_policy()
        np.testing.assert_allclose(first.policy, second.policy, atol=1e-9)
        np.testing.assert_allclose(first.certificate.costs, 5 * second.certificate.costs, rtol=1e-9)
        actions = cases.actions_of(first, states)
        rewards, costs = (table[range(HORIZON), actions] for table in tables)
        own.observe(states, actions, 100 * rewards - 100, 5 * costs)
        twin.observe(states, actions, rewards, costs)


def two_limits(first, second, **further):
    """OptPess-Mix with two constraints in different units."""
    limits = [out(Units(cost_ranges=(pair,)), total=LIMIT) for pair in (first, second)]
    costs = [out(Units(cost_ranges=(pair,)), total=SAFE) for pair in (first, second)]
    baseline = op.SafeBaseline(cases.always_first(MARKET), op.SafetyMargin(limits, costs))
    arguments = {"shape": MARKET.shape, "initial": MARKET.initial, "baseline": baseline}
    return op.OptPessMix(cost_range=[first, second], **arguments | further)


def test_every_constraint_has_its_own_units():
    own, twin = two_limits((0.0, 4.0), (1.0, 1.5)), two_limits((0.0, 1.0), (0.0, 1.0))
    assert own.units.cost_ranges == ((0.0, 4.0), (1.0, 1.5))
    lows, widths = np.array([0.0, 1.0]), np.array([4.0, 0.5])
    np.testing.assert_array_equal(own.cost_limits, HORIZON * lows + widths * twin.cost_limits)
    for states, *tables in episodes():
        first, second = own.next_policy(), twin.next_policy()
        assert first.policy.tobytes() == second.policy.tobytes()
        expected = HORIZON * lows + widths * second.mixture.cost_bounds
        np.testing.assert_array_equal(first.mixture.cost_bounds, expected)
        np.testing.assert_array_equal(first.certificate.costs, expected)
        actions = cases.actions_of(first, states)
        rewards, costs = (table[range(HORIZON), actions] for table in tables)
        both = np.stack([costs, costs[::-1]])
        own.observe(states, actions, rewards, lows[:, None] + widths[:, None] * both)
        twin.observe(states, actions, rewards, both)
    policy = np.full(MARKET.shape, 0.5)
    for constraint in range(2):
        expected = HORIZON * lows + widths * twin.worst_kernel(policy, constraint)[0]
        assert own.worst_kernel(policy, constraint)[0] == expected[constraint]


# Refusals, in the user's numbers


COSTS_FROM_1 = RANGES["costs from 1"]


@pytest.mark.parametrize(("limit", "safe"), [(20.0, 4.0), (15.5, 4.0), (3.0, 2.0), (2.0, 1.0)])
@pytest.mark.parametrize("kind", [op.OptPessLP, op.OptPessPrimalDual, op.OptPessMix])
def test_a_limit_outside_of_the_sums_of_costs_is_refused_in_the_users_numbers(kind, limit, safe):
    margin = op.SafetyMargin(limit, safe)
    arguments = {"shape": MARKET.shape, "initial": MARKET.initial} | COSTS_FROM_1
    if kind is op.OptPessPrimalDual:
        arguments |= {"margin": margin, "num_episodes": 9}
    else:
        arguments |= {"baseline": op.SafeBaseline(cases.always_first(MARKET), margin)}
    if kind is op.OptPessLP:
        arguments |= {"num_episodes": 9}
    with refused(None, f"cost_limit is {limit:g}; it must lie in (3, 15]", "cost_range"):
        kind(**arguments)


@pytest.mark.parametrize("kind", [op.OptPessLP, op.OptPessPrimalDual, op.OptPessMix])
def test_a_safe_cost_below_the_sums_of_costs_is_refused_in_the_users_numbers(kind):
    margin = op.SafetyMargin(8.0, 2.5)  # three steps cost at least 3
    arguments = {"shape": MARKET.shape, "initial": MARKET.initial} | COSTS_FROM_1
    if kind is op.OptPessPrimalDual:
        arguments |= {"margin": margin, "num_episodes": 9}
    else:
        arguments |= {"baseline": op.SafeBaseline(cases.always_first(MARKET), margin)}
    if kind is op.OptPessLP:
        arguments |= {"num_episodes": 9}
    with refused(None, "safe_cost is 2.5; it must lie in [3, 15]", "cost_range"):
        kind(**arguments)


@pytest.mark.parametrize("low", [0.1, 0.3, -0.1, 1 / 3, 1e6])
@pytest.mark.parametrize("width", [0.1, 0.7, 1.0, 3.2])
def test_the_ends_of_the_sums_are_in_range_although_the_map_rounds(low, width):
    # Three costs of 0.1 were once more than 0.3.
    shared = {"shape": MARKET.shape, "initial": MARKET.initial, "cost_range": (low, low + width)}
    policy = cases.always_first(MARKET)
    for most in (3 * (low + width), 3 * low + 3 * width, round(3 * (low + width), 9)):
        estimated = op.SafeBaseline.estimated(policy, most)
        op.OptPessMix(baseline=estimated, **shared)
        if low > 0:
            for least in (3 * low, low + low + low, round(3 * low, 9)):
                baseline = op.SafeBaseline(policy, op.SafetyMargin(most, least))
                op.OptPessMix(baseline=baseline, **shared)
        with refused(None, "cost_limit is"):
            op.OptPessMix(baseline=op.SafeBaseline.estimated(policy, most + 1e-5 * width), **shared)
    with refused(None, "cost_limit is"):
        op.OptPessMix(baseline=op.SafeBaseline.estimated(policy, 3 * low), **shared)


def test_limits_of_several_constraints_are_refused_by_number():
    margin = op.SafetyMargin([2.0, 9.0], [0.5, 4.0])
    baseline = op.SafeBaseline(cases.always_first(MARKET), margin)
    with refused(None, "cost_limit[1] is 9; it must lie in (0, 6]"):
        op.OptPessMix(
            shape=MARKET.shape,
            initial=MARKET.initial,
            baseline=baseline,
            cost_range=[(0.0, 1.0), (0.0, 2.0)],
        )


@pytest.mark.parametrize("name", KINDS)
def test_observations_are_refused_in_the_users_numbers_and_change_nothing(name):
    learner = made(name, COSTS_FROM_1)
    actions = cases.actions_of(learner.next_policy(), [0, 1, 2])
    before = cases.stored(learner)
    with refused("ObservationOutOfRange", "rewards[1] is 0.5; it must lie in [-128, 0]", "reward_range"):
        learner.observe([0, 1, 2], actions, [-1.0, 0.5, -1.0], [1.0, 1.0, 1.0])
    with refused("ObservationOutOfRange", "costs[2] is 0.5; it must lie in [1, 5]", "cost_range"):
        learner.observe([0, 1, 2], actions, [-1.0, -1.0, -1.0], [1.0, 1.0, 0.5])
    assert cases.stored(learner) == before


BAD_RANGES = {
    "upside down": ({"cost_range": (1.0, 0.0)}, "cost_range is (1.0, 0.0)"),
    "empty": ({"reward_range": (1.0, 1.0)}, "reward_range is (1.0, 1.0)"),
    "one number": ({"reward_range": 1.0}, "reward_range is 1.0; it must be (low, high)"),
    "three numbers": ({"reward_range": (0.0, 1.0, 2.0)}, "reward_range is (0.0, 1.0, 2.0)"),
    "words": ({"reward_range": ("low", "high")}, "reward_range is ('low', 'high')"),
    "a word": ({"reward_range": "01"}, "reward_range is '01'"),
    "None": ({"cost_range": None}, "cost_range is None"),
    "infinite": ({"cost_range": (0.0, np.inf)}, "cost_range is (0.0, inf)"),
    "NaN": ({"reward_range": (np.nan, 1.0)}, "reward_range is (nan, 1.0)"),
    "too many": ({"cost_range": [(0, 1), (0, 2)]}, "cost_range has 2 ranges"),
}


@pytest.mark.parametrize("fault", BAD_RANGES)
def test_ranges_that_are_none_are_refused(fault):
    change, piece = BAD_RANGES[fault]
    with refused(None, piece):
        cases.primal_dual(MARKET, 9, **change)


def test_a_learner_keeps_its_units_in_its_file(tmp_path):
    learner = made("Mix", COSTS_FROM_1)
    learner.next_policy()
    learner.save(tmp_path / "learner.npz")
    other = op.load_learner(tmp_path / "learner.npz")
    assert other.units == learner.units
    assert other.cost_limit == 8.0
    assert other.pending.certificate.costs == learner.pending.certificate.costs
