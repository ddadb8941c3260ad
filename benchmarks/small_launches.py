"""Loops of many small launches, as users of metalcompute and MLX write them.

    python benchmarks/small_launches.py

The first loop calls one kernel 10,000 times. The second steps a wave through a square in time, as
the simulations of mlx#1828 do: two kernels a step, one for the velocities and one for the pressure.
With MLX's arrays each launch makes new ones; everything else works in place. Next to them stand the
same loops in NumPy, and in numba where that is installed. All results are compared before they are
timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import alternating, installed, show, table

import metalloid as mtl
import metalloid.compat.metalcompute as mc
from metalloid.compat import mlx

LAUNCHES = 10_000
COURANT = np.float32(0.5)

ADD = """
kernel void add(device const float *a, device const float *b, device float *c,
                uint i [[thread_position_in_grid]]) { c[i] = a[i] + b[i]; }
"""
#: Bodies on a grid of n by n cells: pressure p, and velocities u along rows and v along columns.
#: Grids of one axis, which is all that metalcompute has, need a division to know the position.
POSITION = "uint x = i % n, y = i / n;"
VELOCITIES = """
    u_new[i] = x + 1 < n ? u[i] - 0.5f * (p[i + 1] - p[i]) : 0;
    v_new[i] = y + 1 < n ? v[i] - 0.5f * (p[i + n] - p[i]) : 0;
"""
PRESSURE = """
    float from_left = x > 0 ? u[i - 1] : 0, from_above = y > 0 ? v[i - n] : 0;
    p_new[i] = p[i] - 0.5f * (u[i] - from_left + v[i] - from_above);
    if (i == n * (n / 2) + n / 2) p_new[i] += metal::sin(0.1f * step[0]);
