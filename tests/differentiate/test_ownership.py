"""Where adjoints are added without atomic functions, and in which order."""

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl

BODIES = {
    "float v = x[i]; y[i] = v * v + x[i];": True,
    "uint k = i; y[k] = x[k];": True,
    "y[i] = x[3 * i] * x[3 * i + 2];": True,
    "y[i] = x[i] * x[i + 1];": False,
    "y[i] = x[2 * i] * x[2 * i + 2];": False,
    "y[i] = x[i / 2];": False,
    "uint k = i; if (k > 2) k = 0; y[i] = x[k];": False,
    "i = i % 3; y[i] += x[i];": False,
    "device const float *p = x + i; y[i] = *p;": True,
    "device const float *p = x + i; p += 1; y[i] = *p;": False,
    "y[i] = x[t];": False,
}


def source_of(body):
    return f"""{HEADER}
kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]]) {{ {body} }}"""


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_bodies(body):
    kernel = mtl.library(source_of(body), device="cpu").k
    is_own = BODIES[body]
    assert ("device float *d_x" in kernel.vjp().source) is is_own
    if is_own:
        assert kernel.vjp(deterministic=True).wrt == ("x",)
    else:
        with pytest.raises(mtl.CompileError, match="the same element of x"):
            kernel.vjp(deterministic=True)


def test_grids_of_two_dimensions():
    kernel = mtl.library(source_of("y[i] += x[i] * x[i];"), device="cpu").k
    x, ones = np.array([1, 2, 3], np.float32), np.ones(3, np.float32)
    for threads, times in ((3, 1), ((3, 4000), 4000)):
        d_x = np.zeros(3, np.float32)
        kernel.vjp()(x, np.zeros(3, np.float32), ones, d_x, threads=threads)
        assert d_x.tolist() == (2 * times * x).tolist()
    with pytest.raises(mtl.CompileError, match="to its adjoint in any order") as error:
        kernel.vjp(deterministic=True)(x, x, ones, x, threads=(3, 2))
    assert error.value.diagnostics[0].source_line.endswith("y[i] += x[i] * x[i]; }")
