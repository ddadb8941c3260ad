"""MLX's matrix-vector products, attention for single queries, and transforms."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from mlx_headers import kernel
from mlx_tree.agreement import (
    BFLOAT,
    FLOAT,
    HALF,
    NAMES,
    assert_within,
    ceildiv,
    roundoff,
    sum_error,
)

SIMD = 32
DTYPES = pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
#: Some of these kernels have a barrier inside ``if (lane == 0)``: only some threads of a simdgroup
#: come there, and the others have returned by then.
pytestmark = pytest.mark.usefixtures("lenient_barriers")
ONE, ZERO = np.array([1], np.int32), np.array([0], np.int64)


def product_error(matrix, vector, dtype):
    """Products of 16-bit numbers are exact in float, those of float round; then they are added."""
    terms = matrix.astype(np.float64) * vector.astype(np.float64)
    size = matrix.shape[-1]
    error = sum_error(terms, size + 1)
    return error + roundoff(dtype) * (np.abs(terms.sum(axis=-1)) + error)


def run_gemv(name, matrix, vector, block, transposed=False, bias=None, alpha=1.0, beta=0.0):
    """``matrix @ vector`` (or ``vector @ matrix``) by blocks (BM, BN, SM, SN, TM, TN)."""
    bm, bn, sm, sn, tm, tn = block
    rows, columns = matrix.shape
    size = columns if transposed else rows
    per_group = bn * sn * tn if transposed else bm * sm * tm
    out = np.empty(size, matrix.dtype)
    kernel("gemv", name)(
        matrix, vector, out if bias is None else bias, out, vector.size, size, columns, alpha, beta,
        1, ONE, ZERO, ZERO, ZERO, 1,
        threads=(SIMD * ceildiv(size, per_group), bn, bm), group_size=(SIMD, bn, bm),
    )  # fmt: skip
    return out


GEMV_BLOCKS = [
    pytest.param("tall", (8, 1, 1, 32, 4, 4), id="tall"),
    pytest.param("small", (1, 1, 8, 4, 4, 4), id="small"),
    pytest.param("row", (1, 8, 1, 32, 4, 4), id="row"),
]


@DTYPES
@pytest.mark.parametrize(("form", "block"), GEMV_BLOCKS)
def test_matrix_times_vector(form, block, dtype, rng):
    for rows, columns in ((4, 1), (31, 33), (33, 31), (100, 1000), (65, 4097)):
        matrix = rng.normal(size=(rows, columns)).astype(dtype)
        vector = rng.normal(size=columns).astype(dtype)
        out = run_gemv(f"gemv_{NAMES[dtype]}_{form}", matrix, vector, block)
        exact = matrix.astype(np.float64) @ vector.astype(np.float64)
        assert_within(out, exact, product_error(matrix, vector, dtype))


@DTYPES
def test_matrix_times_vector_plus_bias(dtype, rng):
    matrix = rng.normal(size=(33, 100)).astype(dtype)
    vector, bias = rng.normal(size=100).astype(dtype), rng.normal(size=33).astype(dtype)
    out = run_gemv(f"gemv_{NAMES[dtype]}_axpby", matrix, vector, (4, 1, 1, 32, 1, 4),
                   bias=bias, alpha=0.5, beta=2.0)  # fmt: skip
    product = matrix.astype(np.float64) @ vector.astype(np.float64)
    scaled_bias = 2 * bias.astype(np.float64)
    rounding = roundoff(dtype) * (np.abs(product) + 2 * np.abs(scaled_bias)) * 2
    error = product_error(matrix, vector, dtype) + rounding
    assert_within(out, 0.5 * product + scaled_bias, error)


@DTYPES
@pytest.mark.parametrize(
    ("form", "block"),
    [("", (1, 2, 8, 4, 4, 1)), ("_tall", (8, 4, 8, 4, 4, 4))],
    ids=["narrow", "tall"],
)
def test_vector_times_matrix(form, block, dtype, rng):
    for rows, columns in ((1, 8), (33, 32), (1000, 104)):
        matrix = rng.normal(size=(rows, columns)).astype(dtype)
        vector = rng.normal(size=rows).astype(dtype)
        out = run_gemv(f"gemv_t_{NAMES[dtype]}{form}", matrix, vector, block, transposed=True)
        exact = vector.astype(np.float64) @ matrix.astype(np.float64)
        assert_within(out, exact, product_error(matrix.T, vector, dtype))


@DTYPES
@pytest.mark.parametrize("with_bias", [False, True])
def test_wide_product(with_bias, dtype, rng):
    """A few vectors at a time: rows of 4 k elements, read as vectors of four."""
    for vectors, rows, columns in ((1, 4, 4), (3, 33, 36), (9, 5, 2052)):
        matrix = rng.normal(size=(rows, columns)).astype(dtype)
        x = rng.normal(size=(vectors, columns)).astype(dtype)
        bias = rng.normal(size=(vectors, rows)).astype(dtype)
        out = np.empty((vectors, rows), dtype)
        constants = {"gemv_wide_has_batch": False, "gemv_wide_do_axpby": with_bias}
        simdgroups = 32 // 8
        grid = (SIMD * ceildiv(vectors, 4), simdgroups * ceildiv(rows, simdgroups), 1)
        kernel("gemv", f"gemv_wide_{NAMES[dtype]}", constants)(
            matrix, x, bias, out, columns, rows, vectors, columns, columns, 0.5, 2.0, 1, ONE, ZERO,
            ZERO, ZERO, rows, 1, threads=grid, group_size=(SIMD, simdgroups, 1),
        )  # fmt: skip
        exact = x.astype(np.float64) @ matrix.astype(np.float64).T
        error = np.stack([product_error(matrix, row, dtype) for row in x])
        if with_bias:
            scaled_bias = 2 * bias.astype(np.float64)
            exact = 0.5 * exact + scaled_bias
            error += (roundoff(dtype) + 2.0**-23) * (np.abs(exact) + np.abs(scaled_bias))
        assert_within(out, exact, error)


def test_gathered_products(rng):
    """Matrices and vectors chosen by index, one product a batch."""
    matrices = rng.normal(size=(3, 33, 100)).astype(np.float32)
    vectors = rng.normal(size=(5, 100)).astype(np.float32)
    which_matrix, which_vector = (
        np.array([2, 0, 1, 2], np.uint32),
        np.array([4, 0, 2, 2], np.uint32),
    )
    out = np.empty((4, 33), np.float32)
    kernel("gemv", "gemv_gather_float")(
        matrices, vectors, out, out, 100, 33, 100, 1.0, 0.0, 1, np.array([4], np.int32),
        np.array([1, 1], np.int64), 1, np.array([5], np.int32), np.array([100], np.int64), 1,
        np.array([3], np.int32), np.array([3300], np.int64), which_vector, which_matrix,
        threads=(SIMD * ceildiv(33, 16), 1, 16), group_size=(SIMD, 1, 4),
    )  # fmt: skip
    for row, m, v in zip(out, which_matrix, which_vector, strict=True):
        exact = matrices[m].astype(np.float64) @ vectors[v].astype(np.float64)
        assert_within(row, exact, product_error(matrices[m], vectors[v], FLOAT))


def test_masked_product(rng):
    """Blocks of 64 x 64 that masks of booleans leave out."""
    matrix = rng.normal(size=(100, 200)).astype(np.float32)
    vector = rng.normal(size=200).astype(np.float32)
    keep = rng.integers(0, 2, (2, 4)).astype(bool)
    keep_vector, keep_out = np.array([True, False, True, True]), np.array([True, False])
    out = np.empty(100, np.float32)
    # Two strides a mask, of which some are not used: out, matrix (by column, by row), vector.
    strides = np.array([1, 1, 1, 4, 1, 1], np.int32)
    groups = ceildiv(100, 16)
    kernel("gemv_masked", "gemv_masked_float_bool_bool")(
        matrix, vector, out, 200, 100, 200, 1, ONE, ZERO, ZERO, keep_out, keep, keep_vector,
        strides, np.zeros(3, np.int64), threads=(SIMD * groups, 1, 2), group_size=(SIMD, 1, 2),
    )  # fmt: skip
    whole = np.kron(keep & keep_vector & keep_out[:, None], np.ones((64, 64)))[:100, :200]
    exact = (matrix * whole).astype(np.float64) @ vector.astype(np.float64)
    assert_within(out, exact, product_error(matrix, vector, FLOAT))


@DTYPES
def test_dot_product(dtype, rng):
    for size in (1, 31, 1000, 8192, 20_000):
        x, y = rng.normal(size=(2, size)).astype(dtype)
        groups = ceildiv(size, 32 * 256)
        out = np.empty(groups, np.float32)
        run = kernel("dot", f"dot_product_{NAMES[dtype]}")
        run(x, y, out, size, threads=256 * groups, group_size=256)
        exact = x.astype(np.float64) @ y.astype(np.float64)
        # A thread adds 8 products to each of four sums.
        terms = x.astype(np.float64) * y.astype(np.float64)
        total = out.astype(np.float64).sum()
        assert_within(np.array(total), exact, sum_error(terms, 8 + 3 + 2 * (SIMD - 1) + 1))


NO_MASK = dict.fromkeys(
    ("has_mask", "query_transposed", "bool_mask", "float_mask", "has_sinks"), False
)


def exact_attention(q, k, v, causal):
    """Result and error bound for queries (heads, n, size) and fewer heads of keys and values."""
    group, (queries, size), keys = len(q) // len(k), q.shape[1:], k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, group, axis=0) for x in (k, v))
    products = q[:, :, None, :] * k[:, None, :, :] * np.float64(np.float32(size**-0.5))
    scores = products.sum(axis=-1)
    if causal:
        late = np.arange(keys)[None, :] > keys - queries + np.arange(queries)[:, None]
        scores = np.where(late, -np.inf, scores)
    weights = scipy.special.softmax(scores, axis=-1)
    # A score errs as a sum of `size` products and a scaling; the exponential turns that into a
    # relative error and adds its own (3 + 2|x| ulps), as does each factor exp(old max - new max),
    # whose arguments add up to the spread of the scores at most. Then there are the sums.
    score_error = sum_error(products, size + 2).max()
    spread = np.ptp(scores[np.isfinite(scores)])
    steps = ceildiv(keys, SIMD) + 2 * (SIMD - 1)
    relative = 2 * score_error + (3 + 4 * spread + 5 * steps) * 2.0**-23
    # The same relative error stands in the numerator and in the denominator.
    return weights @ v, 2 * relative * (weights @ np.abs(v))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT, BFLOAT], ids=NAMES.get)
def test_attention_of_single_queries(causal, dtype, rng):
    heads, group, size = 4, 2, 64
    for keys, queries in ((1, 1), (33, 3), (1000, 1)):
        q = rng.normal(size=(heads, queries, size)).astype(dtype)
        k, v = rng.normal(size=(2, heads // group, keys, size)).astype(dtype)
        out = np.empty_like(q)
        constants = NO_MASK | {"do_causal": causal}
        nothing, flags = np.zeros(1, dtype), np.zeros(1, bool)
        kernel("sdpa_vector", f"sdpa_vector_{NAMES[dtype]}", constants)(
            q, k, v, out, group, keys, keys * size, size, keys * size, size, size**-0.5, flags,
            nothing, 0, 0, 0, nothing, heads,
            threads=(heads * 1024, queries, 1), group_size=(1024, 1, 1),
        )  # fmt: skip
        exact, error = exact_attention(q, k, v, causal)
        assert_within(out, exact, error + roundoff(dtype) * (np.abs(exact) + error))


def test_attention_in_two_passes(rng):
    """Blocks of keys first, each with its maximum and sum, which the second pass puts together."""
    heads, group, keys, size, blocks = 4, 2, 1000, 64, 32
    q = rng.normal(size=(heads, 1, size)).astype(np.float32)
    k, v = rng.normal(size=(2, heads // group, keys, size)).astype(np.float32)
    partial = np.empty((heads, blocks, size), np.float32)
    sums, maxs = np.empty((2, heads, blocks), np.float32)
    out = np.empty_like(q)
    nothing, flags = np.zeros(1, np.float32), np.zeros(1, bool)
    constants = NO_MASK | {"do_causal": True, "blocks": blocks}
    kernel("sdpa_vector", "sdpa_vector_2pass_1_float", constants)(
        q, k, v, partial, sums, maxs, keys, keys * size, size, keys * size, size, size**-0.5, flags,
        nothing, 0, 0, 0, nothing,
        threads=(SIMD * heads // group, group, blocks), group_size=(SIMD, group, 1),
    )  # fmt: skip
    kernel("sdpa_vector", "sdpa_vector_2pass_2_float")(
        partial, sums, maxs, out, blocks, threads=(1024 * heads, 1, 1), group_size=(1024, 1, 1)
    )
    exact, error = exact_attention(q, k, v, causal=True)
    assert_within(out, exact, error)


@pytest.mark.parametrize(
    ("name", "dtype", "size", "radix"), [("float_64", FLOAT, 64, 16), ("half_1024", HALF, 1024, 16)]
)
def test_hadamard(name, dtype, size, radix, rng):
    x = rng.integers(-1, 2, (3, size)).astype(dtype)
    out = np.empty_like(x)
    group = size // radix
    run = kernel("hadamard", f"hadamard_n_{name}")
    run(x, out, 0.5, threads=(group, 3, 1), group_size=(group, 1, 1))
    # Sums of small integers are exact.
    np.testing.assert_array_equal(out, 0.5 * (x @ scipy.linalg.hadamard(size)))


def test_hadamard_of_odd_factor(rng):
    power, odd, per_thread = 32, 12, 2
    x = rng.integers(-9, 10, (2, odd, power)).astype(np.float32)
    out = np.empty_like(x)
    run = kernel("hadamard", "hadamard_m_float")
    run(x, out, 1.0, threads=(2 * power // per_thread, 1, 1))
    # Twice the transform of order 12 is 12 times the identity up to transposition: its rows are
    # orthogonal, which this checks by the norm, and each is made of signs.
    np.testing.assert_array_equal((out**2).sum(axis=1), odd * (x**2).sum(axis=1))
    unit = np.zeros((2, odd, power), np.float32)
    unit[0, :, :odd] = np.eye(odd)
    run(unit, out, 1.0, threads=(2 * power // per_thread, 1, 1))
    np.testing.assert_array_equal(np.abs(out[0, :, :odd]), np.ones((odd, odd)))


#: Radices of the stages of a size, and the values that a thread handles: one butterfly or two.
FFT_PLANS = {64: ([8, 8], 8), 1024: ([4, 4, 8, 8], 8), 60: ([3, 4, 5], 3), 1001: ([7, 11, 13], 7)}


def fft_constants(size, inverse):
    radices, per_thread = FFT_PLANS[size]
    steps = {f"radix_{r}_steps_": radices.count(r) for r in (2, 3, 4, 5, 6, 7, 8, 11, 13)}
    power = size & (size - 1) == 0
    return steps | {"inv_": inverse, "is_power_of_2_": power, "elems_per_thread_": per_thread}


def fft_error(radices):
    """Error relative to the norm: in each stage a twiddle, its powers, and a sum."""
    # The angle, up to 2 pi, is rounded four times, and sine and cosine err by four ulps of one.
    twiddle = (4 * 2 * np.pi + 4 * 2) * 2.0**-24
    return sum((radix - 1) * (twiddle + 2 * 2.0**-24) + radix * 2.0**-24 for radix in radices)


@pytest.mark.parametrize("inverse", [False, True], ids=["forward", "inverse"])
@pytest.mark.parametrize("size", FFT_PLANS)
def test_fft(size, inverse, rng):
    radices, per_thread = FFT_PLANS[size]
    x = (rng.normal(size=(3, size)) + 1j * rng.normal(size=(3, size))).astype(np.complex64)
    out = np.empty_like(x)
    threads = ceildiv(size, per_thread)
    run = kernel("fft", "fft_1024_float2_float2", fft_constants(size, inverse))
    run(
        x.view(np.float32), out.view(np.float32), size, 3,
        threads=(3, 1, threads), group_size=(1, 1, threads),
    )  # fmt: skip
    exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(np.complex128))
    assert np.linalg.norm(out - exact) / np.linalg.norm(exact) <= fft_error(radices)


def test_fft_of_real_numbers(rng):
    """Two real sequences at a time, packed into one complex one; an odd number of them."""
    x = rng.normal(size=(3, 64)).astype(np.float32)
    spectrum = np.empty((3, 33), np.complex64)
    launch = {"threads": (2, 1, 8), "group_size": (1, 1, 8)}
    run = kernel("fft", "fft_256_float_float2", fft_constants(64, False))
    run(x, spectrum.view(np.float32), 64, 3, **launch)
    exact = np.fft.rfft(x.astype(np.float64))
    error = 2 * fft_error([8, 8])  # the other sequence of the pair has its errors, too
    assert np.linalg.norm(spectrum - exact) / np.linalg.norm(exact) <= error
    back = np.empty_like(x)
    run = kernel("fft", "fft_256_float2_float", fft_constants(64, True))
    run(spectrum.view(np.float32), back, 64, 3, **launch)
    assert np.linalg.norm(back - x) / np.linalg.norm(x) <= 2 * error
