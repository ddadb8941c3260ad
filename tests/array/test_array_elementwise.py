"""Elementwise operations, every row of the table on every type, against NumPy and mpmath."""

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from elementwise_oracles import exact, operands, pairs, reference_of, units
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import metalloid as mtl
from metalloid.arrays.ir.dtypes import ALL, bfloat16, kind_of, msl_name, real_of
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.metal import metal_source

_AT_ONCE = 12
#: Complex operations whose parts may cancel: only the modulus bounds their errors.
_CANCELLING = {"multiply", "expm1", "pow"}
_PART_BOUND = 7
#: Of complex numbers that are not finite, or by zero, C and NumPy differ and the standard is silent.
_SILENT = {"multiply", "divide", "reciprocal", "pow", "square"}


def _rows(dtype, count, result=None):
    rows = [r for r in OPS.values() if r.operands == count and kind_of(dtype) in r.dtype_kinds]
    return [row for row in rows if result is None or row.result(dtype) == result]


LIKE_OTHERS = ("complex128", "bfloat16", "int8", "uint16", "uint32")
_CASES = [
    pytest.param(dtype, count, result, marks=[pytest.mark.slow] * (dtype in LIKE_OTHERS))
    for dtype in ALL
    for count in (1, 2)
    for result in dict.fromkeys(row.result(dtype) for row in _rows(dtype, count))
]


def _evaluate(rows, args):
    """Results of operations that have the same type, several from one kernel."""
    arrays = [mtl.asarray(arg) for arg in args]
    results = []
    for start in range(0, len(rows), _AT_ONCE):
        batch = rows[start : start + _AT_ONCE]
        which = mtl.reshape(mtl.arange(len(batch)), (-1, 1))
        combined = getattr(mtl, batch[0].name)(*arrays)
        combined = mtl.broadcast_to(combined, (len(batch), len(args[0])))
        for k, row in enumerate(batch[1:], 1):
            combined = mtl.where(mtl.equal(which, k), getattr(mtl, row.name)(*arrays), combined)
        results += list(np.asarray(combined))
    return results


@pytest.mark.parametrize(("dtype", "count", "result"), _CASES, ids=str)
@pytest.mark.sample(4)
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
    """An integer power with a negative exponent, rounded towards zero."""
    return 1 if a == 1 else (-1) ** (b % 2) if a == -1 else 0


def _judge_floats(row, got, args):
    result, rest = exact(row, *args)
    size = None
    if row.name == "logaddexp":
        size = np.fmax(np.abs(result), np.maximum(*np.abs([a.astype(float) for a in args])))
    bound = 0.5 if not row.max_ulp else 0.501 if got.dtype.itemsize == 2 else row.max_ulp
    if kind_of(args[0].dtype) == "c" and row.complex_max_ulp:
        bound = row.complex_max_ulp
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
        bound = (row.complex_max_ulp or 0.5) * growth
    right = np.ones(len(got), bool)
    for ours, theirs, more, other in ((got.real, result.real, rest.real, result.imag),
                                      (got.imag, result.imag, rest.imag, result.real)):  # fmt: skip
        # Next to NaN the sign is not specified.
        has_no_sign = np.isnan(other)
        ours, theirs = (np.where(has_no_sign, np.abs(x), x) for x in (ours, theirs))
        right &= units(ours, theirs, more, np.fmax(size, np.abs(theirs))) <= bound
        if row.name not in _CANCELLING:
            right &= units(ours, theirs, more) <= (_PART_BOUND if row.complex_max_ulp else 0.5)
        if row.name not in _SILENT | _CANCELLING:
            zeros = finite & (ours == 0) & (theirs == 0)
            right &= ~zeros | (np.signbit(ours) == np.signbit(theirs))
    if row.name == "sign":  # NumPy has a direction for infinity and NaN, the standard has none
        right |= np.isnan(args[0]) & np.isnan(got.real) & np.isnan(got.imag)
    if row.name in _SILENT:
        limit = float(ml_dtypes.finfo(real_of(got.dtype)).max)
        divisor = args[-1] if row.name in ("divide", "reciprocal") else np.array(1)
        with np.errstate(invalid="ignore"):
            is_silent = ~finite | (divisor == 0) | ~(size <= limit) | ~np.less(growth, 1e3)
        right |= is_silent
    return right


