"""The CPU's native runtime: which threads run, barriers, memory, numbers."""

import ctypes
import mmap
import os
import time

import ml_dtypes
import numpy as np
import pytest
from native_kernels import harness
from native_kernels.harness import BOTH_MODES, FIBRE, LOOP, X86, word

# ---- which threads run ----


@BOTH_MODES
def test_every_thread_runs_once(kernels, threads, rng, mode):
    for _ in range(40):
        dimensions = rng.integers(1, 4)
        grid = tuple(int(n) for n in rng.integers(1, [3000, 60, 15][dimensions - 1], dimensions))
        group = tuple(int(n) for n in rng.integers(1, [300, 20, 8][dimensions - 1], dimensions))
        counters = np.zeros(int(np.prod(grid)) + 8, np.uint32)
        outcome = kernels.run("count", grid, group, counters, mode=mode)
        assert outcome.status == harness.OK
        assert (counters[:-8] == 1).all(), (grid, group)
        assert (counters[-8:] == 0).all(), (grid, group)


def test_many_small_groups(kernels, threads):
    counters = np.zeros(200_003, np.uint32)
    cost = np.zeros(1)
    for launch in range(1, 6):
        kernels.run("count", 200_003, 1, counters, cost=cost)
        assert (counters == launch).all()
    assert 0 < cost[0] < 1e6


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 1), (0, 0, 0)])
def test_empty_grid_is_no_launch(kernels, grid):
    assert kernels.run("wild_write", grid, 4, 64).status == harness.OK
    assert kernels.wait(kernels.submit("wild_write", grid, 4, 64)).status == harness.OK


@pytest.mark.parametrize(
    ("grid", "group", "mode"),
    [((4,), (0,), LOOP), ((2**32 - 1,) * 3, (1,), LOOP), ((2**20,), (2**16,), FIBRE)],
    ids=["empty group", "uncountable grid", "too many fibres"],
)
def test_bad_descriptors(kernels, grid, group, mode):
    assert kernels.run("nothing", grid, group, mode=mode).status == harness.BAD_DESCRIPTOR
    ticket = kernels.submit("nothing", grid, group, mode=mode)
    assert kernels.wait(ticket).status == harness.BAD_DESCRIPTOR


# ---- barriers ----


@pytest.mark.parametrize("group", [1, 31, 32, 100, 1024])
def test_reverse_through_threadgroup_memory(kernels, threads, group):
    values = np.arange(10_000, dtype=np.uint32)
    out = np.zeros_like(values)
    outcome = kernels.run(
        "reverse", len(values), group, values, out, 64, mode=FIBRE, threadgroup_bytes=64 + 4 * group
    )
    assert outcome.status == harness.OK
    expected = [values[i : i + group][::-1] for i in range(0, len(values), group)]
    np.testing.assert_array_equal(out, np.concatenate(expected))


@pytest.mark.parametrize(
    ("grid", "group"), [((1000,), (256,)), ((45, 33), (16, 16)), ((19, 11, 9), (8, 4, 4))]
)
def test_static_threadgroup_memory_in_partial_groups(kernels, threads, rng, grid, group):
    grid, group = (*grid, 1, 1)[:3], (*group, 1, 1)[:3]
    values = rng.integers(0, 1000, grid[::-1], dtype=np.uint32)
    groups = tuple(-(-n // m) for n, m in zip(grid, group, strict=True))
    out = np.zeros(groups[::-1], np.uint32)
    assert kernels.run("tree_sum", grid, group, values, out, mode=FIBRE).status == harness.OK
    expected = values
    for axis, size in enumerate(reversed(group)):
        expected = np.add.reduceat(expected, np.arange(0, expected.shape[axis], size), axis=axis)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("deserter", [0, 31, 32, 99])
def test_barrier_that_a_thread_never_reaches(kernels, deserter):
    outcome = kernels.run("deserter", 100, 100, word(deserter), mode=FIBRE)
    assert outcome.status == harness.BARRIER_MISSED
    assert (outcome.arrived, outcome.expected) == (99, 100)
    assert outcome.valid == harness.THREADGROUP_VALID | harness.THREAD_VALID
    assert tuple(outcome.thread) == (deserter, 0, 0)


def test_threads_at_different_barriers(kernels):
    outcome = kernels.run("two_barriers", 70, 70, word(40), word(0), mode=FIBRE)
    assert outcome.status == harness.BARRIERS_DIFFER
    assert (outcome.arrived, outcome.expected) == (40, 70)
    assert tuple(outcome.thread) == (40, 0, 0)


# ---- memory, numbers, time ----


@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 18, (1 << 23) + 5])
def test_allocate(kernels, size):
    for _ in range(3):  # what was used before is zero again
        address = kernels.runtime.allocate(size)
        assert address % 64 == 0
        content = (ctypes.c_uint8 * size).from_address(address)
        assert not any(content[i] for i in range(0, size, 997))
        if size:
            ctypes.memset(address, 255, size)
        kernels.runtime.free(address, size)


