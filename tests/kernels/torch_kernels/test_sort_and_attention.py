"""Torch's kernels of more than one step: merge sort, radix sort, attention."""

import numpy as np
import pytest
from mlx_tree.agreement import assert_within, ceildiv, roundoff
from torch_headers import driver

DTYPES = {"float": np.float32, "half": np.float16, "int": np.int32, "uchar": np.uint8}


@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("descending", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_sorting_a_block(rng, type_, descending):
    """Rows of up to four elements a thread; equal ones keep their order."""
    size, rows = 117, 3
    x = rng.integers(0, 40, (rows, size)).astype(DTYPES[type_])
    if type_ in ("float", "half"):
        x[0, 5] = np.nan
    values, indices = np.zeros_like(x), np.zeros(x.shape, np.int64)
    kernel = driver("sort")[f"sort_block_{type_}_tptg32_stable"]
    kernel(x, values, indices, size, (1, size), descending, threads=(32, rows), group_size=(32, 1))
    for row in range(rows):
        keys = x[row].astype(np.float64)
        keys = np.where(np.isnan(keys), np.inf, keys)  # NaN is larger than any number
        expected = np.argsort(-keys if descending else keys, kind="stable")
        np.testing.assert_array_equal(indices[row], expected)
        np.testing.assert_array_equal(values[row], x[row, expected])


@pytest.mark.parametrize("type_", ["int", "float"])
def test_radix_sort(rng, type_):
    """Four passes over eight bits: count, scan, scatter."""
    size, per_block = 3000, 512 * 4
    blocks = ceildiv(size, per_block)
    x = rng.integers(-(2**31), 2**31, size).astype(np.int32)
    if type_ == "float":
        x = rng.normal(size=size).astype(np.float32)
    lib = driver("sort")
    keys, numbers = [x.copy(), np.zeros_like(x)], [np.zeros(size, np.uint32) for _ in range(2)]
    for step in range(4):
        dims, old, new = (size, blocks, 8 * step), step % 2, 1 - step % 2
        histogram = np.zeros(256 * blocks, np.uint32)
        launch = {"threads": 512 * blocks, "group_size": 512}
        lib[f"radix_count_{type_}_8bit"](keys[old], histogram, dims, False, **launch)
        lib.radix_scan(histogram, 256 * blocks, threads=1024, group_size=1024)
        lib[f"radix_scatter_{type_}_8bit"](
            keys[old], numbers[old], keys[new], numbers[new], histogram, dims, (False, step == 0),
            **launch,
        )  # fmt: skip
    np.testing.assert_array_equal(keys[0], np.sort(x))
    np.testing.assert_array_equal(x[numbers[0]], np.sort(x))


def _attention(q, k, v, scale, allowed):
    """In float64; heads of q share those of k and v."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    k, v = (a.repeat(q.shape[1] // a.shape[1], 1) for a in (k, v))
    z = np.where(allowed, scale * q @ k.swapaxes(-1, -2), -np.inf)
    weights = np.exp(z - z.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ v, weights @ np.abs(v)


@pytest.mark.parametrize("mask", ["none", "none_causal", "bool"])
def test_attention_of_a_few_queries(rng, mask):
    batch, heads, shared, queries, keys, width = 2, 4, 2, 3, 70, 64
    q = rng.normal(size=(batch, heads, queries, width)).astype(np.float32)
    k, v = (rng.normal(size=(batch, shared, keys, width)).astype(np.float32) for _ in range(2))
    allowed = np.ones((batch, heads, queries, keys), np.bool_)
    if mask == "bool":
        allowed = rng.random(allowed.shape) < 0.5
    elif mask == "none_causal":
        allowed = np.broadcast_to(np.tri(queries, keys, dtype=np.bool_), allowed.shape)
    strides = [[s // 4 for s in array.strides] for array in (q, k, v)]
    m = allowed.strides if mask == "bool" else (0, 0, 0, 0)
    out = np.full_like(q, np.nan)
    driver("attention")[f"sdpa_vector_float_64_64_mask{mask}"](
        q, k, v, out, heads // shared, keys, tuple(s[1] for s in strides),
        tuple(s[2] for s in strides), 0.125,
        np.ascontiguousarray(allowed) if mask == "bool" else np.zeros(1, np.float32),
        (m[3], m[2], m[1], m[0]), (*(s[0] for s in strides), heads),
        threads=(batch * heads * 1024, queries), group_size=(1024, 1),
    )  # fmt: skip
    exact, magnitude = _attention(q, k, v, 0.125, allowed)
    assert_within(out, exact, 400 * roundoff(np.float32) * magnitude)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_of_many_queries(rng, causal):
    batch, heads, shared, queries, keys, width = 1, 2, 1, 40, 70, 64
    q = rng.normal(size=(batch, heads, queries, width)).astype(np.float32)
    k, v = (rng.normal(size=(batch, shared, keys, width)).astype(np.float32) for _ in range(2))
    out = np.full_like(q, np.nan)
    strides = [s // 4 for array in (q, k, v, out) for s in array.strides[:3]]
    numbers = [batch, heads, width, queries, keys, heads // shared]
    record = np.zeros(1, [("i", np.int32, 6), ("f", np.float32, 2), ("s", np.int32, 12)])
    record["i"], record["f"], record["s"] = numbers, (0.125, 1.0), strides
    driver("attention")[
        f"prefill_attention_float32_bq32_bk32_bd64_wm4_wn1_hm0_dc{causal}_maskfloat32"
    ](
        q, k, v, out, record, np.zeros(16, np.uint8), np.zeros(1, np.float32),
        threads=(128 * ceildiv(queries, 32), heads, batch), group_size=(128, 1, 1),
    )  # fmt: skip
    allowed = np.tri(queries, keys, 0 if causal else keys, dtype=np.bool_)
    exact, magnitude = _attention(q, k, v, 0.125, allowed)
    assert_within(out, exact, 400 * roundoff(np.float32) * magnitude)
