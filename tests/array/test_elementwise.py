"""Elementwise operations, every row of the table on every type, against NumPy and mpmath."""

import ml_dtypes
import numpy as np
import pytest
from elementwise_oracles import exact, operands, pairs, units

import metalloid as mtl
from metalloid.array.ops import OPS
from metalloid.array.types import ALL, kind_of, real_of

_AT_ONCE = 12
#: Complex operations whose parts may cancel: only the modulus bounds their errors.
_CANCELLING = {"multiply", "expm1", "pow"}
_PART_BOUND = 7
#: Of complex numbers that are not finite, or by zero, C and NumPy differ and the standard is silent.
_SILENT = {"multiply", "divide", "reciprocal", "pow", "square"}


def _rows(dtype, count, result=None):
    rows = [r for r in OPS.values() if r.operands == count and kind_of(dtype) in r.kinds]
    return [row for row in rows if result is None or row.result(dtype) == result]


_CASES = [
    (dtype, count, result)
    for dtype in ALL
    for count in (1, 2)
    for result in dict.fromkeys(row.result(dtype) for row in _rows(dtype, count))
]


def _evaluate(rows, args):
    """Results of operations that have the same type, several from one kernel."""
    arrays = [mtl.asarray(arg) for arg in args]
    results = []
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        which = mtl.reshape(mtl.arange(len(part)), (-1, 1))
        together = mtl.broadcast_to(getattr(mtl, part[0].name)(*arrays), (len(part), len(args[0])))
        for k, row in enumerate(part[1:], 1):
            together = mtl.where(mtl.equal(which, k), getattr(mtl, row.name)(*arrays), together)
        results += list(np.asarray(together))
    return results


@pytest.mark.parametrize(("dtype", "count", "result"), _CASES, ids=str)
def test_every_row_on_every_type(dtype, count, result):
    args = (operands(dtype),) if count == 1 else pairs(dtype)
    rows = _rows(dtype, count, result)
    judge = {"f": _judge_floats, "c": _judge_complex}.get(kind_of(result), _judge_exact)
    wrong = []
    for row, got in zip(rows, _evaluate(rows, args), strict=True):
        assert got.dtype == result
        for k in np.flatnonzero(~judge(row, got, args))[:3]:
            wrong.append(f"{row.name}({', '.join(str(a[k]) for a in args)}) gave {got[k]}")
    assert not wrong, "\n".join(wrong)


def _judge_exact(row, got, args):
    if row.name == "pow":
        bits = 8 * got.dtype.itemsize
        expected = [
            pow(int(a), int(b), 1 << bits) if b >= 0 else _inverse_power(int(a), int(b))
            for a, b in zip(*args, strict=True)
        ]
        return got.astype(f"u{bits // 8}") == [x % (1 << bits) for x in expected]
    expected, _ = exact(row, *args)
    return got == expected


def _inverse_power(a, b):
    """What is left of a fraction."""
    return 1 if a == 1 else (-1) ** (b % 2) if a == -1 else 0


def _judge_floats(row, got, args):
    result, rest = exact(row, *args)
    size = None
    if row.name == "logaddexp":
        size = np.fmax(np.abs(result), np.maximum(*np.abs([a.astype(float) for a in args])))
    bound = 0.5 if not row.bound else 0.501 if got.dtype.itemsize == 2 else row.bound
    if row.name == "abs" and kind_of(args[0].dtype) == "c":
        bound = 1
    if got.dtype == np.float64:  # what is below a subnormal number's unit has no float64
        bound = np.where(np.abs(result) <= np.finfo(np.float64).smallest_normal, 1, bound)
    zeros = (result == 0) & (got == 0)
    same_zero = np.signbit(result) == np.signbit(got.astype(float))
    return (units(got, result, rest, size) <= bound) & np.where(zeros, same_zero, True)


def _judge_complex(row, got, args):
    result, rest = exact(row, *args)
    finite = np.logical_and.reduce([np.isfinite(arg) for arg in args])
    with np.errstate(all="ignore"):
        size = np.abs(result)
        growth = 1 + np.abs(args[1] * np.log(args[0])) if row.name == "pow" else 1
        bound = (row.complex_bound or 0.5) * growth
    right = np.ones(len(got), bool)
    for ours, theirs, more, other in ((got.real, result.real, rest.real, result.imag),
                                      (got.imag, result.imag, rest.imag, result.real)):  # fmt: skip
        # Beside NaN the sign is not specified.
        is_loose = np.isnan(other)
        ours, theirs = (np.where(is_loose, np.abs(x), x) for x in (ours, theirs))
        right &= units(ours, theirs, more, np.fmax(size, np.abs(theirs))) <= bound
        if row.name not in _CANCELLING:
            right &= units(ours, theirs, more) <= (_PART_BOUND if row.complex_bound else 0.5)
        if row.name not in _SILENT | _CANCELLING:
            zeros = finite & (ours == 0) & (theirs == 0)
            right &= ~zeros | (np.signbit(ours) == np.signbit(theirs))
    if row.name == "sign":  # NumPy has a direction for infinity beside NaN, the standard has none
        right |= np.isnan(args[0]) & np.isnan(got.real) & np.isnan(got.imag)
    if row.name in _SILENT:
        limit = float(ml_dtypes.finfo(real_of(got.dtype)).max)
        divisor = args[-1] if row.name in ("divide", "reciprocal") else np.array(1)
        with np.errstate(invalid="ignore"):
            is_silent = ~finite | (divisor == 0) | ~(size <= limit) | ~np.less(growth, 1e3)
        right |= is_silent
    return right
