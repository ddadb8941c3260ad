"""``load``: kernels as functions from arrays to arrays."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void split(device const float* x, constant float& at, device float* low, device float* high,
                  uint i [[thread_position_in_grid]])
{ low[i] = min(x[i], at); high[i] = max(x[i], at); }
kernel void shout(device uint8_t* text, uint i [[thread_position_in_grid]]) { text[i] -= 32; }
kernel void norm(device const float4* x, device float* out, uint i [[thread_position_in_grid]])
{ out[i] = length(x[i]); }
kernel void widen(device const half* x, device float4* out, uint i [[thread_position_in_grid]])
{ out[i] = float4(x[i]); }
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "kernels.metal").write_text(SOURCE)
    return tmp_path / "kernels.metal"


def test_the_hello_world_on_a_million_numbers(rng):
    log = mtl.load("examples/log.metal", function_name="log_kernel")
    for shape in (1, 1_000_003, (100, 7, 9)):
        x = rng.random(shape).astype(np.float32) + np.float32(1e-3)
        y = log(x)
        assert y.shape == x.shape
        assert y.dtype == np.float32
        exact = np.log(x.astype(np.float64))
        assert (np.abs(y - exact) <= 4 * np.spacing(np.abs(exact).astype(np.float32))).all()


def test_multiple_outputs(file, rng):
    x = rng.random(1000).astype(np.float32)
    low, high = mtl.load(file, "split")(x, 0.5)
    assert (low == np.minimum(x, np.float32(0.5))).all()
    assert (high == np.maximum(x, np.float32(0.5))).all()


def test_in_place(file):
    text = np.frombuffer(b"metal", np.uint8).copy()
    assert mtl.load(file, "shout")(text) is None
    assert text.tobytes() == b"METAL"


def test_vectors(file, rng):
    x = rng.random((50, 4)).astype(np.float32)
    out = mtl.load(file, "norm")(x)
    exact = np.sqrt((x.astype(np.float64) ** 2).sum(axis=1))
    assert out.shape == (50,)
    # Four squares, three additions and a root: each rounds once.
    np.testing.assert_allclose(out, exact, rtol=4 * 2**-24)
    wide = mtl.load(file, "widen")(np.arange(3, dtype=np.float16))
    assert (wide == np.arange(3)[:, None]).all()
    assert wide.shape == (3, 4)


def test_inputs_need_not_be_contiguous(file, rng):
    x = rng.random((20, 20)).astype(np.float32)
    square = mtl.load("examples/square.metal")
    assert (square(x.T) == (x * x).T).all()
    assert repr(square) == "<function square(device const float *in, device float *out)>"


def test_an_empty_input():
    square = mtl.load("examples/square.metal")
    assert square(np.zeros((0, 3), np.float32)).shape == (0, 3)
