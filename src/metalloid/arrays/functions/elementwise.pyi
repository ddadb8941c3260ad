"""Elementwise functions for type checkers: made of them by tests/array/test_elementwise_stub.py."""

from typing import Any

from metalloid.arrays.array import Array

def add(x1: Any, x2: Any, /) -> Array:
    """Sum, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::add({0}, {1})``.
    """

def subtract(x1: Any, x2: Any, /) -> Array:
    """Difference, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::subtract({0}, {1})``.
    """

def multiply(x1: Any, x2: Any, /) -> Array:
    """Product, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. Parts of complex64:
    1.5 ULP of the modulus. In MSL: ``numpy::multiply({0}, {1})``.
    """

def divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, a float, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. Parts of complex64: 4 ULP of the
    modulus. In MSL: ``{0} / {1}``.
    """

def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Quotient, rounded down, for every element.

    Of integers, floats. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. At most 1 ULP from the exact result in float32. In MSL:
    ``numpy::floor_divide({0}, {1})``.
    """

def remainder(x1: Any, x2: Any, /) -> Array:
    """Remainder of `floor_divide`, with the sign of the divisor, for every element.

    Of integers, floats. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::remainder({0}, {1})``.
    """

def pow(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power of `x2`; complex errors grow with `x2 log(x1)`, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. At most 2.5 ULP from the exact result in float32.
    Parts of complex64: 4 ULP of the modulus. In MSL: ``numpy::power({0}, {1})``.
    """

def maximum(x1: Any, x2: Any, /) -> Array:
    """The larger of two; NaN if one is, for every element.

    Of bool, integers, floats. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::maximum({0}, {1})``.
    """

def minimum(x1: Any, x2: Any, /) -> Array:
    """The smaller of two; NaN if one is, for every element.

    Of bool, integers, floats. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::minimum({0}, {1})``.
    """

def negative(x: Any, /) -> Array:
    """The number with its sign changed, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::negative({0})``.
    """

def positive(x: Any, /) -> Array:
    """The number itself, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. In MSL: ``{0}``.
    """

def abs(x: Any, /) -> Array:
    """Absolute value, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. Parts of complex64: 1
    ULP of the modulus. In MSL: ``numpy::absolute({0})``.
    """

def square(x: Any, /) -> Array:
    """The number times itself, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. Parts of complex64: 2 ULP
    of the modulus. In MSL: ``numpy::square({0})``.
    """

def reciprocal(x: Any, /) -> Array:
    """One over the number, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. Parts of complex64: 4 ULP of the
    modulus. In MSL: ``numpy::reciprocal({0})``.
    """

def sign(x: Any, /) -> Array:
    """-1, 0 or 1; of a complex number, z / |z|, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. Parts of complex64: 2 ULP
    of the modulus. In MSL: ``numpy::sign({0})``.
    """

def exp(x: Any, /) -> Array:
    """e to the power of the number, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 1 ULP from the exact result in float32. Parts of
    complex64: 2 ULP of the modulus. In MSL: ``exp({0})``.
    """

def exp2(x: Any, /) -> Array:
    """2 to the power of the number, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. At most 1 ULP from the exact result in float32. In MSL: ``exp2({0})``.
    """

def expm1(x: Any, /) -> Array:
    """`exp(x) - 1`, exact where x is small, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 3 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``numpy::expm1({0})``.
    """

def log(x: Any, /) -> Array:
    """Natural logarithm, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 1 ULP from the exact result in float32. Parts of
    complex64: 3 ULP of the modulus. In MSL: ``log({0})``.
    """

def log1p(x: Any, /) -> Array:
    """`log(1 + x)`, exact where x is small, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 3 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``numpy::log1p({0})``.
    """

def log2(x: Any, /) -> Array:
    """Logarithm to base 2, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 1.5 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``log2({0})``.
    """

def log10(x: Any, /) -> Array:
    """Logarithm to base 10, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``log10({0})``.
    """

def logaddexp(x1: Any, x2: Any, /) -> Array:
    """`log(exp(x1) + exp(x2))`, its error in units of the largest of the three, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. At most 4 ULP from the exact result in float32. In MSL: ``numpy::logaddexp({0},
    {1})``.
    """

def sqrt(x: Any, /) -> Array:
    """Square root, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. Parts of complex64: 2 ULP of the
    modulus. In MSL: ``sqrt({0})``.
    """

def hypot(x1: Any, x2: Any, /) -> Array:
    """Length of the hypotenuse, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. At most 1 ULP from the exact result in float32. In MSL: ``numpy::hypot({0},
    {1})``.
    """

def erf(x: Any, /) -> Array:
    """Error function: the part of a normal distribution within `x` times the square root of 2, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. At most 1.5 ULP from the exact result in float32. In MSL: ``numpy::erf({0})``.
    """

def erfinv(x: Any, /) -> Array:
    """The number whose `erf` is x, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. At most 4 ULP from the exact result in float32. In MSL: ``numpy::erfinv({0})``.
    """

def sin(x: Any, /) -> Array:
    """Sine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 3 ULP of the modulus. In MSL: ``sin({0})``.
    """

def cos(x: Any, /) -> Array:
    """Cosine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 3 ULP of the modulus. In MSL: ``cos({0})``.
    """

def tan(x: Any, /) -> Array:
    """Tangent, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 3.5 ULP from the exact result in float32. Parts of
    complex64: 5 ULP of the modulus. In MSL: ``tan({0})``.
    """

def asin(x: Any, /) -> Array:
    """Arc sine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``asin({0})``.
    """

def acos(x: Any, /) -> Array:
    """Arc cosine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 1.5 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``acos({0})``.
    """

def atan(x: Any, /) -> Array:
    """Arc tangent, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``atan({0})``.
    """

def atan2(x1: Any, x2: Any, /) -> Array:
    """Angle of the point (`x2`, `x1`), for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. At most 2 ULP from the exact result in float32. In MSL: ``numpy::atan2({0},
    {1})``.
    """

def sinh(x: Any, /) -> Array:
    """Hyperbolic sine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 3 ULP of the modulus. In MSL: ``sinh({0})``.
    """

def cosh(x: Any, /) -> Array:
    """Hyperbolic cosine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 3 ULP of the modulus. In MSL: ``cosh({0})``.
    """

def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 3 ULP from the exact result in float32. Parts of
    complex64: 5 ULP of the modulus. In MSL: ``tanh({0})``.
    """

def asinh(x: Any, /) -> Array:
    """Inverse hyperbolic sine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``asinh({0})``.
    """

def acosh(x: Any, /) -> Array:
    """Inverse hyperbolic cosine, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2.5 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``acosh({0})``.
    """

def atanh(x: Any, /) -> Array:
    """Inverse hyperbolic tangent, for every element.

    Of floats, complex numbers. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. At most 2.5 ULP from the exact result in float32. Parts of
    complex64: 4 ULP of the modulus. In MSL: ``atanh({0})``.
    """

def floor(x: Any, /) -> Array:
    """The largest whole number not above, for every element.

    Of integers, floats. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::floor({0})``.
    """

def ceil(x: Any, /) -> Array:
    """The smallest whole number not below, for every element.

    Of integers, floats. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::ceil({0})``.
    """

def trunc(x: Any, /) -> Array:
    """The whole number nearer to zero, for every element.

    Of integers, floats. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::trunc({0})``.
    """

def round(x: Any, /) -> Array:
    """The nearest whole number, halves to even, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::round({0})``.
    """

def equal(x1: Any, x2: Any, /) -> Array:
    """Whether two are equal, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL: ``{0} ==
    {1}``.
    """

def not_equal(x1: Any, x2: Any, /) -> Array:
    """Whether two differ, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL: ``{0} !=
    {1}``.
    """

def less(x1: Any, x2: Any, /) -> Array:
    """Whether the first is smaller, for every element.

    Of bool, integers, floats. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. In MSL: ``{0} < {1}``.
    """

def less_equal(x1: Any, x2: Any, /) -> Array:
    """Whether the first is not larger, for every element.

    Of bool, integers, floats. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. In MSL: ``{0} <= {1}``.
    """

def greater(x1: Any, x2: Any, /) -> Array:
    """Whether the first is larger, for every element.

    Of bool, integers, floats. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. In MSL: ``{0} > {1}``.
    """

def greater_equal(x1: Any, x2: Any, /) -> Array:
    """Whether the first is not smaller, for every element.

    Of bool, integers, floats. Shapes broadcast, types are promoted; integers are taken as float32
    where only floats have a meaning. Exact, or rounded once. In MSL: ``{0} >= {1}``.
    """

def isnan(x: Any, /) -> Array:
    """Whether it is no number, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::isnan({0})``.
    """

def isinf(x: Any, /) -> Array:
    """Whether it is infinite, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::isinf({0})``.
    """

def isfinite(x: Any, /) -> Array:
    """Whether it is neither infinite nor NaN, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::isfinite({0})``.
    """

def signbit(x: Any, /) -> Array:
    """Whether the sign is negative, also of -0, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``signbit({0})``.
    """

def logical_and(x1: Any, x2: Any, /) -> Array:
    """Whether both are true, for every element.

    Of bool. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``{0} && {1}``.
    """

def logical_or(x1: Any, x2: Any, /) -> Array:
    """Whether one is true, for every element.

    Of bool. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``{0} || {1}``.
    """

def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Whether one is true and the other is not, for every element.

    Of bool. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``{0} != {1}``.
    """

def logical_not(x: Any, /) -> Array:
    """Whether it is false, for every element.

    Of bool. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``!{0}``.
    """

def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """Bits that both have, for every element.

    Of bool, integers. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``{0} & {1}``.
    """

def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """Bits that one has, for every element.

    Of bool, integers. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``{0} | {1}``.
    """

def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """Bits that one has and the other has not, for every element.

    Of bool, integers. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``{0} ^ {1}``.
    """

def bitwise_invert(x: Any, /) -> Array:
    """All bits changed, for every element.

    Of bool, integers. Shapes broadcast, types are promoted; integers are taken as float32 where
    only floats have a meaning. Exact, or rounded once. In MSL: ``numpy::invert({0})``.
    """

def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """Bits moved up by `x2` places, for every element.

    Of integers. Shapes broadcast, types are promoted; integers are taken as float32 where only
    floats have a meaning. Exact, or rounded once. In MSL: ``numpy::shift_left({0}, {1})``.
    """

def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """Bits moved down by `x2` places, with the sign, for every element.

    Of integers. Shapes broadcast, types are promoted; integers are taken as float32 where only
    floats have a meaning. Exact, or rounded once. In MSL: ``numpy::shift_right({0}, {1})``.
    """

def real(x: Any, /) -> Array:
    """The real part, for every element.

    Of bool, integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are
    taken as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::real({0})``.
    """

def imag(x: Any, /) -> Array:
    """The imaginary part, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::imag({0})``.
    """

def conj(x: Any, /) -> Array:
    """The complex conjugate, for every element.

    Of integers, floats, complex numbers. Shapes broadcast, types are promoted; integers are taken
    as float32 where only floats have a meaning. Exact, or rounded once. In MSL:
    ``numpy::conj({0})``.
    """

def copysign(x1: Any, x2: Any, /) -> Array:
    """`x1` with the sign of `x2`, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``copysign({0}, {1})``.
    """

def nextafter(x1: Any, x2: Any, /) -> Array:
    """The next number after `x1` in the direction of `x2`, for every element.

    Of floats. Shapes broadcast, types are promoted; integers are taken as float32 where only floats
    have a meaning. Exact, or rounded once. In MSL: ``nextafter({0}, {1})``.
    """
