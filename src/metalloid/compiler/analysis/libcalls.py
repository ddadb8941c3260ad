"""Functions from numbers to a number that have no vector form: called for each lane.

Most are of the C library. Two of the runtime look up the object of an address
(native/memory/objects.c).
"""

from __future__ import annotations

_INTRINSICS = frozenset({
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
    "exp10", "log", "log2", "log10", "pow",
})  # fmt: skip
_FUNCTIONS = _INTRINSICS | {
    "acosh", "asinh", "atanh", "cbrt", "erf", "erfc", "expm1", "fmod", "hypot", "ilogb", "log1p",
    "nextafter", "mtl_offset_in_object", "mtl_object_extent",
}  # fmt: skip


def is_libcall(callee: str) -> bool:
    """Whether it is one, or an intrinsic that becomes one.

    Examples
    --------
    >>> is_libcall("@llvm.sin.f64"), is_libcall("@erf")
    (True, True)
    """
    if callee.startswith("@llvm."):
        return callee.split(".")[1] in _INTRINSICS
    return callee[1:] in _FUNCTIONS
