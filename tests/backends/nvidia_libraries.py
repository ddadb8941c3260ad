"""Helpers of the tests of NVIDIA's libraries: devices, operands and comparisons.

The tests run over a stand-in (nvidia_stand_in.py), which checks its arguments, and over cuBLAS,
cuSOLVER and cuFFT on a GPU, with nvmath-python: METALLOID_REQUIRE=cuda,nvmath lets them fail
without.
"""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.libraries import bindings

sys.path.insert(0, str(Path(__file__).parent.parent))
import nvidia_stand_in

NAMES = ["cublas", "cusolverDn", "cufft"]
LIBRARIES = {"products": "cublas", "decompositions": "cusolver", "transforms": "cufft"}


def some(count, *values):
    """Parameters of which only the first few are tried every day."""
    rest = [pytest.param(value, marks=pytest.mark.slow) for value in values[count:]]
    return [*values[:count], *rest]


TYPES = some(1, "complex64", "float32", "float64", "complex128")
SHAPES = some(1, (3, 6, 6), (6, 6))


@contextlib.contextmanager
def opened(kind):
    """A stand-in or a GPU whose libraries are used for all sizes."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "gpu":
            card = real_gpu()
        else:
            for name, module in nvidia_stand_in.stand_ins().items():
                patch.setitem(sys.modules, f"nvmath.bindings.{name}", module)
            bindings.bindings.cache_clear()
            card = nvidia_stand_in.StandInCard()
        with mtl.config.scope(**LIBRARIES):
            yield card
    bindings.bindings.cache_clear()


def real_gpu():
    try:
        card = mtl.Device("cuda")
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"cuda: {error}")
    bindings.bindings.cache_clear()
    try:
        for name in NAMES:
            bindings.bindings(name)
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"nvmath: {error}")
    return card


def random(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def assert_near(got, want, units):
    """Whether the difference is so many rounding errors, relative to the largest element."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    eps = 2.0**-7 if got.dtype.name == "bfloat16" else float(np.finfo(got.dtype).eps)
    error, size = np.abs(wide(got) - want).max(initial=0), np.abs(want).max(initial=0)
    assert error <= units * eps * size, f"{error / (eps * size)} units"


def on(device, x):
    return mtl.asarray(x, device=device)


def calls_of(name):
    return sys.modules[f"nvmath.bindings.{name}"].calls
