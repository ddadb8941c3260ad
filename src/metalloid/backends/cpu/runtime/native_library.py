"""The CPU's native runtime: built from ``native/*.c`` on first use, then cached."""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import os
import struct
import threading
from pathlib import Path
from typing import Any

from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import Cache, shared_cache
from metalloid.errors import LaunchCancelled
from metalloid.runtime.launch.launches import nanoseconds
from metalloid.settings import settings

SOURCES = Path(__file__).parents[1] / "native"
_SUBFOLDERS = ("memory", "sanitizer")
#: Headers for kernels; the runtime includes one of them.
HEADERS = SOURCES / "include"

# Flags of a job.
FIBRES = 1  # run each thread as a fibre
RELAXED = 2  # barriers open for all waiting threads, and do not wait for returned ones
CHECKED = 4  # the code tells the sanitizer of its accesses
SCHEDULED = 8  # its threads run in the order of a schedule
ALONE = 16  # its code counts without atomics: one thread of the system runs it
PRIVATE = 1 << 16  # times the number of buffers of which each thread of the system has a copy


#: Bytes of a job before its parameters' words.
JOB_BYTES = 64

# Results of `Runtime.wait` (launch.c).
STILL_RUNNING, ENDED, INTERRUPTED, NESTED = range(4)


def job_layout(parameters: int) -> struct.Struct:
    """Layout of a job (runtime.h, mtl_descriptor) with one 64-bit word per parameter."""
    return struct.Struct(f"=QIIIIIIIIIIQQ{parameters}Q")


#: A job without its words.
HEAD = job_layout(0)


