"""Processes that answer questions: what crashes or hangs costs one answer only."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar


def _work(tree: Path, gpu: int | None, pipe: Any) -> None:
    """Answer what comes through the pipe, functions and their arguments, until None does."""
    os.setsid()  # a compiler that hangs ends with the process that started it
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    while job := pipe.recv():
        function, item = job
        pipe.send(function(tree, item))


class Worker:
    """One process, which is restarted when it dies.

    Parameters
    ----------
    tree : path
        First argument of each function that it is asked to call.
    gpu : int, optional
        The only GPU that the process sees.
    """

    def __init__(self, tree: Path, gpu: int | None = None) -> None:
        self._arguments = tree, gpu
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(*self._arguments, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, function: Callable[[Path, Any], Any], item: Any, patience: float) -> Any:
        """Call a function of a module with the tree and an item, in the process.

        Raises
        ------
        TimeoutError, EOFError
            If it takes longer than `patience` seconds, or ends the process.
        """
        try:
            self.pipe.send((function, item))
            if self.pipe.poll(patience):
                return self.pipe.recv()
            reason: Exception = TimeoutError(f"hangs: no result after {patience:g} seconds")
            self._kill()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            reason = EOFError(f"crashes: the process ended with code {code}")
        self._start()
        raise reason

    def _kill(self) -> None:
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()  # which may not have made its group yet
        self.process.join()

    def restart(self) -> None:
        """End the process and start another."""
        self.stop()
        self._start()

    def stop(self) -> None:
        """End the process."""
        self.pipe.send(None)
        self.process.join()


_W = TypeVar("_W", bound=Worker)
_T = TypeVar("_T")


def share(
    workers: Sequence[_W],
    items: Iterable[_T],
    work: Callable[[_W, _T], None],
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Call `work` with each item and a worker that is free, while `goes_on`."""
    todo: queue.SimpleQueue[_T] = queue.SimpleQueue()
    for item in items:
        todo.put(item)

    def job(worker: _W) -> None:
        with contextlib.suppress(queue.Empty):
            while goes_on():
                work(worker, todo.get_nowait())

    with ThreadPoolExecutor(len(workers)) as pool:
        for finished in [pool.submit(job, worker) for worker in workers]:
            finished.result()
