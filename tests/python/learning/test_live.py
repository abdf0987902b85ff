"""Learners driven by hand: actions of their own stream, stops, files, refused episodes."""

import copy

import numpy as np
import optpess as op
import pytest
from support.healthy import refused

from learning import cases

EPISODES, SEED = 300, 3
MARKET = cases.market()
HIGHS = "OptPess-LP, HiGHS"
LEARNERS = cases.every_learner(MARKET, EPISODES, op.Scaled(0.01), seed=SEED)
COMPILED = [name for name in LEARNERS if name != HIGHS]


@pytest.fixture(scope="module")
def traces():
    """The trace of replicate 0 of a run of each learner, by name; HiGHS has that of the own engine."""
    made = {}
    for name in COMPILED:
        learner = cases.every_learner(MARKET, EPISODES, op.Scaled(0.01), seed=99)[name]()
        run = cases.run_of(MARKET, learner, episodes=EPISODES, seed=SEED, trace=True)
        made[name] = run.traces[0]
    return made | {HIGHS: made["OptPess-LP"]}


def drawn(deployment, trace, number):
    """An episode of a trace, with the actions that the deployment draws."""
    states, _, rewards, costs = cases.episode(trace, number)
    return states, cases.actions_of(deployment, states), rewards, costs


def bits(deployment):
    """Every bit of a deployment, with its actions and its coin."""
    mixture, certificate = deployment.mixture, deployment.certificate
    figures = [deployment.optimistic_reward, deployment.biased_cost]
    if certificate is not None:
        figures += [*certificate.costs, *certificate.limits, certificate.repair]
    if mixture is not None:
        figures += [mixture.number, mixture.chosen, *mixture.weights, *mixture.cost_bounds]
    return (
        deployment.episode,
        deployment.source,
        deployment.policy.tobytes(),
        [deployment.action(*place) for place in np.ndindex(deployment.policy.shape[:2])],
        np.array(figures).tobytes(),
    )


# Actions


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_driven_by_hand_draws_the_actions_of_replicate_0_of_a_run_with_its_seed(name, traces):
    trace, learner = traces[name], LEARNERS[name]()
    for number in range(EPISODES):
        episode = drawn(learner.next_policy(), trace, number)
        if name != HIGHS:  # a vertex of its linear program may be another
            assert episode[1] == trace.actions[number].tolist()
        learner.observe(*episode)


def test_among_the_learners_are_policies_with_and_without_chance():
    random = {
        name
        for name, make in LEARNERS.items()
        if (cases.driven(make(), MARKET, EPISODES - 1).next_policy().policy % 1 > 0).any()
    }
    assert random & {"OPDOP", "OptPrimalDualCMDP"}
    assert LEARNERS.keys() - random >= {"AlwaysBaseline", "OptPessPrimalDual"}


@pytest.mark.parametrize("name", ["OPDOP", "OptPessMix", "AlwaysBaseline"])
def test_the_number_of_a_step_draws_one_action_however_often_and_in_whatever_order(name):
    deployment = LEARNERS[name]().next_policy()
    places = list(np.ndindex(deployment.policy.shape[:2]))
    expected = {place: deployment.action(*place) for place in places}
    for place in reversed(places * 2):
        assert deployment.action(*place) == expected[place]
        assert deployment.action(step=np.int8(place[0]), state=np.uint64(place[1])) == expected[place]
        assert type(deployment.action(*place)) is int
        assert deployment.policy[place][expected[place]] > 0


def test_another_seed_draws_other_actions_and_deploys_the_same_policies():
    makers = [cases.every_learner(MARKET, 50, op.Theorem(), seed=seed)["OPDOP"] for seed in (0, 1)]
    first, second = (make().next_policy() for make in makers)
    np.testing.assert_array_equal(first.policy, second.policy)
    actions = []
    for learner in (make() for make in makers):
        actions.append([])
        for _ in range(50):
            actions[-1] += cases.actions_of(learner.next_policy(), [0, 1, 2])
            learner.observe([0, 1, 2], actions[-1][-3:], [0.5] * 3, [0.5] * 3)
    assert actions[0] != actions[1]


