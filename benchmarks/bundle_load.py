"""Milliseconds to import metalloid and load a bundle, in processes without a compiler.

``python benchmarks/bundle_load.py [processes]``; run it on an idle machine. NumPy is imported
before: its time is printed for comparison. The first process fills the cache. Times are those of
the clock and, in a second column, of the processor.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import metalloid as mtl

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device float *y, device const float *x, constant float &a,
                  uint i [[thread_position_in_grid]]) { y[i] = fma(a, x[i], y[i]); }
"""
LEVEL = "aarch64" if platform.machine() in ("arm64", "aarch64") else "x86-64-v2"
LOAD = """
import sys, time
times = []
def mark():
    times.append((time.perf_counter(), time.process_time()))
mark()
import numpy as np
mark()
import metalloid as mtl
mtl.load_library
mark()
saxpy = mtl.load_library(sys.argv[1], "cpu").saxpy
mark()
y = np.ones(8, np.float32)
saxpy(y, y.copy(), 2.0, threads=8)
assert (y == 3).all()
mark()
for (began, began_cpu), (ended, ended_cpu) in zip(times, times[1:]):
    print(ended - began, ended_cpu - began_cpu)
print(sum(name.partition(".")[0] == "metalloid" for name in sys.modules))
"""


def main() -> None:
    """Print the times of each step."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder, "saxpy.mtlb")
        mtl.save_library(bundle, SOURCE, targets=[f"cpu:{LEVEL}"])
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        environment = os.environ | {
            "METALLOID_CLANG": "/nonexistent", "METALLOID_CACHE_DIR": str(cache),
            "PYTHONPYCACHEPREFIX": folder,
        }  # fmt: skip
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", LOAD, str(bundle)]
        rows = []
        for _ in range(count + 1):
            done = subprocess.run(command, env=environment, text=True, capture_output=True)
            if done.returncode:
                raise SystemExit(done.stderr)
            rows.append([float(word) for word in done.stdout.split()])
    *times, modules = zip(*rows[1:], strict=True)
    steps = ("import of NumPy", "import of metalloid", "load_library", "first launch")
    print(f"{'least (median) of':20}{'wall':>22}{'processor':>22}")
    for number, name in enumerate(steps):
        columns = (1e3 * np.array(times[2 * number + k]) for k in range(2))
        cells = (f"{each.min():.1f} ({np.median(each):.1f}) ms" for each in columns)
        print(f"{name:20}" + "".join(f"{cell:>22}" for cell in cells))
    print(f"{modules[0]:.0f} modules of metalloid")


if __name__ == "__main__":
    main()
