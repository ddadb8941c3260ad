"""The utilities that every body of a `metal_kernel` finds declared."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl

I = "uint i = thread_position_in_grid.x;"  # noqa: E741


def outputs(source, n, dtypes=(np.int64,), inputs=None, header="", grid=None, **options):
    """Arrays ``y0``, ``y1`` ... of `n` elements each, one per dtype."""
    inputs = inputs or {}
    names = [f"y{k}" for k in range(len(dtypes))]
    kernel = mtl.metal_kernel("utils", [*inputs], names, source, header)
    return kernel(
        inputs=[*inputs.values()], grid=n if grid is None else grid, output_shapes=[[n]] * len(names),
        output_dtypes=dtypes, init_value=0, **options,
    )  # fmt: skip


# -- locations


@st.composite
def layouts(draw, least=1):
    """A shape, and element strides for it (two to be different)."""
    shape = draw(st.lists(st.integers(1, 4), min_size=least, max_size=4))
    stride = st.integers(-50, 50)
    strides = [[draw(stride) for _ in shape] for _ in range(3)]
    return shape, strides


def location_inputs(shape, strides):
    """Arrays that stand for a shape and three arrays' strides."""
    inputs = {"s": np.array(shape, np.int32)}
    inputs |= {name: np.array(each, np.int64) for name, each in zip("abc", strides, strict=True)}
    return inputs


def expected_locations(shape, strides):
    indices = np.array(list(np.ndindex(*shape)))
    return [indices @ np.array(each) for each in strides]


@given(layouts())
def test_locations_of_flat_indices(layout):
    shape, strides = layout
    n = int(np.prod(shape))
    source = f"""{I}
        y0[i] = elem_to_loc(int64_t(i), s, a, s_shape[0]);
        y1[i] = elem_to_loc(int(i), s, b, s_shape[0]);
        y2[i] = int(elem_to_loc(i, s, c, s_shape[0]));"""
    actual = outputs(source, n, [np.int64] * 3, location_inputs(shape, strides))
    np.testing.assert_array_equal(actual, expected_locations(shape, strides))


@given(layouts())
def test_locations_of_positions_in_a_grid(layout):
    shape, strides = layout
    n = int(np.prod(shape))
    source = """
        uint3 p = thread_position_in_grid;
        uint i = p.x + threads_per_grid.x * (p.y + threads_per_grid.y * p.z);
        y0[i] = elem_to_loc(p, s, a, s_shape[0]);
        vec<int64_t, 2> two = elem_to_loc_2_nd(p, s, a, b, s_shape[0]);
        vec<int, 3> three = elem_to_loc_3_nd<int>(p, s, a, b, c, s_shape[0]);
        y1[i] = two.x == y0[i] && three.x == y0[i] && three.y == two.y ? two.y : 1000000;
        y2[i] = three.z;"""
    x, y = (*shape[::-1], 1)[:2]
    grid = (x, y, int(np.prod(shape[:-2])))
    actual = outputs(source, n, [np.int64] * 3, location_inputs(shape, strides), grid=grid)
    np.testing.assert_array_equal(actual, expected_locations(shape, strides))


def test_locations_of_few_axes():
    source = """
        uint3 p = thread_position_in_grid;
        uint i = p.x + threads_per_grid.x * (p.y + threads_per_grid.y * p.z);
        y0[i] = elem_to_loc_1(p.x, a[2]);
        y1[i] = elem_to_loc_2(uint2(p.x, p.y), a + 1);
        y2[i] = elem_to_loc_3(p, a);"""
    shape, strides = (2, 3, 4), [-100, 30, 7]
    actual = outputs(source, 24, [np.int64] * 3, {"a": np.array(strides, np.int64)}, grid=(4, 3, 2))
    z, y, x = np.array(list(np.ndindex(*shape))).T
    np.testing.assert_array_equal(actual, [7 * x, 30 * y + 7 * x, -100 * z + 30 * y + 7 * x])


