"""Tensors of Metal 4: views of memory, cooperative tensors, and products of both."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("tensors")

HEADER = """
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
"""
ENGINES = pytest.mark.parametrize("engine", ["simd", "reference"])


@pytest.fixture
def compiled():
    """A function from an engine and a text to its library; the engine is the one that runs it."""

    def build(engine, text):
        with mtl.config.scope(cpu_engine=engine):
            library = mtl.library(HEADER + text)
            for name in library.functions:
                assert library.function(name).engine.startswith((engine, "cuda", "opencl"))
        return library

    return build


def assert_product(actual, left, right, added=0.0):
    """Compare with ``left @ right + added``, within the error of sums in float."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    magnitude = np.abs(left) @ np.abs(right) + np.abs(added)
    error = (left.shape[-1] + 3) * 2.0**-24 * magnitude
    assert np.all(np.abs(actual - (left @ right + added)) <= error)


def test_views_of_memory():
    library = mtl.library(
        HEADER
        + """
kernel void views(device float* x, device float* y) {
    auto whole = tensor(x, dextents<int, 3>(4, 3, 2));
    auto part = whole.slice<2, dynamic_extent, 1>(1, 1, 1);
    y[0] = part.get_extent(0);
    y[1] = part.get_extent(1);
    y[2] = decltype(part)::static_extent(0);
    y[3] = part[0, 0, 0];
    y[4] = part[1, 1, 0];
    y[5] = whole.get_stride(2);
    y[6] = whole[array<int, 3>{1, 2, 1}];
    y[7] = whole.slice(5, 0, 0).get_extent(0);
    auto spread = tensor(x, extents<int, 3, 2>(), array<int, 2>({5, 1}));
    spread[2, 1] = -1;
}"""
    )
    x, y = np.arange(24, dtype=np.float32), np.zeros(8, np.float32)
    library.views(x, y, threads=1)
    array = np.arange(24).reshape(2, 3, 4)
    part = array[1:2, 1:, 1:3]
    expected = [2, 2, 2, part[0, 0, 0], part[0, 1, 1], 12, array[1, 2, 1], 0]
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.flatnonzero(x == -1), [11])


@ENGINES
def test_product_of_memory_by_four_simdgroups(engine, compiled, rng):
    library = compiled(
        engine,
        """
kernel void multiply(tensor<device const half, dextents<int, 2>> a [[buffer(0)]],
                     tensor<device const half, dextents<int, 2>> b [[buffer(1)]],
                     tensor<device float, dextents<int, 2>> c [[buffer(2)]],
                     uint2 group [[threadgroup_position_in_grid]]) {
    constexpr auto descriptor = matmul2d_descriptor(32, 48, dynamic_length_v<int>);
    matmul2d<descriptor, execution_simdgroups<4>> op;
    auto left = a.slice(0, group.y * 32);
    auto right = b.slice(group.x * 48, 0);
    op.run(left, right, c.slice(group.x * 48, group.y * 32));
}""",
    )
    m, n, k = 41, 50, 37
    a = rng.normal(size=(m, k)).astype(np.float16)
    b = rng.normal(size=(n, 2 * k)).astype(np.float16)[:, ::2].T  # its rows lie apart
    c = np.full((m, n), np.nan, np.float32)
    library.multiply(a, b, c, threads=(256, 2), group_size=(128, 1))
    assert_product(c, a, b)


COOPERATIVE = """
template <bool ta, bool tb>
void product(device half* a, device bfloat* b, device float* c) {
    constexpr auto descriptor = matmul2d_descriptor(
        8, 24, 12, ta, tb, false, matmul2d_descriptor::mode::multiply_accumulate);
    matmul2d<descriptor, execution_simdgroup> op;
    auto left = op.template get_left_input_cooperative_tensor<half, bfloat, float>();
    auto right = op.template get_right_input_cooperative_tensor<half, bfloat, float>();
    auto sums = op.template get_destination_cooperative_tensor<decltype(left), decltype(right), float>();
    auto memory = tensor(c, dextents<int, 2>(24, 8));
    left.load(tensor(a, dextents<int, 2>(ta ? 8 : 12, ta ? 12 : 8)));
    right.load(tensor(b, dextents<int, 2>(tb ? 12 : 24, tb ? 24 : 12)));
    sums.load(memory);
    op.run(left, right, sums);
    sums.store(memory);
}
"""
TRANSPOSED = {"nt": "false, true", "tn": "true, false"}


