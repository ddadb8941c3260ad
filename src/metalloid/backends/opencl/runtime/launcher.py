"""Builds and loads the C functions of `native`, which launch kernels in one call each."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from metalloid.backends.opencl.runtime.geometry import SubGrid
from metalloid.backends.opencl.runtime.platforms import functions
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.runtime.launch.launches import FastLaunch

_SOURCES = Path(__file__).parents[1] / "native"
_FUNCTIONS = (
    "clSetKernelArg", "clSetKernelExecInfo", "clEnqueueNDRangeKernel", "clGetEventInfo",
    "clGetEventProfilingInfo", "clFlush", "clReleaseEvent",
)  # fmt: skip
_SHAPE = struct.Struct("=11Q12I")
_MAX_DATA = 4096
_lock = threading.Lock()


class Kernel(ctypes.Structure):
    """`struct kernel` of native/launch.h."""

    _fields_ = [
        ("driver_kernel", ctypes.c_uint64), ("threadgroup_bytes", ctypes.c_uint64),
        ("data_bytes", ctypes.c_uint64), ("data", ctypes.c_char * _MAX_DATA),
    ]  # fmt: skip

    def __init__(self, kernel: Any) -> None:
        super().__init__(int(kernel.int_ptr))
        self._owner = kernel


def pack_shape(kernel: Kernel, words: int, sub_grid: SubGrid) -> bytes:
    """`struct shape` of native/launch.h, for launches with so many words."""
    sizes = *sub_grid.offset, *sub_grid.work_items, *sub_grid.group
    return _SHAPE.pack(ctypes.addressof(kernel), 8 * words, *sizes, *sub_grid.data)


class _Launch(ctypes.Structure):
    """`struct launch` of native/launch.h."""

    _fields_ = [
        ("queue", ctypes.c_uint64), ("threadgroup_bytes", ctypes.c_uint64),
        ("report_block", ctypes.c_uint64), ("pointer_count", ctypes.c_uint64),
        ("words", ctypes.c_char_p), ("pointers", ctypes.c_char_p),
    ]  # fmt: skip


class Native:
    """The functions of the sources in `native`.

    Parameters
    ----------
    path : Path
        The library.
    """

    def __init__(self, path: Path) -> None:
        library, interpreters = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        self._launch = interpreters.mtl_launch  # the interpreter's lock is that of the kernels
        self._launch.argtypes = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p
        self._add_event, self._poll = interpreters.mtl_add_event, interpreters.mtl_poll_all
        self._add_event.argtypes = ctypes.py_object, ctypes.c_void_p
        self._poll.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
        self._fast_launch = interpreters.mtl_fast_launch
        self._fast_launch.argtypes = (ctypes.py_object,)
        self._fast_launch.restype = ctypes.py_object
        use = library.mtl_use_driver
        use.argtypes, use.restype = (ctypes.c_void_p,) * len(_FUNCTIONS), None
        use(*(ctypes.cast(getattr(functions(), name), ctypes.c_void_p) for name in _FUNCTIONS))

    def fast_launch(self, plan: tuple[Any, ...]) -> FastLaunch:
        """The function that launches by a plan (fast_launch.py)."""
        launch: FastLaunch = self._fast_launch(plan)
        return launch

    def launch(
        self, shape: bytes, queue: int, threadgroup_bytes: int, report_block: int,
        words: bytes, pointers: Collection[int], events: list[Any],
    ) -> int:  # fmt: skip
        """Enqueue a launch of a shape, and add its event; the driver's status."""
        packed = struct.pack(f"={len(pointers)}Q", *pointers)
        launch = _Launch(queue, threadgroup_bytes, report_block, len(pointers), words, packed)
        event = ctypes.c_void_p()
        status = self._launch(shape, ctypes.byref(launch), ctypes.byref(event))
        return int(status or self._add_event(events, event))

    def poll(self, queue: int, events: Any) -> tuple[int, int]:
        """The status of events (`mtl_poll_all` in native), and the nanoseconds of all."""
        nanoseconds = ctypes.c_uint64()
        status = self._poll(queue, events, ctypes.byref(nanoseconds))
        return int(status), nanoseconds.value


@functools.cache
def _native() -> Native:
    headers = (native_build.OF_PYTHON,)
    return Native(native_build.build(_SOURCES, "opencl_launch", shared_cache(), headers))


def native() -> Native:
    """The functions, compiled once per machine and loaded once per process."""
    with _lock:
        return _native()
