"""Functions of libraries of the host as launches between those of kernels.

A call by Python takes some 20 microseconds there; these take none.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.faults import INTERRUPTED, error_of
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size

_CALL = 32  # the flag of a job


class _Signature(NamedTuple):
    name: str


class HostProgram:
    """The program of a launch that calls a function, as far as repeaters and profiles use programs.

    Parameters
    ----------
    name : str
    entry : callable
        Returns the address of an `mtl_call` of the native runtime.
    words : int
        Number of words that it takes.
    """

    logs = False
    origin = None
    is_sanitized = False
    compile_checked = None

    def __init__(self, name: str, entry: Callable[[], int], words: int) -> None:
        self.signature, self.words_of_jobs, self._entry = _Signature(name), words, entry

    def assume_nothing_of_contents(self) -> None:
        """Nothing: the call reads no numbers from memory."""

    def job(self, arguments: Arguments, grid: Size, group: Size) -> bytes:
        """See `CpuProgram.job`. The job has no threadgroups."""
        count = self.words_of_jobs
        head = native_library.HEAD.pack(
            self._entry(), _CALL, count, 0, *grid[1:], *group, 0, 0, 0, arguments.limit_ns
        )
        return head + bytes((ctypes.c_int64 * count)(*arguments.words))

    def failure(self, outcome: native_library.Outcome, grid: Size, group: Size) -> BaseException:
        """See `CpuProgram.failure`."""
        if outcome.status == INTERRUPTED:
            return native_library.runtime().interruption()
        name = self.signature.name
        return error_of(outcome, name, lambda at: (at, at), group, lambda address: None)
