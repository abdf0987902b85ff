"""Plans for signals of any legal size, held against exact rational arithmetic."""

import itertools
import random
from fractions import Fraction

import numpy as np
import optpess as op
import pytest

SIZES = [(1, 1, 3), (1, 2, 3), (2, 2, 2), (3, 2, 2), (2, 1, 2)]


def size_of(kind, source):
    """One number of a signal."""
    return {
        "ties": lambda: source.choice([0.0, 1.0, 0.5, -1.0]),
        "negative": lambda: source.uniform(-1, 1),
        "mixed": lambda: source.uniform(-1, 1) * 10.0 ** source.uniform(-300, 300),
        "equal but for rounding": lambda: 1.0 + source.random() * 1e-12,
        "subnormal": lambda: source.choice([0, 5e-324, 1e-310, -2e-308, 1e-300]),
        "largest": lambda: source.uniform(-1, 1) * 1e300,
    }[kind]()


KINDS = ["ties", "negative", "mixed", "equal but for rounding", "subnormal", "largest"]


def distribution(length, source):
    cuts = sorted(source.randrange(9) for _ in range(length - 1))
    return [(b - a) / 8 for a, b in itertools.pairwise([0, *cuts, 8])]


def signal(sizes, source):
    kind = source.choice(KINDS)
    scale = 10.0 ** source.uniform(-280, 280) if kind in ("ties", "negative") else 1.0
    numbers = [size_of(kind, source) * scale for _ in range(np.prod(sizes))]
    return np.array(numbers).reshape(sizes)


def corners(rows, initial, reward, cost):
    """(cost, reward) of every deterministic policy, exactly; ``rows[h][s]`` lists (action, row)."""
    places = [(h, s) for h in range(len(rows)) for s in range(len(rows[h]))]
    found = set()
    for taken in itertools.product(*(rows[h][s] for h, s in places)):
        chosen = dict(zip(places, taken, strict=True))
        values = [(Fraction(0), Fraction(0))] * len(initial)
        for h in reversed(range(len(rows))):
            before = []
            for s in range(len(initial)):
                action, row = chosen[h, s]
                own = (Fraction(cost[h, s, action]), Fraction(reward[h, s, action]))
                later = [sum(p * v[m] for p, v in zip(row, values, strict=True)) for m in (0, 1)]
                before.append((own[0] + later[0], own[1] + later[1]))
            values = before
        found.add(tuple(sum(p * v[m] for p, v in zip(initial, values, strict=True)) for m in (0, 1)))
    return found


def optimum(points, limit):
    """The most reward of a mixture of the points within the limit; None if there is none."""
    within = [p for p in points if p[0] <= limit]
    if not within:
        return None
    best = max(p[1] for p in within)
    for low in within:
        for high in points:
            if high[0] > limit and high[1] > low[1]:
                share = (limit - low[0]) / (high[0] - low[0])
                best = max(best, low[1] + share * (high[1] - low[1]))
    return best


def check(solve, points, limit, sizes, tolerance):
    """A plan is the optimum up to rounding, or there is none; other refusals are clear ones."""
    slack = tolerance * (sizes[1] + abs(limit))
    least, most = optimum(points, limit - slack), optimum(points, limit + slack)
    try:
        plan = solve()
    except op.InfeasibleError:
        assert least is None
        return "infeasible"
    except (op.CertificateError, op.SolverError):
        return "refused"
    allowed = tolerance * sizes[0] + Fraction(5e-308)
    assert most is not None
    assert Fraction(plan.value) <= most + allowed
    assert least is None or Fraction(plan.value) >= least - allowed
    return "planned"


