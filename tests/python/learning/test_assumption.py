"""Assumption 2.2 against the truth: a safe policy that is not as safe as the learner was told."""

import linecache

import numpy as np
import optpess as op
import pytest
from support import healthy

from learning import cases

PAIR = op.zoo.pair()
LIMIT = float(PAIR.cost_limits[0])
EPISODES = 1000


def costly(model):
    """The policy that always takes the last action, and its cost, which is above the limit."""
    policy = np.zeros(model.shape)
    policy[:, :, -1] = 1.0
    cost = op.evaluate(policy, model.costs[0], model.transitions, model.initial)
    assert cost > model.cost_limits[0]
    return policy, cost


def told(margin_or_none):
    """A baseline that costs more than the limit, and what is told of it."""
    policy, _ = costly(PAIR)
    if margin_or_none is None:
        return op.SafeBaseline.estimated(policy, LIMIT)
    return op.SafeBaseline(policy, margin_or_none)


def learners(margin):
    """Learners with a guarantee that rests on a baseline; without a margin, its cost is estimated."""
    given = {"shape": PAIR.shape, "initial": PAIR.initial, "num_episodes": EPISODES}
    baseline = told(margin)
    yield op.OptPessLP(baseline=baseline, **given)
    yield op.AlwaysBaseline(baseline=baseline, **given)
    if margin is not None:
        yield op.CUCRL(transitions=PAIR.transitions, baseline=baseline, **given)


@pytest.mark.parametrize("margin", [op.SafetyMargin(LIMIT, 0.135), None], ids=["told", "estimated"])
def test_a_baseline_that_is_not_as_safe_as_told_voids_the_guarantee_of_the_record(margin, tmp_path):
    _, cost = costly(PAIR)
    for learner in learners(margin):
        assert isinstance(learner.guarantee, op.ZeroViolation)  # the learner cannot know
        with pytest.warns(op.GuaranteeWarning, match="Assumption 2.2.*no guarantee holds"):
            run = cases.run_of(PAIR, learner, audit=True)
        if not isinstance(learner, op.CUCRL):  # which leaves the baseline after some episodes
            assert run.violating_episodes[0] == EPISODES
        assert run.guarantee is None
        assert f"the baseline costs {cost}" in run.void_because
        assert ("at most 0.135" if margin else f"less than {LIMIT}") in run.void_because
        assert run.void_because in repr(run)
        finding = run.audits[0]["SafetyAssumption"]
        assert (finding.made, finding.failed, finding.first_failure) == (1, 1, 0)
        assert finding.worst_excess == pytest.approx(cost - (0.135 if margin else LIMIT), abs=1e-6)
        run.save(tmp_path / "run.npz")
        again = op.load_run(tmp_path / "run.npz")
        assert (again.guarantee, again.void_because) == (None, run.void_because)
        assert again.audits == run.audits


def test_the_warning_is_shown_at_the_line_that_simulates():
    learner = next(learners(op.SafetyMargin(LIMIT, 0.135)))
    with pytest.warns(op.GuaranteeWarning) as caught:
        op.simulate(PAIR, learner, progress=False)  # the line that is shown
    shown = [each for each in caught if each.category is op.GuaranteeWarning]
    assert len(shown) == 1
    assert "the line that is shown" in linecache.getline(shown[0].filename, shown[0].lineno)


@pytest.mark.filterwarnings("ignore:no policy costs less")
def test_a_safe_cost_that_no_policy_attains_voids_the_guarantee_of_primal_dual():
    least = float(op.solve_least_cost(PAIR).costs[0])
    assert least > 0.01
    learner = cases.primal_dual(PAIR, 100, margin=op.SafetyMargin(LIMIT, least / 2))
    run = cases.run_of(PAIR, learner, audit=True)
    assert run.guarantee is None
    assert f"no policy costs less than {least}" in run.void_because
    assert run.audits[0]["SafetyAssumption"].failed == 1
    true = cases.primal_dual(PAIR, 100, margin=op.SafetyMargin(LIMIT, least))
    run = cases.run_of(PAIR, true, audit=True)
    assert run.guarantee == true.guarantee
    assert run.void_because is None
    assert run.audits[0]["SafetyAssumption"] == op.Finding(1, 0, None, 0.0)


