"""Functions of the C library, of which there are none for vectors: called for each lane."""

from __future__ import annotations

_INTRINSICS = frozenset({
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
    "exp10", "log", "log2", "log10", "pow",
})  # fmt: skip
_FUNCTIONS = _INTRINSICS | {
    "acosh", "asinh", "atanh", "cbrt", "erf", "erfc", "expm1", "fmod", "hypot", "ilogb", "log1p",
    "nextafter",
}  # fmt: skip


def is_libcall(callee: str) -> bool:
    """Whether it is one, or an intrinsic that becomes one, from numbers to a number.

    Examples
    --------
    >>> is_of_the_c_library("@llvm.sin.f64"), is_of_the_c_library("@erf")
    (True, True)
    """
    if callee.startswith("@llvm."):
        return callee.split(".")[1] in _INTRINSICS
    return callee[1:] in _FUNCTIONS
