"""The fast launch path: native/fast_launch.c binds and launches without the interpreter."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, TimedEvent
from metalloid.backends.cuda.runtime.program import CudaProgram
from metalloid.compiler.toolchain.native_build import HAS_GIL
from metalloid.runtime.launch.launches import FastLaunch, PlainParameter
from metalloid.runtime.launch.number_types import INTEGERS, OTHER_NUMBERS
from metalloid.runtime.memory.buffer import Buffer
from metalloid.settings import settings

_HEAD, _PARAMETER = struct.Struct("=6Q"), struct.Struct("=3Q2I")
_ALIGNMENT_MASK = 15  # bits that addresses may not have


class _Plan(NamedTuple):
    """The fields of a kernel that native/fast_launch.c reads, in the order of its enumeration."""

    head: bytes
    sizes: Mapping[Any, Any]
    shapes: Mapping[Any, list[bytes]]
    device: ContextDevice
    constants: Mapping[bytes, int]
    free_events: list[tuple[int, int]]
    is_timed: bool
    settings: Any
    buffer: type
    integers: tuple[type, ...]
    other_numbers: tuple[type, ...]
    timed_event: type
    event: type
    program: CudaProgram
    uses_printf: bool
    acquire: Callable[[], Any]
    release: Callable[[], Any]
    fail: Callable[[int], NoReturn]


def fast_launch(
    device: ContextDevice,
    program: CudaProgram,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
) -> FastLaunch | None:
    """See `Launcher.quick`."""
    words = max(1, len(program.signature.sources))
    if not HAS_GIL:
        return None
    head = _HEAD.pack(
        int(device.context), device.stream_handle, program.dynamic_shared_bytes, words,
        len(parameters), _ALIGNMENT_MASK if program.needs_alignment else 0,
    )  # fmt: skip
    for p in parameters:
        kind = ord(p.number) if p.number else 0
        head += _PARAMETER.pack(p.position, p.bytes, p.least_bytes, kind, p.number_bytes)

    def fail(status: int) -> NoReturn:
        raise device.failure(device.driver.CUresult(status), program.name)

    timer = device.timer
    plan = _Plan(
        head=head,
        sizes=sizes,
        shapes=program.shapes,
        device=device,
        constants=device.constants,
        free_events=timer.free,
        is_timed=timer.is_timing,
        settings=settings,
        buffer=Buffer,
        integers=INTEGERS,
        other_numbers=OTHER_NUMBERS,
        timed_event=TimedEvent,
        event=CudaEvent,
        program=program,
        uses_printf=program.uses_printf,
        acquire=device.lock.acquire,
        release=device.lock.release,
        fail=fail,
    )
    return device.native.fast_launch(plan)
