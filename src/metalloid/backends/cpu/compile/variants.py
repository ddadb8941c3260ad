"""Variants of a kernel's vector code, and which of them a launch needs.

A variant is compiled when a launch needs it. Independent threads have ``full`` and ``tail`` ones:
with complete simdgroups only, or with a mask for incomplete ones. Kernels with barriers have more
kinds, by how simdgroups cover a threadgroup. If a kernel is compiled before its first launch,
its variant may be for threadgroups of one size only. LLVM then knows the number of simdgroups and
can keep values in registers across barriers.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from metalloid.backends.cpu.compile.lane_axes import axis_first, lane_axis
from metalloid.backends.cpu.compile.texture_specialization import KnownWord
from metalloid.runtime.launch.program import Size

#: Launches of at most this many independent threads run the remaining threads one by one, rather
#: than have a variant compiled for them.
_MAX_THREADS_WITHOUT_MASKS = 4096
#: In a row of this many simdgroups one more, which is incomplete, costs little.
_LONG_ROW = 4
#: Fewer remaining threads in a row are not worth a mask.
_MIN_MASKED_LANES = 3


class Kind(enum.Enum):
    """The mapping of simdgroups to a threadgroup."""

    #: All simdgroups are complete.
    FULL = "full"
    #: Simdgroups may be incomplete at the end of a row, with masks for the lanes that are missing.
    TAIL = "tail"
    #: A simdgroup covers several rows; with barriers only, as the others below.
    MULTI_ROW = "multi_row"
    #: The threadgroup is one row, of complete simdgroups.
    SINGLE_ROW = "single_row"
    #: The threadgroup is one simdgroup wide: each row is a simdgroup.
    SINGLE_COLUMN = "single_column"


class Variant(NamedTuple):
    """One variant of a kernel's vector code; ``str(variant)`` is its name.

    Attributes
    ----------
    kind : Kind
    width : int
        Lanes of a simdgroup.
    group : tuple of int or None
        The only size of threadgroups that it runs, if it was compiled for one.
    axis : str
        Along which lanes lie: ``"x"``, or another where threadgroups are one thread wide.
    is_relaxed : bool
        Whether threads may miss a barrier.
    streams : bool
        Whether it has non-temporal stores, for launches that write more than the caches hold.
    textures : tuple of KnownWord
        Formats of textures and settings of samplers that are constants.
    is_private : bool
        Whether it adds to copies of buffers that are its worker's own.

    Examples
    --------
    >>> str(Variant(Kind.SINGLE_ROW, 32, group=(256, 1, 1), is_relaxed=True))
    'single_row-32-256x1x1-relaxed'
    """

    kind: Kind
    width: int
    group: Size | None = None
    axis: str = "x"
    is_relaxed: bool = False
    streams: bool = False
    textures: tuple[KnownWord, ...] = ()
    is_private: bool = False

    def __str__(self) -> str:
        """The name of a variant, the same in every process: for cache keys and for people."""
        words = [self.kind.value, str(self.width)]
        if self.group is not None:
            words.append("x".join(map(str, self.group)))
        if self.axis != "x":
            words.append(self.axis)
        if self.is_relaxed:
            words.append("relaxed")
        if self.streams:
            words.append("streaming")
        if self.is_private:
            words.append("private")
        words += map(str, self.textures)
        return "-".join(words)

    def for_group_of(self, grid: Size, group: Size) -> Variant:
        """The variant for one size of threadgroups only, if all of a grid have that size."""
        if any(n % m for n, m in zip(grid, group, strict=True)):
            return self
        return self._replace(group=group)


def parse_variant(name: str) -> Variant:
    """The variant that has a name.

    Raises
    ------
    ValueError
        If the name is not that of a variant.

    Examples
    --------
    >>> parse_variant("full-16-y-streaming") == Variant(Kind.FULL, 16, axis="y", streams=True)
    True
    """
    kind, width, *options = name.split("-")
    variant = Variant(Kind(kind), int(width))
    for option in options:
        if option in ("y", "z"):
            variant = variant._replace(axis=option)
        elif option == "relaxed":
            variant = variant._replace(is_relaxed=True)
        elif option == "streaming":
            variant = variant._replace(streams=True)
        elif option == "private":
            variant = variant._replace(is_private=True)
        elif "x" in option:
            x, y, z = map(int, option.split("x"))
            variant = variant._replace(group=(x, y, z))
        else:
            variant = variant._replace(textures=(*variant.textures, KnownWord.parse(option)))
    return variant


def variant_for(
    grid: Size, group: Size, widths: Sequence[int], waits: bool, by_shape: bool
) -> Variant:
    """The variant that a launch should have, or must have if threads wait for each other.

    Parameters
    ----------
    widths : sequence of int
        Lanes that simdgroups may have, the best first.
    waits : bool
        Whether threads wait for each other.
    by_shape : bool
        Whether `SINGLE_ROW` and `SINGLE_COLUMN` variants are worth their compilation: the kernel
        uses positions in the threadgroup.
    """
    if not waits and math.prod(grid) <= _MAX_THREADS_WITHOUT_MASKS:
        return Variant(Kind.FULL, widths[0])
    axis = lane_axis(group)
    if axis != "x":
        widths = sorted(widths, reverse=True)
        grid, group = axis_first(grid, axis), axis_first(group, axis)
    kind, width = _along_x(grid, group, widths, waits, by_shape)
    return Variant(kind, width, axis=axis)


def _along_x(
    grid: Size, group: Size, widths: Sequence[int], waits: bool, by_shape: bool
) -> tuple[Kind, int]:
    """Kind and width of a variant whose lanes lie along x."""
    x, y, z = group
    is_multi_row = y * z > 1
    if by_shape and x in widths and y > 1 and z == 1 and grid[0] % x == 0:
        return Kind.SINGLE_COLUMN, x
    may_end_anywhere = not (waits and is_multi_row)
    fitting = [n for n in widths if x % n == 0 or (may_end_anywhere and x >= _LONG_ROW * n)]
    width = next(iter(fitting or [n for n in widths if n <= x] or widths[-1:]))
    if not waits:
        groups, rest = divmod(grid[0], x)
        ends = x % width, rest % width
        remaining = (groups * ends[0] + ends[1]) * grid[1] * grid[2]
        is_masked = remaining > _MAX_THREADS_WITHOUT_MASKS and max(ends) >= _MIN_MASKED_LANES
        return Kind.TAIL if is_masked else Kind.FULL, width
    if is_multi_row and (not fitting or grid[0] % x):
        return Kind.MULTI_ROW, width
    exact = (x * y * z) % width == 0 and all(n % m == 0 for n, m in zip(grid, group, strict=True))
    if not exact:
        return Kind.TAIL, width
    return Kind.FULL if is_multi_row or not by_shape else Kind.SINGLE_ROW, width


def shipped_variants(initial: Variant, widths: Sequence[int], waits: bool) -> list[Variant]:
    """The variants in a bundle of kernels, one of which can run any launch with strict barriers.

    Parameters
    ----------
    initial : Variant
        That of the kernel before its first launch.
    widths : sequence of int
        Lanes that simdgroups may have, the best first.
    waits : bool
        Whether threads wait for each other.
    """
    width = widths[0]
    if not waits:
        return [Variant(Kind.FULL, width), Variant(Kind.TAIL, width)]
    chosen = [
        initial, initial._replace(group=None), Variant(Kind.TAIL, width),
        Variant(Kind.MULTI_ROW, width),
    ]  # fmt: skip
    return list(dict.fromkeys(chosen))


def substitutes(variant: Variant, widths: Sequence[int], waits: bool) -> Iterator[Variant]:
    """Variants that can run what a variant can run, the fastest first; it is the first."""
    plain = variant._replace(textures=(), streams=False, is_private=False)
    yield from (variant, plain, plain._replace(group=None))
    if not waits:
        yield Variant(Kind.FULL, widths[0])
        return
    if variant.kind is Kind.SINGLE_ROW and variant.axis == "x":
        yield plain._replace(kind=Kind.TAIL, group=None)
    yield Variant(Kind.MULTI_ROW, widths[0], is_relaxed=variant.is_relaxed)
