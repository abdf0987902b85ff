"""The algorithms the paper's are compared with: formulas, decisions, replay, refusals."""

import copy
import pickle

import numpy as np
import optpess as op
import pytest
from support import reference
from support.healthy import refused

from learning import cases, peer_formulas

EPISODES = 300
MARKET = cases.market()


def with_margin(kind):
    def make(num_episodes=EPISODES, model=MARKET, **changes):
        arguments = {
            "shape": model.shape,
            "initial": model.initial,
            "margin": cases.margin_of(model),
            "num_episodes": num_episodes,
            "failure_probability": cases.DELTA,
        }
        return kind(**arguments | changes)

    return make


def always_baseline(num_episodes=EPISODES, model=MARKET, **changes):
    arguments = {
        "shape": model.shape,
        "initial": model.initial,
        "baseline": op.SafeBaseline(cases.always_first(model), cases.margin_of(model)),
        "num_episodes": num_episodes,
    }
    return op.AlwaysBaseline(**arguments | changes)


def cucrl(num_episodes=EPISODES, model=MARKET, **changes):
    arguments = {
        "transitions": model.transitions,
        "shape": model.shape,
        "initial": model.initial,
        "baseline": op.SafeBaseline(cases.always_first(model), cases.margin_of(model)),
        "num_episodes": num_episodes,
        "failure_probability": cases.DELTA,
    }
    return op.CUCRL(**arguments | changes)


BONUS = {
    "unconstrained": with_margin(op.UnconstrainedOptimistic),
    "OptCMDP-bonus": with_margin(op.OptCMDPBonus),
}
EXTENDED = {"OptCMDP": with_margin(op.OptCMDP), "OptDual-CMDP": with_margin(op.OptDualCMDP)}
MARGIN = (
    BONUS
    | EXTENDED
    | {
        "OptPrimalDual-CMDP": with_margin(op.OptPrimalDualCMDP),
        "OPDOP": with_margin(op.OPDOP),
    }
)
MAKERS = MARGIN | {"always": always_baseline, "C-UCRL": cucrl}
SCALED = op.Scaled(0.01)
PROMISES = {
    "unconstrained": "no bound on violations",
    "OptCMDP-bonus": "regret and strong violation of order sqrt(K)",
    "OptCMDP": "regret and strong violation of order sqrt(K)",
    "OptDual-CMDP": "regret and weak violation of order sqrt(K)",
    "OptPrimalDual-CMDP": "regret and weak violation of order sqrt(K)",
    "OPDOP": "regret and weak violation of order sqrt(K)",
    "always": "no violation; regret linear in K",
    "C-UCRL": "no violation with probability 1 - delta",
}


def quick(name, **changes):
    """A learner whose radii are small enough for something to happen in a few hundred episodes."""
    scale = {} if name == "always" else {"confidence": SCALED}
    return MAKERS[name](**scale | changes)


@pytest.fixture(scope="module", params=MAKERS)
def case(request):
    learner = quick(request.param)
    return request.param, cases.run_of(MARKET, learner, seed=3, trace=True)


# Replay, copies, threads


def test_a_replayed_trace_deploys_the_same_policies_bit_for_bit(case):
    name, run = case
    trace, learner = run.traces[0], quick(name)
    for number in range(EPISODES):
        assert learner.multiplier == trace.multiplier[number]
        policy = learner.next_policy().policy
        truth = (MARKET.transitions, MARKET.initial)
        assert op.evaluate(policy, MARKET.rewards, *truth) == trace.deployed_value[number]
        assert op.evaluate(policy, MARKET.costs[0], *truth) == trace.deployed_cost[number]
        np.testing.assert_allclose(policy.sum(axis=2), 1.0, rtol=1e-12)
        learner.observe(*cases.episode(trace, number))


def test_a_learner_of_single_policies_deploys_no_mixture(case):
    name, _ = case
    assert quick(name).next_policy().mixture is None


