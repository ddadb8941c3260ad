"""Metal that does nothing and returns at once: what is left is the cost of our own device code."""

from __future__ import annotations

import contextlib
from typing import Any

from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.backends.metal.runtime.device import MetalDevice
from metalloid.compat.Metal import constants
from metalloid.compat.Metal.structures import MTLSize


class _Nothing:
    """An object whose methods take anything and return what the class says, or None."""

    def __getattr__(self, name: str) -> Any:
        method = lambda *args: None  # noqa: E731
        setattr(self, name, method)  # found at once the next time
        return method


class _Buffer(_Nothing):
    def __init__(self, nbytes: int) -> None:
        self._bytes = bytearray(nbytes)

    def contents(self) -> _Buffer:
        return self

    def as_buffer(self, nbytes: int) -> memoryview:
        return memoryview(self._bytes)[:nbytes]


class _Commands(_Nothing):
    encoder = _Nothing()

    def computeCommandEncoderWithDispatchType_(self, kind: int) -> _Nothing:
        return self.encoder

    def status(self) -> int:
        return constants.MTLCommandBufferStatusCompleted

    def GPUStartTime(self) -> float:
        return 0.0

    GPUEndTime = GPUStartTime


class _Function(_Nothing):
    def functionConstantsDictionary(self) -> dict[str, Any]:
        return {}

    def newFunctionWithName_(self, name: str) -> _Function:
        return self

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return 1024

    threadExecutionWidth = maxTotalThreadsPerThreadgroup

    def staticThreadgroupMemoryLength(self) -> int:
        return 0


class _Gpu(_Nothing):
    def newCommandQueue(self) -> _Gpu:
        return self

    def commandBuffer(self) -> _Commands:
        return _Commands()

    def maxBufferLength(self) -> int:
        return 2**40

    def maxThreadsPerThreadgroup(self) -> MTLSize:
        return MTLSize(1024, 1024, 1024)

    def maxThreadgroupMemoryLength(self) -> int:
        return 32768

    def supportsFamily_(self, family: int) -> bool:
        return True

    def newBufferWithLength_options_(self, nbytes: int, options: int) -> _Buffer:
        return _Buffer(nbytes)

    def newLibraryWithSource_options_error_(self, *args: Any) -> tuple[Any, None]:
        return _Function(), None

    def newComputePipelineStateWithDescriptor_options_reflection_error_(
        self, *args: Any
    ) -> tuple[Any, None]:
        return _Function(), None


class _Descriptor(_Nothing):
    @classmethod
    def alloc(cls) -> _Descriptor:
        return cls()

    def init(self) -> _Descriptor:
        return self


class _Module:
    MTLCompileOptions = MTLComputePipelineDescriptor = _Descriptor

    def __getattr__(self, name: str) -> Any:
        return getattr(constants, name)


def stub_device() -> MetalDevice:
    """A Metal device whose GPU does nothing."""
    return MetalDevice(_Gpu(), 0, Binding(_Module(), True, contextlib.nullcontext))
