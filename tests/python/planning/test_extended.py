"""Planning over policies and plausible kernels: brute force, the linear program, optimism, refusals."""

import itertools

import numpy as np
import optpess as op
import pytest
from support import reference
from support.healthy import refused

KINDS = ("dense", "sparse", "sure", "never visited")
WIDTHS = ("none", "narrow", "wide", "mixed", "everything")


def rows(generator, shape, kind):
    """The middle of the boxes, [H, S, A, S]."""
    states = shape[1]
    drawn = generator.dirichlet(np.ones(states), size=shape)
    if kind == "sparse":
        drawn *= generator.random(drawn.shape) < 0.5
        drawn[..., 0] += 1e-3
        drawn /= drawn.sum(axis=-1, keepdims=True)
    if kind == "sure":
        drawn = np.eye(states)[generator.integers(states, size=shape)]
    if kind == "never visited":
        drawn[generator.random(shape) < 0.3] = 0.0
    return drawn


def radii(generator, centre, width):
    """How far a probability may be from the middle; everywhere where there is no middle."""
    most = {"none": 0.0, "narrow": 0.02, "wide": 0.3, "mixed": 0.5, "everything": 1.0}[width]
    found = np.full(centre.shape, most)
    if width in ("wide", "mixed"):
        found *= generator.random(centre.shape) ** (3 if width == "mixed" else 1)
    found[centre.sum(axis=-1) == 0.0] = 1.0
    return found


def draw(seed, largest=(6, 6, 3), kind=None, width=None):
    """reward, cost, middle, radii and start of a random problem."""
    generator = np.random.default_rng(seed)
    shape = tuple(int(generator.integers(1, most + 1)) for most in largest)
    centre = rows(generator, shape, kind or KINDS[seed % len(KINDS)])
    radius = radii(generator, centre, width or WIDTHS[seed % len(WIDTHS)])
    reward, cost = generator.normal(size=(2, *shape))
    if seed % 3 == 0:  # many ties
        reward, cost = np.round(reward), np.round(cost)
    return reward, cost, centre, radius, generator.dirichlet(np.ones(shape[1]))


def extreme(signal, centre, radius, initial):
    """The largest value over policies and plausible kernels."""
    return float(initial @ op.extended_induction(signal, centre, radius)[2][0])


def limit_between(problem, place):
    """A limit between the least and the largest cost."""
    _, cost, *rest = problem
    least, most = -extreme(-cost, *rest), extreme(cost, *rest)
    return least + place * (most - least)


