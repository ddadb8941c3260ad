"""Operators and evaluations in C, compared with NumPy and with the same ones in Python."""

import gc
import itertools
import sys
import threading

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import evaluate, known_evaluations
from metalloid.arrays.execution.repeated_plan import RepeatedPlan
from metalloid.arrays.ir import native
from metalloid.arrays.ir.memory import pool_of
from metalloid.compiler.toolchain import clang, native_build

pytestmark = pytest.mark.needs("the CPU")

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def evaluated(values):
    x = mtl.asarray(values) + 0
    mtl.eval(x)
    return x


@pytest.fixture
def only_python(monkeypatch):
    monkeypatch.setattr(native, "elementwise", lambda operation, *operands: None)
    monkeypatch.setattr(evaluate, "native_evaluation", lambda: None)


def _on_host(x, y):
    with mtl.config.scope(products="host"):
        return x @ y


#: Pairs of expressions whose graphs differ only in what the key of a plan might leave out.
SIMILAR = {
    "equal and other constants": (lambda x, y: x * 2 + y * 2.0, lambda x, y: x * 2 + y * 3.0),
    "other and equal constants": (lambda x, y: x * 2 + y * 3.0, lambda x, y: x * 2 + y * 2.0),
    "zero": (lambda x, y: x * 0.0 + y * -0.0, lambda x, y: x * -0.0 + y * 0.0),
    "one leaf and two": (lambda x, y: x * 2 - x, lambda x, y: x * 2 - y),
    "equal leaves": (lambda x, y: x[...] * 2 - x[...], lambda x, y: x[...] * 2 - y[...]),
    "order of operands": (lambda x, y: (x + 1) - y, lambda x, y: y - (x + 1)),
    "order of creation": (
        lambda x, y: (lambda a, b: a / b)(x + 1, y + 2),
        lambda x, y: (lambda b, a: a / b)(y + 2, x + 1),
    ),
    "transposed": (lambda x, y: (x + y).T + 1, lambda x, y: x.T + y.T + 1),
    "axes": (lambda x, y: (x + y).sum(axis=0), lambda x, y: (x + y).sum(axis=1)),
    "reductions": (lambda x, y: (x + y).max(axis=0), lambda x, y: (x + y).min(axis=0)),
    "shapes": (lambda x, y: (x + y).reshape(4, 3) * 2, lambda x, y: (x + y).reshape(2, 6) * 2),
    "offsets": (lambda x, y: x[:2] + y[:2], lambda x, y: x[1:] + y[1:]),
    "slices": (lambda x, y: (x + y)[:2] * 2, lambda x, y: (x + y)[1:] * 2),
    "types": (lambda x, y: x > y, lambda x, y: x != y),
    "products": (lambda x, y: x @ y.T + 1, lambda x, y: y @ x.T + 1),
    "shapes of products": (lambda x, y: x @ y.T, lambda x, y: x.T @ y),
    "a product of one leaf": (lambda x, y: x @ x.T, lambda x, y: x @ y.T),
    "settings of products": (lambda x, y: x @ y.T, lambda x, y: _on_host(x, y.T)),
    "a view that a product makes": (
        lambda x, y: x[0] @ x.T + x[:, 0],
        lambda x, y: x[0] @ x.T + y[:, 0],
    ),
    "rows of one matrix": (
        lambda x, y: x[:1] @ x.T + x[:, 1],
        lambda x, y: x[1:2] @ x.T + x[:, 1],
    ),
    "counters": (lambda x, y: (x + y).argmax(), lambda x, y: (x - y).argmin()),
    "counters with offsets": (
        lambda x, y: x + mtl.arange(10)[2:6] * y,
        lambda x, y: x + mtl.arange(10)[3:7] * y,
    ),
    "sorts": (lambda x, y: mtl.sort(x * y, axis=0), lambda x, y: mtl.sort(x * y, descending=True)),
    "scans": (
        lambda x, y: mtl.cumulative_sum(x - y, axis=0),
        lambda x, y: mtl.cummax(x - y, axis=0),
    ),
    "tables": (
        lambda x, y: mtl.fft.rfft((x + y).reshape(12), n=128),
        lambda x, y: mtl.fft.rfft((x + y).reshape(12), n=64),
    ),
    "many operands": (
        lambda x, y: mtl.concat([x, y, x + 1, y * 2, x - y]),
        lambda x, y: mtl.concat([x, y, x + 1, y * 2, y - x]),
    ),
}


