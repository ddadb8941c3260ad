"""Operands of elementwise operations, exact results for them, and distances between the two."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

from metalloid.arrays.ir.dtypes import kind_of, real_of
from metalloid.arrays.ir.ops import Op

# -- operands


def _limits(dtype):
    return ml_dtypes.finfo(real_of(dtype))


@functools.cache
def reals(dtype):
    """Special values of a float type, and numbers from its whole range."""
    rng = np.random.default_rng(5)
    limits = _limits(dtype)
    eps, tiny = float(limits.eps), float(limits.smallest_normal)
    positive = [
        0, 1, 0.5, 1.5, 2, 2.5, 3, 0.1, 10, 20.5, 88, 89, 103, np.pi, np.pi / 2, np.pi / 4, np.inf, np.nan,
        1 + eps, 1 - eps / 2, eps, tiny, tiny * (1 - eps), float(limits.smallest_subnormal), float(limits.max),
        1e4, 65504, 709, 710, 744,
    ]  # fmt: skip
    low, high = np.log2(float(limits.smallest_subnormal)), np.log2(float(limits.max))
    near_one = 1 + rng.choice([-1, 1], 60) * 2.0 ** rng.uniform(np.log2(eps), -1, 60)
    anywhere = 2.0 ** rng.uniform(low, high, 300)
    moderate = rng.standard_normal(300) * rng.choice([1, 10, 100], 300)
    values = np.concatenate([positive, near_one, anywhere, moderate])
    with np.errstate(over="ignore"):
        return np.concatenate([values, -values]).astype(dtype)


@functools.cache
def complexes(dtype):
    """Pairs of special values, points near the unit circle and the branch points, and others."""
    rng = np.random.default_rng(6)
    component = real_of(dtype)
    limits = _limits(dtype)
    special = np.array(
        [
            0.0,
            1,
            0.5,
            2,
            np.inf,
            np.nan,
            float(limits.max),
            float(limits.smallest_normal),
            1.5,
            90,
            720,
        ]
    )
    special = np.concatenate([special, -special])
    pairs = (special[:, None] + 0j).repeat(len(special), 1)
    pairs.imag = special
    angles = rng.uniform(-np.pi, np.pi, 80)
    near = 1 + rng.choice([-1, 0, 1], 80) * 2.0 ** rng.uniform(np.log2(float(limits.eps)), -2, 80)
    circle = near * np.exp(1j * angles)
    small = 2.0 ** rng.uniform(-30, 0, 80) * np.exp(1j * angles)
    branches = np.array([1, -1, 1j, -1j]).repeat(20)[:80] + small * 2.0**-2
    spread = np.empty(200, np.complex128)
    spread.real = rng.standard_normal(200) * 2.0 ** rng.uniform(-20, 8, 200)
    spread.imag = rng.standard_normal(200) * 2.0 ** rng.uniform(-20, 8, 200)
    parts = [pairs.ravel(), circle, circle - 1, small, branches, spread]
    result = np.concatenate(parts)
    with np.errstate(all="ignore"):
        rounded = np.empty(len(result), dtype)
        rounded.real, rounded.imag = result.real.astype(component), result.imag.astype(component)
    return rounded


@functools.cache
def integers(dtype):
    """Limits, powers of two, and others."""
    rng = np.random.default_rng(7)
    limits = np.iinfo(dtype)
    powers = [1 << k for k in range(limits.bits - 1)]
    named = [limits.min, limits.max, limits.max - 1, *powers, *(p - 1 for p in powers)]
    values = np.array([*named, *range(20)], dtype)
    some = rng.integers(limits.min, limits.max, 100, dtype, endpoint=True)
    return np.concatenate([values, some, (0 - values).astype(dtype)])


def operands(dtype):
    """The operands that a unary operation is tried on."""
    kind = kind_of(dtype)
    if kind == "b":
        return np.array([False, True])
    return {"f": reals, "c": complexes}.get(kind, integers)(dtype)


@functools.cache
def pairs(dtype):
    """The operands that a binary operation is tried on: some with some, and adjacent values."""
    values = operands(dtype)
    if kind_of(dtype) == "b":
        return np.repeat(values, 2), np.tile(values, 2)
    rng = np.random.default_rng(8)
    first, second = rng.choice(values, (2, 800))
    special = values[:30]
    across = np.repeat(special, len(special)), np.tile(special, len(special))
    return np.concatenate([across[0], first]), np.concatenate([across[1], second])


# -- exact results

_MPMATH = {
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": lambda x: mpmath.exp(x) - 1 if isinstance(x, mpmath.mpc) else mpmath.expm1(x),
    "log1p": lambda x: mpmath.log(1 + x) if isinstance(x, mpmath.mpc) else mpmath.log1p(x),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "logaddexp": lambda a, b: max(a, b) + mpmath.log1p(mpmath.exp(-min(abs(a - b), 2000))),
    "pow": mpmath.power,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "abs": abs,
    "sign": lambda z: z / abs(z),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
}


#: Where mpmath adds 1 to numbers of any size.
_ADDING_ONE = {"expm1", "log1p", "asin", "acos", "atan", "asinh", "acosh", "atanh"}


def _is_rounded(op: Op) -> bool:
    """Whether float64 does not hold its results."""
    if op.name in ("add", "subtract"):
        return True
    return op.name != "floor_divide" and bool(op.max_ulp or op.complex_max_ulp)


def reference_of(op: Op) -> Callable[..., Any]:
    """The function of NumPy or SciPy that an operation agrees with."""
    name = op.reference or op.name
    return pkgutil.resolve_name(name if "." in name else f"numpy.{name}")


def exact(op: Op, *args: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Results in a wide type, and what is to be added to them.

    NumPy computes them in float64. What it would round for 64-bit types, and all complex functions,
    mpmath computes where operands and results are finite.
    """
    dtype = args[0].dtype
    kind = kind_of(dtype)
    wide = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}.get(kind, dtype)
    if op.name == "nextafter":
        wide = dtype
    with np.errstate(all="ignore"):
        result = np.asarray(reference_of(op)(*(arg.astype(wide) for arg in args)))
        if kind == "c" and op.name == "expm1":  # NumPy's has NaN where exp has not
            result = np.exp(args[0].astype(wide)) - 1
        if op.name == "erfinv":  # SciPy's has 0 for -0
            result = np.copysign(result, args[0].astype(wide))
        if kind == "f" and op.name == "floor_divide":  # NumPy's has NaN for inf // 2
            a, b = (arg.astype(wide) for arg in args)
            result = np.where(np.isinf(a) | np.isinf(b), a / b, result)
    rest = np.zeros_like(result) if kind in "fc" else result
    is_wider = kind not in "fc" or (kind == "f" and dtype.itemsize < 8)
    if is_wider or not _is_rounded(op):
        return result, rest
    function = _MPMATH.get(op.name) or getattr(mpmath, op.name)
    for k in np.flatnonzero(np.logical_and.reduce([np.isfinite(a) & (a != 0) for a in args])):
        numbers = [arg[k].item() for arg in args]
        parts = [abs(component) for x in numbers for component in (x.real, x.imag) if component]
        is_extreme = min(parts) < 2.0**-150 or max(parts) > 2.0**150
        if not np.isfinite(result[k]) and not (kind == "c" and is_extreme):
            continue
        precision = 2300 if is_extreme and op.name in _ADDING_ONE else 420
        with mpmath.workprec(120 if kind == "f" else precision):
            value = function(*map(mpmath.mpmathify, numbers))
            if op.name == "pow" and kind == "c" and _is_below_cut(numbers[0]):
                value = function(*(mpmath.conj(x) for x in numbers)).conjugate()
            if isinstance(value, mpmath.mpc) and result.dtype.kind == "f":
                continue  # outside of the real domain
            if kind == "c" == result.dtype.kind and op.operands == 1:
                value, result[k] = _signed_like(result[k], value)
            else:
                result[k] = value
            rest[k] = value - mpmath.mpmathify(result[k].item()) if np.isfinite(result[k]) else 0
    return result, rest


