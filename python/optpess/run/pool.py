"""Pools of workers: the caller's executor, or a pool of one process a core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection

from optpess.checks import described
from optpess.exceptions import InvalidInputError, OptPessError

__all__ = ["cores", "pool_of"]


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def pool_of(executor: object) -> Iterator[Executor]:
    """The caller's executor, which stays open, or one of our own. If an exception ends the work, the
    processes of our own end at once.
    """
    if executor is None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise OptPessError(
                'the script calls sweep outside of `if __name__ == "__main__":`, and each worker runs '
                "the script again"
            )
        others = multiprocessing.active_children()
        # Not by fork: threads of the solver would be missing in the child.
        pool = ProcessPoolExecutor(
            cores(), mp_context=multiprocessing.get_context("spawn"), initializer=_depend_on_parent
        )
        try:
            yield pool
        except BaseException:
            # What a worker does may take hours.
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    elif isinstance(executor, Executor):
        yield executor
    elif hasattr(executor, "get_executor"):
        # A client of Dask: a task is not taken for the same as an earlier one with the same arguments.
        yield executor.get_executor(pure=False)
    else:
        raise InvalidInputError(
            f"executor is {described(executor)}; it must be a concurrent.futures.Executor or a client "
            "of Dask's distributed"
        )


def _depend_on_parent() -> None:
    """Leaves it to the parent to end this process: Ctrl-C reaches all processes of a terminal. If the
    parent dies, whatever killed it, this process ends, too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
