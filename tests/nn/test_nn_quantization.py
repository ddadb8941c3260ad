"""Quantized matrices: bits as MLX packs them, and products against double precision."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid import nn

_rng = np.random.default_rng(5)
FORMATS = [
    *(("affine", bits, size) for bits in (4, 2, 3, 5, 6, 8) for size in (64, 32, 128)),
    ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16),
]  # fmt: skip
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
BOUNDS = {np.float32: 2**-18, np.float16: 2**-10, ml_dtypes.bfloat16: 2**-7}


def codes_of(words, bits):
    """The unsigned integers in rows of words, as a stream of bits."""
    bytes_ = np.ascontiguousarray(words).view(np.uint8)
    stream = np.unpackbits(bytes_, axis=-1, bitorder="little")
    digits = stream.reshape(*words.shape[:-1], -1, bits)
    return digits @ (1 << np.arange(bits))


def exact_matrix(quantized, mode, bits, size):
    """The matrix in double precision."""
    words, scales, *biases = (np.asarray(each) for each in quantized)
    codes = codes_of(words, bits)
    if mode == "affine":
        values, factors = codes.astype(np.float64), scales.astype(np.float64)
    else:
        e4m3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        values = e4m3[codes] if bits == 8 else np.concatenate([E2M1, -E2M1])[codes]
        factors = e4m3[scales] if mode == "nvfp4" else 2.0 ** (scales.astype(np.float64) - 127)
    groups = values.reshape(*scales.shape, size) * factors[..., None]
    if biases:
        groups = groups + biases[0].astype(np.float64)[..., None]
    return groups.reshape(values.shape)


def matrix(dtype, *shape):
    w = _rng.standard_normal(shape)
    w[..., 0, :] = 0
    return w.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=lambda t: t.__name__)
@pytest.mark.parametrize(("mode", "bits", "size"), FORMATS)
@pytest.mark.sample(2)
def test_packing_is_that_of_mlx(mode, bits, size, dtype):
    mx = pytest.importorskip("mlx.core", reason="the package mlx is not installed")
    w = matrix(dtype, 6, 384)
    given = mx.array(w.astype(np.float32)).astype(getattr(mx, np.dtype(dtype).name))
    expected = mx.quantize(given, group_size=size, bits=bits, mode=mode)
    result = nn.quantize(w, size, bits, mode)
    if mode == "affine":
        for ours, theirs in zip(result, expected, strict=True):
            values = np.array(theirs.astype(mx.float32) if theirs.dtype != mx.uint32 else theirs)
            np.testing.assert_array_equal(np.asarray(ours).astype(values.dtype), values)
        return
    # MLX drops the sign of zeros on the CPU, and computes in the type of the matrix.
    assert (np.asarray(result[1]) == np.array(expected[1])).mean() > 0.95
    if dtype == np.float32:
        values = mx.dequantize(*expected, group_size=size, bits=bits, mode=mode, dtype=mx.float32)
        np.testing.assert_array_equal(exact_matrix(result, mode, bits, size), np.array(values))


@pytest.mark.parametrize("dtype", BOUNDS, ids=lambda t: t.__name__)
@pytest.mark.parametrize(("mode", "bits", "size"), FORMATS)
@pytest.mark.sample(1)
def test_products(mode, bits, size, dtype):
    quantized = nn.quantize(matrix(dtype, 40, 384), size, bits, mode)
    options = {"group_size": size, "bits": bits, "mode": mode}
    exact = exact_matrix(quantized, mode, bits, size)
    values = np.asarray(nn.dequantize(*quantized, **options, dtype=mtl.float32))
    np.testing.assert_allclose(values, exact, rtol=2**-22, atol=2**-22)
    for rows in (1, 3, 9):  # with few rows the matrix is unpacked in registers
        x = _rng.standard_normal((rows, 384)).astype(dtype)
        product = x.astype(np.float64) @ exact.T
        sizes = np.abs(x.astype(np.float64)) @ np.abs(exact.T)
        result = nn.quantized_matmul(x, *quantized, **options)
        assert result.dtype == dtype
        error = np.abs(np.asarray(result).astype(np.float64) - product)
        assert (error <= BOUNDS[dtype] * (np.abs(product) + sizes / 8) + 1e-9).all()
    x = _rng.standard_normal((2, 40)).astype(dtype)
    result = nn.quantized_matmul(x, *quantized, transpose=False, **options)
    sizes = np.abs(x.astype(np.float64)) @ np.abs(exact)
    error = np.abs(np.asarray(result).astype(np.float64) - x.astype(np.float64) @ exact)
    assert (error <= BOUNDS[dtype] * sizes + 1e-9).all()


def test_rows_that_are_no_multiple_of_all_lanes():
    quantized = nn.quantize(matrix(np.float32, 5, 2080), 32, 4)
    x = _rng.standard_normal((1, 2080)).astype(np.float32)
    exact = x.astype(np.float64) @ exact_matrix(quantized, "affine", 4, 32).T
    result = nn.quantized_matmul(x, *quantized, group_size=32)
    np.testing.assert_allclose(np.asarray(result), exact, atol=1e-4)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16], ids=lambda t: t.__name__)
@pytest.mark.parametrize("bits", [4, 2, 8])
@pytest.mark.sample(1)
def test_halves_with_outliers_lose_no_more_than_their_own_rounding(bits, dtype):
    x = _rng.standard_normal((3, 1184))
    x[:, 7] *= 300
    x = x.astype(dtype)
    quantized = nn.quantize(matrix(dtype, 37, 1184), 32, bits)
    result = np.asarray(nn.quantized_matmul(x, *quantized, group_size=32, bits=bits))
    exact = exact_matrix(quantized, "affine", bits, 32)
    expected = x.astype(np.float64) @ exact.T
    rounding = BOUNDS[dtype] / 2 * np.abs(expected)
    groups = x.astype(np.float64).reshape(3, -1, 32)
    steps = np.repeat(np.abs(groups).max(-1), 32, -1) * 2.0**-16
    assert (
        np.abs(result.astype(np.float64) - expected) <= rounding + steps @ np.abs(exact).T
    ).all()


def test_derivatives():
    quantized = nn.quantize(mtl.asarray(matrix(np.float32, 8, 64)), bits=8)
    x = mtl.asarray(_rng.standard_normal((1, 64)).astype(np.float32))
    exact = exact_matrix(quantized, "affine", 8, 64)
    gradient = mtl.grad(lambda x: nn.quantized_matmul(x, *quantized, bits=8).sum())(x)
    np.testing.assert_allclose(np.asarray(gradient)[0], exact.sum(0), rtol=1e-4, atol=1e-5)
    words, scales, biases = quantized
    of_biases = mtl.grad(lambda b: nn.quantized_matmul(x, words, scales, b, bits=8).sum())(biases)
    np.testing.assert_allclose(np.asarray(of_biases), float(x.sum()) * np.ones((8, 1)), rtol=1e-4)
    many = mtl.vmap(lambda x: nn.quantized_matmul(x, *quantized, bits=8))(x[:, None])
    assert many.shape == (1, 1, 8)


def test_matrices_chosen_by_indices():
    quantized = nn.quantize(matrix(np.float32, 3, 16, 64))
    exact = exact_matrix(quantized, "affine", 4, 64)
    x = _rng.standard_normal((4, 2, 64)).astype(np.float32)
    right, left = np.array([[2, 0], [1, 1]]), np.array([3, 0])
    result = nn.gather_qmm(x, *quantized, lhs_indices=left, rhs_indices=right)
    expected = x[left][None] @ exact[right].swapaxes(-1, -2)
    np.testing.assert_allclose(np.asarray(result), expected, atol=1e-4)
    plain = nn.gather_mm(x, exact.swapaxes(-1, -2).astype(np.float32), left, right)
    np.testing.assert_allclose(np.asarray(plain), expected, atol=1e-4)
    gradient = mtl.grad(lambda x: nn.gather_qmm(x, *quantized, rhs_indices=right[:, :1]).sum())
    assert gradient(mtl.asarray(x[:1])).shape == (1, 2, 64)
    with pytest.raises(IndexError):
        nn.gather_qmm(x, *quantized, lhs_indices=left, rhs_indices=right + 1).tolist()


def test_floats_of_eight_bits():
    x = np.concatenate([_rng.standard_normal(500) * 10.0 ** _rng.integers(-4, 3, 500), [0, 448]])
    x = x.astype(np.float32)
    expected = x.astype(ml_dtypes.float8_e4m3fn)
    is_finite = np.isfinite(expected.astype(np.float32))
    codes = nn.to_fp8(x)
    np.testing.assert_array_equal(np.asarray(codes)[is_finite], expected.view(np.uint8)[is_finite])
    values = np.asarray(nn.from_fp8(codes, mtl.float32))
    np.testing.assert_array_equal(values[is_finite], expected.astype(np.float32)[is_finite])
    assert nn.to_fp8(mtl.asarray([1e9, -1e9, np.nan])).tolist() == [126, 254, 126]


def test_errors():
    words, scales, biases = nn.quantize(mtl.ones((2, 64)))
    with pytest.raises(ValueError, match="bits must be one of"):
        nn.quantize(mtl.ones((2, 64)), bits=7)
    with pytest.raises(ValueError, match="multiple of 64 columns"):
        nn.quantize(mtl.ones((2, 65)))
    with pytest.raises(ValueError, match="needs biases"):
        nn.dequantize(words, scales)
    with pytest.raises(ValueError, match="expected 64 as its last extent"):
        nn.quantized_matmul(mtl.ones((1, 32)), words, scales, biases)
    with pytest.raises(ValueError, match=r"need \(2, 2\)"):
        nn.dequantize(words, scales, biases, 32)


def test_products_that_share_an_operand_are_one_launch_of_simt_devices():
    x = mtl.asarray(_rng.standard_normal((1, 512)).astype(np.float32)) * 2
    matrices = [nn.quantize(matrix(np.float32, rows, 512)) for rows in (40, 7, 24)]
    mtl.eval(*(array for each in matrices for array in each))
    products = [nn.quantized_matmul(x, *each) for each in matrices]
    total = products[0].sum() + products[1].sum() + products[2].sum()
    launches = mtl.explain(total).count("quantized_product_affine(")
    assert launches == (1 if x.device.traits.is_simt else 3)
    values = np.asarray(x).astype(np.float64)
    for each, product in zip(matrices, products, strict=True):
        exact = values @ exact_matrix(each, "affine", 4, 64).T
        np.testing.assert_allclose(np.asarray(product), exact, atol=1e-3)
    np.testing.assert_allclose(
        float(total), sum(float(np.asarray(product).sum()) for product in products), atol=1e-3
    )
