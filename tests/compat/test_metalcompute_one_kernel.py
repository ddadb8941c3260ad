"""metalloid.compat.metalcompute: the functions of version 0.1."""

from array import array

import numpy as np
import pytest
from metalcompute_kernels import KERNELS

import metalloid.compat.metalcompute as mc


@pytest.fixture
def one_kernel():
    mc.init()
    yield
    mc.release()


def test_run_copies_in_and_out(one_kernel):
    assert mc.compile(KERNELS, "add_one") is None
    values, out = np.arange(1000, dtype="f"), np.full(1000, 9, "f")
    assert mc.run(values, out, 1000) is None
    assert out.tolist() == (values + 1).tolist()
    assert mc.rerun(1000) is None
    assert out.tolist() == (values + 1).tolist()


def test_run_takes_bytes(one_kernel):
    source = "kernel void f(device uchar *i, device uchar *o, uint id [[thread_position_in_grid]]) { o[id] = i[id] + 1; }"
    mc.compile(source, "f")
    out = bytearray(3)
    mc.run(b"HAL", out, 3)
    assert out == b"IBM"


@pytest.mark.needs("a context that outlives a fault")
def test_a_run_that_fails(one_kernel):
    source = "kernel void f(device const ulong *where, device float *x) { x[where[0]] = 1; }"
    mc.compile(source, "f")
    with pytest.raises(mc.error, match="write to index"):
        mc.run(np.uint64([2**60]).view(np.uint8), np.zeros(1, "f"), 1)


def test_states():
    mc.release()
    with pytest.raises(mc.error, match=r"^Not ready to compile$"):
        mc.compile(KERNELS, "add_one")
    with pytest.raises(mc.error, match=r"^Cannot create device$"):
        mc.init(99)
    mc.init(-1)
    floats = array("f", [0, 1])
    with pytest.raises(mc.error, match=r"^Not ready to compute$"):
        mc.run(floats, floats, 1)
    with pytest.raises(mc.error, match=r"program_source:1:1: error: "):
        mc.compile("invalid_kernel", "unknown_function")
    with pytest.raises(mc.error, match=r"^Failed to find function$"):
        mc.compile(KERNELS, "unknown")
    mc.compile(KERNELS, "add_one")
    with pytest.raises(mc.error):
        mc.rerun(1)
    for wrong, text in (([1.0], "input"), (array("d", [1]), "input"), (None, "input")):
        with pytest.raises(mc.error, match=rf"^Unsupported {text} format$"):
            mc.run(wrong, floats, 1)
    for wrong in (b"12345678", array("i", [1]), 3, np.zeros((4, 4), "f")[:, :2]):
        with pytest.raises(mc.error, match=r"^Unsupported output format$"):
            mc.run(floats, wrong, 1)
    nothing = array("f")
    with pytest.raises(mc.error, match=r"^Failed to make input buffer$"):
        mc.run(nothing, floats, 1)
    with pytest.raises(mc.error, match=r"^Failed to make output buffer$"):
        mc.run(floats, nothing, 1)
    for wrong in (1.5, "1"):
        with pytest.raises(TypeError):
            mc.run(floats, floats, wrong)
    assert mc.release() is None
    assert mc.release() is None
    with pytest.raises(mc.error):
        mc.rerun(1)
