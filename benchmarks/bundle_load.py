"""Milliseconds to import metalloid and load a bundle, in processes without a compiler.

``python benchmarks/bundle_load.py [processes]``; run it on an idle machine. NumPy is imported
before: its time is printed for comparison. The first process fills the cache.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import metalloid as mtl

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device float *y, device const float *x, constant float &a,
                  uint i [[thread_position_in_grid]]) { y[i] = fma(a, x[i], y[i]); }
"""
LEVEL = "aarch64" if platform.machine() in ("arm64", "aarch64") else "x86-64-v2"
LOAD = """
import sys, time
began = time.perf_counter()
import numpy as np
imported = time.perf_counter()
import metalloid as mtl
saxpy = mtl.load_library(sys.argv[1], "cpu").saxpy
loaded = time.perf_counter()
y = np.ones(8, np.float32)
saxpy(y, y.copy(), 2.0, threads=8)
assert (y == 3).all()
ran = time.perf_counter()
modules = sum(name.partition(".")[0] == "metalloid" for name in sys.modules)
print(imported - began, loaded - imported, ran - loaded, modules)
"""


def main() -> None:
    """Print the least and the median time of each step."""
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
    for name, seconds in zip(("import NumPy", "load", "first launch"), times, strict=True):
        least, median = 1e3 * min(seconds), 1e3 * statistics.median(seconds)
        print(f"{name:14}{least:7.1f} ms at least, {median:7.1f} ms median")
    print(f"{modules[0]:.0f} modules of metalloid")


if __name__ == "__main__":
    main()
