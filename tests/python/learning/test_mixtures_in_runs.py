"""Learners that deploy mixtures, in runs: scores, records and the audit."""

import numpy as np
import optpess as op
import pytest

from learning import cases

EPISODES = 400
SEED = 3


def arguments(model, **further):
    baseline = op.SafeBaseline(cases.always_first(model), cases.margin_of(model))
    shared = {"shape": model.shape, "initial": model.initial, "baseline": baseline}
    return shared | {"failure_probability": cases.DELTA, "seed": SEED} | further


# A live learner tosses the coin of replicate 0 of its seed.
MAKERS = {
    "SOPS": lambda model: op.SOPS(**arguments(model, num_episodes=EPISODES)),
    "OptPessMix": lambda model: op.OptPessMix(**arguments(model)),
}
MODEL = cases.market()


@pytest.fixture(scope="module", params=[name for name in MAKERS if hasattr(op, name)])
def make(request):
    return lambda: MAKERS[request.param](MODEL)


@pytest.fixture(scope="module")
def run(make):
    options = {"replicates": 3, "trace": True, "audit": True}
    return cases.run_of(MODEL, make(), episodes=EPISODES, seed=SEED, **options)


def exact(policy):
    """V(r) and V(c)."""
    signals = (MODEL.rewards, MODEL.costs[0])
    return np.array([op.evaluate(policy, each, MODEL.transitions, MODEL.initial) for each in signals])


def test_a_run_is_scored_by_the_mixtures_of_a_live_learner_that_sees_the_same(make, run):
    live, trace = make(), run.traces[0]
    values, mixtures, sources = {}, [], []
    for number in range(EPISODES):
        deployment = live.next_policy()
        mixture = deployment.mixture
        for member in mixture.members:
            if member.number not in values:
                values[member.number] = exact(member.policy)
        scored = sum(member.weight * values[member.number] for member in mixture.members)
        found = [trace.deployed_value[number], trace.deployed_cost[number]]
        np.testing.assert_allclose(found, scored, rtol=1e-12, atol=1e-14)
        mixtures.append(mixture)
        sources.append(deployment.source)
        live.observe(*cases.episode(trace, number))
    assert run.mixtures[0] == len({mixture.number for mixture in mixtures}) > 1
    assert {name: counts[0] for name, counts in run.plays.items() if counts[0]} == {
        name: sources.count(name) for name in sources
    }
    at_points = [mixtures[episodes - 1] for episodes in run.episodes]
    np.testing.assert_array_equal(run.certified_cost[0], [each.cost_bounds for each in at_points])
    planned = [
        sum(member.weight for member in each.members if not member.source.startswith("Baseline"))
        for each in at_points
    ]
    np.testing.assert_allclose(run.weight[0], planned, rtol=1e-12)


def test_the_record_fits_the_trace_and_the_promise(run):
    assert (run.certified_cost <= MODEL.cost_limits).all()
    assert ((run.weight > 0.0) & (run.weight <= 1.0)).any()
    assert (run.violating_episodes == 0).all()
    for row, trace in enumerate(run.traces):
        assert sum(counts[row] for counts in run.plays.values()) == EPISODES
        assert run.baseline_episodes[row] == trace.on_baseline.sum()
    assert f"last weight {run.weight[:, -1].mean():.3g}" in repr(run)


def test_the_audit_checks_members_and_mixtures_and_no_radius_of_the_paper(run):
    for audit, mixtures in zip(run.audits, run.mixtures, strict=True):
        assert audit["MemberCost"].made > 1
        assert audit["CostDominance"].made == mixtures
        assert audit["MemberCost"].failed == audit["CostDominance"].failed == 0
        for name in ("RewardDeviation", "CostDeviation", "TransitionDeviation", "TransitionBernstein"):
            assert audit[name].made == 0


def test_the_coin_is_that_of_the_replicate(make, run):
    options = {"episodes": EPISODES, "seed": SEED, "threads": 2}
    assert cases.same_record(run, cases.run_of(MODEL, make(), replicates=3, **options))
    alone = cases.run_of(MODEL, make(), replicates=[2], **options)
    assert alone.plays.keys() <= run.plays.keys()
    for name, counts in run.plays.items():
        assert alone.plays.get(name, np.zeros(1))[0] == counts[2]
    assert len({tuple(trace.on_baseline) for trace in run.traces}) == 3


def test_a_record_of_mixtures_is_saved(run, tmp_path):
    run.save(tmp_path / "run.npz")
    assert cases.same_record(run, op.load_run(tmp_path / "run.npz"))
