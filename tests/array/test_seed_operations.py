"""The 46 operations of MetalPy as expressions, against NumPy within that project's own tolerances."""

import numpy as np
import pytest
from scipy import special

import metalloid as mtl

RNG = np.random.default_rng(3)
X = RNG.uniform(-0.9, 0.9, 2000).astype(np.float32)
Y = RNG.uniform(0.5, 3, 2000).astype(np.float32)
A = RNG.standard_normal((30, 40)).astype(np.float32)
B = RNG.standard_normal((40, 20)).astype(np.float32)
ROWS, COLUMNS = A[:, :1].copy(), A[:1].copy()
INDEX = RNG.integers(0, 2000, 100)


def gelu(xp, x):
    return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


#: Name, the expression in a namespace, its arguments, and the tolerance if it is not 1e-5.
OPERATIONS = [
    ("add", lambda xp, x, y: x + y, (X, Y)),
    ("sub", lambda xp, x, y: x - y, (X, Y)),
    ("multiply", lambda xp, x, y: x * y, (X, Y)),
    ("divide", lambda xp, x, y: x / y, (X, Y)),
    ("negate", lambda xp, x: -x, (X,)),
    ("abs", lambda xp, x: abs(x), (X,)),
    ("pow", lambda xp, y: y**2.5, (Y,)),
    ("square", lambda xp, x: xp.square(x), (X,)),
    ("sqrt", lambda xp, y: xp.sqrt(y), (Y,)),
    ("exp", lambda xp, x: xp.exp(x), (X,)),
    ("log", lambda xp, y: xp.log(y), (Y,)),
    ("sin", lambda xp, x: xp.sin(x), (X,)),
    ("cos", lambda xp, x: xp.cos(x), (X,)),
    ("tan", lambda xp, x: xp.tan(x), (X,)),
    ("asin", lambda xp, x: xp.asin(x), (X,)),
    ("atan2", lambda xp, x, y: xp.atan2(x, y), (X, Y)),
    ("floor", lambda xp, y: xp.floor(y), (Y,)),
    ("ceil", lambda xp, y: xp.ceil(y), (Y,)),
    ("sign", lambda xp, x: xp.sign(x), (X,)),
    ("round", lambda xp, y: xp.round(y), (Y,)),
    ("clip", lambda xp, x: xp.clip(x, -0.25, 0.5), (X,)),
    ("broadcast_add", lambda xp, a, b: a + b, (A, COLUMNS)),
    ("broadcast_multiply", lambda xp, a, b: a * b, (A, COLUMNS)),
    ("relu", lambda xp, x: xp.maximum(x, 0), (X,)),
    ("leaky_relu", lambda xp, x: xp.where(x > 0, x, 0.01 * x), (X,)),
    ("sigmoid", lambda xp, x: 1 / (1 + xp.exp(-x)), (X,)),
    ("tanh", lambda xp, x: xp.tanh(x), (X,)),
    ("softplus", lambda xp, x: xp.log(1 + xp.exp(x)), (X,)),
    ("swish", lambda xp, x: x / (1 + xp.exp(-x)), (X,)),
    ("gelu", gelu, (X,), 3e-4),
    ("sum", lambda xp, y: xp.sum(y), (Y,)),
    ("product", lambda xp, y: xp.prod(y), (Y[:50],), 1e-3),
    ("max", lambda xp, x: xp.max(x), (X,)),
    ("min", lambda xp, x: xp.min(x), (X,)),
    ("mean", lambda xp, y: xp.mean(y), (Y,)),
    ("argmax", lambda xp, x: xp.argmax(x), (X,)),
    ("argmin", lambda xp, x: xp.argmin(x), (X,)),
    ("hadamard", lambda xp, a: a * a, (A,)),
    ("row_sum", lambda xp, a: xp.sum(a, axis=1), (A,)),
    ("col_sum", lambda xp, a: xp.sum(a, axis=0), (A,)),
    ("row_scale", lambda xp, a, s: a * s, (A, ROWS)),
    ("col_scale", lambda xp, a, s: a * s, (A, COLUMNS)),
    ("transpose", lambda xp, a: a.T, (A,)),
    ("matmul", lambda xp, a, b: a @ b, (A, B)),
    ("slice", lambda xp, x: x[17:917], (X,)),
    ("gather", lambda xp, x, k: x[k], (X, INDEX)),
]


def test_all_are_here():
    assert len({name for name, *_ in OPERATIONS}) == 46


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation[0])
@pytest.mark.sample(12)
def test_it_agrees(operation):
    _, function, args, *tolerance = operation
    bound = tolerance[0] if tolerance else 1e-5
    got = np.asarray(function(mtl, *map(mtl.asarray, args)))
    exact = function(np, *(a.astype(np.float64) if a.dtype.kind == "f" else a for a in args))
    np.testing.assert_allclose(got, exact, rtol=bound, atol=bound)


def test_gelu_is_near_the_exact_one():
    exact = 0.5 * X.astype(float) * (1 + special.erf(X.astype(float) / np.sqrt(2)))
    np.testing.assert_allclose(np.asarray(gelu(mtl, mtl.asarray(X))), exact, atol=3e-4)
