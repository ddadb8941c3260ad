"""Calls of all functions of `metalloid.numpy`. The oracle is NumPy: values, types and shapes."""

import builtins
import warnings

import numpy
import pytest
from numpy_calls import ALL, operands

import metalloid.numpy as own

INSTANCES = [(chapter, call) for chapter, calls in ALL.items() for call in calls]
#: Bounds of relative errors, by bytes of the real type.
RTOL = {8: 1e-12, 4: 2e-6, 2: 2e-3, 1: 0}


class Namespace(dict):
    """Names of an expression: operands, and those of a module."""

    def __init__(self, module):
        super().__init__(operands(module))
        self.module = module

    def __missing__(self, name):
        if name in ("bool", "float", "int", "range", "slice"):
            return getattr(builtins, name)
        return getattr(self.module, name)


def flat(value):
    return [y for x in value for y in flat(x)] if isinstance(value, tuple | list) else [value]


def compare(result, expected):
    results = flat(result)
    assert len(results) == len(flat(expected))
    for x, y in zip(results, flat(expected), strict=True):
        if isinstance(y, numpy.ndarray | numpy.generic):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert isinstance(x, own.ndarray | numpy.generic)
            rtol = RTOL[numpy.real(y).dtype.itemsize]
            numpy.testing.assert_allclose(numpy.asarray(x), y, rtol=rtol, atol=1e-14)
        else:
            assert x == y


@pytest.mark.sample(1, per="chapter")
@pytest.mark.parametrize(("chapter", "call"), INSTANCES)
def test_calls(chapter, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = eval(call, {}, Namespace(numpy))
        compare(eval(call, {}, Namespace(own)), expected)
