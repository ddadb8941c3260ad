"""Strided arrays in memory: those that other libraries own, and those exported to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass
class Strided:
    """An array in memory, by address, shape and strides.

    Attributes
    ----------
    address : int
        Of its first element.
    dtype : numpy.dtype
    shape : tuple of int
    strides : tuple of int or None
        In bytes; None if it is contiguous.
    owner : object
        Keeps the memory alive.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    owner: Any

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements are contiguous, in C order."""
        if self.strides is None or 0 in self.shape:
            return True
        step = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True

    @property
    def reach(self) -> tuple[int, int]:
        """Bytes that the array covers before the address of its first element, and from it on."""
        size = self.dtype.itemsize
        if 0 in self.shape:
            return 0, 0
        if self.strides is None:
            return 0, math.prod(self.shape) * size
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        below = -sum(step for step in steps if step < 0)
        return below, sum(step for step in steps if step > 0) + size


@dataclass
class Imported(Strided):
    """An array that another library owns, used in place.

    Attributes
    ----------
    read_only : bool
    then : callable or None
        Makes its library wait for the launches so far.
    waits : bool
        Whether launches must be synchronous, as the library cannot wait for them.
    """

    read_only: bool = False
    then: Callable[[], None] | None = None
    waits: bool = False