# -- more numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, row in OPS.items() if row.max_ulp])
def test_the_bounds_of_float32_hold_for_many_numbers(name, rng):
    row = OPS[name]
    shape = (row.operands, 1_000_000)
    sign = rng.choice([-1, 1], shape)
    for values in (
        sign * 2.0 ** rng.uniform(-30, 30, shape),
        rng.normal(0, 2, shape),
        rng.uniform(-1, 1, shape),
    ):
        args = values.astype(np.float32)
        with np.errstate(all="ignore"):
            result = reference_of(row)(*args.astype(float))
        got = np.asarray(getattr(mtl, name)(*map(mtl.asarray, args)))
        size = np.fmax(np.abs(result), np.abs(args).max(0)) if name == "logaddexp" else None
        assert units(got, result, np.zeros_like(result), size).max() <= row.max_ulp


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, row in OPS.items() if row.complex_max_ulp])
def test_the_bounds_of_complex64_hold_for_many_numbers(name, rng):
    row = OPS[name]
    shape = (row.operands, 200_000)
    angle, sign = rng.uniform(-np.pi, np.pi, shape), rng.choice([-1, 1], (2, *shape))
    near, anywhere = (
        sign * 2.0 ** rng.uniform(-24, 0, sign.shape),
        sign * 2.0 ** rng.uniform(-15, 5, sign.shape),
    )
    for values in (
        (1 + near[0]) * np.exp(1j * angle),
        1 + near[0] + near[1] * 1j,
        anywhere[0] + anywhere[1] * 1j,
    ):
        args = values.astype(np.complex64)
        wide = args.astype(complex)
        with np.errstate(all="ignore"):
            result = reference_of(row)(*wide)
            if name == "log1p":  # NumPy's cancels
                x, y = wide[0].real, wide[0].imag
                result.real = 0.5 * np.log1p((2 * x + x * x) + y * y)
            size = np.abs(result)
            usual = np.isfinite(result) & (size > 1e-36) & (size < 1e36)
            growth = 1 + np.abs(wide[1] * np.log(wide[0])) if name == "pow" else 1
        got = np.asarray(getattr(mtl, name)(*map(mtl.asarray, args)))
        for ours, theirs in ((got.real, result.real), (got.imag, result.imag)):
            error = units(ours, theirs, np.zeros_like(theirs), size) / growth
            assert error[usual].max() <= row.complex_max_ulp


# -- types


def _promoted(a, b):
    """The array API's tables, and what is said of what they leave open; None where nothing holds both."""
    kinds = {kind_of(a), kind_of(b)}
    if "b" in kinds:
        return b if kind_of(a) == "b" else a
    if kinds <= {"i", "u"}:
        wider = np.promote_types(a, b)
        return None if wider.kind == "f" else wider
    if kinds & {"i", "u"}:
        return a if kind_of(b) in "iu" else b
    if {a, b} == {np.dtype(np.float16), np.dtype(bfloat16)}:
        return np.dtype(np.float32)
    if bfloat16 in (a, b):
        a, b = (np.dtype(np.float16) if x == bfloat16 and a != b else x for x in (a, b))
    return np.promote_types(a, b) if a != b else a


@pytest.mark.parametrize("a", ALL, ids=str)
@pytest.mark.sample(3)
def test_promotion_of_two_types(a):
    for b in ALL:
        expected = _promoted(a, b)
        if expected is None:
            with pytest.raises(TypeError, match="no integer type holds both"):
                mtl.result_type(a, b)
            continue
        assert mtl.result_type(a, b) == mtl.result_type(b, a) == expected
        if kind_of(expected) != "b":
            assert mtl.multiply(mtl.ones(1, dtype=a), mtl.ones(1, dtype=b)).dtype == expected


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("int8", 1, "int8"), ("uint64", 1, "uint64"), ("bool", True, "bool"), ("bool", 1, "int64"),
        ("int8", True, "int8"), ("float16", 1, "float16"), ("float16", 1.5, "float16"), ("bfloat16", 1.5, "bfloat16"),
        ("int64", 1.5, "float32"), ("bool", 1.5, "float32"), ("float64", 1.5, "float64"), ("float16", 1j, "complex64"),
        ("float32", 1j, "complex64"), ("float64", 1j, "complex128"), ("int32", 1j, "complex64"),
        ("complex64", 1, "complex64"), ("complex128", 1.5, "complex128"),
    ],
)  # fmt: skip
@pytest.mark.sample(3)
def test_a_number_with_an_array(dtype, number, expected):
    array = mtl.ones(2, dtype=dtype)
    for result in (mtl.add(array, number), mtl.add(number, array)):
        assert str(result.dtype) == expected
        np.testing.assert_array_equal(np.asarray(result).astype(complex), [1 + number] * 2 if dtype != "bool" or number is not True else [1, 1])  # fmt: skip


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError, match="300 is outside"):
        mtl.add(mtl.ones(2, dtype="int8"), 300)


