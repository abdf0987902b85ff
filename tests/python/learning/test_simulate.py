"""Same seed, same record; the learner is left alone; what does not fit is refused; Ctrl-C works."""

import hashlib
import subprocess
import sys
import textwrap

import numpy as np
import optpess as op
import pytest
from support import healthy

from learning import cases

EPISODES = 500
MAKERS = {
    "OptPess-LP": lambda: cases.optpess_lp(cases.market(), EPISODES, confidence=op.Scaled(0.02)),
    "OptPess-PrimalDual": lambda: cases.primal_dual(cases.market(), EPISODES),
}


@pytest.fixture(scope="module", params=MAKERS)
def case(request):
    make = MAKERS[request.param]
    return make, cases.run_of(cases.market(), make(), replicates=5, seed=11, threads=1)


def digest(run):
    """One number for everything in a record."""
    names = ("episodes", "replicates", *cases.CURVES, *cases.TOTALS)
    return hashlib.sha256(b"".join(getattr(run, name).tobytes() for name in names)).hexdigest()


@pytest.mark.parametrize("threads", [2, 3, 16, None])
def test_the_number_of_threads_changes_no_bit(case, threads):
    make, run = case
    again = cases.run_of(cases.market(), make(), replicates=5, seed=11, threads=threads)
    assert cases.same_record(run, again)


@pytest.mark.parametrize("chosen", [[3], [0, 3], [4, 1]])
def test_a_replicate_does_not_depend_on_which_others_are_run(case, chosen):
    make, run = case
    some = cases.run_of(cases.market(), make(), replicates=chosen, seed=11, threads=2)
    np.testing.assert_array_equal(some.replicates, chosen)
    for name in (*cases.CURVES, *cases.TOTALS):
        assert getattr(some, name).tobytes() == getattr(run, name)[chosen].tobytes(), name


def test_replicates_and_seeds_differ(case):
    make, run = case
    assert len(np.unique(run.reward_regret[:, -1])) == 5
    other = cases.run_of(cases.market(), make(), replicates=5, seed=12)
    assert not np.isin(other.reward_regret[:, -1], run.reward_regret[:, -1]).any()


@pytest.mark.parametrize("watch", [{"trace": True}, {"audit": True}, {"trace": True, "audit": True}])
def test_watching_a_run_does_not_change_it(case, watch):
    make, run = case
    watched = cases.run_of(cases.market(), make(), replicates=5, seed=11, **watch)
    assert cases.same_record(run, watched)


def test_another_process_finds_the_same_record(case):
    make, run = case
    name = next(name for name, each in MAKERS.items() if each is make)
    code = f"""
        from learning import cases, test_simulate as own
        learner = own.MAKERS[{name!r}]()
        print(own.digest(cases.run_of(cases.market(), learner, replicates=5, seed=11)))
    """
    assert run_python(code).stdout.strip() == digest(run)


