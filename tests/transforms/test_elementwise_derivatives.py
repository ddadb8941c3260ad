"""Derivatives of elementwise operations: every row of the table, against differences in mpmath."""

import ast
import itertools
import math

import mpmath
import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import kind_of, real_of
from metalloid.arrays.ir.node import apply, constant
from metalloid.arrays.ir.ops import BITS, CAST, NO_DERIVATIVE, OPS, WHERE, Op
from metalloid.random import counts, distributions, integers, keys
from metalloid.transforms.elementwise import tangent

RANDOM = [
    row for m in (counts, distributions, integers, keys) for row in vars(m).values() if isinstance(row, Op)
]  # fmt: skip
#: The other functions are named as in mpmath.
ORACLES = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "floor_divide": lambda x, y: mpmath.floor(x / y),
    "remainder": lambda x, y: x - y * mpmath.floor(x / y),
    "pow": lambda x, y: mpmath.power(x, y),
    "maximum": max,
    "minimum": min,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "abs": abs,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sign": lambda x: x / abs(x),
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": lambda x: mpmath.exp(x) - 1,
    "log1p": lambda x: mpmath.log(1 + x),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "trunc": lambda x: mpmath.sign(x) * mpmath.floor(abs(x)),
    "round": mpmath.nint,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "copysign": lambda x, y: abs(x) * mpmath.sign(y),
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
}
#: Two operands and a tangent.
POINTS = {
    "f": list(itertools.product([-2.3, -0.7, 0.4, 1.6, 3.1], [-1.3, 0.6, 2.0, 3.0], [1.0, -0.3])),
    "c": list(
        itertools.product(
            [0.4 + 0.7j, -1.3 + 0.4j, 0.6 - 1.9j, -2.1 - 0.8j, 0.25 + 0.1j],
            [0.6 + 0.3j, -1.3 - 0.4j, 2.0 + 0j],
            [1, 1j, 0.6 - 0.8j],
        )
    ),
}
LENGTH = 64  # of all operands, so that all tests have the same kernels


def leaf(values, dtype):
    return mtl.asarray(np.asarray(values, dtype))._node


def derivative(row, k, args, t):
    """The derivative of a row along a tangent of operand `k`."""
    out = apply(row, row.result(args[k].dtype), *args)
    return tangent(row, k, tuple(args), out, t)


def values_of(nodes):
    """Values of nodes of one type and shape, from one kernel."""
    which = mtl.reshape(mtl.arange(len(nodes)), (-1, 1))
    joined = mtl.broadcast_to(Array(nodes[0]), (len(nodes), *nodes[0].shape))
    for k, node in enumerate(nodes[1:], 1):
        joined = mtl.where(mtl.equal(which, k), Array(node), joined)
    return np.asarray(joined)


def derivatives_at(dtype, points):
    """All derivatives of the table at points `(x, y, t)`, by row and operand.

    One kernel computes them, which is the same for any points.
    """
    padded = np.array(points + points[:1] * (LENGTH - len(points)))
    *operands, t = (leaf(column, dtype) for column in padded.T)
    results, nodes = {}, {}
    for name, row in OPS.items():
        rules = row.complex_tangents if dtype.kind == "c" and row.complex_tangents else row.tangents
        for k, rule in enumerate(rules if dtype.kind in row.dtype_kinds else ()):
            results[name, k] = np.zeros(LENGTH)
            node = derivative(row, k, operands[: row.operands], t)
            assert (node is None) == (rule == "0")
            if node is not None:
                nodes.setdefault(node.dtype, {})[name, k] = node
    for group in nodes.values():
        results |= zip(group, values_of(list(group.values())), strict=True)
    return results


def difference(name, k, args, t):
    """The derivative by a central difference of 60 digits; None outside of the domain."""
    function = ORACLES.get(name) or getattr(mpmath, name)
    is_real = all(isinstance(x, float) for x in args)
    with mpmath.workdps(60):
        args = [mpmath.mpmathify(x) for x in args]
        h, t = mpmath.mpf(10) ** -20, mpmath.mpmathify(t)
        try:
            ends = [function(*args[:k], args[k] + s * h * t, *args[k + 1 :]) for s in (1, -1)]
        except ValueError:
            return None
        if is_real and any(mpmath.im(x) for x in ends):
            return None
        return complex((ends[0] - ends[1]) / (2 * h))


