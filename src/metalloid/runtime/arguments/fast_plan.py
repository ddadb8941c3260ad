"""The plan of a kernel for fast launch paths, on devices with memory of their own."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from metalloid.runtime.launch.launches import PlainParameter
from metalloid.runtime.launch.number_types import INTEGERS, OTHER_NUMBERS
from metalloid.runtime.launch.program import Size
from metalloid.runtime.memory.buffer import Buffer
from metalloid.runtime.memory.slot_offsets import offsets_of

_MAX_SHAPES = 1024  # of launches, in the cache of a program
_HEAD, _PARAMETER = struct.Struct("=3Q"), struct.Struct("=3Q2I")


class ShapeCache(dict[tuple[Size, Size], list[bytes]]):
    """A cache of packed launch shapes, by the sizes of the grid and of a threadgroup."""

    def __init__(self, pack: Callable[[Size, Size], list[bytes]]) -> None:
        super().__init__()
        self._pack = pack

    def __missing__(self, size: tuple[Size, Size]) -> list[bytes]:
        if len(self) >= _MAX_SHAPES:
            self.clear()
        shapes = self[size] = self._pack(*size)
        return shapes


@functools.cache
def buffer_slots() -> bytes:
    """Where a buffer stores its attributes; empty if that is unclear: then there is no plan."""
    names = ("address", "device", "failure", "host_copy", "nbytes", "_pending")
    return bytes(offsets_of(Buffer, names) or b"")


class FastPlan(NamedTuple):
    """The first items of a plan, in the order of the enumeration in native/fast_launch.h."""

    parameters: bytes
    known_shapes: dict[tuple[Any, Any], bytes]
    sizes: Mapping[Any, Any]
    shapes: Mapping[Any, list[bytes]]
    device: Any
    constants: Mapping[bytes, int]
    buffer: type
    slots: bytes
    integers: tuple[type, ...]
    other_numbers: tuple[type, ...]
    program: Any
    acquire: Callable[[], Any]
    release: Callable[[], Any]
    fail: Callable[[int], NoReturn]


def fast_plan(
    device: Any,
    program: Any,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
    fail: Callable[[int], NoReturn],
    alignment_mask: int = 0,
) -> FastPlan:
    """The plan of a kernel.

    Parameters
    ----------
    device
        With `constants` and `lock`.
    program
        With `shapes`: packed by the sizes of the grid and of a threadgroup.
    parameters, sizes
        See `Launcher.fast_launcher`.
    fail : callable
        Raises the error of a status of the driver.
    alignment_mask : int
        Bits that addresses may not have.
    """
    words = max(1, len(program.signature.sources))
    packed = _HEAD.pack(words, len(parameters), alignment_mask)
    for p in parameters:
        kind = ord(p.number) if p.number else 0
        packed += _PARAMETER.pack(p.position, p.bytes, p.least_bytes, kind, p.number_bytes)
    return FastPlan(
        packed, {}, sizes, program.shapes, device, device.constants, Buffer, buffer_slots(),
        INTEGERS, OTHER_NUMBERS, program, device.lock.acquire, device.lock.release, fail,
    )  # fmt: skip
