"""Records: exact totals, saving and loading, frames, pictures."""

import dataclasses
import json
import math

import numpy as np
import optpess as op
import pytest

from learning import cases

EPISODES = 1500


LEARNERS = {
    # Next to no bonus: estimates are believed too early, and the limit is broken.
    "unsafe": lambda model: cases.optpess_lp(model, EPISODES, confidence=op.Scaled(1e-6)),
    "priced": lambda model: cases.primal_dual(model, EPISODES),
    "planned": lambda model: cases.optpess_lp(model, EPISODES, confidence=op.Scaled(0.02)),
}


@pytest.fixture(scope="module")
def model():
    return op.zoo.pair()


@pytest.fixture(scope="module")
def runs(model):
    options = {"replicates": 3, "seed": 1, "trace": True, "audit": True}
    return {name: cases.run_of(model, make(model), **options) for name, make in LEARNERS.items()}


@pytest.fixture(scope="module", params=LEARNERS)
def run(request, runs):
    return runs[request.param]


def test_curves_and_totals_are_the_exact_sums_of_the_trace(model, run):
    limit = float(model.cost_limits[0])
    assert run.optimal_value == pytest.approx(op.solve(model).value, rel=1e-12)
    for row, trace in enumerate(run.traces):
        regrets = [run.optimal_value - value for value in trace.deployed_value]
        excess = [cost - limit for cost in trace.deployed_cost]
        positive = [max(each, 0.0) for each in excess]
        for point, episodes in enumerate(run.episodes):
            # Correctly rounded sums, against running sums that are corrected as they go.
            expected = {
                "reward_regret": math.fsum(regrets[:episodes]),
                "weak_violation": max(math.fsum(excess[:episodes]), 0.0),
                "strong_violation": math.fsum(positive[:episodes]),
            }
            for name, value in expected.items():
                found = getattr(run, name)[row, point]
                assert found == pytest.approx(value, rel=1e-15, abs=1e-12), name
        violating = [number for number, each in enumerate(excess) if each > 0]
        assert run.violating_episodes[row] == len(violating)
        assert run.first_violation[row] == (violating[0] if violating else -1)
        assert run.worst_violation[row] == max(positive)
        assert run.baseline_episodes[row] == trace.on_baseline.sum()
        planned = np.flatnonzero(~trace.on_baseline)
        assert run.first_planned[row] == (planned[0] if len(planned) else -1)
        assert run.estimation_episodes[row] == 0
        assert sum(counts[row] for counts in run.plays.values()) == EPISODES
        assert run.plays.get("Baseline", np.zeros(3))[row] == run.baseline_episodes[row]
        # lambda after n episodes is the one the next episode is planned with.
        inside = run.episodes < EPISODES
        np.testing.assert_array_equal(
            run.multiplier[row, inside], trace.multiplier[run.episodes[inside]]
        )


def test_the_three_kinds_of_run_are_what_they_are_called(runs):
    unsafe = runs["unsafe"]
    assert unsafe.violating_episodes.any()
    assert (unsafe.strong_violation > unsafe.weak_violation).any()
    assert runs["priced"].multiplier.all()
    assert not runs["planned"].multiplier.any()
    assert 0 < runs["planned"].baseline_episodes.max() < EPISODES
    assert runs["priced"].plays.keys() == {"Lagrangian"}
    assert runs["planned"].plays.keys() == {"Baseline", "PessimisticSet"}


def test_record_points_are_log_spaced_and_end_with_the_run(run):
    assert run.episodes[0] == 1
    assert run.episodes[-1] == EPISODES
    assert (np.diff(run.episodes) > 0).all()
    assert run.reward_regret.shape == (3, len(run.episodes))


@pytest.mark.parametrize("name", LEARNERS)
def test_slack_and_repairs_are_those_of_the_certificates_of_a_learner_that_sees_the_same(
    model, runs, name
):
    run, certified = runs[name], 0
    for row, trace in enumerate(run.traces):
        learner, found = LEARNERS[name](model), []
        for number in range(EPISODES):
            found.append(learner.next_policy().certificate)
            learner.observe(*cases.episode(trace, number))
        found = [certificate for certificate in found if certificate is not None]
        certified += len(found)
        assert run.least_slack[row] == min((each.least_slack for each in found), default=np.inf)
        assert run.repairs[row] == sum(each.repair > 0.0 for each in found)
        assert run.largest_repair[row] == max((each.repair for each in found), default=0.0)
    assert (certified > 0) == (name != "priced")


def test_a_saved_record_is_read_back_as_it_was(run, tmp_path):
    run.save(tmp_path / "run.npz")
    again = op.load_run(tmp_path / "run.npz")
    assert cases.same_record(run, again)
    assert again.guarantee == run.guarantee
    assert again.parameters == run.parameters
    assert again.optimal_value == run.optimal_value
    assert again.audits == run.audits
    assert again.traces is None
    assert repr(again) == repr(run)


def test_a_record_without_audit_and_with_a_numpy_seed_can_be_saved(model, tmp_path):
    short = cases.run_of(model, cases.primal_dual(model, 5), seed=np.int64(3), replicates=np.int64(2))
    short.save(tmp_path / "run.npz")
    again = op.load_run(tmp_path / "run.npz")
    assert again.audits is None
    assert again.parameters["seed"] == 3
    assert len(again.replicates) == 2


def with_mixtures(run):
    """The record with made-up arrays of mixtures for two constraints."""
    replicates, points = run.reward_regret.shape
    generator = np.random.default_rng(1)
    weight = np.full((replicates, points), 0.25)
    return dataclasses.replace(
        run,
        weight=weight,
        certified_cost=generator.uniform(size=(replicates, points, 2)),
        mixtures=np.arange(1, replicates + 1),
        traces=None,
    )


