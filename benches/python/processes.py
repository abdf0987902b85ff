"""What two cores of this machine can give at most: half of the work in each of two processes.

Processes share no lock, no allocator and no interpreter, so that what two threads reach is to be held
against what two processes reach in the same minute, not against 2.
"""

from __future__ import annotations

import os
import statistics
import time
from multiprocessing import get_context

import optpess as op
import problems

HALF = problems.REPLICATES // 2


def half(core: int) -> float:
    """Seconds that half of the replicates take on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    task, K = problems.problem(problems.TINY), problems.THREADS_EPISODES
    learner = task.primal_dual(K)
    start = time.perf_counter()
    op.simulate(task.model, learner, replicates=HALF, threads=1, progress=False, seed=1)
    return time.perf_counter() - start


def ratio(rounds: int) -> float:
    """Twice the time of one half alone over that of two halves at once, medians."""
    found = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]
    cores = (2 * found)[:2]
    alone, together = [], []
    with get_context("spawn").Pool(2) as pool:
        for _ in range(rounds + 1):
            alone.append(pool.apply(half, (cores[0],)))
            together.append(max(pool.map(half, cores, chunksize=1)))
    return 2 * statistics.median(alone[1:]) / statistics.median(together[1:])
