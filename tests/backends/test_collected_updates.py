"""Atomic updates that a call collects: which ones, and that none is lost or done twice."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
RELAXED = "memory_order_relaxed"
OPERATIONS = {
    "fetch_add": np.add, "fetch_sub": np.subtract, "fetch_and": np.bitwise_and,
    "fetch_or": np.bitwise_or, "fetch_xor": np.bitwise_xor, "fetch_min": np.minimum,
    "fetch_max": np.maximum,
}  # fmt: skip
# Barriers make a simdgroup's code another: the one with collectors for each simdgroup.
WAIT = "threadgroup_barrier(mem_flags::mem_none);"


def kernel(body, *, waits=False, number="uint"):
    """A kernel of `body`, compiled to vector code."""
    text = f"""{HEAD}kernel void k(device atomic_{number}* y, device const {number}* x,
        constant uint& n, device {number}* z, uint i [[thread_position_in_grid]],
        uint t [[thread_position_in_threadgroup]],
        uint group [[threadgroup_position_in_grid]]) {{ {WAIT if waits else ""} {body} }}"""
    return _compiled(text)


@functools.cache
def _compiled(text):
    with mtl.config.scope(cpu_engine="simd"):
        compiled = mtl.library(text)["k"]
        assert compiled.engine.startswith("simd"), compiled.engine
        return compiled


def collects(compiled):
    return "@mtl.accumulate." in compiled.asm["ll"]


def run(compiled, y, x, threads, group_size, n=0):
    z = np.zeros(threads, y.dtype)
    compiled(y, x, n, z, threads=threads, group_size=group_size)
    return z


@pytest.mark.sample(1, per="operation")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("dtype", [np.uint32, np.int32])
@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=5, deadline=None)
@given(st.integers(1, 5000), st.sampled_from([1, 31, 32, 64, 96, 256]), st.integers(0, 2**31))
def test_at_one_address(operation, dtype, waits, threads, group_size, seed):
    number = np.dtype(dtype).name.removesuffix("32")
    update = f"if (x[i] % 3 != 1) atomic_{operation}_explicit(y, x[i], {RELAXED});"
    compiled = kernel(update, waits=waits, number=number)
    assert collects(compiled)
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, threads).astype(dtype)
    y = np.array([77], dtype)
    run(compiled, y, x, threads, group_size)
    rest = np.fmod(x, 3) if dtype is np.int32 else x % 3  # as in C
    expected = OPERATIONS[operation].reduce(x[rest != 1], initial=dtype(77), dtype=dtype)
    assert y[0] == expected


@pytest.mark.parametrize("first", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("operation", "function"),
    [("fetch_add", np.add), ("fetch_sub", np.subtract), ("fetch_xor", np.bitwise_xor)],
)
@pytest.mark.sample(1, per="operation")
def test_at_one_address_for_each_thread_of_a_threadgroup(operation, function, first):
    compiled = kernel(f"atomic_{operation}_explicit(&y[t], x[i], {RELAXED});", waits=True)
    assert "@mtl.accumulate.row." in compiled.asm["ll"]
    width, groups = 128, 500
    x = np.random.default_rng(first).integers(0, 2**32, width * groups, dtype=np.uint32)
    y = np.full(width + 8, 5, np.uint32)
    run(compiled, y[first : first + width], x, x.size, width)
    expected = np.full(width + 8, 5, np.uint32)
    for row in x.reshape(groups, width):
        expected[first : first + width] = function(expected[first : first + width], row)
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("index", ["group % n", "group / n", "group", "t / 32 + group % n"])
@pytest.mark.sample(2)
def test_at_addresses_that_change(index, waits):
    compiled = kernel(f"atomic_fetch_add_explicit(&y[{index}], x[i], {RELAXED});", waits=waits)
    assert collects(compiled) or (not waits and "t" in index)
    width, groups, n = 96, 300, 3
    x = np.random.default_rng(1).integers(0, 2**32, width * groups, dtype=np.uint32)
    y = np.zeros(groups + 3, np.uint32)
    run(compiled, y, x, x.size, width, n)
    group, t = np.indices((groups, width)).astype(np.uint32)
    indices = eval(index.replace("/", "//"), {"group": group, "t": t, "n": n})
    expected = np.zeros_like(y)
    np.add.at(expected, indices.ravel(), x)
    assert np.array_equal(y, expected)


def test_multiple_instructions_at_the_same_addresses():
    body = f"""
        atomic_fetch_add_explicit(&y[0], 1u, {RELAXED});
        if (i % 3 == 0) atomic_fetch_add_explicit(&y[1], x[i], {RELAXED});
        if (i % 7 == 0) atomic_fetch_add_explicit(&y[0], x[i], {RELAXED});
        for (uint k = 0; k < i % 5; ++k) atomic_fetch_add_explicit(&y[k & 1], k, {RELAXED});
    """
    threads = 4000
    x = np.random.default_rng(2).integers(0, 1000, threads, dtype=np.uint32)
    for waits in (False, True):
        y = np.zeros(2, np.uint32)
        run(kernel(body, waits=waits), y, x, threads, 64)
        i = np.arange(threads)
        iterations = np.arange(4) < (i % 5)[:, None]
        first = threads + x[i % 7 == 0].sum() + 2 * iterations[:, 2].sum()
        second = x[i % 3 == 0].sum() + (iterations[:, 1] + 3 * iterations[:, 3]).sum()
        assert y.tolist() == [first, second]


#: What a thread may tell, or be told, by what it updates.
SEEN = {
    "the result": f"z[i] = atomic_fetch_add_explicit(y, 1u, {RELAXED}) % 2;",
    "an atomic load": f"if (atomic_load_explicit(y, {RELAXED}) < 5000)"
    f" atomic_fetch_add_explicit(y, 1u, {RELAXED});",
    "an exchange": "uint zero = 0; atomic_fetch_add_explicit(y, 1u, memory_order_relaxed);"
    f"atomic_compare_exchange_weak_explicit(y + 1, &zero, 1u, {RELAXED}, {RELAXED});",
    "a load behind it": f"atomic_fetch_add_explicit(&y[i], 1u, {RELAXED});"
    "z[i] = ((device uint*)y)[i];",
    "a store behind it": f"atomic_fetch_add_explicit(y, 1u, {RELAXED}); z[i] = 1;",
    "a load in the next round": "for (uint k = 0; k < n; ++k)"
    f" atomic_fetch_add_explicit(y, x[i * k], {RELAXED});",
    "another operation": f"atomic_fetch_add_explicit(y, 2u, {RELAXED});"
    f"atomic_fetch_and_explicit(y, ~1u, {RELAXED});",
    "a fence": f"atomic_fetch_add_explicit(y, 1u, {RELAXED});"
    "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);",
}  # fmt: skip


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("what", SEEN)
def test_updates_that_can_be_seen_are_not_collected(what, waits):
    assert not collects(kernel(SEEN[what], waits=waits))


def test_what_a_thread_has_added_it_finds():
    y, x = np.arange(1000, dtype=np.uint32), np.zeros(1000, np.uint32)
    z = run(kernel(SEEN["a load behind it"], waits=True), y, x, 1000, 64)
    assert np.array_equal(z, np.arange(1, 1001))


def test_floats_are_added_in_the_order_of_lanes():
    text = f"""{HEAD}kernel void k(device atomic_float* y, device const float* x,
        uint i [[thread_position_in_grid]]) {{ atomic_fetch_add_explicit(y, x[i], {RELAXED}); }}"""
    assert not collects(_compiled(text))
