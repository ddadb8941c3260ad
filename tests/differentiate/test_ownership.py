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
    "device const float *p = x + i; p += 1; y[i] = *p;": True,
    "y[i] = x[i + 3 * t];": False,
    "for (int k = 0; k < 4; k++) y[i] += x[4 * i + k];": True,
    "for (int k = 0; k < n; k++) y[i] += x[n * i + k];": True,
    "for (int k = 0; k <= n; k++) y[i] += x[n * i + k];": False,
    "int k = 0; for (; k < 4; k++) y[i] += x[4 * i + k]; y[i] += x[4 * i + k];": False,
    "for (int k = t; k < n; k += 32) y[i] += x[n * g + k];": True,
    "for (int k = t; k < n; k += 16) y[i] += x[n * g + k];": False,
    "for (int k = t; k < n; k += 32) y[i] += x[n * g + k]; y[i] += x[n * g];": False,
    "for (uint k = t; k < uint(n); k += s) y[i] += x[g * n + k] * x[k + n * g];": True,
    "y[i] = x[(i / 8) * 8 + i % 8];": True,
    "y[i] = x[(i / 8) * 4 + i % 8];": False,
    "y[i] = x[i % 8];": False,
    "y[i] = x[i / 2 % 4];": False,
    "y[i] = x[t];": False,
}


def source_of(body):
    return f"""{HEADER}
kernel void k(device const float *x, device float *y, constant int &n,
              uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
              uint g [[threadgroup_position_in_grid]], uint s [[threads_per_threadgroup]])
{{ {body} }}"""


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
        kernel.vjp()(x, np.zeros(3, np.float32), 1, ones, d_x, threads=threads)
        assert d_x.tolist() == (2 * times * x).tolist()
    with pytest.raises(mtl.CompileError, match="to its adjoint in any order") as error:
        kernel.vjp(deterministic=True)(x, x, 1, ones, x, threads=(3, 2))
    assert error.value.diagnostics[0].source_line.startswith("{ y[i] += x[i]")


ROWS = f"""{HEADER}
kernel void k(device const float *x, device const float *z, device float *y, constant int &n,
              uint2 at [[thread_position_in_grid]]) {{
  float sum = 0;
  for (int k = 0; k < n; k++) sum += x[at.y * n + k] * z[k * n + at.x];
  y[at.y * n + at.x] = sum * x[at.y * n];
}}
kernel void softmax(device const float *x, device float *y, constant int &n,
                    uint row [[threadgroup_position_in_grid]],
                    uint lane [[thread_position_in_threadgroup]]) {{
  for (int k = lane; k < n; k += 32) y[row * n + k] += x[row * n + k] * x[row * n + k];
}}"""


def squares(**launch):
    """The adjoint of rows of squares, and what it should be."""
    kernel = mtl.library(ROWS, device="cpu").softmax
    x = np.random.default_rng(1).normal(size=(5, 48)).astype(np.float32)
    adjoint, d_x = kernel.vjp(**launch.pop("vjp", {})), np.zeros_like(x)
    adjoint(x, np.zeros_like(x), 48, np.ones_like(x), d_x, **launch)
    return d_x, 2 * x


def test_rows_of_simdgroups():
    computed, expected = squares(threads=160, group_size=32, vjp={"deterministic": True})
    assert np.array_equal(computed, expected)
    # With 64 threads two of them read each element, so they must add atomically.
    computed, _ = squares(threads=320, group_size=64)
    x = expected / 2
    expected = expected.copy()
    expected[:, 32:] += 2 * x[:, 32:]
    assert np.array_equal(computed, expected)
    with pytest.raises(mtl.CompileError, match="to its adjoint in any order"):
        squares(threads=320, group_size=64, vjp={"deterministic": True})


def test_rows_that_overlap_are_added_atomically():
    kernel = mtl.library(ROWS, device="cpu").softmax
    x, d_x = np.ones(7, np.float32), np.zeros(7, np.float32)
    n = mtl.Buffer(np.array([3], np.int32), kernel.device)  # not known at the launch
    adjoint = kernel.vjp()
    adjoint(x, np.zeros(7, np.float32), n, np.ones(7, np.float32), d_x, threads=64, group_size=32)
    assert d_x.tolist() == [2] * 6 + [0]


def test_products_add_atomically():
    kernel, n = mtl.library(ROWS, device="cpu").k, 9
    assert "device atomic_float *d_x" in kernel.vjp().source
    assert "device atomic_float *d_z" in kernel.vjp().source
    random = np.random.default_rng(0)
    x, z, g = (random.normal(size=(n, n)).astype(np.float32) for _ in range(3))
    d_x, d_z = np.zeros_like(x), np.zeros_like(x)
    kernel.vjp()(x, z, np.zeros_like(x), n, g, d_x, d_z, threads=(n, n))
    wide = [each.astype(np.float64) for each in (x, z, g)]
    x, z, g = wide
    scaled = g * x[:, :1]
    expected = scaled @ z.T
    expected[:, 0] += (g * (x @ z)).sum(1)
    assert np.abs(d_x - expected).max() < 2e-6 * np.abs(expected).max()
    expected = x.T @ scaled
    assert np.abs(d_z - expected).max() < 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize(("index", "is_consumed"), [("n * i + k", False), ("n * i + k / 2", True)])
def test_elements_that_each_iteration_stores(index, is_consumed):
    """The adjoint of an element that is stored once is only read; of others, the last one counts."""
    body = f"for (int k = 0; k < n; k++) y[{index}] = k * x[n * i + k];"
    kernel = mtl.library(source_of(body), device="cpu").k
    adjoint = kernel.vjp(wrt=["x"], outputs=["y"])
    assert adjoint.consumed == (is_consumed,)
    x = np.arange(1, 13, dtype=np.float32)
    seed, d_x = np.arange(1, 13, dtype=np.float32), np.zeros_like(x)
    adjoint(x, np.zeros_like(x), 4, seed, d_x, threads=3)
    expected = np.tile(np.arange(4, dtype=np.float32), 3) * seed
    if is_consumed:
        expected = np.zeros((3, 4), np.float32)
        expected[:, 1::2] = seed.reshape(3, 4)[:, :2] * [1, 3]
    np.testing.assert_array_equal(d_x, expected.ravel())


def test_each_launch_is_judged_by_its_numbers():
    """Structs as records, scalars and arrays say how many rows there are."""
    kernel = mtl.library(
        f"""{HEADER}
struct Size {{ int n; }};
kernel void k(device const float *x, device float *y, constant Size &s,
              uint i [[thread_position_in_grid]]) {{
  for (int k = 0; k < 2; k++) y[i] += x[s.n * i + k];
}}""",
        device="cpu",
    ).k
    adjoint, dtype = kernel.vjp(), kernel.dtype("s")
    x, y, seed = np.ones(16, np.float32), np.zeros(8, np.float32), np.ones(8, np.float32)
    for n in (2, 1, 2, 0):
        records = np.array([(n,)], dtype)
        for size in (records, records[0], records[0]):
            d_x = np.zeros_like(x)
            adjoint(x, y, size, seed, d_x, threads=8)
            expected = np.zeros(16)
            for i in range(8):
                expected[n * i : n * i + 2] += 1
            np.testing.assert_array_equal(d_x, expected)
