"""The cost of a launch, against NumPy calls of the same run: ``python benchmarks/launch.py``."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from metal_stub import stub_device
from timing import alternating, best, show, table

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void empty() {}
kernel void one(device float* x) {}
kernel void three(device float* x, device const float* y, constant float& a) {}
kernel void saxpy(device float* y, device const float* x, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }
kernel void add(device float* c, device const float* a, device const float* b,
                uint i [[thread_position_in_grid]]) { c[i] = a[i] + b[i]; }
kernel void barriers(device float* x, constant int& rounds) {
    for (int k = 0; k < rounds; k++) threadgroup_barrier(mem_flags::mem_threadgroup);
}
"""

OPENCL_SOURCE = """
kernel void saxpy(global float* y, global const float* x, float a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
"""


def launches(lib: mtl.Library) -> None:
    a, b, c = (np.ones(1, np.float32) for _ in range(3))
    actions = {
        "np.add, one element": lambda: np.add(a, b, out=c),
        "empty kernel": lambda: lib.empty(threads=1, wait=True),
        "one array": lambda: lib.one(a, threads=1),
        "two arrays and a number": lambda: lib.three(a, b, 1.0, threads=1),
    }
    lib.empty(threads=1)
    seconds = {name: best(action, number=20_000, repeat=7) for name, action in actions.items()}
    base = seconds["np.add, one element"]
    rows = [(name, show(s), f"{s / base:.1f}") for name, s in seconds.items()]
    table("Launch from Python", ("call", "time", "x np.add"), rows)


def elementwise(lib: mtl.Library, n: int = 10_000_000) -> None:
    a, b, c = (np.random.default_rng(k).random(n, dtype=np.float32) for k in range(3))
    seconds = alternating(
        [
            lambda: np.add(a, b, out=c),
            lambda: lib.add(c, a, b, threads=n),
            lambda: lib.saxpy(c, a, 0.5, threads=n),
        ]
    )
    names = (
        f"np.add, {n:.0e} floats",
        "add, two reads and a write",
        "saxpy, two reads and a write",
    )
    rows = [
        (name, show(s), f"{12 * n / s / 1e9:.1f} GB/s", f"{s / seconds[0]:.2f}")
        for name, s in zip(names, seconds, strict=True)
    ]
    table("Elementwise kernels", ("kernel", "time", "bandwidth", "x np.add"), rows)


def barriers() -> None:
    x = np.zeros(1, np.float32)
    with mtl.config.scope(cpu_engine="reference"):  # vector code has loops where barriers were
        kernel = mtl.library(SOURCE).barriers
    rows = []
    for group in (32, 256, 1024):
        few, many = (
            best(functools.partial(kernel, x, iterations, threads=group, group_size=group))
            for iterations in (10, 1010)
        )
        rows.append((group, show((many - few) / 1000 / group)))
    table("Barriers of the reference engine", ("threads", "per thread and barrier"), rows)


def metal_device(count: int = 1000) -> list[float]:
    """The Metal device's own code, on a GPU that does nothing: CPU time of a launch in a batch."""
    device = stub_device()
    lib = mtl.library(SOURCE, device=device)
    x, y, z = (mtl.Buffer(256, device) for _ in range(3))

    def seconds(launch: Callable[[], object]) -> float:
        start = time.process_time()
        for _ in range(count):
            launch()
        device.synchronize()
        return (time.process_time() - start) / count

    actions = {
        "three buffers": lambda: lib.add(x, y, z, threads=10),
        "two buffers and a number": lambda: lib.saxpy(x, y, 2.0, threads=10),
    }
    least = [min(seconds(action) for _ in range(15)) for action in actions.values()]
    rows = [(name, show(s)) for name, s in zip(actions, least, strict=True)]
    table(f"Metal device, a batch of {count} launches, GPU stubbed", ("launch", "CPU time"), rows)
    return least


def opencl_device(count: int = 300) -> None:
    """A launch of 64 threads on an OpenCL device, and pyopencl's enqueue alone, in turns."""
    try:
        lib = mtl.library(SOURCE, device="opencl")
    except mtl.DeviceUnavailable as error:
        print(f"\n{error}")
        return
    import pyopencl as cl

    x, y = (mtl.Buffer(np.ones(64, np.float32), "opencl") for _ in range(2))
    device: Any = x.device
    saxpy, queue = lib.saxpy, device._queue
    program = cl.Program(device._context, OPENCL_SOURCE).build()
    memory = cl.Buffer(device._context, cl.mem_flags.READ_WRITE, x.nbytes)
    theirs = program.saxpy
    theirs.set_args(memory, memory, np.float32(2.0))
    actions = {
        "kernel(x, y, 2.0, threads=64)": lambda: saxpy(x, y, 2.0, threads=64),
        "pyopencl's enqueue_nd_range_kernel": (
            lambda: cl.enqueue_nd_range_kernel(queue, theirs, (64,), (64,))
        ),
    }
    least = dict.fromkeys(actions, math.inf)
    for _ in range(25):
        for name, action in actions.items():
            seconds = best(action, repeat=1, number=count, clock=time.thread_time)
            least[name] = min(least[name], seconds)
            device.synchronize()
    base = least["pyopencl's enqueue_nd_range_kernel"]
    rows = [(name, show(s), f"{s / base:.2f}") for name, s in least.items()]
    table("Launch on an OpenCL device, CPU time", ("call", "time", "x pyopencl"), rows)


def imports() -> None:
    def run(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), repeat=9)

    nothing, ours = run("pass"), run("import metalloid")
    table("Import", ("statement", "time"), [("import metalloid", show(ours - nothing))])


def main() -> None:
    lib = mtl.library(SOURCE)
    print(mtl.default_device())
    launches(lib)
    elementwise(lib)
    barriers()
    metal_device()
    opencl_device()
    imports()


if __name__ == "__main__":
    main()