@pytest.mark.parametrize("name", SIMILAR)
@pytest.mark.sample(4)
def test_similar_graphs(name, monkeypatch):
    given = evaluated(X), evaluated(X[::-1] * 2 + 1)
    with monkeypatch.context() as python:
        python.setattr(native, "elementwise", lambda operation, *operands: None)
        python.setattr(evaluate, "native_evaluation", lambda: None)
        expected = [np.asarray(expression(*given)) for expression in SIMILAR[name]]
    for _ in range(3):
        for expression, values in zip(SIMILAR[name], expected, strict=True):
            result = expression(*given)
            got = np.asarray(result)
            assert (got.dtype, got.shape) == (values.dtype, values.shape)
            assert got.tobytes() == values.tobytes()


OPERANDS = {
    "int32": np.arange(1, 5, dtype=np.int32),
    "float16": np.arange(1, 5, dtype=np.float16),
    "float64": np.arange(1, 5, dtype=np.float64),
    "complex64": np.arange(1, 5, dtype=np.complex64) * 1j,
    "bool": np.array([True, False, True, False]),
    "a row": np.ones((3, 1), np.float32),
    "a NumPy scalar": np.float32(3),
    "an int": 3,
    "a huge int": 2**40,
    "a float": 2.5,
    "a bool": True,
    "a complex number": 1 + 2j,
    "zero": 0.0,
    "NaN": float("nan"),
}


def test_operators_do_not_need_python(monkeypatch):
    if native.library() is None:
        pytest.skip("native functions are not available")
    x = evaluated(X)
    monkeypatch.setattr("metalloid.arrays.operators.binary", None)
    monkeypatch.setattr("metalloid.arrays.operators.unary", None)
    np.testing.assert_array_equal(np.asarray(-(x * 2 + 0) - x), -(X * 2) - X)


def described(node):
    data = repr(node.data) if node.kind == "constant" else node.data
    operands = tuple(map(described, node.args))
    return (
        node.kind,
        type(data),
        data,
        node.dtype,
        node.shape,
        node.flags,
        id(node.device),
        operands,
    )


def outcome(function, *operands):
    try:
        return described(function(*operands)._node)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("other", OPERANDS)
def test_operators_as_in_python(other, monkeypatch):
    operators = (
        lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a / b, lambda a, b: a < b,
        lambda a, b: a ** b, lambda a, b: a & b, mtl.maximum, lambda a, b: -a, lambda a, b: mtl.exp(a),
    )  # fmt: skip
    for first in ("int32", "float16", "float64", "complex64", "bool"):
        a, b = mtl.asarray(OPERANDS[first]), OPERANDS[other]
        b = evaluated(b) if isinstance(b, np.ndarray) else b
        with monkeypatch.context() as python:
            python.setattr(native, "elementwise", lambda operation, *operands: None)
            expected = [outcome(operator, a, b) for operator in operators]
        for _ in range(2):
            assert [outcome(operator, a, b) for operator in operators] == expected


KEYS = [
    0, -1, 3, 10**30, True, np.int64(1), None, ..., slice(None), slice(1, 3), slice(None, None, -1), slice(0, 1),
    slice(2, 0, -2), slice(5, 9), slice(-2, None), slice(None, None, 0), slice(0, 10**30),
    slice(np.int64(1), None),
]  # fmt: skip


def test_indices_as_in_python(monkeypatch):
    x = evaluated(np.arange(60, dtype=np.int16).reshape(3, 4, 5))
    keys = [
        (),
        *KEYS,
        *itertools.product(KEYS, repeat=2),
        (1, ..., 2),
        (0, 1, 2, 3),
        (0, 1, None, -1),
    ]
    in_c = native.selected
    for array in (x, x + 1, x.T[1:], x[0, 1, 2], (x + 1)[:1], mtl.zeros((0, 3)), mtl.arange(4)):
        for key in keys:
            monkeypatch.setattr(native, "selected", lambda array, key: None)
            expected = outcome(array.__getitem__, key)
            monkeypatch.setattr(native, "selected", in_c)
            assert outcome(array.__getitem__, key) == expected, key


def test_roots_that_are_equal_or_depend_on_each_other(monkeypatch):
    x = evaluated(X)
    for k in range(3):
        a, b = x * 2, x * 2
        c = a + b
        mtl.eval(a, b, c, a)
        if k == 0:
            monkeypatch.setattr(RepeatedPlan, "__call__", None)
        for result, values in ((a, X * 2), (b, X * 2), (c, X * 4)):
            np.testing.assert_array_equal(np.asarray(result), values)


def test_python_does_the_same(only_python):
    x = evaluated(X)
    for k in range(1, 4):
        result = (x * k + 1) / 2
        np.testing.assert_array_equal(np.asarray(result), (X * k + 1) / 2)
    with pytest.raises(OverflowError, match="outside"):
        mtl.asarray(X.astype(np.int8)) + 1000


