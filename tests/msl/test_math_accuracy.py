"""Accuracy of float_math against the tables of the MSL specification.

Each row of the tables below is one function with its oracle and its bound. The functions are built
as plain C++ for this machine (`accuracy_functions.cpp`); `accuracy_sweep.cpp` judges them against
double precision, over a stride of all floats by default and over all 2^32 with ``-m slow``. mpmath
is the independent oracle at the arguments known to be hard.
"""

import ctypes
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import mpmath
import numpy as np
import pytest

import metalloid

HERE = Path(__file__).parent
HEADERS = Path(metalloid.__file__).parent / "msl" / "include" / "float_math"
INFINITY = float("inf")
LARGEST = float(np.finfo(np.float32).max)
ROUNDED = 0.5 + 2.0**-28  # correctly rounded, as far as a double can tell

# The default stride is odd, so every low mantissa bit takes part; 4.2 million floats a function.
STRIDE = 1021


@dataclass(frozen=True)
class Row:
    """One function: errors are counted in `unit`, for arguments in `domain`."""

    name: str
    oracle: str
    bound: float
    unit: str = "ulp"
    domain: tuple[float, float] | None = None  # None: every float, NaN too
    mode: str = field(default="precise")

    def __str__(self):
        return f"{self.mode}-{self.name}"


PRECISE = [
    Row("exp", "exp", 4), Row("exp2", "exp2", 4), Row("exp10", "exp10", 4),
    Row("log", "log", 4), Row("log2", "log2", 4), Row("log10", "log10", 4),
    Row("sin", "sin", 4), Row("cos", "cos", 4), Row("tan", "tan", 6),
    Row("sincos_sine", "sin", 4), Row("sincos_cosine", "cos", 4),
    Row("sinpi", "oracle_sinpi", 4), Row("cospi", "oracle_cospi", 4),
    Row("tanpi", "oracle_tanpi", 6),
    Row("asin", "asin", 4), Row("acos", "acos", 4), Row("atan", "atan", 5),
    Row("sinh", "sinh", 4), Row("cosh", "cosh", 4), Row("tanh", "tanh", 5),
    Row("asinh", "asinh", 4), Row("acosh", "acosh", 4), Row("atanh", "atanh", 5),
    Row("sqrt", "sqrt", ROUNDED), Row("rsqrt", "oracle_rsqrt", ROUNDED),
    Row("ceil", "ceil", 0), Row("floor", "floor", 0), Row("trunc", "trunc", 0),
    Row("rint", "rint", 0), Row("round", "round", 0), Row("fabs", "fabs", 0),
    Row("fract", "oracle_fract", ROUNDED),
    Row("modf_fraction", "oracle_modf_fraction", 0), Row("modf_whole", "trunc", 0),
    Row("frexp_mantissa", "oracle_frexp_mantissa", 0),
    Row("frexp_exponent", "oracle_frexp_exponent", 0),
    Row("ilogb_value", "oracle_ilogb_value", 0),
]  # fmt: skip

PI = float(np.float32(np.pi))
NORMAL = (2.0**-126, LARGEST)
FAST = [
    # Results below 2^-125.5 are flushed, so the domains end there.
    Row("exp", "exp", 1, "fast_exp", (-86.98, 88.72), "fast"),
    Row("exp2", "exp2", 1, "fast_exp", (-125.49, LARGEST), "fast"),
    Row("exp10", "exp10", 1, "fast_exp", (-37.77, LARGEST), "fast"),
    Row("log", "log", 1, "fast_log", NORMAL, "fast"),
    Row("log2", "log2", 1, "fast_log", NORMAL, "fast"),
    Row("log10", "log10", 1, "fast_log", NORMAL, "fast"),
    Row("sin", "sin", 2.0**-13, "one", (-PI, PI), "fast"),
    Row("cos", "cos", 2.0**-13, "one", (-PI, PI), "fast"),
    Row("sincos_sine", "sin", 2.0**-13, "one", (-PI, PI), "fast"),
    Row("sincos_cosine", "cos", 2.0**-13, "one", (-PI, PI), "fast"),
    Row("sinpi", "oracle_sinpi", 2.0**-13, "one", (-1, 1), "fast"),
    Row("cospi", "oracle_cospi", 2.0**-13, "one", (-1, 1), "fast"),
    Row("asin", "asin", 5, domain=(-1, 1), mode="fast"),
    Row("acos", "acos", 5, domain=(-1, 1), mode="fast"),
    Row("atan", "atan", 5, domain=(-LARGEST, LARGEST), mode="fast"),
    Row("rsqrt", "oracle_rsqrt", 2, domain=NORMAL, mode="fast"),
]

