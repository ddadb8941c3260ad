"""Observers of calls of kernels, and calls by native functions."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from metalloid.compiler.toolchain.native_build import OF_PYTHON, load_python_library
from metalloid.kernels.kernel import Kernel
from metalloid.runtime.launch.event import Event
from metalloid.runtime.memory.slot_offsets import offsets_of


def use_native_calls() -> None:
    """Let native functions look for the fast launch of a call, unless calls are observed."""
    if Kernel.__call__ is Kernel._call:
        _define_calls()()


@functools.cache
def _define_calls() -> Callable[[], None]:
    """The function that replaces the type's slot (runtime/native/kernel_call.c)."""
    library = load_python_library(OF_PYTHON, "kernel_call")
    offsets = offsets_of(Kernel, ["_fast_launch"])
    if library is None or offsets is None:
        return lambda: None
    offset = ctypes.c_uint64(offsets[0])
    return functools.partial(library.mtl_define_kernel_calls, ctypes.py_object(Kernel), offset)


def observe_calls(
    observer: Callable[[Callable[..., Event]], Callable[..., Event]] | None,
) -> None:
    """Let an observer replace the function that makes calls, which it gets; None ends it.

    Without an observer, calls take no longer.
    """
    calls: Any = Kernel
    if observer is None:
        calls.__call__, calls.run = Kernel._call, Kernel._run
        use_native_calls()
        return
    call = observer(Kernel._call)

    def run(kernel: Kernel, args: Any, threads: Any, group_size: Any) -> None:
        call(kernel, *args, threads=threads, group_size=group_size, wait=True)

    calls.__call__, calls.run = call, run
