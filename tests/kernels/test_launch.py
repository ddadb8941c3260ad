"""Launches: exact sizes, every id of the specification, order, asynchrony."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.msl.signature import IDS

#: Ids with three components, and those that are one number.
VECTOR_IDS = sorted(
    name for name in IDS if "position" in name or name in (
        "threads_per_grid", "threads_per_threadgroup", "threadgroups_per_grid", "grid_size",
        "grid_origin", "dispatch_threads_per_threadgroup",
    )
)  # fmt: skip
SCALAR_IDS = sorted(IDS - set(VECTOR_IDS))
TYPES = {"ushort": np.uint16, "uint": np.uint32, "short": np.int16, "int": np.int32}


def expected_ids(grid, group):
    """Every id of every thread, from the definitions in the specification's table 5.8."""
    grid, group = np.array(grid), np.array(group)
    z, y, x = np.meshgrid(*(np.arange(n) for n in grid[::-1]), indexing="ij")
    position = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    groups = -(-grid // group)
    of_group = position // group
    local = position % group
    size = np.minimum(group, grid - of_group * group)
    index = local[:, 0] + size[:, 0] * (local[:, 1] + size[:, 1] * local[:, 2])
    threads = size.prod(axis=1)
    ones = np.ones(len(position), int)
    return {
        "thread_position_in_grid": position,
        "thread_position_in_threadgroup": local,
        "threadgroup_position_in_grid": of_group,
        "threads_per_grid": grid * ones[:, None],
        "grid_size": grid * ones[:, None],
        "grid_origin": 0 * position,
        "threads_per_threadgroup": size,
        "dispatch_threads_per_threadgroup": group * ones[:, None],
        "threadgroups_per_grid": groups * ones[:, None],
        "thread_index_in_threadgroup": index,
        "thread_index_in_simdgroup": index % 32,
        "simdgroup_index_in_threadgroup": index // 32,
        "simdgroups_per_threadgroup": -(-threads // 32),
        "dispatch_simdgroups_per_threadgroup": -(-group.prod() // 32) * ones,
        "thread_index_in_quadgroup": index % 4,
        "quadgroup_index_in_threadgroup": index // 4,
        "quadgroups_per_threadgroup": -(-threads // 4),
        "dispatch_quadgroups_per_threadgroup": -(-group.prod() // 4) * ones,
        "threads_per_simdgroup": 32 * ones,
        "thread_execution_width": 32 * ones,
    }


def source_of_ids(names, scalar, barrier):
    """One kernel per id: it writes the id of its thread, as a vector of three."""
    kernels = []
    for name in names:
        for width in (1, 2, 3) if name in VECTOR_IDS else (1,):
            type_ = scalar + (str(width) if width > 1 else "")
            stores = [
                f"out[3 * at + {lane}] = id{'.xyz'[0] + 'xyz'[lane] if width > 1 else ''};"
                for lane in range(width)
            ]
            kernels.append(
                f"kernel void {name}_{width}(device {scalar}* out, {type_} id [[{name}]],\n"
                "    uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]]) {\n"
                f"    uint at = p.x + n.x * (p.y + n.y * p.z); {barrier} {' '.join(stores)} }}"
            )
    return "#include <metal_stdlib>\nusing namespace metal;\n" + "\n".join(kernels)


@pytest.mark.parametrize(
    "scalar",
    ["int", *(pytest.param(t, marks=pytest.mark.slow) for t in ("ushort", "uint", "short"))],
)
@pytest.mark.parametrize("barrier", ["", "threadgroup_barrier(mem_flags::mem_none);"])
def test_every_id_in_every_width(scalar, barrier):
    names = sorted(IDS)
    # One type runs all kernels; the others one vector and one scalar id, which share their road.
    if scalar != "ushort":
        names = ["thread_position_in_grid", "simdgroup_index_in_threadgroup"]
    lib = mtl.library(source_of_ids(names, scalar, barrier))
    grid, group = (13, 5, 3), (8, 4, 2)
    expected = expected_ids(grid, group)
    for name in names:
        for width in (1, 2, 3) if name in VECTOR_IDS else (1,):
            out = np.zeros((13 * 5 * 3, 3), TYPES[scalar])
            lib[f"{name}_{width}"](out, threads=grid, group_size=group)
            want = expected[name].reshape(len(out), -1)[:, :width]
            np.testing.assert_array_equal(out[:, :width], want, err_msg=f"{name} as {width}")
            assert not out[:, width:].any()


def test_the_table_of_ids_is_the_specifications():
    assert set(expected_ids((1, 1, 1), (1, 1, 1))) == IDS


COUNT = """
kernel void count(device atomic_uint* visits, device uint* group_of, uint3 p [[thread_position_in_grid]],
                  uint3 n [[threads_per_grid]], uint3 g [[threadgroup_position_in_grid]]) {
    uint at = p.x + n.x * (p.y + n.y * p.z);
    atomic_fetch_add_explicit(&visits[at], 1u, memory_order_relaxed);
    group_of[at] = g.x + 1000 * g.y + 1000000 * g.z;
}
kernel void count_with_barrier(device atomic_uint* visits, device uint* sums,
                  uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                  uint i [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint arrived;
    if (i == 0) atomic_store_explicit(&arrived, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&arrived, 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint at = p.x + n.x * (p.y + n.y * p.z);
    atomic_fetch_add_explicit(&visits[at], 1u, memory_order_relaxed);
    sums[at] = atomic_load_explicit(&arrived, memory_order_relaxed);
}
"""
COUNT = "#include <metal_stdlib>\nusing namespace metal;\n" + COUNT
GROUPS = st.tuples(st.integers(1, 40), st.integers(1, 8), st.integers(1, 3))
SMALL_GRIDS = st.tuples(st.integers(0, 90), st.integers(0, 12), st.integers(0, 5))


@given(grid=SMALL_GRIDS, group=GROUPS)
def test_every_thread_runs_exactly_once(grid, group):
    visits, group_of = (
        np.zeros(int(np.prod(grid)), np.uint32),
        np.zeros(int(np.prod(grid)), np.uint32),
    )
    mtl.library(COUNT).count(visits, group_of, threads=grid, group_size=group)
    assert (visits == 1).all()
    if len(visits):
        position = expected_ids(grid, group)["threadgroup_position_in_grid"]
        np.testing.assert_array_equal(group_of, position @ [1, 1000, 1000000])


@given(grid=SMALL_GRIDS, group=GROUPS)
@settings(max_examples=50)
def test_every_thread_of_a_group_passes_its_barriers(grid, group):
    visits, sums = np.zeros(int(np.prod(grid)), np.uint32), np.zeros(int(np.prod(grid)), np.uint32)
    mtl.library(COUNT).count_with_barrier(visits, sums, threads=grid, group_size=group)
    assert (visits == 1).all()
    if len(visits):
        sizes = expected_ids(grid, group)["threads_per_threadgroup"].prod(axis=1)
        np.testing.assert_array_equal(sums, sizes)


@given(n=st.integers(1, 5000))
def test_a_good_group_size_is_chosen_when_none_is_given(n):
    for kernel in (mtl.library(COUNT).count, mtl.library(COUNT).count_with_barrier):
        visits, other = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        kernel(visits, other, threads=n)
        assert (visits == 1).all()


def test_a_kernel_may_require_the_size_of_its_threadgroups():
    lib = mtl.library("""
        template <typename T> [[kernel, required_threads_per_threadgroup(4, 2)]]
        void f(device T* x, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]],
               uint size [[dispatch_threads_per_threadgroup]],
               uint i [[thread_index_in_threadgroup]]) { x[p.x + n.x * p.y] = 100 * size + i; }
        template [[host_name("f_uint")]] [[kernel]] decltype(f<uint>) f<uint>;
    """)
    for group_size in (None, (4, 2), (4, 2, 1)):
        x = np.zeros((2, 6), np.uint32)
        lib.f_uint(x, threads=(6, 2), group_size=group_size)
        assert x.tolist() == [[400, 401, 402, 403, 400, 401], [404, 405, 406, 407, 402, 403]]


@pytest.mark.parametrize("threads", [0, (5, 0), (3, 4, 0), np.int64(0)])
def test_no_threads_are_no_work(threads):
    x = np.zeros(4, np.uint32)
    event = mtl.library(COUNT).count(x, x, threads=threads)
    assert event.done
    assert event.seconds >= 0
    assert not x.any()


def test_a_grid_larger_than_16_bits_in_each_direction():
    lib = mtl.library(
        "kernel void last(device uint* out, uint3 p [[thread_position_in_grid]],"
        " uint3 n [[threads_per_grid]]) { if (p.y + 1 == n.y && p.x + 1 == n.x) out[0] = p.y; }"
    )
    out = np.zeros(1, np.uint32)
    lib.last(out, threads=(2, 100_000), group_size=(2, 1))
    assert out[0] == 99_999


# -- asynchrony

CHAIN = """
kernel void add_one(device uint* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void slow(device uint* x, constant uint& rounds, uint i [[thread_position_in_grid]]) {
    uint a = i;
    for (uint k = 0; k < rounds; k++) a = a * 1664525u + 1013904223u + (a >> 3);
    x[i] = a;
}
kernel void twice(device uint* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
"""


def test_launches_on_buffers_return_at_once_and_run_in_order():
    lib = mtl.library(CHAIN)
    for name in lib:
        lib[name]  # compiled
    x = mtl.Buffer(np.zeros(1000, np.uint32))
    # A device that refuses launches looks at a new one for milliseconds.
    lib.slow(mtl.Buffer(np.zeros(1000, np.uint32)), 200_000, threads=1000).wait()
    started = time.perf_counter()
    event = lib.slow(x, 200_000, threads=1000)
    submitted = time.perf_counter() - started
    for _ in range(10):
        lib.add_one(x, threads=1000)
    last = lib.twice(x, threads=1000)
    assert not event.done or submitted < event.seconds
    result = np.asarray(x)
    assert last.done
    expected = np.arange(1000, dtype=np.uint32)
    with np.errstate(over="ignore"):
        for _ in range(200_000):
            expected = (
                expected * np.uint32(1664525) + np.uint32(1013904223) + (expected >> np.uint32(3))
            )
        expected = (expected + np.uint32(10)) * np.uint32(2)
    np.testing.assert_array_equal(result, expected)


def test_arrays_are_complete_when_the_call_returns():
    lib = mtl.library(CHAIN)
    x = np.zeros(100_000, np.uint32)
    lib.add_one(x, threads=x.size)
    assert (x == 1).all()


@pytest.mark.needs("the process's memory")
def test_arrays_may_be_waited_for_later():
    lib = mtl.library(CHAIN)
    x = np.zeros(100, np.uint32)
    slow, add_one = lib.slow, lib.add_one  # compiled before the first launch
    event = slow(x, 30_000_000, threads=x.size, wait=False)
    later = add_one(x, threads=x.size, wait=False)
    with pytest.raises(TimeoutError, match=r"\[slow\] still running after 0.0 s"):
        event.wait(timeout=0.0)
    assert later.wait() is later
    assert event.done
    assert event.seconds > 0


@pytest.mark.needs("the process's memory")
def test_done_does_not_wait_for_threads_that_wait():
    lib = mtl.library(CHAIN)
    x, slow, add_one = np.zeros(1, np.uint32), lib.slow, lib.add_one
    other = mtl.Buffer(x)
    event = slow(x, 300_000_000, threads=1, wait=False)
    waiter = threading.Thread(target=event.wait)
    waiter.start()
    answers = 0
    while not event.done:
        add_one(other, threads=1)  # looks for launches that have ended, too
        answers += 1
        time.sleep(0.001)
    waiter.join()
    assert answers > 20 * event.seconds  # waits are looked after ten times a second


def test_an_array_lives_until_its_launch_has_ended():
    lib = mtl.library(CHAIN)
    buffer = mtl.Buffer(np.zeros(64, np.uint32))
    for _ in range(20):
        lib.slow(np.empty(1000, np.uint32), 20_000, threads=1000, wait=False)
    lib.add_one(buffer, threads=64)
    assert (np.asarray(buffer) == 1).all()


def test_many_python_threads_launch_at_once():
    lib = mtl.library(CHAIN)
    failures = []

    def work(seed):
        x = np.full(5000, seed, np.uint32)
        for _ in range(50):
            lib.add_one(x, threads=x.size)
        buffer = mtl.Buffer(x)
        for _ in range(50):
            lib.add_one(buffer, threads=x.size)
        if not (np.asarray(buffer) == seed + 100).all():
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