@given(layouts())
def test_walking_an_array(layout):
    shape, strides = layout
    n = int(np.prod(shape))
    source = """
        LoopedElemToLoc<4, int64_t> walk(s_shape[0]);
        for (int k = 0; k < y0_size; ++k, walk.next(s, a)) y0[k] = walk.location();
        LoopedElemToLoc<4, int, false> leap(s_shape[0]);
        for (int k = 0; k < y0_size; k += 2, leap.next(2, s, b)) y1[k] = leap.location();"""
    inputs = location_inputs(shape, strides) | {"y0_size": n}
    walked, leapt = outputs(source, n, [np.int64] * 2, inputs, grid=1)
    expected = expected_locations(shape, strides)
    np.testing.assert_array_equal(walked, expected[0])
    np.testing.assert_array_equal(leapt[::2], expected[1][::2])


# -- numbers


def test_quotients_rounded_up():
    source = "y0[0] = ceildiv(17, 4u); y0[1] = ceildiv(16, 4); y0[2] = ceildiv(0ul, 3); y0[3] = ceildiv(short(9), 2);"
    assert outputs(source, 4)[0].tolist() == [5, 4, 0, 5]


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [("float", np.float32), ("float16_t", np.float16), ("bfloat16_t", ml_dtypes.bfloat16)],
)
def test_limits_of_floats(type_, dtype):
    source = f"typedef Limits<{type_}> L; y0[0] = L::max; y0[1] = L::min; y0[2] = L::finite_max; y0[3] = L::finite_min;"
    largest = ml_dtypes.finfo(dtype).max
    assert (
        outputs(source, 4, [dtype])[0] == np.array([np.inf, -np.inf, largest, -largest], dtype)
    ).all()