@pytest.mark.parametrize("size", [1 << 46, 1 << 62, (1 << 64) - 1])
def test_more_memory_than_there_is(kernels, size):
    assert kernels.runtime.allocate(size) is None


def test_memory_is_not_promised_twice(kernels):
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    half = physical // 2 + mmap.PAGESIZE
    first = kernels.runtime.allocate(half)
    assert first
    assert kernels.runtime.allocate(half) is None
    kernels.runtime.free(first, half)


FLOATS = {
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
}


def values_near(rng, dtype):
    """Every finite value of a 16-bit type, values close by, halfway points, and special ones."""
    exact = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64)
    exact = np.sort(exact[np.isfinite(exact)])
    close = exact * (1 + rng.normal(size=exact.shape) * 2.0**-8)
    halfway = (exact[1:] + exact[:-1]) / 2
    beyond = np.nextafter(halfway, np.inf)  # in double precision only: no tie
    special = [np.nan, np.inf, -np.inf, 1e39, -1e39, 65519.9, 65520, 1e-30, 2.0**-25, 1e-300]
    return np.concatenate([exact, close, halfway, beyond, special])


def rounded(values, dtype):
    """Round to float first, to odd there, so that there is no second rounding."""
    single = values.astype(np.float32)
    toward_zero = np.where(np.abs(single) > np.abs(values), np.nextafter(single, 0), single)
    inexact = np.isfinite(values) & (toward_zero != values)
    return (toward_zero.view(np.uint32) | inexact).view(np.float32).astype(dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about overflow and NaN
@pytest.mark.parametrize(
    ("source", "target"),
    [(s, t) for s in ("float", "double") for t in ("half", "bfloat")] + [("half", "float")],
)
def test_conversions(kernels, rng, source, target):
    if source == "half":
        values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        expected = values.astype(np.float32)
    else:
        values = values_near(rng, FLOATS[target]).astype(FLOATS[source])
        expected = rounded(values, FLOATS[target])
    out = np.zeros(len(values), FLOATS[target])
    kernels.run(f"{source}_to_{target}", len(values), 64, values, out)
    bits = f"u{out.itemsize}"
    same = (out.view(bits) == expected.view(bits)) | (np.isnan(out) & np.isnan(expected))
    assert same.all(), (values[~same], out[~same], expected[~same])


def test_kernels_round_to_nearest_whatever_the_host_does(kernels):
    upward = 0x800 if X86 else 0x400000
    libm = ctypes.CDLL(None)
    out = np.zeros(1, np.float32)
    libm.fesetround(upward)
    try:
        kernels.run("third", 1, 1, out)
        assert libm.fegetround() == upward
    finally:
        libm.fesetround(0)
    assert out[0] == np.float32(1) / np.float32(3)


def test_an_empty_launch_is_fast(kernels, capsys):
    descriptor, outcome = kernels.descriptor("nothing", 1, 1), harness.native_library.Outcome()
    samples = []
    for _ in range(300):
        started = time.perf_counter_ns()
        for _ in range(50):
            kernels.runtime.run(descriptor, outcome)
        samples.append((time.perf_counter_ns() - started) / 50)
    with capsys.disabled():
        print(f" [empty launch from Python: {min(samples):.0f} ns]", end="")
    assert min(samples) < 20_000
