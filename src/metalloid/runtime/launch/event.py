"""Events: a launch returns one at once, and it tells when and how the launch ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any


class Event(ABC):
    """A running or finished launch.

    A coroutine of asyncio waits by ``await event``, while other tasks run. If the task is
    cancelled, so is the launch.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''kernel void twice(device float* x, uint i [[thread_position_in_grid]])
    ... { x[i] *= 2; }''')
    >>> buffer = mtl.Buffer(np.arange(4, dtype=np.float32))
    >>> event = lib.twice(buffer, threads=4)
    >>> event.wait().done
    True
    >>> np.asarray(buffer).tolist()
    [0.0, 2.0, 4.0, 6.0]
    """

    @abstractmethod
    def wait(self, timeout: float | None = None) -> Event:
        """Wait for the end of the launch.

        Parameters
        ----------
        timeout : float, optional
            Maximum time to wait, in seconds; unlimited by default. Ctrl-C ends the wait and, on the
            CPU and NVIDIA GPUs, the launch.

        Raises
        ------
        KernelFault
            If the kernel failed.
        LaunchTimeout
            If it exceeded its time limit.
        LaunchCancelled
            If Ctrl-C stopped it.
        TimeoutError
            If it is still running after `timeout` seconds. The launch continues.
        """

    def __await__(self) -> Generator[Any, None, Event]:
        """Wait in a thread of the running loop's executor; see `wait`."""
        import asyncio  # here, as most programs do without

        if self.done:
            return self.wait()
        try:
            waiting = asyncio.get_running_loop().run_in_executor(None, self.wait)
            return (yield from waiting.__await__())
        except asyncio.CancelledError:
            self.cancel()
            raise

    def settle(self) -> None:
        """Return when the launch has ended. If it failed, reads of the buffers it wrote raise."""
        self.wait()

    def cancel(self) -> bool:
        """Stop the launch.

        Its threads leave the kernel at once. `wait`, and reads of buffers that it wrote to, raise
        `LaunchCancelled`. Later launches run as usual.

        Returns
        -------
        bool
            Whether the launch was still running and will stop. Apple GPUs cannot stop a launch.

        Examples
        --------
        >>> import metalloid as mtl, numpy as np
        >>> lib = mtl.library("kernel void spin(device volatile int* a) { while (a[0] == 0) {} }")
        >>> event = lib.spin(mtl.Buffer(np.zeros(1, np.int32), "cpu"), threads=1)
        >>> event.cancel()
        True
        """
        return False

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the launch has ended. It may have failed: `wait` raises then."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """Time the device spent on the launch, in seconds; waits for its end."""


class FinishedEvent(Event):
    """The event of a synchronous launch."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wait(self, timeout: float | None = None) -> FinishedEvent:
        """Return at once."""
        return self

    @property
    def done(self) -> bool:
        """True."""
        return True

    @property
    def seconds(self) -> float:
        """Time the device spent, in seconds."""
        return self._seconds

    def __repr__(self) -> str:
        return f"<Event: done in {self._seconds:.3g} s>"
