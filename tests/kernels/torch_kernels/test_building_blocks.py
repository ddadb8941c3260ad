"""c10/metal's reductions, atomics, errors and random numbers."""

import ml_dtypes
import numpy as np
import pytest
from mlx_tree.agreement import assert_ulps, assert_within, roundoff, sum_error
from torch_headers import driver

TYPES = {
    "float": np.float32, "half": np.float16, "bfloat": ml_dtypes.bfloat16, "int": np.int32,
    "uint": np.uint32, "long": np.int64, "short": np.int16, "char": np.int8, "uchar": np.uint8,
    "bool": np.bool_, "half2": np.dtype((np.float16, 2)), "float2": np.complex64,
}  # fmt: skip


# Sums of longs shuffle among all 32 lanes, also where fewer simdgroups have left a sum: torch relies
# on zeros from lanes that do not run, which the specification leaves open.
@pytest.mark.parametrize(
    ("type_", "size"),
    [
        (type_, size)
        for type_ in ("float", "half", "bfloat", "int", "uint")
        for size in (32, 96, 1024)
    ]
    + [("long", 32), ("long", 1024)],
)
@pytest.mark.sample(2)
def test_reductions_of_a_threadgroup(rng, type_, size):
    dtype = np.dtype(TYPES[type_])
    is_float = dtype.kind in "fV"
    x = rng.normal(1, 0.05, (3, size)) if is_float else rng.integers(1, 3, (3, size))
    x = x.astype(dtype)
    if is_float:
        x[1, size // 2] = np.nan  # reductions of extremes must pass it on
    wide = np.float32 if is_float else dtype
    sums, products = np.zeros(3, wide), np.zeros(3, wide)
    least, largest = np.zeros(3, dtype), np.zeros(3, dtype)
    at_least, at_most = np.zeros(3, np.int64), np.zeros(3, np.int64)
    kernel = driver("reductions")[f"reduce_{type_}"]
    kernel(sums, products, least, largest, at_least, at_most, x, threads=3 * size, group_size=size)
    exact = x.astype(np.float64)
    for row in range(3):
        if is_float and row == 1:
            assert np.all(np.isnan([float(result[row]) for result in (sums, least, largest)]))
            assert at_least[row] == at_most[row] == size // 2
            continue
        if is_float:
            assert_within(
                sums[row : row + 1], exact[row].sum(keepdims=True), sum_error(exact[row], size)
            )
            bound = 2 * size * roundoff(np.float32) * np.abs(exact[row].prod())
            assert abs(float(products[row]) - exact[row].prod()) <= bound
        else:
            assert sums[row] == x[row].sum(dtype=dtype)
            if type_ != "long":  # torch fills in zeros where it multiplies longs
                assert products[row] == np.multiply.reduce(x[row], dtype=dtype)
        assert (least[row], largest[row]) == (x[row].min(), x[row].max())
        assert x[row, at_least[row]] == x[row].min()
        assert x[row, at_most[row]] == x[row].max()


def test_welford(rng):
    x = rng.normal(size=(2, 256)).astype(np.float32) + 3
    out = np.zeros((2, 3), np.float32)
    driver("reductions").welford(out, x, threads=512, group_size=256)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(out[:, 0], exact.mean(1), rtol=256 * roundoff(np.float32))
    np.testing.assert_allclose(out[:, 1], exact.var(1) * 256, rtol=1024 * roundoff(np.float32))
    assert out[:, 2].tolist() == [256, 256]


@pytest.mark.parametrize(
    "type_",
    ["float", "int", "half", "short", "char", "uchar", "bfloat", "bool", "long", "float2"],
)
def test_atomic_addition(rng, type_):
    """Sums of small whole numbers, which every type holds exactly in any order."""
    dtype = np.dtype(TYPES[type_])
    at = rng.integers(0, 8, 256).astype(np.int32)
    x = (rng.integers(0, 2, 256) * (1 + 2j if dtype.kind == "c" else 1)).astype(dtype)
    out = np.zeros(8, dtype)
    driver("atomics")[f"add_{type_}"](out.view(_word(type_)), x, at, threads=256)
    expected = np.zeros(8, np.complex128)
    np.add.at(expected, at, x.astype(np.complex128))
    if type_ == "bool":
        expected = expected != 0
    np.testing.assert_array_equal(out.astype(np.complex128), expected)


def _word(type_):
    """The type of the words of an atomic of a type."""
    own = {"float": np.float32, "int": np.int32, "float2": np.float32}
    return own.get(type_, np.uint32)


@pytest.mark.parametrize("type_", ["float", "int", "half", "short", "char", "bfloat", "bool"])
def test_atomic_maximum(rng, type_):
    dtype = np.dtype(TYPES[type_])
    at = rng.integers(0, 8, 256).astype(np.int32)
    x = rng.integers(0, 2 if type_ == "bool" else 100, 256).astype(dtype)
    out = np.zeros(8, dtype)
    driver("atomics")[f"max_{type_}"](out.view(_word(type_)), x, at, threads=256)
    assert out.tolist() == [x[at == index].max() for index in range(8)]


def test_errors_are_reported_with_their_location():
    record = np.dtype(
        [("file", "S128"), ("func", "S128"), ("message", "S250"), ("line", np.uint32)], align=True
    )
    errors = np.zeros(1, np.dtype([("count", np.uint32), ("message", record, 30)], align=True))
    x = np.array([3, -14, 0, 5], np.int32)
    driver("atomics").complain(errors, x, threads=4)
    assert errors["count"][0] == 1
    message = errors["message"][0, 0]
    assert message["message"] == b"element 1 is -14"
    assert message["func"] == b"complain"
    assert message["file"].endswith(b"atomics.metal")


def _philox(seed, index):
    """Philox4x32 with nine rounds after the key's nine steps, by the paper."""
    low = 0xFFFFFFFF
    counter = [0, 0, index >> 32 & low, index & low]
    key = [seed >> 32 & low, seed & low]
    for _ in range(9):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (b >> 32) ^ counter[1] ^ key[0],
            b & low,
            (a >> 32) ^ counter[3] ^ key[1],
            a & low,
        ]
        key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
    # mulhilo gives the high word first
    return counter


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 17])
def test_random_numbers(seed):
    lib = driver("random")
    n = 500
    bits = np.zeros((n, 4), np.uint32)
    lib.bits(bits, seed, threads=n)
    assert bits.tolist() == [_philox(seed, i) for i in range(n)]
    uniform, normal = np.zeros(n, np.float32), np.zeros(n, np.float32)
    lib.uniform_(uniform, seed, threads=n)
    lib.normal(normal, seed, threads=n)
    u, v = (_unit(bits[:, column]) for column in (0, 1))
    np.testing.assert_array_equal(uniform, u)
    exact = np.sqrt(-2 * np.log(1 - u.astype(np.float64))) * np.cos(
        2 * np.pi * (1 - v.astype(np.float64))
    )
    assert_within(normal, exact, 40 * roundoff(np.float32) * np.maximum(1, np.abs(exact)))
    integers = np.zeros(n, np.int64)
    lib.integers(integers, seed, (-5, 17), threads=n)
    assert integers.tolist() == [-5 + int(np.float32(x * np.float32(22))) for x in u]


def _unit(bits):
    """c10's uint32_to_uniform_float: the low 31 bits times the float below 2^-31."""
    return (bits & np.uint32(0x7FFFFFFF)).astype(np.float32) * np.float32(4.6566127342e-10)


def test_cubic_weights(rng):
    t = rng.random(100).astype(np.float32)
    y = np.zeros((100, 4), np.float32)
    driver("parameters").cubic(y, t, threads=100)
    x, a = t.astype(np.float64), -0.75

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    exact = np.stack([far(x + 1), near(x), near(1 - x), far(2 - x)], 1)
    assert_within(y, exact, 64 * roundoff(np.float32))
    assert_ulps(y.sum(1, dtype=np.float64).astype(np.float32), np.ones(100), 64)
