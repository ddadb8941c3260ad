"""Command buffers: from encoding to completion."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import metalloid as mtl
from metalloid.compat.Metal.blit_encoder import MTLBlitCommandEncoder
from metalloid.compat.Metal.commands import Command, Launch, Signal, Wait
from metalloid.compat.Metal.compute_encoder import MTLComputeCommandEncoder
from metalloid.compat.Metal.constants import (
    MTLCommandBufferErrorInternal,
    MTLCommandBufferErrorPageFault,
    MTLCommandBufferErrorStackOverflow,
    MTLCommandBufferStatusCommitted,
    MTLCommandBufferStatusCompleted,
    MTLCommandBufferStatusEnqueued,
    MTLCommandBufferStatusError,
    MTLCommandBufferStatusNotEnqueued,
    MTLCommandBufferStatusScheduled,
)
from metalloid.compat.Metal.conversions import instance, text, unsigned
from metalloid.compat.Metal.events import MTLEvent
from metalloid.compat.Metal.failures import NSError, fail
from metalloid.compat.Metal.function_logs import MTLFunctionLog
from metalloid.compat.Metal.hazards import UnretainedResources, check_order
from metalloid.compat.Metal.objects import MetalObject

if TYPE_CHECKING:
    from metalloid.compat.Metal.command_queue import MTLCommandQueue

Handler = Callable[[Any], Any]
_DOMAIN = "MTLCommandBufferErrorDomain"


class MTLCommandBuffer(MetalObject):
    """Commands that are run together, in order."""

    __slots__ = (
        "_commands",
        "_completed_handlers",
        "_encoder",
        "_end",
        "_error",
        "_groups",
        "_handlers_thread",
        "_is_finished",
        "_is_issued",
        "_launches",
        "_lock",
        "_logs",
        "_next_command",
        "_queue",
        "_retained",
        "_retains",
        "_scheduled_handlers",
        "_start",
        "_status",
        "_unretained",
    )

    def __init__(self, queue: MTLCommandQueue, retains: bool) -> None:
        super().__init__(queue.device())
        self._queue, self._retains = queue, retains
        self._commands: list[Command] = []
        self._launches: list[tuple[mtl.Event, Command]] = []
        self._logs: list[MTLFunctionLog] = []
        self._retained: list[Any] = []
        self._encoder = False
        self._status = MTLCommandBufferStatusNotEnqueued
        self._next_command = self._groups = 0
        self._completed_handlers: list[Handler] = []
        self._scheduled_handlers: list[Handler] = []
        self._handlers_thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_issued = self._is_finished = False
        self._unretained = None if retains else UnretainedResources()
        self._error: NSError | None = None
        self._start = self._end = 0.0

    # -- encoding

    def computeCommandEncoder(self) -> MTLComputeCommandEncoder:
        """An encoder of launches."""
        self._begin("computeCommandEncoder")
        return MTLComputeCommandEncoder(self)

    def computeCommandEncoderWithDispatchType_(self, kind: int) -> MTLComputeCommandEncoder:
        """The same, serial or concurrent."""
        self._begin("computeCommandEncoderWithDispatchType:")
        return MTLComputeCommandEncoder(self, unsigned(kind))

    def blitCommandEncoder(self) -> MTLBlitCommandEncoder:
        """An encoder of copies."""
        self._begin("blitCommandEncoder")
        return MTLBlitCommandEncoder(self)

    def encodeSignalEvent_value_(self, event: MTLEvent, value: int) -> None:
        """Let an event reach a value when all before is done."""
        self._check_between_encoders("encodeSignalEvent:value:")
        self.add(Signal(instance(event, MTLEvent), unsigned(value)))

    def encodeWaitForEvent_value_(self, event: MTLEvent, value: int) -> None:
        """Begin nothing that follows before an event has reached a value."""
        self._check_between_encoders("encodeWaitForEvent:value:")
        self.add(Wait(instance(event, MTLEvent), unsigned(value)))

    def pushDebugGroup_(self, string: str) -> None:
        """Begin a debug group."""
        text(string)
        self._groups += 1

    def popDebugGroup(self) -> None:
        """End it."""
        if not self._groups:
            self._fail("popDebugGroup", "popDebugGroup without pushDebugGroup")
        self._groups -= 1

    def add(self, command: Command) -> None:
        """Take a command from an encoder."""
        self._commands.append(command)

    def retain(self, resource: Any) -> None:
        """Keep something until the end."""
        if self._retains:
            self._retained.append(resource)

    def encoder_ended(self) -> None:
        """Let another encoder begin."""
        self._encoder = False

    def _begin(self, selector: str) -> None:
        self._check_between_encoders(selector)
        self._encoder = True

    def _check_between_encoders(self, selector: str) -> None:
        if self._status >= MTLCommandBufferStatusCommitted:
            self._fail(selector, "encoding to a command buffer that has been committed")
        if self._encoder:
            self._fail(selector, "A command encoder is already encoding to this command buffer")

    # -- running

    def commandQueue(self) -> MTLCommandQueue:
        """Its queue."""
        return self._queue

    def retainedReferences(self) -> bool:
        """Whether it keeps what its commands use; metalloid does in any case."""
        return self._retains

    def enqueue(self) -> None:
        """Take the next position in the queue."""
        if self._status != MTLCommandBufferStatusNotEnqueued:
            self._fail("enqueue", "enqueue of a command buffer that has a place in the queue")
        self._status = MTLCommandBufferStatusEnqueued
        self._queue.append(self)

    def commit(self) -> None:
        """Run the commands when those before it in the queue have run."""
        if self._status >= MTLCommandBufferStatusCommitted:
            self._fail("commit", "commit an already committed command buffer")
        if self._encoder:
            self._fail("commit", "commit command buffer with uncommitted encoder")
        check_order(self, self._commands)
        if self._status == MTLCommandBufferStatusNotEnqueued:
            self.enqueue()
        self._status = MTLCommandBufferStatusCommitted
        if self._unretained is not None:
            for command in self._commands:
                if isinstance(command, Launch):
                    self._unretained.add(command)
        self._queue.advance()
        if self._completed_handlers:
            self._handlers_thread = threading.Thread(target=self._call_handlers, name="Metal")
            self._handlers_thread.start()

    def issue(self) -> bool:
        """Hand the commands to metalloid as far as they go; whether that is all of them."""
        if self._status < MTLCommandBufferStatusCommitted:
            return False
        while self._next_command < len(self._commands):
            command = self._commands[self._next_command]
            try:
                issued = command.issue(self._queue.latest)
            except mtl.MetalloidError as failure:
                self._error = _error_of(failure)
                break
            if issued is False:
                return False
            self._next_command += 1
            if issued is not True:
                self._launches.append((issued, command))
                self._queue.latest = issued
        self._status = MTLCommandBufferStatusScheduled
        self._is_issued = True
        self._device.started(self)
        self._device.progress.notify_all()
        for handler in self._scheduled_handlers:
            handler(self)
        return True

    def waitUntilScheduled(self) -> None:
        """Wait until the commands have been handed to the device."""
        self._check_committed("waitUntilScheduled")
        progress = self._device.progress
        if not self._is_issued:
            with progress:
                progress.wait_for(lambda: self._is_issued)

    def waitUntilCompleted(self) -> None:
        """Wait until all is done. What went wrong is told by `status` and `error`."""
        self._check_committed("waitUntilCompleted")
        if self._unretained is not None:
            self._unretained.check()
        self._finish()
        thread = self._handlers_thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def addScheduledHandler_(self, block: Handler) -> None:
        """Have a function called when the commands have been handed to the device."""
        if self._status >= MTLCommandBufferStatusCommitted:
            self._fail("addScheduledHandler:", "Scheduled handler provided after commit call")
        self._scheduled_handlers.append(block)

    def addCompletedHandler_(self, block: Handler) -> None:
        """Have a function called, in a thread of its own, when all is done."""
        if self._status >= MTLCommandBufferStatusCommitted:
            self._fail("addCompletedHandler:", "Completed handler provided after commit call")
        self._completed_handlers.append(block)

    def _call_handlers(self) -> None:
        self._finish()
        for handler in self._completed_handlers:
            handler(self)

    def _finish(self) -> None:
        if self._is_finished:
            return
        self.waitUntilScheduled()
        with self._lock:
            if self._is_finished:
                return
            seconds = 0.0
            for launch, command in self._launches:
                try:
                    seconds += launch.seconds  # waits
                except mtl.MetalloidError as failure:
                    self._failed(command, failure)
            self._start, self._end = self._queue.timeline(seconds)
            self._is_finished = True
            # A reference to the command buffer does not keep its resources alive.
            self._commands, self._launches, self._retained = [], [], []

    def _failed(self, command: Command, failure: mtl.MetalloidError) -> None:
        function = command.reporting if isinstance(command, Launch) else None
        if function is not None and isinstance(failure, mtl.KernelFault):
            self._logs.append(MTLFunctionLog(function, failure))
        else:
            self._error = self._error or _error_of(failure)

    # -- afterwards

    def logs(self) -> tuple[MTLFunctionLog, ...]:
        """Reports of pipelines with shader validation; empty before the end."""
        return tuple(self._logs)

    def status(self) -> int:
        """Its state: ``MTLCommandBufferStatusCompleted`` ..."""
        if self._status < MTLCommandBufferStatusScheduled:
            return self._status
        if not self._is_finished:
            launches = self._launches
            if launches and not launches[-1][0].done:
                return MTLCommandBufferStatusScheduled
            self._finish()
        return MTLCommandBufferStatusError if self._error else MTLCommandBufferStatusCompleted

    def error(self) -> NSError | None:
        """The error; None without one, and before completion."""
        return self._error

    def GPUStartTime(self) -> float:
        """When the device began, in seconds; 0 before the end."""
        return self._start

    def GPUEndTime(self) -> float:
        """When the device ended, in seconds; 0 before."""
        return self._end

    def kernelStartTime(self) -> float:
        """When the driver began, in seconds: with the device."""
        return self._start

    def kernelEndTime(self) -> float:
        """When the driver ended, in seconds: before the device."""
        return self._start

    def _check_committed(self, selector: str) -> None:
        if self._status < MTLCommandBufferStatusCommitted:
            self._fail(selector, "the command buffer has not been committed")

    def _fail(self, selector: str, what: str) -> NoReturn:
        fail(f"MTLCommandBuffer {selector}", what)


def _error_of(failure: mtl.MetalloidError) -> NSError:
    reason = failure.reason if isinstance(failure, mtl.KernelFault) else ""
    code = MTLCommandBufferErrorInternal
    if reason.startswith(("access to memory", "read of ", "write to ")):
        code = MTLCommandBufferErrorPageFault
    elif reason.startswith("stack overflow"):
        code = MTLCommandBufferErrorStackOverflow
    return NSError(_DOMAIN, code, str(failure))
