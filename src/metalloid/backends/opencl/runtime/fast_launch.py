"""The fast launch path: native/fast_launch.c binds and launches without the interpreter."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from metalloid.backends.opencl.runtime.events import OpenclEvent
from metalloid.backends.opencl.runtime.program import MIN_THREADGROUP_BYTES, OpenclProgram
from metalloid.backends.opencl.runtime.queue_device import QueueDevice
from metalloid.compiler.toolchain.native_build import HAS_GIL
from metalloid.runtime.arguments.fast_plan import buffer_slots, fast_plan
from metalloid.runtime.launch.launches import FastLaunch, PlainParameter

_HEAD = struct.Struct("=3Q")


def fast_launch(
    device: QueueDevice,
    program: OpenclProgram,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
) -> FastLaunch | None:
    """See `Launcher.fast_launcher`; launches that report or check accesses take the slow path."""
    if not (HAS_GIL and buffer_slots()) or program.reports or program.is_checked:
        return None

    def fail(status: int) -> NoReturn:
        raise device.failure(status, program.name)

    arena = 0 if device.is_system else device.constants.address
    head = _HEAD.pack(device.queue_handle, MIN_THREADGROUP_BYTES, arena)
    plan = fast_plan(device, program, parameters, sizes, fail)
    return device.native.fast_launch((*plan, head, OpenclEvent, device.in_flight.append))
