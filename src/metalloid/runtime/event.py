"""Events: what a launch returns at once, and what says when and how it ended."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Event(ABC):
    """A launch under way or finished.

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
        """Return when the launch has ended.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most; without it, as long as it takes. Ctrl-C ends the wait.

        Raises
        ------
        KernelFault
            If the kernel failed.
        TimeoutError
            If it was still running after `timeout` seconds.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the launch has ended (it may have failed: `wait` tells)."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """Time the device spent on the launch, in seconds; waits for its end."""


class FinishedEvent(Event):
    """A launch that had ended when it returned."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wait(self, timeout: float | None = None) -> FinishedEvent:
        """Nothing to wait for."""
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