# -- the table


@pytest.mark.parametrize("row", [*OPS.values(), WHERE, CAST, BITS, *RANDOM], ids=lambda r: r.name)
def test_every_row_states_its_derivative(row):
    for tangents in (row.tangents, row.complex_tangents or row.tangents):
        assert tangents == NO_DERIVATIVE or len(tangents) == row.operands
    has_float_results = any(
        kind_of(row.result(np.dtype(d))) in "fc"
        for kind, d in (("f", "float32"), ("c", "complex64"))
        if kind in row.dtype_kinds
    )
    bits_of_floats = ("nextafter", "view")
    assert (row.tangents != NO_DERIVATIVE) == (has_float_results and row.name not in bits_of_floats)


def test_a_row_without_a_statement_is_refused():
    with pytest.raises(TypeError, match="tangents"):
        Op("twice", "2 * {0}", "f", "Twice the number")


def is_linear(tree):
    """Whether an expression is 0 or linear in `t`, by its form."""
    if has_no_tangent(tree):
        return isinstance(tree, ast.Constant) and tree.value == 0
    match tree:
        case ast.Name():
            return True
        case ast.UnaryOp(ast.USub(), operand):
            return is_linear(operand)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return is_linear(left) and is_linear(right)
        case ast.BinOp(left, ast.Mult(), right):
            linear, other = (left, right) if has_no_tangent(right) else (right, left)
            return is_linear(linear) and has_no_tangent(other)
        case ast.BinOp(left, ast.Div(), right):
            return is_linear(left) and has_no_tangent(right)
        case ast.Call(ast.Name("where"), [condition, first, second]):
            return has_no_tangent(condition) and is_linear(first) and is_linear(second)
        case ast.Call(ast.Name("real" | "imag" | "conj"), [operand]):
            return is_linear(operand)
    return False


def has_no_tangent(tree):
    return not any(isinstance(x, ast.Name) and x.id == "t" for x in ast.walk(tree))


def test_expressions_are_linear_in_the_tangent():
    rows = [*OPS.values(), WHERE, CAST]
    texts = {text for row in rows for text in (*row.tangents, *row.complex_tangents)}
    assert len(texts) > 50
    for text in texts:
        assert is_linear(ast.parse(text, mode="eval").body), text
    for text in ("t * t", "exp(t)", "x / t", "t + x", "where(t, t, 0)", "x", "1"):
        assert not is_linear(ast.parse(text, mode="eval").body), text


# -- values


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        *(pytest.param(d, marks=pytest.mark.slow) for d in ("float64", "complex64", "complex128")),
    ],
)
def test_derivatives_are_limits_of_differences(dtype):
    dtype = np.dtype(dtype)
    points = POINTS[dtype.kind]
    limit, wrong = 200 * np.finfo(dtype).eps, []
    for (name, k), values in derivatives_at(dtype, points).items():
        compared = 0
        for (*args, t), got in zip(points, values, strict=False):
            args = np.array(args[: OPS[name].operands], dtype).tolist()
            expected = difference(name, k, args, t)
            if expected is not None:
                compared += 1
                if not abs(got - expected) <= limit * max(abs(expected), 1e-3):
                    wrong.append(f"{name}{tuple(args)} by {k} gave {got}, expected {expected}")
        assert compared >= 4, name
    assert not wrong, "\n".join(wrong)


