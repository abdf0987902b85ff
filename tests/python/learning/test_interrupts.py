"""Ctrl-C and SIGTERM, on the main thread and on others: what they stop, and what is left afterwards."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import optpess as op
import pytest
from optpess import zoo
from optpess.run import simulation_checkpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

# Far below what the calls would take, far above what stopping them takes on a busy machine.
SOON = 5.0


def interrupted(call, after=0.3):
    """Calls with Ctrl-C after some tenths of a second; the seconds from then to the end."""
    sent = []

    def send():
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        timer.cancel()
    return time.monotonic() - sent[0]


def two_limits(model):
    costs = np.random.default_rng(5).random((2, *model.shape[1:]))
    limits = np.full(2, 0.4 * model.shape.horizon)
    return op.CMDP.stationary(
        model.transitions, model.stored_rewards(), costs, limits, 0, horizon=model.shape.horizon
    )


def test_ctrl_c_ends_a_linear_program():
    model = two_limits(zoo.garnet(300, 4, 30, successors=5, seed=1))  # 40 s
    assert interrupted(lambda: op.solve(model, engine="highs"), after=2.0) < SOON
    deadline = time.monotonic() + 60
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() == 1


def test_a_linear_program_that_is_stopped_can_be_solved_afterwards():
    """The solver that was stopped is not used again."""
    model = two_limits(zoo.garnet(60, 4, 20, successors=5, seed=1))
    expected = op.solve(model, engine="highs")
    interrupted(lambda: op.solve(two_limits(zoo.garnet(300, 4, 30, successors=5, seed=1)), "highs"))
    assert op.solve(model, engine="highs").value == expected.value


def test_ctrl_c_ends_extended_inductions():
    source = np.random.default_rng(0)
    shape = (30, 100, 20)
    kernel = source.dirichlet(np.ones(100), size=shape)
    radius = np.full((*shape, 100), 0.005)
    signals = source.random(shape), source.random(shape)
    initial = np.full(100, 0.01)
    start = time.monotonic()
    op.solve_extended(*signals, kernel, radius, initial, 13.0)
    taken = time.monotonic() - start

    def again():
        while True:
            op.solve_extended(*signals, kernel, radius, initial, 13.0)

    assert interrupted(again) < max(SOON, taken / 2)


def test_ctrl_c_ends_a_sample_before_its_memory_was_written():
    model = zoo.garnet(50, 4, 100, successors=5, seed=1)
    policy = op.solve_least_cost(model).policy
    assert interrupted(lambda: op.sample(model, policy, 2_000_000)) < SOON


def wide_mix(model, least):
    baseline = op.SafeBaseline(least.policy, op.SafetyMargin(model.cost_limits[0], least.costs[0]))
    return op.OptPessMix(
        shape=model.shape,
        initial=model.initial,
        baseline=baseline,
        knowledge=op.Knowledge(stationary=True),
    )


def test_a_first_plan_that_is_stopped_is_made_again_with_the_same_result():
    # Signals are looked for every 50 ms: the plan must take far longer, whatever the machine.
    states, whole = 350, 0.0
    while whole < 1.0:
        states *= 2
        model = zoo.garnet(states, 4, 10, successors=5, seed=1)
        least = op.solve_least_cost(model)
        learner, other = wide_mix(model, least), wide_mix(model, least)
        start = time.monotonic()
        expected = other.next_policy()
        whole = time.monotonic() - start
    stopped = 0
    for part in (0.05, 0.1, 0.3):
        timer = threading.Timer(part * whole, signal.raise_signal, [signal.SIGINT])
        timer.start()
        try:
            learner.next_policy()
            timer.join()
        except KeyboardInterrupt:
            pass
        if learner.pending is None:
            stopped += 1
        else:  # the plan came to its end before
            learner.abandon()
            break
    assert stopped > 0
    found = learner.next_policy()
    np.testing.assert_array_equal(found.policy, expected.policy)
    assert [member.weight for member in found.mixture.members] == [
        member.weight for member in expected.mixture.members
    ]
    assert found.certificate.costs == expected.certificate.costs


BEGINNING = textwrap.dedent(
    """
    import signal, sys, threading, time
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    import optpess as op
    pair = op.zoo.problem("pair")
    known = dict(shape=pair.model.shape, initial=pair.model.initial, baseline=pair.baseline)
    def endless(**given):
        op.simulate(pair.model, op.OptPessMix(**known), episodes=2**31, progress=False, **given)
    def kept(call, **given):
        try:
            call(**given)
        except BaseException as error:
            say(type(error).__name__, len(getattr(error, "runs", ())))
            raise
    def say(*words):
        sys.stdout.write(" ".join(map(str, words)) + "\\n")  # one call, so that lines do not mix
        sys.stdout.flush()
    def wait_for(threads):
        while any(thread.is_alive() for thread in threads):
            try:
                time.sleep(0.05)  # an interrupted join of Python 3.11 takes the thread for ended
            except KeyboardInterrupt:
                say("main")
    """
)


def told_by(program, number, *, after=1.0):
    """What a program prints that gets a signal once it has said that it is ready; its exit status."""
    command = [sys.executable, "-c", BEGINNING + textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(number)
        try:
            told, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return sorted(told.splitlines()), process.returncode


def test_ctrl_c_ends_simulations_on_other_threads():
    program = """
    threads = [threading.Thread(target=kept, args=(endless,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    wait_for(threads)
    """
    assert told_by(program, signal.SIGINT) == (["KeyboardInterrupt 1"] * 2 + ["main"], 0)


def test_ctrl_c_ends_a_study_in_a_pool_of_threads():
    program = """
    import tempfile
    from concurrent.futures import ThreadPoolExecutor
    def mix(problem):
        return op.OptPessMix(**known)
    study = op.Study({"pair": pair}, {"mix": mix}, replicates=3, episodes=2**31)
    print("ready", flush=True)
    try:
        with ThreadPoolExecutor(2) as pool:
            op.sweep(study, tempfile.mkdtemp(), executor=pool, progress=False)
    except KeyboardInterrupt as error:
        print("the same call goes on" in error.__notes__[0], flush=True)
    """
    assert told_by(program, signal.SIGINT)[0] == ["True"]


def test_ctrl_c_ends_a_rollout_on_another_thread():
    program = """
    env = op.environments.as_gymnasium(pair.model)
    def roll():
        op.rollout(op.OptPessMix(**known), env, episodes=2**31, progress=False)
    thread = threading.Thread(target=kept, args=(roll,))
    thread.start()
    print("ready", flush=True)
    wait_for([thread])
    """
    assert told_by(program, signal.SIGINT) == (["KeyboardInterrupt 0", "main"], 0)


def test_a_handler_of_the_program_decides_for_all_threads():
    program = """
    signal.signal(signal.SIGINT, lambda *_: print("mine", flush=True))
    thread = threading.Thread(target=endless, daemon=True)
    thread.start()
    print("ready", flush=True)
    thread.join(3.0)
    print(thread.is_alive(), flush=True)
    import os
    os._exit(0)
    """
    assert told_by(program, signal.SIGINT)[0] == ["True", "mine"]


def test_a_handler_that_is_set_while_a_simulation_runs_is_called():
    """And that of Python works again when it is put back."""
    program = """
    thread = threading.Thread(target=kept, args=(endless,))
    thread.start()
    time.sleep(0.5)
    mine = []
    signal.signal(signal.SIGINT, lambda *_: mine.append(1))
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.5)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("ready", flush=True)
    wait_for([thread])
    say("mine", len(mine))
    """
    assert told_by(program, signal.SIGINT) == (["KeyboardInterrupt 1", "main", "mine 1"], 0)


@pytest.mark.parametrize("count", [1, 3])
def test_sigterm_waits_for_the_checkpoints_of_other_threads(tmp_path, count):
    program = f"""
    for number in range({count}):
        path = {str(tmp_path)!r} + f"/checkpoint-{{number}}"
        given = dict(checkpoint=path, checkpoint_every=1000.0, seed=number)
        threading.Thread(target=kept, args=(endless,), kwargs=given).start()
    time.sleep(0.5)
    print("ready", flush=True)
    threading.Event().wait()
    """
    # The process ends within the last one.
    assert told_by(program, signal.SIGTERM) == (["SystemExit 1"] * (count - 1), -signal.SIGTERM)
    pair = zoo.problem("pair")
    learner = op.OptPessMix(shape=pair.model.shape, initial=pair.model.initial, baseline=pair.baseline)
    for number in range(count):
        request = simulation_checkpoint.Request.of(1, number, 1)
        store = simulation_checkpoint.SimulationCheckpoint(
            tmp_path / f"checkpoint-{number}", pair.model, learner, 2**31, request, keeps_learners=True
        )
        [state] = store.load()
        assert state is not None
        assert state[0] > 0


def test_sigterm_ends_a_process_without_checkpoints_at_once():
    """Also after a checkpoint on another thread has come to its end."""
    program = """
    import tempfile
    def short():
        learner = op.OptPessMix(**known)
        path = tempfile.mkdtemp() + "/checkpoint"
        op.simulate(pair.model, learner, episodes=10, progress=False, checkpoint=path)
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
    print("ready", flush=True)
    endless()
    """
    assert told_by(program, signal.SIGTERM)[1] == -signal.SIGTERM
