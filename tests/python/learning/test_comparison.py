"""Several learners in one table: every cell is recomputed from the runs."""

import numpy as np
import optpess as op
import pytest

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


def test_the_comparison_can_be_drawn(found):
    pytest.importorskip("matplotlib", reason="plots are an optional extra")
    assert len(found.plot().axes) == 4


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
