"""Random expressions, as kernels and as NumPy: the same bits where the arithmetic is exact.

In safe mode every operation rounds once and nothing is contracted or reordered, so there is no
tolerance here.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

DTYPES = {
    "uint": np.uint32, "ulong": np.uint64, "float": np.float32, "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
}  # fmt: skip
#: Texts with placeholders, and their meaning in NumPy.
FLOAT_OPERATIONS = {
    "({} + {})": np.add, "({} - {})": np.subtract, "({} * {})": np.multiply, "({} / {})": np.divide,
    "(-{})": np.negative, "fabs({})": np.abs, "floor({})": np.floor, "ceil({})": np.ceil,
    "trunc({})": np.trunc, "rint({})": np.rint, "sqrt({})": np.sqrt,
    # The sign of a NaN that was computed is the processor's own.
    "copysign({}, fmin({}, {type}(1)))": lambda a, b: np.copysign(a, np.fmin(b, b.dtype.type(1))),
    "({} < {} ? {} : {})": lambda a, b, c, d: np.where(a < b, c, d),
    "select({}, {}, {} == {})": lambda a, b, c, d: np.where(c == d, b, a),
}  # fmt: skip
INTEGER_OPERATIONS = {
    "({} + {})": np.add, "({} - {})": np.subtract, "({} * {})": np.multiply,
    "({} & {})": np.bitwise_and, "({} | {})": np.bitwise_or, "({} ^ {})": np.bitwise_xor,
    "(~{})": np.invert, "({} / ({} | 1))": lambda a, b: a // (b | a.dtype.type(1)),
    "({} % ({} | 1))": lambda a, b: a % (b | a.dtype.type(1)),
    "({} << ({} & 31))": lambda a, b: a << (b & a.dtype.type(31)),
    "({} >> ({} & 31))": lambda a, b: a >> (b & a.dtype.type(31)),
    "min({}, {})": np.minimum, "max({}, {})": np.maximum,
    "({} >= {} ? {} : {})": lambda a, b, c, d: np.where(a >= b, c, d),
    "popcount({})": lambda a: np.bitwise_count(a).astype(a.dtype),
    "absdiff({}, {})": lambda a, b: np.maximum(a, b) - np.minimum(a, b),
}  # fmt: skip
#: What ml_dtypes computes with more precision than one rounding, or not at all.
NOT_FOR_BFLOAT = {"({} / {})", "sqrt({})", "copysign({}, fmin({}, {type}(1)))"}


@dataclass(frozen=True)
class Expression:
    text: str
    value: object  # from (x, y) to an array


def expressions(type_):
    floating = type_ not in ("uint", "ulong")
    operations = dict(FLOAT_OPERATIONS if floating else INTEGER_OPERATIONS)
    if type_ == "bfloat":
        operations = {text: f for text, f in operations.items() if text not in NOT_FOR_BFLOAT}
    dtype = DTYPES[type_]
    numbers = st.integers(0, 100).map(
        lambda n: Expression(f"{type_}({n})", lambda x, y: np.full_like(x, n))
    )
    leaves = st.sampled_from(
        [Expression("x[i]", lambda x, y: x), Expression("y[i]", lambda x, y: y)]
    )

    def combine(children):
        return st.sampled_from(sorted(operations)).flatmap(
            lambda text: st.tuples(*[children] * text.count("{}")).map(
                lambda operands: Expression(
                    text.format(*(operand.text for operand in operands), type=type_),
                    lambda x, y: operations[text](*(o.value(x, y) for o in operands)).astype(dtype),
                )
            )
        )

    return st.recursive(numbers | leaves, combine, max_leaves=12)


def special_values(type_, rng):
    dtype = DTYPES[type_]
    if type_ in ("uint", "ulong"):
        limit = np.iinfo(dtype).max
        some = [0, 1, 2, 3, 31, 32, 255, limit, limit - 1, limit // 2, limit // 2 + 1]
        return np.concatenate([np.array(some, dtype), rng.integers(0, limit, 117, dtype)])
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    big = float(ml_dtypes.finfo(dtype).max)
    some = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, tiny, -tiny, big, -big]
    return np.concatenate([some, rng.normal(size=114) * 10.0 ** rng.integers(-5, 6, 114)]).astype(
        dtype
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "type_", [pytest.param(t, marks=[pytest.mark.slow] * (t in ("uint", "bfloat"))) for t in DTYPES]
)
def test_random_expressions(type_):
    rng = np.random.default_rng(7)
    x, y = special_values(type_, rng), rng.permutation(special_values(type_, rng))

    @settings(max_examples=4)
    @given(expressions(type_))
    def check(expression):
        lib = mtl.library(
            "#include <metal_stdlib>\nusing namespace metal;\n"
            f"kernel void f(device {type_}* out, device const {type_}* x, device const {type_}* y,"
            f" uint i [[thread_position_in_grid]]) {{ out[i] = {expression.text}; }}"
        )
        out = np.zeros_like(x)
        lib.f(out, x, y, threads=x.size)
        expected = expression.value(x, y)
        if type_ in ("half", "bfloat"):
            out, expected = out.astype(np.float32), expected.astype(np.float32)
        np.testing.assert_array_equal(out, expected, err_msg=expression.text)

    check()