class Outcome(ctypes.Structure):
    """The outcome of a job (runtime.h, mtl_outcome)."""

    _fields_ = (
        ("status", ctypes.c_int32),
        ("signal", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("threadgroup", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
        ("valid", ctypes.c_uint32),
        ("arrived", ctypes.c_uint32),
        ("expected", ctypes.c_uint32),
        ("lane", ctypes.c_uint32),
        ("seconds", ctypes.c_double),
        ("code", ctypes.c_uint64),
        ("condition", ctypes.c_uint64),
        ("file", ctypes.c_uint64),
        ("line", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("limit_ns", ctypes.c_uint64),
    )


class Runtime:
    """The functions of the native runtime."""

    def __init__(self, path: Path) -> None:
        # Kernels are linked against the runtime's __msl_* functions by name, hence RTLD_GLOBAL.
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        outcome = ctypes.POINTER(Outcome)
        self.configure = _function(library, "mtl_configure", ctypes.c_int, ctypes.c_uint32)
        self.run = _function(library, "mtl_run", ctypes.c_int, ctypes.c_char_p, outcome)
        row = ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint32, outcome
        self.run_row = _function(library, "mtl_run_row", *row)
        self.run_row_untimed = _function(library, "mtl_run_row_untimed", *row)
        self.submit = _function(library, "mtl_submit", ctypes.c_uint64, ctypes.c_char_p)
        self.wait = _function(
            library, "mtl_wait", ctypes.c_int, ctypes.c_uint64, ctypes.c_double, outcome
        )
        self.done = _function(library, "mtl_done", ctypes.c_int, ctypes.c_uint64)
        self.cancel = _function(library, "mtl_cancel", ctypes.c_int, ctypes.c_uint64)
        self.forget = _function(library, "mtl_forget", None, ctypes.c_uint64)
        self.is_idle = _function(library, "mtl_is_idle", ctypes.c_int)
        self.is_inside = _function(
            library, "mtl_is_inside", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
            ctypes.c_void_p,
        )  # fmt: skip
        self.sanitizer_begin = _function(
            library, "mtl_sanitizer_begin", None, ctypes.c_uint32, ctypes.c_bool, ctypes.c_uint32,
            ctypes.c_char_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32,
        )  # fmt: skip
        self.sanitizer_forget = _function(library, "mtl_sanitizer_forget", None)
        self.schedule_begin = _function(
            library, "mtl_schedule_begin", None, ctypes.c_uint64, ctypes.c_uint32
        )
        self.sanitizer_end = _function(
            library, "mtl_sanitizer_end", ctypes.c_int32, ctypes.c_bool, ctypes.c_void_p
        )
        self.shadow_begin = _function(
            library, "mtl_shadow_begin", ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint32
        )
        self.shadow_end = _function(library, "mtl_shadow_end", ctypes.c_bool)
        self.allocate = _function(library, "mtl_allocate", ctypes.c_void_p, ctypes.c_size_t)
        self.free = _function(library, "mtl_free", None, ctypes.c_void_p, ctypes.c_size_t)
        self.threads = _function(library, "mtl_threads", ctypes.c_uint32)
        self.blas_product = _address(library, "mtl_blas_product")
        self.sort_rows = _address(library, "mtl_sort_rows")
        self._forget_code = _function(library, "mtl_forget_code", None)
        self._set_default_limit = _function(library, "mtl_set_default_limit", None, ctypes.c_uint64)
        self._host_set = _function(library, "mtl_host_set", None, *(ctypes.c_uint64,) * 5)
        self._host_take = _function(library, "mtl_host_take", None, _EXCEPTION)
        dropped = ctypes.POINTER(ctypes.c_uint32)
        self._log_take = _function(
            library, "mtl_log_take", ctypes.c_uint64, ctypes.c_char_p, dropped
        )
        self._log_capacity = _function(library, "mtl_log_capacity", ctypes.c_uint64)
        self._log_waits = _function(library, "mtl_log_waits", ctypes.c_bool)
        self.configure(settings.num_threads)
        settings.observe("timeout", lambda limit: self._set_default_limit(nanoseconds(limit)))
        self._let_python_interrupt()
        os.register_at_fork(after_in_child=self._let_python_interrupt)

    def unload(self, library: int) -> None:
        """Unload the code of a kernel that no launch uses."""
        _ctypes.dlclose(library)
        self._forget_code()

    def _let_python_interrupt(self) -> None:
        """Make launches of the main thread run Python's signal handlers."""
        python = ctypes.pythonapi
        functions = (
            python.PyGILState_Ensure, python.PyErr_CheckSignals, python.PyErr_Fetch,
            python.PyGILState_Release,
        )  # fmt: skip
        addresses = (ctypes.cast(function, ctypes.c_void_p).value for function in functions)
        self._host_set(*addresses, threading.main_thread().ident)

    def interruption(self) -> BaseException:
        """The exception of a signal handler that ran while this thread was in the runtime."""
        exception = _EXCEPTION()
        self._host_take(exception)
        try:
            _restore(*exception)
        except BaseException as raised:
            return raised
        return LaunchCancelled("the launch was interrupted.")

    def take_messages(self) -> tuple[bytes, int]:
        """The log buffer since the last call, and the number of dropped messages."""
        if not self._log_waits():
            return b"", 0
        block = ctypes.create_string_buffer(self._log_capacity())
        dropped = ctypes.c_uint32()
        size = self._log_take(block, dropped)
        return block.raw[:size], dropped.value


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


#: Type, value and traceback of an exception.
_EXCEPTION = ctypes.c_void_p * 3
_restore = ctypes.PYFUNCTYPE(None, *(ctypes.c_void_p,) * 3)(("PyErr_Restore", ctypes.pythonapi))


_lock = threading.Lock()


@functools.cache
def _load() -> Runtime:
    return Runtime(build(shared_cache()))


def runtime() -> Runtime:
    """The runtime of this process, built (once per machine) and loaded (once per process)."""
    with _lock:
        return _load()


def build(cache: Cache, target: str = "") -> Path:
    """The runtime's shared object for a target of zig, compiled if it is not in `cache`."""
    return native_build.build(SOURCES, "runtime", cache, [HEADERS], _SUBFOLDERS, target)


def sources_digest(target: str = "") -> str:
    """Changes when the runtime does, and so what the code of kernels expects of it."""
    return native_build.sources_digest(SOURCES, "runtime", (HEADERS,), _SUBFOLDERS, target)


def objects(target: str) -> dict[str, bytes]:
    """The runtime's object files by name, for a target of zig.

    Raises
    ------
    DeviceUnavailable
        If it does not compile.
    """
    return native_build.objects(SOURCES, target, [HEADERS], _SUBFOLDERS)