@pytest.mark.parametrize(("more", "holds"), [(-1e-6, False), (-1e-12, True), (0.0, True), (1e-3, True)])
@pytest.mark.filterwarnings("ignore::optpess.GuaranteeWarning")
def test_a_cost_above_the_told_one_by_rounding_is_no_contradiction(more, holds):
    cost = op.evaluate(cases.always_first(PAIR), PAIR.costs[0], PAIR.transitions, PAIR.initial)
    baseline = op.SafeBaseline(cases.always_first(PAIR), op.SafetyMargin(LIMIT, cost + more))
    run = cases.run_of(PAIR, cases.optpess_lp(PAIR, 100, baseline=baseline))
    assert (run.guarantee == op.ZeroViolation(1 - cases.DELTA)) == holds
    assert (run.void_because is None) == holds


def test_a_baseline_that_costs_exactly_the_limit_is_not_below_it():
    # One state, one action, a cost of 1/2 at each of two steps: exactly the limit, in binary too.
    model = op.CMDP.stationary(np.ones((1, 1, 1)), [[0.5]], [[0.5]], 1.0, [1.0], horizon=2)
    policy = np.ones((2, 1, 1))
    given = {"shape": model.shape, "initial": [1.0], "num_episodes": 10}
    learner = op.OptPessLP(baseline=op.SafeBaseline.estimated(policy, 1.0), **given)
    with pytest.warns(op.GuaranteeWarning, match="costs 1 in this model.*less than 1 "):
        run = cases.run_of(model, learner, audit=True)
    assert run.guarantee is None
    assert run.audits[0]["SafetyAssumption"].failed == 1
    assert run.audits[0]["SafetyAssumption"].worst_excess > 0


def test_a_scaled_learner_is_told_of_a_broken_claim_too():
    baseline = told(op.SafetyMargin(LIMIT, 0.135))
    learner = cases.optpess_lp(PAIR, 100, baseline=baseline, confidence=op.Scaled(0.1))
    with pytest.warns(op.GuaranteeWarning):
        run = cases.run_of(PAIR, learner)
    assert run.void_because is not None


def test_an_audit_in_the_middle_names_the_first_episode_it_saw():
    learner = cases.optpess_lp(PAIR, 100, baseline=told(op.SafetyMargin(LIMIT, 0.135)))
    with pytest.warns(op.GuaranteeWarning):
        trace = cases.run_of(PAIR, learner, trace=True, episodes=7).traces[0]
    cases.fed(learner, trace, 7)
    with pytest.warns(op.GuaranteeWarning):
        run = cases.run_of(PAIR, learner, audit=True)
    assert run.audits[0]["SafetyAssumption"].first_failure == 7


def test_the_table_of_a_comparison_shows_that_nothing_is_guaranteed():
    with pytest.warns(op.GuaranteeWarning):
        found = op.compare(PAIR, {"told": next(learners(op.SafetyMargin(LIMIT, 0.135)))})
    assert found.table[0]["guarantee"] is None


def test_a_model_of_another_shape_is_refused_before_anything_is_compared():
    with healthy.refused("ShapeMismatch", "learner"):
        cases.run_of(cases.market(), cases.primal_dual(PAIR, 10))


def test_a_reason_that_is_no_text_is_refused(tmp_path):
    run = cases.run_of(PAIR, cases.primal_dual(PAIR, 10))
    object.__setattr__(run, "void_because", 7)
    run.save(tmp_path / "wrong.npz")
    with pytest.raises(op.InvalidInputError, match="does not hold a run"):
        op.load_run(tmp_path / "wrong.npz")


