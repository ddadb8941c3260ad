"""Buffers: bytes that kernels and Python see, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.memory import CopiedBytes, SharedMemory, bytes_of
from metalloid.compat.metalcompute.failure import error
from metalloid.runtime.interop.buffer_protocol import BufferExporter


class Buffer(BufferExporter):
    """Memory; ``memoryview(buffer)`` shows its bytes, which a run may still be writing."""

    __slots__ = ("all_bytes", "memory")

    def __init__(self, device: Any, source: Any) -> None:
        contents, length = _contents(source)
        try:
            self.memory = SharedMemory(length, device)
        except mtl.OutOfMemory:
            raise error("Could not make buffer") from None
        self.all_bytes = self.memory.buffer
        if contents is not None:
            self.memory.bytes[:length] = contents

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.memory.bytes[: self.memory.length])  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"metalcompute.Buffer(length={self.memory.length})"


def temporary(source: Any) -> CopiedBytes:
    """A temporary buffer for one run."""
    contents, length = _contents(source)
    try:
        return CopiedBytes(contents, length)
    except (MemoryError, OverflowError):
        raise error("Could not make buffer") from None


def _contents(source: Any) -> tuple[np.ndarray | None, int]:
    """The bytes of an object and their number; or no bytes, and the number that it says."""
    contents = bytes_of(source)
    if contents is not None:
        length = contents.nbytes
    else:
        try:
            length = int(source)
        except (TypeError, ValueError, OverflowError):
            raise error("Unsupported input format") from None
    if length <= 0:
        raise error("Could not make buffer")
    return contents, length
