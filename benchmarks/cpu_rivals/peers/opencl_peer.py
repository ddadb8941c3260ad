"""PoCL, OpenCL on the CPU, by PyOpenCL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyopencl as cl

NAME = "pocl"
_TEXT = Path(__file__).with_name("kernels.cl")
#: Cases whose threads work in groups of 256.
_GROUPED = ("histogram", "prefix_sum", "softmax")


def _pocl() -> cl.Device:
    for platform in cl.get_platforms():
        if "Portable Computing Language" in platform.name:
            return platform.get_devices()[0]
    raise ImportError("there is no PoCL among the OpenCL platforms")


_context = cl.Context([_pocl()])
_queue = cl.CommandQueue(_context)
_program = cl.Program(_context, _TEXT.read_text()).build(["-cl-fast-relaxed-math"])


def launcher(case):
    kernel = cl.Kernel(_program, case.name)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    result = case.arguments[0]
    buffers = [
        cl.Buffer(_context, flags, hostbuf=a) if isinstance(a, np.ndarray) else a
        for a in case.arguments
    ]
    given = [_scalar(a) if not isinstance(a, cl.Buffer) else a for a in buffers]
    threads = case.threads if isinstance(case.threads, tuple) else (case.threads,)
    group = (256,) if case.name in _GROUPED else None

    def launch():
        kernel(_queue, threads, group, *given)
        _queue.finish()

    def read():
        got = np.empty_like(result)
        cl.enqueue_copy(_queue, got, buffers[0])
        return got

    return launch, read


def _scalar(value):
    if isinstance(value, tuple):
        return np.array(value, np.float32)
    return np.int32(value) if isinstance(value, int) else np.float32(value)
