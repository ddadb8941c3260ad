"""Launches made together: one after another, up to the first that fails."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.kernels.kernel import launch_batch

TEXT = """
kernel void next(device int* x, uint i [[thread_position_in_grid]]) { x[i] = x[i] * 3 + 1; }
kernel void divide(device int* x, uint i [[thread_position_in_grid]]) { x[i] = 6 / x[i]; }
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT)


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("count", [1, 3, 100_000])
def test_each_sees_what_those_before_have_done(lib, count, wait):
    x = mtl.Buffer(np.arange(count, dtype=np.int32))
    launch = lib.next.sized(count)
    launch_batch(lib.next.device, [launch([x]), launch([x]), launch([x])], wait)
    assert np.array_equal(np.asarray(x), np.arange(count) * 27 + 13)


def test_launches_after_a_fault_are_not_run(lib):
    device = lib.next.device
    if device.name != "cpu":
        pytest.skip("other devices tell of faults in their own ways")
    x, zeros = (mtl.Buffer(a) for a in (np.arange(8, dtype=np.int32), np.zeros(4, np.int32)))
    row = [lib.next.sized(8)([x]), lib.divide.sized(4)([zeros]), lib.next.sized(8)([x])]
    with pytest.raises(mtl.KernelFault, match=r"\[divide\] .*division by zero"):
        launch_batch(device, row, True)
    assert np.array_equal(np.asarray(x), np.arange(8) * 3 + 1)
