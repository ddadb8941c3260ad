"""The fastest matrix products, by type and shape: ``python benchmarks/products.py [types]``.

CPU time of one thread. Each cell is the speed of a back end relative to the host (NumPy's BLAS;
halves are widened, integers are loops), which is given in full. With ``+`` a bias is added and the
result squared. `metalloid.arrays.planning.matmul_dispatch` is what was made of it.

``python benchmarks/products.py peers [threads=2] [types]`` compares the chosen back end, eager and
compiled, with NumPy, torch and JAX instead, and with the processor's limit, which a kernel of
multiply-adds measures in the same process. All in turns, best of many. With one thread, CPU time of
a process that is bound to one core, as JAX has more threads; with two, wall clock. ``square``,
``transposed``, ``stacks`` and ``skinny`` select shapes, and ``only=`` those whose names match a
regular expression. The last table has the ratios of compiled products by shape and type, with a
star where a peer takes less than 1 / 1.1 of our time.
"""

from __future__ import annotations

import functools
import math
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["METALLOID_NUM_THREADS"] = "2" if "threads=2" in sys.argv else "1"
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["METALLOID_NUM_THREADS"]
os.environ["OMP_NUM_THREADS"] = os.environ["METALLOID_NUM_THREADS"]
os.environ["MKL_NUM_THREADS"] = os.environ["METALLOID_NUM_THREADS"]
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str('threads=2' in sys.argv).lower()}"

import numpy as np
from timing import best, installed, show, table

import metalloid as mtl
from metalloid.arrays.ir.dtypes import as_dtype

