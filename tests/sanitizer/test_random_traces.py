"""Random programs of reads, writes and barriers: the sanitizer finds a race if there is one.

The oracle compares all pairs of accesses; the sanitizer keeps a few accesses of each element.
"""

import itertools

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

STEPS, GROUP, GROUPS, ELEMENTS = 4, 64, 2, 2
NOTHING, READ, WRITE, UPDATE, LOAD = range(5)  # of an operation
#: Barriers after a step: whether of the threadgroup, and flags.
BARRIERS = [(None, 0), *itertools.product((True, False), (0, 1, 2, 3))]

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void run(device int* data, device const int4* operations, device const int* barriers,
                device int* out, constant int& steps,
                uint l [[thread_position_in_threadgroup]], uint i [[thread_position_in_grid]]) {
    threadgroup int tile[2];
    if (l < 2) tile[l] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    int seen = 0;
    for (int k = 0; k < steps; k++) {
        int4 op = operations[i * steps + k];
        threadgroup int* shared = tile + op.z;
        device int* global = data + op.z;
        if (op.y == 0) {
            if (op.x == 1) seen += *shared;
            if (op.x == 2) *shared = 16 * i + k + 1;
            if (op.x == 3) atomic_fetch_add_explicit((threadgroup atomic_int*)shared, 1, memory_order_relaxed);
            if (op.x == 4) seen += atomic_load_explicit((threadgroup atomic_int*)shared, memory_order_relaxed);
        } else {
            if (op.x == 1) seen += *global;
            if (op.x == 2) *global = 16 * i + k + 1;
            if (op.x == 3) atomic_fetch_add_explicit((device atomic_int*)global, 1, memory_order_relaxed);
            if (op.x == 4) seen += atomic_load_explicit((device atomic_int*)global, memory_order_relaxed);
        }
        switch (barriers[k]) {
            case 1: threadgroup_barrier(mem_flags::mem_none); break;
            case 2: threadgroup_barrier(mem_flags::mem_device); break;
            case 3: threadgroup_barrier(mem_flags::mem_threadgroup); break;
            case 4: threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup); break;
            case 5: simdgroup_barrier(mem_flags::mem_none); break;
            case 6: simdgroup_barrier(mem_flags::mem_device); break;
            case 7: simdgroup_barrier(mem_flags::mem_threadgroup); break;
            case 8: simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup); break;
        }
    }
    out[i] = seen;
}
"""


@pytest.fixture(scope="module")
def kernel():
    return mtl.library(SOURCE, device="cpu").run


def is_ordered(first, second, space, barriers):
    """Whether one of two accesses happens before the other."""
    (group, thread, step), (other_group, other, other_step) = first, second
    if group != other_group:
        return False
    if thread == other:
        return True
    flag = 1 if space else 2
    between = (BARRIERS[kind] for kind in barriers[min(step, other_step) : max(step, other_step)])
    return any(
        flags & flag and (of_threadgroup or thread // 32 == other // 32)
        for of_threadgroup, flags in between
        if of_threadgroup is not None
    )


def races(operations, barriers):
    """The elements, as (space, index), on which there is a race."""
    accesses = {}
    for i, k in zip(*np.nonzero(operations[..., 0]), strict=True):
        act, space, element, _ = operations[i, k].tolist()
        at = (i // GROUP, i % GROUP, k)
        where = (space, element) if space else (space, element, i // GROUP)
        accesses.setdefault(where, []).append((act, at))
    for where, known in accesses.items():
        for (act, at), (other, there) in itertools.combinations(known, 2):
            plain = act in (READ, WRITE) or other in (READ, WRITE)
            writes = act in (WRITE, UPDATE) or other in (WRITE, UPDATE)
            if plain and writes and not is_ordered(at, there, where[0], barriers):
                yield where[:2]
                break


def random_program(random):
    operations = np.zeros((GROUP * GROUPS, STEPS, 4), np.int32)
    barriers = random.integers(0, len(BARRIERS), STEPS).astype(np.int32)
    if random.integers(2):
        for _ in range(random.integers(2, 7)):
            i, k = random.integers(GROUP * GROUPS), random.integers(STEPS)
            act, space, element = random.integers((1, 0, 0), (5, 2, ELEMENTS))
            operations[i, k, :3] = act, space, element
    else:  # many accesses of one kind, of which few are kept, and one that may race with them
        usual, other = random.choice(((READ, WRITE), (READ, UPDATE), (UPDATE, READ), (LOAD, WRITE)))
        space, late = random.integers(2), random.integers(1, STEPS)
        for _ in range(random.integers(2, 20)):
            i, k = random.integers(GROUP * GROUPS), random.integers(late)
            operations[i, k, :3] = usual, space, 0
        i = random.integers(GROUP * GROUPS)
        operations[i, late, :3] = other, space, 0
    return operations, barriers


def check(kernel, seed):
    random = np.random.default_rng(seed)
    operations, barriers = random_program(random)
    expected = set(races(operations, barriers))
    with mtl.checking(raises=False) as findings:
        data, out = np.zeros(ELEMENTS, np.int32), np.zeros(GROUP * GROUPS, np.int32)
        kernel(data, operations, barriers, out, STEPS, threads=GROUP * GROUPS, group_size=GROUP)
    names = {finding.memory.split("'")[1]: finding for finding in findings}
    spaces = {("tile", "data").index(name) for name in names}
    assert {finding.kind for finding in findings} <= {"race"}
    assert spaces == {space for space, _ in expected}, (seed, expected, findings)
    return bool(expected)


def test_random_programs(kernel):
    racy = sum(check(kernel, seed) for seed in range(60))
    assert 15 < racy < 50  # both outcomes occur


@pytest.mark.slow
def test_many_random_programs(kernel):
    for seed in range(60, 4000):
        check(kernel, seed)
