"""The small files that the experiments keep their runs in."""

import numpy as np
import optpess as op
import pytest
from support.experiments import experiment


@pytest.fixture(scope="module")
def curves():
    return experiment("curves")


@pytest.fixture(scope="module")
def runs():
    """A learner with mixtures and a baseline, and one with neither."""
    pair = op.zoo.problem("pair")
    told = {"shape": pair.model.shape, "initial": pair.model.initial}
    free = op.UnconstrainedOptimistic(
        **told, num_episodes=3000, margin=op.SafetyMargin(0.6, 0.135), confidence=op.Scaled(0.1)
    )
    learners = {"mix": op.OptPessMix(**told, baseline=pair.baseline), "free": free}
    found = op.compare(pair.model, learners, episodes=3000, replicates=2, seed=1, progress=False)
    return found.runs


def test_joined_windows_have_the_means_and_the_ends_of_all_episodes(curves):
    pair = op.zoo.problem("pair")
    learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial, baseline=pair.baseline)
    run = op.simulate(
        pair.model, learner, episodes=3000, replicates=2, seed=1, trace=True, progress=False
    )
    thin = curves.thinned(run, 7)
    assert len(thin.episodes) == 7
    assert thin.episodes[[0, -1]].tolist() == run.episodes[[0, -1]].tolist()
    begin = 0
    for point, end in enumerate(thin.episodes):
        costs, values, shares = (
            np.array([getattr(trace, name)[begin:end] for trace in run.traces])
            for name in ("deployed_cost", "deployed_value", "on_baseline")
        )
        assert thin.deployed_cost[:, point, 0] == pytest.approx(costs.mean(axis=1))
        assert thin.deployed_cost_least[:, point, 0] == pytest.approx(costs.min(axis=1))
        assert thin.deployed_cost_greatest[:, point, 0] == pytest.approx(costs.max(axis=1))
        assert thin.deployed_value[:, point] == pytest.approx(values.mean(axis=1))
        assert thin.deployed_value_least[:, point] == pytest.approx(values.min(axis=1))
        assert thin.deployed_value_greatest[:, point] == pytest.approx(values.max(axis=1))
        assert thin.baseline_share[:, point] == pytest.approx(shares.mean(axis=1))
        regret = (run.optimal_value - np.array([t.deployed_value[:end] for t in run.traces])).sum(axis=1)
        assert thin.reward_regret[:, point] == pytest.approx(regret)
        begin = end


def test_a_run_with_few_points_keeps_them_all(curves, runs):
    count = len(runs["mix"].episodes)
    thin = curves.thinned(runs["mix"], count + 100)
    assert thin.episodes.tolist() == runs["mix"].episodes.tolist()
    assert thin.deployed_cost == pytest.approx(runs["mix"].deployed_cost)


def test_a_file_gives_back_the_thinned_runs(curves, runs, tmp_path):
    path = tmp_path / "runs.npz"
    curves.save(path, runs, 20)
    loaded = curves.load(path)
    assert loaded.keys() == runs.keys()
    for name, run in runs.items():
        thin, back = curves.thinned(run, 20), loaded[name]
        assert back.guarantee == thin.guarantee
        assert back.parameters == thin.parameters
        for total in ("violating_episodes", "worst_violation", "cost_limits"):
            assert getattr(back, total).tolist() == getattr(thin, total).tolist()
        assert (back.gain is None) == (thin.gain is None)
        assert (back.weight is None) == (thin.weight is None)
        for curve in ("episodes", "reward_regret", "deployed_cost_greatest", "baseline_share"):
            assert getattr(back, curve) == pytest.approx(getattr(thin, curve), rel=1e-6)
