"""Elementwise functions for type checkers: made of them by tests/array/test_elementwise_stub.py."""

from typing import Any

from metalloid.arrays.array import Array

def add(x1: Any, x2: Any, /) -> Array:
    """Sum, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::add(x1, x2)``.
    """

def subtract(x1: Any, x2: Any, /) -> Array:
    """Difference, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::subtract(x1, x2)``.
    """

def multiply(x1: Any, x2: Any, /) -> Array:
    """Product, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. Parts of complex64: 1.5 ULP of the modulus. In MSL: ``numpy::multiply(x1, x2)``.
    """

def divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, as a float, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``x1 / x2``.
    """

def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, rounded down, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. At most 1 ULP from the exact result in
    float32. In MSL: ``numpy::floor_divide(x1, x2)``.
    """

def remainder(x1: Any, x2: Any, /) -> Array:
    """Remainder of `floor_divide`, with the sign of the divisor, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::remainder(x1, x2)``.
    """

def pow(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power of `x2`; complex errors grow with `x2 log(x1)`, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::power(x1,
    x2)``.
    """

def maximum(x1: Any, x2: Any, /) -> Array:
    """Maximum of two numbers; NaN if one is, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::maximum(x1, x2)``.
    """

def minimum(x1: Any, x2: Any, /) -> Array:
    """Minimum of two numbers; NaN if one is, element-wise.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::minimum(x1, x2)``.
    """

def negative(x: Any, /) -> Array:
    """Negative, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::negative(x)``.
    """

def positive(x: Any, /) -> Array:
    """Unchanged number, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``x``.
    """

def abs(x: Any, /) -> Array:
    """Absolute value, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. Parts of complex64: 1 ULP of the modulus. In MSL: ``numpy::absolute(x)``.
    """

def square(x: Any, /) -> Array:
    """Square, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``numpy::square(x)``.
    """

def reciprocal(x: Any, /) -> Array:
    """Reciprocal, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::reciprocal(x)``.
    """

def sign(x: Any, /) -> Array:
    """Sign: -1, 0 or 1; z / |z| for complex numbers, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``numpy::sign(x)``.
    """

def exp(x: Any, /) -> Array:
    """Exponential, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1 ULP from the exact
    result in float32. Parts of complex64: 2.5 ULP of the modulus. In MSL: ``exp(x)``.
    """

def exp2(x: Any, /) -> Array:
    """2 to the power of `x`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``exp2(x)``.
    """

def expm1(x: Any, /) -> Array:
    """`exp(x) - 1`, accurate for small x, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::expm1(x)``.
    """

def log(x: Any, /) -> Array:
    """Natural logarithm, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``log(x)``.
    """

def log1p(x: Any, /) -> Array:
    """`log(1 + x)`, accurate for small x, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::log1p(x)``.
    """

def log2(x: Any, /) -> Array:
    """Logarithm to base 2, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``log2(x)``.
    """

def log10(x: Any, /) -> Array:
    """Logarithm to base 10, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``log10(x)``.
    """

def logaddexp(x1: Any, x2: Any, /) -> Array:
    """`log(exp(x1) + exp(x2))`, its error in ULP of the largest of the three, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 4 ULP from the exact result in float32. In
    MSL: ``numpy::logaddexp(x1, x2)``.
    """

def sqrt(x: Any, /) -> Array:
    """Square root, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``sqrt(x)``.
    """

def hypot(x1: Any, x2: Any, /) -> Array:
    """Length of the hypotenuse, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``numpy::hypot(x1, x2)``.
    """

def erf(x: Any, /) -> Array:
    """Error function, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1.5 ULP from the exact result in float32. In
    MSL: ``numpy::erf(x)``.
    """

def erfinv(x: Any, /) -> Array:
    """Inverse of `erf`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 4 ULP from the exact result in float32. In
    MSL: ``numpy::erfinv(x)``.
    """

def sin(x: Any, /) -> Array:
    """Sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``sin(x)``.
    """

def cos(x: Any, /) -> Array:
    """Cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``cos(x)``.
    """

def tan(x: Any, /) -> Array:
    """Tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3.5 ULP from the
    exact result in float32. Parts of complex64: 5 ULP of the modulus. In MSL: ``tan(x)``.
    """

def asin(x: Any, /) -> Array:
    """Arc sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``asin(x)``.
    """

def acos(x: Any, /) -> Array:
    """Arc cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``acos(x)``.
    """

def atan(x: Any, /) -> Array:
    """Arc tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``atan(x)``.
    """

def atan2(x1: Any, x2: Any, /) -> Array:
    """Angle of the point (`x2`, `x1`), element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 2 ULP from the exact result in float32. In
    MSL: ``numpy::atan2(x1, x2)``.
    """

def sinh(x: Any, /) -> Array:
    """Hyperbolic sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``sinh(x)``.
    """

def cosh(x: Any, /) -> Array:
    """Hyperbolic cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``cosh(x)``.
    """

def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 5 ULP of the modulus. In MSL: ``tanh(x)``.
    """

def asinh(x: Any, /) -> Array:
    """Inverse hyperbolic sine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``asinh(x)``.
    """

def acosh(x: Any, /) -> Array:
    """Inverse hyperbolic cosine, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``acosh(x)``.
    """

def atanh(x: Any, /) -> Array:
    """Inverse hyperbolic tangent, element-wise.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``atanh(x)``.
    """

def floor(x: Any, /) -> Array:
    """Largest integer not above, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::floor(x)``.
    """

def ceil(x: Any, /) -> Array:
    """Smallest integer not below, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::ceil(x)``.
    """

def trunc(x: Any, /) -> Array:
    """Integer part, element-wise.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::trunc(x)``.
    """

def round(x: Any, /) -> Array:
    """Nearest integer, halves to even, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::round(x)``.
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

def real(x: Any, /) -> Array:
    """The real part, element-wise.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::real(x)``.
    """

def imag(x: Any, /) -> Array:
    """The imaginary part, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::imag(x)``.
    """

def conj(x: Any, /) -> Array:
    """The complex conjugate, element-wise.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::conj(x)``.
    """

def copysign(x1: Any, x2: Any, /) -> Array:
    """`x1` with the sign of `x2`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``copysign(x1,
    x2)``.
    """

def nextafter(x1: Any, x2: Any, /) -> Array:
    """The next number after `x1` in the direction of `x2`, element-wise.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``nextafter(x1,
    x2)``.
    """
