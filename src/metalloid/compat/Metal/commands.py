"""The commands of a command buffer, which are passed to metalloid in order."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import metalloid as mtl
from metalloid.runtime.launch.unordered import UnorderedLaunches, unordered

if TYPE_CHECKING:
    from metalloid.compat.Metal.events import MTLEvent
    from metalloid.compat.Metal.library import MTLFunction


class Command(Protocol):
    """One command."""

    def issue(self, previous: mtl.Event | None) -> mtl.Event | bool:
        """Hand it to metalloid.

        Parameters
        ----------
        previous : Event or None
            The last launch of the queue.

        Returns
        -------
        Event or bool
            A pending launch; or whether the command has been carried out.

        Raises
        ------
        MetalloidError
            If metalloid refuses it.
        """


class Launch:
    """A kernel with its arguments."""

    __slots__ = (
        "_arguments", "_group", "_kernel", "_threads", "reporting", "unordered", "uses", "writes",
    )  # fmt: skip

    def __init__(
        self,
        kernel: mtl.Kernel,
        arguments: list[Any],
        threads: tuple[int, int, int],
        group: tuple[int, int, int] | None,
        uses: Sequence[Any] = (),
        writes: Sequence[Any] = (),
    ) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._threads, self._group = threads, group
        #: Buffers, which live as long as the command buffer; those that the kernel may write to.
        self.uses, self.writes = uses, writes
        #: The launches that may run at the same time, if the sanitizer is to look at them.
        self.unordered: UnorderedLaunches | None = None
        #: The function, if its accesses outside of buffers go to the command buffer's logs.
        self.reporting: MTLFunction | None = None

    def let_go(self) -> None:
        """Hold the buffers no longer; their memory lives on."""
        self.uses = self.writes = ()

    def issue(self, previous: mtl.Event | None) -> mtl.Event | bool:
        """See `Command`."""
        scope = contextlib.nullcontext() if self.unordered is None else unordered(self.unordered)
        with scope:
            return self._kernel(
                *self._arguments, threads=self._threads, group_size=self._group, wait=False
            )


class IndirectLaunch(Launch):
    """A kernel of which memory says, when its turn comes, in how many threadgroups it runs."""

    #: Three numbers of 32 bits.
    BYTES = 12

    __slots__ = ("_counts", "_size")

    def __init__(
        self,
        kernel: mtl.Kernel,
        arguments: list[Any],
        counts: np.ndarray,
        group: tuple[int, int, int],
        uses: Sequence[Any] = (),
        writes: Sequence[Any] = (),
    ) -> None:
        super().__init__(kernel, arguments, (0, 0, 0), group, uses, writes)
        self._counts, self._size = counts, group

    def issue(self, previous: mtl.Event | None) -> mtl.Event | bool:
        """See `Command`. Waits for all that may still write the numbers."""
        self._kernel.device.synchronize()
        x, y, z = (int(count) for count in self._counts.view(np.uint32))
        self._threads = (x * self._size[0], y * self._size[1], z * self._size[2])
        return True if 0 in self._threads else super().issue(previous)


class Signal:
    """An event reaches a value when all before it in the queue is done."""

    __slots__ = ("_value", "event")

    def __init__(self, event: MTLEvent, value: int) -> None:
        self.event, self._value = event, value

    def issue(self, previous: mtl.Event | None) -> bool:
        """See `Command`."""
        self.event.reach(self._value, previous)
        return True


class Wait:
    """Later commands of the queue wait until an event has reached a value.

    Launches of a device run in the order in which they are issued. So it is enough that the
    launches which the event follows have been issued.
    """

    __slots__ = ("_value", "event")

    def __init__(self, event: MTLEvent, value: int) -> None:
        self.event, self._value = event, value

    def issue(self, previous: mtl.Event | None) -> bool:
        """See `Command`."""
        return self.event.is_issued(self._value)
