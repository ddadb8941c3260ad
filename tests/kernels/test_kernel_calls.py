"""Calls of kernels by native functions: which ones are left to `Kernel._call`, and observers."""

import sys

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compiler.toolchain.native_build import HAS_GIL
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.kernel_calls import observe_calls

SOURCE = """
kernel void add(device float* x, constant float& a, uint i [[thread_position_in_grid]])
{
    x[i] += a;
}
"""
needs_native_calls = pytest.mark.skipif(
    sys.platform != "linux" or not HAS_GIL, reason="native functions cannot call the interpreter"
)


@pytest.fixture
def kernel():
    kernel = mtl.library(SOURCE, device="cpu").add
    kernel(np.zeros(4, np.float32), 1.0, threads=4)  # now the size is known
    return kernel


@pytest.fixture
def refused(monkeypatch):
    """Let calls that native functions leave to Python fail."""

    def refuse(self, *args, **named):
        raise AssertionError("a call from Python")

    monkeypatch.setattr(Kernel, "_call", refuse)


@needs_native_calls
def test_launches_of_known_sizes_do_without_the_interpreter(kernel, refused):
    x = np.zeros(4, np.float32)
    kernel(x, 1.0, threads=4)
    kernel(x, 1.0, threads=4, group_size=None, wait=None)
    assert kernel(x, 1.0, threads=4, wait=True).done
    assert x.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("named", [{"a": 1.0}, {"timeout": 5.0}, {"check": False}, {"wait": 1}],
                         ids=["argument", "timeout", "check", "wait"])  # fmt: skip
def test_other_calls_are_left_to_python(kernel, refused, named):
    args = (np.zeros(4, np.float32), *((1.0,) if "a" not in named else ()))
    with pytest.raises(AssertionError, match="from Python"):
        kernel(*args, threads=4, **named)


def test_errors_are_those_of_python(kernel):
    x = np.zeros(4, np.float32)
    with pytest.raises(mtl.ArgumentError, match="expects threads="):
        kernel(x, 1.0)
    with pytest.raises(mtl.ArgumentError, match="threads expects an int"):
        kernel(x, 1.0, threads=4.0)
    with pytest.raises(mtl.ArgumentError, match="group_size"):
        kernel(x, 1.0, threads=4, group_size=0)


def test_an_observer_sees_all_calls(kernel):
    seen = []

    def observer(call):
        def observed(kernel, *args, **named):
            seen.append(named)
            return call(kernel, *args, **named)

        return observed

    x = np.zeros(4, np.float32)
    observe_calls(observer)
    try:
        kernel(x, 1.0, threads=4)
        other = mtl.library(SOURCE, device="cpu").add  # leaves the observer where it is
        other(x, 1.0, threads=4)
    finally:
        observe_calls(None)
    kernel(x, 1.0, threads=4)
    assert seen == [{"threads": 4}] * 2
    assert x.tolist() == [3, 3, 3, 3]


@needs_native_calls
def test_calls_are_native_once_an_observer_is_gone(kernel, monkeypatch):
    observe_calls(lambda call: call)
    observe_calls(None)
    monkeypatch.setattr(Kernel, "_call", None)
    x = np.zeros(4, np.float32)
    kernel(x, 1.0, threads=4)
    assert x.tolist() == [1, 1, 1, 1]
