"""The operations of JAX's tests of derivatives (tests/lax_autodiff_test.py), by finite differences.

First and second order, both modes, real and complex, for all that exist here. Missing here: erfc,
erf_inv and exp2 of complex numbers, bessel_i0e and bessel_i1e, and rsqrt by this name,
dilated windows, and reductions by functions of the user.
"""

import numpy as np
import pytest
from derivatives import check_derivatives, random

import metalloid as mtl


def default(shape, is_complex):
    return random(*shape, is_complex=is_complex)


def small(shape, is_complex):
    return 0.3 * random(*shape, is_complex=is_complex)


def positive(shape, is_complex):
    """Numbers of positive real part."""
    x = random(*shape, is_complex=is_complex)
    return np.abs(x.real) + 0.5 + (1j * x.imag if is_complex else 0)


def between(low, high):
    return lambda shape, is_complex: low + (high - low) * np.random.default_rng(5).random(shape)


def spread(shape, is_complex):
    """Distinct numbers, of which no two are close."""
    size = int(np.prod(shape))
    return (np.random.default_rng(3).permutation(size) - size / 2.2).reshape(shape) / 3


REAL, COMPLEX, BOTH = (False,), (True,), (False, True)
#: By name: the function, the points, and whether they are real or complex.
UNARY = {
    "neg": (lambda x: -x, default, BOTH),
    "floor": (mtl.floor, between(0.1, 0.4), REAL),
    "ceil": (mtl.ceil, between(0.1, 0.4), REAL),
    "round": (mtl.round, between(0.1, 0.4), REAL),
    "exp": (mtl.exp, small, BOTH),
    "exp2": (mtl.exp2, small, REAL),
    "expm1": (mtl.expm1, default, BOTH),
    "log": (mtl.log, positive, BOTH),
    "log1p": (mtl.log1p, positive, BOTH),
    "sinh": (mtl.sinh, default, BOTH),
    "cosh": (mtl.cosh, default, BOTH),
    "tanh": (mtl.tanh, small, BOTH),
    "sin": (mtl.sin, default, BOTH),
    "cos": (mtl.cos, default, BOTH),
    "tan": (mtl.tan, small, BOTH),
    "asin": (mtl.asin, between(-0.8, 0.8), REAL),
    "acos": (mtl.acos, between(-0.8, 0.8), REAL),
    "atan": (mtl.atan, default, REAL),
    "asinh": (mtl.asinh, default, REAL),
    "acosh": (mtl.acosh, between(1.5, 3), REAL),
    "atanh": (mtl.atanh, between(-0.8, 0.8), REAL),
    "erf": (mtl.erf, small, REAL),
    "erf_inv": (mtl.erfinv, between(-0.6, 0.6), REAL),
    "real": (mtl.real, default, COMPLEX),
    "imag": (mtl.imag, default, COMPLEX),
    "conj": (mtl.conj, default, BOTH),
    "abs": (mtl.abs, positive, BOTH),
    "sqrt": (mtl.sqrt, positive, BOTH),
    "rsqrt": (lambda x: 1 / mtl.sqrt(x), positive, BOTH),
    "cbrt": (mtl.cbrt, positive, REAL),
    "logistic": (lambda x: 1 / (1 + mtl.exp(-x)), small, BOTH),
    "square": (mtl.square, default, BOTH),
    "integer_pow": (lambda x: x**3, default, BOTH),
    "clamp": (lambda x: mtl.clip(x, -100, 100), default, REAL),
    "broadcast": (lambda x: mtl.broadcast_to(x[None, :, 0], (2, 3)), default, BOTH),
    "reshape": (lambda x: x.reshape(4, 3) * x.reshape(4, 3), default, BOTH),
    "pad": (lambda x: mtl.pad(x, ((1, 2), (0, 1))), default, BOTH),
    "rev": (lambda x: mtl.flip(x, axis=1) * x, default, BOTH),
    "select": (lambda x: mtl.where(mtl.asarray(np.arange(4) % 2 == 0), x, x * x), default, BOTH),
    "slice": (lambda x: x[1:, ::2] * x[:2, 1::2], default, BOTH),
    "dynamic_slice": (lambda x: x[mtl.asarray(1) : 3] ** 2, default, BOTH),
    "dynamic_update_slice": (lambda x: x.at[1:, 1:3].set(x[:2, 2:] * 2), default, BOTH),
    "transpose": (lambda x: x.T @ x, default, BOTH),
    "convert": (lambda x: x.astype(mtl.complex128) * 2j, default, BOTH),
    "reduce_sum": (lambda x: (x * x).sum(axis=0), default, BOTH),
    "reduce_prod": (lambda x: x.prod(axis=1), default, REAL),
    "reduce_max": (lambda x: x.max(axis=0) ** 2, spread, REAL),
    "reduce_min": (lambda x: x.min(axis=1) ** 2, spread, REAL),
    "reduce_logsumexp": (lambda x: mtl.log(mtl.exp(x).sum(axis=0)), default, REAL),
    "reduce_window": (lambda x: mtl.max_pool(x[None, :, :, None], (2, 2)), spread, REAL),
    "cumsum": (lambda x: mtl.cumulative_sum(x, axis=1) ** 2, default, BOTH),
    "cumprod": (lambda x: mtl.cumulative_prod(x, axis=0), default, REAL),
    "cummax": (lambda x: mtl.cummax(x, axis=1) ** 2, default, REAL),
    "cummin": (lambda x: mtl.cummin(x, axis=0), default, REAL),
    "sort": (lambda x: mtl.sort(x, axis=0) ** 2, spread, REAL),
    "top_k": (lambda x: mtl.top_k(x, 2)[0] ** 2, spread, REAL),
    "gather": (lambda x: x[mtl.asarray([2, 0, 2]), mtl.asarray([1, 1, 1])] ** 2, default, BOTH),
}  # fmt: skip
AT, ONCE = np.array([0, 2, 2]), np.array([0, 2, 1])
BINARY = {
    "add": (lambda x, y: x + y, default, BOTH),
    "sub": (lambda x, y: x - y, default, BOTH),
    "mul": (lambda x, y: x * y, default, BOTH),
    "div": (lambda x, y: x / y, positive, BOTH),
    "pow": (lambda x, y: x**y, positive, BOTH),
    "max": (mtl.maximum, default, REAL),
    "min": (mtl.minimum, default, REAL),
    "atan2": (mtl.atan2, positive, REAL),
    "hypot": (mtl.hypot, positive, REAL),
    "logaddexp": (mtl.logaddexp, default, REAL),
    "remainder": (mtl.remainder, positive, REAL),
    "complex": (lambda x, y: x + 1j * y, default, REAL),
    "concatenate": (lambda x, y: mtl.concat([x, y, x * y], axis=1), default, BOTH),
    "dot": (lambda x, y: x @ y.T, default, BOTH),
    "dot_general": (lambda x, y: mtl.einsum("ij,ik->ijk", x, y), default, BOTH),
    "conv": (lambda x, y: mtl.conv1d(x[None, :, :1], y[:, :2, None]), default, REAL),
    "scatter": (lambda x, y: x.at[ONCE].set(y * y), default, BOTH),
    "scatter_add": (lambda x, y: x.at[AT].add(y * y), default, BOTH),
    "scatter_sub": (lambda x, y: x.at[AT].subtract(y * y), default, BOTH),
    "scatter_mul": (lambda x, y: x.at[AT].multiply(y), default, BOTH),
    "scatter_max": (lambda x, y: x.at[AT].max(y) ** 2, default, REAL),
    "scatter_min": (lambda x, y: x.at[AT].min(y) ** 2, default, REAL),
}  # fmt: skip
FAST = {("log1p", True), ("pow", False)}
CASES = [
    pytest.param(
        *row[:2], is_complex, points, id=f"{name}-{'complex' if is_complex else 'real'}",
        marks=() if (name, is_complex) in FAST else pytest.mark.slow,
    )
    for points, table in ((1, UNARY), (2, BINARY))
    for name, row in table.items()
    for is_complex in row[2]
]  # fmt: skip


@pytest.mark.parametrize(("function", "values", "is_complex", "points"), CASES)
@pytest.mark.sample(1)
def test_first_and_second_order(function, values, is_complex, points):
    check_derivatives(function, *(values((3, 4), is_complex) for _ in range(points)))


#: Points at which naive derivatives are 0 / 0 or overflow.
SPECIAL = {
    "sinh": [0], "cosh": [0], "tanh": [0, 1000], "sin": [0, np.pi, np.pi / 2], "cos": [0, np.pi],
    "tan": [0], "asin": [0], "acos": [0], "atan": [0, 1000], "erf": [0, 10],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name):
    # Plus 2, because the checks of second order differentiate abs of the result, with a kink at 0.
    check_derivatives(lambda x: getattr(mtl, name)(x) + 2, np.array(SPECIAL[name], np.float64))
