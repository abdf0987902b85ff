"""Rollouts: what a learner sees of an environment, early ends, units, refusals, results."""

import math
import re
import warnings

import gymnasium as gym
import numpy as np
import optpess as op
import pytest
from optpess.run.rollout import Episode
from support import healthy

from .cases import Track, learner_for, newest

H = 4
FALSE_ALARM = 1e-6  # for all comparisons of a test together


def played(learner, env, episodes=60, **options):
    return op.rollout(learner, env, episodes=episodes, **{"progress": False} | options)


class Watched:
    """An environment that keeps all its episodes."""

    def __init__(self, env):
        self._env, self.episodes = env, []
        self.num_states, self.num_actions = env.num_states, env.num_actions

    def reset(self, seed=None):
        answer = self._env.reset(seed=seed)
        self.episodes.append(self._env.played)
        return answer

    def step(self, action):
        return self._env.step(action)


# What the learner sees


FORMS = {
    "plain": lambda: Track(),
    "gymnasium": lambda: Track("gymnasium", spaces=True),
    "safety": lambda: Track("safety", spaces=True),
    "numbered from elsewhere": lambda: Track("gymnasium", spaces=True, first_state=5, first_action=-3),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_environment_gives_the_same_rollout(form):
    expected, learner = learner_for(Track()), learner_for(Track())
    first, second = played(expected, Track(), 120), played(learner, FORMS[form](), 120)
    assert first.returns.tobytes() == second.returns.tobytes()
    assert first.costs.tobytes() == second.costs.tobytes()
    assert first.lengths.tobytes() == second.lengths.tobytes()
    assert expected._inner.to_bytes() == learner._inner.to_bytes()


def test_a_wrapped_environment_of_gymnasium_is_driven():
    lake = gym.make(newest("FrozenLake"), max_episode_steps=-1)

    class WithCost(gym.Wrapper):
        def step(self, action):
            state, reward, terminated, truncated, info = self.env.step(action)
            return (
                state,
                reward,
                terminated,
                truncated,
                info | {"cost": float(terminated and not reward)},
            )

    env = gym.wrappers.RecordEpisodeStatistics(WithCost(lake))
    shape = op.environments.sizes(env, 10)
    safe = op.policy_from_actions(np.full(shape[:2], 3), num_actions=4)
    learner = op.OptPessMix(
        shape=shape, initial=0, baseline=op.SafeBaseline(safe, op.SafetyMargin(0.2, 0.0))
    )
    result = played(learner, env, 50)
    assert learner.estimates.visits.sum() == 50 * 10
    assert result.parameters["env"] == newest("FrozenLake")
    assert result.parameters["accepts_seed"]


@pytest.mark.parametrize("costs", [1, 2])
def test_the_counts_of_the_learner_are_those_of_the_episodes_continued_in_the_absorbing_end(costs):
    env = Watched(Track(costs=costs))
    learner = learner_for(Track(costs=costs), H)
    result = played(learner, env, 300)
    visits, reward_sums, cost_sums = (np.zeros((H, 4, 2)) for _ in range(3))
    for episode, (total_reward, total_cost, length) in zip(
        env.episodes, zip(result.returns, result.costs, result.lengths, strict=True), strict=True
    ):
        assert len(episode) == length
        assert length == H or episode[-1][4]
        assert total_reward == sum(step[2] for step in episode)
        assert total_cost.tolist() == [sum(step[3][m] for step in episode) for m in range(costs)]
        for time, (state, action, reward, cost, _) in enumerate(episode):
            visits[time, state, action] += 1
            reward_sums[time, state, action] += reward
            cost_sums[time, state, action] += cost[0]
    assert (result.lengths < H).any()
    assert (result.lengths == H).any()
    seen = learner.estimates
    np.testing.assert_array_equal(seen.visits[:, :3], visits[:, :3])
    # The rest of every episode is spent in the end, without reward and cost.
    np.testing.assert_array_equal(
        seen.visits[:, 3].sum(axis=1), [(result.lengths <= time).sum() for time in range(H)]
    )
    assert not seen.rewards[:, 3].any()
    assert not seen.costs[:, 3].any()
    np.testing.assert_allclose(seen.rewards[:, :3] * visits[:, :3], reward_sums[:, :3], atol=1e-9)
    np.testing.assert_allclose(seen.costs[:, :3] * visits[:, :3], cost_sums[:, :3], atol=1e-9)
    # From the end nothing leads elsewhere.
    assert seen.transition_counts[:, 3, :, :3].sum() == 0


class Losses(Track):
    """The track with rewards of -100 to 0."""

    def step(self, action):
        state, reward, cost, ended = super().step(action)
        return state, 100 * reward - 100, cost, ended


@pytest.mark.parametrize("stated", ["by the rollout", "by the learner", "by both"])
def test_no_reward_after_an_early_end_is_0_in_the_units_of_the_environment(stated):
    # With the range (-100, 0), a reward of 0 is the largest: 1 in parts of the range.
    units = {"reward_range": (-100.0, 0.0)}
    learner = learner_for(Losses(), **({} if stated == "by the rollout" else units))
    env = Watched(Losses())
    result = played(learner, env, 300, **({} if stated == "by the learner" else units))
    assert (result.lengths < H).any()
    in_parts = learner._inner.estimates()["rewards"]
    ends = learner.estimates.visits[:, 3] > 0
    assert ends.any()
    assert (in_parts[:, 3][ends] == 1.0).all()
    assert (learner.estimates.rewards[:, 3][ends] == (1.0 if stated == "by the rollout" else 0.0)).all()
    assert (learner._inner.estimates()["costs"][:, 3] == 0.0).all()
    sums = [sum(100 * step[2] - 100 for step in episode) for episode in env.episodes]
    assert result.returns.tolist() == sums


def test_costs_in_the_units_of_the_learner():
    class Euros(Track):
        def step(self, action):
            state, reward, cost, ended = super().step(action)
            return state, reward, 50 * cost, ended

    slow = op.policy_from_actions(np.zeros((H, 4), int), num_actions=2)
    learner = op.OptPessMix(
        shape=op.environments.sizes(Euros(), H),
        initial=[0.5, 0.5, 0, 0],
        baseline=op.SafeBaseline(slow, op.SafetyMargin(75.0, 0.0)),
        cost_range=(0, 50),
    )
    plain = learner_for(Track())
    result, same = played(learner, Euros(), 400), played(plain, Track(), 400)
    np.testing.assert_allclose(result.costs, 50 * same.costs)
    np.testing.assert_allclose(result.certified_costs, 50 * same.certified_costs)
    assert result.cost_limits.tolist() == [75.0]


def test_an_engine_outside_of_the_core_plans_in_a_rollout_too():
    # Went wrong: the plans were those of the compiled engine, whatever the learner was made with.
    learner = learner_for(Track(), kind=op.OptPessLP, confidence=op.Scaled(1e-4), engine="highs")
    result = played(learner, Track(), 30)
    assert "PessimisticSet" in result.sources
    assert learner._highs._program is not None


def test_a_learner_of_the_sizes_of_the_environment_needs_no_end_if_no_episode_ends():
    env = Track(ends=False)
    result = played(learner_for(env, end=False), env)
    assert (result.lengths == H).all()


# Ends that are refused


class Ends(Track):
    """Ends or is truncated after a given step."""

    def __init__(self, step, *, truncated=False):
        super().__init__("gymnasium", ends=False)
        self._step, self._truncated = step, truncated

    def step(self, action):
        state, reward, _, _, info = super().step(action)
        now = len(self.played) == self._step
        return state, reward, now and not self._truncated, now and self._truncated, info


def refused(learner, env, *pieces, error=op.InvalidInputError, episodes=30, **options):
    """Plays until a refusal; the learner is then between two episodes and goes on. Returns the error."""
    with pytest.raises(error) as caught:
        played(learner, env, episodes, **options)
    for piece in pieces:
        assert re.search(re.escape(piece), str(caught.value)), f"{piece!r} not in: {caught.value}"
    assert learner.pending is None
    found = caught.value
    if hasattr(found, "rollout"):
        assert len(found.rollout) == learner.episodes_observed
        assert any("the learner has counted the episodes before it" in note for note in found.__notes__)
    return found


def stored(learner):
    return learner._inner.to_bytes()


def goes_on(learner, make=lambda: learner_for(Track())):
    """Whether a learner that was stopped plays what one that never was plays."""
    count, other = learner.episodes_observed, make()
    if count:
        played(other, Track(), count)
    played(learner, Track(), 40)
    played(other, Track(), 40)
    return stored(learner) == stored(other)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_truncated_before_the_horizon_is_refused_with_its_cause(step):
    learner = learner_for(Track())
    error = refused(
        learner,
        Ends(step, truncated=True),
        f"env truncated an episode after {step} steps, before step 4",
        "a time limit is the likely cause",
        f"max_episode_steps=4, or a learner with horizon {step}",
    )
    assert len(error.rollout) == 0
    assert goes_on(learner)


def test_a_time_limit_of_gymnasium_is_named_as_the_cause():
    class Lake(gym.Wrapper):
        def step(self, action):
            *answer, info = self.env.step(action)
            return *answer, info | {"cost": 0.0}

    env = Lake(gym.make(newest("FrozenLake"), max_episode_steps=3))
    shape = op.environments.sizes(env, 8)
    safe = op.policy_from_actions(np.full(shape[:2], 3), num_actions=4)
    learner = op.OptPessMix(
        shape=shape, initial=0, baseline=op.SafeBaseline(safe, op.SafetyMargin(0.2, 0.0))
    )
    refused(learner, env, "after 3 steps, before step 8", "its time limit is 3 steps")
    assert learner.episodes_observed == 0


def test_truncated_at_the_last_step_is_the_end_of_an_episode():
    learner = learner_for(Track())
    assert (played(learner, Ends(4, truncated=True)).lengths == H).all()
    assert learner.estimates.visits[:, 3].sum() == 0


@pytest.mark.parametrize("step", [1, 3])
def test_an_early_end_without_a_state_for_it_is_refused_with_the_shape_to_use(step):
    env = Ends(step)
    learner = learner_for(env, end=False)
    refused(
        learner,
        env,
        f"terminated an episode after {step} of 4 steps",
        "no state for the end",
        "op.environments.sizes(env, 4)",
    )
    assert learner.episodes_observed == 0


def test_an_end_at_the_last_step_needs_no_state():
    learner = learner_for(Track(), end=False)
    assert (played(learner, Ends(4)).lengths == H).all()


def test_an_early_end_is_refused_if_a_reward_of_0_is_outside_of_the_range():
    learner = learner_for(Track())
    refused(
        learner,
        Ends(2),
        "after the end rewards and costs are 0, but reward_range is (0.125, 1.0): it must contain 0",
        reward_range=(0.125, 1),
    )
    assert goes_on(learner)


# Answers that are refused


class Bad(Track):
    """Answers as a track until a step of an episode, then as it is told."""

    def __init__(self, answer, *, episode=3, step=2, form="gymnasium"):
        super().__init__(form, ends=False)
        self._answer, self._when, self._episode = answer, (episode, step), -1

    def reset(self, **options):
        self._episode += 1
        return super().reset(**options)

    def step(self, action):
        found = super().step(action)
        if (self._episode, len(self.played)) >= self._when:
            return self._answer(*found)
        return found


def changed(place, value):
    def answer(*found):
        return (*found[:place], value, *found[place + 1 :])

    return answer


ANSWERS = {
    "reward above": (changed(1, 50.0), "env.step returned the reward 50 at step 1", "[0, 1]"),
    "reward below": (changed(1, -0.5), "env.step returned the reward -0.5 at step 1", "[0, 1]"),
    "reward NaN": (changed(1, math.nan), "the reward NaN at step 1; it must be finite"),
    "reward infinite": (changed(1, -math.inf), "the reward", "it must be finite"),
    "cost above": (changed(4, {"cost": 1.5}), "the cost 1.5 at step 1", "[0, 1]", "cost_range"),
    "cost below": (changed(4, {"cost": -3}), "the cost -3 at step 1", "[0, 1]", "cost_range"),
    "cost NaN": (changed(4, {"cost": math.nan}), "the cost NaN at step 1; it must be finite"),
    "no cost": (changed(4, {"steps": 3}), "no cost", "info holds 'steps'"),
    "state outside": (changed(0, 3), "the state 3", "3 states, 0 to 2"),
    "state below": (changed(0, -1), "the state -1"),
    "state no number": (changed(0, "left"), "the state 'left'", "must be an integer"),
    "four values": (lambda *found: found[:4], "4 values"),
    "no tuple": (lambda *_: None, "returned None"),
    "other form": (lambda *found: (*found[:2], 0.0, *found[2:]), "another form than at the first step"),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("episode", [0, 3])
def test_a_bad_answer_is_refused_and_the_learner_goes_on(name, episode):
    answer, *pieces = ANSWERS[name]
    learner, env = learner_for(Track()), Bad(answer, episode=episode)
    error = refused(learner, env, *pieces)
    assert learner.episodes_observed == episode
    assert any(f"stopped in episode {episode};" in note for note in error.__notes__)
    other = learner_for(Track())
    if episode:
        played(other, Track(ends=False), episode)
    played(learner, Track(), 40)
    played(other, Track(), 40)
    assert stored(learner) == stored(other)


@pytest.mark.parametrize(
    ("answer", "piece"),
    [
        (changed(1, "much"), "the reward 'much'; it must be a number"),
        (changed(4, {"cost": "dear"}), "the cost 'dear'; it must be a number"),
        (changed(4, {"cost": [0.0, 1.0]}), "2 costs a step; there is 1 limit"),
        (changed(1, 1j), "must be a number"),
        (lambda *found: (*found[:3], {}), "the form of Gym before 0.26"),
    ],
)
def test_a_bad_first_answer_is_refused_in_the_words_of_the_environment(answer, piece):
    refused(learner_for(Track()), Bad(answer, episode=0, step=1), piece)


def test_a_reward_outside_of_the_range_of_the_rollout_names_that_range():
    learner = learner_for(Track())
    pieces = ("it must lie in [-10, 0]", "the reward_range of the rollout")
    refused(learner, Track(), *pieces, reward_range=(-10, 0))
    assert goes_on(learner)


def test_one_cost_for_two_limits_is_refused():
    learner = learner_for(Track(costs=2))
    refused(learner, Track(), "1 cost a step; there are 2 limits")


def test_a_first_state_of_probability_0_is_refused():
    learner = learner_for(Track(), initial=[1.0, 0, 0, 0])
    refused(learner, Track(), "env.reset returned the state 1", "with probability 0", "another initial")
    assert learner.pending is None


@pytest.mark.parametrize("state", [7, "start", None, (1, 2), (0, {}, 3)])
def test_a_bad_first_state_is_refused(state):
    class Lost(Track):
        def reset(self, *, seed=None):
            super().reset(seed=seed)
            return state

    refused(learner_for(Track()), Lost(), "env.reset returned")


class OddError(Exception):
    """An exception without room for attributes."""

    __slots__ = ()

    def __setattr__(self, name, value):
        if name == "rollout":
            raise AttributeError(name)
        super().__setattr__(name, value)


@pytest.mark.parametrize(
    "kind", [ZeroDivisionError, KeyboardInterrupt, SystemExit, StopIteration, OddError]
)
@pytest.mark.parametrize("method", ["reset", "step"])
def test_an_exception_of_the_environment_keeps_its_type(kind, method):
    raised = kind("a bug")

    class Broken(Track):
        count = 0

        def fail(self):
            self.count += 1
            if self.count == 15:
                raise raised

        def reset(self, *, seed=None):
            if method == "reset":
                self.fail()
            return super().reset(seed=seed)

        def step(self, action):
            if method == "step":
                self.fail()
            return super().step(action)

    learner = learner_for(Track())
    assert refused(learner, Broken(), error=kind) is raised
    assert goes_on(learner)


# Arguments


def test_sizes_that_do_not_fit_are_refused():
    class Wide(Track):
        def __init__(self):
            super().__init__()
            self.num_actions = 3

    class Long(Track):
        def __init__(self):
            super().__init__()
            self.num_states = 9

    refused(learner_for(Track()), Wide(), "learner has 2 actions; env has 3")
    refused(learner_for(Track()), Long(), "learner has 4 states; env has 9, and one more")


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"episodes": 0}, "episodes is 0; it must lie in [1, 2^63)"),
        ({"episodes": 2.5}, "episodes is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"seed": "1"}, "seed is '1'"),
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"callback": 3}, "callback is 3; it must be a function of an Episode"),
        ({"checkpoint": 3}, "checkpoint is 3, of type int; it must be a text or a pathlib.Path"),
        ({"log": 3}, "log is 3, of type int; it must be a text or a pathlib.Path"),
        ({"progress": "no"}, "progress is 'no'"),
        ({"checkpoint": "same", "log": "./same"}, "log and checkpoint are the same file"),
    ],
)
def test_bad_arguments_are_refused_and_change_nothing(options, piece, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner = learner_for(Track())
    before = stored(learner)
    refused(learner, Track(), piece, **options)
    assert stored(learner) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"log": "nowhere/log.csv"}, "there is no folder nowhere"),
        ({"checkpoint": "nowhere/rollout.npz"}, "there is no folder nowhere"),
        ({"log": "nowhere/log.csv", "checkpoint": "rollout.npz"}, "there is no folder nowhere"),
        ({"checkpoint": "."}, "is a folder, not a file"),
        ({"log": "."}, "is a folder, not a file"),
    ],
)
def test_a_place_where_no_file_can_be_is_found_before_the_first_episode(
    options, piece, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    learner = learner_for(Track())
    before = stored(learner)
    refused(learner, Track(), piece, error=OSError, **options)
    assert stored(learner) == before
    assert list(tmp_path.iterdir()) == []


def test_swapped_arguments_are_refused_with_their_order():
    with pytest.raises(op.InvalidInputError, match="the learner comes first, then the environment"):
        op.rollout(Track(), learner_for(Track()), episodes=3)


def test_what_is_no_environment_is_refused():
    refused(learner_for(Track()), object(), "has no method reset and no method step")
    refused(learner_for(Track()), Track, "call it to make an environment")


def test_a_pending_learner_is_refused_and_stays_pending():
    learner = learner_for(Track())
    learner.next_policy()
    before = stored(learner)
    with pytest.raises(op.InvalidInputError, match=r"planned episode 0 .* observe, or abandon, first"):
        played(learner, Track())
    assert stored(learner) == before
    learner.abandon()
    assert goes_on(learner)


def test_more_episodes_than_the_learner_has_left_are_refused():
    learner = learner_for(Track(), kind=op.AlwaysBaseline, num_episodes=50)
    refused(learner, Track(), "episodes is 51; the learner has 50 of its 50 episodes left", episodes=51)
    played(learner, Track(), 20)
    refused(learner, Track(), "episodes is 31; the learner has 30 of its 50", episodes=31, log=None)
    assert len(played(learner, Track(), 30)) == 30


def test_another_range_than_the_learners_own_is_refused():
    learner = learner_for(Track(), reward_range=(-1, 1))
    refused(learner, Track(), "the learner's own is (-1.0, 1.0)", reward_range=(0, 2))
    assert learner.episodes_observed == 0


# Seeds


def test_the_seed_and_the_number_decide_the_episode():
    first = played(learner_for(Track()), Track(), 100, seed=4)
    again = played(learner_for(Track()), Track(), 100, seed=4)
    other = played(learner_for(Track()), Track(), 100, seed=5)
    assert first.returns.tobytes() == again.returns.tobytes()
    assert first.returns.tobytes() != other.returns.tobytes()


class Unseeded(Track):
    """A track whose reset takes no seed; it has one stream."""

    def reset(self):
        if not hasattr(self, "random"):
            return super().reset(seed=1)
        self.state, self.played = int(self.random.integers(2)), []
        return self.state


def test_an_environment_that_takes_no_seed_is_played_without():
    result = played(learner_for(Track()), Unseeded(), 50)
    assert len(result) == 50
    assert not result.parameters["accepts_seed"]


def test_without_a_seed_reset_is_called_without_one():
    class Asked(Track):
        asked = ()

        def reset(self, **options):
            self.asked += (options,)
            return super().reset(seed=3)

    env = Asked()
    played(learner_for(env), env, 5, seed=None)
    assert env.asked == ({},) * 5
    env = Asked()
    played(learner_for(env), env, 5, seed=7)
    assert len({options["seed"] for options in env.asked}) == 5
    assert all(0 <= options["seed"] < 2**63 for options in env.asked)


# Callbacks


def test_a_callback_is_told_of_every_episode():
    told = []
    result = played(learner_for(Track()), Track(), 80, callback=told.append)
    assert all(isinstance(each, Episode) for each in told)
    assert [each.number for each in told] == result.episodes.tolist() == list(range(80))
    assert [each.total_reward for each in told] == result.returns.tolist()
    assert [each.total_cost for each in told] == [tuple(cost) for cost in result.costs.tolist()]
    assert [each.length for each in told] == result.lengths.tolist()
    assert [each.source for each in told] == result.sources


def test_a_callback_stops_the_rollout_with_true_and_with_nothing_else():
    learner = learner_for(Track())
    result = played(learner, Track(), 80, callback=lambda episode: episode.number == 9)
    assert len(result) == learner.episodes_observed == 10
    assert len(played(learner, Track(), 20, callback=lambda episode: episode.number)) == 20
    assert len(played(learner, Track(), 20, callback=lambda _: np.float64(1) > 0)) == 1
    assert learner.pending is None


def test_an_exception_of_a_callback_comes_after_its_episode():
    def callback(episode):
        if episode.number == 7:
            raise LookupError("a bug")

    learner = learner_for(Track())
    error = refused(learner, Track(), "a bug", error=LookupError, callback=callback)
    assert len(error.rollout) == 8
    assert goes_on(learner)


def test_a_callback_may_look_and_must_not_move_the_learner():
    learner = learner_for(Track())
    looked = played(learner, Track(), 200, callback=lambda _: learner.estimates and learner.progress)
    assert looked.returns.tobytes() == played(learner_for(Track()), Track(), 200).returns.tobytes()
    with pytest.raises(op.InvalidInputError, match="the callback moved the learner"):
        played(learner, Track(), 5, callback=lambda _: played(learner, Track(), 1))
    assert learner.pending is None


# Results


def test_a_result_is_a_table_of_episodes(tmp_path):
    pandas = pytest.importorskip("pandas")
    result = played(learner_for(Track()), Track(), 90)
    frame = result.to_frame()
    assert list(frame) == ["episode", "return", "cost", "length", "source", "certified_cost"]
    assert frame["return"].tolist() == result.returns.tolist()
    result.to_csv(tmp_path / "episodes.csv")
    read = pandas.read_csv(tmp_path / "episodes.csv")
    pandas.testing.assert_frame_equal(read, frame.astype(read.dtypes))
    summary = result.summary()
    assert summary["mean return"] == result.returns.mean()
    assert summary["cost limits"] == [1.5]
    assert "mean return" in result.to_markdown()
    assert "90 episodes" in repr(result)


@pytest.mark.parametrize("costs", [1, 2])
@pytest.mark.parametrize("episodes", [1, 30, 3000])
def test_a_figure_has_the_costs_the_limit_the_returns_and_what_was_played(costs, episodes):
    pytest.importorskip("matplotlib")
    env = Track(costs=costs)
    result = played(learner_for(env), env, episodes)
    *cost_axes, returns, sources = result.plot().get_axes()
    titles = ["Cost"] if costs == 1 else ["Cost 0", "Cost 1"]
    assert [axis.get_title("left") for axis in cost_axes] == titles
    assert returns.get_title("left") == "Return"
    for axis, limit in zip(cost_axes, result.cost_limits, strict=True):
        assert f"limit {limit:g}" in [text.get_text() for text in axis.texts]
        assert axis.get_ylim()[0] < limit < axis.get_ylim()[1]
    mean = returns.get_lines()[0]
    window = min(episodes, max(20, episodes // 20))
    assert mean.get_xdata()[-1] == episodes
    np.testing.assert_allclose(mean.get_ydata()[-1], result.returns[-window:].mean())
    np.testing.assert_allclose(mean.get_ydata()[0], result.returns[:window].mean())
    assert sorted(text.get_text() for text in sources.texts) == sorted(set(result.sources))


def test_costs_of_two_limits_are_two_columns():
    result = played(learner_for(Track(costs=2)), Track(costs=2), 90)
    assert result.costs.shape == result.certified_costs.shape == (90, 2)
    assert {"cost_0", "cost_1", "certified_cost_0", "certified_cost_1"} <= result.columns().keys()
    assert (result.certified_costs <= result.cost_limits).all()


def test_an_empty_result_says_so():
    learner = learner_for(Track())
    error = refused(learner, Bad(changed(1, 9.0), episode=0), "the reward 9")
    assert len(error.rollout) == 0
    assert "no episode" in repr(error.rollout)
    assert error.rollout.summary()["episodes"] == 0
    assert error.rollout.to_csv is not None
    assert len(error.rollout.columns()["source"]) == 0


def test_many_episodes_are_packed_without_a_change(monkeypatch):
    monkeypatch.setattr("optpess.run.rollout_record._ROWS_TO_PACK", 7)
    monkeypatch.setattr("optpess.run.rollout._SECONDS_BETWEEN_REPORTS", 0.0)
    packed = played(learner_for(Track()), Track(), 60)
    monkeypatch.undo()
    plain = played(learner_for(Track()), Track(), 60)
    for name, column in plain.columns().items():
        assert column.tolist() == packed.columns()[name].tolist() or name == "certified_cost"
    assert plain.certified_costs.tobytes() == packed.certified_costs.tobytes()


# Statistics


@pytest.mark.parametrize("name", ["ring", "media"])
def test_a_rollout_in_the_environment_of_a_model_has_the_statistics_of_a_simulation(name):
    # Means of K = 2000 episodes of the baseline: Hoeffding's bound for sums in [0, H], two samples and
    # two signals, with a chance of a false alarm of 1e-6 in all. Detects a difference of 0.087 H.
    model, episodes = op.zoo.problem(name).model, 2000
    horizon = model.shape.horizon
    baseline = op.zoo.baseline(name)
    learner = op.AlwaysBaseline(
        shape=model.shape, initial=model.initial, baseline=baseline, num_episodes=episodes
    )
    expected = [
        op.evaluate(baseline.policy, signal, model.transitions, model.initial)
        for signal in (model.rewards, model.costs[0])
    ]
    run = op.simulate(model, learner, replicates=1, seed=3, trace=True, progress=False)
    result = played(learner, op.environments.as_gymnasium(model), episodes)
    radius = horizon * math.sqrt(math.log(2 * 4 / FALSE_ALARM) / (2 * episodes))
    simulated = (run.traces[0].rewards.sum(axis=1).mean(), run.traces[0].costs.sum(axis=1).mean())
    rolled = (result.returns.mean(), result.costs.mean())
    for truth, first, second in zip(expected, simulated, rolled, strict=True):
        assert abs(first - truth) < radius
        assert abs(second - truth) < radius


def test_a_learner_does_in_a_rollout_what_it_does_in_a_simulation():
    # The share on the baseline and the mean return of 12 rollouts and 12 replicates of 300 episodes.
    # Each is a mean of 12 independent numbers in [0, 1] (returns in parts of H): Hoeffding's bound for
    # the difference of two such means, two comparisons, chance of a false alarm 1e-6 in all.
    model = healthy.model()
    start = op.SafeBaseline(
        op.policy_from_actions(np.zeros((3, 2), int), num_actions=2), op.SafetyMargin(1.0, 0.99)
    )

    def learner(seed):
        return op.OptPessMix(shape=model.shape, initial=model.initial, baseline=start, seed=seed)

    safe = op.evaluate(start.policy, model.costs[0], model.transitions, model.initial)
    assert safe <= 0.99
    env = op.environments.as_gymnasium(model)
    rolled = [played(learner(seed), env, 300, seed=seed) for seed in range(12)]
    run = op.simulate(
        model, learner(0), episodes=300, replicates=12, seed=50, trace=True, progress=False
    )
    shares = np.mean([result.on_baseline.mean() for result in rolled])
    returns = np.mean([result.returns.mean() for result in rolled]) / 3
    simulated = np.mean([trace.rewards.sum(axis=1).mean() for trace in run.traces]) / 3
    on_baseline = run.plays["Baseline"].mean() / 300
    radius = math.sqrt(math.log(2 * 2 / FALSE_ALARM) / 12)
    assert abs(shares - on_baseline) < radius
    assert abs(returns - simulated) < radius


# What contradicts the guarantee


class Costly:
    """One state, two actions, of which the second may not exist; every step costs 1."""

    num_states, num_actions = 1, 2

    def __init__(self, **stated):
        self.__dict__.update(stated)

    def reset(self, seed=None):
        return 0

    def step(self, action):
        return 0, 0.5, 1.0, False


def told_of_a_cheap_baseline(**changes):
    shape = op.environments.sizes(Costly(), horizon=3)
    safe = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=2)
    baseline = op.SafeBaseline(safe, op.SafetyMargin(cost_limit=1.5, safe_cost=0.5))
    return op.OptPessMix(shape=shape, initial=0, baseline=changes.pop("baseline", baseline), **changes)


def test_episodes_that_contradict_what_was_stated_of_the_baseline_void_the_guarantee():
    learner = told_of_a_cheap_baseline()
    assert learner.contradiction is None
    with pytest.warns(op.GuaranteeWarning, match="the baseline costs at least .* costs at most"):
        result = op.rollout(learner, Costly(), episodes=500)
    assert learner.guarantee is None
    assert result.guarantee is None
    assert "at most 0.5" in learner.contradiction
    # A true statement is not contradicted.
    true = op.SafeBaseline(
        op.policy_from_actions(np.zeros((3, 2), int), num_actions=2),
        op.SafetyMargin(cost_limit=3.0, safe_cost=2.999),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        honest = told_of_a_cheap_baseline(baseline=true)
        op.rollout(honest, Costly(), episodes=500)
    # All costs are 1, so the sets shrink to 3 from below and never reach it.
    assert (honest.contradiction is None) == (honest.guarantee is not None)


def test_a_contradiction_that_is_turned_into_an_error_loses_no_episode():
    learner = told_of_a_cheap_baseline()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(op.GuaranteeWarning) as caught:
            op.rollout(learner, Costly(), episodes=500)
    assert len(caught.value.rollout) == learner.episodes_observed == 500


def test_a_limit_above_the_one_that_the_environment_states_is_told():
    with pytest.warns(
        op.GuaranteeWarning, match=r"env states the cost_limit 1\.0; the learner keeps \[1\.5\]"
    ):
        op.rollout(told_of_a_cheap_baseline(), Costly(cost_limit=1.0), episodes=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        op.rollout(told_of_a_cheap_baseline(), Costly(cost_limit=2.0), episodes=1)


def test_a_learner_that_does_not_know_of_missing_actions_is_refused():
    env = Costly(existing_actions=[[True, False]])
    with pytest.raises(op.InvalidInputError, match=r"existing_actions\[0, 1\] is False"):
        op.rollout(told_of_a_cheap_baseline(), env, episodes=1)
    knowing = told_of_a_cheap_baseline(actions=[[True, False], [True, True]])
    assert len(op.rollout(knowing, env, episodes=1)) == 1
