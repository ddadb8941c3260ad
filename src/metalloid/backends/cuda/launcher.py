"""Launches by the driver's own functions, in one call of Python's each."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from metalloid.backends.cuda.driver import check, driver
from metalloid.backends.cuda.geometry import Part
from metalloid.compiler import native_code
from metalloid.compiler.cache import shared_cache
from metalloid.errors import DeviceUnavailable

SOURCES = Path(__file__).parent / "native"
_LEAST_CUDA = 12000  # whose functions these are; later drivers have them, too
_SHAPE = struct.Struct("=2Q6I10I")

#: Of a shape and a launch; gives the driver's status.
LaunchFunction = Callable[[bytes, bytes], int]
_lock = threading.Lock()


def pack_shape(function: int, words: int, part: Part) -> bytes:
    """What native/launch.c calls a shape, for launches of so many words."""
    return _SHAPE.pack(function, 8 * words, *part.dimensions, *part.data)


def launch_layout(words: int) -> struct.Struct:
    """What native/launch.c calls a launch: stream, two marks, threadgroup memory, and words."""
    return struct.Struct(f"=4Q{words}Q")


def load(path: Path) -> tuple[Callable[[int, int], None], LaunchFunction]:
    """The two functions of a library that `native_code.build` made: one takes the driver's."""
    library = ctypes.CDLL(str(path))
    use, launch = library.mtl_use_driver, library.mtl_launch
    use.argtypes, use.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    launch.argtypes, launch.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_int
    return use, launch


@functools.cache
def _launcher() -> LaunchFunction:
    use, launch = load(native_code.build(SOURCES, "launch", shared_cache()))
    use(_address("cuLaunchKernel"), _address("cuEventRecord"))
    return launch


def launcher() -> LaunchFunction:
    """The function that launches, compiled (once per machine) and loaded (once per process)."""
    with _lock:
        return _launcher()


def _address(name: str) -> int:
    outcome = driver().cuGetProcAddress(name.encode(), _LEAST_CUDA, 0)
    address = int(check(outcome, f"looking for {name}"))
    if not address:
        raise DeviceUnavailable(f"[cuda] the driver is older than CUDA 12: it has no {name}.")
    return address
