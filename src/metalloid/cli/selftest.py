"""``metalloid selftest``: what a device can do, as a table to paste into a report."""

from __future__ import annotations

import argparse
import importlib.resources
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metalloid.cli.info import report
from metalloid.errors import MetalloidError, UnsupportedType

if TYPE_CHECKING:
    from metalloid.kernels.library import Library
    from metalloid.runtime.devices.device import Device

_MANY = 1_000_003  # no whole number of threadgroups


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "selftest", help="run small kernels of every kind on a device",
        description="Run small kernels of every kind, compare with NumPy, and print a table that "
        "can be pasted into a report. Exits with 1 if a result is wrong.",
    )  # fmt: skip
    parser.add_argument("name", nargs="?", metavar="DEVICE", help="default: the default device")
    parser.add_argument("--device", help="the same")
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from metalloid.kernels.library import library
    from metalloid.runtime.devices.registry import get_device

    device = get_device(options.name or options.device)
    text = (importlib.resources.files("metalloid.cli") / "selftest.metal").read_text("utf-8")
    lib = library(text, device=device)
    print(report())
    print(f"\n| on {device.name} | result | time |\n|---|---|---|")
    status = 0
    for check in _CHECKS:
        outcome, seconds = _outcome(check, lib, device)
        status |= outcome != "right"
        name = (check.__doc__ or "").rstrip(".")
        print(f"| {name} | {outcome} | {seconds * 1e3:.2f} ms |")
    return status


def _outcome(
    check: Callable[[Library, Device], bool], lib: Library, device: Device
) -> tuple[str, float]:
    """The result of a check, and its time once everything is compiled."""
    try:
        check(lib, device)
        started = time.perf_counter()
        right = check(lib, device)
        return "right" if right else "WRONG", time.perf_counter() - started
    except MetalloidError as error:
        first = str(error).splitlines()[0]
        return f"{type(error).__name__}: {first}", 0.0


def _arrays_of_the_process(lib: Library, device: Device) -> bool:
    """NumPy arrays, exactly as many threads."""
    import numpy as np

    x = np.linspace(0, 1, _MANY, dtype=np.float32)
    y = np.ones(_MANY + 5, np.float32)
    lib.saxpy(y, x, 2.0, threads=_MANY)
    return bool((y[:_MANY] == x * 2 + 1).all() and (y[_MANY:] == 1).all())


def _buffers_of_the_device(lib: Library, device: Device) -> bool:
    """A chain of 1,000 launches on buffers."""
    import numpy as np

    from metalloid.runtime.memory.buffer import Buffer

    x = Buffer(np.ones(1000, np.float32), device)
    y = Buffer(np.zeros(1000, np.float32), device)
    for _ in range(1000):
        lib.saxpy(y, x, 1.0, threads=1000)
    return bool((np.asarray(y) == 1000).all())


def _two_dimensions(lib: Library, device: Device) -> bool:
    """Grids of two dimensions with partial threadgroups."""
    import numpy as np

    out = np.zeros((37, 101), np.uint32)
    lib.positions(out, threads=(101, 37), group_size=(16, 8))
    return bool((out == np.arange(37)[:, None] * 1000 + np.arange(101)).all())


def _threadgroups(lib: Library, device: Device) -> bool:
    """Threadgroup memory and barriers."""
    import numpy as np

    from metalloid.runtime.arguments.signature_binder import threadgroup_memory

    x, sums = np.arange(4096, dtype=np.float32), np.zeros(16, np.float32)
    lib.group_sums(sums, x, threadgroup_memory(1024), threads=4096, group_size=256)
    return bool((sums == x.reshape(16, 256).sum(axis=1)).all())


def _simdgroups(lib: Library, device: Device) -> bool:
    """Simdgroups of 32 threads."""
    import numpy as np

    out, i = np.zeros(1024, np.uint32), np.arange(1024)
    lib.simd_sums(out, threads=1024)
    return bool((out == i.reshape(-1, 32).sum(axis=1).repeat(32) + (i ^ 1)).all())


def _atomics(lib: Library, device: Device) -> bool:
    """Atomic counters."""
    import numpy as np

    counter = np.zeros(1, np.uint32)
    lib.count(counter, threads=30_000)
    return int(counter[0]) == 10_000


def _function_constants(lib: Library, device: Device) -> bool:
    """Function constants."""
    import numpy as np

    x = np.zeros(100, np.uint32)
    lib.function("scaled", {"factor": 7})(x, threads=100)
    return bool((x == np.arange(100) * 7).all())


def _halves(lib: Library, device: Device) -> bool:
    """Half floats."""
    import numpy as np

    x = np.zeros(1000, np.float16)
    lib.halves(x, threads=1000)
    expected = np.sqrt(np.arange(1000, dtype=np.float64))
    return bool((np.abs(x - expected) <= 2**-10 * expected).all())


def _argument_buffers(lib: Library, device: Device) -> bool:
    """Pointers in argument buffers."""
    import numpy as np

    from metalloid.runtime.memory.buffer import Buffer

    x = Buffer(np.arange(100, dtype=np.float32), device)
    y = np.zeros(100, np.float32)
    lib.pointed({"x": x, "y": y, "scale": 3}, threads=100)
    return bool((y == np.arange(100) * 3).all())


def _functions(lib: Library, device: Device) -> bool:
    """Functions of <metal_math> to 8 units in the last place."""
    import numpy as np

    x, out = np.linspace(0, 3, 10_000, dtype=np.float32), np.zeros(10_000, np.float32)
    lib.curves(out, x, threads=x.size)
    expected = np.exp(np.sin(x.astype(np.float64))) + np.log2(1 + x.astype(np.float64))
    return bool((np.abs(out - expected) <= 8 * np.spacing(expected.astype(np.float32))).all())


def _lazy_arrays(lib: Library, device: Device) -> bool:
    """A fused expression of the array layer."""
    import numpy as np

    import metalloid as mtl

    x = np.linspace(-2, 2, 600, dtype=np.float32).reshape(20, 30)
    a = mtl.asarray(x, device=device)
    e = mtl.exp(a - mtl.max(a, axis=1, keepdims=True))
    wide = x.astype(np.float64)
    expected = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    result = np.asarray(e / mtl.sum(e, axis=1, keepdims=True))
    return bool((np.abs(result - expected) <= 1e-6 * expected).all())


def _doubles(lib: Library, device: Device) -> bool:
    """float64: computed, or refused."""
    import metalloid as mtl

    try:
        x = mtl.asarray(1.0, dtype=mtl.float64, device=device)
        return float(x / 3) == 1 / 3
    except UnsupportedType:
        return not device.has_float64


_CHECKS = (
    _arrays_of_the_process, _buffers_of_the_device, _two_dimensions, _threadgroups, _simdgroups,
    _atomics, _function_constants, _halves, _argument_buffers, _functions, _lazy_arrays, _doubles,
)  # fmt: skip