THREADS = os.environ["METALLOID_NUM_THREADS"]
CLOCK = time.process_time if THREADS == "1" else time.perf_counter
BACKENDS = ("host", "panels", "dots", "registers", "simdgroups", "sums")
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
  float sums[6];
  for (ushort i = 0; i < 6; ++i) {
    sums[i] = out[at] + i;
  }
  for (uint k = 0; k < count; ++k) {
    for (ushort i = 0; i < 6; ++i) {
      sums[i] = fma(sums[i], 0.5f, 1.0f);
    }
  }
  for (ushort i = 0; i < 6; ++i) {
    out[at] += sums[i];
  }
}
"""
#: Types of the comparison with peers, and the largest ratio to the best of them that is a success.
PEER_TYPES = ("float32", "float64", "bfloat16", "float16", "int8")
GOAL = 1.1
SIZES = (16, 32, 64, 100, 128, 200, 256, 300, 512, 1024, 2048, 4096)
#: Cases of the comparison with peers by name: shapes of the factors, and which are transposed.
Case = tuple[tuple[int, ...], tuple[int, ...], bool, bool]
COMPARED: dict[str, dict[str, Case]] = {
    "square": {f"{n}": ((n, n), (n, n), False, False) for n in SIZES},
    "transposed": {
        f"{n}, {name} transposed": ((n, n), (n, n), *which)
        for n in SIZES[:-2]
        for name, which in (
            ("left", (True, False)), ("right", (False, True)), ("both", (True, True))
        )
    },
    "stacks": {
        f"{count} of {n} x {n}" + " right transposed" * is_so: (
            (count, n, n), (count, n, n), False, is_so
        )
        for n in (16, 64) for count in (16, 1000) for is_so in (False, True)
    },
    "skinny": {
        **{
            f"{n} x {k} by {m} columns": ((n, k), (k, m), False, False)
            for n, k in ((100, 100), (1000, 64), (1000, 1000), (100_000, 32))
            for m in (1, 2, 4, 8, 16)
        },
        **{
            f"{m} rows by {k} x {n}" + " transposed" * is_so: (
                (m, k), (n, k) if is_so else (k, n), False, is_so
            )
            for k, n in ((256, 256), (1000, 1000), (64, 4096))
            for m in (1, 4, 16, 64) for is_so in (False, True)
        },
        "covariance of 100000 x 32": ((100_000, 32), (100_000, 32), True, False),
        "64 x 4096 by its transpose": ((64, 4096), (64, 4096), False, True),
    },
}  # fmt: skip


def ceiling() -> float:
    """Multiplications of float32 with additions per second of all threads, from registers."""
    kernel = mtl.library(f"#include <metal_stdlib>\nusing namespace metal;\n{CEILING}")
    out, count = np.zeros(128 * int(THREADS), np.float32), 50_000
    run = functools.partial(kernel["multiply_and_add"], out, count, threads=out.size)
    return out.size * 6 * count / best(run, 30, clock=CLOCK)


def times(dtype: str, case: Case) -> dict[str, float]:
    """Seconds of our products and those of peers, in turns; each runs once before."""
    *shapes, left, right = case
    rng = np.random.default_rng(0)
    values = [(rng.random(shape) * 8).astype(as_dtype(dtype)) for shape in shapes]

    def multiply(x: Any, y: Any) -> Any:
        return (x.mT if left else x) @ (y.mT if right else y)

    own = [mtl.asarray(value) for value in values]
    compiled = mtl.compile(multiply)
    actions: dict[str, Callable[[], object]] = {
        "eager": lambda: mtl.eval(multiply(*own)),
        "compiled": lambda: mtl.eval(compiled(*own)),
    }
    work = math.prod(values[0].shape) * case[1][-2 if right else -1]
    if dtype in ("float32", "float64") or work < 2**21:
        actions["numpy"] = lambda: multiply(*values)
    if (torch := installed("torch")) and (
        dtype in ("float32", "float64", "bfloat16") or work < 2**24
    ):
        torch.set_num_threads(int(THREADS))
        is_bfloat = dtype == "bfloat16"
        tensors = [torch.from_numpy(v.view(np.uint16) if is_bfloat else v) for v in values]
        tensors = [t.view(torch.bfloat16) if is_bfloat else t for t in tensors]
        actions["torch"] = lambda: multiply(*tensors)
    if (jax := installed("jax")) and (dtype != "int8" or work < 2**24):
        jax.config.update("jax_enable_x64", dtype == "float64")
        product, arrays = jax.jit(multiply), [jax.numpy.asarray(v) for v in values]
        actions["jax"] = lambda: product(*arrays).block_until_ready()
    least, skipped = dict.fromkeys(actions, math.inf), set[str]()
    number = max(1, int(2e5 / (work / 30 + 2e3)))
    started, turns = time.perf_counter(), 0
    while turns < 3 or (turns < 300 and time.perf_counter() - started < 0.3):
        for name, action in actions.items():
            if name not in skipped:
                action()
                least[name] = min(least[name], best(action, 1, number, CLOCK))
                if least[name] > 0.3 and turns:
                    skipped.add(name)
        turns += 1
    return {"work": work, **least}


def compare_with_peers(dtype: str, kinds: list[str], only: str) -> dict[str, float]:
    """Time, share of the limit, and ratio to the best peer; the ratios of compiled products."""
    limit, ratios = ceiling() / (2 if dtype == "float64" else 1), {}
    for kind in kinds:
        rows = []
        for name, case in COMPARED[kind].items():
            if not re.search(only, name):
                continue
            took = times(dtype, case)
            share = took["work"] / took["compiled"] / limit
            cells = [name, f"{share:.2f}", show(took["eager"]), show(took["compiled"])]
            if peers := [peer for peer in took if peer in ("numpy", "torch", "jax")]:
                peer = min(peers, key=took.__getitem__)
                cells += [f"{took[each] / took[peer]:.2f}" for each in ("eager", "compiled")]
                cells.append(peer)
                ratios[name] = took["compiled"] / took[peer]
            rows.append(cells + [""] * (7 - len(cells)))
        if not rows:
            continue
        title = f"{dtype}, {kind}, {THREADS} threads; the limit is {2 * limit / 1e9:.0f} GFLOP/s"
        head = ["", "share", "eager", "compiled", "eager / peer", "compiled / peer", "best peer"]
        table(title, head, rows)
    return ratios


def show_ratios(ratios: dict[str, dict[str, float]]) -> None:
    """Print the ratios of all types by shape, and which are over the goal."""
    names = dict.fromkeys(name for of_type in ratios.values() for name in of_type)
    rows = [[name, *(_marked(of_type.get(name)) for of_type in ratios.values())] for name in names]
    over = sum(ratio > GOAL for of_type in ratios.values() for ratio in of_type.values())
    count = sum(map(len, ratios.values()))
    table(f"compiled / best peer: {over} of {count} are over {GOAL} (*)", ["", *ratios], rows)


def _marked(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" + " *" * (ratio > GOAL)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if "=" not in word]
    if words[:1] == ["peers"]:
        if THREADS == "1":
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        chosen = [word for word in words[1:] if word in COMPARED] or list(COMPARED)
        only = "|".join(word[5:] for word in sys.argv if word.startswith("only="))
        types = [w for w in words[1:] if w not in COMPARED] or PEER_TYPES
        show_ratios({dtype: compare_with_peers(dtype, chosen, only) for dtype in types})
    else:
        for dtype in words or TYPES:
            compare(dtype)
