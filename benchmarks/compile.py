"""What compiling costs, cold and from the cache: ``python benchmarks/compile.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from timing import show, table

#: Runs in a process of its own: each step needs what the one before it left in the cache.
STEP = """
import json, sys, time
import numpy as np
import metalloid as mtl
source = '''
#include <metal_stdlib>
using namespace metal;
kernel void gelu(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
    y[i] = 0.5 * x[i] * (1 + tanh(0.7978845608 * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
}''' + sys.argv[1]
started = time.perf_counter()
mtl.default_device()
device = time.perf_counter()
kernel = mtl.library(source).gelu
compiled = time.perf_counter()
x = np.ones(4, np.float32)
kernel(np.empty_like(x), x, threads=4)
launched = time.perf_counter()
print(json.dumps([device - started, compiled - device, launched - compiled]))
"""


def step(cache: str, comment: str = "") -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", STEP, comment],
        env={**os.environ, "METALLOID_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        first = step(cache)
        new = [step(cache, f"// {number}") for number in range(5)]
        again = [step(cache) for _ in range(5)]
    rows = [
        ("first use on a machine", *map(show, first)),
        ("a new kernel", *(show(min(column)) for column in zip(*new, strict=True))),
        ("the same in a new process", *(show(min(column)) for column in zip(*again, strict=True))),
    ]
    table(
        "A small kernel (best of 5 processes)",
        ("", "open device", "text to kernel", "first launch"),
        rows,
    )


if __name__ == "__main__":
    main()
