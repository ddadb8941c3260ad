"""Accuracy of float_math against the tables of the MSL specification.

Each row of the tables below is one function with its oracle and its bound. The functions are built
as plain C++ for this machine (`accuracy_functions.cpp`); `accuracy_sweep.cpp` judges them against
double precision, over a stride of all floats by default and over all 2^32 with ``-m slow``. mpmath
is the independent oracle at the arguments known to be hard.
"""

import ctypes
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import mpmath
import numpy as np
import pytest

import metalloid

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="the oracles are those of glibc on x86-64",
)

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
    Row("sinh", "sinh", 5, mode="fast"),
    Row("cosh", "cosh", 5, mode="fast"),
    Row("tanh", "tanh", 5, mode="fast"),
    Row("asinh", "asinh", 5, mode="fast"),
    Row("acosh", "acosh", 5, mode="fast"),
    Row("atanh", "atanh", 5, mode="fast"),
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

FAST2 = [
    Row("atan2", "atan2", 6, mode="fast"),
    Row("divide", "oracle_divide", 2.5, mode="fast"),
]

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
    "without tables": ["-ffp-contract=off", "-mno-avx512f"],  # of power_avx512.h
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


def strided_floats(stride):
    return np.arange(0, 1 << 32, stride, np.uint64).astype(np.uint32).view(np.float32)


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
def test_errors_of_unary_functions_are_within_bounds(judges, row):
    check_unary(judges("safe"), row, STRIDE, row.domain)


@pytest.mark.slow
@pytest.mark.parametrize("row", [*PRECISE, *FAST], ids=str)
def test_errors_of_unary_functions_are_within_bounds_on_every_float(judges, row, record_property):
    record_property("worst", check_unary(judges("safe"), row, 1, row.domain))