@pytest.mark.parametrize("sign", ["", "u"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.sample(2)
def test_limits_of_integers(sign, bits):
    dtype = np.dtype(f"{sign}int{bits}")
    source = f"typedef Limits<{dtype}_t> L; y0[0] = L::max; y0[1] = L::min; y0[2] = L::finite_max; y0[3] = L::finite_min;"
    limits = np.iinfo(dtype)
    assert outputs(source, 4, [dtype])[0].tolist() == [limits.max, limits.min] * 2


def test_other_limits():
    source = """
        y0[0] = Limits<bool>::max; y0[1] = Limits<bool>::min;
        y1[0] = Limits<complex64_t>::max; y1[1] = Limits<complex64_t>::min;"""
    booleans, complexes = outputs(source, 2, [bool, np.complex64])
    assert booleans.tolist() == [True, False]
    assert complexes.tolist() == [complex(np.inf, np.inf), complex(-np.inf, -np.inf)]


def test_log1p(rng):
    x = np.concatenate([
        np.exp(rng.uniform(-30, 30, 500)), -1 + np.exp(rng.uniform(-15, 0, 200)),
        -np.exp(rng.uniform(-30, -1, 200)), [0.0, -0.0, -1, -2, np.inf, np.nan],
    ]).astype(np.float32)  # fmt: skip
    y, h = outputs(f"{I} y0[i] = log1p(x[i]); y1[i] = log1p(float16_t(x[i]));", x.size,
                   [np.float32, np.float16], {"x": x})  # fmt: skip
    with np.errstate(all="ignore"):
        expected = np.log1p(x.astype(np.float64)).astype(np.float32)
        of_half = np.log1p(x.astype(np.float16).astype(np.float64)).astype(np.float16)
    finite = np.isfinite(expected)
    distance = np.abs(y[finite] - expected[finite]) / np.spacing(np.abs(expected[finite]))
    assert distance.max() <= 4
    np.testing.assert_array_equal(y[~finite], expected[~finite])
    assert (np.signbit(y) == np.signbit(expected))[~np.isnan(expected)].all()
    np.testing.assert_allclose(h, of_half, rtol=2**-10)


# -- complex numbers

COMPLEX = st.complex_numbers(max_magnitude=1e18, min_magnitude=1e-18, allow_nan=False, width=64)


@given(st.lists(st.tuples(COMPLEX, COMPLEX), min_size=1, max_size=8))
def test_complex_arithmetic(pairs):
    a, b = np.array(pairs, np.complex64).T
    source = f"""{I}
        y0[i] = a[i] + b[i]; y1[i] = a[i] - -b[i]; y2[i] = a[i] * b[i]; y3[i] = a[i] / b[i];
        y4[i] = 2 * a[i] + b[i] / 4.0f - half(0.5);"""
    results = outputs(source, len(a), [np.complex64] * 5, {"a": a, "b": b})
    a, b = a.astype(complex), b.astype(complex)
    operands = abs(a) + abs(b) + 0.5
    for actual, expected, scale in zip(
        results,
        (a + b, a + b, a * b, a / b, 2 * a + b / 4 - 0.5),
        (operands, operands, abs(a * b), abs(a / b), 2 * operands),
        strict=True,
    ):
        assert (abs(actual - expected) <= 4 * np.finfo(np.float32).eps * scale).all()


def test_complex_division_does_not_overflow():
    x = np.array([3e30 + 4e30j, 1e-30 + 1e-30j], np.complex64)
    (y,) = outputs(f"{I} y0[i] = x[i] / x[i];", 2, [np.complex64], {"x": x})
    assert np.abs(y - 1).max() <= 2 * np.finfo(np.float32).eps


def test_complex_order():
    values = np.array([complex(*p) for p in itertools.product([-1, 0, 2], repeat=2)], np.complex64)
    a, b = (v.reshape(-1) for v in np.meshgrid(values, values))
    source = f"{I} y0[i] = (a[i] < b[i]) + 2 * (a[i] <= b[i]) + 4 * (a[i] > b[i]) + 8 * (a[i] >= b[i]) + 16 * (a[i] == b[i]) + 32 * (a[i] != b[i]);"
    (y,) = outputs(source, a.size, [np.int64], {"a": a, "b": b})
    expected = (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b) + 32 * (a != b)
    np.testing.assert_array_equal(y, expected)


def test_complex_conversions():
    z = np.array([1.75 - 2j] * 8, np.complex64)
    source = """
        float f = z[0]; half h = z[1]; int n = c; complex64_t one = 1; complex64_t w = z[2];
        w.imag = f; threadgroup complex64_t shared; shared = w;
        y0[0] = f; y0[1] = h; y0[2] = n; y0[3] = one; y0[4] = shared;
        y0[5] = cast_to<float>(z[0]); y0[6] = log1p(z[0]); y0[7] = complex64_t(2, 3);"""
    (y,) = outputs(source, 8, [np.complex64], {"z": z, "c": -3 + 1j}, grid=1)
    log1p = np.log(1 + z[0].astype(complex))
    assert y[:6].tolist() == [1.75, 1.75, -3, 1, 1.75 + 1.75j, 1.75]
    assert abs(y[6] - log1p) <= 4 * np.finfo(np.float32).eps
    assert y[7] == 2 + 3j


# -- simdgroups, types and macros


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.bool_, np.complex64])
def test_moves_between_the_lanes_of_a_simdgroup(dtype, rng):
    x = rng.integers(0, 2 if dtype is np.bool_ else 2**62, 32).astype(dtype)
    if dtype is np.complex64:
        x.imag = rng.standard_normal(32)
    source = f"""{I} auto v = x[i], filling = x[3];
        y0[i] = simd_shuffle(v, 31 - i); y1[i] = simd_shuffle_xor(v, 5);
        y2[i] = simd_shuffle_and_fill_up(v, filling, 3);
        y3[i] = simd_shuffle_and_fill_down(v, filling, 3);
        y4[i] = simd_shuffle_up(v, 1); y5[i] = simd_shuffle_down(v, 1);"""
    actual = outputs(source, 32, [dtype] * 6, {"x": x})
    np.testing.assert_array_equal(actual[0], x[::-1])
    np.testing.assert_array_equal(actual[1], x[np.arange(32) ^ 5])
    np.testing.assert_array_equal(actual[2], [*x[[3, 3, 3]], *x[:-3]])
    np.testing.assert_array_equal(actual[3], [*x[3:], *x[[3, 3, 3]]])
    np.testing.assert_array_equal(actual[4][1:], x[:-1])
    np.testing.assert_array_equal(actual[5][:-1], x[1:])


def test_types_and_macros():
    header = """
        template <typename T> [[kernel]] void other(device T* x [[buffer(0)]]) { x[0] = 1; }
        instantiate_kernel("other_float", other, float)
        constant mlx::os_log logger("metalloid", "test");
    """
    source = """
        static_assert(is_same_v<ConditionalType<true, int, float>::type, int>);
        static_assert(is_same_v<ConditionalType<false, int, float>::type, float>);
        static_assert(is_same_v<float16_t, half> && is_same_v<bfloat16_t, bfloat>);
        logger.log_debug("value %d", 1);
        y0[0] = cast_to<int>(2.75f) + metal::exp(bfloat16_t(0));"""
    assert outputs(source, 1, header=header)[0].tolist() == [3]
