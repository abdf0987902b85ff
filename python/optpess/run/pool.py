"""Pools of workers: the caller's executor, or a pool of one process a core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection
from typing import ParamSpec, TypeVar

from optpess.checks import described
from optpess.exceptions import InvalidInputError, OptPessError

__all__ = ["cores", "pool_of"]

P = ParamSpec("P")
T = TypeVar("T")


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
        pool = _Workers(
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


class _Workers(ProcessPoolExecutor):
    """A pool whose processes get no Ctrl-C from the beginning: they inherit that it is blocked."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submits a task; a process may be started for it."""
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(fn, *args, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _depend_on_parent() -> None:
    """Leaves it to the parent to end this process: Ctrl-C reaches all processes of a terminal. If the
    parent dies, whatever killed it, this process ends, too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
