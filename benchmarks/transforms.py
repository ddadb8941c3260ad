"""Latency of compiled and eager functions.

Run it by ``python benchmarks/transforms.py``.

The times are the host's for calls on 1,000 floats; where the result is not read, it is
on GPUs the time to enqueue. *Cold* is the median of calls after other work has filled the caches.
``METALLOID_DEVICE`` chooses the device. ``perceptron.py`` measures a step of training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from timing import alternating, best, show, table

import metalloid as mtl

CALLS = 200


def six(x: Any) -> Any:
    """Six operations."""
    return (x * 2 + 1) * x - (x / 3) + x


def many(call: Callable[[], object]) -> Callable[[], object]:
    """Repeat a call, as one is too short for the clock."""

    def calls() -> None:
        for _ in range(CALLS):
            call()

    return calls


def calls_on_floats() -> dict[str, Callable[[], object]]:
    """Calls of everything that takes 1,000 floats, by name."""
    x, y = mtl.arange(1000.0) / 1000, mtl.zeros(1000)
    mtl.eval(x, y)
    compiled, total = mtl.compile(six), mtl.sum(x)
    mtl.eval(total)
    same, out = np.array(x.numpy()), np.zeros(1000, np.float32)
    buffers = mtl.Buffer(same), mtl.Buffer(out)
    scale = mtl.library("""
        kernel void scale(device const float* x, device float* y, constant float& a,
                          uint i [[thread_position_in_grid]]) { y[i] = a * x[i]; }""").scale
    elementwise = mtl.ElementwiseKernel("float x, float a", "float y", "y = a * x", "scaled")
    custom = mtl.metal_kernel(
        name="twice", input_names=["x"], output_names=["y"],
        source="uint i = thread_position_in_grid.x; y[i] = 2.0f * x[i];",
    )  # fmt: skip
    options: dict[str, Any] = {
        "grid": (1000, 1, 1), "threadgroup": (256, 1, 1),
        "output_shapes": [(1000,)], "output_dtypes": [np.float32],
    }  # fmt: skip
    return {
        "six operations, compiled": lambda: compiled(x),
        "the same, read": lambda: np.asarray(compiled(x)),
        "eager": lambda: mtl.eval(six(x)),
        "eager, read": lambda: np.asarray(six(x)),
        "sum, eager": lambda: mtl.eval(x.sum()),
        "NumPy": lambda: six(same),
        "numpy.asarray of an array": lambda: np.asarray(x),
        "float of an array": lambda: float(total),
        "launch on NumPy arrays": lambda: scale(same, out, 2.0, threads=1000),
        "launch on arrays": lambda: scale(x, y, 2.0, threads=1000),
        "launch on Buffers, waiting": lambda: scale(*buffers, 2.0, threads=1000, wait=True),
        "launch on Buffers, queued": lambda: scale(*buffers, 2.0, threads=1000),
        "ElementwiseKernel on NumPy arrays": lambda: elementwise(same, 2.0),
        "ElementwiseKernel on arrays": lambda: elementwise(x, 2.0),
        "metal_kernel on NumPy arrays": lambda: custom(inputs=[same], **options),
        "metal_kernel on arrays": lambda: mtl.eval(custom(inputs=[x], **options)),
    }


def after_other_work(calls: Sequence[Callable[[], object]], repeat: int = 40) -> list[float]:
    """Median times of single calls, in turns, each after other work has filled the caches."""
    other = np.zeros(2**23, np.uint8)
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeat):
        for each, call in zip(seconds, calls, strict=True):
            other += 1
            each.append(best(call, repeat=1))
    return [sorted(each)[repeat // 2] for each in seconds]


def main() -> None:
    """Measure, and print the table."""
    calls = calls_on_floats()
    for call in calls.values():
        call(), call()
    warm = alternating([many(call) for call in calls.values()], 30)
    cold = after_other_work(list(calls.values()))
    rows = [[name, show(a / CALLS), show(b)] for name, a, b in zip(calls, warm, cold, strict=True)]
    table(f"Calls on 1,000 floats, {mtl.default_device()}", ["", "a call", "cold"], rows)


if __name__ == "__main__":
    main()