PRECISE2 = [
    Row("pow", "pow", 16), Row("powr", "oracle_powr", 16), Row("atan2", "atan2", 6),
    Row("divide", "oracle_divide", ROUNDED), Row("fdim", "fdim", ROUNDED),
    Row("fma_square", "oracle_fma_square", ROUNDED),
    Row("ldexp_by_bits", "oracle_ldexp_by_bits", ROUNDED),
    Row("fmod", "fmod", 0), Row("fmin", "fmin", 0), Row("fmax", "fmax", 0),
    Row("copysign", "copysign", 0), Row("nextafter", "oracle_nextafter", 0),
]  # fmt: skip

CLANG = ["-std=c++17", "-O2", "-fPIC", "-fno-sanitize=all", "-fno-exceptions", "-fno-math-errno"]
HOST = ["-target", "x86_64-unknown-linux-gnu", "-march=native"]
NVPTX = ["-target", "nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", "sm_90",
         "-Xclang", "-target-feature", "-Xclang", "+ptx80"]  # fmt: skip
DEVICE = ["-nostdinc", "-ffreestanding", "-Xclang", "-fsycl-is-device", "-Xclang", "-aux-triple",
          "-Xclang", "x86_64-unknown-linux-gnu"]  # fmt: skip
FLOAT_MODES = {
    "safe": ["-ffp-contract=off"],
    "contracted": ["-ffp-contract=fast"],
    "fast": ["-ffast-math", "-fhonor-nans", "-fhonor-infinities"],
    "finite": ["-ffast-math"],  # may assume that neither NaN nor infinity occurs
}


def zig(*arguments):
    ziglang = pytest.importorskip("ziglang")
    binary = os.path.join(os.path.dirname(ziglang.__file__), "zig")
    subprocess.run([binary, *map(str, arguments)], check=True)


class Judge:
    """The functions compiled under one floating-point mode, with the sweep over them."""

    def __init__(self, folder, flags):
        functions, sweep, library = folder / "functions.o", folder / "sweep.o", folder / "judge.so"
        compile_ = ["clang", *HOST, *CLANG, "-I", HEADERS, "-c"]
        zig(*compile_, *flags, HERE / "accuracy_functions.cpp", "-o", functions)
        zig(*compile_, HERE / "accuracy_sweep.cpp", "-o", sweep)
        zig("ld.lld", "-shared", functions, sweep, "-o", library)
        self._libm = ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)  # the sweep's sin, cos, pow
        self._library = ctypes.CDLL(str(library))
        self._library.worst_unary.restype = ctypes.c_double
        self._library.worst_binary.restype = ctypes.c_double

    def _pointers(self, row):
        library = self._library if row.oracle.startswith("oracle_") else self._libm
        names = [f"{row.mode}_{row.name}", f"unit_{row.unit}"]
        function, unit = (ctypes.cast(self._library[name], ctypes.c_void_p) for name in names)
        return function, ctypes.cast(library[row.oracle], ctypes.c_void_p), unit

    def call(self, row, x):
        """The function itself on an array of floats."""
        x = np.ascontiguousarray(x, np.float32)
        result = np.empty_like(x)
        self._library[f"{row.mode}_{row.name}"](
            x.ctypes.data_as(ctypes.c_void_p),
            result.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_long(x.size),
        )
        return result

    def worst(self, row, stride, domain):
        """Largest error and its argument over every `stride`-th float, and all domain ends."""
        worst, where = 0.0, float("nan")
        argument = ctypes.c_float()
        for first, last in bit_ranges(domain):
            ends = [(first, min(first + 4096, last), 1), (max(first, last - 4096), last, 1)]
            binades = [(max(b - 64, first), min(b + 64, last), 1)
                       for b in range(first & ~0x7FFFFF, last, 1 << 23)]  # fmt: skip
            for range_ in [(first, last, stride), *ends, *binades]:
                bounds = [ctypes.c_ulonglong(value) for value in range_]
                error = self._library.worst_unary(
                    *self._pointers(row), *bounds, ctypes.byref(argument)
                )
                if error > worst:
                    worst, where = error, argument.value
        return worst, where

    def worst_pair(self, row, x, y):
        """Largest error and its arguments over pairs of floats."""
        result, index = np.empty_like(x), ctypes.c_long()
        arrays = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, y, result)]
        worst = self._library.worst_binary(
            *self._pointers(row), *arrays, ctypes.c_long(x.size), ctypes.byref(index)
        )
        return worst, (x[index.value], y[index.value], result[index.value])


