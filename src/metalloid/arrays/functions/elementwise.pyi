"""Elementwise functions for type checkers: made of them by tests/array/test_elementwise_stub.py."""

from typing import Any

from metalloid.arrays.array import Array

def add(x1: Any, x2: Any, /) -> Array:
    """Sum, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::add(x1, x2)``. Derivative along a tangent t: ``t``, ``t``.
    """

def subtract(x1: Any, x2: Any, /) -> Array:
    """Difference, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::subtract(x1, x2)``. Derivative along a tangent t: ``t``, ``-t``.
    """

def multiply(x1: Any, x2: Any, /) -> Array:
    """Product, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. Parts of complex64: 1.5 ULP of the modulus. In MSL: ``numpy::multiply(x1, x2)``.
    Derivative along a tangent t: ``t * x2``, ``t * x1``.
    """

def divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, as a float, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``x1 / x2``. Derivative along a tangent t: ``t
    / x2``, ``-t * (result / x2)``.
    """

def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, rounded down, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. At most 1 ULP from the exact result in
    float32. In MSL: ``numpy::floor_divide(x1, x2)``. Derivative along a tangent t: ``0``, ``0``.
    """

def remainder(x1: Any, x2: Any, /) -> Array:
    """Remainder of `floor_divide`, with the sign of the divisor, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::remainder(x1, x2)``. Derivative along a tangent t: ``t``, ``-t * floor_divide(x1,
    x2)``.
    """