INF, NAN = math.inf, math.nan
#: Row, operands, and the derivatives by the operands.
SPECIAL = [
    ("abs", (0,), (0,)),  # as in MLX; 1 in JAX
    ("sqrt", (0,), (INF,)),
    ("cbrt", (0,), (INF,)),
    ("cbrt", (-8,), (1 / 12,)),
    ("log", (0,), (INF,)),
    ("log1p", (-1,), (INF,)),
    ("reciprocal", (0,), (-INF,)),
    ("divide", (1, 0), (INF, -INF)),
    ("asin", (1,), (INF,)),
    ("acosh", (1,), (INF,)),
    ("acosh", (0.5,), (NAN,)),
    ("atanh", (1,), (INF,)),
    ("erfinv", (1,), (INF,)),
    ("i0", (0,), (0,)),
    ("i1", (0,), (0.5,)),
    ("expm1", (-40,), (math.exp(-40),)),
    ("asinh", (1e30,), (1e-30,)),
    ("maximum", (1, 1), (0, 1)),  # as in MLX; half each in JAX
    ("minimum", (1, 1), (0, 1)),
    ("maximum", (NAN, 1), (0, 0)),
    ("hypot", (0, 0), (0, 0)),
    ("hypot", (3e30, -4e30), (0.6, -0.8)),
    ("atan2", (1e30, 1e30), (5e-31, -5e-31)),
    ("logaddexp", (-800, 800), (0, 1)),
    ("logaddexp", (-INF, -INF), (0.5, 0.5)),
    ("logaddexp", (-INF, 0), (0, 1)),
    ("logaddexp", (INF, 0), (1, 0)),
    ("remainder", (6, 3), (1, -2)),
    ("remainder", (-1, 3), (1, 1)),
    ("copysign", (0.0, -1), (-1, 0)),
    ("copysign", (-0.0, -1), (1, 0)),
    ("pow", (0, 0), (0, 0)),
    ("pow", (0, 1), (1, 0)),
    ("pow", (0, 2), (0, 0)),
    ("pow", (0, 0.5), (INF, 0)),
    ("pow", (0, -1), (-INF, NAN)),
    ("pow", (-2, 3), (12, NAN)),
    ("pow", (-2, -1), (-0.25, NAN)),
    ("pow", (-2, 0), (0, NAN)),
    ("pow", (2, 0), (0, math.log(2))),
    ("pow", (INF, 0), (0, INF)),
]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_special_points(dtype):
    dtype = np.dtype(dtype)
    points = [(*(*args, 0.5)[:2], 1) for _, args, _ in SPECIAL]
    results = derivatives_at(dtype, points)
    for index, (name, args, expected) in enumerate(SPECIAL):
        got = [results[name, k][index] for k in range(len(args))]
        rtol = 10 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, expected, rtol=rtol, err_msg=f"{name}{args}")


def test_special_points_of_complex_numbers():
    args = [leaf([0, 3 + 4j, 3 + 4j, -5], np.complex64)]
    directions = leaf([1, 1, 1j, 1j], np.complex64)

    def values(*names):
        return values_of([derivative(OPS[name], 0, args, directions) for name in names])

    sign = [0, 0.128 - 0.096j, -0.096 + 0.072j, 0.2j]
    expected = {"abs": [0, 0.6, 0.8, 0], "real": [1, 1, 0, 0], "imag": [0, 0, 1, 1]}
    np.testing.assert_allclose(values(*expected), list(expected.values()), atol=1e-7)
    np.testing.assert_allclose(values("sign", "conj"), [sign, [1, 1, -1j, -1j]], atol=1e-7)


@pytest.mark.slow
def test_derivatives_on_branch_cuts_belong_to_the_same_branch():
    """The sign of a zero tells the branch, as it does for the functions."""
    re, im = np.array([(2, 0), (2, -0.0), (-2, 0), (-2, -0.0), (0, 2), (-0.0, 2)], np.float32).T
    z = np.empty(len(re), np.complex64)
    z.real, z.imag = re, im
    args, ones = [leaf(z, z.dtype)], leaf(np.ones_like(z), z.dtype)
    names = ("asin", "acos", "acosh", "asinh")
    values = values_of([derivative(OPS[name], 0, args, ones) for name in names])
    root = 1 / math.sqrt(3)
    asin = root * np.array([1j, -1j, -1j, 1j])
    np.testing.assert_allclose(values[0, :4], asin, rtol=1e-6)
    np.testing.assert_allclose(values[1, :4], -asin, rtol=1e-6)
    np.testing.assert_allclose(values[2, :4], root * np.array([1, 1, -1, -1]), rtol=1e-6)
    np.testing.assert_allclose(values[3, 4:], root * np.array([-1j, 1j]), rtol=1e-6)


