"""Several learners in one table: every cell is recomputed from the runs."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import optpess as op
import pytest
from optpess.run.arguments import Request

from learning import cases

PAIR = op.zoo.pair()
EPISODES, REPLICATES = 2000, 3


def learners():
    told = {
        "shape": PAIR.shape,
        "initial": PAIR.initial,
        "margin": cases.margin_of(PAIR),
        "num_episodes": EPISODES,
        "confidence": op.Scaled(0.01),
    }
    return {
        "ours": op.OptPessPrimalDual(**told),
        "bonus": op.OptCMDPBonus(**told),
        "free": op.UnconstrainedOptimistic(**told),
        "safe": op.AlwaysBaseline(
            shape=PAIR.shape,
            initial=PAIR.initial,
            baseline=op.SafeBaseline(cases.always_first(PAIR), cases.margin_of(PAIR)),
            num_episodes=EPISODES,
        ),
    }


@pytest.fixture(scope="module")
def found():
    return op.compare(PAIR, learners(), replicates=REPLICATES, seed=4, progress=False)


def test_every_run_is_the_one_simulate_gives(found):
    assert list(found.runs) == list(learners())
    for name, learner in learners().items():
        alone = cases.run_of(PAIR, learner, replicates=REPLICATES, seed=4)
        assert cases.same_record(found.runs[name], alone)


def test_every_cell_follows_from_the_runs(found):
    assert [row["learner"] for row in found.table] == list(found.runs)
    for row in found.table:
        run = found.runs[row["learner"]]
        assert row["regret"] == np.mean(run.reward_regret[:, -1])
        assert row["weak_violation"] == np.mean(run.weak_violation[:, -1])
        assert row["strong_violation"] == np.mean(run.strong_violation[:, -1])
        assert row["violating_episodes"] == np.mean(run.violating_episodes)
        assert row["worst_violation"] == np.max(run.worst_violation)
        assert row["guarantee"] == run.guarantee
        played = run.episodes[-1] * REPLICATES
        assert row["microseconds"] == 1e6 * found.seconds[row["learner"]] / played
        assert row["confidence"] == (None if row["learner"] == "safe" else "Scaled(factor=0.01)")
        curves = {"growth": "reward_regret", "weak": "weak_violation", "strong": "strong_violation"}
        for name, curve in curves.items():
            slopes = run.growth_exponent(of=curve)
            expected = (np.median(slopes), slopes.min(), slopes.max())
            np.testing.assert_array_equal(row[f"{name}_exponent"], expected)
    by_name = {row["learner"]: row for row in found.table}
    assert by_name["free"]["regret"] < 0 < by_name["free"]["strong_violation"]
    assert by_name["safe"]["strong_violation"] == 0
    assert by_name["safe"]["growth_exponent"] == pytest.approx((1.0, 1.0, 1.0))


def test_the_table_can_be_read(found):
    lines = found.to_markdown().splitlines()
    assert len(lines) == 2 + len(found.runs)
    assert {line.count("|") for line in lines} == {15}
    assert lines[-1].startswith("| safe |")
    assert "ZeroViolation(probability=1.0) | 1.00 (1.00 to 1.00) | - | - |" in lines[-1]
    assert "| none | - | 1.0" in next(line for line in lines if line.startswith("| free |"))
    assert repr(found) == "Comparison(ours, bonus, free, safe)"


def test_exponents_are_slopes_of_logarithms_and_only_of_positive_curves(found):
    run = found.runs["free"]
    last = run.episodes >= run.episodes[-1] / 10
    expected = [
        np.polyfit(np.log(run.episodes[last]), np.log(curve[last]), 1)[0]
        for curve in run.strong_violation
    ]
    np.testing.assert_allclose(run.growth_exponent(of="strong_violation"), expected, rtol=1e-9)
    assert np.isnan(run.growth_exponent()).all()  # its regret is negative
    with pytest.raises(op.InvalidInputError, match="of is 'cost'"):
        run.growth_exponent(of="cost")


def test_learners_are_left_as_they_were(found):
    mine = learners()
    before = {name: cases.stored(learner) for name, learner in mine.items()}
    op.compare(PAIR, mine, progress=False)
    assert {name: cases.stored(learner) for name, learner in mine.items()} == before


def test_nothing_cannot_be_compared():
    with pytest.raises(op.InvalidInputError, match="learners is empty"):
        op.compare(PAIR, {})


def test_fewer_episodes_than_are_left_can_be_compared():
    found = op.compare(PAIR, learners(), episodes=7, progress=False)
    assert {int(run.episodes[-1]) for run in found.runs.values()} == {7}


def test_threads_change_no_bit(found):
    again = op.compare(PAIR, learners(), replicates=REPLICATES, seed=4, threads=1, progress=False)
    assert all(again.runs[name].same_as(run) for name, run in found.runs.items())


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_changes_no_bit(found, kind):
    spawn = multiprocessing.get_context("spawn")
    pools = {
        "threads": lambda: ThreadPoolExecutor(2),
        "processes": lambda: ProcessPoolExecutor(1, mp_context=spawn),
    }
    with pools[kind]() as pool:
        given = {"replicates": REPLICATES, "seed": 4, "executor": pool, "progress": False}
        again = op.compare(PAIR, learners(), **given)
        assert pool.submit(int).result() == 0  # it is left open
    assert list(again.runs) == list(found.runs)
    assert all(again.runs[name].same_as(run) for name, run in found.runs.items())
    assert all(again.seconds[name] > 0 for name in found.runs)
    kept, expected = again.runs["bonus"].learners[2], found.runs["bonus"].learners[2]
    assert kept.episodes_observed == expected.episodes_observed == EPISODES


def test_what_a_task_raises_comes_out_and_the_others_are_cancelled():
    class Pool(ThreadPoolExecutor):
        def __init__(self):
            super().__init__(1)
            self.tasks = []

        def submit(self, *given):
            self.tasks.append(super().submit(self.fail))
            return self.tasks[-1]

        @staticmethod
        def fail():
            time.sleep(0.05)
            raise OSError("the disk is full")

    with Pool() as pool, pytest.raises(OSError, match="the disk is full"):
        op.compare(PAIR, learners(), replicates=REPLICATES, executor=pool, progress=False)
    assert sum(task.cancelled() for task in pool.tasks) > 3


def test_what_is_no_executor_is_refused():
    with pytest.raises(op.InvalidInputError, match="executor is 4, of type int; it must be"):
        op.compare(PAIR, learners(), executor=4)


@pytest.mark.parametrize(("threads", "refusal"), [(0, r"\[1, 1024\]"), (2**31, r"\[1, 1024\]")])
def test_a_senseless_number_of_threads_is_refused(threads, refusal):
    # Without a bound, 2^31 threads were asked for, one after the other.
    with pytest.raises(op.InvalidInputError, match=f"threads is {threads}; it must lie in {refusal}"):
        op.compare(PAIR, learners(), threads=threads)


def test_the_threads_are_the_cores_that_the_process_may_use(monkeypatch):
    # The number of the machine's cores was taken, whatever the affinity.
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("the system has no affinities")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert Request.of(1, 0, None).threads == 3
