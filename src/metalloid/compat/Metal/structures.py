"""Metal's structures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

from metalloid.compat.Metal.conversions import unsigned


@dataclass(slots=True)
class MTLSize:
    """Threads or threadgroups along three axes."""

    width: int = 0
    height: int = 0
    depth: int = 0

    def __iter__(self) -> Iterator[int]:
        return iter((self.width, self.height, self.depth))

    def __getitem__(self, index: int) -> int:
        return int(astuple(self)[index])


def MTLSizeMake(width: int, height: int, depth: int) -> MTLSize:
    """A size.

    Examples
    --------
    >>> MTLSizeMake(1024, 1, 1)
    MTLSize(width=1024, height=1, depth=1)
    """
    return MTLSize(unsigned(width), unsigned(height), unsigned(depth))


def extents(size: Any) -> tuple[int, int, int]:
    """The three numbers of an `MTLSize`, or of a tuple in its place."""
    try:
        width, height, depth = size
    except TypeError:
        raise ValueError(f"depythonifying struct of 3 members, got {size!r}") from None
    return unsigned(width), unsigned(height), unsigned(depth)


def location_and_length(values: Any) -> tuple[int, int]:
    """The two numbers of an NSRange, or of a tuple in its place."""
    try:
        location, length = values
    except TypeError:
        raise ValueError(f"depythonifying struct of 2 members, got {values!r}") from None
    return unsigned(location), unsigned(length)