@pytest.mark.parametrize("name", ["nt", pytest.param("tn", marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["simd", pytest.param("reference", marks=pytest.mark.slow)])
def test_product_of_cooperative_tensors(engine, name, compiled, rng):
    library = compiled(
        engine,
        f"""{COOPERATIVE}
kernel void all(device half* a, device bfloat* b, device float* c) {{ product<{TRANSPOSED[name]}>(a, b, c); }}
""",
    )
    a = rng.normal(size=(8, 12)).astype(np.float16)
    b = rng.normal(size=(12, 24)).astype(ml_dtypes.bfloat16)
    c = rng.normal(size=(8, 24)).astype(np.float32)
    before = c.astype(np.float64)
    left, right = (
        np.ascontiguousarray(x.T) if tag == "t" else x for x, tag in zip((a, b), name, strict=True)
    )
    library.function("all")(left, right, c, threads=32, group_size=32)
    assert_product(c, a, b, before)


@ENGINES
def test_elements_of_a_product_go_round_the_simdgroups(engine, compiled):
    library = compiled(
        engine,
        """
kernel void owners(device int* out, uint thread_ [[thread_index_in_threadgroup]]) {
    constexpr auto descriptor = matmul2d_descriptor(40, 24, 16);
    matmul2d<descriptor, execution_simdgroups<2>> op;
    using factor = tensor<device half, dextents<int, 2>, tensor_inline>;
    auto c = op.get_destination_cooperative_tensor<factor, factor, float>();
    for (ushort i = 0; i < c.get_capacity(); ++i) {
        auto at = c.get_multidimensional_index(i);
        if (c.is_valid_element(i)) out[at[1] * 24 + at[0]] += 1 + thread_ / 32;
    }
}""",
    )
    out = np.zeros((40, 24), np.int32)
    library.owners(out, threads=64, group_size=64)
    expected = np.repeat([[1, 2]], 40, axis=0).repeat([16, 8], axis=1)
    np.testing.assert_array_equal(out, expected)


@ENGINES
def test_the_layout_of_a_fragment(engine, compiled):
    library = compiled(
        engine,
        """
kernel void layout(device int* out, uint lane [[thread_index_in_simdgroup]]) {
    constexpr auto descriptor = matmul2d_descriptor(16, 16, 16);
    matmul2d<descriptor, execution_simdgroup> op;
    auto a = op.get_left_input_cooperative_tensor<half, half, float>();
    for (ushort i = 0; i < a.get_capacity(); ++i) {
        auto at = a.get_multidimensional_index(i);
        out[lane * 8 + i] = at[1] * 16 + at[0];
    }
}""",
    )
    out = np.zeros((32, 8), np.int32)
    library.layout(out, threads=32, group_size=32)
    # As MLX's nax.h computes it.
    lane, i = np.indices((32, 8))
    quad = lane >> 2
    row = ((quad & 4) | ((lane >> 1) & 3)) + (i >> 2) * 8
    column = ((quad & 2) | (lane & 1)) * 4 + i % 4
    np.testing.assert_array_equal(out, row * 16 + column)


@ENGINES
def test_a_product_as_a_factor(engine, compiled, rng):
    library = compiled(
        engine,
        """
kernel void chain(device half* a, device half* b, device half* c, device float* out) {
    auto A = tensor(a, dextents<int, 2>(32, 16));
    auto B = tensor(b, dextents<int, 2>(32, 16));
    auto C = tensor(c, dextents<int, 2>(24, 16));
    constexpr auto inner = matmul2d_descriptor(16, 16, 32, false, true);
    constexpr auto outer = matmul2d_descriptor(16, 24, 16);
    matmul2d<inner, execution_simdgroup> first;
    matmul2d<outer, execution_simdgroup> second;
    auto scores = first.get_destination_cooperative_tensor<decltype(A), decltype(B), float>();
    first.run(A, B, scores);
    for (auto it = scores.begin(); it != scores.end(); it++) *it = rint(*it);
    auto result = second.get_destination_cooperative_tensor<decltype(A), decltype(C), float>();
    if (second.is_compatible_as_left_input<float, half, float>(scores)) {
        auto weights = second.get_left_input_cooperative_tensor<float, half, float>(scores);
        second.run(weights, C, result);
    }
    result.store(tensor(out, dextents<int, 2>(24, 16)));
}""",
    )
    a, b = (rng.integers(-3, 4, (16, 32)).astype(np.float16) / 4 for _ in range(2))
    c = rng.normal(size=(16, 24)).astype(np.float16)
    out = np.full((16, 24), np.nan, np.float32)
    library.chain(a, b, c, out, threads=32, group_size=32)
    assert_product(out, np.rint(a.astype(np.float64) @ b.astype(np.float64).T), c)


@ENGINES
def test_products_of_integers_are_exact(engine, compiled, rng):
    library = compiled(
        engine,
        """
kernel void multiply(device char* a, device char* b, device int* c) {
    constexpr auto descriptor = matmul2d_descriptor(
        16, 16, dynamic_length_v<int>, false, true, false,
        matmul2d_descriptor::mode::multiply_accumulate);
    matmul2d<descriptor, execution_simdgroup> op;
    op.run(tensor(a, extents<int, 3000, 16>()), tensor(b, extents<int, 3000, 16>()),
           tensor(c, extents<int, 16, 16>()));
}""",
    )
    a, b = (rng.integers(-128, -100, (16, 3000)).astype(np.int8) for _ in range(2))
    c = rng.integers(-9, 9, (16, 16)).astype(np.int32)
    expected = c + a.astype(np.int64) @ b.astype(np.int64).T
    assert np.abs(expected).max() > 2**24
    library.multiply(a, b, c, threads=32, group_size=32)
    np.testing.assert_array_equal(c, expected)


def test_products_of_single_threads(rng):
    library = mtl.library(
        HEADER
        + """
kernel void multiply(device float* a, device float* b, device float* c,
                     uint i [[thread_position_in_grid]]) {
    constexpr auto descriptor = matmul2d_descriptor(3, 4, 5, true, false);
    matmul2d<descriptor, execution_thread> op;
    auto left = op.get_left_input_cooperative_tensor<float, float, float>();
    left.load(tensor(a + i * 15, extents<int, 3, 5>()));
    op.run(left, tensor(b + i * 20, extents<int, 4, 5>()), tensor(c + i * 12, extents<int, 4, 3>()));
}"""
    )
    a = rng.normal(size=(9, 5, 3)).astype(np.float32)
    b = rng.normal(size=(9, 5, 4)).astype(np.float32)
    c = np.full((9, 3, 4), np.nan, np.float32)
    library.multiply(a, b, c, threads=9)
    assert_product(c, a.swapaxes(1, 2), b)


def test_buffers_as_tensors():
    library = mtl.library(
        HEADER
        + """
kernel void corner(tensor<device int, dextents<int, 3>> t, device int* out) {
    out[0] = t[t.get_extent(0) - 1, 1, 0];
}"""
    )
    memory, out = mtl.Buffer(np.arange(24, dtype=np.int32).reshape(2, 3, 4)), np.zeros(1, np.int32)
    library.corner(memory, out, threads=1)
    assert out[0] == 7


def test_texts_without_tensors_have_no_names_of_them():
    library = mtl.library(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "struct tensor { float x; };\n"
        "#if defined(__HAVE_TENSOR__) || __METAL_VERSION__ >= 400\n#error\n#endif\n"
        "kernel void f(device tensor* t, device float* requires) { t->x = 2 * requires[0]; }"
    )
    out = np.zeros(1, np.float32)
    library.f(out, np.full(1, 3, np.float32), threads=1)
    assert out[0] == 6
