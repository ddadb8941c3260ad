"""metalloid.compat.metalcompute: calls of functions, and the handles of their runs."""

import sys
from array import array

import numpy as np
import pytest

import metalloid as mtl
import metalloid.compat.metalcompute as mc


def test_many_values(dev, kernel):
    count = 1_234_567
    values = np.linspace(-np.pi, np.pi, count, dtype=np.float32)
    out = dev.buffer(count * 4)
    kernel.function("combine")(count, values, array("f", [1.0]), out)
    expected = np.sin(values.astype(np.float64)) + 1
    # What the specification promises of fast sin on this interval.
    assert abs(np.frombuffer(out, "f") - expected).max() <= 2**-13


def test_exactly_as_many_threads_as_asked_for(dev, kernel):
    out = dev.buffer(np.full((1100, 2), 7, np.uint32))
    kernel.function("where_am_i")(1000, out)
    rows = np.frombuffer(out, np.uint32).reshape(-1, 2)
    assert rows[:1000].tolist() == [[i, 1000] for i in range(1000)]
    assert (rows[1000:] == 7).all()


def test_temporaries_lose_what_is_written_to_them(dev, kernel):
    out = array("f", [5.0])
    kernel.function("add_one")(1, array("f", [1.0]), out)
    assert out[0] == 5.0
    # And a number is not a number, but so many bytes.
    out = dev.buffer(4)
    kernel.function("add_one")(1, 4, out)
    assert memoryview(out).cast("f")[0] == 1.0


def test_counts(dev, kernel):
    function, out = kernel.function("where_am_i"), dev.buffer(80)
    for count, threads in ((4.9, 4), (True, 1), (np.int32(3), 3), (np.float32(2.5), 2), (0, 0)):
        memoryview(out)[:] = bytes(80)
        function(count, out)
        assert (np.frombuffer(out, np.uint32)[1::2] > 0).sum() == threads
    for count in ("4", None, [4], -1, 2**32):
        with pytest.raises(mc.error):
            function(count, out)
    with pytest.raises(mc.error, match=r"^First argument should be an integer kernel count$"):
        function("4", out)
    for arguments in ((), (4,), ("4",)):
        with pytest.raises(mc.error, match=r"^Buffer not found$"):
            function(*arguments)


def test_keywords_are_ignored(dev, kernel):
    out = dev.buffer(8)
    kernel.function("where_am_i")(1, out, nonsense=3)
    assert memoryview(out).cast("I").tolist() == [0, 1]


def test_buffers_beyond_the_parameters_are_ignored(dev, kernel):
    out = dev.buffer(8)
    kernel.function("where_am_i")(1, out, dev.buffer(4), 12)  # 12: of so many bytes
    assert memoryview(out).cast("I")[1] == 1
    with pytest.raises(mc.error, match=r"^Unsupported input format$"):
        kernel.function("where_am_i")(1, out, None)


def test_missing_buffers(dev, kernel):
    with pytest.raises(mc.error, match="Buffer not found: combine has 3, got 1"):
        kernel.function("combine")(1, dev.buffer(4))


def test_sizes_and_gaps_are_not_checked(dev, kernel):
    """Rows of 12 bytes; 12 bytes for a float3, which takes 16; nothing uses buffer 1."""
    rows = dev.buffer(np.arange(30, dtype=np.float32))
    by = array("f", [1, 2, 3])
    kernel.function("shift")(10, rows, 4, by)
    expected = np.arange(30, dtype=np.float32).reshape(10, 3) + np.array(by)
    assert np.frombuffer(rows, "f").reshape(10, 3).tolist() == expected.tolist()


def test_runs_of_a_device_end_in_order(dev, kernel):
    add_one = kernel.function("add_one")
    ones, total = dev.buffer(np.zeros(5000, "f")), dev.buffer(5000 * 4)
    handles = [add_one(5000, ones, total) for _ in range(100)]
    del handles
    assert (np.frombuffer(total, "f") == 100).all()
    [add_one(5000, ones, total) for _ in range(10)][-1]
    assert (np.frombuffer(total, "f") == 110).all()


def test_a_handle_waits_when_it_goes(dev):
    slow = dev.kernel("""
    kernel void slow(device uint *out, device const uint *rounds, uint id [[thread_position_in_grid]]) {
        uint x = id;
        for (uint i = 0; i < rounds[0]; i++) x = x * 1664525u + 1013904223u + (x >> 7);
        out[id] = x | 1;
    }""").function("slow")
    out = dev.buffer(4)
    handle = slow(1, out, array("I", [20_000_000]))
    running = memoryview(out).cast("I")[0] == 0
    del handle
    assert running
    assert memoryview(out).cast("I")[0] != 0


@pytest.mark.needs("a context that outlives a fault")
def test_a_failing_kernel_is_told(dev, kernel, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))
    where = dev.buffer(np.array([2**60], np.uint64))
    kernel.function("gather")(1, dev.buffer(4), dev.buffer(4), where)
    assert [type(failure) for failure in told] == [mtl.KernelFault]