def test_a_record_of_mixtures_is_read_back_as_it_was(runs, tmp_path):
    run = with_mixtures(runs["planned"])
    run.save(tmp_path / "run.npz")
    again = op.load_run(tmp_path / "run.npz")
    assert cases.same_record(run, again)
    assert not cases.same_record(runs["planned"], again)
    share = run.plays["Baseline"].sum() / (3 * EPISODES)
    assert f"played Baseline {share:.1%}, PessimisticSet {1 - share:.1%}, last weight 0.25" in repr(
        again
    )
    assert "weight" not in repr(runs["planned"])
    assert (again.to_frame().weight == 0.25).all()


MIXTURE_FAULTS = {
    "flat weights": {"weight": np.zeros(3)},
    "too many weights": {"weight": np.zeros((4, 2))},
    "no constraint": {"certified_cost": np.zeros((3, 2))},
    "too many mixtures": {"mixtures": np.zeros(4, dtype=np.int64)},
    "no mixtures": {"mixtures": None},
    "no plays": {"plays": None},
    "plays of other replicates": {"plays": np.zeros((2, 5), dtype=np.int64)},
    "plays of other sources": {"plays": np.zeros((3, 3), dtype=np.int64)},
    "a single play": {"plays": np.array(3)},
}


@pytest.mark.parametrize("fault", MIXTURE_FAULTS)
def test_arrays_of_mixtures_that_do_not_fit_are_refused(runs, tmp_path, fault):
    path = tmp_path / "run.npz"
    with_mixtures(runs["planned"]).save(path)
    with np.load(path) as sound:
        arrays = dict(sound) | MIXTURE_FAULTS[fault]
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(op.InvalidInputError, match="does not hold a run"):
        op.load_run(path)


def spoilt(facts=None, **arrays):
    """Arrays and facts that replace those of a sound file."""
    return arrays | ({} if facts is None else {"facts": np.array(facts)})


FAULTS = {
    "another format": spoilt(format=np.array("optpess.CMDP/1")),
    "no JSON": spoilt("{"),
    "no object": spoilt("[]"),
    "facts missing": spoilt("{}"),
    "unknown guarantee": spoilt(guarantee="Certainty"),
    "empty guarantee": spoilt("[" * 100_000),
    "short curve": spoilt(reward_regret=np.zeros((3, 2))),
    "flat curve": spoilt(multiplier=np.zeros(3)),
    "too many totals": spoilt(repairs=np.zeros(4, dtype=np.int64)),
    "no episodes": spoilt(episodes=np.zeros(0, dtype=np.int64)),
    "whole numbers for real ones": spoilt(safe_cost=np.zeros(3, dtype=np.int64)),
    "an array too many": spoilt(extra=np.zeros(3)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_no_record_is_refused(model, tmp_path, fault):
    path = tmp_path / "run.npz"
    cases.run_of(model, cases.primal_dual(model, 50), replicates=3).save(path)
    with np.load(path) as sound:
        arrays = dict(sound)
    changes = dict(FAULTS[fault])
    if "guarantee" in changes:
        facts = json.loads(str(arrays["facts"])) | {"guarantee": [changes.pop("guarantee"), 0.5]}
        changes["facts"] = np.array(json.dumps(facts))
    np.savez(path, **arrays | changes)
    with pytest.raises(op.InvalidInputError, match=r"run\.npz"):
        op.load_run(path)


@pytest.mark.parametrize("guarantee", [[], {}, 7, ["ZeroViolation"], ["ZeroViolation", "often"]])
def test_a_guarantee_that_cannot_be_read_is_refused(model, tmp_path, guarantee):
    path = tmp_path / "run.npz"
    cases.run_of(model, cases.primal_dual(model, 50)).save(path)
    with np.load(path) as sound:
        arrays = dict(sound)
    facts = json.loads(str(arrays["facts"])) | {"guarantee": guarantee}
    np.savez(path, **arrays | {"facts": np.array(json.dumps(facts))})
    with pytest.raises(op.InvalidInputError, match="does not hold a run"):
        op.load_run(path)


def test_a_file_that_is_not_there_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        op.load_run(tmp_path / "nothing.npz")


def test_a_frame_has_a_row_for_every_replicate_and_record_point(run):
    frame = run.to_frame()
    assert len(frame) == run.reward_regret.size
    last = frame[frame.episodes == EPISODES].set_index("replicate")
    for name in cases.CURVES:
        np.testing.assert_array_equal(last[name], getattr(run, name)[:, -1])


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_the_growth_exponent_of_a_power_law_is_its_power(run, exponent):
    law = np.stack([scale * run.episodes.astype(float) ** exponent for scale in (0.1, 1.0, 30.0)])
    parts = {name: getattr(run, name) for name in run.__dataclass_fields__}
    powers = op.Run(**parts | {"reward_regret": law}).growth_exponent()
    np.testing.assert_allclose(powers, exponent, atol=1e-12)


def test_a_growth_exponent_that_makes_no_sense_is_nan(model, run):
    parts = {name: getattr(run, name) for name in run.__dataclass_fields__}
    none = op.Run(**parts | {"reward_regret": np.zeros_like(run.reward_regret)})
    assert np.isnan(none.growth_exponent()).all()
    single = cases.run_of(model, cases.primal_dual(model, 1))
    assert np.isnan(single.growth_exponent()).all()
