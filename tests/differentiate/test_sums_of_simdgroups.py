"""Threads of a simdgroup that add to the same element of an adjoint add their sum, once."""

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl
from metalloid.differentiate.adjoint import adjoint_of

COMMON, ASKED, EACH = "simd_is_first", "adjoint_is_common(u", "each"
#: How the adjoint of ``x`` is added: known to be common, asked, or by each thread.
BODIES = {
    "y[i] = w[i] * x[at.y];": COMMON,
    "y[i] = w[i] * x[group.x] * x[0];": COMMON,
    "y[i] = w[i] * x[at.z * size.y + at.y];": COMMON,
    "for (int k = 0; k < n; k++) y[i] += w[i + k] * x[at.y * n + k];": COMMON,
    "int r = at.y; if (w[i] > 0.5f) { int row = r + 1; y[i] = w[i] * x[row]; }": COMMON,
    "for (int k = 0; k < counts[at.y]; k++) y[i] += sin(w[i] * x[k]);": COMMON,
    "y[i] = w[i] * x[i / 32];": ASKED,
    "y[i] = w[i] * x[long(i / 3)];": ASKED,
    "y[i] = w[i] * x[i / n % 7 + at.y];": ASKED,
    "for (uint k = 0; k < i % 5; k++) y[i] += sin(w[i] * x[k]);": ASKED,
    "float s = w[i]; for (int k = 0; k < counts[i]; k++) s = sin(s * x[k]) + s; y[i] = s;": ASKED,
    "for (int k = 0; k < n; k++) { if (w[i + k] > 0.8f) break; y[i] += w[i] * x[k]; }": EACH,
    "y[i] = w[i] * x[lane];": EACH,
    "y[i] = w[i] * x[in_quad];": EACH,
    "y[i] = w[i] * x[quad];": EACH,
    "y[i] = w[i] * x[width];": COMMON,
    "y[i] = w[i] * x[i];": EACH,
    "y[i] = w[i] * x[counts[i]];": EACH,
    "int r = at.y; if (w[i] > 0.5f) r = 3; y[i] = w[i] * x[r];": EACH,
    "int last = 0; for (int k = 0; k < counts[i]; k++) last = k; y[i] = w[i] * x[last];": EACH,
    "int last; for (int k = 0; k < 1 + counts[i]; k++) last = k; y[i] = w[i] * x[last];": EACH,
    "y[i] = w[i] * x[at.y * 2 + (i > 70)];": EACH,
}
GRIDS = [
    ((64, 4, 2), (32, 2, 1)), ((64, 4, 2), (64, 1, 1)), ((24, 6, 2), (8, 4, 1)),
    ((50, 4, 2), (32, 4, 1)), ((33, 3, 3), (1, 1, 1)),
]  # fmt: skip


def kernel_of(body):
    return mtl.library(
        f"""{HEADER}
kernel void k(device const float *x, device const float *w, device const int *counts,
              device float *y, constant int &n, uint3 at [[thread_position_in_grid]],
              uint3 size [[threads_per_grid]], uint3 group [[threadgroup_position_in_grid]],
              uint lane [[thread_index_in_simdgroup]], uint quad [[quadgroup_index_in_threadgroup]],
              uint in_quad [[thread_index_in_quadgroup]], uint width [[threads_per_simdgroup]])
{{ uint i = (at.z * size.y + at.y) * size.x + at.x; {body} }}""",
        device="cpu",
    ).k


@pytest.mark.parametrize("body", BODIES)
def test_sums(body):
    """The adjoints are those without sums, on grids whose simdgroups have one row or several."""
    kernel, names = kernel_of(body), {"wrt": ["x", "w"], "outputs": ["y"]}
    adjoint = adjoint_of(kernel, **names, shared=frozenset("x"), sums_rows=True)
    text = adjoint.source
    assert (COMMON in text) is (BODIES[body] != EACH)
    assert (ASKED in text) is (BODIES[body] == ASKED)
    random = np.random.default_rng(0)
    x = random.uniform(0.2, 1, 1024).astype(np.float32)
    w = random.uniform(0.2, 1, 1024).astype(np.float32)
    counts = random.integers(0, 6, 1024).astype(np.int32)
    seed = random.uniform(0.2, 1, 1024).astype(np.float32)
    for threads, group_size in GRIDS:
        results = []
        for each in (adjoint, kernel.vjp(**names)):
            d_x, d_w = np.zeros_like(x), np.zeros_like(w)
            each(
                x, w, counts, np.zeros_like(x), 4, seed, d_x, d_w,
                threads=threads, group_size=group_size,
            )  # fmt: skip
            results += [d_x, d_w]
        assert results[2].any()
        np.testing.assert_allclose(results[0], results[2], rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(results[1], results[3], rtol=2e-5, atol=1e-6)


def test_sums_of_vectors_and_guards():
    """Vectors are summed as vectors; nothing is added where the kernel reads nothing."""
    kernel = mtl.library(
        f"""{HEADER}
kernel void k(device const float3 *x, device float *y, constant int &n,
              uint2 at [[thread_position_in_grid]]) {{
  float3 v = int(at.y) < n ? x[at.y] : float3(0);
  y[at.y * 32 + at.x] = dot(v, v) * at.x;
}}""",
        device="cpu",
    ).k
    adjoint = adjoint_of(kernel, sums_rows=True)
    assert "simd_sum" in adjoint.source
    x = np.random.default_rng(0).uniform(1, 2, (5, 4)).astype(np.float32)
    d_x = np.zeros_like(x)
    adjoint(
        x, np.zeros((8, 32), np.float32), 5, np.ones((8, 32), np.float32), d_x,
        threads=(32, 8), group_size=(32, 1),
    )  # fmt: skip
    np.testing.assert_allclose(d_x[:, :3], 2 * 496 * x[:, :3], rtol=1e-6)
    assert not d_x[:, 3].any()


def test_texts_for_gpus(monkeypatch):
    """Inputs are constant memory, but for those of which others are needed: integers, references."""
    monkeypatch.setattr("metalloid.differentiate.adjoint._is_for_gpu", lambda kernel: True)
    kernel = mtl.library(
        f"""{HEADER}
kernel void k(device const float4 *x, const device half* h, device const int *n,
              device const float &s, device float *y, uint i [[thread_position_in_grid]]) {{
  y[i] = dot(x[i], x[n[i]]) * h[i] * s;
}}""",
        device="cpu",
    ).k
    adjoint = kernel.vjp()
    parameters = adjoint.source.partition("void k_vjp(")[2].partition(")")[0]
    texts = [" ".join(text.split()) for text in parameters.split(",")]
    assert texts[:4] == [
        "constant float4 *x", "constant half * h", "device const int *n", "device const float &s",
    ]  # fmt: skip
    random = np.random.default_rng(0)
    x = random.uniform(0.5, 1, (40, 4)).astype(np.float32)
    h, n = random.uniform(0.5, 1, 40).astype(np.float16), np.full(40, 7, np.int32)
    shadows = [np.zeros_like(x), np.zeros(40, np.float32), np.zeros(1, np.float32)]
    given = np.full(1, 3, np.float32), np.zeros(40, np.float32), np.ones(40, np.float32)
    adjoint(x, h, n, *given, *shadows, threads=40)
    weights = 3 * h.astype(np.float64)[:, None]
    expected = weights * x[7]
    expected[7] += (weights * x).sum(axis=0)
    np.testing.assert_allclose(shadows[0], expected, rtol=2e-6)
    np.testing.assert_allclose(shadows[1], 3 * x @ x[7], rtol=2e-6)
