"""Pipeline states: functions ready to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import metalloid as mtl
from metalloid.compat.Metal.constants import (
    MTLShaderValidationDefault,
    MTLShaderValidationDisabled,
    MTLShaderValidationEnabled,
)
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.failures import NSError, fail
from metalloid.compat.Metal.library import MTLFunction
from metalloid.compat.Metal.objects import MetalObject
from metalloid.msl.layout import Layout

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

_DOMAIN = "CompilerError"
_COMPILER_ERROR = 2
_MAX_ALIGNMENT = 16  # that metalloid asks for
_CONSTANT_ALIGNMENT = 4  # of where `constant` memory begins in a buffer, on Apple's GPUs
_SIMDGROUP_WIDTH = 32  # of every device


class MTLComputePipelineState(MetalObject):
    """A compiled function.

    Attributes
    ----------
    function : MTLFunction
    kernel : Kernel
    buffers : tuple of (int, int, int, str)
        Index, bytes and alignment of an element, and name of each parameter that takes memory.
    writes : tuple of bool
        Whether the kernel may write to each of these.
    resources : tuple of BoundParameter
        All parameters in the order of arguments, if there are textures or samplers among them.
    threadgroup : tuple of (int, int, str)
        Index, bytes of an element, and name of those that take threadgroup memory.
    reports : bool
        Whether accesses outside of buffers go to the command buffer's logs, and are no error.
    required_group : tuple of int or None
        The one size of threadgroups that the text allows.
    """

    __slots__ = (
        "buffers", "function", "kernel", "reports", "required_group", "resources", "threadgroup",
        "writes",
    )  # fmt: skip

    def __init__(
        self, device: MTLDevice, function: MTLFunction, kernel: mtl.Kernel, reports: bool
    ) -> None:
        super().__init__(device)
        self.function, self.reports = function, reports
        self.kernel, signature = kernel, kernel.signature
        self.buffers = tuple(
            (p.index, p.layout.bytes, _alignment(p.layout), p.name) for p in signature.buffers
        )
        self.writes = tuple(not p.layout.read_only for p in signature.buffers)
        has_others = len(self.buffers) < len(signature.arguments)
        self.resources = signature.arguments if has_others else ()
        self.required_group = signature.limits.size
        self.threadgroup = tuple((p.index, p.layout.bytes, p.name) for p in signature.threadgroup)

    def maxTotalThreadsPerThreadgroup(self) -> int:
        """Threads a threadgroup may have."""
        return self.kernel.max_group_size

    def staticThreadgroupMemoryLength(self) -> int:
        """Bytes of the threadgroup variables of its text."""
        return self.kernel.threadgroup_bytes

    def threadExecutionWidth(self) -> int:
        """Threads of a simdgroup."""
        return _SIMDGROUP_WIDTH

    def shaderValidation(self) -> int:
        """``MTLShaderValidationEnabled`` if it `reports` accesses outside of buffers."""
        return MTLShaderValidationEnabled if self.reports else MTLShaderValidationDisabled


class MTLComputePipelineDescriptor:
    """The description of a pipeline state."""

    __slots__ = ("_function", "_label", "_max_threads", "_multiple", "_validation")

    def __init__(self) -> None:
        self._function: MTLFunction | None = None
        self._label: str | None = None
        self._max_threads, self._multiple = 0, False
        self._validation = MTLShaderValidationDefault

    @classmethod
    def alloc(cls) -> MTLComputePipelineDescriptor:
        """A new one, before `init`."""
        return cls()

    new = alloc

    def init(self) -> MTLComputePipelineDescriptor:
        """Itself."""
        return self

    def computeFunction(self) -> MTLFunction | None:
        """The function."""
        return self._function

    def setComputeFunction_(self, function: MTLFunction | None) -> None:
        """Choose the function."""
        self._function = None if function is None else instance(function, MTLFunction)

    def label(self) -> str | None:
        """The label of the pipeline state."""
        return self._label

    def setLabel_(self, label: str | None) -> None:
        """Choose the label."""
        self._label = label

    def shaderValidation(self) -> int:
        """Whether the pipeline state is asked to report accesses outside of buffers."""
        return self._validation

    def setShaderValidation_(self, validation: int) -> None:
        """Ask for it."""
        self._validation = unsigned(validation)

    def maxTotalThreadsPerThreadgroup(self) -> int:
        """Threads a threadgroup will have at most; 0 for the device's choice."""
        return self._max_threads

    def setMaxTotalThreadsPerThreadgroup_(self, limit: int) -> None:
        """Set the limit."""
        self._max_threads = limit

    def threadGroupSizeIsMultipleOfThreadExecutionWidth(self) -> bool:
        """Whether threadgroups are whole simdgroups."""
        return self._multiple

    def setThreadGroupSizeIsMultipleOfThreadExecutionWidth_(self, multiple: bool) -> None:
        """Promise that they are; remembered."""
        self._multiple = bool(multiple)


def _alignment(layout: Layout) -> int:
    """The alignment of the offset of a parameter's memory in a buffer."""
    least = _CONSTANT_ALIGNMENT if layout.space == "constant" else 1
    return max(min(layout.alignment, _MAX_ALIGNMENT), least)


def pipeline_of(
    device: MTLDevice, function: MTLFunction | None, selector: str, reports: bool = False
) -> tuple[MTLComputePipelineState | None, NSError | None]:
    """Compile a function."""
    if function is None:
        fail(f"MTLDevice {selector}", "computeFunction must not be nil.")
    try:
        kernel = instance(function, MTLFunction).kernel()
    except mtl.MetalloidError as failure:
        return None, NSError(_DOMAIN, _COMPILER_ERROR, str(failure))
    size, limit = kernel.threadgroup_bytes, device.maxThreadgroupMemoryLength()
    if size > limit:
        refused = f"Threadgroup memory size ({size}) exceeds the maximum threadgroup memory allowed"
        return None, NSError(_DOMAIN, _COMPILER_ERROR, f"{refused} ({limit})")
    state = MTLComputePipelineState(device, function, kernel, reports)
    state.setLabel_(function.label())
    return state, None
