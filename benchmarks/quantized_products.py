"""One row times a matrix of 4 bits on one thread of a CPU, in time of the processor.

Run it by ``python benchmarks/quantized_products.py``. The matrix has groups of 64, with scales and
biases in bfloat16; *integers* are a row of bfloat16, *floats* one of float32, and *reading* is the
sum of as many bytes. The time is the processor's own, so that other processes disturb it less.
``benchmarks/cpu_rivals/ggml_product.c`` measures the same in ggml, of which llama.cpp consists.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import best, table

import metalloid as mtl
from metalloid import nn

SHAPES, GROUP, BITS = ((131072, 1024), (131072, 2048)), 64, 4


def measure(rows: int, columns: int, repeat: int) -> list[list[object]]:
    """The rows of the table for a matrix of this shape."""
    rng = np.random.default_rng(0)
    words = rng.integers(2**32, size=(rows, columns * BITS // 32), dtype=np.uint32)
    scales = mtl.asarray(rng.random((rows, columns // GROUP), np.float32) / 256)
    matrix = [mtl.asarray(words), scales.astype(mtl.bfloat16), (-8 * scales).astype(mtl.bfloat16)]
    x = mtl.asarray(rng.standard_normal((1, columns), np.float32))
    half = x.astype(mtl.bfloat16)
    nbytes = sum(array.nbytes for array in matrix)
    everything = mtl.zeros(nbytes // 4) + mtl.asarray(1.0)
    mtl.eval(*matrix, x, half, everything)

    def product(x: Any) -> Callable[[], object]:
        function = mtl.compile(
            lambda x: nn.quantized_matmul(x, *matrix, group_size=GROUP, bits=BITS)
        )
        return lambda: mtl.eval(function(x))

    actions = {"integers": product(half), "floats": product(x),
               "reading": lambda: mtl.eval(everything.sum())}  # fmt: skip
    result: list[list[object]] = []
    for name, action in actions.items():
        action()  # compiles
        seconds = best(action, repeat, clock=time.process_time)
        result.append([f"{rows} x {columns}", name, f"{seconds * 1e3:.2f} ms",
                       f"{nbytes / seconds / 1e9:.1f}"])  # fmt: skip
    return result


def main() -> None:
    """Measure all shapes."""
    with mtl.config.scope(num_threads=1):
        rows = [row for shape in SHAPES for row in measure(*shape, repeat=40)]
    table("Products with matrices of 4 bits", ["matrix", "", "time", "GB/s"], rows)


if __name__ == "__main__":
    main()
