"""Unary kernels: one function, one table row."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import scipy.special

import metalloid as mtl
from mlx_tree import complex_functions
from mlx_tree.agreement import FLOAT, Family, assert_near, spacing
from mlx_tree.element_types import numbers, special_values, types_at_end, wide
from mlx_tree.elementwise import Form, form_of, run


def sigmoid(x):
    return scipy.special.expit(x)


#: Operation, oracle, range of the arguments, bound in ulps of float. The bounds of single functions
#: are those of the Metal specification for `precise`; composed ones add up as noted.
TABLE = [
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
    ("Sign", lambda x: np.nan_to_num(np.sign(x)), (-9, 9), 0),  # NaN compares false: MLX gives 0
    ("Sin", np.sin, (-100, 100), 4),
    ("Sinh", np.sinh, (-80, 80), 4),
    ("Sqrt", np.sqrt, (0, 1e6), 0.5),
    ("Square", np.square, (-9, 9), 0.5),
    ("Tan", np.tan, (-100, 100), 6),
    ("Tanh", np.tanh, (-20, 20), 5),
    # MLX's own: one logarithm, a difference that is exact or errs by half an ulp, a quotient and a
    # product.
    ("Log1p", np.log1p, (-0.9, 1e6), 6),
    # Giles' single-precision polynomials: relative error 3.5e-7, which is 6 ulps.
    ("ErfInv", scipy.special.erfinv, (-0.999, 0.999), 6),
]  # fmt: skip

#: What MLX's expm1f leaves out of log 2 when it reduces its argument: the low part.
_LOW_PART_OF_LOG_2 = 1.42860677e-6


def expm1_error(x):
    """Error of MLX's expm1f at x: the missing part once per power of two, and one ulp."""
    powers = np.rint(x / np.log(2))
    # Terms of the second order are covered by a tenth of the first.
    return 1.1 * np.abs(powers) * _LOW_PART_OF_LOG_2 * np.exp(x) + spacing(np.expm1(x), FLOAT)


def erf_error(x):
    """Two polynomials of one ulp; the outer one ends in expm1f of log(1 - erf)."""
    exact = scipy.special.erf(x)
    return expm1_error(np.log1p(-np.abs(exact))) + spacing(exact, FLOAT)


def sigmoid_error(x, dtype):
    """For y = 1 / (1 + exp |x|), or 1 - y, with each step rounded to the type.

    y errs by exp (4 ulps in float), a sum and a quotient; 1 - y by no more ulps of its own.
    """
    exact = sigmoid(x)
    steps = 6 if dtype == FLOAT else 3
    with np.errstate(over="ignore"):
        overflows = 1 + np.exp(np.abs(x)) > float(ml_dtypes.finfo(dtype).max)
    return steps * spacing(exact, dtype) + np.where(overflows & (x < 0), exact, 0)


def oracle_and_error(op, x, dtype):
    """Exact results (float64) for arguments `x` of a float type, and how far they may be off."""
    if op == "Sigmoid":
        return sigmoid(x), sigmoid_error(x, dtype)
    if op == "Expm1":
        exact, error = np.expm1(x), expm1_error(x)
    elif op == "Erf":
        exact, error = scipy.special.erf(x), erf_error(x)
    else:
        _, oracle, _, ulps = ROWS[op]
        exact = oracle(x)
        error = ulps * spacing(exact, FLOAT)
        if dtype == FLOAT or not ulps:
            return exact, error
    # 16 bits: computed in float and rounded once more.
    return exact, error + (0 if dtype == FLOAT else 0.5 * spacing(exact, dtype))


ROWS = {row[0]: row for row in TABLE}
_RANGES = {"Expm1": (-20, 80), "Erf": (-4, 4), "Sigmoid": (-80, 80)}
_EXACT_ON_INTEGERS = {
    "Abs": np.abs, "BitwiseInvert": np.invert, "Ceil": np.positive, "Floor": np.positive,
    "Negative": np.negative, "Sign": np.sign, "Square": np.square, "LogicalNot": np.logical_not,
}  # fmt: skip


def to_fp8(x):
    """The nearest number of e4m3, saturated; NaN becomes the largest, as in PyTorch."""
    magnitude = np.minimum(np.nan_to_num(np.abs(x), nan=448, posinf=448), 448)
    return np.copysign(magnitude, x).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def from_fp8(bits):
    """Numbers of e4m3; what MLX makes of the two NaNs depends on its version."""
    return bits.view(ml_dtypes.float8_e4m3fn).astype(np.float64)


def arguments(op, dtype, rng):
    """Special values, and random ones where the function is interesting."""
    if dtype.kind == "c":
        return complex_functions.arguments(op, rng)
    if op == "FromFP8":
        return np.arange(256, dtype=np.uint8)
    limits = ROWS[op][2] if op in ROWS else _RANGES.get(op, (-440, 440))
    if dtype.itemsize == 2:  # where half has numbers
        limits = (max(limits[0], -1e4), min(limits[1], 1e4))
    return np.append(special_values(dtype), numbers(dtype, 280, rng, *limits))


def compare(op, x, out):
    """Assert that `out` is the operation of `x`, both of a kernel's own types."""
    if x.dtype.kind == "c":
        complex_functions.compare(op, x, out)
    elif op == "ToFP8":
        np.testing.assert_array_equal(out, to_fp8(wide(x)))
    elif op == "FromFP8":
        expected = from_fp8(x)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(out.astype(np.float64)[known], expected[known])
    elif x.dtype.kind == "b":
        np.testing.assert_array_equal(out, ~x if op == "LogicalNot" else x)
    elif x.dtype.kind in "iu":
        np.testing.assert_array_equal(out, _EXACT_ON_INTEGERS[op](x))
    else:
        with np.errstate(all="ignore"):
            exact, error = oracle_and_error(op, wide(x), x.dtype)
        assert_near(out, exact, np.nan_to_num(error, nan=0, posinf=0))


def check_kernel(kernel: mtl.Kernel, form: Form, op, source, result, rng) -> None:
    """Compare a kernel of an operation, from one type to another."""
    x = arguments(op, np.dtype(source), rng)
    for (given,), (out,) in run(kernel, form, [x], [result], source):
        compare(op, given, out)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    form, rest = form_of(name)
    op, types = types_at_end(rest)
    check_kernel(library.function(name), form, op, *types, rng)


FAMILIES = (Family("unary", ("unary.metal",), check),)