def test_powers_with_a_number_as_exponent():
    x, t = np.array([0.0, -2.0, 1.5], np.float32), np.array([1, 1, -2], np.float32)
    args, exponents = [leaf(x, x.dtype)], [-1, 0.5, 1, 2, 3, 4]
    nodes = [
        derivative(
            OPS["pow"], 0, [*args, constant(float(n), x.dtype, args[0].device)], leaf(t, x.dtype)
        )
        for n in (0, *exponents)
    ]
    assert nodes[0] is None
    for n, got in zip(exponents, values_of(nodes[1:]), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got, t * (n * x ** (n - 1.0)), rtol=1e-6)


def test_where_passes_the_tangent_of_the_chosen_operand():
    mask = leaf([True, False], bool)
    x, y, t = (leaf(v, np.float32) for v in ([1, 2], [3, 4], [5, np.inf]))
    out = apply(WHERE, x.dtype, mask, x, y)
    assert tangent(WHERE, 0, (mask, x, y), out, t) is None
    first, second = (Array(tangent(WHERE, k, (mask, x, y), out, t)) for k in (1, 2))
    np.testing.assert_array_equal(first, [5, 0])
    np.testing.assert_array_equal(second, [0, np.inf])


# -- types and shapes


def nodes_below(node):
    yield node
    for arg in node.args:
        yield from nodes_below(arg)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_derivatives_have_the_type_and_shape(dtype):
    x = mtl.zeros((2, 1), dtype=dtype)._node
    for row in OPS.values():
        if kind_of(x.dtype) not in row.dtype_kinds or not row.tangents:
            continue
        for k in range(row.operands):
            node = derivative(row, k, [x] * row.operands, x)
            if node is None:
                continue
            assert node.dtype == row.result(x.dtype)
            assert node.shape == x.shape
            types = {n.dtype for n in nodes_below(node) if kind_of(n.dtype) in "fc"}
            assert types <= {x.dtype, real_of(x.dtype)}, row.name


def test_conversions_convert_tangents():
    x = leaf([1, 2], np.float32)
    for dtype, expected in (("float16", "float16"), ("complex64", "complex64"), ("int32", None)):
        out = apply(CAST, np.dtype(dtype), x)
        node = tangent(CAST, 0, (x,), out, x)
        assert (None if node is None else node.dtype) == expected
    integers = leaf([1, 2], np.int32)
    assert tangent(CAST, 0, (integers,), apply(CAST, x.dtype, integers), integers) is None


def test_integers_and_booleans_have_no_derivative():
    for dtype in (np.int32, np.bool_):
        x = leaf([1, 0], dtype)
        for name in ("add", "multiply", "maximum", "equal", "abs"):
            row = OPS[name]
            args = [x] * row.operands
            assert derivative(row, 0, args, x) is None
    x = leaf([1.0, 0.0], np.float32)
    assert derivative(OPS["less"], 0, [x, x], x) is None
    assert derivative(OPS["isnan"], 0, [x], x) is None


def test_an_operation_without_a_derivative_says_so():
    x = leaf([1.0], np.float32)
    with pytest.raises(mtl.TraceError, match=r"^\[nextafter\] the operation has no derivative"):
        derivative(OPS["nextafter"], 0, [x, x], x)


def test_a_tangent_of_a_broadcast_number_has_the_shape_of_the_result():
    x, scalar = leaf([1.0, 2.0, 3.0], np.float32), leaf(2.0, np.float32)
    out = apply(OPS["add"], x.dtype, x, scalar)
    node = tangent(OPS["add"], 1, (x, scalar), out, leaf(1.0, np.float32))
    np.testing.assert_array_equal(Array(node), [1, 1, 1])
