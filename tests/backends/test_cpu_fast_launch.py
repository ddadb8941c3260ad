"""Launches bound by fast_launch.c, compared with the same ones bound by Python."""

import threading

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void mixed(device float* y, device const float4* x, constant float& f, constant int& i,
                  constant uchar& b, uint t [[thread_position_in_grid]]) { y[t] += x[0].y * f + i * b; }
kernel void divide(device int* y, device const int* x, uint t [[thread_position_in_grid]]) { y[t] = 100 / x[t]; }
kernel void padded(device float3* y, uint t [[thread_position_in_grid]]) { y[t] = t; }
kernel void missing(device uint* y, uint t [[thread_position_in_threadgroup]]) {
  if (t == 0) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[t] = t;
}
"""


def floats(count=64, start=0):
    return np.arange(count + start, dtype=np.float32)[start:]


def read_only():
    array = floats()
    array.flags.writeable = False
    return array


def ours(count=64, start=0):
    array = mtl.asarray(np.arange(count + start, dtype=np.float32)) + 0
    mtl.eval(array)
    return array[start:] if start else array


def twice(array):
    return (array, array, 0.5, -3, 7)


def shared(array):
    """An array whose memory another one has as well."""
    SHARED[:] = [array.reshape(-1)]
    return array


SHARED = []

#: Arguments of `mixed`, which each function makes for one launch.
ARGUMENTS = {
    "usual": lambda: (floats(), floats(), 0.5, -3, 7),
    "an int for a float": lambda: (floats(), floats(), 2, -3, 7),
    "read only": lambda: (floats(), read_only(), 0.5, -3, 7),
    "to write, read only": lambda: (read_only(), floats(), 0.5, -3, 7),
    "other elements": lambda: (floats().astype(np.float64), floats(), 0.5, -3, 7),
    "other byte order": lambda: (floats().astype(">f4"), floats(), 0.5, -3, 7),
    "several dimensions": lambda: (floats().reshape(8, 8), floats(), 0.5, -3, 7),
    "every second": lambda: (floats(128)[::2], floats(), 0.5, -3, 7),
    "in Fortran's order": lambda: (np.asfortranarray(floats().reshape(8, 8)), floats(), 0.5, -3, 7),
    "no whole element": lambda: (floats(), floats(63), 0.5, -3, 7),
    "nothing": lambda: (floats(), floats(0), 0.5, -3, 7),
    "between elements": lambda: (floats(), np.zeros(66, np.uint16)[1:65].view(np.float32), 0.5, -3, 7),
    "within a float4": lambda: (floats(start=1), floats(start=1), 0.5, -3, 7),
    "a bytearray": lambda: (floats(), bytearray(64), 0.5, -3, 7),
    "a buffer": lambda: (floats(), mtl.Buffer(floats()), 0.5, -3, 7),
    "buffers": lambda: (mtl.Buffer(floats()), mtl.Buffer(floats()), 0.5, -3, 7),
    "arrays of ours": lambda: (ours(), ours(), 0.5, -3, 7),
    "ours and NumPy's": lambda: (floats(), ours(), 0.5, -3, 7),
    "ours that is shared": lambda: (shared(ours()), ours(), 0.5, -3, 7),
    "ours twice": lambda: twice(ours()),
    "ours with an offset": lambda: (ours(), ours(64, 4), 0.5, -3, 7),
    "ours within a float4": lambda: (ours(), ours(64, 1), 0.5, -3, 7),
    "ours, pending": lambda: (ours() * 2, ours() + 1, 0.5, -3, 7),
    "ours of another type": lambda: (ours(), ours().astype(mtl.int32), 0.5, -3, 7),
    "every second of ours": lambda: (ours(), ours(128)[::2], 0.5, -3, 7),
    "too large for a float": lambda: (floats(), floats(), 1e39, -3, 7),
    "infinite": lambda: (floats(), floats(), np.inf, -3, 7),
    "too large for an int": lambda: (floats(), floats(), 0.5, 2**31, 7),
    "too large for anything": lambda: (floats(), floats(), 10**400, -3, 7),
    "negative": lambda: (floats(), floats(), 0.5, -3, -1),
    "256": lambda: (floats(), floats(), 0.5, -3, 256),
    "no int": lambda: (floats(), floats(), 0.5, 1.5, 7),
    "a bool": lambda: (floats(), floats(), True, -3, 7),
    "numbers of NumPy's": lambda: (floats(), floats(), np.float32(0.5), np.int64(-3), np.uint8(7)),
    "bools": lambda: (floats(), floats(), True, False, True),
    "an array of one": lambda: (floats(), floats(), np.ones(1, np.float32), -3, 7),
    "a number for memory": lambda: (floats(), 1.0, 0.5, -3, 7),
    "a text": lambda: (floats(), floats(), "0.5", -3, 7),
    "too few": lambda: (floats(), floats(), 0.5, -3),
    "too many": lambda: (floats(), floats(), 0.5, -3, 7, 1),
}  # fmt: skip
SIZES = ({"threads": 64}, {"threads": (8, 8), "group_size": (4, 2)}, {"threads": [64]}, {"threads": 0},
         {"threads": -1}, {"threads": 64, "group_size": 5000}, {"threads": None})  # fmt: skip


def kernel(name, is_fast=True):
    compiled = mtl.library(TEXT)[name]
    if not is_fast:
        compiled._fast_launch = None
    return compiled


def outcome(kernel, arguments, **sizes):
    """The values of an argument afterwards, or the error."""
    try:
        kernel(*arguments, **sizes).wait()
    except (mtl.MetalloidError, TypeError, ValueError, OverflowError) as error:
        return type(error), str(error)
    return np.asarray(arguments[0]).tobytes()


@pytest.fixture(scope="module")
def pair():
    """A kernel that has run with the usual arguments, and one that takes Python's road."""
    fast, slow = kernel("mixed"), kernel("mixed", is_fast=False)
    for sizes in SIZES[:2]:
        fast(*ARGUMENTS["usual"](), **sizes)
    return fast, slow


