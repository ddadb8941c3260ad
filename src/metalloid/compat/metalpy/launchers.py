"""The thirteen calling conventions of MetalPy's kernels, by their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.metalpy.metal_array import MetalArray

DEFAULT_PATH = "metal_kernels.metallib"
_OWN = Path(__file__).with_name("metal_kernels.metal")
_MAX_THREADS, _MAX_GROUPS = 256, 64  # of a reduction


class Launchers:
    """A library of kernels and how to launch them.

    Attributes
    ----------
    device, queue : Device
    library : Library
    kernel_cache : dict
        Kernels that have been used, by name.
    """

    def __init__(self, kernel_path: str = DEFAULT_PATH) -> None:
        path = Path(kernel_path)
        if path.suffix == ".metallib":  # code for Apple's GPUs, which was made of this text
            path = path.with_suffix(".metal")
        if kernel_path == DEFAULT_PATH and not path.exists():
            path = _OWN
        try:
            self.library = mtl.library(path=path, math_mode="relaxed")
        except (OSError, UnicodeDecodeError, mtl.CompileError) as error:
            raise RuntimeError(f"Error: Failed to load library. {error}") from error
        self.device = self.queue = self.library.device
        self.kernel_cache: dict[str, Any] = {}

    def array(self, data: Any) -> MetalArray:
        """A `MetalArray` of a list or an `array.array`."""
        return MetalArray(self.device, data)

    def _kernel(self, name: str) -> Any:
        kernel = self.kernel_cache.get(name)
        if kernel is None:
            if name not in self.library:
                raise ValueError(f"Kernel function '{name}' not found in Metal library.")
            kernel = self.kernel_cache[name] = self.library[name]
        return kernel

    def _launch(self, kname: str, length: int, before: Sequence[Any], after: Sequence[Any],
                threads: int | tuple[int, int]) -> MetalArray:  # fmt: skip
        """A new array of `length` elements, between the other arguments."""
        kernel = self._kernel(kname)
        out = mtl.Buffer(4 * length, self.device)
        values = [a.buffer if isinstance(a, MetalArray) else a for a in before]
        kernel(*values, out, *after, threads=threads, wait=True)
        return MetalArray(self.device, None, length, out)

    def launcher_1(self, kname: str, arrays: Sequence[MetalArray]) -> MetalArray:
        """Several arrays of one length: ``[in ..., out, N]``."""
        n = arrays[0].length
        return self._launch(kname, n, arrays, [n], n)

    def launcher_2(self, kname: str, a: MetalArray, c: float) -> MetalArray:
        """An array and a number: ``[a, out, c, N]``."""
        return self._launch(kname, a.length, [a], [float(c), a.length], a.length)

    def launcher_3(self, kname: str, a: MetalArray, low: float, high: float) -> MetalArray:
        """An array and two numbers: ``[a, low, high, out, N]``."""
        return self._launch(kname, a.length, [a, float(low), float(high)], [a.length], a.length)

    def launcher_4(self, kname: str, a: MetalArray, b: MetalArray) -> MetalArray:
        """An array, and another again and again: ``[a, b, out, N, M]``."""
        return self._launch(kname, a.length, [a, b], [a.length, b.length], a.length)

    def launcher_5(self, kname: str, A: MetalArray, B: MetalArray, rows: int,
                   cols: int) -> MetalArray:  # fmt: skip
        """Two matrices, element by element."""
        return self._launch(kname, rows * cols, [A, B], [rows, cols], rows * cols)

    def launcher_6(self, kname: str, A: MetalArray, rows: int, cols: int,
                   out_length: int) -> MetalArray:  # fmt: skip
        """A number for each row, or each column."""
        return self._launch(kname, out_length, [A], [rows, cols], out_length)

    def launcher_7(self, kname: str, A: MetalArray, s: MetalArray, rows: int,
                   cols: int) -> MetalArray:  # fmt: skip
        """A matrix and a factor for each row, or each column."""
        return self._launch(kname, rows * cols, [A, s], [rows, cols], (cols, rows))

    def launcher_8(self, kname: str, A: MetalArray, rows: int, cols: int) -> MetalArray:
        """A matrix of the same elements in another order."""
        return self._launch(kname, rows * cols, [A], [rows, cols], (cols, rows))

    def launcher_9(self, kname: str, A: MetalArray, B: MetalArray, M: int, N: int,
                   K: int) -> MetalArray:  # fmt: skip
        """The product of (M, K) and (K, N)."""
        return self._launch(kname, M * N, [A, B], [M, N, K], (N, M))

    def launcher_10(self, kname: str, a: MetalArray, start: int, end: int) -> MetalArray:
        """Elements from `start` up to but without `end`."""
        return self._launch(kname, end - start, [a], [start, end], end - start)

    def launcher_11(self, kname: str, source: MetalArray, index_arr: MetalArray) -> MetalArray:
        """Elements at indices."""
        n = index_arr.length
        return self._launch(kname, n, [source, index_arr], [n], n)

    def launcher_12(self, init: str, final: str, a: MetalArray) -> float:
        """A reduction to a number."""
        threads, group = _shared_work(a.length)
        first, last = self._kernel(init), self._kernel(final)
        partial = mtl.Buffer(np.zeros(threads // group, np.float32), self.device)
        result = mtl.Buffer(np.zeros(1, np.float32), self.device)
        first(a.buffer, partial, a.length, group, threads=threads, group_size=group)
        last(partial, result, threads // group, threads=1)
        return float(np.asarray(result)[0])

    def launcher_13(self, init: str, final: str, a: MetalArray) -> tuple[int, float]:
        """A reduction to an index and its value."""
        threads, group = _shared_work(a.length)
        first, last = self._kernel(init), self._kernel(final)
        values, value = (
            mtl.Buffer(np.zeros(n, np.float32), self.device) for n in (threads // group, 1)
        )
        indices, index = (
            mtl.Buffer(np.zeros(n, np.uint32), self.device) for n in (threads // group, 1)
        )
        first(a.buffer, indices, values, a.length, group, threads=threads, group_size=group)
        last(indices, values, index, value, threads // group, threads=1)
        return int(np.asarray(index)[0]), float(np.asarray(value)[0])


def _shared_work(length: int) -> tuple[int, int]:
    """Threads of a reduction, and of each of its threadgroups: a power of two."""
    group = 1 << (min(max(length, 1), _MAX_THREADS).bit_length() - 1)
    return group * min(-(-length // group), _MAX_GROUPS), group
