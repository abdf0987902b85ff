"""Learners that several threads use, that are copied, stored and damaged, and runs in many threads."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress

import numpy as np
import optpess as op
import pytest
from optpess.run.arguments import Request

PAIR = op.zoo.problem("pair")
MODEL = PAIR.model


def mix(seed=0):
    return op.OptPessMix(shape=MODEL.shape, initial=MODEL.initial, baseline=PAIR.baseline, seed=seed)


def lp(num_episodes=100):
    return op.OptPessLP(
        shape=MODEL.shape, initial=MODEL.initial, baseline=PAIR.baseline, num_episodes=num_episodes
    )


def run_of(learner, **given):
    return op.simulate(MODEL, learner, episodes=100, progress=False, **given)


def test_ten_simulations_in_ten_threads_are_those_one_after_the_other():
    learner = mix()
    expected = [run_of(learner, seed=seed) for seed in range(10)]
    found = [None] * 10

    def work(seed):
        found[seed] = run_of(learner, seed=seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ours.same_as(theirs) for ours, theirs in zip(found, expected, strict=True))


def test_a_learner_that_another_thread_moves_is_refused_or_whole():
    """One thread plays episodes while others look, copy and simulate: refused at most, never torn."""
    learner, errors, stop = mix(), [], threading.Event()

    def play():
        random = np.random.default_rng(1)
        try:
            for _ in range(300):
                with suppress(RuntimeError):  # ProtocolError is one
                    deployment = learner.next_policy()
                    states = [0] * MODEL.shape.horizon
                    actions = [deployment.action(step, 0) for step in range(MODEL.shape.horizon)]
                    rewards = random.integers(2, size=MODEL.shape.horizon)
                    learner.observe(states, actions, rewards, rewards)
                with suppress(RuntimeError):
                    learner.abandon()  # if it could not be observed
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            stop.set()

    def look():
        while not stop.is_set():
            for use in (copy.copy, pickle.dumps, lambda each: run_of(each, seed=1)):
                try:
                    use(learner)
                except RuntimeError:
                    pass
                except op.InvalidInputError as error:  # it is within an episode
                    if "call observe, or abandon" not in str(error):
                        errors.append(error)
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(2)] + [threading.Thread(target=play)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_copies_share_nothing():
    learner = mix()
    for twin in (copy.copy(learner), copy.deepcopy(learner)):
        twin.parameters["cost_limit"] = 99.0
        twin.parameters["shape"].append(3)
        assert learner.parameters["cost_limit"] == 0.6
        assert learner.parameters["shape"] == [2, 2, 2]


@pytest.mark.parametrize("make", [mix, lp])
def test_every_flipped_byte_of_a_pickled_state_is_refused(make):
    state = run_of(make()).learners[0].__getstate__()
    for place in range(0, len(state["_inner"]), 7):
        damaged = bytearray(state["_inner"])
        damaged[place] ^= 1 << (place % 8)
        with pytest.raises(ValueError, match="not a stored learner"):
            make().__setstate__(state | {"_inner": bytes(damaged)})
        with pytest.raises(ValueError, match="not a stored learner"):
            op._core.Learner.from_bytes(bytes(damaged))


def test_arguments_that_are_not_those_of_the_state_are_refused():
    state = mix().__getstate__()
    other = copy.deepcopy(state["parameters"]) | {"cost_limit": 0.7, "cost_limits": [0.7]}
    with pytest.raises(ValueError, match="the checksum does not match"):
        mix().__setstate__(state | {"parameters": other})
    forged = mix()
    forged.parameters.update(cost_limit=0.7, cost_limits=[0.7])
    with pytest.raises(ValueError, match="its arguments are not those of its state"):
        pickle.loads(pickle.dumps(forged))


def test_the_audit_finds_no_drift():
    given = {"shape": MODEL.shape, "initial": MODEL.initial, "num_episodes": 400}
    dual = op.OptPessPrimalDual(margin=op.SafetyMargin(0.6, 0.135), **given, confidence=op.Scaled(0.01))
    for learner in (dual, op.OptPessLP(baseline=PAIR.baseline, **given)):
        run = op.simulate(MODEL, learner, audit=True, progress=False)
        drift = run.audits[0]["Drift"]
        assert drift.made == 400 * (2 + 1)  # sums of two steps, frequencies of one
        assert drift.failed == 0


def test_threads_are_those_of_the_process_and_have_a_cap():
    if hasattr(os, "sched_getaffinity"):
        assert Request.of(1, 0, None).threads == len(os.sched_getaffinity(0))
    with pytest.raises(op.InvalidInputError, match=r"threads is 10000000; it must lie in \[1, 1024\]"):
        run_of(mix(), threads=10**7)


def test_a_trace_is_measured_in_steps():
    long = op.zoo.problem("ring").model
    request = Request.of(1, 0, 1, trace=True)
    request.check_length(10_000_000, 2, 1)
    with pytest.raises(op.InvalidInputError, match="an episode of 500 steps takes 16032 bytes"):
        request.check_length(10_000_000, 500, 1)
    assert long.shape.horizon > 1


def test_replicates_beyond_the_streams_are_refused_by_sample():
    policy = np.full(MODEL.shape, 0.5)
    with pytest.raises(op.InvalidInputError, match=r"replicate is 46116860184273.*; it must lie in"):
        op.sample(MODEL, policy, 2, replicate=2**62)


def test_a_forecast_times_few_episodes_of_a_slow_problem(monkeypatch):
    """The clock says that an episode takes a second: one is enough."""
    played = []
    now = [0.0]

    def simulate(*arguments):
        played.append(arguments[6])
        now[0] += arguments[6]
        return [], None, []

    monkeypatch.setattr("optpess._core.simulate_learner", simulate)
    monkeypatch.setattr("optpess.run.forecast.time.perf_counter", lambda: now[0])
    assert op.forecast(MODEL, lp(5000)).seconds == pytest.approx(5000)
    assert played == [1]


MEMORY = textwrap.dedent(
    """
    import copy, pickle, resource
    import numpy as np
    import optpess as op

    states = 220
    rows = np.full((states, 3, states), 1.0 / states)
    model = op.CMDP.stationary(rows, np.full((states, 3), 0.5), np.full((states, 3), 0.5), 5.0,
                               np.full(states, 1.0 / states), horizon=40)
    learner = op.OptCMDPBonus(shape=model.shape, initial=model.initial, num_episodes=10,
                              margin=op.SafetyMargin(30.0, 20.0))
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, -1))
    for use in (copy.copy, lambda each: op.simulate(model, each, episodes=1, progress=False)):
        try:
            use(learner)
            print("done")
        except (op.InvalidInputError, MemoryError, OSError) as error:
            print("refused")
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the address space is Linux's")
def test_a_learner_that_does_not_fit_into_the_memory_is_refused():
    """The process would otherwise end."""
    ended = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert ended.stdout.split() == ["refused", "refused"]
