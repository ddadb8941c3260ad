"""Numba: loops with ``prange``, ``parallel=True, fastmath=True``."""

from __future__ import annotations

import sys

# Numba asks a module of this name for coverage.types, and does without if there is none. The script
# benchmarks/coverage.py must not be taken for it.
_script = sys.modules.get("coverage")
sys.modules["coverage"] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402
from numba import njit, prange  # noqa: E402

del sys.modules["coverage"]
if _script:
    sys.modules["coverage"] = _script

NAME = "numba"
_kernel = njit(parallel=True, fastmath=True)


@_kernel
def julia(iterations, width, height, c):
    scale = np.float32(3 / width)
    cx, cy = np.float32(c[0]), np.float32(c[1])
    for j in prange(height):
        for i in range(width):
            x = (i - np.float32(0.5) * width) * scale
            y = (j - np.float32(0.5) * height) * scale
            x, y = np.float32(x), np.float32(y)
            n = 0
            while n < 300:
                x2, y2 = x * x, y * y
                if x2 + y2 > np.float32(4):
                    break
                y = np.float32(2) * x * y + cy
                x = x2 - y2 + cx
                n += 1
            iterations[j, i] = n


@_kernel
def mandelbrot(iterations, width, height):
    for j in prange(height):
        for i in range(width):
            cx = np.float32(i * np.float32(3 / width) - np.float32(2))
            cy = np.float32(j * np.float32(2 / height) - np.float32(1))
            x = y = np.float32(0)
            n = 0
            while n < 256 and x * x + y * y <= np.float32(4):
                x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
                n += 1
            iterations[j, i] = n


@_kernel
def nbody(acceleration, bodies, n):
    for i in prange(n):
        hx, hy, hz = bodies[i, 0], bodies[i, 1], bodies[i, 2]
        sx = sy = sz = np.float32(0)
        for j in range(n):
            x, y, z = bodies[j, 0] - hx, bodies[j, 1] - hy, bodies[j, 2] - hz
            inverse = np.float32(1) / np.sqrt(x * x + y * y + z * z + np.float32(1e-3))
            pull = bodies[j, 3] * inverse * inverse * inverse
            sx += x * pull
            sy += y * pull
            sz += z * pull
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = sx, sy, sz
        acceleration[i, 3] = 0


@_kernel
def matmul(c, a, b, n):
    for i in prange(n):
        for j in range(n):
            total = np.float32(0)
            for k in range(n):
                total += a[i, k] * b[k, j]
            c[i, j] = total


@_kernel
def stencil(y, x, n):
    for j in prange(n):
        for i in range(n):
            if 0 < i < n - 1 and 0 < j < n - 1:
                around = x[j, i - 1] + x[j, i + 1] + x[j - 1, i] + x[j + 1, i]
                y[j, i] = np.float32(0.2) * (x[j, i] + around)
            else:
                y[j, i] = x[j, i]


@_kernel
def _histogram(counts, x, parts):
    own = np.zeros((parts, 256), np.uint32)  # Numba has no atomics: a table per chunk
    share = x.size // parts
    for chunk in prange(parts):
        last = x.size if chunk == parts - 1 else (chunk + 1) * share
        for i in range(chunk * share, last):
            own[chunk, x[i]] += 1
    for chunk in range(parts):
        for value in range(256):
            counts[value] += own[chunk, value]


def histogram(counts, x, share):
    _histogram(counts, x, 8)


@_kernel
def prefix_sum(y, x, n):
    for row in prange(x.shape[0]):
        total = np.float32(0)
        for i in range(n):
            total += x[row, i]
            y[row, i] = total


@_kernel
def softmax(y, x, n):
    for row in prange(x.shape[0]):
        largest = x[row, 0]
        for i in range(n):
            largest = max(largest, x[row, i])
        total = np.float32(0)
        for i in range(n):
            total += np.exp(x[row, i] - largest)
        for i in range(n):
            y[row, i] = np.exp(x[row, i] - largest) / total


def launcher(case):
    kernel, arguments = globals()[case.name], case.arguments
    return lambda: kernel(*arguments), lambda: arguments[0]
