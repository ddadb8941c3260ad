"""MLX's unary, binary, ternary, copy and arange kernels on arrays, launched as MLX does."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from mlx_headers import kernel
from mlx_tree.agreement import (
    BFLOAT,
    FLOAT,
    HALF,
    NAMES,
    SIZES,
    assert_ulps,
    assert_within,
    ceildiv,
    element_strides,
)

#: Bytes that a thread of a contiguous kernel handles: WorkPerThread of utils.h.
_BYTES_PER_THREAD = 8
INT = np.dtype(np.int32)


def per_thread(dtype):
    return _BYTES_PER_THREAD // dtype.itemsize


def square(x):
    return x * x


def sigmoid(x):
    return scipy.special.expit(x)


# Operation, oracle, range of the arguments, bound in ulps. The bounds of single functions are those
# of the Metal specification for `precise`; composed ones add up as noted.
UNARY = [
    ("Abs", np.abs, (-9, 9), 0),
    ("ArcCos", np.arccos, (-1, 1), 4),
    ("ArcCosh", np.arccosh, (1, 100), 4),
    ("ArcSin", np.arcsin, (-1, 1), 4),
    ("ArcSinh", np.arcsinh, (-100, 100), 4),
    ("ArcTan", np.arctan, (-100, 100), 5),
    ("ArcTanh", np.arctanh, (-1, 1), 5),
    ("Ceil", np.ceil, (-9, 9), 0),
    ("Cos", np.cos, (-100, 100), 4),
    ("Cosh", np.cosh, (-80, 80), 4),
    ("Exp", np.exp, (-100, 80), 4),
    ("Floor", np.floor, (-9, 9), 0),
    ("Log", np.log, (0, 1e6), 4),
    ("Log10", np.log10, (0, 1e6), 4),
    ("Log2", np.log2, (0, 1e6), 4),
    ("Negative", np.negative, (-9, 9), 0),
    ("Round", np.rint, (-9, 9), 0),
    ("Rsqrt", lambda x: 1 / np.sqrt(x), (0, 100), 2),
    ("Sign", np.sign, (-9, 9), 0),
    ("Sin", np.sin, (-100, 100), 4),
    ("Sinh", np.sinh, (-80, 80), 4),
    ("Sqrt", np.sqrt, (0, 1e6), 0.5),
    ("Square", square, (-9, 9), 0.5),
    ("Tan", np.tan, (-100, 100), 6),
    ("Tanh", np.tanh, (-20, 20), 5),
    # MLX's own: one logarithm, a difference that is exact or errs by half an ulp, a quotient and a
    # product.
    ("Log1p", np.log1p, (-0.9, 1e6), 6),
]  # fmt: skip


def run_unary(op, x, out_dtype=None, name=None):
    out = np.empty(x.shape, out_dtype or x.dtype)
    run = kernel("unary", f"unary_v_{op}_{name or NAMES[x.dtype]}")
    run(x, out, x.size, threads=ceildiv(x.size, per_thread(x.dtype)))
    return out


@pytest.mark.parametrize(("op", "oracle", "limits", "ulps"), UNARY, ids=[row[0] for row in UNARY])
def test_unary(op, oracle, limits, ulps, rng):
    for size in (1, 31, 4097):
        x = rng.uniform(*limits, size).astype(np.float32)
        assert_ulps(run_unary(op, x), oracle(x.astype(np.float64)), ulps)


def test_unary_special_values():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        for op, oracle, _, _ in UNARY:
            if op != "Sign":  # NaN compares false: MLX gives 0
                expected = oracle(x.astype(np.float64)).astype(np.float32)
                got = run_unary(op, x)
                np.testing.assert_array_equal(got, expected, err_msg=op)
    np.testing.assert_array_equal(np.signbit(run_unary("Negative", x)), ~np.signbit(x))


def test_sigmoid(rng):
    # y = 1 / (1 + exp |x|) errs by 4 ulps of exp and three roundings, and 1 - y by the same amount
    # relative to a number that is at least as large.
    x = rng.uniform(-80, 80, 4097).astype(np.float32)
    assert_ulps(run_unary("Sigmoid", x), sigmoid(x.astype(np.float64)), 6)


#: What MLX's expm1f leaves out of log 2 when it reduces its argument: the low part.
_LOW_PART_OF_LOG_2 = 1.42860677e-6


def expm1_error(x):
    """Error of expm1f at x: the missing part once per power of two, and one ulp."""
    powers = np.rint(x / np.log(2))
    # Terms of the second order are covered by a tenth of the first.
    return 1.1 * np.abs(powers) * _LOW_PART_OF_LOG_2 * np.exp(x) + 2.0**-23 * np.abs(np.expm1(x))


def test_expm1(rng):
    x = rng.uniform(-20, 80, 4097).astype(np.float32)
    wide = x.astype(np.float64)
    assert_within(run_unary("Expm1", x), np.expm1(wide), expm1_error(wide))


def test_error_function(rng):
    # Two polynomials of one ulp; the outer one ends in expm1f of log(1 - erf).
    x = rng.uniform(-4, 4, 4097).astype(np.float32)
    exact = scipy.special.erf(x.astype(np.float64))
    tail = expm1_error(np.log1p(-np.abs(exact)))
    assert_within(run_unary("Erf", x), exact, tail + 2.0**-23 * np.abs(exact))


def test_inverse_error_function(rng):
    # Giles' single-precision polynomials: relative error 3.5e-7, which is 6 ulps.
    x = rng.uniform(-0.999, 0.999, 4097).astype(np.float32)
    assert_ulps(run_unary("ErfInv", x), scipy.special.erfinv(x.astype(np.float64)), 6)


@pytest.mark.parametrize("dtype", [HALF, BFLOAT], ids=NAMES.get)
@pytest.mark.parametrize(
    ("op", "oracle", "limits", "ulps"),
    [
        # Computed in float and rounded once: half an ulp and a little.
        ("Exp", np.exp, (-9, 9), 0.51),
        ("Log", np.log, (0.01, 100), 0.51),
        ("Sqrt", np.sqrt, (0, 100), 0.51),
        ("Tanh", np.tanh, (-4, 4), 0.51),
        # exp, sum, quotient and difference, each rounded: two ulps at most.
        ("Sigmoid", sigmoid, (-9, 9), 2),
    ],
)
def test_unary_of_16_bits(op, oracle, limits, ulps, dtype, rng):
    for size in (1, 33, 1000):
        x = rng.uniform(*limits, size).astype(dtype)
        assert_ulps(run_unary(op, x), oracle(x.astype(np.float64)), ulps)


@pytest.mark.parametrize(
    ("op", "oracle"),
    [("ArcCos", np.arccos), ("Conjugate", np.conj), ("Exp", np.exp), ("Log", np.log),
     ("Sqrt", np.sqrt), ("Tanh", np.tanh)],
)  # fmt: skip
def test_unary_of_complex(op, oracle, rng):
    # Away from the axes, near which MLX's textbook formulas cancel.
    parts = rng.uniform(0.3, 0.7, (2, 1000)) * rng.choice([-1, 1], (2, 1000))
    z = (parts[0] + 1j * parts[1]).astype(np.complex64)
    exact = oracle(z.astype(np.complex128))
    error = np.abs(run_unary(op, z, name="complex") - exact)
    # At most sixteen rounded operations, none of which amplifies what came before.
    assert np.max(error / np.maximum(np.abs(exact), 1)) <= 16 * 2.0**-24


def test_unary_between_types(rng):
    integers = rng.integers(-(2**62), 2**62, 33)
    np.testing.assert_array_equal(run_unary("Abs", integers, name="int64"), np.abs(integers))
    words = integers.astype(np.int32)
    np.testing.assert_array_equal(run_unary("BitwiseInvert", words, name="int"), ~words)
    bits = rng.integers(0, 2, 33).astype(bool)
    np.testing.assert_array_equal(run_unary("LogicalNot", bits, name="bool"), ~bits)
    z = (rng.normal(size=33) + 1j * rng.normal(size=33)).astype(np.complex64)
    np.testing.assert_array_equal(run_unary("Real", z, np.float32, "complex"), z.real)
    np.testing.assert_array_equal(run_unary("Imag", z, np.float32, "complex"), z.imag)


def test_eight_bit_floats():
    every = np.arange(256, dtype=np.uint8)
    numbers = run_unary("FromFP8", every, np.float32, "uchar")
    expected = every.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    finite = np.isfinite(expected)  # MLX has no NaN among them: 480 stands there
    np.testing.assert_array_equal(numbers[finite], expected[finite])
    between = np.linspace(-440, 440, 1001, dtype=np.float32)
    rounded = run_unary("ToFP8", between, np.uint8, "float")
    np.testing.assert_array_equal(rounded, between.astype(ml_dtypes.float8_e4m3fn).view(np.uint8))


def test_unary_large_and_general(rng):
    x = rng.normal(size=4097).astype(np.float32)
    out = np.empty_like(x)
    # More than 2^32 elements would be a grid of two dimensions; a small one does the same.
    rows = 7
    columns = ceildiv(ceildiv(x.size, 2), rows)
    kernel("unary", "unary_v2_Square_float")(x, out, x.size, threads=(columns, rows))
    np.testing.assert_array_equal(out, x * x)
    view = rng.normal(size=(5, 7, 9)).astype(np.float32).transpose(2, 0, 1)
    for name, work in (("unary_g_Square_float", 1), ("unary_g_n4_Square_float", 4)):
        out = np.empty(view.shape, np.float32)
        shape = np.array(view.shape, np.int32)
        grid = (ceildiv(view.shape[2], work), view.shape[1], view.shape[0])
        source, ndim = view.base.reshape(-1), np.array([3], np.int32)
        kernel("unary", name)(source, out, shape, element_strides(view), ndim, threads=grid)
        np.testing.assert_array_equal(out, view * view)


def divided(x, y):
    return np.floor((x / y).astype(x.dtype))


# Operation, oracle, ulps. Half an ulp is a single rounding.
BINARY = [
    ("Add", np.add, 0.5),
    ("Subtract", np.subtract, 0.5),
    ("Multiply", np.multiply, 0.5),
    ("Divide", np.divide, 0.5),
    ("Maximum", np.maximum, 0),
    ("Minimum", np.minimum, 0),
]


def run_binary(op, x, y, out_dtype=None, name=None):
    out = np.empty(x.shape, out_dtype or x.dtype)
    run = kernel("binary", f"binary_vv_{op}_{name or NAMES[x.dtype]}")
    run(x, y, out, x.size, threads=ceildiv(x.size, per_thread(x.dtype)))
    return out


@pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
@pytest.mark.parametrize(("op", "oracle", "ulps"), BINARY, ids=[row[0] for row in BINARY])
def test_binary(op, oracle, ulps, dtype, rng):
    for size in SIZES:
        x, y = rng.normal(size=(2, size)).astype(dtype)
        exact = oracle(x.astype(np.float64), y.astype(np.float64))
        assert_ulps(run_binary(op, x, y), exact, ulps)


@pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
def test_comparison_and_remainder(dtype, rng):
    x, y = rng.uniform(-9, 9, (2, 1000)).astype(dtype)
    np.testing.assert_array_equal(run_binary("Less", x, y, bool), x < y)
    exact = np.mod(x.astype(np.float64), y.astype(np.float64))
    assert_ulps(run_binary("Remainder", x, y), exact, 0.5)
    quotient = (x.astype(np.float32) / y.astype(np.float32)).astype(dtype).astype(np.float64)
    assert_ulps(run_binary("FloorDivide", x, y), np.floor(quotient), 0)


def test_binary_of_integers(rng):
    x, y = rng.integers(-1000, 1000, (2, 1000)).astype(np.int32)
    y[y == 0] = 7
    for op, oracle in (
        ("Add", np.add), ("Subtract", np.subtract), ("Multiply", np.multiply),
        ("FloorDivide", np.floor_divide), ("Remainder", np.mod), ("Maximum", np.maximum),
        ("Minimum", np.minimum), ("Less", np.less),
    ):  # fmt: skip
        expected = oracle(x, y)
        np.testing.assert_array_equal(run_binary(op, x, y, expected.dtype, "int"), expected, op)
    base, exponent = rng.integers(-5, 5, 1000), rng.integers(0, 9, 1000)
    powers = run_binary("Power", base.astype(np.int32), exponent.astype(np.int32), name="int")
    np.testing.assert_array_equal(powers, base**exponent)
    u, v = x.astype(np.uint32), (np.abs(y) % 32).astype(np.uint32)
    np.testing.assert_array_equal(run_binary("BitwiseXor", u, v, name="uint"), u ^ v)
    np.testing.assert_array_equal(run_binary("LeftShift", u, v, name="uint"), u << v)
    p, q = x > 0, y > 0
    np.testing.assert_array_equal(run_binary("LogicalAnd", p, q, name="bool"), p & q)


def test_binary_functions(rng):
    x, y = rng.uniform(0.1, 9, (2, 4097)).astype(np.float32)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    assert_ulps(run_binary("Power", x, y), wide_x**wide_y, 16)
    assert_ulps(run_binary("ArcTan2", x - 4, y - 4), np.arctan2(x - 4, y - 4, dtype=np.float64), 6)
    # max + log1p(exp(min - max)): the last rounding, and errors of a few ulps of a smaller term.
    assert_ulps(run_binary("LogAddExp", x, y), np.logaddexp(wide_x, wide_y), 3)
    a, b = (x[:100].astype(BFLOAT), y[:100].astype(BFLOAT))
    exact = np.logaddexp(a.astype(np.float64), b.astype(np.float64))
    assert_ulps(run_binary("LogAddExp", a, b), exact, 1.5)
    nans = np.array([np.nan, 1, np.nan, 2], np.float32)
    same = run_binary("NaNEqual", nans, np.array([np.nan, 1, 3, 4], np.float32), bool)
    assert same.tolist() == [True, True, False, False]


def test_binary_of_complex(rng):
    z, w = (rng.normal(size=(2, 99)) + 1j * rng.normal(size=(2, 99))).astype(np.complex64)
    for op, oracle, ulps in (
        ("Multiply", np.multiply, 2), ("Divide", np.divide, 6), ("Power", np.power, 64)
    ):  # fmt: skip
        expected = oracle(z.astype(np.complex128), w.astype(np.complex128))
        error = np.abs(run_binary(op, z, w, name="complex") - expected) / np.abs(expected)
        assert np.max(error) <= ulps * 2.0**-23, op


def test_binary_forms(rng):
    size = 1000
    x, y = rng.normal(size=(2, size)).astype(np.float32)
    one = x[:1].copy()
    forms = {"ss": (one, one), "sv": (one, y), "vs": (x, one), "sv2": (one, y), "vs2": (x, one),
             "vv2": (x, y)}  # fmt: skip
    for form, (a, b) in forms.items():
        out = np.empty(1 if form == "ss" else size, np.float32)
        run = kernel("binary", f"binary_{form}_Subtract_float")
        sizes = () if form == "ss" else (size,)
        threads = {"s": 1, "v": size // 2, "2": (size // 4, 2)}[form[-1]]
        run(a, b, out, *sizes, threads=out.size if form == "vs" else threads)
        np.testing.assert_array_equal(out, a - b, err_msg=form)


@pytest.mark.parametrize("ndim", [1, 2, 3, "", "n2"])
def test_binary_general(ndim, rng):
    """Operands that are transposed and broadcast: strides of any kind, also 0."""
    shape = (7,) if ndim == 1 else (5, 7) if ndim == 2 else (3, 5, 7)
    a = rng.normal(size=shape[::-1]).astype(np.float32).T
    b = np.broadcast_to(rng.normal(size=shape[-1:]).astype(np.float32), shape)
    out = np.empty(shape, np.float32)
    strides = element_strides(a), element_strides(b)
    grid = shape[::-1]
    if ndim == 1:
        arguments = tuple(int(s[0]) for s in strides)
    elif ndim in (2, 3):
        arguments = strides
    else:
        arguments = (np.array(shape, np.int32), *strides, 3)
        grid = (ceildiv(grid[0], 2), *grid[1:]) if ndim == "n2" else grid
    form = "g_n2" if ndim == "n2" else f"g_nd{ndim}" if ndim else "g"
    source = a.T.reshape(-1), np.ascontiguousarray(b.reshape(-1, shape[-1])[0])
    kernel("binary", f"binary_{form}_Subtract_float")(*source, out, *arguments, threads=grid)
    np.testing.assert_array_equal(out, a - b)