def test_actions_have_the_chances_of_the_policy():
    # 3000 draws with a chance of 0.5: six standard deviations, which fails with a chance below 1e-8.
    taken = []
    baseline = op.SafeBaseline(np.full(MARKET.shape, 0.5), op.SafetyMargin(1.2, 1.0))
    learner = op.AlwaysBaseline(
        shape=MARKET.shape, initial=MARKET.initial, baseline=baseline, num_episodes=1000, seed=8
    )
    for _ in range(1000):
        taken.append(cases.actions_of(learner.next_policy(), [0, 1, 2]))
        learner.observe([0, 1, 2], taken[-1], [0.0] * 3, [0.0] * 3)
    taken = np.array(taken)
    assert abs(taken.mean() - 0.5) < 6 * 0.5 / np.sqrt(taken.size)
    assert abs((taken[:, 0] == taken[:, 1]).mean() - 0.5) < 6 * 0.5 / np.sqrt(1000)
    assert abs((taken[1:, 0] == taken[:-1, 2]).mean() - 0.5) < 6 * 0.5 / np.sqrt(999)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_mixture_carries_its_certificate_and_other_sources_carry_their_own(name):
    learner = LEARNERS[name]()
    for number in range(150):
        deployment = learner.next_policy()
        mixture, certificate = deployment.mixture, deployment.certificate
        assert (mixture is not None) == (name.startswith(("OptPessMix", "SOPS")))
        if mixture is not None:
            np.testing.assert_array_equal(certificate.costs, mixture.cost_bounds)
            np.testing.assert_array_equal(certificate.limits, mixture.limits)
            assert certificate.repair == 0.0
        else:
            assert (certificate is not None) == (deployment.source == "PessimisticSet")
        learner.observe(*cases.played(deployment, MARKET, number))


def test_a_deployment_outlives_its_episode():
    learner = LEARNERS["OPDOP"]()
    deployment = learner.next_policy()
    before = bits(deployment)
    learner.observe(*cases.played(deployment, MARKET, 0))
    learner.next_policy()
    assert bits(deployment) == before


# Pending and abandoned episodes


@pytest.mark.parametrize("name", LEARNERS)
def test_a_stop_at_any_point_changes_no_deployment_and_no_learner(name, traces):
    trace, going, stopping = traces[name], LEARNERS[name](), LEARNERS[name]()
    for number in range(120):
        expected = going.next_policy()
        assert stopping.pending is None
        first = stopping.next_policy()
        for _ in range(number % 4):  # not at all, once, and several times
            assert bits(stopping.pending) == bits(first)
            stopping.abandon()
            assert stopping.pending is None
            again = stopping.next_policy()
            assert bits(again) == bits(first)
        assert bits(first) == bits(expected)
        assert cases.stored(stopping) == cases.stored(going)
        episode = drawn(expected, trace, number)
        for learner in (going, stopping):
            learner.observe(*episode)
        assert cases.stored(stopping) == cases.stored(going)
    assert stopping.episodes_observed == 120


