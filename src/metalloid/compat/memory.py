"""Memory as the emulated libraries have it: untyped bytes, padded at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.runtime.memory.buffer import Window

#: Memory is rounded up to this, so a scalar or vector at its end can be read as a whole.
GRANULE = 256
_BYTES = np.dtype("V1")  # for `Window`: of no type


class SharedMemory:
    """Bytes that Python sees and kernels use.

    Parameters
    ----------
    length : int
        Requested bytes. They are padded, as on Apple's GPUs, where memory comes in pages:
        programs bind 12 bytes to a ``float3``.
    device : Device
    granule : int, optional
        What the size is rounded up to.

    Attributes
    ----------
    length : int
    buffer : Buffer or None
        None for memory of the host.
    bytes : ndarray
        All of it. Looking at it does not wait for launches.
    """

    __slots__ = ("buffer", "bytes", "length")

    buffer: mtl.Buffer | None

    def __init__(self, length: int, device: Any, granule: int = GRANULE) -> None:
        self.length = length
        self.buffer = mtl.Buffer(-(-length // granule) * granule, device, visible=True)
        self.bytes: np.ndarray = np.asarray(self.buffer)

    @classmethod
    def of_host(cls, contents: np.ndarray) -> SharedMemory:
        """Bytes of the host, used where they are."""
        memory = cls.__new__(cls)
        memory.length, memory.buffer, memory.bytes = contents.nbytes, None, contents
        return memory

    def argument(self, element: int, offset: int = 0) -> Any:
        """The argument for a parameter with elements of `element` bytes.

        No type is checked: bytes are what the parameter says.
        """
        nbytes = self.bytes.nbytes
        if offset == 0 and nbytes % element == 0 and self.buffer is not None:
            return self.buffer
        return self.range(offset, (nbytes - offset) // element * element)

    def range(self, offset: int, nbytes: int) -> Any:
        """The argument for a range of the bytes."""
        if self.buffer is None:
            return memoryview(self.bytes[offset : offset + nbytes])  # type: ignore[arg-type]
        return Window(self.buffer, offset, _BYTES, (nbytes,))


class CopiedBytes:
    """Bytes for one launch, padded likewise.

    Parameters
    ----------
    contents : ndarray or None
        Bytes to copy; zeros without.
    length : int
    """

    __slots__ = ("_contents", "length")

    def __init__(self, contents: np.ndarray | None, length: int) -> None:
        self.length = length
        self._contents = bytearray(-(-length // GRANULE) * GRANULE)
        if contents is not None:
            self._contents[:length] = contents.data

    def argument(self, element: int, offset: int = 0) -> Any:
        """See `SharedMemory.argument`; the offset is always 0."""
        if GRANULE % element == 0:
            return self._contents
        return self._contents[: len(self._contents) // element * element]


def divides_evenly(element: int) -> bool:
    """Whether every `SharedMemory` holds a whole number of such elements."""
    return GRANULE % element == 0


def bytes_of(value: Any) -> np.ndarray | None:
    """The bytes of an object with the buffer protocol; None if it has none or not in one piece."""
    try:
        return np.frombuffer(value, np.uint8)
    except (TypeError, ValueError, BufferError):
        return None
