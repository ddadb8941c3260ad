"""Binary kernels, with one result or two."""

from __future__ import annotations

import numpy as np

import metalloid as mtl
from mlx_tree import complex_arithmetic
from mlx_tree.agreement import Family, assert_near, assert_ulps, roundoff, spacing
from mlx_tree.element_types import is_float, numbers, special_values, types_at_end, wide
from mlx_tree.elementwise import Form, form_of, run


def remainder(x, y):
    """The one that has the sign of y, exact for the arguments before it is rounded."""
    return np.mod(x, y)


#: Operation and oracle on float64, bound in ulps. Half an ulp is a single rounding; the other
#: bounds are the Metal specification's.
FLOATS = {
    "Add": (np.add, 0.5), "Subtract": (np.subtract, 0.5), "Multiply": (np.multiply, 0.5),
    "Divide": (np.divide, 0.5), "Maximum": (np.maximum, 0), "Minimum": (np.minimum, 0),
    "Remainder": (remainder, 0.5), "Power": (np.power, 16), "ArcTan2": (np.arctan2, 6),
}  # fmt: skip
#: What float64 itself may add to half an ulp of float.
_SLACK = 1e-7

COMPARISONS = {
    "Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less, "LessEqual": np.less_equal,
    "Greater": np.greater, "GreaterEqual": np.greater_equal,
    "NaNEqual": lambda x, y: (x == y) | ((x != x) & (y != y)),
}  # fmt: skip


def quotient(x, y):
    """Towards zero, as C has it."""
    down = x // y
    return down + ((down < 0) & (down * y != x)).astype(x.dtype)


def power(x, y):
    """Powers of integers, modulo 2 to the number of bits; 0 for negative exponents."""
    modulus = 1 << (8 * x.itemsize)
    results = [pow(int(a), int(b), modulus) if b >= 0 else 0 for a, b in zip(x.flat, y.flat)]  # noqa: B905
    return np.array(results, np.uint64).astype(x.dtype).reshape(x.shape)


INTEGERS = {
    "Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply, "Divide": quotient,
    "Maximum": np.maximum, "Minimum": np.minimum, "Remainder": np.mod, "Power": power,
    "FloorDivide": np.floor_divide, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor, "LeftShift": np.left_shift, "RightShift": np.right_shift,
}  # fmt: skip
#: Truths are the integers 0 and 1, and every other result is 1.
TRUTHS = {
    "Add": np.logical_or, "Subtract": np.logical_xor, "Multiply": np.logical_and,
    "Divide": lambda x, y: x, "FloorDivide": lambda x, y: x, "Remainder": np.logical_and,
    "Maximum": np.logical_or, "Minimum": np.logical_and, "Power": lambda x, y: x | ~y,
    "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or, "BitwiseAnd": np.logical_and,
    "BitwiseOr": np.logical_or, "BitwiseXor": np.logical_xor,
}  # fmt: skip
_DIVISIONS = ("Divide", "FloorDivide", "Remainder", "DivMod")


def log_add_exp_error(x, y, exact, dtype):
    """For max + log1p(exp(min - max)), with each step rounded to the type.

    A difference d whose error exp multiplies by |d|, a few ulps of exp and of log1p, and a sum.
    """
    difference = np.nan_to_num(np.abs(x - y), nan=0, posinf=0)
    term = np.log1p(np.exp(-difference))
    return (difference + 12) * 2 * roundoff(dtype) * term + 0.51 * spacing(exact, dtype)


def floor_quotient(x, y):
    """floor(x / y), where the quotient is rounded to the type of both."""
    single = x.astype(np.float32) / y.astype(np.float32)  # rounding twice does no harm here
    return np.floor(single.astype(x.dtype).astype(np.float64))


def arguments(op, dtype, rng):
    """Special values with each other, and random ones, for which the operation is defined."""
    special = special_values(dtype)[:16] if dtype.kind != "c" else complex_arithmetic.special(op)
    first, second = (grid.reshape(-1) for grid in np.meshgrid(special, special))
    if dtype.kind == "c":
        more = complex_arithmetic.arguments(op, rng)
    else:
        more = [numbers(dtype, 150, rng, -9, 9) for _ in range(2)]
    x, y = (np.append(a, b).astype(dtype) for a, b in zip((first, second), more, strict=True))
    if op == "Power" and is_float(dtype):
        x[-100:] = np.abs(x[-100:])
    if dtype.kind in "biu" and op in _DIVISIONS:
        y[y == 0] = 1
        if dtype.kind == "i":  # the one quotient that does not fit has -1 below it
            x[x == np.iinfo(dtype).min] += 1
    if "Shift" in op:
        y = y & dtype.type(8 * dtype.itemsize - 1)
    if op == "Power" and dtype.kind in "iu":
        y = y % dtype.type(64)
    if op == "Power" and dtype.kind == "i":
        y[::7] = -2
    return x, y


def compare(op, x, y, out):
    """Assert that `out` is the operation of `x` and `y`, all of a kernel's own types."""
    x, y = np.broadcast_arrays(x, y)
    if x.dtype.kind == "c":
        complex_arithmetic.compare(op, x, y, out)
    elif op in COMPARISONS:
        np.testing.assert_array_equal(out, COMPARISONS[op](wide(x), wide(y)))
    elif x.dtype.kind in "biu":
        table = TRUTHS if x.dtype.kind == "b" else INTEGERS
        with np.errstate(all="ignore"):
            expected = table[op](x, y)
        if op == "Remainder" and x.dtype.kind == "b":
            expected = np.zeros_like(x)  # by 1: by 0 it is not defined
        np.testing.assert_array_equal(out, expected)
    else:
        with np.errstate(all="ignore"):
            _compare_floats(op, x, y, out)


def _compare_floats(op, x, y, out):
    a, b = wide(x), wide(y)
    if op == "FloorDivide":
        assert_ulps(out, floor_quotient(x, y), 0)
    elif op == "LogAddExp":
        exact = np.logaddexp(a, b)
        assert_near(out, exact, np.nan_to_num(log_add_exp_error(a, b, exact, x.dtype)))
    else:
        oracle, ulps = FLOATS[op]
        exact = oracle(a, b)
        if ulps > 1 and x.dtype.itemsize == 2:  # computed in float and rounded once more
            ulps = 0.51
        assert_ulps(out, exact, ulps + _SLACK)


def check_kernel(kernel: mtl.Kernel, form: Form, op, dtype, rng) -> None:
    """Compare a kernel of an operation of two numbers of one type."""
    dtype = np.dtype(dtype)
    result = np.dtype(bool) if op in COMPARISONS else dtype
    pools = arguments(op, dtype, rng)
    if op != "DivMod":
        for (x, y), (out,) in run(kernel, form, pools, [result], dtype):
            compare(op, x, y, out)
        return
    for (x, y), outs in run(kernel, form, pools, [result, result], dtype):
        for op, out in zip(("FloorDivide", "Remainder"), outs, strict=True):
            compare(op, x, y, out)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    form, rest = form_of(name)
    op, (dtype,) = types_at_end(rest)
    check_kernel(library.function(name), form, op, dtype, rng)


FAMILIES = (
    Family("binary", ("binary.metal",), check),
    Family("binary_two", ("binary_two.metal",), check),
)