@pytest.mark.parametrize("name", LEARNERS)
def test_after_a_stop_verbs_out_of_turn_are_refused_and_change_nothing(name):
    learner = LEARNERS[name]()
    before = cases.stored(learner)
    with refused("OutOfTurn", "abandon", "next_policy comes next", error=op.ProtocolError):
        learner.abandon()
    assert cases.stored(learner) == before
    episode = cases.played(learner.next_policy(), MARKET, 0)
    learner.abandon()
    before = cases.stored(learner)
    for verb in (learner.abandon, lambda: learner.observe(*episode)):
        with refused("OutOfTurn", "next_policy comes next", error=op.ProtocolError):
            verb()
        assert cases.stored(learner) == before
    learner.next_policy()
    learner.observe(*episode)
    assert learner.episodes_observed == 1
    with refused("OutOfTurn", error=op.ProtocolError):
        learner.abandon()


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("played", [0, 150])
def test_a_stopped_learner_shows_what_it_showed_during_the_episode(name, played):
    learner = cases.driven(LEARNERS[name](), MARKET, played)
    stopped = copy.copy(learner)
    for each in (learner, stopped):
        each.next_policy()
    stopped.abandon()
    assert stopped.progress == learner.progress
    for shown in ("estimates", "signals"):
        first, second = getattr(learner, shown), getattr(stopped, shown)
        for table in first.__slots__:
            np.testing.assert_array_equal(getattr(first, table), getattr(second, table))
    assert repr(stopped) == repr(learner)


@pytest.mark.filterwarnings("ignore:.*expected to play the baseline")
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("played", [0, 150])
def test_a_stopped_learner_can_be_simulated_and_forecast_as_if_it_had_not_planned(name, played):
    planned, stopped = (cases.driven(LEARNERS[name](), MARKET, played) for _ in range(2))
    stopped.next_policy()
    stopped.abandon()
    before = cases.stored(stopped)
    first, second = (cases.run_of(MARKET, each, episodes=100, seed=6) for each in (planned, stopped))
    assert cases.same_record(first, second)
    first, second = (op.forecast(MARKET, each) for each in (planned, stopped))
    assert first.would_leave_baseline == second.would_leave_baseline
    assert first.tightening_horizon == second.tightening_horizon
    assert cases.stored(stopped) == before


def test_the_last_episode_can_be_stopped_and_played():
    learner = cases.primal_dual(MARKET, 1)
    first = bits(learner.next_policy())
    learner.abandon()
    assert bits(learner.next_policy()) == first
    learner.observe(*cases.played(learner.pending, MARKET, 0))
    with refused("EpisodesExhausted", error=op.ProtocolError):
        learner.next_policy()
    with refused("OutOfTurn", error=op.ProtocolError):
        learner.abandon()


def test_a_copy_of_a_stopped_learner_deploys_the_same_again():
    learner = cases.driven(LEARNERS["SOPS"](), MARKET, 20)
    first = bits(learner.next_policy())
    learner.abandon()
    twin = copy.copy(learner)
    assert bits(twin.next_policy()) == first
    assert learner.pending is None
    assert bits(learner.next_policy()) == first


# Files


def loaded(learner, path):
    learner.save(path)
    return op.load_learner(path)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("played", [0, 150])
@pytest.mark.parametrize("at", ["planned", "between", "stopped"])
def test_a_learner_comes_back_from_its_file_at_any_point_and_goes_on(name, played, at, tmp_path):
    learner = cases.driven(LEARNERS[name](), MARKET, played)
    if at != "between":
        learner.next_policy()
    if at == "stopped":
        learner.abandon()
    before = cases.stored(learner)
    other = loaded(learner, tmp_path / "learner.npz")
    assert cases.stored(learner) == cases.stored(other) == before
    assert type(other) is type(learner)
    assert repr(other) == repr(learner)
    assert (other.parameters, other.guarantee) == (learner.parameters, learner.guarantee)
    if at == "planned":
        assert bits(other.pending) == bits(learner.pending)
    else:
        assert other.pending is learner.pending is None
    if name == HIGHS:
        learner = copy.copy(learner)  # its linear programs start anew, as those of the other do
    for number in range(played, played + 15):
        deployments = [each.pending or each.next_policy() for each in (learner, other)]
        assert bits(deployments[0]) == bits(deployments[1])
        for each in (learner, other):
            each.observe(*cases.played(deployments[0], MARKET, number))
    assert cases.stored(other) == cases.stored(learner)


