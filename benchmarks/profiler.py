"""Microseconds that `mtl.profile` adds to a launch, without counting.

``python benchmarks/profiler.py [device]``; run it on an idle machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import metalloid as mtl

_NUMBER, _TURNS = 200, 40
SOURCE = """
kernel void scale(device float* x, constant float& by, uint i [[thread_position_in_grid]])
{ x[i] *= by; }
"""


def seconds(action: Callable[[], Any], device: mtl.Device) -> float:
    """Seconds of a call that does not wait for its launch."""
    device.synchronize()
    began = time.perf_counter()
    for _ in range(_NUMBER):
        action()
    spent = time.perf_counter() - began
    device.synchronize()
    return spent / _NUMBER


def main() -> None:
    """Print the least times of short runs, with and without a profile in turns."""
    device = mtl.Device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    kernel = mtl.library(SOURCE, device=device).scale
    x = mtl.Buffer(np.ones(64, np.float32), device)
    a, b = (mtl.asarray(np.ones(64, np.float32), device=device) for _ in range(2))
    compiled = mtl.compile(lambda x, y: x * y + x)
    actions = {
        "kernel": lambda: kernel(x, 1.0, threads=64),
        "kernel, waited for": lambda: kernel(x, 1.0, threads=64, wait=True),
        "evaluation": lambda: mtl.eval(a * b + a),
        "compiled function": lambda: compiled(a, b),
    }
    print(f"{device.name}: {'off':>28}{'on':>10}{'added':>10}  us")
    for name, action in actions.items():
        off, on = [], []
        for _ in range(_TURNS):  # short runs, of which some are not interrupted
            off.append(seconds(action, device))
            with mtl.profile(counts=False):
                on.append(seconds(action, device))
        print(f"{name:24}{1e6 * min(off):10.2f}{1e6 * min(on):10.2f}"
              f"{1e6 * (min(on) - min(off)):10.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
