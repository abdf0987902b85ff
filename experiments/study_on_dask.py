"""A study on a cluster of two worker processes, of which one is killed three times.

Runs the same study three times: alone in this process; on a local cluster of Dask's distributed, with
a worker killed (SIGKILL) three times; and in two processes that work on one folder at once. Every cell
must be there once, and all three must agree to the bit. Writes the counts to
experiments/record/study-on-dask.json, and the tables of docs/interrupts-and-checkpoints.md. Run by
`make study-on-dask`; takes about two minutes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import endurance_page
import optpess as op

RECORD = Path(__file__).resolve().parent / "record" / "study-on-dask.json"
KILLS, WORKERS = 3, 2


def mix(problem: op.zoo.Problem, delta: float) -> op.Learner:
    """OptPess-Mix, told that the problem is stationary."""
    return op.OptPessMix(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=problem.baseline,
        knowledge=op.Knowledge(stationary=True),
        failure_probability=delta,
    )


def study() -> op.Study:
    """216 cells."""
    return op.Study(
        problems={name: op.zoo.problem(name) for name in ("media", "inventory")},
        learners={"OptPess-Mix": mix},
        parameters={"delta": [0.001, 0.01, 0.1]},
        replicates=36,
        episodes=60_000,
        seed=2021,
    )


def alone(folder: Path) -> op.StudyResult:
    """The study in one process, on one thread."""
    with ThreadPoolExecutor(1) as pool:
        return op.sweep(study(), folder, executor=pool, progress=False)


def on_cluster(folder: Path) -> tuple[op.StudyResult, int]:
    """The study on a cluster, and how often a worker was killed."""
    from distributed import Client, LocalCluster

    killed: list[int] = []
    over = threading.Event()
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        expected = 18.0 / WORKERS  # seconds, roughly; the deaths fall into the work

        def kill() -> None:
            source = random.Random(5)
            for _ in range(KILLS):
                if over.wait(expected * source.uniform(0.1, 0.25)):
                    return
                while not (workers := client.run(os.getpid)):  # the last one is being replaced
                    time.sleep(0.1)
                victim = source.choice(list(workers.values()))
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        killer = threading.Thread(target=kill)
        killer.start()
        found = op.sweep(study(), folder, executor=client, progress=False)
        over.set()
        killer.join()
    return found, len(killed)


def in_two_processes(folder: Path) -> op.StudyResult:
    """The study by two processes that know nothing of each other."""
    command = [sys.executable, __file__, "--work", str(folder)]
    processes = [subprocess.Popen(command) for _ in range(2)]
    if any(process.wait() for process in processes):
        sys.exit("a process failed")
    return op.load_study(folder)


def agree(first: op.StudyResult, second: op.StudyResult) -> bool:
    """Whether both hold the same runs, to the bit."""
    return all(
        run.same_as(second.comparisons[name].runs[label])
        for name, found in first.comparisons.items()
        for label, run in found.runs.items()
    )


def main() -> None:
    """Runs the three and compares."""
    if sys.argv[1:2] == ["--work"]:
        alone(Path(sys.argv[2]))
        return
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        seconds = {}
        start = time.perf_counter()
        expected = alone(place / "alone")
        seconds["alone"] = time.perf_counter() - start
        start = time.perf_counter()
        clustered, killed = on_cluster(place / "cluster")
        seconds["cluster"] = time.perf_counter() - start
        start = time.perf_counter()
        shared = in_two_processes(place / "shared")
        seconds["two processes"] = time.perf_counter() - start
        for name, found in (("alone", expected), ("cluster", clustered), ("two processes", shared)):
            results[name] = {
                "cells": found.num_cells,
                "missing": len(found.missing),
                "executed": found.executed,
                "failed": len(found.failures),
                "agrees": agree(expected, found),
                "seconds": round(seconds[name], 1),
            }
        results["cluster"]["workers killed"] = killed
    print(json.dumps(results, indent=2))
    RECORD.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    endurance_page.write()
    if not all(each["agrees"] and not each["missing"] for each in results.values()):
        sys.exit("the studies differ")
    if killed != KILLS:
        sys.exit(f"{killed} workers were killed, not {KILLS}")


if __name__ == "__main__":
    main()
