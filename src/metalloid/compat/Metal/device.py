"""The device: what makes everything else."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import metalloid as mtl
from metalloid.compat.memory import SharedMemory
from metalloid.compat.Metal.argument_descriptors import MTLArgumentDescriptor, struct_of
from metalloid.compat.Metal.argument_encoder import MTLArgumentEncoder
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.command_buffer import MTLCommandBuffer
from metalloid.compat.Metal.command_queue import MTLCommandQueue
from metalloid.compat.Metal.compile_options import MTLCompileOptions
from metalloid.compat.Metal.constants import (
    MTLCommandBufferStatusCompleted,
    MTLDeviceLocationBuiltIn,
    MTLGPUFamilyApple1,
    MTLGPUFamilyApple7,
    MTLGPUFamilyCommon1,
    MTLGPUFamilyCommon3,
    MTLGPUFamilyMetal3,
    MTLShaderValidationEnabled,
)
from metalloid.compat.Metal.conversions import instance, leading_bytes, unsigned
from metalloid.compat.Metal.events import MTLEvent, MTLFence, MTLSharedEvent
from metalloid.compat.Metal.failures import NSError, fail
from metalloid.compat.Metal.library import (
    MTLFunction,
    MTLLibrary,
    library_of_file,
    library_of_source,
)
from metalloid.compat.Metal.pipeline import (
    MTLComputePipelineDescriptor,
    MTLComputePipelineState,
    pipeline_of,
)
from metalloid.compat.Metal.samplers import (
    MTLSamplerDescriptor,
    MTLSamplerState,
    sampler_state,
)
from metalloid.compat.Metal.structures import MTLSize
from metalloid.compat.Metal.textures import MTLTexture, MTLTextureDescriptor, texture_of

_MAX_THREADGROUP_BYTES = 32 * 1024
_MAX_THREADS = 1024
#: Apple's GPUs have memory by the page, and programs launch threads beyond the ends of their arrays
#: without harm. The guide's own `load` runs 1024 threads for one number.
_PAGE = 16 * 1024


class MTLDevice:
    """A device of metalloid, by the selectors of Metal.

    Attributes
    ----------
    metalloid : Device
    lock : RLock
        Held while commands are issued.
    progress : Condition
        Of that lock: notified when commands have been issued or an event has a new value.
    waiting : set of MTLCommandQueue
        Those with command buffers that cannot be issued yet.
    running : deque of MTLCommandBuffer
        Those that were issued. They live until they have ended, even if unreferenced elsewhere.
    allocated_bytes : int
    alive : set of MetalObject
        Objects of the device that have not been released.
    """

    def __init__(self, device: Any, registry_id: int) -> None:
        self.metalloid, self._registry_id = device, registry_id
        self.lock = threading.RLock()
        self.progress = threading.Condition(self.lock)
        self.allocated_bytes = 0
        self.alive: weakref.WeakSet[Any] = weakref.WeakSet()
        self.waiting: set[MTLCommandQueue] = set()
        self.running: deque[MTLCommandBuffer] = deque()

    def advance(self) -> None:
        """Let queues go on that have waited."""
        for queue in list(self.waiting):
            queue.advance()

    def started(self, buffer: MTLCommandBuffer) -> None:
        """Keep a command buffer until it has ended."""
        self._forget_ended()
        self.running.append(buffer)

    def _forget_ended(self) -> None:
        with self.lock:
            while self.running and self.running[0].status() >= MTLCommandBufferStatusCompleted:
                self.running.popleft()

    def forget(self, nbytes: int) -> None:
        """Count the memory of a buffer that is gone."""
        self.allocated_bytes -= nbytes

    # -- what it is

    def name(self) -> str:
        """The processor it runs on."""
        return str(self.metalloid.info().description)

    def registryID(self) -> int:
        """A number of its own."""
        return self._registry_id

    def hasUnifiedMemory(self) -> bool:
        """True: host and kernels see the same memory."""
        return True

    def isLowPower(self) -> bool:
        """False."""
        return False

    def isHeadless(self) -> bool:
        """True: no display hangs on it."""
        return True

    def isRemovable(self) -> bool:
        """False."""
        return False

    def location(self) -> int:
        """``MTLDeviceLocationBuiltIn``."""
        return MTLDeviceLocationBuiltIn

    def maxTransferRate(self) -> int:
        """0, as for all that is built in."""
        return 0

    def recommendedMaxWorkingSetSize(self) -> int:
        """Bytes of memory of the machine."""
        return int(self.metalloid.info().memory_bytes)

    def currentAllocatedSize(self) -> int:
        """Bytes of all its buffers."""
        self._forget_ended()
        return self.allocated_bytes

    def maxBufferLength(self) -> int:
        """Bytes that one buffer may have."""
        return self.recommendedMaxWorkingSetSize()

    def maxThreadgroupMemoryLength(self) -> int:
        """Bytes of threadgroup memory."""
        return _MAX_THREADGROUP_BYTES

    def maxThreadsPerThreadgroup(self) -> MTLSize:
        """Threads of a threadgroup along each axis."""
        return MTLSize(_MAX_THREADS, _MAX_THREADS, _MAX_THREADS)

    def supportsFamily_(self, family: int) -> bool:
        """Whether it can compute what a family of GPUs can."""
        return (
            MTLGPUFamilyApple1 <= unsigned(family) <= MTLGPUFamilyApple7
            or MTLGPUFamilyCommon1 <= family <= MTLGPUFamilyCommon3
            or family == MTLGPUFamilyMetal3
        )

    # -- memory

    def newBufferWithLength_options_(self, length: int, options: int) -> MTLBuffer | None:
        """A buffer of zero bytes; None if there is no room, or nothing is asked for."""
        self._check_length("newBufferWithLength:options:", unsigned(length))
        if length == 0:
            return None
        try:
            return MTLBuffer(self, SharedMemory(length, self.metalloid, _PAGE), options)
        except mtl.OutOfMemory:
            return None

    def newBufferWithBytes_length_options_(
        self, contents: Any, length: int, options: int
    ) -> MTLBuffer | None:
        """A buffer with a copy of the first `length` bytes of an object."""
        source = leading_bytes(contents, unsigned(length))
        buffer = self.newBufferWithLength_options_(length, options)
        if buffer is not None:
            buffer.memory.bytes[:length] = source
        return buffer

    def newBufferWithBytesNoCopy_length_options_deallocator_(
        self,
        contents: Any,
        length: int,
        options: int,
        deallocator: Callable[[Any, int], Any] | None,
    ) -> MTLBuffer | None:
        """A buffer that is an object's own memory, which begins and ends with a page."""
        method = "newBufferWithBytesNoCopy:length:options:deallocator:"
        self._check_length(method, unsigned(length))
        selector = f"MTLDevice {method}"
        memory = leading_bytes(contents, unsigned(length))
        if memory.ctypes.data % mmap.PAGESIZE:
            fail(selector, f"pointer {memory.ctypes.data:#x} is not {mmap.PAGESIZE} byte aligned.")
        if length == 0 or length % mmap.PAGESIZE:
            fail(selector, f"length {length:#x} is not {mmap.PAGESIZE} byte aligned.")
        if not memory.flags.writeable:
            raise ValueError("depythonifying 'pointer', got memory that is read-only")
        buffer = MTLBuffer(self, SharedMemory.of_host(memory), options)
        if deallocator is not None:
            buffer.when_released(deallocator, contents, length)
        return buffer

    def _check_length(self, method: str, length: int) -> None:
        max_bytes = self.maxBufferLength()
        if length > max_bytes:
            fail(f"MTLDevice {method}", f"length({length}) must not exceed {max_bytes}.")

    def newTextureWithDescriptor_(self, descriptor: MTLTextureDescriptor) -> MTLTexture | None:
        """A texture of zeros; None if there is no room."""
        return texture_of(self, descriptor)

    def newArgumentEncoderWithArguments_(
        self, arguments: Sequence[MTLArgumentDescriptor]
    ) -> MTLArgumentEncoder:
        """An encoder for a struct of the members that are described."""
        return MTLArgumentEncoder(self, struct_of(arguments))

    def newSamplerStateWithDescriptor_(self, descriptor: MTLSamplerDescriptor) -> MTLSamplerState:
        """A sampler."""
        return sampler_state(self, instance(descriptor, MTLSamplerDescriptor))

    # -- libraries and pipelines

    def newLibraryWithSource_options_error_(
        self, source: str, options: MTLCompileOptions | None, error: None
    ) -> tuple[MTLLibrary | None, NSError | None]:
        """The library of a text, and what is wrong with that."""
        return library_of_source(self, source, options)

    def newLibraryWithSource_options_completionHandler_(
        self, source: str, options: MTLCompileOptions | None, handler: Callable[..., Any]
    ) -> None:
        """The same, handed to a function."""
        handler(*library_of_source(self, source, options))

    def newLibraryWithFile_error_(
        self, path: str, error: None
    ) -> tuple[MTLLibrary | None, NSError | None]:
        """The library of a file."""
        return library_of_file(self, path)

    def newLibraryWithURL_error_(
        self, url: Any, error: None
    ) -> tuple[MTLLibrary | None, NSError | None]:
        """The library of a file, by its NSURL."""
        return library_of_file(self, url.path())

    def newDefaultLibrary(self) -> MTLLibrary | None:
        """The library of ``default.metallib`` or ``default.metal`` in the current folder."""
        return library_of_file(self, os.path.abspath("default.metallib"))[0]

    def newComputePipelineStateWithFunction_error_(
        self, function: MTLFunction, error: None
    ) -> tuple[MTLComputePipelineState | None, NSError | None]:
        """A function ready to run, and what is wrong with it."""
        return pipeline_of(self, function, "newComputePipelineStateWithFunction:error:")

    def newComputePipelineStateWithFunction_completionHandler_(
        self, function: MTLFunction, handler: Callable[..., Any]
    ) -> None:
        """The same, handed to a function."""
        selector = "newComputePipelineStateWithFunction:completionHandler:"
        handler(*pipeline_of(self, function, selector))

    def newComputePipelineStateWithDescriptor_options_reflection_error_(
        self, descriptor: MTLComputePipelineDescriptor, options: int, reflection: None, error: None
    ) -> tuple[MTLComputePipelineState | None, NSError | None]:
        """The same, by a descriptor."""
        unsigned(options)
        function = instance(descriptor, MTLComputePipelineDescriptor).computeFunction()
        selector = "newComputePipelineStateWithDescriptor:options:reflection:error:"
        reports = descriptor.shaderValidation() == MTLShaderValidationEnabled
        state, failure = pipeline_of(self, function, selector, reports)
        if state is not None and descriptor.label() is not None:
            state.setLabel_(descriptor.label())
        return state, failure

    # -- queues and events

    def newCommandQueue(self) -> MTLCommandQueue:
        """A queue."""
        return MTLCommandQueue(self)

    def newCommandQueueWithMaxCommandBufferCount_(self, count: int) -> MTLCommandQueue:
        """A queue; the number of its command buffers is not limited."""
        if unsigned(count) == 0:
            fail("MTLDevice newCommandQueueWithMaxCommandBufferCount:", "count must be > 0")
        return self.newCommandQueue()

    def newEvent(self) -> MTLEvent:
        """An event for queues."""
        return MTLEvent(self)

    def newSharedEvent(self) -> MTLSharedEvent:
        """An event for queues and the host."""
        return MTLSharedEvent(self)

    def newFence(self) -> MTLFence:
        """A fence for encoders."""
        return MTLFence(self)

    def __repr__(self) -> str:
        return f"<MTLDevice {self.name()}>"