def bit_ranges(domain):
    """The bit patterns of the floats in `domain`, as half-open ranges."""
    if domain is None:
        return [(0, 1 << 31), (1 << 31, 1 << 32)]
    low, high = (np.float32(end) for end in domain)
    bits = [int(abs(end).view(np.uint32)) for end in (low, high)]
    ranges = [(bits[0] if low > 0 else 0, bits[1] + 1)]
    return ranges if low >= 0 else [*ranges, (1 << 31, (1 << 31) + bits[0] + 1)]


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    built = {}

    def judge(mode):
        if mode not in built:
            built[mode] = Judge(tmp_path_factory.mktemp(f"math_{mode}"), FLOAT_MODES[mode])
        return built[mode]

    return judge


def check_unary(judge, row, stride, domain):
    worst, where = judge.worst(row, stride, domain)
    bits = np.float32(where).view(np.uint32)
    assert worst <= row.bound, f"{row}({where!r} = {bits:#010x}): {worst:.3f} {row.unit}"
    return worst


@pytest.mark.parametrize("row", [*PRECISE, *FAST], ids=str)
def test_unary_functions_keep_their_bounds(judges, row):
    check_unary(judges("safe"), row, STRIDE, row.domain)


@pytest.mark.slow
@pytest.mark.parametrize("row", [*PRECISE, *FAST], ids=str)
def test_unary_functions_keep_their_bounds_on_every_float(judges, row, record_property):
    record_property("worst", check_unary(judges("safe"), row, 1, row.domain))


@pytest.mark.parametrize("row", [*PRECISE, *FAST], ids=str)
@pytest.mark.parametrize("mode", ["contracted", "fast"])
def test_float_modes_of_the_compiler_change_nothing(judges, mode, row):
    check_unary(judges(mode), row, 16 * STRIDE, row.domain)


@pytest.mark.parametrize("row", PRECISE, ids=str)
def test_finite_arguments_survive_finite_math_only(judges, row):
    poles = {"rsqrt": (2.0**-149, LARGEST), "atanh": (-0.9999999, 0.9999999)}
    positive = {"log", "log2", "log10", "sqrt"}
    small = {"exp", "exp2", "sinh", "cosh"}
    domain = poles.get(row.name, (-LARGEST, LARGEST))
    domain = (2.0**-149, LARGEST) if row.name in positive else domain
    domain = (-80, 80) if row.name in small else domain
    domain = {"exp10": (-35, 35), "asin": (-1, 1), "acos": (-1, 1), "acosh": (1, LARGEST),
              "tanpi": (-0.49, 0.49), "ilogb_value": (2.0**-149, LARGEST)}.get(row.name, domain)  # fmt: skip
    check_unary(judges("finite"), row, 16 * STRIDE, domain)