def same_bits(a, b):
    """Which floats are the same; one NaN is as good as another."""
    return (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("row", [*PRECISE, *FAST], ids=str)
@pytest.mark.parametrize("mode", ["contracted", "fast", "finite"])
def test_float_modes_of_the_compiler_change_nothing(judges, mode, row):
    x = strided_floats(4 * STRIDE)
    safe, result = judges("safe").call(row, x), judges(mode).call(row, x)
    if mode == "finite":  # NaN and infinity may be assumed away
        finite = np.isfinite(x) & np.isfinite(safe)
        x, safe, result = x[finite], safe[finite], result[finite]
    different = ~same_bits(safe, result)
    assert not different.any(), f"{row}: {safe[different][0]!r} for {x[different][0]!r}"


SPECIAL = np.array(
    [0, 2.0**-149, 3 * 2.0**-149, 2.0**-127, 2.0**-126, 1e-20, 2.0**-24, 0.1, 1 / 3, 0.5, 0.75,
     1 - 2.0**-24, 1, 1 + 2.0**-23, 1.5, 2, 2.5, 3, 4, 7, 10, 127, 128, 149, 1000, 65537,
     2.0**23 - 0.5, 2.0**23 + 1, 2.0**24 - 1, 2.0**24, 2.0**25, 2.0**31, 2.0**64, 1e30, 2.0**127,
     LARGEST, INFINITY, np.nan],
    np.float32,
)  # fmt: skip
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def pairs(name, rng, count=1 << 20):
    """Pairs of floats: all bit patterns, special values, and what is hard for `name`."""

    def random_bits():
        return rng.integers(0, 1 << 32, count, np.uint32).view(np.float32)

    def sign():
        return rng.choice(np.array([-1, 1], np.float32), count)

    x_special, y_special = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    near = random_bits()
    ratio = np.ldexp(rng.uniform(-2, 2, count), rng.integers(-40, 40, count))
    moderate = np.exp2(rng.uniform(-8, 8, count)).astype(np.float32)
    sets = [
        (random_bits(), random_bits()),
        (x_special, y_special),
        (near, (near * ratio).astype(np.float32)),
        (moderate * sign(), np.exp2(rng.uniform(-8, 8, count)).astype(np.float32) * sign()),
    ]
    if name.startswith("pow"):
        next_to_one = (1 + rng.integers(-4096, 4096, count) * 2.0**-24).astype(np.float32)
        for base in (moderate, np.abs(random_bits()), next_to_one):
            exponent = rng.uniform(-152, 130, count) / np.log2(base.astype(np.float64))
            sets.append((base, exponent.astype(np.float32)))
        sets.append((moderate * sign(), rng.integers(-40, 40, count).astype(np.float32)))
    x, y = (np.concatenate(column) for column in zip(*sets, strict=True))
    if name == "ldexp_by_bits":  # a conversion to double changes the bits of a NaN
        defined = ~np.isnan(y)
        x, y = x[defined], y[defined]
    if name in ("fmin", "fmax"):  # either zero may be returned for two zeros
        defined = (x != 0) | (y != 0)
        x, y = x[defined], y[defined]
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


@pytest.mark.parametrize("row", PRECISE2, ids=str)
@pytest.mark.parametrize("mode", ["safe", "contracted", "fast"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_of_functions_of_two_arguments_are_within_bounds(judges, mode, row, rng):
    count = 1 << (20 if mode == "safe" else 16)
    worst, where = judges(mode).worst_pair(row, *pairs(row.name, rng, count))
    assert worst <= row.bound, f"{row}{where}: {worst:.3f} {row.unit}"


@pytest.mark.parametrize("mode", ["safe", "without tables"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_are_better_than_they_must_be(judges, mode, rng):
    """Results of any size, of bases about which logarithms of few bits know least."""
    count = 1 << 19
    ends = (1 + rng.integers(0, 33, count) / 32) * (1 + rng.uniform(-1, 1, count) * 2.0**-20)
    near_one = 1 + rng.uniform(-1, 1, count) * 2.0 ** -rng.uniform(0, 24, count)
    base = np.concatenate(
        [ends, ends / 2, near_one, rng.uniform(0.5, 2, count), rng.uniform(1, 1 + 1 / 32, count)]
    ).astype(np.float32)
    base = base[(base != 1) & (base > 0)]
    size = np.where(rng.random(base.size) < 0.5, 127.5, rng.uniform(0, 150, base.size))
    exponent = rng.choice([-1, 1], base.size) * size / np.log2(base.astype(np.float64))
    row = Row("pow", "pow", 4.5)
    worst, where = judges(mode).worst_pair(row, base, exponent.astype(np.float32))
    assert worst <= row.bound, f"{where}: {worst:.3f} ulp"


@pytest.mark.parametrize("row", FAST2, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_of_fast_functions_of_two_arguments_are_within_bounds(judges, row, rng):
    x, y = pairs(row.name, rng)
    defined = np.isfinite(x) & np.isfinite(y) & (y != 0)
    worst, where = judges("safe").worst_pair(row, x[defined], y[defined])
    assert worst <= row.bound, f"{row}{where}: {worst:.3f} {row.unit}"


@pytest.mark.parametrize("name", ["sin", "cos", "sincos_sine", "sincos_cosine", "sinpi", "cospi"])
def test_fast_sines_stay_in_range_for_any_finite_argument(judges, name):
    x = strided_floats(4 * STRIDE)
    result = judges("safe").call(Row(name, "sin", 0, mode="fast"), x[np.isfinite(x)])
    assert np.all(np.abs(result) <= 1 + 2.0**-20)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [("exp", -INFINITY, 0), ("exp", INFINITY, INFINITY), ("exp2", -1e30, 0), ("exp10", -50, 0),
     ("exp", 0, 1), ("log", 0, -INFINITY), ("log2", 0, -INFINITY), ("log", 1, 0),
     ("log", -1, np.nan), ("rsqrt", 0, INFINITY), ("rsqrt", -1, np.nan)],
)  # fmt: skip
def test_fast_functions_have_the_limits_that_kernels_rely_on(judges, name, x, expected):
    [result] = judges("safe").call(Row(name, "exp", 0, mode="fast"), [x])
    np.testing.assert_equal(result, np.float32(expected))


MPMATH = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.mpf(2) ** x, "exp10": lambda x: mpmath.mpf(10) ** x,
    "log": mpmath.log, "log2": lambda x: mpmath.log(x, 2), "log10": mpmath.log10,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "sinpi": mpmath.sinpi, "cospi": mpmath.cospi,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}  # fmt: skip


def hard_arguments():
    """Floats next to multiples of pi/2, powers of two, 0, 1, and the ends of exp's range."""
    near_quarter_turns = [k * np.pi / 2 for k in (*range(1, 40), 2**12 + 1, 2**16 - 1, 2**20 + 1)]
    # The float closest to a multiple of pi/2 relative to its size, and other bad ones.
    worst_reduction = [16367173 * 2.0**72, 12138411 * 2.0**1, 1.17549435e-38, LARGEST, 1e22, 1e30]
    ends = [88.72283, -87.33654, -103.97208, -103.27893, 127.99999, -148.99999, -125.5, 38.53184,
            -44.85347, 89.41598, 9.010913, 0.5493061, 2.0**-12, 1e-4]  # fmt: skip
    near_one = [1 + k * 2.0**-24 for k in (-9, -2, -1, 0, 2, 4, 18)]
    values = np.array([*near_quarter_turns, *worst_reduction, *ends, *near_one], np.float32)
    values = np.concatenate([values, SPECIAL[np.isfinite(SPECIAL) & (SPECIAL != 0)]])
    adjacent = [np.nextafter(values, np.float32(end)) for end in (0, LARGEST)]
    values = np.concatenate([values, *adjacent])
    return np.unique(np.concatenate([values, -values]))


@pytest.mark.parametrize("row", [row for row in PRECISE if row.name in MPMATH], ids=str)
def test_hard_arguments_against_mpmath(judges, row):
    x = hard_arguments()
    results = judges("safe").call(row, x)
    with mpmath.workprec(200):
        for argument, result in zip(x.tolist(), results.tolist(), strict=True):
            try:
                exact = MPMATH[row.name](mpmath.mpf(argument))
            except (ValueError, ZeroDivisionError):
                continue  # a pole
            if isinstance(exact, mpmath.mpc):
                assert np.isnan(result), f"{row.name}({argument!r}) = {result!r}, should be NaN"
                continue
            bounded = min(max(exact, -(mpmath.mpf(2) ** 128)), mpmath.mpf(2) ** 128)
            finite = min(max(result, -(2.0**128)), 2.0**128)
            exponent = mpmath.frexp(bounded)[1] - 1 if bounded else -126
            ulp = mpmath.mpf(2) ** (min(max(exponent, -126), 127) - 23)
            error = abs(finite - bounded) / ulp
            assert error <= row.bound, f"{row.name}({argument!r}) = {result!r}: {error} ulp"


@pytest.mark.parametrize("flags", [[], ["-ffast-math"]], ids=["safe", "fast"])
@pytest.mark.parametrize(
    "target",
    [HOST, ["-target", "x86_64-unknown-linux-gnu", "-march=x86-64-v3"], [*NVPTX, *DEVICE]],
    ids=["native", "avx2", "nvptx"],
)
def test_no_calls_remain(tmp_path, target, flags):
    assembly = tmp_path / "functions.s"
    zig("clang", *target, *CLANG, *flags, "-I", HEADERS, "-S", HERE / "accuracy_functions.cpp",
        "-o", assembly)  # fmt: skip
    text = assembly.read_text()
    assert "precise_pow" in text
    assert re.findall(r"\n\s*(?:call|jmp|\.extern)\w*\s+[^.\n].*", text) == []
