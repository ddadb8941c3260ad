"""Detects hazards that Metal leaves to the program, and that often go unnoticed.

Metal orders launches of one queue by the buffers they use, and nothing else: not launches of a
concurrent encoder, not those of another queue, not what the host does. A buffer that a command
buffer does not retain must be kept by its owner. The software device runs everything in order and
keeps everything alive, so such errors would do no harm on it; they fail all the same.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import metalloid as mtl
from metalloid.compat.Metal.commands import Launch, Signal, Wait
from metalloid.compat.Metal.constants import MTLCommandBufferStatusScheduled
from metalloid.compat.Metal.failures import fail
from metalloid.runtime.launch.unordered import UnorderedLaunches

if TYPE_CHECKING:
    from metalloid.compat.Metal.buffer import MTLBuffer
    from metalloid.compat.Metal.command_buffer import MTLCommandBuffer
    from metalloid.compat.Metal.command_queue import MTLCommandQueue

_turns = itertools.count(1)


class Overlap:
    """The resources of launches of a concurrent encoder that may run at the same time.

    Where launches are checked, the sanitizer compares their accesses instead: two launches may
    write to different elements of one buffer.
    """

    def __init__(self) -> None:
        self._read: dict[int, str] = {}
        self._written: dict[int, str] = {}
        self._checked = UnorderedLaunches()

    def add(self, launch: Launch, kernel: str, selector: str) -> None:
        """Raise if a launch writes a buffer that another uses, or uses one that another writes."""
        if mtl.config.check:
            launch.unordered = self._checked
            return
        writes = {id(buffer) for buffer in launch.writes}
        for buffer in launch.uses:
            other = self._written.get(id(buffer))
            if other is None and id(buffer) in writes:
                other = self._read.get(id(buffer))
            if other is not None:
                fail(
                    selector,
                    f"Compute Function({kernel}) and Compute Function({other}) may run at once, "
                    "and one writes a buffer that the other uses: a memory barrier is missing. If "
                    "they use different elements, set METALLOID_CHECK=1, which compares those.",
                )
        for buffer in launch.uses:
            (self._written if id(buffer) in writes else self._read)[id(buffer)] = kernel

    def barrier(self, buffers: Iterable[Any] | None = None) -> None:
        """Order later launches after the earlier ones; only those that use `buffers`, if given.

        For launches that are checked it orders all.
        """
        self._checked = UnorderedLaunches()
        for used in (self._read, self._written):
            if buffers is None:
                used.clear()
            for buffer in buffers or ():
                used.pop(id(buffer), None)


def check_order(commands: MTLCommandBuffer, launches: Iterable[Any]) -> None:
    """Note what a command buffer writes that is committed now.

    Raises
    ------
    FailedAssertion
        If it uses what a command buffer of another queue has yet to write, and waits for no event
        of that queue.
    """
    queue, itself = commands.commandQueue(), weakref.ref(commands)
    turn = next(_turns)
    written: list[MTLBuffer] = []
    for command in launches:
        if isinstance(command, Signal):
            command.event.queues.add(queue)
            for buffer in written:
                buffer.is_synchronized = True
        elif isinstance(command, Wait):
            # The host may signal it, or a buffer not yet committed: that is not checked.
            for other in command.event.queues or {None}:
                queue.ordered[other] = turn
        elif isinstance(command, Launch):
            for buffer in command.uses:
                writer = None if buffer.writer is None else buffer.writer()
                if writer is not None and writer.commandQueue() is not queue:
                    _check_known(queue, writer, buffer)
            for buffer in command.writes:
                buffer.writer, buffer.written = itself, turn
                buffer.is_synchronized = False
                written.append(buffer)


def _check_known(queue: MTLCommandQueue, writer: MTLCommandBuffer, buffer: MTLBuffer) -> None:
    """Raise if a queue has not waited for what another one writes now."""
    known = max(queue.ordered.get(writer.commandQueue(), 0), queue.ordered.get(None, 0))
    if known < buffer.written and pending_writer(buffer) is not None:
        fail(
            "MTLCommandBuffer commit",
            "it uses a buffer that a command buffer of another queue has yet to write: wait for "
            "an event of that queue",
        )


def pending_writer(buffer: MTLBuffer) -> MTLCommandBuffer | None:
    """The command buffer that writes a buffer now.

    What still waits in line, perhaps for this queue or the host, is not looked into.
    """
    writer: MTLCommandBuffer | None = buffer.writer() if buffer.writer is not None else None
    if writer is None or writer.status() != MTLCommandBufferStatusScheduled:
        return None
    return writer


def check_host(buffer: MTLBuffer) -> None:
    """Raise if the host looks at what a command buffer writes now.

    After the commands that write it an event may be signalled; the host may then
    continue before the command buffer is done: that is not checked.
    """
    if pending_writer(buffer) is not None and not buffer.is_synchronized:
        fail(
            "MTLBuffer contents",
            "the host uses a buffer that a command buffer under way writes: wait until it has "
            "completed",
        )


class UnretainedResources:
    """Buffers of a command buffer that does not retain them."""

    def __init__(self) -> None:
        self._buffers: list[weakref.ref[MTLBuffer]] = []

    def add(self, launch: Launch) -> None:
        """Hold a launch's buffers no longer."""
        self._buffers += [weakref.ref(buffer) for buffer in launch.uses]
        launch.let_go()

    def check(self) -> None:
        """Raise if one was released before the host knew of the end."""
        if any(buffer() is None for buffer in self._buffers):
            fail(
                "MTLCommandBuffer waitUntilCompleted",
                "a buffer was released while a command buffer with unretained references used it",
            )