@pytest.mark.parametrize("to", ALL, ids=str)
@pytest.mark.sample(3)
def test_casts_from_every_type(to):
    sources = [
        operands(dtype)[:700]
        for dtype in ALL
        if not (kind_of(dtype) == "c" and kind_of(to) in "iuf")
    ]
    length = max(map(len, sources))
    sources = [np.resize(source, length) for source in sources]
    which = mtl.reshape(mtl.arange(len(sources)), (-1, 1))
    combined = mtl.zeros((len(sources), length), dtype=to)
    for k, source in enumerate(sources):
        combined = mtl.where(mtl.equal(which, k), mtl.astype(mtl.asarray(source), to), combined)
    for got, source in zip(np.asarray(combined), sources, strict=True):
        np.testing.assert_array_equal(
            *_cast_and_expected(got, source, to), err_msg=str(source.dtype)
        )


def _cast_and_expected(got, source, to):
    kind, of = kind_of(to), kind_of(source.dtype)
    if kind in "iu" and of == "f":
        limits = np.iinfo(to)
        integers = [0 if x != x else x for x in source.astype(float).tolist()]
        clipped = [
            int(min(max(x, limits.min), limits.max)) if abs(x) != np.inf else x for x in integers
        ]
        return got, np.array(
            [limits.max if x == np.inf else limits.min if x == -np.inf else x for x in clipped], to
        )
    with np.errstate(all="ignore"):
        expected = (
            source.astype(np.float32).astype(to)
            if to == bfloat16 and of in "iu"
            else source.astype(to)
        )
    if kind == "c":
        return got.view(real_of(to)), expected.view(real_of(to))
    return got.astype(float), expected.astype(float)


@pytest.mark.parametrize("name", ["exp", "sqrt", "hypot", "atan2", "divide", "signbit"])
@pytest.mark.sample(1)
def test_functions_of_floats_take_integers_as_float32(name):
    args = [mtl.asarray(np.arange(1, 50, dtype=np.int8))] * OPS[name].operands
    as_floats = getattr(mtl, name)(*(mtl.astype(arg, "float32") for arg in args))
    np.testing.assert_array_equal(np.asarray(getattr(mtl, name)(*args)), np.asarray(as_floats))


def test_what_has_no_meaning_is_refused():
    with pytest.raises(TypeError, match=r"\[less\] is not supported for complex64"):
        mtl.less(mtl.ones(1, dtype="complex64"), mtl.ones(1, dtype="complex64"))
    with pytest.raises(TypeError, match=r"\[bitwise_and\] is not supported for float32"):
        mtl.bitwise_and(mtl.ones(1), mtl.ones(1))
    with pytest.raises(TypeError, match=r"take .real or .imag"):
        mtl.astype(mtl.ones(1, dtype="complex64"), "float32")


# -- shapes


@hypothesis.settings(max_examples=6)
@hypothesis.given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=5),
    name=st.sampled_from(["add", "multiply", "maximum", "less_equal"]),
    types=st.tuples(*[st.sampled_from(["uint8", "int16", "float32", "bool"])] * 2),
    data=st.data(),
)
def test_shapes_broadcast_and_types_mix(shapes, name, types, data):
    a, b = (
        data.draw(hnp.arrays(dtype, shape, elements=hnp.from_dtype(np.dtype(dtype), allow_nan=False, allow_infinity=False)))
        for dtype, shape in zip(types, shapes.input_shapes, strict=True)
    )  # fmt: skip
    got = getattr(mtl, name)(mtl.asarray(a), mtl.asarray(b))
    promoted = _promoted(a.dtype, b.dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a.astype(promoted), b.astype(promoted))
    assert got.shape == shapes.result_shape
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(got), expected)


# -- where and clip


def test_where_takes_what_is_asked_for_and_nothing_of_the_other():
    x = mtl.asarray(np.array([4.0, -1, np.nan, np.inf], np.float32))
    got = np.asarray(mtl.where(mtl.greater(x, 0), mtl.sqrt(x), 0))
    np.testing.assert_array_equal(got, np.array([2, 0, 0, np.inf], np.float32))
    mixed = mtl.where(
        mtl.asarray([[True], [False]]),
        mtl.asarray(np.int8([1, 2])),
        mtl.asarray(np.uint8([200, 7])),
    )
    assert mixed.dtype == np.int16
    np.testing.assert_array_equal(np.asarray(mixed), [[1, 2], [200, 7]])
    with pytest.raises(TypeError, match="condition must be bool"):
        mtl.where(mtl.ones(2), 1.0, 0.0)


