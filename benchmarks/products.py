"""The fastest matrix products, by type and shape: ``python benchmarks/products.py [types]``.

CPU time of one thread. Each cell is the speed of a back end relative to the host (NumPy's BLAS;
halves are widened, integers are loops), which is given in full. With ``+`` a bias is added and the
result squared. `metalloid.arrays.planning.matmul_dispatch` is what was made of it.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Callable

os.environ["METALLOID_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from timing import best, show, table

import metalloid as mtl
from metalloid.arrays.ir.dtypes import as_dtype

BACKENDS = ("host", "panels", "registers", "simdgroups", "sums")
FLOATS = ("float32", "float16", "bfloat16")
TYPES = (*FLOATS, "int8", "int32", "int64", "float64", "complex64")
#: A product by name: batch, rows, columns, depth; whether the second factor is turned.
SHAPES = {
    **{f"{n} x {n} x {n}": ((), n, n, n, False) for n in (4, 16, 64, 128, 256, 512, 1024)},
    "512, second turned": ((), 512, 512, 512, True),
    "4096 x 32 x 64": ((), 4096, 32, 64, False),
    "4096 x 4 x 64": ((), 4096, 4, 64, False),
    "4 x 1024 x 1024": ((), 4, 1024, 1024, False),
    "4 x 1024 x 1024, second turned": ((), 4, 1024, 1024, True),
    "8 x 1024 x 1024": ((), 8, 1024, 1024, False),
    "16 x 1024 x 1024": ((), 16, 1024, 1024, False),
    "1024 x 4 x 1024": ((), 1024, 4, 1024, False),
    "vector by matrix, 1024": ((), 1, 1024, 1024, False),
    "matrix by vector, 1024": ((), 1024, 1, 1024, False),
    "64 x 64 x 4096": ((), 64, 64, 4096, False),
    "256 of 4 x 4 x 4": ((256,), 4, 4, 4, False),
    "64 of 16 x 16 x 16": ((64,), 16, 16, 16, False),
    "64 of 64 x 64 x 64": ((64,), 64, 64, 64, False),
    "8 of 256 x 256 x 64": ((8,), 256, 256, 64, False),
}


def factors(dtype: str, case: tuple) -> tuple[mtl.Array, mtl.Array]:
    batch, rows, columns, depth, is_transposed = case
    rng = np.random.default_rng(0)
    second = (columns, depth) if is_transposed else (depth, columns)
    arrays = [
        mtl.asarray((rng.random(shape) * 8).astype(as_dtype(dtype)))
        for shape in ((*batch, rows, depth), (*batch, *second))
    ]
    return arrays[0], arrays[1].mT if is_transposed else arrays[1]


def work_of(case: tuple) -> int:
    """Multiplications."""
    batch, rows, columns, depth, _ = case
    return math.prod((*batch, rows, columns, depth))


def timed(actions: dict[str, Callable[[], object]], work: int) -> dict[str, float]:
    """CPU seconds of each, measured in turns."""
    least = dict.fromkeys(actions, float("inf"))
    slow: set[str] = set()
    for action in actions.values():
        action()
    for _ in range(7):
        for backend, action in actions.items():
            if backend not in slow:
                number = max(1, int(2e6 / (work + 1e4)))
                took = best(action, 1, number, time.process_time)
                least[backend] = min(least[backend], took)
                if took > 0.3:
                    slow.add(backend)
    return least


def runs(dtype: str, case: tuple, is_fused: bool) -> dict[str, Callable[[], object]]:
    """Products to time, by back end."""
    a, b = factors(dtype, case)
    bias = mtl.asarray(np.ones(case[2], as_dtype(dtype)))

    def run(backend: str) -> object:
        with mtl.config.scope(products=backend):
            product = a @ b
        return mtl.eval(mtl.square(product + bias) if is_fused else product)

    skipped = set()
    if work_of(case) > 2**27:
        skipped.add("sums")
    if dtype not in FLOATS:
        skipped.add("simdgroups")
    return {name: functools.partial(run, name) for name in BACKENDS if name not in skipped}


def compare(dtype: str) -> None:
    rows = []
    for name, case in SHAPES.items():
        cells = [name]
        for is_fused in (False, True):
            took = timed(runs(dtype, case, is_fused), work_of(case))
            cells.append(show(took["host"]))
            cells += [
                f"{took['host'] / took[backend]:.2f}" if backend in took else ""
                for backend in BACKENDS[1:]
            ]
        rows.append(cells)
    table(dtype, ["", *BACKENDS, *(f"{backend} +" for backend in BACKENDS)], rows)


if __name__ == "__main__":
    for dtype in sys.argv[1:] or TYPES:
        compare(dtype)
