"""The fast launch path: native/fast_launch.c binds and launches without the interpreter."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, TimedEvent
from metalloid.backends.cuda.runtime.program import CudaProgram
from metalloid.compiler.toolchain.native_build import HAS_GIL
from metalloid.runtime.arguments.fast_plan import buffer_slots, fast_plan
from metalloid.runtime.launch.launches import FastLaunch, PlainParameter
from metalloid.settings import settings

_HEAD = struct.Struct("=3Q")
_ALIGNMENT_MASK = 15  # bits that addresses may not have


def fast_launch(
    device: ContextDevice,
    program: CudaProgram,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
) -> FastLaunch | None:
    """See `Launcher.fast_launcher`."""
    if not (HAS_GIL and buffer_slots()):
        return None

    def fail(status: int) -> NoReturn:
        raise device.failure(device.driver.CUresult(status), program.name)

    mask = _ALIGNMENT_MASK if program.needs_alignment else 0
    head = _HEAD.pack(int(device.context), device.stream_handle, program.dynamic_shared_bytes)
    timer = device.timer
    return device.native.fast_launch((
        *fast_plan(device, program, parameters, sizes, fail, mask),
        head, timer.free, timer.is_timing, settings, TimedEvent, CudaEvent, program.uses_printf,
    ))  # fmt: skip
