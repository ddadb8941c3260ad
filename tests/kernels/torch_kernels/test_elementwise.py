"""c10/metal/indexing.h: every kernel its macros register, dense, strided and with casts."""

import ml_dtypes
import numpy as np
import pytest

from metalloid import MetalloidError

DRIVER = "elementwise"
DTYPES = {
    "float": np.float32, "half": np.float16, "bfloat": ml_dtypes.bfloat16, "float2": np.complex64,
    "long": np.int64, "uchar": np.uint8, "int": np.int32, "bool": np.bool_,
}  # fmt: skip
#: torch's numbers of its types, as in c10/metal/common.h
SCALAR_TYPES = {"int": 3, "half": 5, "float": 6}
N = 1003  # no multiple of the four elements a thread takes


def _values(rng, type_, shape):
    dtype = np.dtype(DTYPES[type_])
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(1, 100, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


@pytest.mark.slow
def test_every_registered_kernel_compiles(library):
    failures = []
    for name in library:
        try:
            library.function(name)
        except MetalloidError as error:
            failures.append(f"{name}: {error}")
    assert len(library) == 180
    assert failures == []


@pytest.mark.parametrize("type_", ["float2", "long"])
def test_unary(library, rng, type_):
    x = _values(rng, type_, N)
    y, z = np.zeros_like(x), np.zeros_like(x)
    library[f"neg_dense_{type_}_{type_}"](y, x, N, threads=-(-N // 4))
    library[f"neg_dense_scalar_{type_}_{type_}"](z, x, threads=N)
    np.testing.assert_array_equal(y, -x)
    np.testing.assert_array_equal(z, -x)


def test_unary_strided(library, rng):
    """A transposed input: strides in bytes, the innermost dimension first."""
    x = _values(rng, "long", (7, 5))
    y = np.zeros((5, 7), np.int64)
    sizes = np.array([7, 5], np.int64)
    library.neg_strided_long_long(
        y, x, sizes, np.array(x.strides, np.int64), np.array([8, 56], np.int64), 2, threads=(7, 5)
    )
    np.testing.assert_array_equal(y, -x.T)


def test_unary_into_another_type(library, rng):
    """A kernel that is told the type of its output when it is launched."""
    x = _values(rng, "long", N)
    for type_ in ("float", "int"):
        y = np.zeros(N, DTYPES[type_])
        library.neg_dense_castout_long(y, x, (y.itemsize, SCALAR_TYPES[type_]), threads=N)
        np.testing.assert_array_equal(y, -x)


@pytest.mark.parametrize("type_", ["float", "half", "bfloat", "float2", "long", "uchar"])
def test_binary_dense(library, rng, type_):
    a, b = _values(rng, type_, N), _values(rng, type_, N)
    y = np.zeros_like(a)
    # Halves and bfloats are added as floats and rounded once, which is what NumPy does.
    expected = a + b
    library[f"add_dense_{type_}_{type_}"](y, a, b, threads=N)
    np.testing.assert_array_equal(y, expected)
    y[...] = 0
    library[f"add_dense_ilp4_{type_}_{type_}"](y, a, b, N, threads=-(-N // 4))
    np.testing.assert_array_equal(y, expected)
    library[f"add_dense_scalar_{type_}_{type_}"](y, a, b[:1], threads=N)
    np.testing.assert_array_equal(y, a + b[0])


@pytest.mark.parametrize("type_", ["float", "long"])
def test_binary_strided(library, rng, type_):
    """A transposed operand and one with a stride of zero."""
    a, b = _values(rng, type_, (7, 5)), _values(rng, type_, 7)
    y = np.zeros((5, 7), a.dtype)
    item = a.itemsize
    strides = [(item, 7 * item), (5 * item, item), (item, 0)]
    library[f"add_strided_{type_}_{type_}"](
        y, a, b, np.array([7, 5], np.int64), *(np.array(s, np.int64) for s in strides), (2, 0, 0),
        threads=35,
    )  # fmt: skip
    np.testing.assert_array_equal(y, a.T + b)


def test_floor_division(library, rng):
    a = rng.integers(-50, 50, N).astype(np.int32)
    b = rng.choice([-7, -2, 3, 5], N).astype(np.int32)
    y = np.zeros_like(a)
    library.div_floor_dense_int_int(y, a, b, threads=N)
    np.testing.assert_array_equal(y, a // b)


def test_comparison(library, rng):
    a, b = _values(rng, "float", N), _values(rng, "float", N)
    y = np.zeros(N, np.bool_)
    library.lt_dense_bool_float(y, a, b, threads=N)
    np.testing.assert_array_equal(y, a < b)


def test_with_a_factor(library, rng):
    a, b = _values(rng, "long", N), _values(rng, "long", N)
    y = np.zeros_like(a)
    library.add_alpha_dense_long_long_long(y, a, b, 3, threads=N)
    np.testing.assert_array_equal(y, a + 3 * b)
    x, z = _values(rng, "float", N), np.zeros(N, np.float32)
    library.scale_dense_float_float_float(z, x, 0.25, threads=N)
    np.testing.assert_array_equal(z, x * np.float32(0.25))
