"""Kernels with arguments of a size that tells something, and what they must do at least."""

from __future__ import annotations

import importlib.resources
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.kernels.library import Library, library

_LINE, _PAGE = 64, 4096


@dataclass(frozen=True)
class Case:
    """A kernel with its arguments.

    Attributes
    ----------
    name : str
        Of the kernel in ``kernels.metal``.
    arguments : tuple
        Of the kernel; the first is the array that it writes.
    threads, group_size
        As for the call of a kernel.
    work : float or callable
        Floating-point operations that the algorithm needs, or a function that tells them from the
        result; 0 if it works on integers or with the functions of a library.
    traffic : float
        Bytes that memory must move at least, each array once.
    """

    name: str
    arguments: tuple[Any, ...]
    threads: int | tuple[int, int]
    group_size: int | tuple[int, int] | None
    work: float | Callable[[np.ndarray], float]
    traffic: float

    @property
    def operations(self) -> float:
        """Floating-point operations of one run; known when it has run."""
        return self.work(self.arguments[0]) if callable(self.work) else self.work

    def launcher(self, lib: Library) -> Callable[[], object]:
        """A function that launches it and waits."""
        kernel, arguments = lib[self.name], self.arguments
        threads, group = self.threads, self.group_size
        return lambda: kernel(*arguments, threads=threads, group_size=group)


class Arrays:
    """Makes arrays of zeros, each at the start of a cache line and elsewhere in its page.

    Where an array lies decides up to half of the time of a kernel. These lie well for everybody.
    """

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        """An array of zeros."""
        self._count += 1
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory = np.zeros(size + 2 * _PAGE, np.uint8)
        start = -memory.ctypes.data % _PAGE + 5 * _LINE * self._count % _PAGE
        array: np.ndarray = memory[start : start + size].view(dtype).reshape(shape)
        return array


def kernels(**options: Any) -> Library:
    """The library of all cases' kernels; `options` are those of `metalloid.library`."""
    text = importlib.resources.files("metalloid.bench").joinpath("kernels.metal")
    return library(text.read_text("utf-8"), **options)


def cases(tiny: bool = False) -> list[Case]:
    """All cases, in sizes to measure or, if `tiny`, to check.

    Examples
    --------
    >>> from metalloid.bench.cases import cases, kernels
    >>> saxpy = cases(tiny=True)[0]
    >>> before = saxpy.arguments[0].copy()
    >>> _ = saxpy.launcher(kernels())()
    >>> bool((saxpy.arguments[0] != before).any())
    True
    """
    rng = np.random.default_rng(0)
    n = 1 << (12 if tiny else 20)
    wide, many = (n, n) if tiny else (1 << 22, 10_000_000)
    width, height = (64, 32) if tiny else (1024, 768)
    bodies, size = (64, 64) if tiny else (2048, 512)
    field, rows = (64, 4) if tiny else (1024, 1024)
    columns, groups = 1024, n // 256

    result = Arrays()

    def filled(values: np.ndarray) -> np.ndarray:
        array = result(*values.shape, dtype=values.dtype)
        array[...] = values
        return array

    def floats(*shape: int) -> np.ndarray:
        return filled(rng.normal(size=shape).astype(np.float32))

    def positive() -> np.ndarray:
        return filled(rng.uniform(0.1, 10, many).astype(np.float32))

    def pixels() -> np.ndarray:
        return result(height, width, dtype=np.int32)

    def iterations(each: int) -> Callable[[np.ndarray], float]:
        return lambda result: each * float(result.sum())

    angles = filled(rng.uniform(-10, 10, many).astype(np.float32))
    given, each = (floats(size, size), floats(size, size)), size * size
    table = floats(rows, columns)
    share = 16 * 256
    data = filled(rng.integers(0, 256, groups * share // 16, dtype=np.uint8))
    return [
        Case("saxpy", (floats(wide), floats(wide), 0.5), wide, None, 2 * wide, 12 * wide),
        Case("exp_of", (result(many), angles), many, None, 0, 8 * many),
        Case("log_of", (result(many), positive()), many, None, 0, 8 * many),
        Case("sin_of", (result(many), angles), many, None, 0, 8 * many),
        Case("pow_of", (result(many), positive(), 1.7), many, None, 0, 8 * many),
        Case("normalise", (result(n // 4, 4), floats(n // 4, 4)), n // 4, None,
             13 * n / 4, 8 * n),
        Case("julia", (pixels(), width, height, (-0.8, 0.156)), (width, height), None,
             iterations(9), 4 * width * height),
        Case("mandelbrot", (pixels(), width, height), (width, height), None, iterations(10),
             4 * width * height),
        Case("collatz", (result(n // 8, dtype=np.int32),), n // 8, None, 0, n / 2),
        Case("primes", (result(n // 16, dtype=np.int32),), n // 16, None, 0, n / 4),
        Case("stencil", (result(field, field), floats(field, field), field), (field, field), None,
             5 * field**2, 8 * field**2),
        Case("guarded_stencil", (result(field, field), floats(field, field), field),
             (field, field), None, 5 * field**2, 8 * field**2),
        Case("matmul", (result(size, size), *given, size), (size, size), None,
             2 * size**3, 12 * each),
        Case("tiled_matmul", (result(size, size), *given, size), (size, size), (16, 16),
             2 * size**3, 12 * each),
        Case("nbody", (result(bodies, 4), filled(np.abs(floats(bodies, 4))), bodies), bodies, None,
             20 * bodies**2, 32 * bodies),
        Case("tree_reduction", (result(groups), floats(n)), n, 256, n, 4 * n),
        Case("histogram", (result(256, dtype=np.uint32), data, share), data.size // share * 256,
             256, 0, data.size),
        Case("prefix_sum", (result(rows, columns), table, columns), rows * 256, 256,
             rows * columns, 8 * rows * columns),
        Case("softmax", (result(rows, columns), table, columns), rows * 256, 256,
             0, 8 * rows * columns),
    ]  # fmt: skip