def pow(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power of `x2`; complex errors grow with `x2 log(x1)`, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::power(x1,
    x2)``. Derivative along a tangent t: ``t * (x2 * x1 ** where((x1 == 0) & (x2 == 0), 0, x2 -
    1))``, ``t * (result * log(where(x1 == 0, 1, x1)))``.
    """

def maximum(x1: Any, x2: Any, /) -> Array:
    """Maximum of two numbers; NaN if one is, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::maximum(x1, x2)``. Derivative along a tangent t: ``where(x1 > x2, t, 0)``, ``where(x1
    <= x2, t, 0)``.
    """

def minimum(x1: Any, x2: Any, /) -> Array:
    """Minimum of two numbers; NaN if one is, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::minimum(x1, x2)``. Derivative along a tangent t: ``where(x1 < x2, t, 0)``, ``where(x1
    >= x2, t, 0)``.
    """

def negative(x: Any, /) -> Array:
    """Negative, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::negative(x)``. Derivative along a tangent t: ``-t``.
    """

def positive(x: Any, /) -> Array:
    """Unchanged number, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``x``. Derivative along a tangent t: ``t``.
    """

def abs(x: Any, /) -> Array:
    """Absolute value, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. Parts of complex64: 1 ULP of the modulus. In MSL: ``numpy::absolute(x)``.
    Derivative along a tangent t: ``t * sign(x)``; of complex numbers: ``real(t * conj(sign(x)))``.
    """

def square(x: Any, /) -> Array:
    """Square, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``numpy::square(x)``. Derivative along a
    tangent t: ``t * (2 * x)``.
    """

def reciprocal(x: Any, /) -> Array:
    """Reciprocal, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::reciprocal(x)``. Derivative along a
    tangent t: ``-t * (result * result)``.
    """

def sign(x: Any, /) -> Array:
    """Sign: -1, 0 or 1; z / |z| for complex numbers, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``numpy::sign(x)``. Derivative along a tangent
    t: ``0``; of complex numbers: ``(t - result * real(t * conj(result))) / where(x == 0, inf,
    abs(x))``.
    """

def exp(x: Any, /) -> Array:
    """Exponential, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1 ULP from the exact
    result in float32. Parts of complex64: 2.5 ULP of the modulus. In MSL: ``exp(x)``. Derivative
    along a tangent t: ``t * result``.
    """

def exp2(x: Any, /) -> Array:
    """2 to the power of `x`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``exp2(x)``. Derivative along a tangent t: ``t * (result * 0.6931471805599453)``.
    """

def expm1(x: Any, /) -> Array:
    """`exp(x) - 1`, accurate for small x, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::expm1(x)``.
    Derivative along a tangent t: ``t * exp(x)``.
    """

def log(x: Any, /) -> Array:
    """Natural logarithm, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``log(x)``. Derivative
    along a tangent t: ``t / x``.
    """

def log1p(x: Any, /) -> Array:
    """`log(1 + x)`, accurate for small x, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::log1p(x)``.
    Derivative along a tangent t: ``t / (x + 1)``.
    """

def log2(x: Any, /) -> Array:
    """Logarithm to base 2, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``log2(x)``.
    Derivative along a tangent t: ``t * (1.4426950408889634 / x)``.
    """

def log10(x: Any, /) -> Array:
    """Logarithm to base 10, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``log10(x)``. Derivative
    along a tangent t: ``t * (0.4342944819032518 / x)``.
    """

def logaddexp(x1: Any, x2: Any, /) -> Array:
    """`log(exp(x1) + exp(x2))`, its error in ULP of the largest of the three, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 4 ULP from the exact result in float32. In
    MSL: ``numpy::logaddexp(x1, x2)``. Derivative along a tangent t: ``t *
    exp(-logaddexp(where(isinf(x1) & (x1 == x2), 0, x2 - x1), 0))``, ``t *
    exp(-logaddexp(where(isinf(x1) & (x1 == x2), 0, x1 - x2), 0))``.
    """

def sqrt(x: Any, /) -> Array:
    """Square root, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``sqrt(x)``. Derivative along a tangent t: ``t
    * (0.5 / result)``.
    """

def cbrt(x: Any, /) -> Array:
    """Cube root, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``numpy::cbrt(x)``. Derivative along a tangent t: ``t / (3 * result * result)``.
    """

def hypot(x1: Any, x2: Any, /) -> Array:
    """Length of the hypotenuse, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``numpy::hypot(x1, x2)``. Derivative along a tangent t: ``t * (x1 / where(result == 0, 1,
    result))``, ``t * (x2 / where(result == 0, 1, result))``.
    """

def erf(x: Any, /) -> Array:
    """Error function, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1.5 ULP from the exact result in float32. In
    MSL: ``numpy::erf(x)``. Derivative along a tangent t: ``t * (1.1283791670955126 * exp(-x *
    x))``.
    """

def erfinv(x: Any, /) -> Array:
    """Inverse of `erf`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 4 ULP from the exact result in float32. In
    MSL: ``numpy::erfinv(x)``. Derivative along a tangent t: ``t * (0.886226925452758 * exp(result *
    result))``.
    """

def i0(x: Any, /) -> Array:
    """Modified Bessel function of the first kind, order 0, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 5 ULP from the exact result in float32. In
    MSL: ``numpy::i0(x)``. Derivative along a tangent t: ``t * i1(x)``.
    """

def i1(x: Any, /) -> Array:
    """Modified Bessel function of the first kind, order 1, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 5 ULP from the exact result in float32. In
    MSL: ``numpy::i1(x)``. Derivative along a tangent t: ``t * (i0(x) - where(x == 0, 0.5, result /
    where(x == 0, 1, x)))``.
    """

def sin(x: Any, /) -> Array:
    """Sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``sin(x)``. Derivative
    along a tangent t: ``t * cos(x)``.
    """

def cos(x: Any, /) -> Array:
    """Cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``cos(x)``. Derivative
    along a tangent t: ``t * -sin(x)``.
    """

def tan(x: Any, /) -> Array:
    """Tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3.5 ULP from the
    exact result in float32. Parts of complex64: 5 ULP of the modulus. In MSL: ``tan(x)``.
    Derivative along a tangent t: ``t * (1 + result * result)``.
    """

def asin(x: Any, /) -> Array:
    """Arc sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``asin(x)``. Derivative
    along a tangent t: ``t / sqrt((1 - x) * (1 + x))``; of complex numbers: ``t / (sqrt(-(x - 1)) *
    sqrt(x - -1))``.
    """

def acos(x: Any, /) -> Array:
    """Arc cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``acos(x)``.
    Derivative along a tangent t: ``-t / sqrt((1 - x) * (1 + x))``; of complex numbers: ``-t /
    (sqrt(-(x - 1)) * sqrt(x - -1))``.
    """

def atan(x: Any, /) -> Array:
    """Arc tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``atan(x)``. Derivative
    along a tangent t: ``t / (1 + x * x)``.
    """

def atan2(x1: Any, x2: Any, /) -> Array:
    """Angle of the point (`x2`, `x1`), element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 2 ULP from the exact result in float32. In
    MSL: ``numpy::atan2(x1, x2)``. Derivative along a tangent t: ``t * (x2 / hypot(x1, x2) /
    hypot(x1, x2))``, ``-t * (x1 / hypot(x1, x2) / hypot(x1, x2))``.
    """

def sinh(x: Any, /) -> Array:
    """Hyperbolic sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``sinh(x)``. Derivative
    along a tangent t: ``t * cosh(x)``.
    """

def cosh(x: Any, /) -> Array:
    """Hyperbolic cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``cosh(x)``. Derivative
    along a tangent t: ``t * sinh(x)``.
    """

def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 5 ULP of the modulus. In MSL: ``tanh(x)``. Derivative
    along a tangent t: ``t * ((1 - result) * (1 + result))``.
    """

def asinh(x: Any, /) -> Array:
    """Inverse hyperbolic sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``asinh(x)``. Derivative
    along a tangent t: ``t / hypot(x, 1)``; of complex numbers: ``t / sqrt(x * x - -1)``.
    """

def acosh(x: Any, /) -> Array:
    """Inverse hyperbolic cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``acosh(x)``.
    Derivative along a tangent t: ``t / (sqrt(x - 1) * sqrt(x - -1))``.
    """

def atanh(x: Any, /) -> Array:
    """Inverse hyperbolic tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``atanh(x)``.
    Derivative along a tangent t: ``t / ((1 - x) * (1 + x))``.
    """

def floor(x: Any, /) -> Array:
    """Largest integer not above, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::floor(x)``. Derivative along a tangent t: ``0``.
    """

def ceil(x: Any, /) -> Array:
    """Smallest integer not below, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::ceil(x)``. Derivative along a tangent t: ``0``.
    """

def trunc(x: Any, /) -> Array:
    """Integer part, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::trunc(x)``. Derivative along a tangent t: ``0``.
    """

def round(x: Any, /) -> Array:
    """Nearest integer, halves to even, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::round(x)``. Derivative along a tangent t: ``0``.
    """

def equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` equals `x2`, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``x1 == x2``.
    """

def not_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` differs from `x2`, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``x1 != x2``.
    """

def less(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is less than `x2`, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 <
    x2``.
    """

def less_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is at most `x2`, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1
    <= x2``.
    """

def greater(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is greater than `x2`, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 >
    x2``.
    """

def greater_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is at least `x2`, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1
    >= x2``.
    """

def isnan(x: Any, /) -> Array:
    """Whether a number is NaN, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::isnan(x)``.
    """

def isinf(x: Any, /) -> Array:
    """Whether a number is infinite, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::isinf(x)``.
    """

def isfinite(x: Any, /) -> Array:
    """Whether a number is neither infinite nor NaN, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::isfinite(x)``.
    """

def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set, as for -0, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``signbit(x)``.
    """

def logical_and(x1: Any, x2: Any, /) -> Array:
    """Logical and, element-wise.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 && x2``.
    """

def logical_or(x1: Any, x2: Any, /) -> Array:
    """Logical or, element-wise.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 || x2``.
    """

def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Logical exclusive or, element-wise.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 != x2``.
    """

def logical_not(x: Any, /) -> Array:
    """Logical not, element-wise.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``!x``.
    """

def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """Bitwise and, element-wise.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 &
    x2``.
    """

def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """Bitwise or, element-wise.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 |
    x2``.
    """

def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """Bitwise exclusive or, element-wise.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 ^
    x2``.
    """

def bitwise_invert(x: Any, /) -> Array:
    """Bitwise complement, element-wise.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::invert(x)``.
    """

def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """Bits shifted left by `x2`, element-wise.

    Supports integers. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::shift_left(x1, x2)``.
    """

def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """Bits shifted right by `x2`, with sign extension, element-wise.

    Supports integers. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::shift_right(x1, x2)``.
    """

def bitwise_count(x: Any, /) -> Array:
    """Number of bits that are 1 in the absolute value, element-wise.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::count_bits(x)``.
    """

def gcd(x1: Any, x2: Any, /) -> Array:
    """Greatest common divisor, element-wise.

    Supports integers. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``numpy::gcd(x1,
    x2)``.
    """

def lcm(x1: Any, x2: Any, /) -> Array:
    """Least common multiple, element-wise.

    Supports integers. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``numpy::lcm(x1,
    x2)``.
    """

def real(x: Any, /) -> Array:
    """The real part, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::real(x)``. Derivative along a tangent t: ``t``; of complex
    numbers: ``real(t)``.
    """

def imag(x: Any, /) -> Array:
    """The imaginary part, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::imag(x)``. Derivative along a tangent t: ``0``; of complex numbers:
    ``imag(t)``.
    """

def conj(x: Any, /) -> Array:
    """The complex conjugate, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::conj(x)``. Derivative along a tangent t: ``t``; of complex numbers:
    ``conj(t)``.
    """

def copysign(x1: Any, x2: Any, /) -> Array:
    """`x1` with the sign of `x2`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``copysign(x1,
    x2)``. Derivative along a tangent t: ``where(signbit(x1) == signbit(x2), t, -t)``, ``0``.
    """

def nextafter(x1: Any, x2: Any, /) -> Array:
    """The next number after `x1` in the direction of `x2`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``nextafter(x1,
    x2)``.
    """
