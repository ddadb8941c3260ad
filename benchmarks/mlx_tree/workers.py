"""Checking entries in processes of their own: what crashes or hangs costs one entry only."""

from __future__ import annotations

import functools
import multiprocessing
import queue
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Unchecked
from mlx_tree.entries import Entry, families, family_of, library

#: An entry that takes longer than this many seconds hangs.
PATIENCE = 300
#: What a fault on an NVIDIA GPU leaves behind is a process without one.
_CONTEXT_IS_LOST = "its context is lost"

Result = dict[str, Any]

_known = functools.cache(families)
_library = functools.lru_cache(maxsize=1)(library)  # one file after the other


class Watched:
    """A library that keeps the kernels it has given."""

    def __init__(self, library: mtl.Library) -> None:
        self._library = library
        self.kernels: list[mtl.Kernel] = []

    def function(self, *arguments: Any, **options: Any) -> mtl.Kernel:
        """See `Library.function`."""
        self.kernels.append(self._library.function(*arguments, **options))
        return self.kernels[-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def engine(self) -> str:
        """What ran the kernels; where they differ, what could not run one as vector code."""
        return min((kernel.engine for kernel in self.kernels), default="")  # "reference" < "simd"


def outcome(tree: Path, entry: Entry) -> Result:
    """Compile an entry and let its family check it."""
    family = family_of(entry, _known())
    compiled, checked, reason, engine = True, "agrees", "", ""
    try:
        lib = Watched(_library(tree, entry.file))
        try:
            if family is None:
                raise Unchecked("no family covers it")
            # Seeded by the name: an entry sees the same numbers each time.
            family.check(lib, entry.name, np.random.default_rng(zlib.crc32(entry.name.encode())))
        except Unchecked as why:
            checked, reason = "unchecked", str(why)
            lib.function(entry.name)
        engine = lib.engine()
    except mtl.CompileError as error:
        compiled, checked, reason = False, "unchecked", f"does not compile: {error}"
    except Exception as error:
        checked, reason = "disagrees", f"{type(error).__name__}: {error}"
    reason = reason.strip()[:1000]
    return {"compiled": compiled, "checked": checked, "reason": reason, "engine": engine}


def _work(tree: Path, pipe: Any) -> None:
    """Answer the entries that come through the pipe until None does."""
    while entry := pipe.recv():
        pipe.send(outcome(tree, entry))


class Worker:
    """One process, which is started anew when it dies."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(self.tree, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def check(self, entry: Entry) -> Result:
        """The outcome of an entry, also of one that ends the process or hangs."""
        self.pipe.send(entry)
        try:
            if self.pipe.poll(PATIENCE):
                result: Result = self.pipe.recv()
                if _CONTEXT_IS_LOST in result["reason"]:
                    self.stop()
                    self._start()
                return result
            self.process.kill()
            reason = f"hangs: no result after {PATIENCE} seconds"
        except (EOFError, ConnectionResetError):
            self.process.join()
            reason = f"crashes: the process ended with code {self.process.exitcode}"
        self._start()
        return {"compiled": False, "checked": "disagrees", "reason": reason, "engine": ""}

    def stop(self) -> None:
        """End the process."""
        self.pipe.send(None)
        self.process.join()


def check_all(
    tree: Path, entries: Iterable[Entry], jobs: int, done: Callable[[Entry, Result], None]
) -> None:
    """Check entries in `jobs` processes; `done` is called with each result, one at a time."""
    todo: queue.SimpleQueue[Entry] = queue.SimpleQueue()
    for entry in entries:
        todo.put(entry)
    one_at_a_time = threading.Lock()

    def job() -> None:
        worker = Worker(tree)
        while True:
            try:
                entry = todo.get_nowait()
            except queue.Empty:
                break
            started = time.perf_counter()
            result = worker.check(entry)
            with one_at_a_time:
                done(entry, {**result, "seconds": round(time.perf_counter() - started, 3)})
        worker.stop()

    with ThreadPoolExecutor(jobs) as pool:
        for finished in [pool.submit(job) for _ in range(jobs)]:
            finished.result()
