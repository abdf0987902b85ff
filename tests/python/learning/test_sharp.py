"""The rule Sharp: its bonuses against the formulas written out again, its promise, its refusals."""

import copy
import math
import pickle
import warnings

import numpy as np
import optpess as op
import pytest

from learning import cases

EPISODES = 600
DELTA = cases.DELTA


def ln_beta_mixture(p, n, x, mass=0.5):
    """ln M_n(p): Beta(1/2, 1/2) with `mass` at 0 and 1, for a whole sum x."""
    log = math.lgamma(x + 0.5) + math.lgamma(n - x + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
    terms = [math.log(1 - mass) + log - power(p, x) - power(1 - p, n - x)]
    if x == 0:
        terms.append(math.log(mass / 2) - power(1 - p, n))
    if x == n:
        terms.append(math.log(mass / 2) - power(p, n))
    return np.logaddexp.reduce(terms)


def power(p, count):
    """ln p^count."""
    return 0.0 if count == 0 else count * math.log(p)


def root(function, inside, outside):
    """Where an increasing distance from `inside` leaves the set."""
    for _ in range(200):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if function(middle) else (inside, middle)
    return inside


def interval(n, x, level):
    def plausible(p):
        return ln_beta_mixture(p, n, x) <= -math.log(level)

    tiny = 1e-15
    lower = 0.0 if x == 0 else root(plausible, min(x / n, 1 - tiny), tiny)
    upper = 1.0 if x == n else root(plausible, max(x / n, tiny), 1 - tiny)
    return lower, upper


def ball_radius(counts, level):
    """b of the Dirichlet ball: the average of three priors."""
    n, m = counts.sum(), len(counts)
    likelihood = sum(c * math.log(c / n) for c in counts if c > 0)
    marginals = [
        math.lgamma(m * a)
        - m * math.lgamma(a)
        + sum(math.lgamma(c + a) for c in counts)
        - math.lgamma(n + m * a)
        for a in (1 / m, 1 / 2, 1.0)
    ]
    return (-math.log(level) + likelihood - np.logaddexp.reduce(marginals) + math.log(3)) / n


def kl(q, p):
    parts = [a * math.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0]
    return sum(parts)


def variation(counts, entry, ball):
    """The largest total variation between the frequencies and a plausible row."""
    n, m = counts.sum(), len(counts)
    ends = [interval(n, c, entry) for c in counts]
    if m == 2:
        return max(counts[0] / n - ends[0][0], ends[0][1] - counts[0] / n)
    above = sum(upper - c / n for c, (_, upper) in zip(counts, ends, strict=True))
    below = sum(c / n - lower for c, (lower, _) in zip(counts, ends, strict=True))
    b = ball_radius(counts, ball)
    seen = [c / n for c in counts if c > 0]
    if len(seen) > 4:
        inside = math.sqrt(b / 2)
    else:
        inside = 0.0
        for subset in range(1, 2 ** len(seen)):
            q = min(1.0, sum(p for i, p in enumerate(seen) if subset >> i & 1))
            least = root(lambda p, q=q: kl(q, p) <= b, q, 1e-15)
            inside = max(inside, q - least)
    return min(above, below, inside, 1.0)


def bonuses(shape, visits, counts, sums):
    """b^c, b^r and e of every row."""
    H, S, _ = shape
    found = np.zeros((3, *shape))
    for at in np.ndindex(*shape):
        after, n = H - 1 - at[0], visits[at]
        if n == 0:
            found[(slice(None), *at)] = 1 + after, 1 + after, (1 + after) / 2
            continue
        share = DELTA / np.prod(shape)
        mean = share / 2 if after == 0 else share / 4
        steps = 0.0
        if after > 0:
            entry = share / 2 if S == 2 else share / 4 / S
            steps = after * variation(counts[at], entry, share / 4)
        _, reward_up = interval(n, sums[0][at], mean)
        cost_low, cost_up = interval(n, sums[1][at], mean)
        found[(slice(None), *at)] = (
            cost_up - sums[1][at] / n + steps,
            reward_up - sums[0][at] / n + steps,
            (cost_up - cost_low) / 2 + steps,
        )
    return found


@pytest.mark.parametrize("name", ["pair", "market", "six"])
@pytest.mark.parametrize("count", [0, 1, 40, EPISODES])
def test_the_signals_are_the_formulas(name, count):
    if name == "six":
        model = op.zoo.garnet(6, 2, 3, successors=5, seed=2, cost_limit=2.0)
    else:
        model = op.zoo.pair() if name == "pair" else cases.market()
    safe = np.full(model.shape, 1 / model.shape[2])
    margin = op.SafetyMargin(float(model.cost_limits[0]), 0.1)
    learner = cases.optpess_lp(
        model, EPISODES, confidence=op.Sharp(), baseline=op.SafeBaseline(safe, margin)
    )
    played = op.sample(model, safe, count or 1, seed=4)
    for number in range(count):
        learner.next_policy()
        observed = [part[number] for part in played]
        learner.observe(observed[0], observed[1], observed[2], observed[3][0])
    known = learner.estimates
    sums = [np.round(table * known.visits) for table in (known.rewards, known.costs)]
    expected = bonuses(model.shape, known.visits, known.transition_counts, sums)
    signals = learner.signals
    np.testing.assert_allclose(signals.cost, known.costs + expected[0], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(known.bonus, expected[0], rtol=1e-6, atol=1e-12)
    scale = 4 * model.shape[0] / (margin.cost_limit - margin.safe_cost)
    optimistic = known.rewards + expected[1] + scale * expected[2]
    np.testing.assert_allclose(signals.reward, optimistic, rtol=1e-6, atol=1e-12)


def test_it_keeps_the_guarantee_and_names_what_it_assumes():
    learner = cases.optpess_lp(op.zoo.pair(), 100, confidence=op.Sharp())
    assert learner.guarantee == op.ZeroViolation(1 - DELTA, bounded_observations=True)
    assert repr(learner.guarantee) == "ZeroViolation(probability=0.95, bounded_observations=True)"
    assert learner.guarantee != op.ZeroViolation(1 - DELTA)
    assert learner.parameters["confidence"] == "Sharp()"
    run = cases.run_of(op.zoo.pair(), learner)
    assert run.guarantee == learner.guarantee


def test_a_record_keeps_the_guarantee(tmp_path):
    learner = cases.optpess_lp(op.zoo.pair(), 100, confidence=op.Sharp())
    run = cases.run_of(op.zoo.pair(), learner)
    run.save(tmp_path / "run.npz")
    assert op.load_run(tmp_path / "run.npz").guarantee == learner.guarantee


def test_it_leaves_the_baseline_far_earlier_than_the_theorems_rule():
    model = op.zoo.pair()
    theorem = op.forecast(model, cases.optpess_lp(model, 3000)).would_leave_baseline
    run = cases.run_of(model, cases.optpess_lp(model, 3000, confidence=op.Sharp()), replicates=3)
    assert (run.first_planned >= 0).all()
    assert (run.first_planned < theorem / 50).all()
    assert run.violating_episodes.sum() == 0


def three_absorbing():
    """Two absorbing states, one of them costly, and a start that rarely leads to the costly one."""
    transitions = np.zeros((3, 3, 2, 3))
    transitions[:, 0] = [[0.9, 0.08, 0.02], [0.5, 0.3, 0.2]]
    transitions[:, 1] = [0.0, 1.0, 0.0]
    transitions[:, 2] = [0.0, 0.0, 1.0]
    rewards = np.tile([0.2, 0.9], (3, 3, 1))
    costs = np.tile(np.array([[0.05, 0.3], [0.0, 0.5], [1.0, 1.0]]), (3, 1, 1))
    return op.CMDP(transitions, rewards, costs, 1.2, [1.0, 0.0, 0.0], noise=op.Bernoulli())


def coin(noise):
    """One state, one step: the smallest problem there is."""
    transitions = np.ones((1, 1, 2, 1))
    return op.CMDP(transitions, [[[0.3, 0.8]]], [[[0.1, 0.7]]], 0.4, [1.0], noise=noise)


PROBLEMS = {
    "pair": op.zoo.pair,
    "market": cases.market,
    "absorbing": three_absorbing,
    "coin": lambda: coin(op.Bernoulli()),
    "certain": lambda: coin(op.Deterministic()),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_pessimism_and_optimism_fail_in_no_more_runs_than_promised(name):
    model, replicates = PROBLEMS[name](), 150
    learner = cases.optpess_lp(model, 2500, confidence=op.Sharp(), failure_probability=0.1)
    run = cases.run_of(model, learner, replicates=replicates, audit=True)
    planned = sum(audit["RewardOptimism"].made > 0 for audit in run.audits)
    assert planned == replicates, "the gate opened"
    for check in ("CostDominance", "RewardOptimism"):
        assert all(audit[check].made > 0 for audit in run.audits)
        assert sum(audit[check].failed > 0 for audit in run.audits) == 0, check
    assert run.violating_episodes.sum() == 0


def test_the_audited_run_on_the_plain_engine_is_the_run():
    for model in (op.zoo.pair(), cases.market()):
        learner = cases.optpess_lp(model, 2500, confidence=op.Sharp())
        runs = [
            cases.run_of(model, learner, replicates=2, seed=3, audit=audit) for audit in (True, False)
        ]
        assert cases.same_record(*runs)
        assert (runs[0].first_planned > 0).all()


def test_the_live_learner_deploys_what_the_simulation_did_also_after_pickling():
    model = cases.market()
    learner = cases.optpess_lp(model, 2500, confidence=op.Sharp())
    trace = cases.run_of(model, learner, trace=True).traces[0]
    assert not trace.on_baseline.all()
    for number in range(2500):
        deployment = learner.next_policy()
        value = op.evaluate(deployment.policy, model.costs[0], model.transitions, model.initial)
        assert value == pytest.approx(trace.deployed_cost[number], abs=1e-12)
        if number % 1000 == 250:
            before = cases.stored(learner)
            learner = copy.copy(pickle.loads(pickle.dumps(learner)))
            assert cases.stored(learner) == before
        learner.observe(*cases.episode(trace, number))


def test_highs_plans_the_same_values():
    model = cases.market()
    learners = [
        cases.optpess_lp(model, 2500, confidence=op.Sharp(), engine=engine)
        for engine in ("parametric", "highs")
    ]
    trace = cases.run_of(model, learners[0], trace=True).traces[0]
    first = int(np.argmin(trace.on_baseline))
    assert not trace.on_baseline[first]
    for number in range(first + 3):
        rewards = [learner.next_policy().optimistic_reward for learner in learners]
        if number >= first:
            assert rewards[0] == pytest.approx(rewards[1], rel=1e-7)
        for learner in learners:
            learner.observe(*cases.episode(trace, number))


def test_neither_forecast_nor_progress_guesses_when_it_leaves_the_baseline():
    model = op.zoo.pair()
    learner = cases.optpess_lp(model, 300, confidence=op.Sharp())
    expected = op.forecast(model, learner)
    assert (expected.leaves_baseline, expected.would_leave_baseline) == (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = cases.run_of(model, learner, trace=True).traces[0]
    cases.fed(learner, trace, 20)
    progress = learner.progress
    assert (progress.on_baseline, progress.gate_open, progress.episodes_left) == (True, False, None)
    assert progress.gate_cost > progress.gate_threshold
    assert "leaves" not in str(progress)


@pytest.mark.parametrize(
    ("place", "value"), [("rewards", -0.25), ("rewards", 1.5), ("costs", 2.0), ("costs", -1e-9)]
)
def test_observations_outside_the_range_are_refused_by_name_and_change_nothing(place, value):
    learner = cases.optpess_lp(op.zoo.pair(), 10, confidence=op.Sharp())
    learner.next_policy()
    before = cases.stored(learner)
    seen = {"states": [0, 1], "actions": [0, 0], "rewards": [0.0, 1.0], "costs": [0.0, 0.5]}
    broken = seen | {place: [seen[place][0], value]}
    with pytest.raises(op.InvalidInputError, match=rf"{place}\[1\] is .*\[0, 1\]"):
        learner.observe(**broken)
    assert cases.stored(learner) == before
    learner.observe(**seen)
    assert learner.episodes_observed == 1


def test_unbounded_noise_stops_a_simulation_by_name():
    model = cases.market(op.Gaussian(0.5))
    learner = cases.optpess_lp(model, 50, confidence=op.Sharp())
    with pytest.raises(op.InvalidInputError, match=r"it must lie in \[0, 1\]"):
        cases.run_of(model, learner)


OTHERS = [
    name
    for name in cases.every_learner(op.zoo.pair(), 10, op.Theorem())
    if not name.startswith(("OptPess-LP", "AlwaysBaseline"))
]


@pytest.mark.parametrize("name", OTHERS)
def test_other_learners_refuse_it_by_name(name):
    make = cases.every_learner(op.zoo.pair(), 10, op.Sharp())[name]
    with pytest.raises(op.InvalidInputError, match=r"confidence is Sharp\(\), which has no proof for"):
        make()


@pytest.mark.parametrize("rule", ["theorem", None, 0.5])
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(op.InvalidInputError, match="which is no rule of OptPess-LP"):
        cases.optpess_lp(op.zoo.pair(), 10, confidence=rule)


def test_an_estimated_cost_works_with_it():
    model = cases.market()
    baseline = op.SafeBaseline.estimated(cases.always_first(model), float(model.cost_limits[0]))
    learner = cases.optpess_lp(model, 3000, confidence=op.Sharp(), baseline=baseline)
    assert learner.guarantee == op.ZeroViolation(1 - DELTA, bounded_observations=True)
    run = cases.run_of(model, learner, audit=True)
    assert run.estimation_episodes[0] > 0
    assert run.violating_episodes[0] == 0
    assert run.audits[0]["RewardOptimism"].made > 0
    assert run.audits[0]["RewardOptimism"].failed == run.audits[0]["CostDominance"].failed == 0
