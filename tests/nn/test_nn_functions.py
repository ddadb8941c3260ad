"""Functions of `metalloid.nn`: values against formulas in double precision, and derivatives."""

import math

import ml_dtypes
import numpy as np
import pytest
from derivatives import check_derivatives
from scipy import special

import metalloid as mtl
from metalloid import nn

_rng = np.random.default_rng(3)
TYPES = {np.float16: 2**-11, ml_dtypes.bfloat16: 2**-8, np.float32: 2**-22, np.float64: 2**-51}


def sigmoid(x):
    return special.expit(x)


def softplus(x):
    return np.logaddexp(x, 0)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


ACTIVATIONS = {
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: -softplus(-x),
    "softplus": softplus,
    "silu": lambda x: x * sigmoid(x),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.maximum(x, 0.01 * x),
    "elu": elu,
    "selu": lambda x: elu(x, 1.67326) * 1.0507,
    "celu": elu,
    "gelu": lambda x: x * special.ndtr(x),
    "gelu_approx": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_fast_approx": lambda x: x * sigmoid(1.702 * x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_shrink": lambda x: np.where(abs(x) > 0.5, x, 0),
    "softshrink": lambda x: np.where(abs(x) > 0.5, x - np.sign(x) * 0.5, 0),
    "softsign": lambda x: x / (1 + abs(x)),
    "softmax": lambda x: special.softmax(x, -1),
    "softmin": lambda x: special.softmax(-x, -1),
    "log_softmax": lambda x: special.log_softmax(x, -1),
    "logsumexp": lambda x: special.logsumexp(x, -1),
    "rms_norm": lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5),
    "layer_norm": lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(
        x.var(-1, keepdims=True) + 1e-5),
    "rope": lambda x: rotated(x, 3, 1e4),
}  # fmt: skip


def called(name, x):
    """One of the functions with its other arguments."""
    if name in ("softmax", "softmin", "log_softmax", "logsumexp"):
        return getattr(nn, name)(x, -1)
    if name == "rms_norm":
        return nn.rms_norm(x, None, 1e-5)
    if name == "layer_norm":
        return nn.layer_norm(x, None, None, 1e-5)
    if name == "rope":
        return nn.rope(x, 8, traditional=False, base=1e4, scale=1.0, offset=3)
    return getattr(nn, name)(x)


def rotated(x, offset, base, scale=1.0):
    """Pairs of features of the first and the second half, as complex numbers that turn."""
    half = x.shape[-1] // 2
    angles = (np.arange(x.shape[-2]) + offset)[:, None] * scale * base ** -(np.arange(half) / half)
    complex_pairs = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([complex_pairs.real, complex_pairs.imag], -1)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.sample(8)
def test_values(name, dtype):
    x = (_rng.standard_normal((2, 5, 8)) * 3).astype(dtype)
    result, exact = called(name, mtl.asarray(x)), ACTIVATIONS[name](x.astype(np.float64))
    assert result.dtype == dtype
    bound = TYPES[dtype] * (np.abs(exact) + (1 if dtype in (np.float32, np.float64) else 0))
    assert (np.abs(np.asarray(result).astype(np.float64) - exact) <= bound * 1.01 + 1e-7).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.sample(2)
def test_derivatives(name):
    check_derivatives(lambda x: called(name, x), _rng.standard_normal((2, 3, 8)) * 2 + 0.01)


@pytest.mark.slow
def test_derivatives_of_large_numbers_are_finite():
    x = mtl.asarray([-1e4, -200.0, 0.0, 200.0, 1e4])
    for name in ACTIVATIONS:
        if name not in ("rope", "gelu_approx", "relu2"):
            gradient = np.asarray(mtl.grad(lambda x, name=name: called(name, x).sum())(x))
            assert np.isfinite(gradient).all(), name


def test_rows_of_infinities():
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [-np.inf, 3]], np.float32)
    assert nn.logsumexp(x, -1).tolist() == [-np.inf, np.inf, 3]
    assert nn.softmax(x[2:], -1).tolist() == [[0, 1]]


