"""Models as UMB files: out and back, from other tools, and refused with the reason."""

import os

import numpy as np
import optpess as op
import pytest
from support import healthy
from support.healthy import refused

umbi_umb = pytest.importorskip("umbi.umb", reason="the extra umb is not installed")

from support import consensus_coin  # noqa: E402 - it needs umbi

# Storm 2.0, at its default precision: multi(R{...}max=? [C<=40], R{...}<=limit [C<=40]) on this file.
STORM_FLIPS, STORM_UNDECIDED, STORM_PRECISION = 11.369735843566716, 63.537150218023264, 1e-4
COIN = {"reward": "flips", "costs": "undecided", "cost_limit": 60.0, "horizon": 40}


@pytest.fixture
def coin(tmp_path):
    """The shared coin in a file of another tool."""
    consensus_coin.write(tmp_path / "coin.umb")
    return tmp_path / "coin.umb"


@pytest.mark.parametrize(
    "model",
    [
        op.zoo.ring(),
        op.zoo.media(),
        op.zoo.inventory(),
        healthy.stationary(noise=op.Gaussian(0.3)),
        healthy.stationary(actions=[[True, False], [True, True]]),
        healthy.stationary(rewards=[[5.0, -3.0], [0.0, 9.0]], reward_range=(-3, 9)),
    ],
    ids=["ring", "media", "inventory", "noise", "missing actions", "units"],
)
def test_a_model_comes_back_as_it_was(model, tmp_path):
    model.to_umb(tmp_path / "model.umb")
    found = op.CMDP.from_umb(tmp_path / "model.umb")
    assert (found.shape, found.noise, found.units) == (model.shape, model.noise, model.units)
    assert found.cost_limits.tolist() == model.cost_limits.tolist()
    assert found.initial.tolist() == model.initial.tolist()
    np.testing.assert_array_equal(found.transitions.to_array(), model.transitions.to_array())
    np.testing.assert_allclose(found.rewards, model.rewards, rtol=1e-15)
    np.testing.assert_allclose(found.costs, model.costs, rtol=1e-15)
    assert (found.actions is None) == (model.actions is None)
    if model.actions is not None:
        np.testing.assert_array_equal(found.actions, model.actions)


def test_several_costs_come_back_in_order(tmp_path):
    model = op.zoo.inventory_stock_out()
    model.to_umb(tmp_path / "model.umb")
    found = op.CMDP.from_umb(tmp_path / "model.umb")
    np.testing.assert_allclose(found.costs, model.costs, rtol=1e-15)
    one = op.CMDP.from_umb(tmp_path / "model.umb", costs="cost_1", cost_limit=model.cost_limits[1])
    np.testing.assert_allclose(one.costs[0], model.costs[1], rtol=1e-15)


@pytest.mark.parametrize("exact", [False, True], ids=["floats", "rationals"])
def test_a_model_of_the_verification_community_has_the_value_that_storm_finds(tmp_path, exact):
    # 272 states is what the benchmark collection of PRISM lists for two processes and K = 2.
    consensus_coin.write(tmp_path / "coin.umb", exact=exact)
    for reward, cost, limit, value in (
        ("flips", "undecided", 60.0, STORM_FLIPS),
        ("undecided", "flips", 11.0, STORM_UNDECIDED),
        ("undecided", "heads", 5.5, STORM_UNDECIDED),
    ):
        names = COIN | {"reward": reward, "costs": cost, "cost_limit": limit}
        model = op.CMDP.from_umb(tmp_path / "coin.umb", **names)
        assert (model.shape, model.noise) == ((40, 272, 2), op.Deterministic())
        assert op.solve(model).value == pytest.approx(value, abs=STORM_PRECISION)
    # 400 choices: of the pairs of a state and an action, the others do not exist.
    assert model.actions.sum() == 400


def test_ranges_are_those_of_the_values_unless_given(coin):
    found = op.CMDP.from_umb(coin, **COIN)
    assert found.units == op.Units((0, 1), ((0, 2),))
    given = op.CMDP.from_umb(coin, **COIN, reward_range=(-1, 4), cost_range=(0, 5))
    assert given.units == op.Units((-1, 4), ((0, 5),))
    assert op.solve(given).value == pytest.approx(op.solve(found).value)


