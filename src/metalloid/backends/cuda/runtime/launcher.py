"""Builds and loads the C functions of `native`, which launch kernels in one call each."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from metalloid.backends.cuda.runtime.driver import check, driver
from metalloid.backends.cuda.runtime.geometry import SubGrid
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import Cache, shared_cache
from metalloid.errors import DeviceUnavailable
from metalloid.runtime.launch.launches import FastLaunch

_SOURCES = Path(__file__).parents[1] / "native"
_MIN_CUDA = 12000  # the version of the functions; later drivers have them, too
_FUNCTIONS = (
    "cuLaunchKernel", "cuEventRecord", "cuCtxSetCurrent", "cuMemcpyDtoHAsync", "cuStreamQuery",
    "cuEventCreate", "cuEventElapsedTime",
)  # fmt: skip
_SHAPE = struct.Struct("=2Q6I10I")

#: Takes a shape and a launch; returns the driver's status.
LaunchFunction = Callable[[bytes, bytes], int]
_lock = threading.Lock()


def pack_shape(function: int, words: int, sub_grid: SubGrid) -> bytes:
    """`struct shape` of native/launch.h, for launches with so many words."""
    return _SHAPE.pack(function, 8 * words, *sub_grid.dimensions, *sub_grid.data)


def launch_layout(words: int) -> struct.Struct:
    """`struct launch` of native/launch.h: stream, two timing events, threadgroup memory, words."""
    return struct.Struct(f"=4Q{words}Q")


class Native(NamedTuple):
    """The functions of the sources in `native`.

    Attributes
    ----------
    use_driver : callable
        Takes the addresses of cuLaunchKernel, cuEventRecord, cuCtxSetCurrent, cuMemcpyDtoHAsync,
        cuStreamQuery, cuEventCreate and cuEventElapsedTime.
    launch : callable
    launch_row : callable
        Takes an array of `struct pair`, their number, and memory for the status of a launch that
        fails; returns the number of launches that have succeeded.
    read_times : callable
        Takes an array of pairs of events, their number, and memory for floats; returns the number
        of pairs at the beginning that have passed, whose milliseconds it has written.
    copy_out : callable
        Takes an array of `struct window`, their number, the address of host memory, and a stream;
        returns the status, which says that copies are not ready after some milliseconds.
    fast_launch : callable
        Takes a plan (fast_launch.py); returns the function that launches by it.
    """

    use_driver: Callable[[int, int, int, int, int, int, int], None]
    launch: LaunchFunction
    launch_row: Any
    read_times: Any
    copy_out: Callable[[bytes, int, int, int], int]
    fast_launch: Callable[[tuple[Any, ...]], FastLaunch]


def build(cache: Cache, target: str = "") -> Path:
    """The library of the sources in `native` for a target of zig, by default this machine."""
    return native_build.build(_SOURCES, "launch", cache, (native_build.OF_PYTHON,), target=target)


def sources_digest(target: str = "") -> str:
    """Changes when that library does."""
    return native_build.sources_digest(_SOURCES, "launch", (native_build.OF_PYTHON,), target=target)


def load(path: Path) -> Native:
    """The functions of a library that `build` made."""
    library, interpreters = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
    use, launch = library.mtl_use_driver, library.mtl_launch
    row, copy_out = library.mtl_launch_row, library.mtl_copy_out
    read_times = library.mtl_read_times
    fast_launch = interpreters.mtl_fast_launch
    use.argtypes, use.restype = (ctypes.c_void_p,) * 7, None
    read_times.argtypes = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p
    read_times.restype = ctypes.c_uint32
    launch.argtypes, launch.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_int
    fast_launch.argtypes, fast_launch.restype = (ctypes.py_object,), ctypes.py_object
    row.argtypes, row.restype = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p), ctypes.c_uint32
    copy_out.argtypes = ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p
    copy_out.restype = ctypes.c_int
    return Native(use, launch, row, read_times, copy_out, fast_launch)


@functools.cache
def _native() -> Native:
    native = load(build(shared_cache()))
    native.use_driver(*map(_address, _FUNCTIONS))
    return native


def native() -> Native:
    """The functions, compiled once per machine and loaded once per process."""
    with _lock:
        return _native()


def _address(name: str) -> int:
    outcome = driver().cuGetProcAddress(name.encode(), _MIN_CUDA, 0)
    address = int(check(outcome, f"looking for {name}"))
    if not address:
        raise DeviceUnavailable(f"[cuda] the driver is older than CUDA 12: it has no {name}.")
    return address
