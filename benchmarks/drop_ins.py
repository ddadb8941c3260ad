"""The cost of a call of a drop-in over metalloid's own: ``python benchmarks/drop_ins.py``.

Each pair does the same: the same kernel, of ten threads, on memory of the same kind, waited for.
Times are the least of short loops that take turns.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import show, table

import metalloid as mtl
import metalloid.compat.metalcompute as mc
from metalloid.compat import Metal, guide, metalpy, mlx, torch
from metalloid.compat.pydotcompute.backends.metal import MetalBackend

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void add(device float* c, device const float* a, device const float* b,
                uint i [[thread_position_in_grid]]) { c[i] = a[i] + b[i]; }
kernel void twice(device const float* x, device float* y, uint i [[thread_position_in_grid]])
{ y[i] = 2 * x[i]; }
"""
N, CALLS, REPEATS = 10, 200, 100

#: What is called, how often per launch, metalloid's call, the drop-in's.
Pair = tuple[str, int, Callable[[], object], Callable[[], object]]


def metalcompute() -> Iterator[Pair]:
    add = mtl.library(SOURCE).add
    buffers = [mtl.Buffer(256) for _ in range(3)]
    device = mc.Device()
    function = device.kernel(SOURCE).function("add")
    theirs = [device.buffer(4 * N) for _ in range(3)]
    yield (
        "metalcompute: function(n, a, b, c)", 1,
        lambda: add(*buffers, threads=N).wait(),
        lambda: function(N, *theirs),
    )  # fmt: skip


def guides() -> Iterator[Pair]:
    x = np.ones(N, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twice.metal"
        path.write_text(SOURCE)
        ours, theirs = mtl.load(path, function_name="twice"), guide.load(path, "twice")
    yield "guide: log(x)", 1, lambda: ours(x), lambda: theirs(x)


def pyobjc() -> Iterator[Pair]:
    add = mtl.library(SOURCE).add
    buffers = [mtl.Buffer(256) for _ in range(3)]
    device = Metal.MTLCreateSystemDefaultDevice()
    library, _ = device.newLibraryWithSource_options_error_(SOURCE, None, None)
    function = library.newFunctionWithName_("add")
    state, _ = device.newComputePipelineStateWithFunction_error_(function, None)
    theirs = [device.newBufferWithLength_options_(256, 0) for _ in range(3)]
    queue, threads = device.newCommandQueue(), Metal.MTLSizeMake(N, 1, 1)

    def encode(encoder: Any) -> None:
        encoder.setComputePipelineState_(state)
        for index, buffer in enumerate(theirs):
            encoder.setBuffer_offset_atIndex_(buffer, 0, index)
        encoder.dispatchThreads_threadsPerThreadgroup_(threads, threads)

    def one() -> None:
        commands = queue.commandBuffer()
        encoder = commands.computeCommandEncoder()
        encode(encoder)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()

    yield "Metal: a command buffer", 10, lambda: add(*buffers, threads=N).wait(), one

    def in_one() -> None:
        commands = queue.commandBuffer()
        encoder = commands.computeCommandEncoder()
        for _ in range(CALLS):
            encode(encoder)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()

    def ours() -> None:
        for _ in range(CALLS):
            event = add(*buffers, threads=N, group_size=N)
        event.wait()

    in_one.calls = ours.calls = CALLS  # type: ignore[attr-defined]
    yield "Metal: a launch in a command buffer", 5, ours, in_one


def metalpys() -> Iterator[Pair]:
    gpu = metalpy.MetalPy()
    a, b = gpu.array([1.0] * N), gpu.array([2.0] * N)
    kernel = gpu.library["add_kernel"]

    def ours() -> None:
        kernel(a.buffer, b.buffer, mtl.Buffer(4 * N), N, threads=N, wait=True)

    yield "MetalPy: gpu.add(a, b)", 1, ours, lambda: gpu.add(a, b)


def mlxs() -> Iterator[Pair]:
    body = "out[thread_position_in_grid.x] = 2 * inp[thread_position_in_grid.x];"
    ours = mtl.metal_kernel("twice", ["inp"], ["out"], body)
    theirs = mlx.metal_kernel("twice", ["inp"], ["out"], body)
    x = np.ones(N, np.float32)
    sizes = {"grid": (N, 1, 1), "threadgroup": (N, 1, 1), "output_shapes": [(N,)]}
    options = {**sizes, "output_dtypes": [np.float32]}
    yield (
        "MLX: metal_kernel, NumPy's arrays", 1,
        lambda: ours(inputs=[x], **options), lambda: theirs(inputs=[x], **options),
    )  # fmt: skip
    if importlib.util.find_spec("mlx"):
        import mlx.core as mx

        y = mx.ones((N,))
        mx.eval(y)
        theirs_options = {**sizes, "output_dtypes": [mx.float32]}
        yield (
            "MLX: metal_kernel, MLX's arrays", 1,
            lambda: mx.array(ours(inputs=[y], **options)[0]),
            lambda: theirs(inputs=[y], **theirs_options),
        )  # fmt: skip


def torches() -> Iterator[Pair]:
    if importlib.util.find_spec("torch") is None:
        return
    from torch import ones

    add, lib = mtl.library(SOURCE).add, torch.compile_shader(SOURCE)
    tensors = [ones(N) for _ in range(3)]
    yield "torch: lib.add(c, a, b)", 1, lambda: add(*tensors, threads=N), lambda: lib.add(*tensors)


def pydotcomputes() -> Iterator[Pair]:
    add, backend = mtl.library(SOURCE).add, MetalBackend()
    compiled = backend.compile_kernel(SOURCE, "add")
    arrays = [np.ones(N, np.float32) for _ in range(3)]

    def native() -> object:
        return add(*arrays, threads=N)

    yield "PyDotCompute: compiled(c, a, b)", 1, native, lambda: compiled(*arrays)
    yield (
        "PyDotCompute: execute_kernel", 1,
        lambda: add(*arrays, threads=N, group_size=N),
        lambda: backend.execute_kernel(compiled, (1,), (N,), *arrays),
    )  # fmt: skip


def seconds_per_call(action: Callable[[], object]) -> float:
    repeat = CALLS // getattr(action, "calls", 1)
    start = time.perf_counter()
    for _ in range(repeat):
        action()
    return (time.perf_counter() - start) / CALLS


def main() -> None:
    rows = []
    for make in (metalcompute, guides, pyobjc, metalpys, mlxs, torches, pydotcomputes):
        for name, calls, ours, theirs in make():
            pairs = [(seconds_per_call(ours), seconds_per_call(theirs)) for _ in range(REPEATS)]
            own, other = (min(times) for times in zip(*pairs, strict=True))
            more = (other - own) * 1e6
            rows.append((name, show(own), show(other), f"{more:+.1f} us", calls,
                         f"{more / calls:+.1f} us"))  # fmt: skip
    head = ("drop-in", "own", "drop-in", "more", "calls", "more per call")
    table("A launch of ten threads", head, rows)


if __name__ == "__main__":
    main()
