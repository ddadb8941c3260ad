"""Latency of compiled and eager functions, and a step of training.

Run it by ``python benchmarks/transforms.py``.

The first table is the host's time for six operations on 1,000 floats, without reading the result;
on GPUs it is the time to enqueue. The second is a step of Adam of a perceptron (784-512-10, batch
256). ``METALLOID_DEVICE`` chooses the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import alternating, show, table

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
    x = mtl.arange(1000.0) / 1000
    mtl.eval(x)
    same, compiled = x.numpy(), mtl.compile(six)
    names = "compiled", "eager", "numpy"
    calls = lambda: compiled(x), lambda: mtl.eval(six(x)), lambda: six(same)
    for call in calls:
        call()
    seconds = alternating([many(call) for call in calls], 30)
    rows = [[name, show(each / CALLS)] for name, each in zip(names, seconds, strict=True)]
    table(f"Six operations on 1,000 floats, {mtl.default_device()}", ["", "a call"], rows)
    step, state = training()
    runs = [steps(mtl.compile(step), state), steps(step, state)]
    np.testing.assert_allclose(runs[0](), runs[1](), rtol=1e-5, atol=1e-7)
    seconds = alternating(runs, 5)
    rows = [[name, show(each / STEPS)] for name, each in zip(names, seconds, strict=False)]
    table("A step of training", ["", "a step"], rows)


if __name__ == "__main__":
    main()