def run_python(code):
    """Runs code in a process of its own, which finds the tests as this one does."""
    paths = f"import sys; sys.path[:0] = {sys.path!r}\n"
    command = [sys.executable, "-c", paths + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_the_learner_is_left_untouched_and_each_replicate_starts_from_what_it_knows(case):
    make, _ = case
    trace = cases.run_of(cases.market(), make(), seed=11, trace=True).traces[0]
    learner = cases.fed(make(), trace, 100)
    before = cases.stored(learner)
    rest = cases.run_of(cases.market(), learner, replicates=2, seed=5, trace=True)
    assert cases.stored(learner) == before
    assert rest.episodes[-1] == EPISODES - 100
    # The first plan after a hundred episodes is the one the learner itself would make.
    value = op.evaluate(
        learner.next_policy().policy,
        cases.market().rewards,
        cases.market().transitions,
        cases.market().initial,
    )
    assert [each.deployed_value[0] for each in rest.traces] == [value, value]


def test_part_of_a_run_is_its_beginning(case):
    make, _ = case
    options = {"seed": 11, "trace": True}
    whole = cases.run_of(cases.market(), make(), **options).traces[0]
    part = cases.run_of(cases.market(), make(), episodes=100, **options)
    assert part.episodes[-1] == 100
    assert part.traces[0].deployed_value.tobytes() == whole.deployed_value[:100].tobytes()
    np.testing.assert_array_equal(part.traces[0].states, whole.states[:100])


# Refusals


def other_model(**changes):
    """The market with one thing changed."""
    model = cases.market()
    parts = {
        "transitions": model.transitions,
        "rewards": model.rewards,
        "costs": model.costs[0],
        "cost_limit": 1.2,
        "initial": model.initial,
    }
    return op.CMDP(**parts | changes)


def test_a_model_with_another_limit_is_refused(case):
    make, _ = case
    with healthy.refused("OutOfRange", "model has cost_limit 1.1 and learner 1.2; give both"):
        cases.run_of(other_model(cost_limit=1.1), make())


def test_a_model_with_two_constraints_is_refused(case):
    make, _ = case
    costs = np.stack([cases.market().costs[0]] * 2)
    with healthy.refused("OutOfRange", "model has 2 limits and learner 1"):
        cases.run_of(other_model(costs=costs, cost_limit=[1.2, 1.2]), make())


def other_shapes():
    """Fewer and more steps, states or actions, stationary or not."""
    yield op.zoo.pair()
    yield op.zoo.ring()
    yield healthy.model()
    for horizon, states, actions in [(2, 3, 2), (4, 3, 2), (3, 2, 2), (3, 4, 2), (3, 3, 1), (3, 3, 3)]:
        sizes = (states, actions)
        once = np.full((*sizes, states), 1 / states)
        start = np.full(states, 1 / states)
        steps = (horizon, *sizes)
        yield op.CMDP(np.tile(once, (horizon, 1, 1, 1)), np.ones(steps), np.zeros(steps), 1.2, start)
        yield op.CMDP.stationary(once, np.ones(sizes), np.zeros(sizes), 1.2, start, horizon=horizon)
        yield op.CMDP(op.Transitions(once), np.ones(steps), np.zeros(steps), 1.2, start)


@pytest.mark.parametrize("model", list(other_shapes()), ids=lambda model: repr(model)[:40])
def test_a_model_of_another_shape_is_refused(case, model):
    make, _ = case
    with healthy.refused("ShapeMismatch"):
        cases.run_of(model, make())
    if isinstance(make(), op.OptPessLP):
        with healthy.refused("ShapeMismatch"):
            op.forecast(model, make())


@pytest.mark.parametrize("episodes", [EPISODES + 1, 2**70])
def test_more_episodes_than_are_left_are_refused(case, episodes):
    make, _ = case
    with healthy.refused("OutOfRange", "episodes is", "learner has 500 of its 500 episodes left"):
        cases.run_of(cases.market(), make(), episodes=episodes)


NUMBERS = {
    "no episodes": ({"episodes": 0}, "episodes is 0; it must be at least 1"),
    "fewer episodes than none": ({"episodes": -1}, "episodes is -1; it must be at least 1"),
    "a float of episodes": ({"episodes": 1e2}, "episodes is 100.0, of type float; it must be a whole"),
    "a text of episodes": ({"episodes": "10"}, "episodes is '10', of type str; it must be a whole"),
    "no replicates": ({"replicates": 0}, "replicates is 0; it must be at least 1"),
    "an empty list": ({"replicates": []}, "replicates is empty"),
    "negative replicates": ({"replicates": -2}, "replicates is -2; it must be at least 1"),
    "a float of replicates": ({"replicates": 2.0}, "replicates is 2.0, of type float; it must be a who"),
    "a text of replicates": ({"replicates": "12"}, "replicates is '12', of type str; it must be a who"),
    "nothing": ({"replicates": None}, "replicates is None, of type NoneType; it must be a whole"),
    "too many": ({"replicates": 10**7}, "replicates is 10000000; it must lie in [1, 1000000]"),
    "one number twice": (
        {"replicates": [4, 0, 3, 0]},
        "replicates[1] and replicates[3] are both 0; each replicate must be there once",
    ),
    "a negative number": ({"replicates": [0, -1]}, "replicates[1] is -1; it must be at least 0"),
    "a float number": ({"replicates": [0.5]}, "replicates[0] is 0.5, of type float; it must be a who"),
    "a number that others share": ({"replicates": [2**62]}, "replicates[0] is 4611686018427387904"),
    "no threads": ({"threads": 0}, "threads is 0; it must lie in [1, 1024]"),
    "a float of threads": ({"threads": 1.5}, "threads is 1.5, of type float; it must be a whole"),
    "a text as a seed": ({"seed": "now"}, "seed is 'now', of type str; it must be a whole number"),
    "a negative seed": ({"seed": -1}, "seed is -1; it must lie in [0, 2^64)"),
    "a large seed": ({"seed": 2**64}, "seed is 18446744073709551616; it must lie in [0, 2^64)"),
}


@pytest.mark.parametrize("mistake", NUMBERS)
def test_numbers_that_make_no_sense_are_refused_before_anything_runs(case, mistake, monkeypatch):
    make, _ = case
    options, message = NUMBERS[mistake]
    monkeypatch.setattr("optpess._core.simulate_learner", lambda *_: pytest.fail("it ran"))
    with pytest.raises(op.InvalidInputError) as caught:
        cases.run_of(cases.market(), make(), **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, learner: op.simulate(learner, model),
        lambda model, learner: op.forecast(learner, model),
        lambda model, learner: op.compare({"one": learner}, model),
        lambda model, learner: op.compare(model, learner),
        lambda model, learner: op.compare(model, [learner]),
        lambda model, learner: op.compare(model, {"one": model}),
        lambda model, learner: op.compare(model, {1: learner}),
        lambda model, learner: op.simulate(model, 3.0),
    ],
)
def test_arguments_of_another_type_are_refused_by_name(case, call):
    make, _ = case
    with pytest.raises(op.InvalidInputError, match=r"is (an? \w+|.*, of type .*); it must be"):
        call(cases.market(), make())


