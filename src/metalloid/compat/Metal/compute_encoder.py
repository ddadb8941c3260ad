"""Compute encoders: pipeline, arguments, dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import metalloid as mtl
from metalloid.compat.memory import CopiedBytes
from metalloid.compat.Metal.bindings import (
    INDICES,
    MAX_INLINE_BYTES,
    SAMPLER_INDICES,
    TEXTURE_INDICES,
    Bindings,
    bind,
)
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.commands import IndirectLaunch, Launch
from metalloid.compat.Metal.constants import (
    MTLBarrierScopeBuffers,
    MTLDispatchTypeConcurrent,
    MTLDispatchTypeSerial,
)
from metalloid.compat.Metal.conversions import instance, leading_bytes, unsigned
from metalloid.compat.Metal.encoder import CommandEncoder
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.hazards import Overlap
from metalloid.compat.Metal.pipeline import MTLComputePipelineState
from metalloid.compat.Metal.resource_ranges import ResourceRanges
from metalloid.compat.Metal.samplers import MTLSamplerState
from metalloid.compat.Metal.structures import extents
from metalloid.compat.Metal.textures import MTLTexture

if TYPE_CHECKING:
    from metalloid.compat.Metal.command_buffer import MTLCommandBuffer

_THREADGROUP_GRANULE = 16

Resource = MTLBuffer | MTLTexture


class MTLComputeCommandEncoder(CommandEncoder, ResourceRanges):
    """Encodes launches. What is set stays set for those that follow."""

    __slots__ = ("_bindings", "_dispatch_type", "_overlap", "_pipeline")

    def __init__(
        self, buffer: MTLCommandBuffer, dispatch_type: int = MTLDispatchTypeSerial
    ) -> None:
        super().__init__(buffer)
        self._bindings, self._dispatch_type = Bindings(), dispatch_type
        self._overlap = Overlap() if dispatch_type == MTLDispatchTypeConcurrent else None
        self._pipeline: MTLComputePipelineState | None = None

    def dispatchType(self) -> int:
        """Serial or concurrent. Launches run one after the other in both."""
        return self._dispatch_type

    def setComputePipelineState_(self, state: MTLComputePipelineState) -> None:
        """Choose the kernel."""
        self.check("setComputePipelineState:")
        if state is None:
            self._fail("setComputePipelineState:", "computePipelineState must not be nil.")
        self._pipeline = instance(state, MTLComputePipelineState)

    def setBuffer_offset_atIndex_(self, buffer: MTLBuffer | None, offset: int, index: int) -> None:
        """Bind a buffer from an offset on; None unbinds."""
        selector = "setBuffer:offset:atIndex:"
        self._check_index(selector, index)
        if buffer is None:
            self._bindings.clear(index)
            return
        length = instance(buffer, MTLBuffer).memory.length
        if unsigned(offset) >= length:
            self._fail(selector, f"offset({offset}) must be < [buffer length]({length}).")
        self._bindings.set_buffer(index, buffer, offset)

    def setBufferOffset_atIndex_(self, offset: int, index: int) -> None:
        """Begin elsewhere in the buffer that is bound."""
        selector = "setBufferOffset:atIndex:"
        self._check_index(selector, index)
        if not self._bindings.set_offset(index, unsigned(offset)):
            self._fail(selector, f"no buffer at index({index}) has an offset({offset})")

    def setBytes_length_atIndex_(self, value: Any, length: int, index: int) -> None:
        """Bind a copy of some bytes."""
        selector = "setBytes:length:atIndex:"
        self._check_index(selector, index)
        if unsigned(length) > MAX_INLINE_BYTES:
            self._fail(selector, f"length({length}) must be <= {MAX_INLINE_BYTES}.")
        if length == 0:
            self._fail(selector, "length(0) must be > 0.")
        self._bindings.set_bytes(index, CopiedBytes(leading_bytes(value, length), length))

    def setTexture_atIndex_(self, texture: MTLTexture | None, index: int) -> None:
        """Bind a texture; None unbinds."""
        selector = "setTexture:atIndex:"
        self.check(selector)
        if unsigned(index) >= TEXTURE_INDICES:
            self._fail(selector, f"index({index}) must be < {TEXTURE_INDICES}.")
        bind(self._bindings.textures, index, texture, MTLTexture)

    def setSamplerState_atIndex_(self, state: MTLSamplerState | None, index: int) -> None:
        """Bind a sampler; None unbinds."""
        selector = "setSamplerState:atIndex:"
        self.check(selector)
        if unsigned(index) >= SAMPLER_INDICES:
            self._fail(selector, f"index({index}) must be < {SAMPLER_INDICES}.")
        bind(self._bindings.samplers, index, state, MTLSamplerState)

    def setThreadgroupMemoryLength_atIndex_(self, length: int, index: int) -> None:
        """Give a ``threadgroup`` parameter its memory."""
        selector = "setThreadgroupMemoryLength:atIndex:"
        self._check_index(selector, index)
        if unsigned(length) % _THREADGROUP_GRANULE:
            self._fail(selector, f"length({length}) must be a multiple of {_THREADGROUP_GRANULE}.")
        if length > self.device().maxThreadgroupMemoryLength():
            limit = self.device().maxThreadgroupMemoryLength()
            self._fail(selector, f"length({length}) exceeds the limit of {limit} bytes.")
        self._bindings.set_threadgroup(index, length)

    def dispatchThreads_threadsPerThreadgroup_(self, threads: Any, group: Any) -> None:
        """Run one thread per point of a grid; threadgroups at its ends may be partial."""
        self._dispatch("dispatchThreads:threadsPerThreadgroup:", extents(threads), extents(group))

    def dispatchThreadgroups_threadsPerThreadgroup_(self, groups: Any, group: Any) -> None:
        """Run so many whole threadgroups."""
        size, counts = extents(group), extents(groups)
        grid = (counts[0] * size[0], counts[1] * size[1], counts[2] * size[2])
        self._dispatch("dispatchThreadgroups:threadsPerThreadgroup:", grid, size)

    def dispatchThreadgroupsWithIndirectBuffer_indirectBufferOffset_threadsPerThreadgroup_(
        self, buffer: MTLBuffer, offset: int, group: Any
    ) -> None:
        """Run as many threadgroups as a buffer says when the launches before have ended."""
        selector = (
            "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:"
        )
        size, memory = extents(group), instance(buffer, MTLBuffer).memory
        if unsigned(offset) % 4 or offset + IndirectLaunch.BYTES > memory.length:
            self._fail(
                selector,
                f"indirectBufferOffset({offset}) must be a multiple of 4, with "
                f"{IndirectLaunch.BYTES} bytes behind it in [buffer length]({memory.length}).",
            )
        kernel, arguments, uses, writes = self._prepared(selector, size)
        counts = memory.bytes[offset : offset + IndirectLaunch.BYTES]
        self._add(
            selector, IndirectLaunch(kernel, arguments, counts, size, [*uses, buffer], writes)
        )

    def useResource_usage_(self, resource: Resource, usage: int) -> None:
        """Say that a buffer or texture is used which no index names."""
        self.check("useResource:usage:")
        unsigned(usage)
        self._buffer.retain(_resource(resource))

    def useResources_count_usage_(
        self, resources: Sequence[Resource], count: int, usage: int
    ) -> None:
        """Say so of several."""
        for index in range(unsigned(count)):
            self.useResource_usage_(resources[index], usage)

    def memoryBarrierWithScope_(self, scope: int) -> None:
        """Wait for the launches so far: all do in any case."""
        self.check("memoryBarrierWithScope:")
        if unsigned(scope) & MTLBarrierScopeBuffers and self._overlap is not None:
            self._overlap.barrier()

    def memoryBarrierWithResources_count_(self, resources: Sequence[Resource], count: int) -> None:
        """Wait for the launches so far that use some buffers: all do in any case."""
        self.check("memoryBarrierWithResources:count:")
        ordered = [_resource(resources[index]) for index in range(unsigned(count))]
        if self._overlap is not None:
            self._overlap.barrier(ordered)

    def _dispatch(
        self,
        selector: str,
        threads: tuple[int, int, int],
        group: tuple[int, int, int],
    ) -> None:
        if 0 in threads:
            self._fail(selector, f"a dispatch of {threads} threads by {group} has no threads.")
        kernel, arguments, uses, writes = self._prepared(selector, group)
        self._add(selector, Launch(kernel, arguments, threads, group, uses, writes))

    def _add(self, selector: str, launch: Launch) -> None:
        pipeline = self._pipeline
        if pipeline is not None and pipeline.reports:
            launch.reporting = pipeline.function
        if self._overlap is not None and pipeline is not None:
            name = f"MTLComputeCommandEncoder {selector}"
            self._overlap.add(launch, pipeline.kernel.name, name)
        self._buffer.add(launch)

    def _prepared(
        self, selector: str, group: tuple[int, int, int]
    ) -> tuple[mtl.Kernel, list[Any], list[MTLBuffer], list[MTLBuffer]]:
        """Kernel, arguments, and the buffers it uses and writes, if all fits the threadgroups."""
        self.check(selector)
        pipeline = self._pipeline
        if pipeline is None:
            self._fail(selector, "A compute pipeline state must be set before a dispatch.")
        if 0 in group:
            self._fail(selector, f"threadsPerThreadgroup {group} has no threads.")
        count, limit = group[0] * group[1] * group[2], pipeline.maxTotalThreadsPerThreadgroup()
        if count > limit:
            self._fail(
                selector,
                f"threadsPerThreadgroup {group} has {count} threads, which must be <= {limit}. "
                "(kernel threadgroup size limit)",
            )
        if pipeline.required_group not in (None, group):
            self._fail(selector, f"threadsPerThreadgroup must be {pipeline.required_group}.")
        name = f"MTLComputeCommandEncoder {selector}"
        arguments, owners = self._bindings.arguments(pipeline, name)
        if pipeline.threadgroup:
            limit = self.device().maxThreadgroupMemoryLength()
            arguments += self._bindings.threadgroup_arguments(pipeline, limit, name)
        uses = [owner for owner in owners if owner is not None]
        writes = [
            owner
            for owner, is_written in zip(owners, pipeline.writes, strict=True)
            if owner is not None and is_written
        ]
        return pipeline.kernel, arguments, uses, writes

    def _check_index(self, selector: str, index: int) -> None:
        self.check(selector)
        if unsigned(index) >= INDICES:
            self._fail(selector, f"index({index}) must be < {INDICES}.")

    def _fail(self, selector: str, what: str) -> NoReturn:
        fail(f"MTLComputeCommandEncoder {selector}", what)


def _resource(value: Any) -> Resource:
    return value if isinstance(value, MTLTexture) else instance(value, MTLBuffer)