def small():
    """The learner with the smallest file."""
    baseline = op.SafeBaseline(np.ones((1, 1, 1)), op.SafetyMargin(0.5, 0.25))
    return op.AlwaysBaseline(shape=(1, 1, 1), initial=[1.0], baseline=baseline, num_episodes=5, seed=1)


@pytest.fixture
def small_file(tmp_path):
    learner = small()
    learner.observe([0], [learner.next_policy().action(0, 0)], [0.5], [0.25])
    learner.next_policy()
    learner.save(tmp_path / "learner.npz")
    return tmp_path / "learner.npz", cases.stored(learner), learner.parameters


def refused_or_same(path, stored, parameters):
    """Whether a file is refused; if not, it must give the same learner."""
    found, message = None, ""
    try:
        found = op.load_learner(path)
    except op.InvalidInputError as error:
        message = str(error)
    if found is None:
        assert str(path) in message
        return True
    assert type(found) is op.AlwaysBaseline
    assert cases.stored(found) == stored
    assert found.parameters == parameters
    return False


def test_a_file_with_a_flipped_byte_is_refused_or_gives_the_same_learner(small_file):
    path, *expected = small_file
    content, count = path.read_bytes(), 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= (0x01, 0x80, 0xFF)[place % 3]
        path.write_bytes(damaged)
        count += refused_or_same(path, *expected)
    assert count > 0.8 * len(content)  # dates and the like are not covered


def test_a_file_cut_short_anywhere_is_refused(small_file):
    path, *expected = small_file
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert refused_or_same(path, *expected), length


def test_files_of_other_things_are_refused_by_name(tmp_path):
    path = tmp_path / "thing.npz"
    MARKET.save(path)
    with refused(None, str(path), "optpess.Learner/2", "optpess.CMDP"):
        op.load_learner(path)
    cases.run_of(MARKET, cases.primal_dual(MARKET, 5)).save(path)
    with refused(None, str(path), "optpess.Learner/2", "optpess.Run"):
        op.load_learner(path)
    path.write_text("a learner")
    with refused(None, str(path), "not a readable .npz file"):
        op.load_learner(path)
    small().save(path)
    with refused(None, str(path), "optpess.Learner/2"):
        op.CMDP.load(path)


def test_paths_that_are_no_file_are_the_file_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        op.load_learner(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError):
        op.load_learner(tmp_path)
    with pytest.raises(FileNotFoundError):
        small().save(tmp_path / "no folder" / "learner.npz")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "learner.npz"
    small().save(path)
    content = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        small().save(path)
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["learner.npz"]


def test_a_path_may_be_a_string(tmp_path):
    small().save(str(tmp_path / "learner.npz"))
    assert op.load_learner(str(tmp_path / "learner.npz")).episodes_observed == 0


# Episodes that cannot have been played


START = [0.5, 0.5, 0.0]  # nobody starts in the last state
STATES = [0, 1, 2]


def learners_to_refuse(**further):
    """A way to make OptPess-LP, OptPess-PrimalDual and OptPess-Mix."""
    shared = {"shape": MARKET.shape, "initial": START, "seed": SEED}
    baseline = cases.baseline_of(MARKET)
    return {
        "LP": lambda: op.OptPessLP(baseline=baseline, num_episodes=50, **shared, **further),
        "PrimalDual": lambda: op.OptPessPrimalDual(
            margin=cases.margin_of(MARKET), num_episodes=50, **shared, **further
        ),
        "Mix": lambda: op.OptPessMix(baseline=baseline, **shared, **further),
    }


def sound(deployment):
    """An episode of what was deployed."""
    actions = cases.actions_of(deployment, STATES)
    return {"states": STATES, "actions": actions, "rewards": [0.0, 0.5, 1.0], "costs": [0.0, 0.5, 1.0]}


