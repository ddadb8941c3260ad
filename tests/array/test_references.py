"""References to an array's memory are counted alike on all versions of Python.

Since 3.14 the interpreter borrows local variables when it calls a function with them, so that
``sys.getrefcount(local)`` is one less than before (numpy/numpy#28681). Where there is no 3.14, a
stand-in counts like it.
"""

import ast
import dis
import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

PACKAGE = Path(mtl.__file__).parent
_count = sys.getrefcount


class Holder:
    """Has one value."""


def count_as_3_14(value):
    """The count that ``sys.getrefcount`` of Python 3.14 would return."""
    frame = sys._getframe(1)
    *_, push, call = (
        instruction.opname
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset <= frame.f_lasti
        and instruction.opname not in ("PRECALL", "CACHE", "EXTENDED_ARG")
    )
    del frame
    assert call.startswith("CALL")
    return _count(value) - _OWN - push.startswith("LOAD_FAST")


_OWN = 0  # references that the stand-in itself makes
_holder = Holder()
_holder.value = object()
_OWN = count_as_3_14(_holder.value) - _count(_holder.value)


@pytest.fixture(params=["this Python", "3.14"])
def python(request, monkeypatch):
    if request.param == "3.14":
        monkeypatch.setattr(sys, "getrefcount", count_as_3_14)


def test_the_stand_in_counts_like_3_14():
    holder = Holder()
    holder.value = object()
    values = [object()]
    # Here and where it is stored: the argument is one. (No expressions: `assert` keeps values.)
    attribute, element = count_as_3_14(holder.value), count_as_3_14(values[0])
    value = holder.value
    attribute_and_name, name = count_as_3_14(holder.value), count_as_3_14(value)
    assert (attribute, element, attribute_and_name) == (2, 2, 3)
    assert name == 2  # the attribute and the name, which the argument borrows


def test_no_references_of_locals_are_counted():
    calls = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getrefcount"):
                calls += 1
                assert isinstance(node.args[0], ast.Attribute | ast.Subscript), path
    assert calls


@pytest.mark.parametrize("is_element", [True, False])
def test_a_pending_expression_retains_its_values(python, is_element):
    x = mtl.asarray(np.arange(5))
    later = x * 10
    if is_element:
        x[0] = 100
    else:
        x[1:4] = 100
    assert later.tolist() == [0, 10, 20, 30, 40]


@pytest.mark.parametrize(
    "held",
    [lambda x: x[1:], lambda x: np.asarray(x)[1:], lambda x: np.from_dlpack(x)[1:],
     lambda x: memoryview(x)[1:], lambda x: mtl.Array(x._node)[1:]],
)  # fmt: skip
@pytest.mark.needs("the process's memory")
def test_other_references_to_the_memory_retain_its_values(python, held):
    x = mtl.asarray(np.arange(5))
    other = held(x)
    x[1:] = 100
    assert other.tolist() == [1, 2, 3, 4]
    assert x.tolist() == [0, 100, 100, 100, 100]


@pytest.mark.needs("the process's memory")
def test_memory_without_other_references_is_written_in_place(python):
    x = mtl.asarray(np.arange(1000))
    address = np.asarray(x).ctypes.data
    for k in range(10):
        x[k] = 100
    assert np.asarray(x).ctypes.data == address
    assert int(x.sum()) == 1000 + sum(range(10, 1000))


def test_values_with_other_references_survive_an_evaluation(python):
    x = mtl.asarray(np.arange(5.0))
    shared = mtl.exp(x)
    low, high = shared.min() + shared, shared.max() + shared
    mtl.eval(low, high)
    expected = np.exp(np.arange(5.0))
    np.testing.assert_allclose(np.asarray(low), expected + 1)
    np.testing.assert_allclose(np.asarray(high), expected + expected[-1])
    np.testing.assert_allclose(np.asarray(shared), expected)