def test_swapped_arguments_are_met_with_their_order(case):
    make, _ = case
    with pytest.raises(op.InvalidInputError, match=r"the order is simulate\(model, learner\)"):
        op.simulate(make(), cases.market())
    with pytest.raises(op.InvalidInputError, match=r"the order is compare\(model, learners\)"):
        op.compare({"one": make()}, cases.market())


@pytest.mark.parametrize("name", ["simulate", "forecast", "compare"])
def test_a_learner_within_an_episode_is_refused(case, name):
    make, _ = case
    learner = make()
    learner.next_policy()
    given = {"one": learner} if name == "compare" else learner
    which = r"learners\['one'\]" if name == "compare" else "learner"
    message = rf"^{which} has planned episode 0 and not observed it: call observe, or abandon, first$"
    with pytest.raises(op.InvalidInputError, match=message):
        getattr(op, name)(cases.market(), given)


def test_a_learner_without_a_number_of_episodes_plays_as_many_as_are_said(case):
    make, run = case
    learner = make()
    learner.parameters["num_episodes"] = None
    named = rf"episodes is None, but {type(learner).__name__} has no num_episodes"
    with pytest.raises(op.InvalidInputError, match=named):
        cases.run_of(cases.market(), learner)
    again = cases.run_of(cases.market(), learner, episodes=EPISODES, replicates=5, seed=11)
    assert cases.same_record(run, again)


def test_a_learner_with_an_outside_engine_is_refused():
    learner = cases.optpess_lp(cases.market(), EPISODES, engine="highs")
    with pytest.raises(op.InvalidInputError, match="episode by episode"):
        cases.run_of(cases.market(), learner)


def test_a_trace_too_long_to_keep_is_refused():
    learner = cases.primal_dual(cases.market(), 100_000_000)
    with pytest.raises(op.InvalidInputError, match="too long"):
        cases.run_of(cases.market(), learner, trace=True)


# Ctrl-C


def test_an_interrupt_ends_a_long_run_and_leaves_the_learner_usable():
    # The run would take hours; the process is given two minutes.
    code = """
        import os, signal, threading
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
        from learning import cases
        model = cases.market()
        learner = cases.primal_dual(model, 2**32 - 1)
        interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
        timer = threading.Timer(0.5, interrupt)
        timer.start()
        try:
            cases.run_of(model, learner, replicates=4, threads=2)
        except KeyboardInterrupt:
            print("interrupted", timer.finished.is_set(), learner.episodes_observed)
        print(cases.run_of(model, learner, episodes=10).episodes[-1])
    """
    assert run_python(code).stdout.split() == ["interrupted", "True", "0", "10"]