"""
ID = "uint i [[thread_position_in_grid]]"
WAVE = f"""
#include <metal_stdlib>
using namespace metal;
kernel void velocities(device float *u, device float *v, device const float *p,
                       device const uint *size, {ID})
{{ uint n = size[0]; {POSITION} device float *u_new = u, *v_new = v; {VELOCITIES} }}
kernel void pressure(device float *p, device const float *u, device const float *v,
                     device const uint *size, device const uint *step, {ID})
{{ uint n = size[0]; {POSITION} device float *p_new = p; {PRESSURE} }}
"""
#: The same by two axes.
SQUARE = WAVE.replace(ID, "uint2 at [[thread_position_in_grid]]").replace(
    POSITION, "uint x = at.x, y = at.y, i = y * n + x;"
)

Loop = Callable[[], np.ndarray]


# -- one kernel, again and again


def add_loops(n: int) -> dict[str, Loop]:
    a, b = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    out = np.zeros(n, np.float32)
    device, lib = mc.Device(), mtl.library(ADD)
    function = device.kernel(ADD).function("add")
    theirs = [device.buffer(a), device.buffer(b), device.buffer(4 * n)]
    ours = [mtl.Buffer(a), mtl.Buffer(b), mtl.Buffer(out)]

    def waited() -> np.ndarray:
        for _ in range(LAUNCHES):
            function(n, *theirs)
        return np.frombuffer(theirs[2], np.float32)

    def queued() -> np.ndarray:
        handles = [function(n, *theirs) for _ in range(LAUNCHES)]
        del handles
        return np.frombuffer(theirs[2], np.float32)

    def native() -> np.ndarray:
        for _ in range(LAUNCHES):
            lib.add(*ours, threads=n)
        return np.asarray(ours[2])

    def native_arrays() -> np.ndarray:
        for _ in range(LAUNCHES):
            lib.add(a, b, out, threads=n)
        return out

    def numpy() -> np.ndarray:
        for _ in range(LAUNCHES):
            np.add(a, b, out=out)
        return out

    loops = {
        "metalcompute, each waited for": waited, "metalcompute, handles kept": queued,
        "metalloid, buffers": native, "metalloid, NumPy's arrays": native_arrays, "NumPy": numpy,
    }  # fmt: skip
    if numba := installed("numba"):

        @numba.njit(fastmath=True)
        def add(a, b, c):  # type: ignore[no-untyped-def]
            for i in range(a.size):
                c[i] = a[i] + b[i]

        def compiled() -> np.ndarray:
            for _ in range(LAUNCHES):
                add(a, b, out)
            return out

        loops["numba"] = compiled
    return loops


# -- a wave


def wave_of_numpy(n: int, steps: int, dtype: type = np.float32) -> np.ndarray:
    p, u, v = (np.zeros((n, n), dtype) for _ in range(3))
    half = dtype(0.5)
    for step in range(steps):
        u[:, :-1] -= half * (p[:, 1:] - p[:, :-1])
        v[:-1] -= half * (p[1:] - p[:-1])
        p[:, 1:] -= half * (u[:, 1:] - u[:, :-1])
        p[:, 0] -= half * u[:, 0]
        p[1:] -= half * (v[1:] - v[:-1])
        p[0] -= half * v[0]
        p[n // 2, n // 2] += np.sin(dtype(0.1) * dtype(step))
    return p


def wave_loops(n: int, steps: int) -> dict[str, Loop]:
    loops: dict[str, Loop] = {
        "metalcompute": lambda: wave_of_metalcompute(n, steps),
        "metalloid, buffers": lambda: wave_of_metalloid(n, steps, mtl.Buffer),
        "metalloid, NumPy's arrays": lambda: wave_of_metalloid(n, steps, np.array),
        "NumPy": lambda: wave_of_numpy(n, steps),
    }
    if mx := installed("mlx.core"):
        loops["MLX: metal_kernel, MLX's arrays"] = wave_of_mlx(mx, n, steps)
    if numba := installed("numba"):
        for parallel in (False, True):
            loops[f"numba{', parallel' * parallel}"] = wave_of_numba(numba, n, steps, parallel)
    return loops


def wave_of_metalcompute(n: int, steps: int) -> np.ndarray:
    device = mc.Device()
    library = device.kernel(WAVE)
    velocities, pressure = library.function("velocities"), library.function("pressure")
    p, u, v = (device.buffer(4 * n * n) for _ in range(3))
    size = device.buffer(np.array([n], np.uint32))
    handles = []
    for step in range(steps):
        handles.append(velocities(n * n, u, v, p, size))
        handles.append(pressure(n * n, p, u, v, size, np.array([step], np.uint32)))
    del handles
    return np.frombuffer(p, np.float32).reshape(n, n)


def wave_of_metalloid(n: int, steps: int, memory: Callable[[np.ndarray], Any]) -> np.ndarray:
    lib = mtl.library(SQUARE, math_mode="fast")
    velocities, pressure = lib.velocities, lib.pressure
    p, u, v = (memory(np.zeros(n * n, np.float32)) for _ in range(3))
    size, times = memory(np.array([n], np.uint32)), np.arange(steps, dtype=np.uint32)
    wait = False if memory is mtl.Buffer else None
    for step in range(steps):
        velocities(u, v, p, size, threads=(n, n))
        pressure(p, u, v, size, times[step : step + 1], threads=(n, n), wait=wait)
    return np.asarray(p).view(np.float32).reshape(n, n)


def wave_of_mlx(mx: Any, n: int, steps: int) -> Loop:
    head = f"uint i = thread_position_in_grid.x; {POSITION}"
    velocities = mlx.metal_kernel(
        "velocities", ["p", "u", "v", "n"], ["u_new", "v_new"], head + VELOCITIES
    )
    pressure = mlx.metal_kernel(
        "pressure", ["p", "u", "v", "n", "step"], ["p_new"], head + PRESSURE
    )
    sizes = {"grid": (n * n, 1, 1), "threadgroup": (256, 1, 1)}
    both = {**sizes, "output_shapes": [(n, n)] * 2, "output_dtypes": [mx.float32] * 2}
    one = {**sizes, "output_shapes": [(n, n)], "output_dtypes": [mx.float32]}

    def run() -> np.ndarray:
        p = u = v = mx.zeros((n, n))
        for step in range(steps):
            u, v = velocities(inputs=[p, u, v, n], **both)
            (p,) = pressure(inputs=[p, u, v, n, mx.array([step], mx.uint32)], **one)
        return np.array(p)

    return run


def wave_of_numba(numba: Any, n: int, steps: int, parallel: bool) -> Loop:
    rows = numba.prange if parallel else range
    half = np.float32(0.5)

    @numba.njit(fastmath=True, parallel=parallel)
    def velocities(u, v, p):  # type: ignore[no-untyped-def]
        for y in rows(n):
            for x in range(n - 1):
                u[y, x] -= half * (p[y, x + 1] - p[y, x])
            if y + 1 < n:
                for x in range(n):
                    v[y, x] -= half * (p[y + 1, x] - p[y, x])

    @numba.njit(fastmath=True, parallel=parallel)
    def pressure(p, u, v, step):  # type: ignore[no-untyped-def]
        for y in rows(n):
            for x in range(n):
                left = u[y, x - 1] if x > 0 else np.float32(0)
                above = v[y - 1, x] if y > 0 else np.float32(0)
                p[y, x] -= half * (u[y, x] - left + v[y, x] - above)
        p[n // 2, n // 2] += np.sin(np.float32(0.1) * np.float32(step))

    def run() -> np.ndarray:
        p, u, v = (np.zeros((n, n), np.float32) for _ in range(3))
        for step in range(steps):
            velocities(u, v, p)
            pressure(p, u, v, step)
        return p

    return run


def timed(title: str, loops: dict[str, Loop], exact: np.ndarray, launches: int) -> None:
    for name, loop in loops.items():
        error = np.abs(loop().reshape(exact.shape) - exact).max() / np.abs(exact).max()
        assert error < 1e-4, f"{name} differs by {error}"
    seconds = dict(zip(loops, alternating(list(loops.values()), repeat=9), strict=True))
    rows = [(name, show(s), show(s / launches)) for name, s in seconds.items()]
    table(title, ("loop", "time", "per launch"), rows)


def main() -> None:
    for n in (10, 1000, 100_000):
        exact = np.arange(n, dtype=np.float64) + 1
        timed(f"{LAUNCHES} launches of an addition of {n} numbers", add_loops(n), exact, LAUNCHES)
    for n, steps in ((64, 1000), (256, 300), (1024, 30)):
        exact = wave_of_numpy(n, steps, np.float64)
        timed(f"A wave on {n} x {n} cells, {steps} steps", wave_loops(n, steps), exact, 2 * steps)


if __name__ == "__main__":
    main()