def untaken(deployment, step):
    """The sound episode, with an action at a step that the deployed policy never takes."""
    actions = cases.actions_of(deployment, STATES)
    actions[step] = int(deployment.policy[step, STATES[step]].argmin())
    assert deployment.policy[step, STATES[step], actions[step]] == 0
    return {"actions": actions}


RANGES = "it must lie in [0, 1], the learner's"
# name: (what is changed in a sound episode of a deployment, the kind of refusal, pieces of the message)
IMPOSSIBLE = {
    "the first action is never taken": (
        lambda deployment: untaken(deployment, 0),
        "Impossible",
        ["actions[0] is", "in state 0 at step 0 with probability 0", "observe the episode"],
    ),
    "the last action is never taken": (
        lambda deployment: untaken(deployment, 2),
        "Impossible",
        ["actions[2] is", "in state 2 at step 2 with probability 0"],
    ),
    "the first state never is": (
        lambda _: {"states": [2, 1, 2]},
        "Impossible",
        ["states[0] is 2", "an episode starts there with probability 0 (initial)"],
    ),
    "a reward of 50": (
        lambda _: {"rewards": [0.0, 50.0, 0.0]},
        "ObservationOutOfRange",
        ["rewards[1] is 50;", RANGES, "reward_range"],
    ),
    "a reward just above": (
        lambda _: {"rewards": [0.0, 0.0, np.nextafter(1.0, 2.0)]},
        "ObservationOutOfRange",
        ["rewards[2] is 1.0000000000000002;", RANGES],
    ),
    "a cost of -3": (
        lambda _: {"costs": [0.0, 0.0, -3.0]},
        "ObservationOutOfRange",
        ["costs[2] is -3;", RANGES, "cost_range"],
    ),
    "whole numbers": (
        lambda _: {"costs": np.array([2, 0, 0])},
        "ObservationOutOfRange",
        ["costs[0] is 2;"],
    ),
    "a reward of NaN": (lambda _: {"rewards": [np.nan, 0.0, 0.0]}, "NotFinite", ["rewards[0] is NaN"]),
    "a cost of NaN": (lambda _: {"costs": [0.0, np.nan, 0.0]}, "NotFinite", ["costs[1] is NaN"]),
    "an infinite cost": (lambda _: {"costs": [0.0, 0.0, np.inf]}, "NotFinite", ["costs[2] is inf"]),
}


@pytest.mark.parametrize("name", ["LP", "PrimalDual", "Mix"])
@pytest.mark.parametrize("fault", IMPOSSIBLE)
def test_an_episode_that_cannot_have_been_played_is_refused_and_changes_nothing(name, fault):
    change, kind, pieces = IMPOSSIBLE[fault]
    learner, other = (learners_to_refuse()[name]() for _ in range(2))
    for _ in range(12):
        deployment, expected = learner.next_policy(), other.next_policy()
        assert bits(deployment) == bits(expected)
        episode, before = sound(deployment), cases.stored(learner)
        with refused(kind, *pieces):
            learner.observe(**episode | change(deployment))
        assert cases.stored(learner) == before
        assert bits(learner.pending) == bits(deployment)
        for each in (learner, other):
            each.observe(**episode)
    assert cases.stored(learner) == cases.stored(other)
    assert learner.episodes_observed == 12


@pytest.mark.parametrize("name", ["LP", "PrimalDual", "Mix"])
def test_the_ends_of_a_range_belong_to_it(name):
    learner = learners_to_refuse()[name]()
    episode = sound(learner.next_policy()) | {"rewards": [0.0, -0.0, 1.0], "costs": [1.0, -0.0, 0.0]}
    learner.observe(**episode)
    assert learner.estimates.rewards.max() == learner.estimates.costs.max() == 1.0


