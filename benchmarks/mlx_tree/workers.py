"""Checking entries in processes of their own: what crashes or hangs costs one entry only."""

from __future__ import annotations

import functools
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from workers import Worker, share

import metalloid as mtl
from metalloid.compiler.frontend.unit import Bounds
from mlx_tree.agreement import Unchecked
from mlx_tree.entries import (
    Entry,
    families,
    family_of,
    library,
    reads_past_the_end,
    templates,
)

#: An entry that takes longer than this many seconds hangs.
PATIENCE = 300
#: A fault on an NVIDIA GPU leaves a process without one.
_CONTEXT_IS_LOST = "its context is lost"

Result = dict[str, Any]

_known = functools.cache(families)
_library = functools.lru_cache(maxsize=64)(library)


class Watched:
    """A library that keeps the kernels it has given, and the seconds that compiling them took."""

    def __init__(self, library: mtl.Library) -> None:
        self._library = library
        self.kernels: list[mtl.Kernel] = []
        self.seconds = 0.0

    def function(self, *arguments: Any, **options: Any) -> mtl.Kernel:
        """See `Library.function`."""
        started = time.perf_counter()
        self.kernels.append(self._library.function(*arguments, **options))
        self.seconds += time.perf_counter() - started
        return self.kernels[-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def engine(self) -> str:
        """The engine of the kernels; where they differ, the one without vector code."""
        return min((kernel.engine for kernel in self.kernels), default="")  # "reference" < "simd"


def outcome(tree: Path, entry: Entry, bounds: Bounds | None = None) -> Result:
    """Compile an entry and let its family check it."""
    family = family_of(entry, _known())
    compiled, checked, reason, engine, seconds = True, "agrees", "", "", 0.0
    try:
        bounds = "unchecked" if reads_past_the_end(entry) else bounds
        lib = Watched(_library(tree, entry.file, bounds))
        try:
            if family is None:
                raise Unchecked("no family covers it")
            # Seeded by the name: an entry sees the same numbers each time.
            family.check(lib, entry.name, np.random.default_rng(zlib.crc32(entry.name.encode())))
        except Unchecked as why:
            checked, reason = "unchecked", str(why)
            _ = lib.function(entry.name).max_group_size  # OpenCL compiles it to answer
        engine, seconds = lib.engine(), lib.seconds
    except mtl.CompileError as error:
        compiled, checked, reason = False, "unchecked", f"does not compile: {error}"
    except Exception as error:
        checked, reason = "disagrees", f"{type(error).__name__}: {error}"
    reason = reason.strip()[:1000]
    return {"compiled": compiled, "checked": checked, "reason": reason, "engine": engine,
            "compiling": round(seconds, 3)}  # fmt: skip


def names(tree: Path, file: str) -> tuple[dict[str, str], str]:
    """The kernels of a file with their templates, and why there are none."""
    try:
        return templates(_library(tree, file)), ""
    except mtl.CompileError as error:
        return {}, str(error).splitlines()[0]


class MlxWorker(Worker):
    """A process that checks entries.

    Parameters
    ----------
    examine : callable, optional
        The outcome of an entry of a tree.
    """

    def __init__(
        self, tree: Path, gpu: int | None, examine: Callable[[Path, Entry], Result] = outcome
    ) -> None:
        self._examine = examine
        super().__init__(tree, gpu)

    def check(self, entry: Entry, patience: float) -> Result:
        """The outcome of an entry, also of one that ends the process."""
        try:
            result: Result = self.ask(self._examine, entry, patience)
        except (EOFError, TimeoutError) as error:
            return {"compiled": False, "checked": "disagrees", "reason": str(error), "engine": ""}
        if _CONTEXT_IS_LOST in result["reason"]:
            self.restart()
        return result


class Workers:
    """Processes that share a list of questions.

    Parameters
    ----------
    tree : path
        MLX's.
    jobs : int
        Processes.
    gpus : int
        They are dealt out to so many GPUs; 0 leaves that to the environment.
    seconds : float
        What is not known after so many seconds stays unknown.
    examine : callable, optional
        The outcome of an entry of a tree.
    """

    def __init__(
        self,
        tree: Path,
        jobs: int,
        gpus: int,
        seconds: float,
        examine: Callable[[Path, Entry], Result] = outcome,
    ) -> None:
        self._end = time.perf_counter() + seconds
        self._workers = [MlxWorker(tree, n % gpus if gpus else None, examine) for n in range(jobs)]
        self._one_at_a_time = threading.Lock()

    def names(self, files: Iterable[str]) -> dict[str, tuple[dict[str, str], str]]:
        """For each file its kernels with their templates, and why there are none."""
        kernels: dict[str, tuple[dict[str, str], str]] = {}
        self._each(files, lambda worker, file: kernels.update({
            file: worker.ask(names, file, PATIENCE)
        }))  # fmt: skip
        return kernels

    def check(
        self, entries: Iterable[Entry], patience: float, done: Callable[[Entry, Result], None]
    ) -> None:
        """Check entries; `done` is called with each result, one at a time."""

        def check_one(worker: MlxWorker, entry: Entry) -> None:
            started = time.perf_counter()
            result = worker.check(entry, max(0, min(patience, self._end - started)))
            now = time.perf_counter()
            if now < self._end:
                with self._one_at_a_time:
                    done(entry, {**result, "seconds": round(now - started, 3)})

        self._each(entries, check_one)

    def _each(self, items: Iterable[Any], work: Callable[[MlxWorker, Any], None]) -> None:
        share(self._workers, items, work, lambda: time.perf_counter() < self._end)

    def stop(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.stop()