def instance(seed):
    source = random.Random(seed)
    sizes = source.choice(SIZES)
    horizon, states, actions = sizes
    rows = [distribution(states, source) for _ in range(horizon * states * actions)]
    transitions = np.array(rows).reshape(*sizes, states)
    initial = distribution(states, source)
    reward, cost = signal(sizes, source), signal(sizes, source)
    sums = [sum(Fraction(np.abs(g[h]).max()) for h in range(horizon)) for g in (reward, cost)]
    listed = [
        [
            [(a, [Fraction(p) for p in transitions[h, s, a]]) for a in range(actions)]
            for s in range(states)
        ]
        for h in range(horizon)
    ]
    points = corners(listed, [Fraction(p) for p in initial], reward, cost)
    low, high = (float(f(p[0] for p in points)) for f in (min, max))
    pick = source.random()
    if pick < 0.6:
        limit = low + (high - low) * source.random()
    elif pick < 0.8:
        limit = float(source.choice(sorted(points))[0])
    else:
        limit = low - abs(low) * source.random() - source.choice([0, 1e-12, 1.0])
    return reward, cost, transitions, initial, limit, points, sums


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_a_plan_is_the_exact_optimum_or_is_refused(engine):
    # Where a unit of cost is worth more than 1e308, or less than 1e-308, of reward, the chord method
    # returned policies far below the optimum, and HiGHS was handed signals that are infinite.
    tolerance = Fraction(1, 10**9 if engine == "parametric" else 10**7)
    counts = dict.fromkeys(["planned", "infeasible", "refused"], 0)
    for seed in range(80):
        *problem, limit, points, sizes = instance(seed)

        def solve(problem=problem, limit=limit):
            return op.solve_signals(*problem, limit, engine=engine)

        counts[check(solve, points, Fraction(limit), sizes, tolerance)] += 1
    assert counts["planned"] > 50
    assert counts["infeasible"] > 3
    assert counts["refused"] <= (0 if engine == "parametric" else 5)


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_an_extended_plan_on_one_kernel_is_the_exact_optimum_or_is_refused(engine):
    tolerance = Fraction(1, 10**9 if engine == "parametric" else 10**7)
    planned = 0
    for seed in range(1000, 1040):
        reward, cost, transitions, initial, limit, points, sizes = instance(seed)

        def solve(known=(reward, cost, transitions), initial=initial, limit=limit):
            return op.solve_extended(*known, 0.0 * known[2], initial, limit, engine=engine)

        planned += check(solve, points, Fraction(limit), sizes, tolerance) == "planned"
    assert planned > 25


@pytest.mark.parametrize("engine", ["parametric", "highs"])
@pytest.mark.parametrize("units", [(1e280, 1e-200), (1e-280, 1e200), (1e300, 1e300), (1e-300, 1e-300)])
def test_a_plan_does_not_depend_on_the_units_of_its_signals(engine, units):
    transitions = np.ones((1, 1, 3, 1))
    reward, cost = np.array([[[1.0, 3.0, 0.0]]]), np.array([[[1.0, 2.0, -1.0]]])
    plan = op.solve_signals(reward * units[0], cost * units[1], transitions, 0, 1.5 * units[1], engine)
    assert plan.value / units[0] == pytest.approx(2.5)
    assert plan.costs[0] / units[1] == pytest.approx(1.5)
    assert plan.certificate.bound / units[0] == pytest.approx(2.5)
    assert plan.certificate.limits[0] == 1.5 * units[1]
    assert plan.policy[0, 0] == pytest.approx([0.0, 5 / 6, 1 / 6])


def test_a_limit_that_no_policy_meets_is_refused_in_the_units_that_were_given():
    transitions = np.ones((1, 1, 2, 1))
    reward, cost = np.array([[[1.0, 3.0]]]), np.array([[[1e-250, 2e-250]]])
    with pytest.raises(op.InfeasibleError, match=r"limit 5e-251: the least attainable cost is 1e-250"):
        op.solve_signals(reward, cost, transitions, 0, 5e-251)
    still = np.zeros((1, 1, 2, 1))
    with pytest.raises(op.InfeasibleError, match=r"limit 5e-251: the least cost is 1e-250"):
        op.solve_extended(reward, cost, transitions, still, 0, 5e-251)


def test_a_frontier_is_a_number_where_its_slope_overflows():
    costs, rewards = np.array([[[1e-310, 3e-310]]]), np.array([[[0.25, 0.75]]])
    model = op.CMDP(np.ones((1, 1, 2, 1)), rewards, costs, 1.0, 0)
    assert op.frontier(model).value_at(2e-310) == pytest.approx(0.5)


def test_column_generation_refuses_what_it_cannot_tell_apart():
    # It returned a mixture that cost twice the limit: its excess was below 1e-9.
    costs, rewards = np.array([[[1e-12, 3e-12]]]), np.array([[[0.25, 0.75]]])
    model = op.CMDP(np.ones((1, 1, 2, 1)), rewards, costs, 1.0, 0)
    with pytest.raises(op.CertificateError, match="against the limits"):
        op.solve(model, engine="columns", cost_limit=1.5e-12)
    assert op.solve(model, engine="highs", cost_limit=2e-12).value == pytest.approx(0.5)
