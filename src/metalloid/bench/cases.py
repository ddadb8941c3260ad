"""Kernels with arguments in sizes to measure, and the work and traffic that they need at least."""

from __future__ import annotations

import importlib.resources
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metalloid.kernels.library import Library, library
from metalloid.runtime.memory.buffer import Buffer

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

    def on(self, device: str) -> Case:
        """The case with buffers of a device for its arrays."""
        arguments = (Buffer(a, device) if isinstance(a, np.ndarray) else a for a in self.arguments)
        return replace(self, arguments=tuple(arguments))


class Arrays:
    """Makes arrays of zeros, each at the start of a cache line and elsewhere in its page.

    Where an array lies decides up to half of the time of a kernel. These lie well for everybody.
    """

    def __init__(self) -> None:
        self._count, self._random = 0, np.random.default_rng(0)

    def __call__(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        """An array of zeros."""
        self._count += 1
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory = np.zeros(size + 2 * _PAGE, np.uint8)
        start = -memory.ctypes.data % _PAGE + 5 * _LINE * self._count % _PAGE
        array: np.ndarray = memory[start : start + size].view(dtype).reshape(shape)
        return array

    def filled(self, values: np.ndarray) -> np.ndarray:
        """A copy of an array."""
        array = self(*values.shape, dtype=values.dtype)
        array[...] = values
        return array

    def normal(self, *shape: int) -> np.ndarray:
        """Normally distributed float32 numbers."""
        return self.filled(self._random.normal(size=shape).astype(np.float32))

    def uniform(self, low: float, high: float, count: int) -> np.ndarray:
        """Float32 numbers in a range."""
        return self.filled(self._random.uniform(low, high, count).astype(np.float32))

    def integers(self, high: int, count: int) -> np.ndarray:
        """Bytes below `high`."""
        return self.filled(self._random.integers(0, high, count, dtype=np.uint8))


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
    arrays = Arrays()
    return [
        *_elementwise_cases(arrays, tiny),
        *_integer_cases(arrays, tiny),
        *_stencil_cases(arrays, tiny),
        *_product_cases(arrays, tiny),
        *_threadgroup_cases(arrays, tiny),
    ]


def _elementwise_cases(new: Arrays, tiny: bool) -> list[Case]:
    n, wide, many = (4096, 4096, 4096) if tiny else (1 << 20, 1 << 22, 10_000_000)
    angles = new.uniform(-10, 10, many)

    def positive() -> np.ndarray:
        return new.uniform(0.1, 10, many)

    return [
        Case("saxpy", (new.normal(wide), new.normal(wide), 0.5), wide, None, 2 * wide, 12 * wide),
        Case("exp_of", (new(many), angles), many, None, 0, 8 * many),
        Case("log_of", (new(many), positive()), many, None, 0, 8 * many),
        Case("sin_of", (new(many), angles), many, None, 0, 8 * many),
        Case("pow_of", (new(many), positive(), 1.7), many, None, 0, 8 * many),
        Case("normalise", (new(n // 4, 4), new.normal(n // 4, 4)), n // 4, None,
             13 * n / 4, 8 * n),
    ]  # fmt: skip


def _integer_cases(new: Arrays, tiny: bool) -> list[Case]:
    """Iterations of complex numbers and integers, whose counts are the results."""
    width, height = (64, 32) if tiny else (1024, 768)
    n = 4096 if tiny else 1 << 20

    def pixels() -> np.ndarray:
        return new(height, width, dtype=np.int32)

    def iterations(each: int) -> Callable[[np.ndarray], float]:
        return lambda result: each * float(result.sum())

    return [
        Case("julia", (pixels(), width, height, (-0.8, 0.156)), (width, height), None,
             iterations(9), 4 * width * height),
        Case("mandelbrot", (pixels(), width, height), (width, height), None, iterations(10),
             4 * width * height),
        Case("collatz", (new(n // 8, dtype=np.int32),), n // 8, None, 0, n / 2),
        Case("primes", (new(n // 16, dtype=np.int32),), n // 16, None, 0, n / 4),
    ]  # fmt: skip


def _stencil_cases(new: Arrays, tiny: bool) -> list[Case]:
    n = 64 if tiny else 1024
    names = "stencil", "guarded_stencil"
    return [
        Case(name, (new(n, n), new.normal(n, n), n), (n, n), None, 5 * n**2, 8 * n**2)
        for name in names
    ]


def _product_cases(new: Arrays, tiny: bool) -> list[Case]:
    bodies, n = (64, 64) if tiny else (2048, 512)
    factors = new.normal(n, n), new.normal(n, n)
    masses = new.filled(np.abs(new.normal(bodies, 4)))
    return [
        Case("matmul", (new(n, n), *factors, n), (n, n), None, 2 * n**3, 12 * n**2),
        Case("tiled_matmul", (new(n, n), *factors, n), (n, n), (16, 16), 2 * n**3, 12 * n**2),
        Case("nbody", (new(bodies, 4), masses, bodies), bodies, None, 20 * bodies**2, 32 * bodies),
    ]


def _threadgroup_cases(new: Arrays, tiny: bool) -> list[Case]:
    """Kernels with threadgroup memory and barriers."""
    n = 4096 if tiny else 1 << 20
    rows, columns, groups = 4 if tiny else 1024, 1024, n // 256
    table, share = new.normal(rows, columns), 16 * 256
    data = new.integers(256, groups * share // 16)
    return [
        Case("tree_reduction", (new(groups), new.normal(n)), n, 256, n, 4 * n),
        Case("histogram", (new(256, dtype=np.uint32), data, share), data.size // share * 256,
             256, 0, data.size),
        Case("prefix_sum", (new(rows, columns), table, columns), rows * 256, 256,
             rows * columns, 8 * rows * columns),
        Case("softmax", (new(rows, columns), table, columns), rows * 256, 256,
             0, 8 * rows * columns),
    ]  # fmt: skip
