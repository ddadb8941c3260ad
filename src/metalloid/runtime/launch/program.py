"""Kernels that a device has compiled, and the sizes of their launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from metalloid.msl.signature import Signature

#: Threads of a simdgroup, on every device.
SIMDGROUP_WIDTH = 32
#: Threads a threadgroup may have, unless a kernel says less.
MAX_THREADS_PER_THREADGROUP = 1024

Size = tuple[int, int, int]


def spread(grid: Size, threads: int) -> Size:
    """A threadgroup of at most so many threads: wide in x, where neighbours in memory are.

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
        Which of the device's ways to run kernels it uses, and why.
    max_group_size : int
        Threads a threadgroup may have.
    threadgroup_bytes : int
        Threadgroup memory of the text's own variables; 0 where the device does not tell.
    """

    signature: Signature
    engine: str
    max_group_size: int
    threadgroup_bytes: int = 0

    @property
    @abstractmethod
    def asm(self) -> Mapping[str, str]:
        """Text of every stage of compilation by name: ``"cpp"``, ``"ll"``, ``"x86"`` ..."""

    @abstractmethod
    def default_group_size(self, grid: Size) -> Size:
        """A good threadgroup size for a launch that names none."""
