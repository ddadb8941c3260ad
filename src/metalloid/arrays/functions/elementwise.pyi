"""Elementwise functions for type checkers: made of them by tests/array/test_elementwise_stub.py."""

from typing import Any

from metalloid.arrays.array import Array

def add(x1: Any, x2: Any, /) -> Array:
    """Sum, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::add(x1, x2)``.
    """

def subtract(x1: Any, x2: Any, /) -> Array:
    """Difference, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::subtract(x1, x2)``.
    """

def multiply(x1: Any, x2: Any, /) -> Array:
    """Product, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. Parts of complex64: 1.5 ULP of the modulus. In MSL: ``numpy::multiply(x1, x2)``.
    """

def divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, a float, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``x1 / x2``.
    """

def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, rounded down, for every element.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. At most 1 ULP from the exact result in
    float32. In MSL: ``numpy::floor_divide(x1, x2)``.
    """

def remainder(x1: Any, x2: Any, /) -> Array:
    """Remainder of `floor_divide`, with the sign of the divisor, for every element.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::remainder(x1, x2)``.
    """

def pow(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power of `x2`; complex errors grow with `x2 log(x1)`, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::power(x1,
    x2)``.
    """

def maximum(x1: Any, x2: Any, /) -> Array:
    """The larger of two; NaN if one is, for every element.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::maximum(x1, x2)``.
    """

def minimum(x1: Any, x2: Any, /) -> Array:
    """The smaller of two; NaN if one is, for every element.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::minimum(x1, x2)``.
    """

def negative(x: Any, /) -> Array:
    """The number with its sign changed, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::negative(x)``.
    """

def positive(x: Any, /) -> Array:
    """The number itself, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``x``.
    """

def abs(x: Any, /) -> Array:
    """Absolute value, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. Parts of complex64: 1 ULP of the modulus. In MSL: ``numpy::absolute(x)``.
    """

def square(x: Any, /) -> Array:
    """The number times itself, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``numpy::square(x)``.
    """

def reciprocal(x: Any, /) -> Array:
    """One over the number, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::reciprocal(x)``.
    """

def sign(x: Any, /) -> Array:
    """-1, 0 or 1; of a complex number, z / |z|, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``numpy::sign(x)``.
    """

def exp(x: Any, /) -> Array:
    """e to the power of the number, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1 ULP from the exact
    result in float32. Parts of complex64: 2.5 ULP of the modulus. In MSL: ``exp(x)``.
    """

def exp2(x: Any, /) -> Array:
    """2 to the power of the number, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``exp2(x)``.
    """

def expm1(x: Any, /) -> Array:
    """`exp(x) - 1`, exact where x is small, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::expm1(x)``.
    """

def log(x: Any, /) -> Array:
    """Natural logarithm, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``log(x)``.
    """

def log1p(x: Any, /) -> Array:
    """`log(1 + x)`, exact where x is small, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::log1p(x)``.
    """

def log2(x: Any, /) -> Array:
    """Logarithm to base 2, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``log2(x)``.
    """

def log10(x: Any, /) -> Array:
    """Logarithm to base 10, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``log10(x)``.
    """

def logaddexp(x1: Any, x2: Any, /) -> Array:
    """`log(exp(x1) + exp(x2))`, its error in units of the largest of the three, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 4 ULP from the exact result in float32. In
    MSL: ``numpy::logaddexp(x1, x2)``.
    """

def sqrt(x: Any, /) -> Array:
    """Square root, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    Parts of complex64: 2 ULP of the modulus. In MSL: ``sqrt(x)``.
    """

def hypot(x1: Any, x2: Any, /) -> Array:
    """Length of the hypotenuse, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1 ULP from the exact result in float32. In
    MSL: ``numpy::hypot(x1, x2)``.
    """

def erf(x: Any, /) -> Array:
    """Error function: the part of a normal distribution within `x` times the square root of 2, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 1.5 ULP from the exact result in float32. In
    MSL: ``numpy::erf(x)``.
    """

def erfinv(x: Any, /) -> Array:
    """The number whose `erf` is x, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 4 ULP from the exact result in float32. In
    MSL: ``numpy::erfinv(x)``.
    """

def sin(x: Any, /) -> Array:
    """Sine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``sin(x)``.
    """

def cos(x: Any, /) -> Array:
    """Cosine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``cos(x)``.
    """

def tan(x: Any, /) -> Array:
    """Tangent, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3.5 ULP from the
    exact result in float32. Parts of complex64: 5 ULP of the modulus. In MSL: ``tan(x)``.
    """

def asin(x: Any, /) -> Array:
    """Arc sine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``asin(x)``.
    """

def acos(x: Any, /) -> Array:
    """Arc cosine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 1.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``acos(x)``.
    """

def atan(x: Any, /) -> Array:
    """Arc tangent, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``atan(x)``.
    """

def atan2(x1: Any, x2: Any, /) -> Array:
    """Angle of the point (`x2`, `x1`), for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. At most 2 ULP from the exact result in float32. In
    MSL: ``numpy::atan2(x1, x2)``.
    """

def sinh(x: Any, /) -> Array:
    """Hyperbolic sine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``sinh(x)``.
    """

def cosh(x: Any, /) -> Array:
    """Hyperbolic cosine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 3 ULP of the modulus. In MSL: ``cosh(x)``.
    """

def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 3 ULP from the exact
    result in float32. Parts of complex64: 5 ULP of the modulus. In MSL: ``tanh(x)``.
    """

def asinh(x: Any, /) -> Array:
    """Inverse hyperbolic sine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2 ULP from the exact
    result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``asinh(x)``.
    """

def acosh(x: Any, /) -> Array:
    """Inverse hyperbolic cosine, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``acosh(x)``.
    """

def atanh(x: Any, /) -> Array:
    """Inverse hyperbolic tangent, for every element.

    Supports floats, complex numbers. Shapes broadcast and types are promoted. Integers are
    converted to float32 by functions that are defined for floats only. At most 2.5 ULP from the
    exact result in float32. Parts of complex64: 4 ULP of the modulus. In MSL: ``atanh(x)``.
    """

def floor(x: Any, /) -> Array:
    """The largest whole number not above, for every element.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::floor(x)``.
    """

def ceil(x: Any, /) -> Array:
    """The smallest whole number not below, for every element.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::ceil(x)``.
    """

def trunc(x: Any, /) -> Array:
    """The whole number nearer to zero, for every element.

    Supports integers, floats. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::trunc(x)``.
    """

def round(x: Any, /) -> Array:
    """The nearest whole number, halves to even, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::round(x)``.
    """

def equal(x1: Any, x2: Any, /) -> Array:
    """Whether two are equal, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``x1 == x2``.
    """

def not_equal(x1: Any, x2: Any, /) -> Array:
    """Whether two differ, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``x1 != x2``.
    """

def less(x1: Any, x2: Any, /) -> Array:
    """Whether the first is smaller, for every element.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 <
    x2``.
    """

def less_equal(x1: Any, x2: Any, /) -> Array:
    """Whether the first is not larger, for every element.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1
    <= x2``.
    """

def greater(x1: Any, x2: Any, /) -> Array:
    """Whether the first is larger, for every element.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 >
    x2``.
    """

def greater_equal(x1: Any, x2: Any, /) -> Array:
    """Whether the first is not smaller, for every element.

    Supports bool, integers, floats. Shapes broadcast and types are promoted. Integers are converted
    to float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1
    >= x2``.
    """

def isnan(x: Any, /) -> Array:
    """Whether it is no number, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::isnan(x)``.
    """

def isinf(x: Any, /) -> Array:
    """Whether it is infinite, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::isinf(x)``.
    """

def isfinite(x: Any, /) -> Array:
    """Whether it is neither infinite nor NaN, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::isfinite(x)``.
    """

def signbit(x: Any, /) -> Array:
    """Whether the sign is negative, also of -0, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``signbit(x)``.
    """

def logical_and(x1: Any, x2: Any, /) -> Array:
    """Whether both are true, for every element.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 && x2``.
    """

def logical_or(x1: Any, x2: Any, /) -> Array:
    """Whether one is true, for every element.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 || x2``.
    """

def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Whether one is true and the other is not, for every element.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 != x2``.
    """

def logical_not(x: Any, /) -> Array:
    """Whether it is false, for every element.

    Supports bool. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``!x``.
    """

def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """Bits that both have, for every element.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 &
    x2``.
    """

def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """Bits that one has, for every element.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 |
    x2``.
    """

def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """Bits that one has and the other has not, for every element.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL: ``x1 ^
    x2``.
    """

def bitwise_invert(x: Any, /) -> Array:
    """All bits changed, for every element.

    Supports bool, integers. Shapes broadcast and types are promoted. Integers are converted to
    float32 by functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::invert(x)``.
    """

def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """Bits moved up by `x2` places, for every element.

    Supports integers. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::shift_left(x1, x2)``.
    """

def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """Bits moved down by `x2` places, with the sign, for every element.

    Supports integers. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL:
    ``numpy::shift_right(x1, x2)``.
    """

def real(x: Any, /) -> Array:
    """The real part, for every element.

    Supports bool, integers, floats, complex numbers. Shapes broadcast and types are promoted.
    Integers are converted to float32 by functions that are defined for floats only. Exact, or
    rounded once. In MSL: ``numpy::real(x)``.
    """

def imag(x: Any, /) -> Array:
    """The imaginary part, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::imag(x)``.
    """

def conj(x: Any, /) -> Array:
    """The complex conjugate, for every element.

    Supports integers, floats, complex numbers. Shapes broadcast and types are promoted. Integers
    are converted to float32 by functions that are defined for floats only. Exact, or rounded once.
    In MSL: ``numpy::conj(x)``.
    """

def copysign(x1: Any, x2: Any, /) -> Array:
    """`x1` with the sign of `x2`, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``copysign(x1,
    x2)``.
    """

def nextafter(x1: Any, x2: Any, /) -> Array:
    """The next number after `x1` in the direction of `x2`, for every element.

    Supports floats. Shapes broadcast and types are promoted. Integers are converted to float32 by
    functions that are defined for floats only. Exact, or rounded once. In MSL: ``nextafter(x1,
    x2)``.
    """
