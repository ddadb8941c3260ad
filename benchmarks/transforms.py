"""Latency of compiled and eager functions, and a step of training.

Run it by ``python benchmarks/transforms.py``.

The first table is the host's time for calls on 1,000 floats; where the result is not read, it is
on GPUs the time to enqueue. *Cold* is the median of calls after other work has filled the caches.
The second is a step of Adam of a perceptron (784-512-10, batch 256). ``METALLOID_DEVICE`` chooses
the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from timing import alternating, best, show, table

import metalloid as mtl

CALLS, STEPS = 200, 20


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


def training() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step, and its parameters with the moments of Adam."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return mtl.asarray(rng.standard_normal(shape, np.float32) * np.float32(0.03))

    params = {"w1": normal(784, 512), "b1": mtl.zeros(512), "w2": normal(512, 10),
              "b2": mtl.zeros(10)}  # fmt: skip
    x = normal(256, 784)
    is_class = (mtl.asarray(rng.integers(0, 10, 256))[:, None] == mtl.arange(10)) * 1.0
    mtl.eval(is_class)

    def loss(p: Any) -> Any:
        z = mtl.maximum(x @ p["w1"] + p["b1"], 0) @ p["w2"] + p["b2"]
        top = z.max(axis=1, keepdims=True)
        total = mtl.log(mtl.exp(z - top).sum(axis=1, keepdims=True)) + top
        return ((total - z) * is_class).sum() / 256

    def step(p: Any, m: Any, v: Any, k: int) -> Any:
        _, g = mtl.value_and_grad(loss)(p)
        m = {n: 0.9 * m[n] + 0.1 * g[n] for n in p}
        v = {n: 0.999 * v[n] + 0.001 * g[n] * g[n] for n in p}
        mean = {n: m[n] / (1 - 0.9**k) for n in p}
        scale = {n: mtl.sqrt(v[n] / (1 - 0.999**k)) + 1e-8 for n in p}
        return {n: p[n] - 1e-3 * mean[n] / scale[n] for n in p}, m, v

    zeros = {name: mtl.zeros(p.shape) for name, p in params.items()}
    return step, (params, zeros, zeros)


def steps(step: Callable[..., Any], state: tuple[Any, ...]) -> Callable[[], object]:
    """Several steps; the parameters are read at the end."""

    def run() -> object:
        now = state
        for k in range(1, STEPS + 1):
            now = step(*now, k)
            mtl.async_eval(*now)
        return np.asarray(now[0]["b2"])

    return run


def main() -> None:
    """Measure, and print both tables."""
    calls = calls_on_floats()
    for call in calls.values():
        call(), call()
    warm = alternating([many(call) for call in calls.values()], 30)
    cold = after_other_work(list(calls.values()))
    rows = [[name, show(a / CALLS), show(b)] for name, a, b in zip(calls, warm, cold, strict=True)]
    table(f"Calls on 1,000 floats, {mtl.default_device()}", ["", "a call", "cold"], rows)
    step, state = training()
    runs = [steps(mtl.compile(step), state), steps(step, state)]
    np.testing.assert_allclose(runs[0](), runs[1](), rtol=1e-5, atol=1e-7)
    seconds = alternating(runs, 5)
    rows = [
        [name, show(each / STEPS)]
        for name, each in zip(("compiled", "eager"), seconds, strict=True)
    ]
    table("A step of training", ["", "a step"], rows)


if __name__ == "__main__":
    main()
