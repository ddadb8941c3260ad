"""Tangents of kernels agree with their adjoints, function by function."""

import numpy as np
import pytest
from differences import HEADER
from test_adjoints import FUNCTIONS

import metalloid as mtl
from metalloid.differentiate import jvp, vjp

N = 6
VECTORS = [
    "dot(p, q)", "length(p)", "length_squared(p)", "distance(p, q)", "distance_squared(p, q)",
    "dot(normalize(p), q)", "cross(p, q).y", "(p * a + q / b).zx[1]", "float3(a, p.xy * b).z",
    "(a > 1 ? p : q * a).y", "-(p - q).z", "mix(p, q, a).x", "half3(p).y", "min(p, q).x + max(p, b).y",
]  # fmt: skip
#: Functions of lanes and of threadgroup memory, in which all threads are alike.
LANES = [
    "simd_max(a) * b", "quad_min(a * b)", "simd_broadcast(a, 3)", "simd_shuffle_up(a, 1)",
    "quad_sum(a) * simd_prefix_exclusive_sum(b)", "simd_shuffle_rotate_down(a, 2)",
]  # fmt: skip


def agree(functions, threads, group_size=None):
    """Assert that each function's tangents are those of its derivatives."""
    count = len(functions)
    lines = "\n".join(f"  y[i * {count} + {k}] = {f};" for k, f in enumerate(functions))
    source = f"""{HEADER}
kernel void k(device const float *x, device const float *z, device float *y,
              uint i [[thread_position_in_grid]]) {{
  float a = x[i], b = z[i];
  float3 p = float3(a, a * b, b), q = float3(b + 1, sin(a), 2);
{lines}
}}"""
    kernel = mtl.library(source, device="cpu").k
    random = np.random.default_rng(3)
    x, z = (random.uniform(0.2, 0.9, threads).astype(np.float32) for _ in range(2))
    steps = [random.normal(size=threads).astype(np.float32) for _ in range(2)]
    y, dot_y = (np.zeros((threads, count), np.float32) for _ in range(2))
    sizes = {"threads": threads, "group_size": group_size}
    jvp(kernel)(x, z, y, *steps, dot_y, **sizes)
    adjoint = vjp(kernel)
    for k, function in enumerate(functions):
        cotangent = np.zeros_like(y)
        cotangent[:, k] = weights = random.normal(size=threads).astype(np.float32)
        shadows = np.zeros_like(x), np.zeros_like(z)
        adjoint(x, z, y, cotangent, *shadows, **sizes)
        expected = sum((d * step).sum() for d, step in zip(shadows, steps, strict=True))
        computed = (dot_y[:, k] * weights).sum()
        scale = np.abs(dot_y[:, k] * weights).sum() + 1e-6
        bound = 2e-3 if "half" in function else 1e-5
        assert abs(computed - expected) <= bound * scale, (function, computed, expected)


@pytest.mark.slow
def test_functions():
    agree(FUNCTIONS, N)


@pytest.mark.slow
def test_vectors():
    agree(VECTORS, N)


LANES_BY_NUMBER = f"""{HEADER}
kernel void k(device const float4 *x, device float4 *y, device float *z, constant int &k,
              uint i [[thread_position_in_grid]]) {{
  float4 v = x[i] * x[i];
  v[k] *= x[i][3 - k];
  v[1] += (x[i] * v)[k] + x[i][2];
  y[i][k] = v[k] * x[i].x;
  z[i] = v[1];
}}"""


def test_components_by_number():
    kernel = mtl.library(LANES_BY_NUMBER, device="cpu").k
    random = np.random.default_rng(0)
    x, step, by_y = (random.uniform(0.5, 1, (3, 4)).astype(np.float32) for _ in range(3))
    by_z, k = np.ones(3, np.float32), 2
    y, z, dot_y, dot_z = (np.zeros(s, np.float32) for s in ((3, 4), 3, (3, 4), 3))

    def function(x):
        v = x * x
        v[:, k] *= x[:, 3 - k]
        v[:, 1] += x[:, k] * v[:, k] + x[:, 2]
        return v[:, k] * x[:, 0], v[:, 1]

    kernel.jvp()(x, y, z, k, step, dot_y, dot_z, threads=3)
    first, second = (each.imag * 1e30 for each in function(x + 1e-30j * step))
    np.testing.assert_allclose(dot_y[:, k], first, 1e-5)
    np.testing.assert_allclose(dot_z, second, 1e-5)
    d_x = np.zeros_like(x)
    kernel.vjp()(x, y, z, k, by_y.copy(), by_z.copy(), d_x, threads=3)
    expected = np.zeros((3, 4))
    for lane in range(4):
        moved = x.astype(complex)
        moved[:, lane] += 1e-30j
        first, second = function(moved)
        expected[:, lane] = (first * by_y[:, k] + second * by_z).imag * 1e30
    np.testing.assert_allclose(d_x, expected, 1e-5)


@pytest.mark.slow
def test_lanes():
    agree(LANES, 32, 32)


SOURCE = f"""{HEADER}
kernel void adds(device const half4 *x, device packed_float3 *y, constant float &c,
                 uint i [[thread_position_in_grid]]) {{
  y[i] += packed_float3(float3(x[i].wyx) * c);
}}
kernel void bits(device const float *x, device float *y) {{
  int n = as_type<int>(x[0]);
  y[0] = n;
}}
kernel void product(device const float *x, device float *y) {{ y[0] = simd_product(x[0]); }}
"""


def test_vectors_in_memory_and_references():
    kernel = mtl.library(SOURCE, device="cpu").adds
    x = np.arange(1, 9).reshape(2, 4).astype(np.float16)
    y, dot_y = np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)
    dot_x, dot_c = np.ones((2, 4), np.float32), np.full(1, 0.5, np.float32)
    kernel.jvp()(x, y, np.float32(3), dot_x, dot_c, dot_y, threads=2)
    taken = x[:, [3, 1, 0]].astype(np.float32)
    assert np.array_equal(y, 1 + 3 * taken)
    assert np.array_equal(dot_y, 1 + 3 + 0.5 * taken)


@pytest.mark.parametrize(("name", "message"), [
    ("bits", "derivatives do not pass through the bits"), ("product", "simd_product has no tangent"),
])  # fmt: skip
def test_refusals(name, message):
    kernel = mtl.library(SOURCE, device="cpu")[name]
    with pytest.raises(mtl.CompileError, match=message):
        kernel.jvp()
    with pytest.raises(mtl.ArgumentError, match="'z' is no pointer"):
        kernel.jvp(wrt=["z"])