def best_vertex(centre, radius, values):
    """max <p, values> over the vertices of a box within the simplex: all entries but one at an end."""
    ends = np.stack([np.maximum(centre - radius, 0), np.minimum(centre + radius, 1)])
    best, states = -np.inf, len(centre)
    for free in range(states):
        for chosen in itertools.product((0, 1), repeat=states - 1):
            row = np.insert(ends[list(chosen), np.delete(np.arange(states), free)], free, 0.0)
            row[free] = 1 - row.sum()
            if ends[0, free] - 1e-12 <= row[free] <= ends[1, free] + 1e-12:
                best = max(best, float(row @ values))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_extended_induction_is_brute_force_over_the_vertices_of_every_box(seed):
    signal, _, centre, radius, _ = draw(seed, (4, 4, 3))
    horizon, states, actions = signal.shape
    expected = np.zeros((horizon + 1, states))
    for h in reversed(range(horizon)):
        q = signal[h].copy()
        if h + 1 < horizon:
            for s, a in itertools.product(range(states), range(actions)):
                q[s, a] += best_vertex(centre[h, s, a], radius[h, s, a], expected[h + 1])
        expected[h] = q.max(axis=1)
    policy, chosen, values = op.extended_induction(signal, centre, radius)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
    # The policy attains the values on the rows it comes with.
    kernel = np.zeros(centre.shape)
    kernel[:-1] = chosen[:, :, None, :]
    np.testing.assert_allclose(
        reference.state_values(policy, signal, kernel), values, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(chosen.sum(axis=-1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_extended_induction_is_the_linear_program_for_more_states(seed):
    signal, _, centre, radius, initial = draw(seed, (5, 25, 3))
    most = extreme(signal, centre, radius, initial)
    free = op.solve_extended(signal, 0 * signal, centre, radius, initial, 1.0, "highs")
    assert free.value == pytest.approx(most, abs=1e-8)


@pytest.mark.parametrize("block", range(12))
def test_both_engines_agree_on_two_hundred_and_forty_problems(block):
    for seed in range(20 * block, 20 * block + 20):
        problem = draw(seed)
        reward, cost, centre, radius, initial = problem
        place = np.random.default_rng(seed + 10**6).choice([1e-3, 0.1, 0.3, 0.6, 0.9, 1.2])
        limit = limit_between(problem, place)
        ours, theirs = (op.solve_extended(*problem, limit, engine) for engine in ("parametric", "highs"))
        assert abs(ours.value - theirs.value) <= 1e-8, seed
        for plan in (ours, theirs):
            assert plan.cost <= limit + 1e-9
            assert -1e-9 <= plan.bound - plan.value <= 1e-8 * (1 + plan.multiplier)
            kernel = plan.transitions
            reached = plan.flow.sum(axis=-1) > 1e-9
            away = np.abs(kernel - centre)[:-1][reached] - radius[:-1][reached]
            assert (away <= 1e-6).all()
            assert reference.evaluate(plan.policy, reward, kernel, initial) == pytest.approx(
                plan.value, abs=1e-7
            )
            assert reference.evaluate(plan.policy, cost, kernel, initial) == pytest.approx(
                plan.cost, abs=1e-7
            )


@pytest.mark.parametrize("seed", range(40))
def test_where_the_truth_is_plausible_plans_are_optimistic(seed):
    reward, cost, centre, radius, initial = draw(seed, kind="dense")
    # The truth: as far from the middle, towards another kernel, as every box allows.
    other = rows(np.random.default_rng(seed + 10**6), reward.shape, "dense")
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.nan_to_num(radius / np.abs(other - centre), nan=1.0).min(axis=-1, keepdims=True)
    truth = centre + np.minimum(reach, 1.0) * (other - centre)
    least = -float(initial @ reference.backward_induction(-cost, truth)[1][0])
    for room in (1e-6, 0.3, 3.0):
        best = op.solve_signals(reward, cost, truth, initial, least + room).value
        plan = op.solve_extended(reward, cost, centre, radius, initial, least + room)
        assert plan.value >= best - 1e-9


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_limits_that_nothing_plausible_meets_are_refused_with_the_least_cost(engine):
    problem = draw(7)
    least = limit_between(problem, 0.0)
    with pytest.raises(op.InfeasibleError) as caught:
        op.solve_extended(*problem, least - 0.1, engine)
    assert caught.value.least_cost == pytest.approx(least, abs=1e-12)
    assert op.solve_extended(*problem, least + 1e-6, engine).cost <= least + 2e-6


@pytest.mark.parametrize("engine", ["parametric", "highs"])
def test_malformed_boxes_and_signals_are_refused(engine):
    reward, cost, centre, radius, initial = draw(13, (4, 4, 3), "dense", "narrow")
    spoilt = radius.copy()
    spoilt[0, 0, 0, 0] = -1.0

    def solve(reward=reward, cost=cost, centre=centre, radius=radius, initial=initial, limit=9.0):
        return op.solve_extended(reward, cost, centre, radius, initial, limit, engine)

    assert min(reward.shape[:2]) > 1
    with refused("OutOfRange", "radius[0, 0, 0, 0] is -1"):
        solve(radius=spoilt)
    with refused("NotADistribution", "transitions + radius[0, 0, 0] sums to"):
        solve(centre=0 * centre, radius=0 * radius)
    with refused("NotADistribution", "transitions - radius[0, 0, 0] sums to"):
        solve(centre=0 * centre + 1.0, radius=0 * radius)
    with refused("OutOfRange", "transitions[0, 0, 0, 0] is 2"):
        solve(centre=2 * (centre > -1))
    with refused("ShapeMismatch", "radius has shape"):
        solve(radius=radius[..., :1])
    for spoiling in ({"reward": reward * np.nan}, {"cost": cost[:1, :1]}, {"limit": np.nan}):
        with pytest.raises(op.InvalidInputError):
            solve(**spoiling)
    with pytest.raises(op.InvalidInputError, match="engine is 'simplex'"):
        op.solve_extended(reward, cost, centre, radius, initial, 1.0, "simplex")