@pytest.mark.parametrize(
    "limits", [(-1, 2), (None, 2), (-1, None), (3, -3), (None, None), (np.nan, 1)]
)
@pytest.mark.parametrize("dtype", ["int8", "float32", "bfloat16"])
@pytest.mark.sample(3)
def test_clip_as_numpy_does(limits, dtype):
    if dtype == "int8" and np.nan in limits:
        pytest.skip("int8 has no NaN")
    values = np.array(
        [-128, -1, 0, 1, 5, 127] if dtype == "int8" else [-np.inf, -2.5, -0.0, 1.5, np.inf, np.nan]
    )
    values = values.astype(bfloat16 if dtype == "bfloat16" else dtype)
    got = mtl.clip(mtl.asarray(values), *limits)
    expected = values if limits == (None, None) else np.clip(values.astype(float), *limits)
    assert got.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(got).astype(float), expected.astype(float))


# -- complex numbers beyond the table


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_quotients_of_infinities_and_by_zero(dtype):
    inf, nan = np.inf, np.nan
    top = np.array([1 + 1j, 1, complex(inf, 1), complex(inf, nan), 1 + 1j, complex(1, 2), 0], dtype)
    below = np.array(
        [0, complex(-0.0, 0), 2 + 1j, 1 - 1j, complex(inf, nan), complex(-inf, inf), 0], dtype
    )
    got = np.asarray(mtl.divide(mtl.asarray(top), mtl.asarray(below)))
    assert np.isinf([got.real[:4], got.imag[:4]]).any(0).all()
    assert got[4] == 0
    assert got[5] == 0
    assert np.isnan(got[6].real)
    assert np.isnan(got[6].imag)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_conjugates_of_operands_give_conjugates(dtype):
    values = operands(np.dtype(dtype))
    rows = _rows(np.dtype(dtype), 1, np.dtype(dtype))  # the kernels of the test above
    are_functions = [row.cost >= 4 for row in rows]
    flipped = np.conj(_evaluate(rows, (np.conj(values),)))[are_functions]
    results = np.array(_evaluate(rows, (values,)))[are_functions]
    np.testing.assert_array_equal(np.abs(flipped.real), np.abs(results.real))
    np.testing.assert_array_equal(np.abs(flipped.imag), np.abs(results.imag))


# -- text


@pytest.mark.parametrize("dtype", [d for d in ALL if real_of(d) != np.float64], ids=str)
def test_texts_are_what_apples_compiler_takes(dtype):
    lines = []
    for row in OPS.values():
        if kind_of(dtype) in row.dtype_kinds:
            text = row.text.format("a", "b")
            lines.append(f"{{ {msl_name(row.result(dtype))} v = {text}; out[i] = uint(v == v); }}")
    files = ["arrays", "complex", "complex_functions"]
    files += sorted({row.file for row in OPS.values() if row.file})
    source = "\n".join(
        ["#include <metal_stdlib>\nusing namespace metal;", metal_source(*files),
         f"kernel void all(device {msl_name(dtype)} const *x [[buffer(0)]], device uint *out [[buffer(1)]],",
         f"uint i [[thread_position_in_grid]]) {{ const {msl_name(dtype)} a = x[i], b = x[i + 1];", *lines, "}"]
    )  # fmt: skip
    mtl.library(source, portable=True)


@pytest.mark.parametrize("length", [1, 2, 31, 33, 100])
def test_any_and_all_see_each_lane(length):
    one = np.eye(length, dtype=bool)
    for k in range(length):
        assert mtl.any(mtl.asarray(one[k]))
        assert not mtl.all(mtl.asarray(~one[k]))
    assert not mtl.any(mtl.asarray(one[0] & False))


@pytest.mark.parametrize("exponent", [2, 3, 2.0, 3.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "complex64"])
@pytest.mark.sample(1, per="dtype")
def test_squares_and_cubes_are_powers(exponent, dtype):
    small = np.array([0, 1, 3, 11, 100], dtype)
    x = small if small.dtype.kind in "iu" else np.concatenate([small, small / 7, [np.inf, np.nan]])
    x = x.astype(dtype)
    result = np.asarray(mtl.asarray(x) ** exponent)
    exponents = mtl.asarray(np.full(x.shape, exponent, result.dtype))
    same_power = np.asarray(mtl.pow(mtl.asarray(x), exponents))
    assert result.dtype == same_power.dtype
    limit = 0 if result.dtype.kind in "iu" else 4 * np.finfo(result.dtype).eps
    np.testing.assert_allclose(result, same_power, rtol=limit)
