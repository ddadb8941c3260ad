"""simdgroup_matrix: layout, loads and stores, products."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

DTYPES = {"half": np.float16, "bfloat": ml_dtypes.bfloat16, "float": np.float32}
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


def library(type_):
    return mtl.library(
        HEADER
        + f"""
kernel void copy(device {type_}* out, device const {type_}* in, constant ulong4& at, constant bool2& t,
                 uint lane [[thread_index_in_simdgroup]]) {{
    simdgroup_matrix<{type_}, 8, 8> m;
    simdgroup_load(m, in, at.z, ulong2(at.x, at.y), t.x);
    simdgroup_store(m, out, at.w, ulong2(at.y, at.x), t.y);
}}
kernel void through_threadgroup(device {type_}* out, device const {type_}* in,
                                uint lane [[thread_index_in_simdgroup]]) {{
    threadgroup {type_} tile[64];
    simdgroup_{type_}8x8 m;
    simdgroup_load(m, in);
    simdgroup_store(m, tile, 8, 0, true);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane; i < 64; i += 32) out[i] = tile[i];
}}
kernel void elements(device {type_}* out, uint lane [[thread_index_in_simdgroup]]) {{
    auto m = make_filled_simdgroup_matrix<{type_}, 8, 8>({type_}(0));
    m.thread_elements()[0] = {type_}(2 * lane);
    m.thread_elements()[1] = {type_}(2 * lane + 1);
    simdgroup_store(m, out);
}}
kernel void diagonal(device {type_}* out) {{
    simdgroup_matrix<{type_}, 8, 8> m({type_}(3));
    simdgroup_store(m, out);
}}
kernel void multiply(device {type_}* out, device const {type_}* a, device const {type_}* b,
                     device const {type_}* c) {{
    simdgroup_matrix<{type_}, 8, 8> ma, mb, mc, md;
    simdgroup_load(ma, a);
    simdgroup_load(mb, b);
    simdgroup_load(mc, c);
    simdgroup_multiply_accumulate(md, ma, mb, mc);
    simdgroup_store(md, out);
    simdgroup_multiply(md, ma, mb);
    simdgroup_store(md, out + 64);
}}"""
    )


@pytest.mark.parametrize("type_", DTYPES)
def test_loads_and_stores(type_, rng):
    kernel = library(type_).copy
    for transposed_in in (False, True):
        for transposed_out in (False, True):
            source = rng.integers(0, 99, (20, 16)).astype(DTYPES[type_])
            out = np.zeros((16, 20), DTYPES[type_])
            kernel(
                out, source, (3, 5, 16, 20), np.array([transposed_in, transposed_out]), threads=32
            )
            tile = source[5:13, 3:11].T if transposed_in else source[5:13, 3:11]
            expected = np.zeros_like(out)
            expected[3:11, 5:13] = tile.T if transposed_out else tile
            np.testing.assert_array_equal(out.astype(float), expected.astype(float))


@pytest.mark.parametrize("type_", DTYPES)
def test_threadgroup_memory(type_, rng):
    source, out = rng.integers(0, 99, (8, 8)).astype(DTYPES[type_]), np.zeros((8, 8), DTYPES[type_])
    library(type_).through_threadgroup(out, source, threads=32)
    np.testing.assert_array_equal(out.astype(float), source.T.astype(float))


@pytest.mark.parametrize("type_", DTYPES)
def test_the_lanes_own_what_apples_lanes_own(type_):
    out = np.zeros((8, 8), DTYPES[type_])
    library(type_).elements(out, threads=32)
    # Rows of quads as MLX's kernels compute them: fm = (qid & 4) + (lane / 2) % 4,
    # fn = (qid & 2) * 2 + (lane % 2) * 2, with qid = lane / 4.
    expected = np.zeros((8, 8))
    for lane in range(32):
        quad = lane // 4
        row, column = (quad & 4) + (lane // 2) % 4, (quad & 2) * 2 + (lane % 2) * 2
        expected[row, column : column + 2] = 2 * lane, 2 * lane + 1
    np.testing.assert_array_equal(out.astype(float), expected)
    assert sorted(expected.reshape(-1)) == list(range(64))


@pytest.mark.parametrize("type_", DTYPES)
def test_diagonal(type_):
    out = np.zeros((8, 8), DTYPES[type_])
    library(type_).diagonal(out, threads=32)
    np.testing.assert_array_equal(out.astype(float), 3 * np.eye(8))


@pytest.mark.parametrize("type_", DTYPES)
def test_products(type_, rng):
    a, b, c = (rng.normal(size=(8, 8)).astype(DTYPES[type_]) for _ in range(3))
    out = np.zeros((2, 8, 8), DTYPES[type_])
    library(type_).multiply(out, a, b, c, threads=32)
    a, b, c = (m.astype(np.float64) for m in (a, b, c))
    scale = np.abs(a) @ np.abs(b) + np.abs(c)
    # Eight products, seven sums and the addition of c in float, then one rounding to the type.
    bound = scale * (9 * 2**-24) + np.abs(a @ b + c) * float(ml_dtypes.finfo(DTYPES[type_]).eps) / 2
    assert (np.abs(out[0].astype(np.float64) - (a @ b + c)) <= bound).all()
    bound = scale * (9 * 2**-24) + np.abs(a @ b) * float(ml_dtypes.finfo(DTYPES[type_]).eps) / 2
    assert (np.abs(out[1].astype(np.float64) - a @ b) <= bound).all()
