"""Learners that a run gives back, runs that are joined, files that are run again."""

import copy
import dataclasses
import pickle

import numpy as np
import optpess as op
import pytest

from learning import cases

MARKET = cases.market()
EPISODES, STOP = 300, 240
LEARNERS = cases.every_learner(MARKET, EPISODES, op.Scaled(0.02))
del LEARNERS["OptPess-LP, HiGHS"]  # it is driven by hand


# Learners


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_goes_on_as_the_uninterrupted_run_does(name):
    learner = LEARNERS[name]()
    options = {"replicates": [0, 1, 5, 7], "seed": 3}
    whole = cases.run_of(MARKET, learner, episodes=EPISODES, trace=True, **options)
    part = cases.run_of(MARKET, learner, episodes=STOP, **options)
    assert learner.episodes_observed == 0
    for mine, last, trace in zip(part.learners, whole.learners, whole.traces, strict=True):
        assert type(mine) is type(learner)
        assert mine.parameters == learner.parameters
        assert mine.episodes_observed == STOP
        for number in range(STOP, EPISODES):
            deployment = mine.next_policy()
            assert deployment.source.startswith("Baseline") == trace.on_baseline[number]
            if deployment.mixture is None:
                value = op.evaluate(
                    deployment.policy, MARKET.rewards, MARKET.transitions, MARKET.initial
                )
                assert value == pytest.approx(trace.deployed_value[number], rel=1e-12)
            mine.observe(*cases.episode(trace, number))
        # What they know and what they toss is the same; the plain and the fast code leave other figures
        # of the last plan behind, which the next plan overwrites.
        assert mine.episodes_observed == last.episodes_observed
        for ours, theirs in zip(
            dataclasses.astuple(mine.estimates), dataclasses.astuple(last.estimates), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        assert mine._inner.multiplier == last._inner.multiplier
        if mine.num_episodes is None:
            plans = [copy.copy(each).next_policy() for each in (mine, last)]
            assert plans[0].policy.tobytes() == plans[1].policy.tobytes()
            assert plans[0].mixture.chosen == plans[1].mixture.chosen


def test_the_learners_of_a_batch_are_those_of_single_replicates():
    learner = cases.primal_dual(MARKET, EPISODES)
    batch = cases.run_of(MARKET, learner, episodes=STOP, replicates=9, threads=1)
    traced = cases.run_of(MARKET, learner, replicates=9, trace=True)
    for number, mine in enumerate(batch.learners):
        alone = cases.run_of(MARKET, learner, episodes=STOP, replicates=[number], trace=True)
        (other,) = alone.learners
        for each in (mine, other):
            for episode in range(STOP, STOP + 5):
                each.next_policy()
                each.observe(*cases.episode(traced.traces[number], episode))
        assert cases.stored(mine) == cases.stored(other)


def test_another_run_goes_on_from_a_learner_and_leaves_it_alone():
    first = cases.run_of(MARKET, cases.primal_dual(MARKET, EPISODES), episodes=100, seed=1)
    (learner,) = first.learners
    before = cases.stored(learner)
    second = cases.run_of(MARKET, learner, seed=2)
    assert cases.stored(learner) == before
    assert second.episodes[-1] == EPISODES - 100
    assert second.learners[0].episodes_observed == EPISODES


def test_learners_are_kept_unless_they_are_many(monkeypatch):
    learner = cases.primal_dual(MARKET, 10)
    kept = cases.run_of(MARKET, learner, replicates=3)
    assert len(kept.learners) == 3
    dropped = cases.run_of(MARKET, learner, replicates=3, learners=False)
    with pytest.raises(op.InvalidInputError, match="pass learners=True to simulate"):
        _ = dropped.learners
    assert cases.same_record(kept, dropped)
    monkeypatch.setattr("optpess.run.simulate._MAX_KEPT", 3 * 54 - 1)
    with pytest.raises(op.InvalidInputError, match="kept no learners"):
        _ = cases.run_of(MARKET, learner, replicates=3).learners
    assert len(cases.run_of(MARKET, learner, replicates=3, learners=True).learners) == 3
    assert len(cases.run_of(MARKET, learner, replicates=2).learners) == 2
    monkeypatch.setattr("optpess.run.simulate._MAX_KEPT", 0)
    assert len(cases.run_of(MARKET, learner).learners) == 1


def test_learners_are_not_saved_with_a_run(tmp_path):
    run = cases.run_of(MARKET, cases.primal_dual(MARKET, 10))
    run.save(tmp_path / "run.npz")
    with pytest.raises(op.InvalidInputError, match="not saved with a run"):
        _ = op.load_run(tmp_path / "run.npz").learners


# Runs that are joined


@pytest.mark.parametrize("name", ["OptPess-LP", "OptPessPrimalDual", "OptPessMix"])
def test_joined_runs_are_the_run_of_all_replicates(name, tmp_path):
    learner = LEARNERS[name]()
    options = {"seed": 4, "episodes": EPISODES, "trace": True, "audit": True}
    whole = cases.run_of(MARKET, learner, replicates=[6, 0, 2], **options)
    parts = [cases.run_of(MARKET, learner, replicates=each, **options) for each in ([6], [0, 2])]
    joined = op.Run.concat(parts)
    assert joined.same_as(whole)
    assert cases.same_record(joined, whole)
    assert len(joined.traces) == len(joined.audits) == len(joined.learners) == 3
    assert [each.episodes_observed for each in joined.learners] == [EPISODES] * 3
    parts[0].save(tmp_path / "part.npz")
    mixed = op.Run.concat((op.load_run(tmp_path / "part.npz"), parts[1]))
    assert mixed.same_as(whole)
    assert mixed.traces is None
    assert op.Run.concat([whole]).same_as(whole)


def parts():
    """Runs that can be joined with the first, but for one thing."""
    learner = cases.primal_dual(MARKET, EPISODES)
    options = {"seed": 4, "replicates": [1], "episodes": 50}
    fed = cases.run_of(MARKET, cases.primal_dual(MARKET, EPISODES), episodes=7).learners[0]
    other = op.CMDP(MARKET.transitions, 0.999 * MARKET.rewards, MARKET.costs[0], 1.2, MARKET.initial)
    small = cases.primal_dual(MARKET, EPISODES, failure_probability=0.01)
    lp = cases.optpess_lp(MARKET, EPISODES, confidence=op.Scaled(0.02))
    return {
        "failure_probability = 0.01": cases.run_of(MARKET, small, **options),
        "algorithm = 'OptPess-LP'": cases.run_of(MARKET, lp, **options),
        "seed = 5": cases.run_of(MARKET, learner, **options | {"seed": 5}),
        "episodes = 51": cases.run_of(MARKET, learner, **options | {"episodes": 51}),
        "another optimal_value": cases.run_of(other, learner, **options),
        "had seen other episodes": cases.run_of(MARKET, fed, **options),
        "replicate 0 is in several runs": cases.run_of(
            MARKET, learner, **options | {"replicates": [2, 0]}
        ),
    }


@pytest.mark.parametrize("message", parts())
def test_runs_that_differ_in_more_than_their_replicates_are_refused_by_name(message):
    options = {"seed": 4, "episodes": 50}
    first = cases.run_of(MARKET, cases.primal_dual(MARKET, EPISODES), replicates=1, **options)
    with pytest.raises(op.InvalidInputError, match=message):
        op.Run.concat([first, parts()[message]])


@pytest.mark.parametrize("runs", [[], [3], "ab"])
def test_what_is_no_sequence_of_runs_is_refused(runs):
    with pytest.raises(op.InvalidInputError, match="runs"):
        op.Run.concat(runs)


def test_a_single_run_is_met_with_what_is_expected():
    run = cases.run_of(MARKET, cases.primal_dual(MARKET, 10))
    with pytest.raises(op.InvalidInputError, match="a single Run"):
        op.Run.concat(run)


# Files that are run again


@pytest.mark.parametrize("name", LEARNERS)
def test_a_file_is_run_again_to_the_bit(name, tmp_path):
    learner, path = LEARNERS[name](), tmp_path / "run.npz"
    cases.run_of(MARKET, learner, episodes=60, replicates=[3, 1], seed=8, audit=True).save(path)
    again = op.reproduce(path, progress=False, threads=2)
    assert again.identical
    assert again.run.same_as(again.stored)
    assert str(again).startswith("identical: ")
    assert again.run.replicates.tolist() == [3, 1]
    assert set(again.stored.versions) == {"optpess", "numpy", "python"}
    # A record that was read can be saved, and run, again.
    again.stored.save(tmp_path / "copy.npz")
    assert op.reproduce(tmp_path / "copy.npz", progress=False).identical


def test_a_run_from_a_learner_that_knows_something_is_run_again(tmp_path):
    path = tmp_path / "run.npz"
    (learner,) = cases.run_of(MARKET, LEARNERS["OptPessMix"](), episodes=100).learners
    cases.run_of(MARKET, learner, episodes=50, seed=1).save(path)
    learner.next_policy()  # the run has a copy of its own
    assert op.reproduce(path, progress=False).identical


def test_a_sparse_stationary_model_with_two_limits_is_run_again(tmp_path):
    problem = op.zoo.problem("ring")
    ring = problem.model
    rewards, costs = ring.stored_rewards(), ring.stored_costs()
    rows = ring.transitions.to_array().reshape(-1, ring.shape.num_states)
    offsets = np.concatenate([[0], np.cumsum((rows > 0).sum(axis=1))])
    sparse = op.Transitions.sparse(
        offsets,
        np.nonzero(rows)[1],
        rows[rows > 0],
        num_states=ring.shape.num_states,
        num_actions=ring.shape.num_actions,
    )
    model = op.CMDP.stationary(
        sparse,
        rewards,
        np.concatenate([costs, costs / 2]),
        [3.0, 2.0],
        ring.initial,
        horizon=ring.shape.horizon,
        noise=op.Uniform(0.0),
    )
    cost = float(problem.safe_costs[0])
    margins = [op.SafetyMargin(3.0, cost + 1e-9), op.SafetyMargin(2.0, cost / 2 + 1e-9)]
    learner = op.OptPessMix(
        shape=model.shape,
        initial=model.initial,
        baseline=op.SafeBaseline(problem.safe_policy, margins),
        knowledge=op.Knowledge(stationary=True),
    )
    cases.run_of(model, learner, episodes=40).save(tmp_path / "run.npz")
    again = op.reproduce(tmp_path / "run.npz", progress=False)
    assert again.identical
    assert again.run.deployed_cost.shape[-1] == 2


def test_a_record_that_was_changed_is_told_apart(tmp_path):
    run = cases.run_of(MARKET, cases.primal_dual(MARKET, 20))
    changed = run.reward_regret.copy()
    changed[0, 3] = np.nextafter(changed[0, 3], np.inf)
    versions = {"optpess": "0.0", "numpy": "1.0", "python": "2.7"}
    spoilt = dataclasses.replace(run, reward_regret=changed, versions=versions)
    assert not spoilt.same_as(run)
    spoilt.save(tmp_path / "run.npz")
    again = op.reproduce(tmp_path / "run.npz", progress=False)
    assert not again.identical
    assert again.differences == ("reward_regret",)
    assert str(again).startswith("different in reward_regret: OptPess-PrimalDual")
    assert "recorded with optpess 0.0, numpy 1.0, python 2.7, run again with optpess" in str(again)


@pytest.mark.parametrize("lost", ["model_rewards", "learner_state", "model_format"])
def test_a_file_without_part_of_its_origin_is_read_but_not_run_again(lost, tmp_path):
    path = tmp_path / "run.npz"
    cases.run_of(MARKET, cases.primal_dual(MARKET, 20)).save(path)
    with np.load(path) as sound:
        arrays = {name: array for name, array in sound.items() if name != lost}
    np.savez(path, **arrays)
    assert op.load_run(path).episodes[-1] == 20
    if lost == "model_format":  # nothing rests on it
        assert op.reproduce(path, progress=False).identical
        return
    with pytest.raises(op.InvalidInputError, match=r"run\.npz: the model or the learner cannot be rest"):
        op.reproduce(path, progress=False)


def test_a_damaged_learner_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    cases.run_of(MARKET, cases.primal_dual(MARKET, 20)).save(path)
    with np.load(path) as sound:
        arrays = dict(sound)
    arrays["learner_state"][5] ^= 1
    np.savez(path, **arrays)
    with pytest.raises(op.InvalidInputError, match="checksum"):
        op.reproduce(path, progress=False)


def test_a_reproduction_has_the_attributes_of_its_run_and_can_be_pickled(tmp_path):
    cases.run_of(MARKET, cases.primal_dual(MARKET, 20)).save(tmp_path / "run.npz")
    again = op.reproduce(tmp_path / "run.npz", progress=False)
    assert again.reward_regret is again.run.reward_regret
    twin = pickle.loads(pickle.dumps(again))
    assert twin.identical
    np.testing.assert_array_equal(twin.reward_regret, again.reward_regret)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = again.no_such_thing
