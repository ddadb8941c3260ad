"""What an encoder has bound to buffer indices."""

from __future__ import annotations

from typing import Any, NoReturn

import metalloid as mtl
from metalloid.compat.memory import CopiedBytes, SharedMemory
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.pipeline import MTLComputePipelineState

#: Of buffers that a kernel may have.
INDICES = 31
MOST_INLINE_BYTES = 4096

Binding = tuple[SharedMemory | CopiedBytes, int, MTLBuffer | None]


class Bindings:
    """Memory by index, each with an offset, and lengths of threadgroup memory."""

    __slots__ = ("_memory", "_threadgroup")

    def __init__(self) -> None:
        self._memory: dict[int, Binding] = {}
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
    ) -> tuple[list[Any], list[MTLBuffer | None]]:
        """What to pass to the kernel of a pipeline, and whose memory that is.

        Raises
        ------
        FailedAssertion
            If something is missing or too small.
        """
        found, owners = [], []
        for index, element, alignment, name in pipeline.buffers:
            bound = self._memory.get(index)
            if bound is None:
                _missing(pipeline, selector, "Buffer", index, name)
            memory, offset, owner = bound
            owners.append(owner)
            if memory.length - offset < element:
                room = memory.length - offset
                fail(
                    selector,
                    f"Compute Function({pipeline.kernel.name}): argument {name}[0] from "
                    f"buffer({index}) with offset({offset}) and length({memory.length}) has space "
                    f"for {room} bytes, but argument has a length({element}).",
                )
            if offset % alignment:
                fail(selector, f"offset({offset}) for {name}[0] must be a multiple of {alignment}.")
            found.append(memory.argument(element, offset))
        return found, owners

    def threadgroup_arguments(
        self, pipeline: MTLComputePipelineState, most: int, selector: str
    ) -> list[Any]:
        """What to pass for parameters that take threadgroup memory: whole elements.

        Raises
        ------
        FailedAssertion
            If something is missing, or all is more than the device has.
        """
        for index, _, name in pipeline.threadgroup:
            if index not in self._threadgroup:
                _missing(pipeline, selector, "Threadgroup Memory", index, name)
        total = sum(self._threadgroup[index] for index, _, _ in pipeline.threadgroup)
        if total > most:
            fail(selector, f"Threadgroup memory size ({total}) exceeds the limit of {most} bytes.")
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