# Models in units


def in_units(low=0.5, width=10.0):
    """The pair with costs in units of their own, and its limit."""
    limit = 2 * low + width * LIMIT
    model = op.CMDP.stationary(
        PAIR.transitions,
        PAIR.stored_rewards(),
        low + width * PAIR.stored_costs(),
        limit,
        PAIR.initial,
        horizon=2,
        cost_range=(low, low + width),
    )
    return model, limit


@pytest.mark.parametrize("known", [True, False], ids=["told", "estimated"])
def test_a_broken_claim_is_told_in_the_units_of_the_model(known):
    model, limit = in_units()
    policy, cost = costly(model)
    assert cost == pytest.approx(13.4)
    baseline = op.SafeBaseline.estimated(policy, limit)
    if known:
        baseline = op.SafeBaseline(policy, op.SafetyMargin(limit, 3.5))
    given = {"shape": model.shape, "initial": model.initial, "cost_range": (0.5, 10.5)}
    learners = [op.OptPessMix(baseline=baseline, **given)]
    learners += [op.OptPessLP(baseline=baseline, num_episodes=10, **given)]
    for learner in learners:
        with pytest.warns(op.GuaranteeWarning, match=r"the baseline costs 13\.4 in this model"):
            run = op.simulate(model, learner, episodes=10, progress=False)
        claim = "at most 3.5" if known else f"less than {limit:g}"
        told = f"the learner was told that it costs {claim}"
        assert run.void_because == f"the baseline costs 13.4 in this model; {told}"
        assert run.guarantee is None


def test_a_margin_that_no_policy_attains_is_told_in_the_units_of_the_model():
    model, limit = in_units()
    least = float(op.solve_least_cost(model).costs[0])
    learner = op.OPDOP(
        shape=model.shape,
        initial=model.initial,
        num_episodes=10,
        margin=op.SafetyMargin(limit, least - 0.25),
        cost_range=(0.5, 10.5),
    )
    with pytest.warns(op.GuaranteeWarning, match=f"no policy costs less than {least:.12g} in this"):
        run = op.simulate(model, learner, progress=False)
    assert run.void_because.endswith(f"was told that one costs at most {least - 0.25:.12g}")


def test_with_several_limits_the_claim_that_is_broken_most_is_told_in_its_units():
    pair = op.CMDP.stationary(
        PAIR.transitions,
        PAIR.stored_rewards(),
        np.stack([PAIR.stored_costs()[0], 100 * PAIR.stored_costs()[0]]),
        [LIMIT, 100 * LIMIT],
        PAIR.initial,
        horizon=2,
        cost_range=[(0, 1), (0, 100)],
    )
    policy, _ = costly(PAIR)
    # The first is off by 0.64 parts of its range, the second by 0.84.
    baseline = op.SafeBaseline(policy, [op.SafetyMargin(LIMIT, 0.599), op.SafetyMargin(60.0, 40.0)])
    learner = op.OptPessMix(
        shape=pair.shape, initial=pair.initial, baseline=baseline, cost_range=[(0, 1), (0, 100)]
    )
    with pytest.warns(op.GuaranteeWarning):
        run = op.simulate(pair, learner, episodes=5, progress=False)
    assert run.void_because == (
        "the baseline costs 124 in this model (constraint 1); the learner was told that it costs at "
        "most 40"
    )


def test_a_true_claim_in_units_keeps_the_guarantee():
    model, limit = in_units()
    policy = cases.always_first(model)
    cost = op.evaluate(policy, model.costs[0], model.transitions, model.initial)
    baseline = op.SafeBaseline(policy, op.SafetyMargin(limit, cost))
    given = {"shape": model.shape, "initial": model.initial, "cost_range": (0.5, 10.5)}
    run = op.simulate(model, op.OptPessMix(baseline=baseline, **given), episodes=5, progress=False)
    assert run.void_because is None
    assert run.guarantee is not None