@pytest.mark.parametrize(
    "twin",
    [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_goes_on_as_the_original_would_and_its_own_way(case, twin):
    name, run = case
    trace = run.traces[0]
    learner = cases.fed(quick(name), trace, 40)
    before, other = cases.stored(learner), twin(learner)
    assert type(other) is type(learner)
    assert other.parameters == learner.parameters
    cases.driven(other, MARKET, 5)
    assert cases.stored(learner) == before
    assert cases.stored(cases.driven(learner, MARKET, 5)) == cases.stored(other)


def test_records_do_not_depend_on_threads_or_neighbours(case):
    name, alone = case
    first = cases.run_of(MARKET, quick(name), replicates=3, seed=3, threads=1)
    second = cases.run_of(MARKET, quick(name), replicates=3, seed=3, threads=3)
    assert cases.same_record(first, second)
    assert first.reward_regret[0].tobytes() == alone.reward_regret[0].tobytes()


def test_records_say_who_ran_and_what_it_promises(case):
    name, run = case
    learner = quick(name)
    assert run.parameters["algorithm"] == learner.parameters["algorithm"]
    assert run.guarantee == learner.guarantee
    assert PROMISES[name] in learner.promise
    assert type(learner).__name__ in repr(learner)


# Formulas


@pytest.mark.parametrize("name", [*BONUS, "OptPrimalDual-CMDP"])
@pytest.mark.parametrize("factor", [None, 0.01])
@pytest.mark.parametrize("count", [0, 1, 37])
def test_signals_are_averages_with_the_bonus_of_the_paper(name, factor, count):
    confidence = op.Theorem() if factor is None else op.Scaled(factor)
    learner = cases.driven(MARGIN[name](confidence=confidence), MARKET, count)
    known = learner.estimates
    bonus = peer_formulas.bonus(known, MARKET.shape, EPISODES, cases.DELTA, factor or 1.0)
    np.testing.assert_allclose(known.bonus, bonus, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.reward, known.rewards + bonus, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.cost, known.costs - bonus, rtol=1e-13)


@pytest.mark.parametrize("name", EXTENDED)
@pytest.mark.parametrize("count", [0, 1, 37])
def test_signals_over_plausible_kernels_have_the_radius_of_observations_alone(name, count):
    learner = cases.driven(EXTENDED[name](), MARKET, count)
    known = learner.estimates
    radius = peer_formulas.observation_radius(known, MARKET.shape, EPISODES, cases.DELTA)
    np.testing.assert_allclose(known.bonus, radius, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.reward, known.rewards + radius, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.cost, known.costs - radius, rtol=1e-13)


@pytest.mark.parametrize("name", MARGIN)
def test_the_log_factor_is_ours(name):
    expected = peer_formulas.log_factor(MARKET.shape, 1000, 0.2)
    learner = MARGIN[name](1000, failure_probability=0.2)
    assert learner._inner.log_factor == pytest.approx(expected, rel=1e-15)


# Optimism


@pytest.mark.parametrize("name", BONUS)
def test_plans_are_optimistic_at_the_papers_constants(name):
    run = cases.run_of(MARKET, BONUS[name](2000), replicates=4, seed=1, audit=True)
    for audit in run.audits:
        for check in ("RewardOptimism", "CostOptimism"):
            assert (audit[check].made, audit[check].failed) == (2000, 0)
        assert audit["Telescoping"].made == audit["MultiplierBound"].made == 0
    assert run.guarantee is None


@pytest.mark.parametrize("name", EXTENDED)
def test_pairs_of_policies_and_plausible_kernels_are_optimistic_at_the_papers_constants(name):
    run = cases.run_of(MARKET, EXTENDED[name](2000), replicates=4, seed=1, audit=True)
    for audit in run.audits:
        assert (audit["RewardOptimism"].made, audit["RewardOptimism"].failed) == (2000, 0)
        assert audit["CostOptimism"].made == audit["Telescoping"].made == 0
    assert run.guarantee is None


# OptCMDP and OptDual-CMDP


def test_optcmdp_plays_the_best_pair_of_a_policy_and_a_plausible_kernel():
    # The referee is the linear program over extended occupancies, with radii computed here.
    factor, binding, same = 1e-4, 0, 0
    learner = quick("OptCMDP", confidence=op.Scaled(factor))
    for number in range(150):
        signals, known = learner.signals, learner.estimates
        radius = peer_formulas.successor_radius(known, MARKET.shape, EPISODES, cases.DELTA, factor)
        problem = (signals.reward, signals.cost, known.transitions, radius, MARKET.initial, 1.2)
        deployment = learner.next_policy()
        best = op.solve_extended(*problem, engine="highs")
        assert deployment.source == "Plausible"
        assert deployment.optimistic_reward == pytest.approx(best.value, rel=1e-8)
        assert deployment.biased_cost <= 1.2 + 1e-9
        binding += deployment.biased_cost > 1.2 - 1e-9
        # Where the optimum is unique, so is the policy read off it.
        same += np.allclose(deployment.policy, op.solve_extended(*problem).policy, atol=1e-6)
        learner.observe(*cases.played(deployment, MARKET, number))
    assert binding > 100
    assert same > 100


def test_optdual_plays_the_best_plausible_pair_at_its_price_and_moves_the_price_by_its_excess():
    factor, raised = 1e-3, False
    learner = quick("OptDual-CMDP", confidence=op.Scaled(factor), margin=op.SafetyMargin(0.6, 0.1))
    step = 1 / (0.5 * np.sqrt(EPISODES))  # rho / (H sqrt(K)) = 1 / ((tau - c0) sqrt(K))
    for number in range(EPISODES):
        signals, known, price = learner.signals, learner.estimates, learner.multiplier
        radius = peer_formulas.successor_radius(known, MARKET.shape, EPISODES, cases.DELTA, factor)
        priced = signals.reward - price * signals.cost
        deployment = learner.next_policy()
        _, _, values = op.extended_induction(priced, known.transitions, radius)
        best = deployment.optimistic_reward - price * deployment.biased_cost
        assert deployment.source == "PlausibleLagrangian"
        assert best == pytest.approx(float(MARKET.initial @ values[0]), rel=1e-10)
        learner.observe(*cases.played(deployment, MARKET, number))
        moved = max(0.0, price + step * (deployment.biased_cost - 0.6))
        assert learner.multiplier == pytest.approx(moved, rel=1e-12, abs=1e-14)
        raised = raised or moved > 0
    assert raised, "the price should rise at some time"


@pytest.mark.parametrize("name", EXTENDED)
def test_a_pair_never_visited_may_lead_anywhere_however_small_the_factor(name):
    # Scaled radii once left such a pair without any plausible distribution.
    learner = quick(name, confidence=op.Scaled(1e-12))
    deployment = learner.next_policy()
    assert np.isfinite([deployment.optimistic_reward, deployment.biased_cost]).all()
    learner.observe([0, 1, 2], cases.actions_of(deployment, [0, 1, 2]), [0.0] * 3, [0.0] * 3)
    assert np.isfinite(learner.next_policy().optimistic_reward)


# OptCMDP-bonus


def test_optcmdp_bonus_plays_the_best_policy_within_the_optimistic_limit():
    learner, limits = quick("OptCMDP-bonus", confidence=op.Scaled(3e-3)), []
    for number in range(150):
        signals, kernel = learner.signals, learner.estimates.transitions
        deployment = learner.next_policy()
        best = op.solve_signals(
            signals.reward, signals.cost[None], kernel, MARKET.initial, [1.2], engine="highs"
        )
        assert deployment.source == "Optimistic"
        assert deployment.optimistic_reward == pytest.approx(best.value, rel=1e-9)
        rest = (kernel, MARKET.initial)
        found = reference.evaluate(deployment.policy, signals.reward, *rest)
        assert found == pytest.approx(best.value, rel=1e-9)
        limits.append(reference.evaluate(deployment.policy, signals.cost, *rest))
        assert limits[-1] <= 1.2 + 1e-9
        learner.observe(*cases.played(deployment, MARKET, number))
    assert max(limits) == pytest.approx(1.2), "the limit should bind at some time"


@pytest.mark.parametrize("name", ["OptCMDP", "OptCMDP-bonus"])
def test_where_even_the_least_cost_is_above_the_limit_the_least_cost_is_played(name):
    learner = MARGIN[name](
        60, margin=op.SafetyMargin(cost_limit=0.5, safe_cost=0.1), confidence=op.Scaled(1e-9)
    )
    # Optimism tries what it has not seen, until all has been seen to cost too much.
    for number in range(50):
        states = [number % 3] * 3
        actions = cases.actions_of(learner.next_policy(), states)
        learner.observe(states, actions, [0.0] * 3, [1.0 - action / 2 for action in actions])
    assert (learner.estimates.visits > 0).all()
    signals, kernel = learner.signals, learner.estimates.transitions
    deployment = learner.next_policy()
    least = -float(MARKET.initial @ op.backward_induction(-signals.cost, op.Transitions(kernel))[1][0])
    assert deployment.source == "LeastCost"
    assert deployment.biased_cost == pytest.approx(least, rel=1e-12)
    assert least > 0.5


# Mirror ascent


def ascended(name, learner, deployment, signals, known):
    """The policy and the price after a step from a deployment, recomputed."""
    (limit, safe_cost), K = (learner.cost_limit, learner.safe_cost), EPISODES
    H, _, A = MARKET.shape
    rho = H / (limit - safe_cost)
    policy, kernel = deployment.policy, known.transitions
    if name == "OPDOP":
        kernel = kernel * (known.visits / (known.visits + 1))[..., None]
        policy = (1 - 1 / K) * policy + 1 / K / A
        step, dual, cap = np.sqrt(np.log(A)) / (H**2 * np.sqrt(K)), 1 / np.sqrt(K), 2 * rho
    else:
        step = np.sqrt(2 * np.log(A) / (H**2 * (1 + rho) ** 2 * K))
        dual, cap = rho / (H * np.sqrt(K)), rho
    rewards, _ = peer_formulas.clipped(deployment.policy, signals.reward, kernel)
    costs, values = peer_formulas.clipped(deployment.policy, signals.cost, kernel)
    grown = policy * np.exp(step * (rewards - learner.multiplier * costs))
    cost = float(MARKET.initial @ values[0])
    price = np.clip(learner.multiplier + dual * (cost - limit), 0, cap)
    return grown / grown.sum(axis=2, keepdims=True), price, cost


@pytest.mark.parametrize("name", ["OptPrimalDual-CMDP", "OPDOP"])
def test_mirror_ascent_moves_policy_and_price_as_the_paper_says(name):
    learner, raised = quick(name, margin=op.SafetyMargin(0.3, 0.1)), False
    np.testing.assert_array_equal(copy.copy(learner).next_policy().policy, 0.5)
    for number in range(EPISODES):
        signals, known = learner.signals, learner.estimates
        deployment = learner.next_policy()
        policy, price, cost = ascended(name, learner, deployment, signals, known)
        assert deployment.source == "MirrorAscent"
        assert deployment.biased_cost == pytest.approx(cost, rel=1e-10, abs=1e-12)
        learner.observe(*cases.played(deployment, MARKET, number))
        assert learner.multiplier == pytest.approx(price, rel=1e-10, abs=1e-12)
        raised = raised or price > 0
        if number + 1 < EPISODES:
            after = copy.copy(learner).next_policy().policy
            np.testing.assert_allclose(after, policy, rtol=1e-10)
    assert raised, "the price should rise at some time"


@pytest.mark.parametrize("count", [0, 1, 37])
def test_opdop_divides_by_one_more_visit(count):
    learner = cases.driven(MARGIN["OPDOP"](), MARKET, count)
    known = learner.estimates
    H, S, _ = MARKET.shape
    log = peer_formulas.log_factor(MARKET.shape, EPISODES, cases.DELTA)
    bonus = (1 + H * np.sqrt(S)) * np.sqrt(log / (known.visits + 1))
    share = known.visits / (known.visits + 1)
    np.testing.assert_allclose(known.bonus, bonus, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.reward, share * known.rewards + bonus, rtol=1e-13)
    np.testing.assert_allclose(learner.signals.cost, share * known.costs - bonus, rtol=1e-13)


@pytest.mark.parametrize("name", ["OptPrimalDual-CMDP", "OPDOP"])
def test_the_cost_of_an_iterate_is_optimistic(name):
    run = cases.run_of(MARKET, MARGIN[name](2000), replicates=4, seed=1, audit=True)
    for audit in run.audits:
        assert (audit["CostOptimism"].made, audit["CostOptimism"].failed) == (2000, 0)
        assert audit["RewardOptimism"].made == audit["Telescoping"].made == 0


# C-UCRL


def test_cucrl_plays_the_baseline_until_a_policy_is_pessimistically_within_the_limit():
    learner, sources = cucrl(confidence=op.Scaled(0.2)), []
    known = (MARKET.transitions, MARKET.initial)
    for number in range(150):
        signals, estimates = learner.signals, learner.estimates
        radius = 0.2 * peer_formulas.observation_radius(estimates, MARKET.shape, EPISODES, cases.DELTA)
        np.testing.assert_allclose(signals.reward, estimates.rewards + radius, rtol=1e-13)
        np.testing.assert_allclose(signals.cost, estimates.costs + radius, rtol=1e-13)
        deployment = learner.next_policy()
        sources.append(deployment.source)
        cost = op.evaluate(deployment.policy, signals.cost, *known)
        assert deployment.biased_cost == pytest.approx(cost, rel=1e-12)
        if deployment.source == "KnownTransitions":
            best = op.solve_signals(signals.reward, signals.cost[None], *known, [1.2], engine="highs")
            assert deployment.optimistic_reward == pytest.approx(best.value, rel=1e-8)
            assert deployment.biased_cost <= 1.2
        else:
            with pytest.raises(op.InfeasibleError):
                op.solve_signals(signals.reward, signals.cost[None], *known, [1.2])
        learner.observe(*cases.played(deployment, MARKET, number))
    assert set(sources) == {"Baseline", "KnownTransitions"}


def test_cucrl_violates_nothing_at_the_theorems_constants_and_leaves_the_baseline():
    run = cases.run_of(MARKET, cucrl(20_000), replicates=4, seed=1, audit=True)
    assert run.guarantee == op.ZeroViolation(1 - cases.DELTA)
    assert (run.baseline_episodes < 20_000).all()
    assert not run.violating_episodes.any()
    for audit in run.audits:
        assert (audit["CostDominance"].made, audit["CostDominance"].failed) == (20_000, 0)
    assert cucrl(confidence=op.Scaled(1.0)).guarantee is None


def test_transitions_that_lose_mass_or_have_another_shape_are_refused():
    spoilt = MARKET.transitions.to_array().copy()
    spoilt[1, 2, 0] *= 0.5
    with refused("NotADistribution", "transitions[1, 2, 0] sums to 0.5"):
        cucrl(transitions=spoilt)
    with pytest.raises(op.InvalidInputError):
        cucrl(transitions=np.full((2, 2, 2), 0.5))
    with pytest.raises(op.InvalidInputError, match="needs a baseline with a margin"):
        cucrl(baseline=op.SafeBaseline.estimated(cases.always_first(MARKET), 1.2))
    with pytest.raises(op.InvalidInputError, match="baseline has shape"):
        cucrl(shape=(3, 3, 3))


# The two ends of the scale


def test_the_unconstrained_learner_plays_the_best_policy_for_its_signals():
    learner = quick("unconstrained")
    for number in range(60):
        signals, kernel = learner.signals, learner.estimates.transitions
        deployment = learner.next_policy()
        _, values = op.backward_induction(signals.reward, op.Transitions(kernel))
        best = float(MARKET.initial @ values[0])
        assert deployment.source == "Optimistic"
        assert deployment.optimistic_reward == pytest.approx(best, rel=1e-12)
        found = reference.evaluate(deployment.policy, signals.reward, kernel, MARKET.initial)
        assert found == pytest.approx(best, rel=1e-12)
        cost = reference.evaluate(deployment.policy, signals.cost, kernel, MARKET.initial)
        assert deployment.biased_cost == pytest.approx(cost, rel=1e-12)
        learner.observe(*cases.played(deployment, MARKET, number))


def test_the_ends_of_the_scale_are_where_they_should_be():
    free = cases.run_of(MARKET, quick("unconstrained", num_episodes=5000), seed=2)
    best = op.solve_unconstrained(MARKET).value
    slope = (free.reward_regret[0, -1] - free.reward_regret[0, -5]) / (
        free.episodes[-1] - free.episodes[-5]
    )
    assert slope == pytest.approx(free.optimal_value - best, abs=0.02)
    assert free.violating_episodes[0] > 4500
    safe = cases.run_of(MARKET, quick("always", num_episodes=5000), seed=2)
    value = op.evaluate(cases.always_first(MARKET), MARKET.rewards, MARKET.transitions, MARKET.initial)
    assert safe.reward_regret[0, -1] == pytest.approx(5000 * (safe.optimal_value - value))
    assert safe.baseline_episodes[0] == 5000
    assert not safe.strong_violation.any()
    assert safe.guarantee == op.ZeroViolation(1.0)


def test_the_baseline_may_have_an_unknown_cost():
    baseline = op.SafeBaseline.estimated(cases.always_first(MARKET), 1.2)
    learner = always_baseline(baseline=baseline)
    assert learner.safe_cost is None
    assert np.isnan(learner.next_policy().biased_cost)


# Refusals


@pytest.mark.parametrize("name", MARGIN)
def test_bad_terms_are_refused(name):
    make = MARGIN[name]
    with refused("OutOfRange", "num_episodes is"):
        make(0)
    with refused("OutOfRange", "failure_probability is"):
        make(failure_probability=1.0)
    with refused("OutOfRange", "factor is"):
        make(confidence=op.Scaled(0.0))
    with refused("OutOfRange", "cost_limit is 3.5; it must lie in (0, 3]"):
        make(margin=op.SafetyMargin(cost_limit=3.5, safe_cost=0.1))
    with refused("EmptyAxis", "axis 0 is empty"):
        make(shape=(0, 3, 2))
    with refused("ShapeMismatch", "initial has shape [2]"):
        make(initial=[0.5, 0.5])


def test_a_baseline_of_another_shape_is_refused():
    with pytest.raises(op.InvalidInputError, match=r"baseline has shape \(3, 3, 2\)"):
        always_baseline(shape=(3, 3, 3))


@pytest.mark.parametrize("name", MAKERS)
def test_verbs_out_of_turn_and_malformed_episodes_change_nothing(name):
    learner = MAKERS[name](1)
    actions = cases.actions_of(copy.copy(learner).next_policy(), [0, 1, 2])
    sound = ([0, 1, 2], actions, [0.5, 0.25, 1.0], [0.0, 0.5, 1.0])
    with refused("OutOfTurn", "next_policy comes next", error=op.ProtocolError):
        learner.observe(*sound)
    learner.next_policy()
    before = cases.stored(learner)
    with refused("OutOfTurn", "observe comes next", error=op.ProtocolError):
        learner.next_policy()
    with refused("OutOfRange", "states[1] is 3"):
        learner.observe([0, 3, 1], *sound[1:])
    assert cases.stored(learner) == before
    learner.observe(*sound)
    with refused("EpisodesExhausted", "all 1 episodes", error=op.ProtocolError):
        learner.next_policy()
