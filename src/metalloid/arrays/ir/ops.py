"""The table of elementwise operations, one row each.

Functions, methods and operators of arrays, the text of kernels, the documentation and the tests all
follow from these rows. `{0}`, `{1}` ... in a text are the operands; they are plain names. What MSL
does not have, or has with other results than NumPy's, stands in ``arrays.metal`` (namespace numpy).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from metalloid.arrays.ir.dtypes import (
    DType,
    bool_,
    default_float,
    float_for,
    is_integral,
    kind_of,
    promote,
    real_of,
    type_rules,
    uint8,
)

#: Kinds of element types: booleans, integers of either sort, floats, complex numbers.
INTEGERS, REALS, NUMBERS = "iu", "iuf", "iufc"
FLOATS, FLOATS_AND_COMPLEX, ANY = "f", "fc", "biufc"

#: Modules with functions of 64-bit floats, ``metal/doubles/*.metal``, in their order.
MODULES = ("exponential", "trigonometric", "inverse", "hyperbolic", "special", "bessel")

#: `Op.tangents` of operations whose results are booleans, integers or bits.
NO_DERIVATIVE: tuple[str, ...] = ()


def _same(dtype: DType) -> DType:
    return dtype


def _truth(dtype: DType) -> DType:
    return bool_


@dataclass(frozen=True, eq=False)
class Op:
    """An elementwise operation.

    Attributes
    ----------
    name : str
        The function's name in the array API.
    text : str
        The MSL expression.
    dtype_kinds : str
        Kinds of the types it computes in (`kind_of`).
    result : callable
        From the type it computes in to the type of its result.
    max_ulp : float
        Maximum error of float32 results, in units in the last place; 0 for exact or once rounded
        results. Half floats are rounded once; errors of float64 are not larger.
    complex_max_ulp : float
        Likewise for each part of complex64 results, in units in the last place of the modulus.
    cost : int
        Approximate run time, relative to an addition.
    reference : str
        NumPy's equivalent function; empty if it has the same name. With a dot, a function of
        another library.
    operands : int
    float_text : str
        A simpler expression for floats, if there is one.
    summary : str
        First sentence of the documentation.
    file : str
        The ``.metal`` files that the text requires in addition to those of all kernels, with spaces
        between them.
    doubles : tuple of str
        The `MODULES` that it requires for float64. Complex functions require all.
    tangents : tuple of str
        By operand, the derivative of the result along a tangent `t` of that operand, for floats and
        complex numbers, or `NO_DERIVATIVE`. An expression in `t`, in which it is linear, the
        operands `x`, `y`, `z`, the result `out`, and functions of this table; "0" if the derivative
        is zero almost everywhere. ``metalloid.transforms.elementwise`` evaluates it.
    complex_tangents : tuple of str
        Likewise for complex operands, if it differs.
    """

    name: str
    text: str
    dtype_kinds: str
    summary: str
    operands: int = 1
    result: Callable[[DType], DType] = _same
    max_ulp: float = 0
    complex_max_ulp: float = 0
    cost: int = 1
    reference: str = ""
    float_text: str = ""
    file: str = ""
    doubles: tuple[str, ...] = ()
    tangents: tuple[str, ...] = field(kw_only=True)
    complex_tangents: tuple[str, ...] = ()

    @property
    def takes_only_floats(self) -> bool:
        """Whether integers are converted to floats."""
        return "f" in self.dtype_kinds and "i" not in self.dtype_kinds

    def common_dtype(self, dtypes: Sequence[DType]) -> DType:
        """The promoted type of operands; NumPy converts each integer to a float if it must."""
        converts = type_rules.are_numpys and self.takes_only_floats
        if converts and (self.name != "divide" or not is_integral(*dtypes)):
            dtypes = [float_for(dtype) if is_integral(dtype) else dtype for dtype in dtypes]
        return functools.reduce(promote, dtypes)

    def dtype(self, dtype: DType) -> DType:
        """The type in which it computes for operands of `dtype`.

        Raises
        ------
        TypeError
            If it does not support the type.
        """
        kind = kind_of(dtype)
        if kind in self.dtype_kinds:
            return dtype
        if kind in "biu" and self.takes_only_floats:
            # As NumPy's functions, of which `divide` has no loops for short floats of integers.
            return default_float() if self.name == "divide" else float_for(dtype)
        raise TypeError(
            f"[{self.name}] is not supported for {dtype}. It takes {_words(self.dtype_kinds)}."
        )


def _words(dtype_kinds: str) -> str:
    names = {"b": "bool", "i": "integers", "f": "floats", "c": "complex numbers"}
    return ", ".join(word for letter, word in names.items() if letter in dtype_kinds)


def _unary(name: str, text: str, dtype_kinds: str, summary: str, **more: object) -> Op:
    return Op(name, text, dtype_kinds, summary, 1, **more)  # type: ignore[arg-type]


def _binary(name: str, text: str, dtype_kinds: str, summary: str, **more: object) -> Op:
    return Op(name, text, dtype_kinds, summary, 2, **more)  # type: ignore[arg-type]


_ARITHMETIC = (
    _binary("add", "numpy::add({0}, {1})", ANY, "Sum", float_text="{0} + {1}", tangents=("t", "t")),
    _binary("subtract", "numpy::subtract({0}, {1})", NUMBERS, "Difference",
            float_text="{0} - {1}", tangents=("t", "-t")),
    _binary("multiply", "numpy::multiply({0}, {1})", ANY, "Product",
            float_text="{0} * {1}", complex_max_ulp=1.5, tangents=("t * y", "t * x")),
    _binary("divide", "{0} / {1}", FLOATS_AND_COMPLEX, "Quotient, as a float",
            cost=4, complex_max_ulp=4, tangents=("t / y", "-t * (out / y)")),
    _binary("floor_divide", "numpy::floor_divide({0}, {1})", REALS,
            "Quotient, rounded down", cost=8, max_ulp=1, tangents=("0", "0")),
    _binary("remainder", "numpy::remainder({0}, {1})", REALS,
            "Remainder of `floor_divide`, with the sign of the divisor", cost=8,
            tangents=("t", "-t * floor_divide(x, y)")),
    _binary("pow", "numpy::power({0}, {1})", NUMBERS,
            "`x1` to the power of `x2`; complex errors grow with `x2 log(x1)`",
            cost=30, reference="power", max_ulp=2.5, complex_max_ulp=4, doubles=("exponential",),
            tangents=("t * (y * x ** where((x == 0) & (y == 0), 0, y - 1))",
                      "t * (out * log(where(x == 0, 1, x)))")),
    # MLX's convention for equal operands: the second has the derivative (in JAX each has half).
    _binary("maximum", "numpy::maximum({0}, {1})", "biuf", "Maximum of two numbers; NaN if one is",
            tangents=("where(x > y, t, 0)", "where(x <= y, t, 0)")),
    _binary("minimum", "numpy::minimum({0}, {1})", "biuf", "Minimum of two numbers; NaN if one is",
            tangents=("where(x < y, t, 0)", "where(x >= y, t, 0)")),
    _unary("negative", "numpy::negative({0})", NUMBERS, "Negative",
           float_text="-{0}", tangents=("-t",)),
    _unary("positive", "{0}", NUMBERS, "Unchanged number", tangents=("t",)),
    # The derivative at 0 is 0, as in MLX (in JAX 1).
    _unary("abs", "numpy::absolute({0})", ANY, "Absolute value", result=real_of,
           complex_max_ulp=1, tangents=("t * sign(x)",),
           complex_tangents=("real(t * conj(sign(x)))",)),
    _unary("square", "numpy::square({0})", NUMBERS, "Square",
           float_text="{0} * {0}", complex_max_ulp=2, tangents=("t * (2 * x)",)),
    _unary("reciprocal", "numpy::reciprocal({0})", FLOATS_AND_COMPLEX, "Reciprocal",
           cost=4, complex_max_ulp=4, tangents=("-t * (out * out)",)),
    _unary("sign", "numpy::sign({0})", NUMBERS, "Sign: -1, 0 or 1; z / |z| for complex numbers",
           reference="sign", complex_max_ulp=2, tangents=("0",),
           complex_tangents=("(t - out * real(t * conj(out))) / where(x == 0, inf, abs(x))",)),
)  # fmt: skip

_EXPONENTIAL = (
    _unary("exp", "exp({0})", FLOATS_AND_COMPLEX, "Exponential",
           cost=10, max_ulp=1, complex_max_ulp=2.5, doubles=("exponential",),
           tangents=("t * out",)),
    _unary("exp2", "exp2({0})", FLOATS, "2 to the power of `x`", cost=10, max_ulp=1,
           doubles=("exponential",), tangents=("t * (out * 0.6931471805599453)",)),
    _unary("expm1", "numpy::expm1({0})", FLOATS_AND_COMPLEX,
           "`exp(x) - 1`, accurate for small x", cost=25, max_ulp=3, complex_max_ulp=4,
           doubles=("exponential",), tangents=("t * exp(x)",)),
    _unary("log", "log({0})", FLOATS_AND_COMPLEX, "Natural logarithm",
           cost=10, max_ulp=1, complex_max_ulp=3, doubles=("exponential",), tangents=("t / x",)),
    _unary("log1p", "numpy::log1p({0})", FLOATS_AND_COMPLEX,
           "`log(1 + x)`, accurate for small x", cost=15, max_ulp=3, complex_max_ulp=4,
           doubles=("exponential",), tangents=("t / (x + 1)",)),
    _unary("log2", "log2({0})", FLOATS_AND_COMPLEX, "Logarithm to base 2",
           cost=10, max_ulp=2.5, complex_max_ulp=4, doubles=("exponential",),
           tangents=("t * (1.4426950408889634 / x)",)),
    _unary("log10", "log10({0})", FLOATS_AND_COMPLEX, "Logarithm to base 10",
           cost=10, max_ulp=2, complex_max_ulp=4, doubles=("exponential",),
           tangents=("t * (0.4342944819032518 / x)",)),
    _binary("logaddexp", "numpy::logaddexp({0}, {1})", FLOATS,
            "`log(exp(x1) + exp(x2))`, its error in ULP of the largest of the three",
            cost=25, max_ulp=4, doubles=("exponential",),
            tangents=("t * exp(-logaddexp(where(isinf(x) & (x == y), 0, y - x), 0))",
                      "t * exp(-logaddexp(where(isinf(x) & (x == y), 0, x - y), 0))")),
    _unary("sqrt", "sqrt({0})", FLOATS_AND_COMPLEX, "Square root", cost=4, complex_max_ulp=2,
           tangents=("t * (0.5 / out)",)),
    _unary("cbrt", "numpy::cbrt({0})", FLOATS, "Cube root", cost=8, max_ulp=1, file="cube_root",
           tangents=("t / (3 * out * out)",)),
    _binary("hypot", "numpy::hypot({0}, {1})", FLOATS, "Length of the hypotenuse", cost=8,
            max_ulp=1,
            tangents=("t * (x / where(out == 0, 1, out))", "t * (y / where(out == 0, 1, out))")),
)  # fmt: skip

_SPECIAL = (
    _unary("erf", "numpy::erf({0})", FLOATS, "Error function", max_ulp=1.5, cost=20,
           reference="scipy.special.erf", file="special", doubles=("exponential", "special"),
           tangents=("t * (1.1283791670955126 * exp(-x * x))",)),
    _unary("erfinv", "numpy::erfinv({0})", FLOATS, "Inverse of `erf`",
           max_ulp=4, cost=25, reference="scipy.special.erfinv", file="special",
           doubles=("exponential", "special"),
           tangents=("t * (0.886226925452758 * exp(out * out))",)),
    _unary("i0", "numpy::i0({0})", FLOATS, "Modified Bessel function of the first kind, order 0",
           max_ulp=5, cost=30, reference="scipy.special.i0", file="bessel",
           doubles=("exponential", "bessel"), tangents=("t * i1(x)",)),
    _unary("i1", "numpy::i1({0})", FLOATS, "Modified Bessel function of the first kind, order 1",
           max_ulp=5, cost=30, reference="scipy.special.i1", file="bessel",
           doubles=("exponential", "bessel"),
           tangents=("t * (i0(x) - where(x == 0, 0.5, out / where(x == 0, 1, x)))",)),
)  # fmt: skip

# Next to branch cuts, `x - -1` retains the sign of an imaginary part of zero; `x + 1` has +0.
_TRIGONOMETRIC = (
    _unary("sin", "sin({0})", FLOATS_AND_COMPLEX, "Sine", cost=15, max_ulp=2, complex_max_ulp=3,
           doubles=("trigonometric",), tangents=("t * cos(x)",)),
    _unary("cos", "cos({0})", FLOATS_AND_COMPLEX, "Cosine", cost=15, max_ulp=2, complex_max_ulp=3,
           doubles=("trigonometric",), tangents=("t * -sin(x)",)),
    _unary("tan", "tan({0})", FLOATS_AND_COMPLEX, "Tangent", cost=20, max_ulp=3.5,
           complex_max_ulp=5, doubles=("trigonometric",), tangents=("t * (1 + out * out)",)),
    _unary("asin", "asin({0})", FLOATS_AND_COMPLEX, "Arc sine", cost=15,
           reference="arcsin", max_ulp=2, complex_max_ulp=4, doubles=("inverse",),
           tangents=("t / sqrt((1 - x) * (1 + x))",),
           complex_tangents=("t / (sqrt(-(x - 1)) * sqrt(x - -1))",)),
    _unary("acos", "acos({0})", FLOATS_AND_COMPLEX, "Arc cosine", cost=15,
           reference="arccos", max_ulp=1.5, complex_max_ulp=4, doubles=("inverse",),
           tangents=("-t / sqrt((1 - x) * (1 + x))",),
           complex_tangents=("-t / (sqrt(-(x - 1)) * sqrt(x - -1))",)),
    _unary("atan", "atan({0})", FLOATS_AND_COMPLEX, "Arc tangent", cost=15,
           reference="arctan", max_ulp=2, complex_max_ulp=4, doubles=("inverse",),
           tangents=("t / (1 + x * x)",)),
    _binary("atan2", "numpy::atan2({0}, {1})", FLOATS, "Angle of the point (`x2`, `x1`)",
            cost=20, reference="arctan2", max_ulp=2, doubles=("inverse",),
            tangents=("t * (y / hypot(x, y) / hypot(x, y))",
                      "-t * (x / hypot(x, y) / hypot(x, y))")),
    _unary("sinh", "sinh({0})", FLOATS_AND_COMPLEX, "Hyperbolic sine",
           cost=20, max_ulp=2, complex_max_ulp=3, doubles=("exponential", "hyperbolic"),
           tangents=("t * cosh(x)",)),
    _unary("cosh", "cosh({0})", FLOATS_AND_COMPLEX, "Hyperbolic cosine",
           cost=20, max_ulp=2, complex_max_ulp=3, doubles=("exponential", "hyperbolic"),
           tangents=("t * sinh(x)",)),
    _unary("tanh", "tanh({0})", FLOATS_AND_COMPLEX, "Hyperbolic tangent",
           cost=20, max_ulp=3, complex_max_ulp=5, doubles=("exponential", "hyperbolic"),
           tangents=("t * ((1 - out) * (1 + out))",)),
    _unary("asinh", "asinh({0})", FLOATS_AND_COMPLEX, "Inverse hyperbolic sine",
           cost=25, reference="arcsinh", max_ulp=2, complex_max_ulp=4,
           doubles=("exponential", "hyperbolic"),
           tangents=("t / hypot(x, 1)",), complex_tangents=("t / sqrt(x * x - -1)",)),
    _unary("acosh", "acosh({0})", FLOATS_AND_COMPLEX, "Inverse hyperbolic cosine",
           cost=25, reference="arccosh", max_ulp=2.5, complex_max_ulp=4,
           doubles=("exponential", "hyperbolic"), tangents=("t / (sqrt(x - 1) * sqrt(x - -1))",)),
    _unary("atanh", "atanh({0})", FLOATS_AND_COMPLEX, "Inverse hyperbolic tangent",
           cost=25, reference="arctanh", max_ulp=2.5, complex_max_ulp=4,
           doubles=("exponential", "hyperbolic"), tangents=("t / ((1 - x) * (1 + x))",)),
)  # fmt: skip

_ROUNDING = (
    _unary("floor", "numpy::floor({0})", REALS, "Largest integer not above", tangents=("0",)),
    _unary("ceil", "numpy::ceil({0})", REALS, "Smallest integer not below", tangents=("0",)),
    _unary("trunc", "numpy::trunc({0})", REALS, "Integer part", tangents=("0",)),
    _unary(
        "round", "numpy::round({0})", NUMBERS, "Nearest integer, halves to even", tangents=("0",)
    ),
)

_COMPARISON = (
    _binary("equal", "{0} == {1}", ANY, "Whether `x1` equals `x2`", result=_truth,
            tangents=NO_DERIVATIVE),
    _binary("not_equal", "{0} != {1}", ANY, "Whether `x1` differs from `x2`", result=_truth,
            tangents=NO_DERIVATIVE),
    _binary("less", "{0} < {1}", "biuf", "Whether `x1` is less than `x2`", result=_truth,
            tangents=NO_DERIVATIVE),
    _binary("less_equal", "{0} <= {1}", "biuf", "Whether `x1` is at most `x2`",
            result=_truth, tangents=NO_DERIVATIVE),
    _binary("greater", "{0} > {1}", "biuf", "Whether `x1` is greater than `x2`", result=_truth,
            tangents=NO_DERIVATIVE),
    _binary("greater_equal", "{0} >= {1}", "biuf", "Whether `x1` is at least `x2`",
            result=_truth, tangents=NO_DERIVATIVE),
    _unary("isnan", "numpy::isnan({0})", ANY, "Whether a number is NaN", result=_truth,
           tangents=NO_DERIVATIVE),
    _unary("isinf", "numpy::isinf({0})", ANY, "Whether a number is infinite", result=_truth,
           tangents=NO_DERIVATIVE),
    _unary("isfinite", "numpy::isfinite({0})", ANY, "Whether a number is neither infinite nor NaN",
           result=_truth, tangents=NO_DERIVATIVE),
    _unary("signbit", "signbit({0})", FLOATS, "Whether the sign bit is set, as for -0",
           result=_truth, tangents=NO_DERIVATIVE),
)  # fmt: skip

_LOGIC = (
    _binary("logical_and", "{0} && {1}", "b", "Logical and", tangents=NO_DERIVATIVE),
    _binary("logical_or", "{0} || {1}", "b", "Logical or", tangents=NO_DERIVATIVE),
    _binary("logical_xor", "{0} != {1}", "b", "Logical exclusive or", tangents=NO_DERIVATIVE),
    _unary("logical_not", "!{0}", "b", "Logical not", tangents=NO_DERIVATIVE),
    _binary("bitwise_and", "{0} & {1}", "biu", "Bitwise and", tangents=NO_DERIVATIVE),
    _binary("bitwise_or", "{0} | {1}", "biu", "Bitwise or", tangents=NO_DERIVATIVE),
    _binary("bitwise_xor", "{0} ^ {1}", "biu", "Bitwise exclusive or", tangents=NO_DERIVATIVE),
    _unary("bitwise_invert", "numpy::invert({0})", "biu", "Bitwise complement", reference="invert",
           tangents=NO_DERIVATIVE),
    _binary("bitwise_left_shift", "numpy::shift_left({0}, {1})", INTEGERS,
            "Bits shifted left by `x2`", reference="left_shift", tangents=NO_DERIVATIVE),
    _binary("bitwise_right_shift", "numpy::shift_right({0}, {1})", INTEGERS,
            "Bits shifted right by `x2`, with sign extension", reference="right_shift",
            tangents=NO_DERIVATIVE),
    _unary("bitwise_count", "numpy::count_bits({0})", "biu",
           "Number of bits that are 1 in the absolute value", result=lambda dtype: uint8, cost=2,
           file="integers", tangents=NO_DERIVATIVE),
    _binary("gcd", "numpy::gcd({0}, {1})", INTEGERS, "Greatest common divisor", cost=100,
            file="integers", tangents=NO_DERIVATIVE),
    _binary("lcm", "numpy::lcm({0}, {1})", INTEGERS, "Least common multiple", cost=110,
            file="integers", tangents=NO_DERIVATIVE),
)  # fmt: skip

_PARTS = (
    _unary("real", "numpy::real({0})", ANY, "The real part", result=real_of,
           tangents=("t",), complex_tangents=("real(t)",)),
    _unary("imag", "numpy::imag({0})", NUMBERS, "The imaginary part", result=real_of,
           tangents=("0",), complex_tangents=("imag(t)",)),
    _unary("conj", "numpy::conj({0})", NUMBERS, "The complex conjugate",
           tangents=("t",), complex_tangents=("conj(t)",)),
    _binary("copysign", "copysign({0}, {1})", FLOATS, "`x1` with the sign of `x2`",
            tangents=("where(signbit(x) == signbit(y), t, -t)", "0")),
    _binary("nextafter", "nextafter({0}, {1})", FLOATS,
            "The next number after `x1` in the direction of `x2`", tangents=NO_DERIVATIVE),
)  # fmt: skip

#: The rows that are functions of the array API, by name.
OPS = {
    op.name: op
    for op in (*_ARITHMETIC, *_EXPONENTIAL, *_SPECIAL, *_TRIGONOMETRIC, *_ROUNDING, *_COMPARISON,
               *_LOGIC, *_PARTS)
}  # fmt: skip

#: Internal operations, whose operands may differ in type.
WHERE = Op(
    "where",
    "{0} ? {1} : {2}",
    ANY,
    "One of two by a condition",
    3,
    tangents=("0", "where(x, t, 0)", "where(x, 0, t)"),
)
CAST = Op(
    "astype", "numpy::cast<{T}>({0})", ANY, "The same number in another type", 1, tangents=("t",)
)
BITS = Op(
    "view", "as_type<{T}>({0})", ANY, "The same bits as another type", 1, tangents=NO_DERIVATIVE
)
VALUE_INDEX = Op(
    "value_index", "{T}({0}, {1})", ANY, "A value and its index", 2, tangents=NO_DERIVATIVE
)
INDEX_OF = Op("index", "{0}.index", ANY, "The index of a value", 1, tangents=NO_DERIVATIVE)


@dataclass(frozen=True)
class Reduction:
    """A reduction.

    Attributes
    ----------
    name : str
    text : str
        MSL of the commutative combiner. Both operands are always evaluated: one of them is
        another lane's value.
    identity : str
        MSL of the identity element; `{T}` is the type, `{V}` that of the value in a value-index
        pair.
    least, is_better : str
        For searches, which visit values by ascending index: the initial value, and the condition
        under which a value replaces the current one.
    """

    name: str
    text: str
    identity: str
    least: str = ""
    is_better: str = ""


REDUCTIONS = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", "numpy::add({0}, {1})", "{T}(0)"),
        Reduction("prod", "numpy::multiply({0}, {1})", "{T}(1)"),
        Reduction("max", "numpy::maximum({0}, {1})", "numpy::lowest<{T}>()"),
        Reduction("min", "numpy::minimum({0}, {1})", "numpy::highest<{T}>()"),
        # NaN only if all are: each is replaced by the other.
        Reduction("nanmax", "numpy::larger_number({0}, {1})", "{T}(NAN)"),
        Reduction("nanmin", "numpy::smaller_number({0}, {1})", "{T}(NAN)"),
        # Not || and &&: all lanes must evaluate the second operand, which is a shuffle.
        Reduction("any", "{0} | {1}", "false"),
        Reduction("all", "{0} & {1}", "true"),
        Reduction(
            "argmax",
            "numpy::larger({0}, {1})",
            "{T}(numpy::lowest<{V}>(), LONG_MAX)",
            "numpy::lowest<{V}>()",
            "numpy::is_larger({0}, {1})",
        ),
        Reduction(
            "argmin",
            "numpy::smaller({0}, {1})",
            "{T}(numpy::highest<{V}>(), LONG_MAX)",
            "numpy::highest<{V}>()",
            "numpy::is_smaller({0}, {1})",
        ),
    )
}
