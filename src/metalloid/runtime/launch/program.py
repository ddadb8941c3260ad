"""Compiled kernels, and the sizes of their launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import Signature

#: Threads of a simdgroup, on every device.
SIMDGROUP_WIDTH = 32
#: Maximum threads of a threadgroup, unless a kernel has a lower limit.
MAX_THREADS_PER_THREADGROUP = 1024

Size = tuple[int, int, int]


def spread(grid: Size, threads: int) -> Size:
    """A threadgroup of at most `threads` threads, as wide in x as possible for contiguous access.

    Examples
    --------
    >>> spread((100, 100, 1), 256)
    (100, 2, 1)
    """
    sizes = []
    for extent in grid:
        size = max(1, min(extent, threads))
        sizes.append(size)
        threads //= size
    return (sizes[0], sizes[1], sizes[2])


class Program(ABC):
    """A kernel compiled for a device.

    Attributes
    ----------
    signature : Signature
    engine : str
        How the device runs the kernel, and why.
    max_group_size : int
        Maximum threads of a threadgroup.
    threadgroup_bytes : int
        Threadgroup memory of the kernel's own variables; 0 if unknown.
    origin : tuple or None
        Unit, entry and constants that it was compiled from; None if it is from a bundle.
    """

    signature: Signature
    engine: str
    max_group_size: int
    threadgroup_bytes: int = 0
    origin: tuple[TranslationUnit, EntryPoint, Mapping[int, str]] | None = None

    @property
    @abstractmethod
    def asm(self) -> Mapping[str, str]:
        """Text of every stage of compilation by name: ``"cpp"``, ``"ll"``, ``"x86"`` ..."""

    @property
    def modules(self) -> Mapping[str, bytes]:
        """Binary stages of compilation by name: ``"spv"``; empty on most devices."""
        return {}

    def group_limit(self, grid: Size, group: Size) -> int:
        """Maximum threads of a threadgroup in launches of these sizes."""
        return self.max_group_size

    @abstractmethod
    def default_group_size(self, grid: Size) -> Size:
        """A good threadgroup size for a launch without one."""
