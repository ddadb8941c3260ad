"""Accesses stay within the objects they are made for, on both engines."""

import numpy as np
import pytest
from bounded_kernels import ELEMENTS, MARGIN, random_kernel

import metalloid as mtl

ENGINES = ("simd", "reference")
_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_CANARY = 0x5CA1AB1E


@pytest.fixture(params=ENGINES)
def engine(request):
    with mtl.config.scope(cpu_engine=request.param, bounds="checked", device="cpu"):
        yield request.param


def guarded(count, dtype=np.int32):
    """A view of zeros in the middle of an array, and the array."""
    memory = np.full(count + 2 * MARGIN, _CANARY, np.int32).view(dtype)
    view = memory[MARGIN : MARGIN + count]
    view[:] = 0
    return view, memory


def is_intact(memory):
    ends = np.concatenate([memory[:MARGIN], memory[-MARGIN:]])
    return bool((ends.view(np.int32) == _CANARY).all())


def check_random_kernel(seed):
    """The launch fails exactly if an access is outside, and nothing outside is written."""
    kernel = random_kernel(seed)
    accesses = [access for i in range(kernel.threads) for access in kernel.accesses(i)]
    is_outside = any(not 0 <= index < ELEMENTS for _, index in accesses)
    f = mtl.library(kernel.text).f
    (y, around_y), (x, _) = guarded(ELEMENTS), guarded(ELEMENTS)
    sums = np.zeros(kernel.threads, np.int32)
    for _ in range(2):  # the general path and the fast path
        fault = None
        try:
            f(y, x, kernel.data, sums, kernel.n, threads=kernel.threads, group_size=kernel.group)
        except mtl.KernelFault as error:
            fault = error
        assert (fault is not None) == is_outside, f"seed {seed}: {fault}\n{kernel.text}"
        assert is_intact(around_y)
    if not is_outside:
        expected = np.zeros(ELEMENTS, np.int32)
        expected[[index for name, index in accesses if name == "y"]] = 1
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("seed", range(8))
def test_random_kernels(engine, seed):
    check_random_kernel(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 50))
def test_many_random_kernels(engine, first):
    for seed in range(first, first + 50):
        check_random_kernel(seed)
