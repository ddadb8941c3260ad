"""Launches that run again and again, with other addresses in some of their words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from metalloid.backends.cpu.runtime import native_library
from metalloid.runtime.launch.launches import Launch, LaunchBuffer, NativeRow, SeparateLaunch

_WORD = 8


class CpuRepeater:
    """See `Launcher.repeater`. It is for one thread at a time.

    Parameters
    ----------
    emit_messages : callable
        Hands what kernels have logged so far to `logging`.
    """

    def __init__(self, emit_messages: Callable[[], None], launches: Sequence[Launch],
                 words: Sequence[tuple[int, int, int]]) -> None:  # fmt: skip
        for launch in launches:  # whose numbers may change from run to run
            launch.program.assume_nothing_of_contents()
        jobs = [
            launch.program.job(launch.arguments, launch.grid, launch.group) for launch in launches
        ]
        starts = [sum(map(len, jobs[:k])) for k in range(len(jobs))]
        self._launches = launches  # with the objects that their words point to
        self._memory = bytearray(b"".join(jobs))
        self._words = memoryview(self._memory).cast("Q")
        self._positions = [
            ((starts[k] + native_library.JOB_BYTES) // _WORD + position, address)
            for k, position, address in words
        ]
        self._jobs = (ctypes.c_char * len(self._memory)).from_buffer(self._memory)
        self._outcome = native_library.Outcome()
        self._run = native_library.runtime().run_row_untimed
        self._emit = emit_messages if any(launch.program.logs for launch in launches) else None

    @property
    def native(self) -> NativeRow | None:
        """See `Repeater.native`."""
        run = ctypes.cast(self._run, ctypes.c_void_p).value
        if self._emit is not None or run is None:
            return None
        count = len(self._launches)
        return NativeRow(run, self._memory, count, self._positions, self._fail)

    def write(self, addresses: Sequence[int]) -> None:
        """Let the launches use these addresses."""
        words = self._words
        for index, address in self._positions:
            words[index] = addresses[address]

    def is_separable(self, addresses: Sequence[int]) -> bool:
        """See `Repeater.is_separable`."""
        return True

    def finish(self, written: Sequence[LaunchBuffer]) -> None:
        """See `Repeater.finish`: launches have ended when they return."""

    def separate(self) -> Iterator[SeparateLaunch]:
        """See `Repeater.separate`."""
        start = 0
        for index, launch in enumerate(self._launches):
            count = len(launch.arguments.words)
            size = native_library.JOB_BYTES + _WORD * launch.program.words_of_jobs
            job = (ctypes.c_char * size).from_buffer(self._memory, start)
            first = (start + native_library.JOB_BYTES) // _WORD
            words = self._words[first : first + count]
            yield SeparateLaunch(launch, words, (), self._runner(job, index))
            start += size

    def _runner(self, job: Any, index: int) -> Callable[[], float]:
        run, outcome = native_library.runtime().run, self._outcome

        def run_job() -> float:
            if run(job, outcome) != 0:
                self._fail(bytes(outcome), index)
            seconds: float = outcome.seconds
            return seconds

        return run_job

    def _fail(self, block: bytes, index: int) -> NoReturn:
        failed, outcome = self._launches[index], native_library.Outcome.from_buffer_copy(block)
        raise failed.program.failure(outcome, failed.grid, failed.group)

    def __call__(self, addresses: Sequence[int], written: Sequence[LaunchBuffer]) -> None:
        """Run the launches.

        Raises
        ------
        KernelFault
            If one failed; those after it did not run.
        """
        self.write(addresses)
        done = self._run(self._jobs, len(self._launches), self._outcome)
        if self._emit is not None:
            self._emit()
        if done < len(self._launches):
            self._fail(bytes(self._outcome), done)
