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


@dataclass(slots=True)
class MTLOrigin:
    """A position along three axes."""

    x: int = 0
    y: int = 0
    z: int = 0

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y, self.z))


@dataclass(slots=True)
class MTLResourceID:
    """The handle of a texture or a sampler in an argument buffer."""

    _impl: int = 0

    def __getitem__(self, index: int) -> int:
        return int(astuple(self)[index])


@dataclass(slots=True)
class MTLRegion:
    """A part of a texture."""

    origin: MTLOrigin
    size: MTLSize

    def __iter__(self) -> Iterator[Any]:
        return iter((self.origin, self.size))


def MTLOriginMake(x: int, y: int, z: int) -> MTLOrigin:
    """Make a position."""
    return MTLOrigin(unsigned(x), unsigned(y), unsigned(z))


def MTLRegionMake1D(x: int, width: int) -> MTLRegion:
    """A part of a row."""
    return MTLRegionMake3D(x, 0, 0, width, 1, 1)


def MTLRegionMake2D(x: int, y: int, width: int, height: int) -> MTLRegion:
    """A part of an image."""
    return MTLRegionMake3D(x, y, 0, width, height, 1)


def MTLRegionMake3D(x: int, y: int, z: int, width: int, height: int, depth: int) -> MTLRegion:
    """A part of a volume.

    Examples
    --------
    >>> MTLRegionMake3D(0, 1, 2, 30, 40, 50).size
    MTLSize(width=30, height=40, depth=50)
    """
    return MTLRegion(MTLOriginMake(x, y, z), MTLSizeMake(width, height, depth))


def box(region: Any) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Origin and size of an `MTLRegion`, or of an equivalent tuple."""
    try:
        origin, size = region
    except TypeError:
        raise ValueError(f"depythonifying struct of 2 members, got {region!r}") from None
    return extents(origin), extents(size)


def extents(size: Any) -> tuple[int, int, int]:
    """The three numbers of an `MTLSize`, or of an equivalent tuple."""
    try:
        width, height, depth = size
    except TypeError:
        raise ValueError(f"depythonifying struct of 3 members, got {size!r}") from None
    return unsigned(width), unsigned(height), unsigned(depth)


def location_and_length(values: Any) -> tuple[int, int]:
    """The two numbers of an NSRange, or of an equivalent tuple."""
    try:
        location, length = values
    except TypeError:
        raise ValueError(f"depythonifying struct of 2 members, got {values!r}") from None
    return unsigned(location), unsigned(length)