@pytest.mark.slow
def test_normalization_with_weights_and_their_gradients():
    x, w, b = (_rng.standard_normal(shape) for shape in ((3, 6), (6,), (6,)))
    check_derivatives(lambda *a: nn.layer_norm(*a, 1e-5), x, w, b)
    check_derivatives(lambda *a: nn.rms_norm(*a, 1e-5), x, w)
    with pytest.raises(ValueError, match=r"weight must have shape \(6,\)"):
        nn.rms_norm(x, b[:4], 1e-5)


def test_vmap_of_rows_and_of_weights():
    x, w = (_rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 6), (4, 6)))
    both = mtl.vmap(lambda x, w: nn.rms_norm(x, w, 1e-5))(x, w)
    each = np.stack([np.asarray(nn.rms_norm(a, b, 1e-5)) for a, b in zip(x, w, strict=True)])
    np.testing.assert_allclose(np.asarray(both), each, rtol=1e-6)
    rows = mtl.vmap(lambda x: nn.softmax(x, 0))(x)
    np.testing.assert_allclose(np.asarray(rows), special.softmax(x, 1), rtol=1e-6)


def test_rotary_encoding_of_a_batch_with_offsets():
    x = _rng.standard_normal((2, 3, 4, 10)).astype(np.float32)
    offsets = mtl.asarray([2, 7])
    result = np.asarray(nn.rope(x, 8, traditional=False, base=100.0, scale=0.5, offset=offsets))
    for batch, offset in enumerate((2, 7)):
        exact = rotated(x[batch, ..., :8].astype(np.float64), offset, 100.0, 0.5)
        np.testing.assert_allclose(result[batch, ..., :8], exact, atol=2e-6)
    np.testing.assert_array_equal(result[..., 8:], x[..., 8:])
    consecutive = x[..., [0, 4, 1, 5, 2, 6, 3, 7, 8, 9]]
    frequencies = 100.0 ** (np.arange(4) / 4)
    options = {"base": None, "freqs": frequencies.astype(np.float32), "scale": 0.5}
    traditional = nn.rope(consecutive, 8, traditional=True, offset=offsets, **options)
    reordered = np.asarray(traditional)[..., [0, 2, 4, 6, 1, 3, 5, 7]]
    np.testing.assert_allclose(reordered, result[..., :8], atol=2e-6)


def test_cross_entropy_and_its_gradient():
    logits, targets = _rng.standard_normal((5, 7)), np.array([0, 6, 3, 3, 1])
    exact = special.logsumexp(logits, -1) - logits[np.arange(5), targets]
    loss = nn.cross_entropy(logits.astype(ml_dtypes.bfloat16), targets)
    assert loss.dtype == np.float32
    np.testing.assert_allclose(np.asarray(loss), exact, rtol=0.02)
    gradient = mtl.grad(lambda x: nn.cross_entropy(x, targets).sum())(
        mtl.asarray(logits.astype(np.float32))
    )
    probabilities = special.softmax(logits, -1) - np.eye(7)[targets]
    np.testing.assert_allclose(np.asarray(gradient), probabilities, atol=1e-6)
    with pytest.raises(IndexError):
        nn.cross_entropy(logits, targets + 1).tolist()
    with pytest.raises(ValueError, match="incompatible with logits"):
        nn.cross_entropy(logits, targets[:2])


def test_embedding_adds_gradients_of_equal_rows():
    weight = mtl.asarray(_rng.standard_normal((4, 3)).astype(np.float32))
    gradient = mtl.grad(lambda w: nn.embedding(w, mtl.asarray([1, 3, 1])).sum())(weight)
    assert gradient.tolist() == [[0] * 3, [2] * 3, [0] * 3, [1] * 3]


def test_dropout_has_the_mean_of_its_operand():
    x = mtl.ones((64, 64))
    result = np.asarray(nn.dropout(x, 0.25, key=mtl.random.key(1)))
    assert set(np.unique(result)) == {0, np.float32(4 / 3)}
    assert abs(result.mean() - 1) < 0.05
    assert nn.dropout(x, 0.25, training=False) is x
    with pytest.raises(ValueError, match="below 1"):
        nn.dropout(x, 1.0)
