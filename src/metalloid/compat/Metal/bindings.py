"""The resources that an encoder has bound to indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import metalloid as mtl
from metalloid.compat.memory import CopiedBytes, SharedMemory
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.conversions import instance
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.pipeline import MTLComputePipelineState
from metalloid.compat.Metal.samplers import MTLSamplerState
from metalloid.compat.Metal.textures import MTLTexture, check_use

#: Of buffers that a kernel may have.
INDICES = 31
TEXTURE_INDICES, SAMPLER_INDICES = 128, 16
MAX_INLINE_BYTES = 4096

Binding = tuple[SharedMemory | CopiedBytes, int, MTLBuffer | None]


class Bindings:
    """Memory by index, each with an offset, and lengths of threadgroup memory."""

    __slots__ = ("_memory", "_threadgroup", "samplers", "textures")

    def __init__(self) -> None:
        self._memory: dict[int, Binding] = {}
        self.textures: dict[int, MTLTexture] = {}
        self.samplers: dict[int, MTLSamplerState] = {}
        self._threadgroup: dict[int, int] = {}

    def set_buffer(self, index: int, buffer: MTLBuffer, offset: int) -> None:
        """Bind a buffer from an offset on."""
        self._memory[index] = buffer.memory, offset, buffer

    def set_bytes(self, index: int, contents: CopiedBytes) -> None:
        """Bind bytes."""
        self._memory[index] = contents, 0, None

    def clear(self, index: int) -> None:
        """Bind nothing."""
        self._memory.pop(index, None)

    def set_offset(self, index: int, offset: int) -> bool:
        """Begin elsewhere in the buffer of an index; whether there is one, and it goes so far."""
        _, _, buffer = self._memory.get(index, (None, 0, None))
        if buffer is None or offset >= buffer.length():
            return False
        self.set_buffer(index, buffer, offset)
        return True

    def set_threadgroup(self, index: int, length: int) -> None:
        """Give an index so much threadgroup memory."""
        self._threadgroup[index] = length

    def arguments(
        self, pipeline: MTLComputePipelineState, selector: str
    ) -> tuple[list[Any], list[Any]]:
        """The arguments for the kernel of a pipeline, and the owners of their memory.

        Raises
        ------
        FailedAssertion
            If something is missing or too small.
        """
        resources, owners = [], []
        for index, element, alignment, name in pipeline.buffers:
            bound = self._memory.get(index)
            if bound is None:
                _missing(pipeline, selector, "Buffer", index, name)
            memory, offset, owner = bound
            owners.append(owner)
            if memory.length - offset < element:
                available_bytes = memory.length - offset
                fail(
                    selector,
                    f"Compute Function({pipeline.kernel.name}): argument {name}[0] from "
                    f"buffer({index}) with offset({offset}) and length({memory.length}) has space "
                    f"for {available_bytes} bytes, but argument has a length({element}).",
                )
            if offset % alignment:
                fail(selector, f"offset({offset}) for {name}[0] must be a multiple of {alignment}.")
            resources.append(memory.argument(element, offset))
        if pipeline.resources:
            return self._with_textures(pipeline, iter(resources), selector), owners
        return resources, owners

    def _with_textures(
        self, pipeline: MTLComputePipelineState, memory: Iterator[Any], selector: str
    ) -> list[Any]:
        """Memory, textures and samplers in the order of the kernel's parameters."""
        resources: list[Any] = []
        for parameter in pipeline.resources:
            if parameter.resource == "buffer":
                resources.append(next(memory))
                continue
            of_parameter: list[Any] = []
            for index in range(parameter.index, parameter.index + max(parameter.layout.count, 1)):
                if parameter.resource == "sampler":
                    if index not in self.samplers:
                        _missing(pipeline, selector, "Sampler", index, parameter.name)
                    of_parameter.append(self.samplers[index].sampler)
                else:
                    if index not in self.textures:
                        _missing(pipeline, selector, "Texture", index, parameter.name)
                    check_use(self.textures[index], parameter, pipeline.kernel.name, selector)
                    of_parameter.append(self.textures[index].texture)
            resources.append(of_parameter if parameter.layout.count else of_parameter[0])
        return resources

    def threadgroup_arguments(
        self, pipeline: MTLComputePipelineState, limit: int, selector: str
    ) -> list[Any]:
        """The arguments for parameters that take threadgroup memory: whole elements.

        Raises
        ------
        FailedAssertion
            If something is missing, or all is more than the device has.
        """
        for index, _, name in pipeline.threadgroup:
            if index not in self._threadgroup:
                _missing(pipeline, selector, "Threadgroup Memory", index, name)
        total = pipeline.staticThreadgroupMemoryLength()
        total += sum(self._threadgroup[index] for index, _, _ in pipeline.threadgroup)
        if total > limit:
            fail(selector, f"Threadgroup memory size ({total}) exceeds the limit of {limit} bytes.")
        return [
            mtl.threadgroup_memory(self._threadgroup[index] // element * element)
            for index, element, _ in pipeline.threadgroup
        ]


def _missing(
    pipeline: MTLComputePipelineState, selector: str, what: str, index: int, name: str
) -> NoReturn:
    fail(
        selector,
        f"Compute Function({pipeline.kernel.name}): missing {what} binding at index {index} "
        f"for {name}[0].",
    )


def bind(table: dict[int, Any], index: int, value: Any, kind: type) -> None:
    """Put an object of a class at an index of a table; None takes away what is there."""
    if value is None:
        table.pop(index, None)
    else:
        table[index] = instance(value, kind)