@pytest.mark.parametrize("name", ["LP", "PrimalDual", "Mix"])
def test_stated_noise_may_leave_the_ranges_as_far_as_noise_goes(name):
    noisy = {"variance_proxy": 0.5} if name == "Mix" else {"bounded_observations": False}
    learner = learners_to_refuse(**noisy)[name]()
    episode = sound(learner.next_policy())
    # Noise of variance proxy 1/2 is refused beyond sqrt(2 * 49 * 1/2) = 7, which it exceeds with a
    # probability of at most exp(-49).
    for argument, value in (("rewards", 50.0), ("rewards", 8.1), ("costs", -7.1), ("costs", -50.0)):
        before = cases.stored(learner)
        with refused("ObservationOutOfRange", f"{argument}[1] is {value:g};", "lie in [-7"):
            learner.observe(**episode | {argument: [0.0, value, 0.0]})
        with refused("NotFinite", f"{argument}[1] is NaN"):
            learner.observe(**episode | {argument: [0.0, np.nan, 0.0]})
        assert cases.stored(learner) == before
    learner.observe(**episode | {"rewards": [-1.5, 0.5, 7.9], "costs": [1.5, -0.7, -6.9]})
    rewards, costs = learner.estimates.rewards, learner.estimates.costs
    assert (rewards.min(), rewards.max()) == (-1.5, 7.9)
    assert (costs.min(), costs.max()) == (-6.9, 1.5)


def test_less_noise_goes_less_far():
    learner = learners_to_refuse(variance_proxy=0.02)["Mix"]()
    episode = sound(learner.next_policy())
    with refused("ObservationOutOfRange", "costs[0] is 2.5;"):
        learner.observe(**episode | {"costs": [2.5, 0.0, 0.0]})
    learner.observe(**episode | {"costs": [2.3, 0.0, 0.0]})


def test_a_rule_for_bounded_observations_refuses_noise_that_leaves_the_range():
    learner = learners_to_refuse(confidence=op.Sharp(), bounded_observations=False)["LP"]()
    episode, before = sound(learner.next_policy()), cases.stored(learner)
    with pytest.raises(op.InvalidInputError, match=r"costs\[.*1\] is 1\.5"):
        learner.observe(**episode | {"costs": [0.0, 1.5, 0.0]})
    assert cases.stored(learner) == before
    learner.observe(**episode)


def test_a_policy_of_chance_takes_any_action_that_it_may_take():
    # Not only the one that the learner's own stream draws: some have their own dice.
    learner = LEARNERS["OPDOP"]()
    deployment = learner.next_policy()
    others = [1 - action for action in cases.actions_of(deployment, STATES)]
    learner.observe(STATES, others, [0.0] * 3, [0.0] * 3)
    assert learner.episodes_observed == 1


def test_several_costs_are_refused_by_constraint_and_step():
    margins = op.SafetyMargin([1.2, 1.0], [0.5, 0.25])
    learner = op.OptPessMix(
        shape=MARKET.shape, initial=START, baseline=op.SafeBaseline(cases.always_first(MARKET), margins)
    )
    episode, before = sound(learner.next_policy()), cases.stored(learner)
    costs = np.zeros((2, 3))
    costs[1, 2] = -3
    with refused("ObservationOutOfRange", "costs[1, 2] is -3;", RANGES, "cost_range"):
        learner.observe(**episode | {"costs": costs})
    assert cases.stored(learner) == before
    learner.observe(**episode | {"costs": np.ones((2, 3))})


def test_a_deployment_shows_the_members_of_its_mixture_and_one_policy_has_none():
    deployment = cases.every_learner(cases.market(), 10, op.Theorem())["OptPessMix"]().next_policy()
    assert deployment.members == deployment.mixture.members
    assert deployment.weights.tolist() == [member.weight for member in deployment.members]
    chosen = deployment.members[deployment.chosen]
    np.testing.assert_array_equal(chosen.policy, deployment.policy)
    alone = cases.optpess_lp(cases.market(), 10).next_policy()
    assert (alone.members, alone.weights.size, alone.chosen) == ((), 0, None)
