"""The live learner and the simulated one are the same; copies and both engines too."""

import copy
import pickle

import numpy as np
import optpess as op
import pytest
from support import reference

from learning import cases

EPISODES = 600
MAKERS = {
    "OptPess-LP": lambda: cases.optpess_lp(cases.market(), EPISODES, confidence=op.Scaled(0.02)),
    "OptPess-PrimalDual": lambda: cases.primal_dual(cases.market(), EPISODES),
    "estimated": lambda: cases.optpess_lp(
        cases.market(),
        EPISODES,
        confidence=op.Scaled(0.02),
        baseline=op.SafeBaseline.estimated(
            cases.always_first(cases.market()), 1.2, radius=op.PaperRadius()
        ),
    ),
}


@pytest.fixture(scope="module", params=MAKERS)
def case(request):
    """A way to make the learner, and the trace of its run."""
    make = MAKERS[request.param]
    return make, cases.run_of(cases.market(), make(), seed=3, trace=True).traces[0]


def deployed(learner, trace, numbers):
    """True values, sources and prices of what the learner deploys over the trace."""
    model = cases.market()
    truth = (model.transitions, model.initial)
    rows = []
    for number in numbers:
        price = getattr(learner, "multiplier", 0.0)
        deployment = learner.next_policy()
        value = op.evaluate(deployment.policy, model.rewards, *truth)
        cost = op.evaluate(deployment.policy, model.costs[0], *truth)
        rows.append((value, cost, deployment.source.startswith("Baseline"), price))
        learner.observe(*cases.episode(trace, number))
    return rows


def expected(trace, numbers):
    rows = zip(
        trace.deployed_value, trace.deployed_cost, trace.on_baseline, trace.multiplier, strict=True
    )
    return list(rows)[numbers.start : numbers.stop]


def test_a_replayed_trace_deploys_the_same_policies_bit_for_bit(case):
    make, trace = case
    numbers = range(EPISODES)
    assert deployed(make(), trace, numbers) == expected(trace, numbers)
    if make is not MAKERS["OptPess-PrimalDual"]:
        assert 0 < trace.on_baseline.sum() < EPISODES / 2, "the run should leave the baseline"


@pytest.mark.parametrize(
    "twin",
    [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("between", ["episodes", "plan and observation"])
def test_a_copy_in_the_middle_goes_on_as_the_original_would(case, twin, between):
    make, trace = case
    middle = 450
    learner = cases.fed(make(), trace, middle)
    rest = range(middle, EPISODES)
    if between == "plan and observation":
        learner.next_policy()
        learner = twin(learner)
        learner.observe(*cases.episode(trace, middle))
        rest = range(middle + 1, EPISODES)
    else:
        learner = twin(learner)
    assert type(learner) is type(make())
    assert learner.parameters == make().parameters
    assert deployed(learner, trace, rest) == expected(trace, rest)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_copy_goes_its_own_way(case, twin):
    make, trace = case
    learner = cases.fed(make(), trace, 20)
    before = cases.stored(learner)
    other = twin(learner)
    assert cases.stored(other) == before
    cases.driven(other, cases.market(), 5)
    assert cases.stored(learner) == before
    assert (learner.episodes_observed, other.episodes_observed) == (20, 25)


def test_arrays_a_learner_hands_out_are_copies(case):
    make, trace = case
    learner = cases.fed(make(), trace, 20)
    before = cases.stored(learner)
    known, signals = learner.estimates, learner.signals
    for table in (known.visits, known.transitions, known.rewards, known.costs, signals.cost):
        table.fill(7)
    assert cases.stored(learner) == before


def test_bytes_that_are_no_learner_are_refused():
    learner = MAKERS["OptPess-PrimalDual"]()
    state = learner.__getstate__()
    with pytest.raises(ValueError, match="not a stored learner"):
        learner.__setstate__(state | {"_inner": state["_inner"][:40]})


def test_both_engines_find_plans_of_equal_value_over_two_thousand_episodes():
    model, episodes = cases.market(), 2000
    confidence = op.Scaled(0.02)
    trace = cases.run_of(
        model, cases.optpess_lp(model, episodes, confidence=confidence), trace=True
    ).traces[0]
    ours = cases.optpess_lp(model, episodes, confidence=confidence)
    theirs = cases.optpess_lp(model, episodes, confidence=confidence, engine="highs")
    planned = 0
    for number in range(episodes):
        signals, transitions = ours.signals, ours.estimates.transitions
        found, other = ours.next_policy(), theirs.next_policy()
        assert found.source == other.source
        if found.source == "PessimisticSet":
            planned += 1
            rest = (transitions, model.initial)
            values = [reference.evaluate(each.policy, signals.reward, *rest) for each in (found, other)]
            assert values[0] == pytest.approx(values[1], rel=1e-8)
            for each in (found, other):
                cost = reference.evaluate(each.policy, signals.cost, *rest)
                assert each.certificate.cost == pytest.approx(cost, rel=1e-12)
                # What a repair mixes in is rounding, not a policy.
                assert each.certificate.repair < 1e-6
        for learner in (ours, theirs):
            learner.observe(*cases.episode(trace, number))
    assert planned > episodes / 2
    assert ours.inductions > planned
    np.testing.assert_array_equal(ours.signals.cost, theirs.signals.cost)
