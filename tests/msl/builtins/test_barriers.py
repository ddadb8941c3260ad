"""threadgroup_barrier and simdgroup_barrier: what is written before is read after, round for round."""

import numpy as np
import pytest
from sheets import HEADER

import metalloid as mtl

PATTERNS = f"""{HEADER}
// Each round every thread adds what its neighbour had.
kernel void rotate_and_add(device uint* x, constant uint& rounds, uint t [[thread_index_in_threadgroup]],
                           uint3 size [[threads_per_threadgroup]], uint3 g [[threadgroup_position_in_grid]],
                           uint3 dispatched [[dispatch_threads_per_threadgroup]], uint3 groups [[threadgroups_per_grid]]) {{
    threadgroup uint shared[1024];
    uint n = size.x * size.y * size.z;
    device uint* mine = x + (g.x + groups.x * g.y) * dispatched.x * dispatched.y;
    shared[t] = mine[t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint round = 0; round < rounds; ++round) {{
        uint next = shared[(t + 1) % n];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        shared[t] += next;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    mine[t] = shared[t];
}}
// The same through device memory.
kernel void through_device_memory(device uint* x, constant uint& rounds, uint t [[thread_index_in_threadgroup]],
                                  uint n [[threads_per_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
    volatile device uint* mine = x + g * n;
    for (uint round = 0; round < rounds; ++round) {{
        uint next = mine[(t + 1) % n];
        threadgroup_barrier(mem_flags::mem_device);
        mine[t] = mine[t] + next;
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    }}
}}
// One thread produces for all others, another one each round.
kernel void producer(device uint* y, constant uint& rounds, uint t [[thread_index_in_threadgroup]],
                     uint n [[threads_per_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
    threadgroup uint box;
    uint sum = 0;
    for (uint round = 0; round < rounds; ++round) {{
        if (t == (round * 7) % n) box = round * round + g;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum += box;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    y[g * n + t] = sum + t;
}}
kernel void tree(device const uint* x, device uint* sums, uint t [[thread_index_in_threadgroup]],
                 uint n [[threads_per_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
    threadgroup uint shared[1024];
    shared[t] = x[g * n + t];
    for (uint half_ = n / 2; half_ > 0; half_ /= 2) {{
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < half_) shared[t] += shared[t + half_];
    }}
    if (t == 0) sums[g] = shared[0];
}}
// A scan of every simdgroup for itself, in rounds of doubling distance.
kernel void simdgroup_scan(device uint* x, uint t [[thread_index_in_threadgroup]], uint i [[thread_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]], uint which [[simdgroup_index_in_threadgroup]]) {{
    threadgroup uint shared[1024];
    threadgroup uint* mine = shared + 32 * which;
    mine[lane] = x[i];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint distance = 1; distance < 32; distance *= 2) {{
        uint before = lane >= distance ? mine[lane - distance] : 0;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        mine[lane] += before;
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }}
    x[i] = mine[lane];
}}
// Simdgroups of a group take different ways and different numbers of simdgroup barriers.
kernel void unequal_simdgroups(device uint* y, uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                               uint which [[simdgroup_index_in_threadgroup]]) {{
    threadgroup uint shared[1024];
    threadgroup uint* mine = shared + 32 * which;
    mine[lane] = lane;
    for (uint round = 0; round <= which; ++round) {{
        simdgroup_barrier(mem_flags::mem_threadgroup);
        uint next = mine[(lane + 1) % 32];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        mine[lane] = next;
    }}
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = shared[32 * which + lane] + 100 * shared[lane];
}}
// A barrier inside a loop whose count all threads share, inside a function, before an early end.
void exchange(threadgroup uint* shared, uint t, uint n) {{
    uint other = shared[n - 1 - t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    shared[t] = other;
    threadgroup_barrier(mem_flags::mem_threadgroup);
}}
kernel void early_end(device uint* y, constant uint& count, uint t [[thread_index_in_threadgroup]],
                      uint n [[threads_per_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
    threadgroup uint shared[1024];
    shared[t] = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < count + g; ++k) exchange(shared, t, n);
    if (t % 3 == 1) return;
    y[g * n + t] = shared[t] + 1;
}}
"""


@pytest.fixture(scope="module")
def patterns():
    return mtl.library(PATTERNS)


def rotated_sums(x, count):
    x = x.copy()
    for _ in range(count):
        x += np.roll(x, -1, axis=-1)
    return x


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 100, 256, 1024])
@pytest.mark.parametrize("name", ["rotate_and_add", "through_device_memory"])
def test_adjacent_threads(patterns, name, size, rng):
    x = rng.integers(0, 1000, (6, size), np.uint32)
    expected = rotated_sums(x, 9)
    patterns[name](x, 9, threads=x.size, group_size=size)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("group", [(8, 4), (5, 7), (16, 16)])
def test_adjacent_threads_in_two_dimensions(patterns, group, rng):
    groups = (3, 2)
    x = rng.integers(0, 1000, (groups[0] * groups[1], group[0] * group[1]), np.uint32)
    expected = rotated_sums(x, 5)
    threads = (groups[0] * group[0], groups[1] * group[1])
    patterns.rotate_and_add(x, 5, threads=threads, group_size=group)
    np.testing.assert_array_equal(x, expected)


def test_a_smaller_last_group(patterns, rng):
    x = rng.integers(0, 1000, 150, np.uint32)
    expected = np.concatenate([rotated_sums(part, 4) for part in (x[:64], x[64:128], x[128:])])
    patterns.rotate_and_add(x, 4, threads=150, group_size=64)
    np.testing.assert_array_equal(x, expected)


def test_one_produces_for_all(patterns):
    iterations, groups, size = 20, 5, 70
    y = np.zeros((groups, size), np.uint32)
    patterns.producer(y, iterations, threads=y.size, group_size=size)
    total = sum(k * k for k in range(iterations)) + iterations * np.arange(groups)[:, None]
    np.testing.assert_array_equal(y, total + np.arange(size))


@pytest.mark.parametrize("size", [1, 2, 64, 512])
def test_a_tree(patterns, size, rng):
    x, sums = rng.integers(0, 1000, (7, size), np.uint32), np.zeros(7, np.uint32)
    patterns.tree(x, sums, threads=x.size, group_size=size)
    np.testing.assert_array_equal(sums, x.sum(1))


def test_simdgroups_for_themselves(patterns, rng):
    x = rng.integers(0, 1000, (12, 32), np.uint32)
    expected = np.cumsum(x, axis=1)
    patterns.simdgroup_scan(x, threads=x.size, group_size=128)
    np.testing.assert_array_equal(x, expected)


def test_simdgroups_with_unequal_numbers_of_barriers(patterns):
    y = np.zeros((3, 4, 32), np.uint32)
    patterns.unequal_simdgroups(y, threads=y.size, group_size=128)
    lane, which = np.arange(32), np.arange(4)[:, None]
    np.testing.assert_array_equal(y[1], (lane + which + 1) % 32 + 100 * ((lane + 1) % 32))


def test_threads_may_end_after_the_last_barrier(patterns):
    y = np.zeros((4, 50), np.uint32)
    patterns.early_end(y, 3, threads=y.size, group_size=50)
    t = np.arange(50)
    for g, row in enumerate(y):
        value = 50 - t if (3 + g) % 2 else t + 1
        np.testing.assert_array_equal(row, np.where(t % 3 == 1, 0, value))
