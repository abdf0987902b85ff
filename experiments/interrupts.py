"""Measures how soon each long call stops after Ctrl-C or SIGTERM.

Every call is made in a process of its own: on its main thread, on another thread, or in a child that
was forked or spawned. The process gets the signal at a random time within the call. Measured is the
time from sending it to the first line of Python after the call.

    python experiments/interrupts.py [--repetitions 5] [--only simulate]

Writes experiments/record/interrupts.json and the tables of docs/interrupts-and-checkpoints.md. Run by
`make interrupts`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import endurance_page
from long_calls import CALLS
from pages import RECORD, provenance

BAR = 0.2
LONGEST = 60.0
WAYS = {
    "main thread": list(CALLS),
    "another thread": [
        "simulate, 2 states",
        "simulate, with a checkpoint",
        "simulate, OptPess-Mix, 1,000 states",
        "compare",
        "rollout",
        "solve, 100,000 states",
        "solve, columns",
        "frontier",
        "backward_induction",
        "sample",
    ],
    "forked child": ["simulate, 2 states", "compare", "rollout", "solve, 100,000 states", "sample"],
    "spawned child": ["simulate, 2 states", "compare", "rollout", "solve, 100,000 states", "sample"],
}
COMMANDS = {
    "optpess simulate": ["simulate", "media", "--episodes", "4e9", "--quiet"],
    "optpess simulate --checkpoint": [
        *("simulate", "media", "--episodes", "4e9", "--quiet"),
        *("--checkpoint", "state.npz"),
    ],
    "optpess compare": [
        *("compare", "media", "--episodes", "4e9", "--quiet"),
        *("--learner", "optpess-mix", "--learner", "always-baseline"),
    ],
    "optpess frontier": ["frontier", "large.npz"],
}


def tell(**facts: Any) -> None:
    """A line for the process that measures."""
    print(json.dumps(facts), flush=True)


def num_threads() -> int:
    """The threads of this process, those that Python does not know included."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def play(name: str) -> None:
    """Prepares a call, says so, makes it, and tells when and how it ended."""
    warnings.simplefilter("ignore")
    call = CALLS[name]()
    threads = num_threads()
    tell(ready=True, process=os.getpid())
    try:
        call()
        ended = "returned"
    except BaseException as error:  # noqa: BLE001 - what ended it is the result
        ended = type(error).__name__
    at = time.monotonic()
    left = num_threads() - threads
    deadline = time.monotonic() + 1.0
    while left > 0 and time.monotonic() < deadline:  # the system takes its time to remove one
        time.sleep(0.01)
        left = num_threads() - threads
    tell(ended=ended, at=at, threads_left=left)


def play_on_thread(name: str) -> None:
    """The same on another thread, for which the main one waits."""
    thread = threading.Thread(target=play, args=(name,))
    thread.start()
    while thread.is_alive():
        try:
            time.sleep(0.05)  # an interrupted join of Python 3.11 takes the thread for ended
        except KeyboardInterrupt:
            continue


def play_in_child(name: str, method: str) -> None:
    """The same in a child that was started after the package was used here."""
    import optpess as op

    op.solve(op.zoo.pair())
    child = multiprocessing.get_context(method).Process(target=play, args=(name,))
    child.start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child.join()


def _default_handlers() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def measure(name: str, way: str, number: int, wait: float) -> dict[str, Any]:
    """The seconds from a signal to the end of a call."""
    command = [sys.executable, __file__, "--play", name, way]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=_default_handlers
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        time.sleep(wait)
        sent = time.monotonic()
        os.kill(ready["process"], number)
        watch = threading.Timer(LONGEST, process.kill)
        watch.start()
        line = process.stdout.readline()
        died = time.monotonic()
        process.wait()
        watch.cancel()
    if died - sent > LONGEST:
        return {"seconds": died - sent, "ended": "not within a minute"}
    if not line:
        return {"seconds": died - sent, "ended": "the process ended", "threads_left": 0}
    told = json.loads(line)
    if told["at"] < sent:
        return {"seconds": None, "ended": "before the signal"}
    return {"seconds": told["at"] - sent} | told


def measure_command(name: str, number: int, wait: float, folder: Path) -> dict[str, Any]:
    """The seconds from a signal to the end of a command, with the end of its process."""
    command = [sys.executable, "-m", "optpess", *COMMANDS[name]]
    with subprocess.Popen(
        command, stderr=subprocess.DEVNULL, cwd=folder, preexec_fn=_default_handlers
    ) as process:
        time.sleep(2.0 + wait)  # it is loaded
        sent = time.monotonic()
        process.send_signal(number)
        code = process.wait()
    for left in folder.glob("state*"):
        left.unlink()
    return {"seconds": time.monotonic() - sent, "ended": f"exit code {code}", "threads_left": 0}


def row(call: str, way: str, sent: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """What came of the repetitions of one case."""
    seconds = [each["seconds"] for each in found if each["seconds"] is not None]
    answer = {
        "call": call,
        "where": way,
        "signal": sent,
        "times": len(seconds),
        "median": round(statistics.median(seconds), 4) if seconds else None,
        "worst": round(max(seconds), 4) if seconds else None,
        "ended": sorted({each["ended"] for each in found}),
        "threads left": max(each.get("threads_left", 0) for each in found),
    }
    print(*answer.values(), sep=" | ", flush=True)
    return answer


def main() -> None:
    """Measures all cases and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=60.0, help="no case begins after these")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--play", nargs=2, metavar=("CALL", "WAY"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        name, way = given.play
        if way == "another thread":
            play_on_thread(name)
        elif way.endswith("child"):
            play_in_child(name, "fork" if way.startswith("fork") else "spawn")
        else:
            play(name)
        return
    end = time.monotonic() + 60 * given.minutes
    source, rows, times = random.Random(3), [], range(given.repetitions)
    cases = [(name, way, "SIGINT") for way, names in WAYS.items() for name in names]
    cases += [("simulate, with a checkpoint", way, "SIGTERM") for way in list(WAYS)[:2]]
    cases += [("simulate, 2 states", "main thread", "SIGTERM"), ("sweep", "main thread", "SIGTERM")]
    for name, way, sent in cases:
        if given.only in f"{name} {way}" and time.monotonic() < end:
            number = getattr(signal, sent)
            found = [measure(name, way, number, source.uniform(0.2, 1.0)) for _ in times]
            rows.append(row(name, way, sent, found))
    with tempfile.TemporaryDirectory() as folder:
        import optpess as op

        op.zoo.garnet(1_000, 5, 60, successors=5, seed=1).save(Path(folder) / "large.npz")
        for name in COMMANDS:
            for number in (signal.SIGINT, signal.SIGTERM):
                if given.only in name and time.monotonic() < end:
                    found = [
                        measure_command(name, number, source.uniform(0.2, 1.0), Path(folder))
                        for _ in times
                    ]
                    rows.append(row(name, "command line", number.name, found))
    above = [each for each in rows if each["worst"] is None or each["worst"] > BAR]
    print(f"{len(above)} of {len(rows)} cases took longer than {BAR} s at some time")
    if not given.only:
        record = {"provenance": provenance(), "repetitions": given.repetitions, "cases": rows}
        path = RECORD / "interrupts.json"
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        endurance_page.write()


if __name__ == "__main__":
    main()
