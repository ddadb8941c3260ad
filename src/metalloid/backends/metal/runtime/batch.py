"""Launches that go to the GPU together, in one command buffer."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from metalloid.backends.metal.runtime.commands import Command
from metalloid.backends.metal.runtime.context import MetalContext
from metalloid.backends.metal.runtime.images import Image
from metalloid.backends.metal.runtime.products import ProductCommand
from metalloid.backends.metal.runtime.validation import AccessReport, reports_of
from metalloid.errors import KernelFault
from metalloid.runtime.launch.event import Event

#: Looks at a command buffer follow each other at once for so long, then with growing pauses.
_SPIN = 0.0002
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.00005, 0.005


class Batch:
    """Launches in order, encoded when the batch is committed.

    Parameters
    ----------
    device : MetalContext
    flush : callable
        Commits a batch that is still open.
    finish_through : callable
        Finishes all batches up to one.

    Attributes
    ----------
    commands : list of Command and ProductCommand
        Empty after the end.
    is_committed : bool
    begun : float
        When the first launch came, by `time.monotonic`.
    """

    def __init__(
        self,
        device: MetalContext,
        flush: Callable[[Batch], None],
        finish_through: Callable[[Batch], None],
    ) -> None:
        self._device, self._flush, self._finish_through = device, flush, finish_through
        self.commands: list[Command | ProductCommand] = []
        self.count = 0
        self.is_committed = False
        self.begun = time.monotonic()
        self._buffer: Any = None
        self._names: list[str] = []
        self._lock = threading.Lock()
        self._is_finished = False
        self._fault = ""
        self._accesses: dict[str, AccessReport] = {}
        self.seconds = 0.0

    def add(self, command: Command | ProductCommand) -> None:
        """Take a launch or a product."""
        self.commands.append(command)
        self.count += 1
        for allocation in command.reads:
            allocation.batch = self
        for allocation in command.writes:
            allocation.batch = self
        for copy in command.copies:
            self._device.heap.add_loan(copy.source)

    def commit(self) -> None:
        """Encode and hand over; the device's lock is held."""
        device = self._device
        self.is_committed = True
        try:
            with device.binding.pool():
                logs = any(command.logs for command in self.commands)
                self._buffer = device.logs.command_buffer(device.queue, logs)
                self._encode()
                self._buffer.commit()
        except BaseException as error:  # callers must not wait for a batch that does not run
            self._fault = f"it was not encoded: {error}"
            self._end(copy=False)
            raise

    def _encode(self) -> None:
        """One encoder for launches in a row; what needs encoders of its own stands between them."""
        row: list[Command] = []
        for command in self.commands:
            if isinstance(command, Command) and not command.images:
                row.append(command)
                continue
            self._encode_launches(row)
            row = []
            if isinstance(command, Command):
                self._encode_with_textures(command)
            else:
                command.encode(self._buffer)
        self._encode_launches(row)

    def _encode_with_textures(self, command: Command) -> None:
        """Textures are filled before the launch and copied back after it."""
        images = command.images.values()
        self._copy(Image.fill, images)
        self._encode_launches([command])
        self._copy(Image.empty, [image for image in images if image.is_written])

    def _copy(self, encode_copy: Callable[[Image, Any], None], images: Collection[Image]) -> None:
        """Copy texels between textures and buffers."""
        if images:
            encoder = self._buffer.blitCommandEncoder()
            for image in images:
                encode_copy(image, encoder)
            encoder.endEncoding()

    def _encode_launches(self, commands: Sequence[Command]) -> None:
        """Bind and dispatch. What stays bound is not bound again.

        Launches may overlap, except those of which one writes what the other uses: a barrier keeps
        them apart. Metal itself does so between command buffers.
        """
        if not commands:
            return
        encoder = self._buffer.computeCommandEncoderWithDispatchType_(self._device.concurrent)
        set_pipeline = encoder.setComputePipelineState_
        set_buffer, set_bytes = encoder.setBuffer_offset_atIndex_, encoder.setBytes_length_atIndex_
        dispatch, barrier = self._device.dispatch_of(encoder), encoder.memoryBarrierWithScope_
        scope, usages = self._device.buffers_scope, self._device.usages
        program: Any = None
        bound: dict[int, tuple[Any, int]] = {}
        read: set[Any] = set()
        written: set[Any] = set()
        for command in commands:
            reads, writes = command.reads, command.writes
            if not (
                written.isdisjoint(reads) and written.isdisjoint(writes) and read.isdisjoint(writes)
            ):
                barrier(scope)
                read.clear()
                written.clear()
            read.update(reads)
            written.update(writes)
            if command.program is not program:
                program = command.program
                set_pipeline(program.pipeline)
            for index, buffer, offset in command.buffers:
                known, bound_offset = bound.get(index, (None, 0))
                if known is not buffer or bound_offset != offset:
                    set_buffer(buffer, offset, index)
                    bound[index] = (buffer, offset)
            for index, contents, nbytes in command.inline:
                set_bytes(contents, nbytes, index)
                bound.pop(index, None)
            for index, nbytes in command.threadgroup:
                encoder.setThreadgroupMemoryLength_atIndex_(nbytes, index)
            for index, texture in command.textures:
                encoder.setTexture_atIndex_(texture, index)
            for index, sampler in command.samplers:
                encoder.setSamplerState_atIndex_(sampler, index)
            for resource, is_written in command.used:
                encoder.useResource_usage_(resource, usages[is_written])
            dispatch(command.grid, command.group)
        encoder.endEncoding()

    def is_old(self, seconds: float) -> bool:
        """Whether its first launch has waited so long."""
        return time.monotonic() - self.begun > seconds

    def is_over(self) -> bool:
        """Whether the GPU has ended with it, well or not."""
        return self._is_finished or (
            self.is_committed and self._buffer.status() >= self._device.completed
        )

    def wait(self, timeout: float | None) -> bool:
        """Return when it has ended, or after `timeout` seconds; whether it has ended."""
        if self._is_finished:
            return True
        self._flush(self)
        start, pause = time.monotonic(), _SHORTEST_PAUSE
        while not self.is_over():
            spent = time.monotonic() - start
            if timeout is not None and spent >= timeout:
                return False
            if spent > _SPIN:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        self._finish_through(self)
        return True

    def finish(self) -> None:
        """Take what the GPU has left; it has ended."""
        with self._lock:
            if self._is_finished:
                return
            buffer = self._buffer
            with self._device.binding.pool():
                self.seconds = max(buffer.GPUEndTime() - buffer.GPUStartTime(), 0.0)
                if buffer.status() != self._device.completed:
                    error = buffer.error()
                    self._fault = str(error.localizedDescription()) if error else "it failed"
                self._accesses = reports_of(buffer, self.commands)
            self._end(copy=True)

    def _end(self, copy: bool) -> None:
        """Copy back what is owed, if there is something, and let everything go."""
        self._names = list(dict.fromkeys(command.name for command in self.commands))
        for command in self.commands:
            for source, nbytes in command.copies:
                if copy and source.stands_for != source.address:
                    ctypes.memmove(source.stands_for, source.address, nbytes)
                self._device.heap.remove_loan(source)
        self.commands, self._buffer = [], None
        self._is_finished = True

    def check(self, kernel: str) -> None:
        """Raise what went wrong.

        Raises
        ------
        KernelFault
        """
        if kernel in self._accesses:
            raise self._accesses[kernel].error
        if not self._fault:
            return
        text = self._fault
        if not text.startswith("["):  # Metal does not say which kernel it was
            others = [name for name in self._names if name != kernel]
            also_ran = f" (or in {', '.join(others)}, which ran with it)" if others else ""
            text = f"[{kernel}] {text}{also_ran}"
        raise KernelFault(text, kernel=kernel, reason=self._fault)


class MetalEvent(Event):
    """A launch of a batch."""

    __slots__ = ("_batch", "_kernel")

    def __init__(self, batch: Batch, kernel: str) -> None:
        self._batch, self._kernel = batch, kernel

    def wait(self, timeout: float | None = None) -> MetalEvent:
        """See `Event.wait`."""
        if not self._batch.wait(timeout):
            raise TimeoutError(f"[{self._kernel}] still running after {timeout} s")
        self._batch.check(self._kernel)
        return self

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        return self._batch.wait(0.0)

    @property
    def seconds(self) -> float:
        """See `Event.seconds`. Launches that went to the GPU together have the same share."""
        self.wait()
        return self._batch.seconds / self._batch.count

    def __repr__(self) -> str:
        return f"<Event: {self._kernel}, {'done' if self.done else 'running'}>"
