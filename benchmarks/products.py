"""The fastest matrix products, by type and shape: ``python benchmarks/products.py [types]``.

CPU time of one thread. Each cell is the speed of a back end relative to the host (NumPy's BLAS;
halves are widened, integers are loops), which is given in full. With ``+`` a bias is added and the
result squared. `metalloid.arrays.planning.matmul_dispatch` is what was made of it.

``python benchmarks/products.py peers [types]`` compares the chosen back end with NumPy, torch and
JAX instead, and with the processor's limit, which a kernel of multiply-adds measures.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["METALLOID_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np
from timing import best, installed, show, table

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


CEILING = """
kernel void multiply_and_add(device float *out, constant uint &count,
                             uint at [[thread_position_in_grid]]) {
  float sums[12];
  for (ushort i = 0; i < 12; ++i) {
    sums[i] = out[at] + i;
  }
  for (uint k = 0; k < count; ++k) {
    for (ushort i = 0; i < 12; ++i) {
      sums[i] = fma(sums[i], 0.5f, 1.0f);
    }
  }
  for (ushort i = 0; i < 12; ++i) {
    out[at] += sums[i];
  }
}
"""
PEERS = ("numpy", "torch", "jax")


def ceiling() -> float:
    """Multiplications of float32 with additions per second of one core, from registers."""
    kernel = mtl.library(f"#include <metal_stdlib>\nusing namespace metal;\n{CEILING}")
    out, count = np.zeros(32, np.float32), 100_000
    run = functools.partial(kernel["multiply_and_add"], out, count, threads=32)
    return 32 * 12 * count / best(run, 30, 1, time.process_time)


def peers(dtype: str, x: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    """Products by other libraries, of the same strides."""
    actions: dict[str, Callable[[], object]] = {"numpy": lambda: x @ y}
    if torch := installed("torch"):
        torch.set_num_threads(1)
        a, b = torch.from_numpy(x), torch.from_numpy(y)
        actions["torch"] = lambda: a @ b
    if jax := installed("jax"):
        jax.config.update("jax_enable_x64", dtype == "float64")
        # JAX has no strides: a transposed factor is transposed in the compiled function.
        bases = [(v if v.flags.c_contiguous else v.T) for v in (x, y)]
        transposed = [not v.flags.c_contiguous for v in (x, y)]

        def product(*values: Any) -> Any:
            left, right = (v.T if is_so else v for v, is_so in zip(values, transposed, strict=True))
            return left @ right

        compiled, own = jax.jit(product), [jax.numpy.asarray(v) for v in bases]
        actions["jax"] = lambda: compiled(*own).block_until_ready()
    return actions


def compare_with_peers(dtype: str) -> None:
    """The speed of the chosen back end as a share of the limit, and relative to peers."""
    limit = ceiling() * 4 / np.dtype(dtype).itemsize
    rows = []
    for n in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        rng = np.random.default_rng(0)
        values = [rng.random((n, n)).astype(dtype) for _ in range(2)]
        for name, transposed in (
            ("", (0, 0)),
            ("right transposed", (0, 1)),
            ("left transposed", (1, 0)),
        ):
            x, y = (v.T if is_so else v for v, is_so in zip(values, transposed, strict=True))
            a, b = mtl.asarray(x), mtl.asarray(y)
            run = functools.partial(lambda p, q: mtl.eval(p @ q), a, b)
            took = timed({"ours": run, **peers(dtype, x, y)}, n**3)
            share = n**3 / took["ours"] / limit
            cells = [f"{took[p] / took['ours']:.2f}" if p in took else "" for p in PEERS]
            rows.append([f"{n} {name}", show(took["ours"]), f"{share:.2f}", *cells])
    title = f"{dtype}; the limit is {2 * limit / 1e9:.0f} GFLOP/s"
    table(title, ["", "ours", "share", *PEERS], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["peers"]:
        for dtype in sys.argv[2:] or ("float32", "float64"):
            compare_with_peers(dtype)
    else:
        for dtype in sys.argv[1:] or TYPES:
            compare(dtype)