MISTAKES = {
    "no horizon": ({"horizon": None}, ["horizon is not given", "no place"]),
    "no limit": ({"cost_limit": None}, ["cost_limit is not given", "no place"]),
    "no reward": ({"reward": None}, ["reward is not given", "'flips', 'undecided', 'heads'"]),
    "no cost": ({"costs": None}, ["costs is not given", "'flips'"]),
    "unknown": ({"reward": "flip"}, ["reward", "'flip'", "did you mean 'flips'?"]),
    "empty": ({"costs": []}, ["costs is empty"]),
    "limit": ({"cost_limit": 99.0}, ["cost_limit", "99"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_is_missing_or_unknown_is_named(coin, case):
    changes, pieces = MISTAKES[case]
    with pytest.raises(op.InvalidInputError) as caught:
        op.CMDP.from_umb(coin, **(COIN | changes))
    assert all(piece in str(caught.value) for piece in pieces), caught.value


def changed(path, change, *, of_umbi=True):
    """The file with its content changed, and said to be written by umbi or left as it is there."""
    stored = umbi_umb.read(path)
    change(stored)
    umbi_umb.write(stored, path, insert_umbi_metadata=of_umbi)
    return path


def a_game(stored):
    stored.index.transition_system.num_players = 2
    stored.index.transition_system.player_to_name = ["even", "odd"]


def two_starts(stored):
    stored.state_is_initial[1] = True
    stored.index.transition_system.num_initial_states = 2


def short_rewards(stored):
    stored.annotations["rewards"]["flips"]["choices"].pop()


def no_choice(stored):
    stored.state_to_choices[5] = stored.state_to_choices[6]


def in_continuous_time(stored):
    stored.index.transition_system.time = "stochastic"


@pytest.mark.parametrize(
    ("change", "pieces"),
    [
        (a_game, ["game of 2 players"]),
        (two_starts, ["2 initial states"]),
        (short_rewards, ["'flips' has 399 entries for 400 choices"]),
        (no_choice, ["state 5 has no choice"]),
        (in_continuous_time, ["time is stochastic"]),
    ],
)
def test_what_is_no_decision_process_is_refused_with_the_reason(coin, change, pieces):
    with refused(None, str(coin), *pieces):
        op.CMDP.from_umb(changed(coin, change), **COIN)


def test_probabilities_that_do_not_sum_to_one_are_refused(coin):
    def leak(stored):
        stored.branch_to_probability[0] = 0.75

    with pytest.raises(op.InvalidInputError, match="transitions"):
        op.CMDP.from_umb(changed(coin, leak), **COIN)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        op.CMDP.from_umb(tmp_path / "nothing.umb")
    (tmp_path / "text.umb").write_text("mdp")
    with refused(None, "text.umb is not a readable UMB file"):
        op.CMDP.from_umb(tmp_path / "text.umb")
    op.zoo.ring().save(tmp_path / "ring.npz")
    with refused(None, "ring.npz is not a readable UMB file"):
        op.CMDP.from_umb(tmp_path / "ring.npz")
    os.mkfifo(tmp_path / "pipe.umb")
    with refused(None, "a named pipe"):
        op.CMDP.from_umb(tmp_path / "pipe.umb")


def test_a_model_that_changes_from_step_to_step_is_refused_and_an_old_file_stays(tmp_path):
    target = tmp_path / "model.umb"
    op.zoo.ring().to_umb(target)
    before = target.read_bytes()
    with refused(None, "changes from step to step", "CMDP.stationary"):
        healthy.model().to_umb(target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_of_ours_whose_own_part_is_incomplete_is_refused(tmp_path):
    target = tmp_path / "model.umb"
    op.zoo.ring().to_umb(target)
    stored = umbi_umb.read(target)
    del stored.index.file_data.parameters["optpess"]["horizon"]
    umbi_umb.write(stored, target, insert_umbi_metadata=False)
    with refused(None, "file-data.parameters.optpess must hold", "horizon"):
        op.CMDP.from_umb(target)


WRONG_FACTS = {
    "reward": 5,
    "cost": "cost",
    "horizon": "six",
    "cost_limit": [[3.0]],
    "initial": [1.0, "a", 0.0],
    "reward_range": [0.0],
    "cost_ranges": [[0.0, 1.0, 2.0]],
    "num_actions": True,
    "noise": ["Bernoulli"],
}


@pytest.mark.parametrize("name", WRONG_FACTS)
def test_facts_of_the_wrong_type_are_refused_by_name(tmp_path, name):
    # Ended in TypeError, ValueError or KeyError.
    path, wrong = tmp_path / "ring.umb", WRONG_FACTS[name]
    op.zoo.ring().to_umb(path)

    def forge(stored):
        stored.index.file_data.parameters["optpess"][name] = wrong

    with refused(None, str(path), f"parameters.optpess.{name} is {wrong!r}; it must be"):
        op.CMDP.from_umb(changed(path, forge, of_umbi=False))


@pytest.mark.parametrize("count", [1, 3, 10**15])
def test_a_number_of_actions_that_the_file_does_not_name_is_refused(tmp_path, count):
    path = tmp_path / "ring.umb"
    op.zoo.ring().to_umb(path)

    def forge(stored):
        stored.index.file_data.parameters["optpess"]["num_actions"] = count

    with refused(None, str(path), f"names 2 actions; by file-data.parameters.optpess it has {count}"):
        op.CMDP.from_umb(changed(path, forge, of_umbi=False))
