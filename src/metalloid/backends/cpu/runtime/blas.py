"""Products of matrices by the BLAS that NumPy has loaded, as launches between those of kernels."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.host_calls import HostProgram
from metalloid.runtime.devices.libraries import Blas, Operand
from metalloid.runtime.launch.launches import Arguments, Launch
from metalloid.runtime.launch.program import Size

#: By dtype, the letter of the functions and the flags of native/blas.c.
_TYPES = {
    "float32": ("s", 4 << 8),
    "float64": ("d", 8 << 8),
    "complex64": ("c", 8 << 8 | 2),
    "complex128": ("z", 16 << 8 | 2),
}
#: Names of functions, and whether their integers have 64 bits: those of NumPy's wheels, and of
#: other builds.
_NAMES = (
    ("scipy_cblas_{}64_", True),
    ("cblas_{}64_", True),
    ("scipy_cblas_{}", False),
    ("cblas_{}", False),
)
#: Names of the function of OpenBLAS that names the processor whose kernels it has chosen, and
#: processors without AVX-512.
_CORE_NAMES = (
    "scipy_openblas_get_corename64_", "openblas_get_corename64_",
    "scipy_openblas_get_corename", "openblas_get_corename",
)  # fmt: skip
_AVX2_CORES = frozenset((b"Haswell", b"Zen"))
_KINDS = "gemm", "gemv", "syrk"
_ONE: Size = (1, 1, 1)
#: Words of a launch, and the index of the first that is not an address.
_WORDS, _NUMBERS = 19, 3
_MAX_INT = 2**31 - 1


class _Functions(NamedTuple):
    """The addresses of gemm, gemv and syrk of a type, and the flags of native/blas.c."""

    gemm: int
    gemv: int
    syrk: int
    flags: int


_PROGRAM = HostProgram("matmul", lambda: native_library.runtime().blas_product, _WORDS)


class HostBlas(Blas):
    """The BLAS of NumPy."""

    @functools.cached_property
    def dtypes(self) -> frozenset[str]:
        """See `Blas.dtypes`."""
        return frozenset(filter(_functions, _TYPES))

    @functools.cached_property
    def has_avx512(self) -> bool:
        """See `Blas.has_avx512`."""
        library = _library()
        for name in _CORE_NAMES:
            function = getattr(library, name, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return function() not in _AVX2_CORES
        return True

    def product(
        self, dtype: str, shape: Sequence[int], left: Operand, right: Operand
    ) -> Launch | None:
        """See `Blas.product`."""
        functions = _functions(dtype)
        if functions is None:
            return None
        _, rows, columns, depth = shape
        numbers = *left, *right, *shape
        if not functions.flags & 1 and max(map(abs, numbers)) > _MAX_INT:
            return None
        if not (_is_stored(left, rows, depth) and _is_stored(right, depth, columns)):
            return None
        arguments = Arguments(_WORDS)
        arguments.words[_NUMBERS:] = [*numbers, *functions]
        return Launch(_PROGRAM, arguments, _ONE, _ONE)


def _is_stored(operand: Operand, rows: int, columns: int) -> bool:
    """Whether BLAS can read a matrix in place."""
    down, across = operand.down, operand.across
    if columns == 1 or (rows == 1 and across != 1):
        # A vector, which may have any stride, or a matrix of one column.
        step = down if columns == 1 else across
        return step > 0 or rows * columns == 1
    if across == 1:
        return rows == 1 or down >= columns
    return down == 1 and across >= rows


def _library() -> ctypes.CDLL | None:
    """The library that NumPy has loaded; None if it is not found."""
    try:
        return ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None


@functools.cache
def _functions(dtype: str) -> _Functions | None:
    """The functions of a type, if NumPy has loaded any."""
    if dtype not in _TYPES:
        return None
    letter, flags = _TYPES[dtype]
    library = _library()
    if library is None:
        return None
    for name, is_long in _NAMES:
        try:
            functions = [getattr(library, name.format(letter + kind)) for kind in _KINDS]
        except AttributeError:
            continue
        gemm, gemv, syrk = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in functions)
        return _Functions(gemm, gemv, syrk, flags | is_long)
    return None
