"""The parts of a Metal device that its launches use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from metalloid.backends.metal.compile.limits import Limits
from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.backends.metal.runtime.logs import Logs
from metalloid.backends.metal.runtime.memory import Heap
from metalloid.backends.metal.runtime.samplers import Samplers
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.program import Size


class MetalContext(Protocol):
    """A GPU and its queue, memory and limits.

    Attributes
    ----------
    gpu : MTLDevice
    binding : Binding
    queue : MTLCommandQueue
    concurrent, buffers_scope, completed : int
        Metal's constants for dispatch types, barriers and the status of a finished command buffer.
    usages : tuple of int
        Metal's constants for resources that kernels only read, and for others.
    heap : Heap
    samplers : Samplers
    logs : Logs
    limits : Limits
    """

    gpu: Any
    binding: Binding
    queue: Any
    concurrent: Any
    buffers_scope: Any
    completed: Any
    usages: tuple[Any, Any]
    heap: Heap
    samplers: Samplers
    logs: Logs
    limits: Limits

    def dispatch_of(self, encoder: Any) -> Callable[[Size, Size], Any]:
        """The encoder's method to dispatch a grid of threads."""

    def enqueue(self, make: Callable[[], Any]) -> Event:
        """Add a command other than a launch to the open batch."""

    def synchronize(self) -> None:
        """Wait for all launches."""
