"""The cases in NumPy and in double precision, to check all rivals."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.bench.cases import Case


def expected(case: Case) -> np.ndarray:
    """The expected array of a case after one run on the arguments as they are."""
    inputs = [a.astype(np.float64) if _is_float(a) else a for a in case.arguments]
    result: np.ndarray = globals()[f"_{case.name}"](*inputs)
    return result


def disagreement(case: Case, got: np.ndarray, reference: np.ndarray) -> str:
    """Empty if `got` is right, else what is wrong."""
    if got.dtype.kind in "iu":
        if case.name in ("julia", "mandelbrot"):
            # Chaos: one rounding, as of a fused multiply-add, decides the last rounds of some.
            differ = np.count_nonzero(got != reference) / got.size
            return f"{differ:.2%} of the pixels differ" if differ > 0.05 else ""
        differ = np.count_nonzero(got != reference)
        return f"{differ} of {got.size} differ" if differ else ""
    worst = relative_error(got, reference)
    return "" if worst < 1e-4 else f"off by {worst:.2g}, relative"


def relative_error(got: np.ndarray, reference: np.ndarray) -> float:
    """The largest; numbers that nearly cancel count as large as they are on average."""
    scale = np.abs(reference) + np.abs(reference).mean()
    return float(np.max(np.abs(got - reference) / scale))


def _is_float(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and argument.dtype.kind == "f"


def _saxpy(y, x, a):
    return a * x + y


def _exp_of(_, x):
    return np.exp(x)


def _log_of(_, x):
    return np.log(x)


def _sin_of(_, x):
    return np.sin(x)


def _pow_of(_, x, exponent):
    return x ** float(np.float32(exponent))


def _normalise(_, x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _escape(x, y, cx, cy, iterations):
    """Rounds until (x, y) has left the circle, in single precision as the kernels have it."""
    n = np.zeros(x.shape, np.int32)
    inside = np.ones(x.shape, bool)
    for _ in range(iterations):
        x2, y2 = x * x, y * y
        inside &= x2 + y2 <= 4
        if not inside.any():
            break
        n += inside
        y = np.where(inside, 2 * x * y + cy, y)
        x = np.where(inside, x2 - y2 + cx, x)
    return n


def _pixels(width, height):
    return np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))


def _julia(_, width, height, c):
    scale, half = np.float32(3 / width), np.float32(0.5)
    i, j = _pixels(width, height)
    x, y = (i - half * width) * scale, (j - half * height) * scale
    return _escape(x, y, np.float32(c[0]), np.float32(c[1]), 300)


def _mandelbrot(_, width, height):
    i, j = _pixels(width, height)
    cx, cy = i * np.float32(3 / width) - np.float32(2), j * np.float32(2 / height) - np.float32(1)
    return _escape(np.zeros_like(cx), np.zeros_like(cx), cx, cy, 256)


def _collatz(steps):
    left = np.arange(1, steps.size + 1, dtype=np.int64)
    n = np.zeros(steps.size, np.int32)
    while (on := left != 1).any():
        n += on
        left = np.where(on, np.where(left & 1, 3 * left + 1, left // 2), 1)
    return n


def _primes(sums):
    candidates = [p for p in range(2, 256) if all(p % q for q in range(2, p))]
    until = np.array([sum(p for p in candidates if p <= last) for last in range(256)], np.int32)
    return until[np.arange(sums.size) & 255]


def _stencil(_, x, n):
    y = x.copy()
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + around)
    return y


_guarded_stencil = _stencil


def _matmul(_, a, b, n):
    return a @ b


_tiled_matmul = _matmul


def _nbody(_, bodies, n):
    positions, masses = bodies[:, :3], bodies[:, 3]
    result = np.zeros((n, 4))
    for i in range(n):
        d = positions - positions[i]
        inverse = 1 / np.sqrt((d * d).sum(1) + 1e-3)
        result[i, :3] = (d * (masses * inverse**3)[:, None]).sum(0)
    return result


def _tree_reduction(_, x):
    return x.reshape(-1, 256).sum(1)


def _histogram(counts, x, share):
    return counts + np.bincount(x, minlength=256).astype(np.uint32)


def _prefix_sum(_, x, n):
    return np.cumsum(x, axis=1)


def _softmax(_, x, n):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
