"""Random kernels give the same bits on a device of OpenCL as in the reference engine of the CPU."""

import numpy as np
import pytest
import random_kernels
from test_engines_agree import INDEPENDENT, WAITING, results

import metalloid as mtl

#: Kernels of a test.
COUNT = 5
#: Metal leaves the order of sums of a simdgroup's floats open: those of small integers are exact.
EXACT_SUM = """
inline float exact_sum(float x) { return simd_sum(rint(clamp(x, -4096.0f, 4096.0f)) + 0.0f); }
"""


def check(seed, waits):
    check_text(random_kernels.library_text(seed, COUNT, waits), WAITING if waits else INDEPENDENT)


def check_text(text, launches):
    """Compare the kernels of a text."""
    text = text.replace("g = simd_sum(", "g = exact_sum(")
    text = text.replace(random_kernels.HEADER, random_kernels.HEADER + EXACT_SUM)
    try:
        here = mtl.library(text, math_mode="safe", device="opencl")
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"opencl: {error}")
    with mtl.config.scope(cpu_engine="reference"):
        there = mtl.library(text, math_mode="safe", device="cpu")
        kernels = {name: there[name] for name in there}
    for name in kernels:
        for grid, group in launches:
            for u in (3, 6):
                with mtl.config.scope(strict_barriers=False):
                    pairs = zip(results(here, name, grid, group, u),
                                results(kernels, name, grid, group, u), strict=True)  # fmt: skip
                for a, b in pairs:
                    same = (a == b) | ((a != a) & (b != b))
                    assert same.all(), (name, grid, group, u, np.flatnonzero(~same)[:8])


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("seed", range(200))
def test_random_kernels_agree(seed, waits):
    check(9000 + seed, waits)


def test_lanes_that_are_not_active_divide_safely():
    check(9045, False)  # Intel's vector code ended the process, as it divided by 0 in such lanes