@pytest.mark.parametrize("which", ARGUMENTS)
def test_arguments(pair, which):
    result, expected = (outcome(one, ARGUMENTS[which](), **SIZES[0]) for one in pair)
    assert result == expected


@pytest.mark.parametrize("value", [True, False, 0, 1, 2, -1, np.uint8(1), np.True_, 0.5])
def test_truth_values(value):
    text = "kernel void flag(device int* y, constant bool& b) { y[0] = b ? 5 : 6; }"
    fast, slow = mtl.library(text).flag, mtl.library(text).flag
    slow._fast_launch = None
    fast(np.zeros(1, np.int32), True, threads=1)  # from now on its size is known
    arguments = [(np.zeros(1, np.int32), value) for _ in range(2)]
    result, expected = (
        outcome(f, a, threads=1) for f, a in zip((fast, slow), arguments, strict=True)
    )
    assert result == expected


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(pair, sizes):
    for _ in range(2):  # the second time they are known
        result, expected = (outcome(one, ARGUMENTS["usual"](), **sizes) for one in pair)
        assert result == expected


@pytest.mark.parametrize(
    "which",
    [
        "usual",
        "an int for a float",
        "read only",
        "infinite",
        "arrays of ours",
        "ours and NumPy's",
        "ours with an offset",
    ],
)
def test_the_usual_ones_do_not_take_pythons_road(pair, which, monkeypatch):
    monkeypatch.setattr(pair[0], "_binder", None)
    event = pair[0](*ARGUMENTS[which](), **SIZES[0])
    assert event.done
    assert event.seconds >= 0


def test_so_does_a_launch_with_wait(pair, monkeypatch):
    monkeypatch.setattr(pair[0], "_binder", None)
    for which in ("usual", "buffers"):
        assert pair[0](*ARGUMENTS[which](), **SIZES[0], wait=True).done


def test_an_array_of_ours_that_is_shared_is_copied(pair):
    x = ours()
    same = x.reshape(8, 8)
    pair[0](x, ours(), 0.5, -3, 7, threads=64)
    np.testing.assert_array_equal(np.asarray(same).reshape(-1), floats())
    np.testing.assert_array_equal(np.asarray(x), floats() + np.float32(0.5) - 21)


def test_a_fault_is_told_as_by_python():
    x, y = np.ones(1000, np.int32), np.zeros(1000, np.int32)
    x[777] = 0
    told = []
    for is_fast in (True, False):
        divide = kernel("divide", is_fast)
        divide(y, np.ones_like(x), threads=1000, group_size=8)
        with pytest.raises(mtl.KernelFault) as caught:
            divide(y, x, threads=1000, group_size=8)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_rows_of_three_are_refused():
    padded = kernel("padded")
    padded(np.zeros(256, np.float32), threads=64)
    with pytest.raises(mtl.ArgumentError, match="pad each to 4 numbers"):
        padded(np.zeros((64, 3), np.float32), threads=48)


def test_barriers_are_as_strict_as_the_setting_says_now():
    missing, y = kernel("missing"), np.zeros(64, np.uint32)
    for strict in (True, False, True):
        with mtl.config.scope(strict_barriers=strict):
            result = outcome(missing, (y,), threads=64, group_size=64)
        assert (type(result) is tuple) == strict


def test_a_graph_takes_the_launches():
    twice = mtl.library(
        "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }"
    ).f
    x = np.ones(4, np.float32)
    twice(x, threads=4)
    with mtl.Graph() as graph:
        twice(x, threads=4)
    assert x.tolist() == [2, 2, 2, 2]
    graph.launch(wait=True)
    assert x.tolist() == [4, 4, 4, 4]


def test_concurrent_threads(pair):
    arrays = [floats() for _ in range(4)]

    def work(y):
        for _ in range(200):
            pair[0](y, floats(), 0.5, 1, 1, threads=64)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array in arrays:
        np.testing.assert_array_equal(array, floats() + 200 * 1.5)