def _is_below_cut(z):
    return z.imag == 0 and np.signbit(z.imag)


def _signed_like(numpys, value):
    """A value with NumPy's signs, and the same rounded.

    Zeros of mpmath have no signs, so it does not know on which side of a cut a number is.
    """
    value = mpmath.mpmathify(value)
    parts = ((value.real, numpys.real), (value.imag, numpys.imag))
    signed = [abs(a) * np.copysign(1, b).item() if b else a for a, b in parts]
    rounded = [float(a) if a else b for a, (_, b) in zip(signed, parts, strict=True)]
    return mpmath.mpc(*signed), complex(*rounded)


# -- distances


def spacing(size: np.ndarray, dtype) -> np.ndarray:
    """Distance of neighbouring numbers of a float type at a size."""
    limits = _limits(dtype)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(size, float(limits.smallest_normal))))
    return 2.0 ** (exponent - limits.nmant)


def units(got: np.ndarray, result: np.ndarray, rest: np.ndarray, size=None) -> np.ndarray:
    """Errors in units in the last place, of the result or of another `size`.

    What rounds to infinity is one unit beyond the largest number. NaN where one is NaN.
    """
    largest = float(_limits(got.dtype).max)
    wide = got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        overflows = [np.sign(x) * np.isinf(x.astype(got.dtype)) for x in (wide, result)]
        error = np.abs(
            (np.clip(wide, -largest, largest) - np.clip(result, -largest, largest))
            - np.where(np.abs(result) > largest, 0, rest)
        )
        error /= spacing(np.minimum(np.abs(result if size is None else size), largest), got.dtype)
    return np.where(
        np.isnan(wide) & np.isnan(result), 0, error + np.abs(overflows[0] - overflows[1])
    )
