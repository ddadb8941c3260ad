"""The fast launch path: native/python/fast_launch.c binds and runs usual launches."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.compiler.toolchain import native_build
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import NATIVE_BINDERS, FastLaunch, PlainParameter
from metalloid.runtime.memory.buffer import Buffer
from metalloid.settings import settings

_SOURCES = native_library.SOURCES / "python"
_HEAD, _PARAMETER = struct.Struct("=4Q"), struct.Struct("=4Q2IQ")
_MAX_WORDS = 32


class _Plan(NamedTuple):
    """All that fast_launch.c needs to know of a kernel, in the order of its `enum`."""

    head: bytes
    sizes: Mapping[Any, Any]
    jobs: Mapping[Any, bytes]
    device: Device
    settings: Any
    array: type
    float: type
    int: type
    dtypes: tuple[np.dtype[Any] | None, ...]
    event: type
    fail: Callable[[bytes, Any, Any], NoReturn]
    buffer: type
    binders: Mapping[Any, Any]


@functools.cache
def _binding() -> Callable[[tuple[Any, ...]], FastLaunch | None]:
    """A C function from a plan to a launch function; compiled once per machine."""
    headers = (native_library.SOURCES, native_library.HEADERS)
    library = native_build.load_python_library(_SOURCES, "fast-launch", headers)
    if library is None:
        return lambda plan: None
    function = library.mtl_fast_launch
    function.argtypes, function.restype = (ctypes.py_object,), ctypes.py_object
    return function


def fast_launch(
    device: Device,
    program: CpuProgram,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
    emit_messages: Callable[[], None],
) -> FastLaunch | None:
    """See `Launcher.quick`.

    Parameters
    ----------
    emit_messages : callable
        Hands what kernels have logged so far to `logging`.
    """
    words = len(program.signature.sources)
    if device.memory != "host" or words > _MAX_WORDS:
        return None
    run = ctypes.cast(native_library.runtime().run, ctypes.c_void_p).value
    head = _HEAD.pack(run, words, len(parameters), program.waits)
    for p in parameters:
        kind = ord(p.number) if p.number else 0
        head += _PARAMETER.pack(
            p.position, p.bytes, p.least_bytes, p.alignment, kind, p.number_bytes, p.writes
        )

    def fail(block: bytes, threads: Any, group_size: Any) -> NoReturn:
        grid, group = sizes[threads, group_size]
        outcome = native_library.Outcome.from_buffer_copy(block)
        if program.logs:
            emit_messages()
        raise program.failure(outcome, grid, group)

    plan = _Plan(
        head=head,
        sizes=sizes,
        jobs=program.jobs,
        device=device,
        settings=settings,
        array=np.ndarray,
        float=float,
        int=int,
        dtypes=tuple(p.dtype for p in parameters),
        event=FinishedEvent,
        fail=fail,
        buffer=Buffer,
        binders=NATIVE_BINDERS,
    )
    launch = _binding()(plan)
    if launch is None or not program.logs:
        return launch

    def launch_and_log(
        arguments: tuple[Any, ...], threads: Any, size: Any, waits: bool
    ) -> Event | None:
        event = launch(arguments, threads, size, waits)
        if event is not None:
            emit_messages()
        return event

    return launch_and_log