def test_a_fault_leaves_the_expression():
    x = evaluated(X)
    mtl.eval(x * 5 + 3)
    result, own = x * 5 + 3, x._node.memory
    address, own._address = own.address, 64
    with pytest.raises(mtl.KernelFault, match="address 0x40"):
        mtl.eval(result)
    own._address = address
    np.testing.assert_array_equal(np.asarray(result), X * 5 + 3)


def test_threads_evaluate_expressions():
    wrong = []

    def work(k):
        x = evaluated(X + k)
        for n in range(300):
            if float(((x + n) * 2 - x)[1, 1]) != 5 + k + 2 * n:
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_evaluations_leak_nothing():
    x, pool = evaluated(X), pool_of(mtl.default_device())
    counted = [x._node, x._node.memory, x.dtype, mtl.Array, x.device, None, X.shape]

    def work(count):
        for k in range(count):
            mtl.eval((x * 2 + 1) * x - x / (k % 7 + 0.5), (x + x).sum(axis=0) * 2)
        gc.collect()
        references = [sys.getrefcount(each) for each in counted]
        return references, (pool.live_bytes, pool.free_bytes), sys.getallocatedblocks()

    before, memory, blocks = work(100)
    after, later_memory, later_blocks = work(10_000)
    assert all(abs(new - old) < 50 for new, old in zip(after, before, strict=True))
    assert later_memory == memory
    assert later_blocks < blocks + 1000


def test_slices_do_not_need_python(monkeypatch):
    if native.library() is None:
        pytest.skip("native functions are not available")
    values = np.arange(100, dtype=np.float32)
    x = evaluated(values)
    for start in range(0, 40, 3):
        middle = x[start + 1 : start + 50]
        result = (x[start : start + 49] + x[start + 2 : start + 51]) / 2 - middle * middle
        mtl.eval(result)
        if start == 0:
            monkeypatch.setattr(RepeatedPlan, "__call__", None)
        expected = values[start + 1 : start + 50] - values[start + 1 : start + 50] ** 2
        np.testing.assert_array_equal(np.asarray(result), expected)


def test_values_that_others_need(monkeypatch):
    """The sort and the sums are computed for their last element, and saved."""
    if native.library() is None:
        pytest.skip("native functions are not available")
    values = np.array([3, 1, 2, 5, 4], np.float32)
    for k in range(3):
        ordered = mtl.sort(evaluated(values + k))
        total = mtl.cumulative_sum(ordered)
        assert float(total[-1]) == 15 + 5 * k
        assert ordered._node.kind == total._node.kind == "buffer"
        np.testing.assert_array_equal(np.asarray(ordered), np.sort(values + k))
        np.testing.assert_array_equal(np.asarray(total), np.cumsum(np.sort(values + k)))
        if k == 0:
            monkeypatch.setattr(evaluate, "LinearizedGraph", None)


def test_plans_that_python_runs(monkeypatch):
    """As on GPUs, whose launches are not bound in C."""
    if native.library() is None:
        pytest.skip("native functions are not available")
    monkeypatch.setattr(evaluate, "_plans", {})
    plans, x = known_evaluations.plans, evaluated(X)
    before = set(plans)
    for k in range(5, 8):
        a = (x * k + 2) * x
        b, c = a.sum(axis=0), a.T - 1
        mtl.eval(b, c, a)
        np.testing.assert_array_equal(np.asarray(a), (X * k + 2) * X)
        np.testing.assert_array_equal(np.asarray(b), ((X * k + 2) * X).sum(axis=0))
        np.testing.assert_array_equal(np.asarray(c), ((X * k + 2) * X).T - 1)
        new = {key: value for key, value in plans.items() if key not in before}
        if k == 5:
            assert new
            plans.update({key: value._replace(plan=None) for key, value in new.items()})
            monkeypatch.setattr(evaluate, "LinearizedGraph", None)


def test_known_products_are_not_lowered(monkeypatch):
    if native.library() is None:
        pytest.skip("native functions are not available")
    for k in range(3):
        a, b = evaluated(X + k), evaluated(X.T - k)
        product = a @ b
        total, both = product + 1, (product * 2).sum()
        with monkeypatch.context() as context:
            if k:
                context.setattr(evaluate, "lower", None)
            mtl.eval(total)
        expected = (X + k) @ (X.T - k)
        np.testing.assert_allclose(np.asarray(total), expected + 1, rtol=1e-6)
        # The product was not saved.
        np.testing.assert_allclose(np.asarray(both), 2 * expected.sum(), rtol=1e-6)
        np.testing.assert_allclose(np.asarray(product), expected, rtol=1e-6)


@pytest.mark.skipif(
    sys.platform != "linux" or not native_build.HAS_GIL or not clang.is_available(),
    reason="native functions are for CPython on Linux, and need a compiler",
)
def test_our_own_sources_compile():
    """Python's code would replace them without a word."""
    assert native.library() is not None
