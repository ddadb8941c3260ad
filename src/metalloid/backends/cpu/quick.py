"""Launches of the usual kind, bound and run by binding/quick.c without the interpreter."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from metalloid.backends.cpu import native
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.runtime.event import Event, FinishedEvent
from metalloid.runtime.launches import PlainParameter, QuickLaunch
from metalloid.settings import settings

if TYPE_CHECKING:
    from metalloid.backends.cpu.device import CpuDevice, CpuProgram

_SOURCES = Path(__file__).parent / "binding"
_HEAD, _PARAMETER = struct.Struct("=4Q"), struct.Struct("=4Q2IQ")
_MOST_WORDS = 32
#: macOS looks for the interpreter's functions in another way; without its lock the interpreter has
#: other structures, and no stable interface.
_IS_KNOWN = sys.platform == "linux" and not sysconfig.get_config_var("Py_GIL_DISABLED")


class _Plan(NamedTuple):
    """All that binding/quick.c needs to know of a kernel; it has the same names in this order."""

    head: bytes
    sizes: Mapping[Any, Any]
    jobs: Mapping[Any, bytes]
    device: CpuDevice
    settings: Any
    array: type
    float: type
    int: type
    dtypes: tuple[np.dtype[Any] | None, ...]
    event: type
    fail: Callable[[bytes, Any, Any], NoReturn]


@functools.cache
def _binding() -> Callable[[tuple[Any, ...]], QuickLaunch | None]:
    """Of a plan, the function that launches by it; compiled once per machine."""
    headers = (native.SOURCES, native_build.OF_PYTHON)
    path = native_build.build(_SOURCES, "quick", shared_cache(), headers)
    try:
        quick = ctypes.PyDLL(str(path)).mtl_quick
    except OSError:  # a host of the interpreter that keeps its functions to itself
        return lambda plan: None
    quick.argtypes, quick.restype = (ctypes.py_object,), ctypes.py_object
    return quick


def quick_launch(
    device: CpuDevice,
    program: CpuProgram,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
) -> QuickLaunch | None:
    """See `Launcher.quick`."""
    words = len(program.signature.sources)
    if not _IS_KNOWN or device.memory != "host" or words > _MOST_WORDS:
        return None
    run = ctypes.cast(device.runtime.run, ctypes.c_void_p).value
    head = _HEAD.pack(run, words, len(parameters), program.waits)
    for p in parameters:
        kind = ord(p.number) if p.number else 0
        head += _PARAMETER.pack(
            p.position, p.bytes, p.least_bytes, p.alignment, kind, p.number_bytes, p.writes
        )

    def fail(outcome: bytes, threads: Any, group_size: Any) -> NoReturn:
        grid, group = sizes[threads, group_size]
        told = native.Outcome.from_buffer_copy(outcome)
        if program.logs:
            device.emit_messages()
        raise program.failure(told, grid, group)

    plan = _Plan(
        head, sizes, program.jobs, device, settings, np.ndarray, float, int,
        tuple(p.dtype for p in parameters), FinishedEvent, fail,
    )  # fmt: skip
    launch = _binding()(plan)
    if launch is None or not program.logs:
        return launch

    def launch_and_log(arguments: tuple[Any, ...], threads: Any, size: Any) -> Event | None:
        event = launch(arguments, threads, size)
        if event is not None:
            device.emit_messages()
        return event

    return launch_and_log
